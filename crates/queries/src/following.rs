//! How a view that several processes share follows the runs of its store, a step at a time.

use std::time::Duration;
use tokio::sync::watch;
use trellis_orchestrator::ports::GraphError;

/// How often it is looked for finished runs, and how seldom while that fails.
const LOOK: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// And for whether another process is done that takes them in.
pub const BUSY: Duration = Duration::from_millis(100);

/// What one step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// So many runs were taken in, and there may be more.
    Moved(usize),
    CaughtUp,
    /// Another process is at it.
    Elsewhere,
}

/// Goes on until the view has caught up with the store. How many runs were taken in.
pub async fn catch_up<F>(step: impl Fn() -> F) -> Result<usize, GraphError>
where
    F: Future<Output = Result<Step, GraphError>>,
{
    let mut absorbed = 0;
    loop {
        match step().await? {
            Step::Moved(more) => absorbed += more,
            Step::CaughtUp => return Ok(absorbed),
            Step::Elsewhere => tokio::time::sleep(BUSY).await,
        }
    }
}

/// Goes on with what finishes, until it is told to stop. While the `view` cannot be written nothing is lost: what it lacks
/// is taken in when it can.
pub async fn keep_up<F>(mut stopped: watch::Receiver<bool>, view: &str, step: impl Fn() -> F)
where
    F: Future<Output = Result<Step, GraphError>>,
{
    let mut trouble: Option<(String, Duration)> = None;
    loop {
        let done = tokio::select! {
            // Whoever could say stop is gone: that is the same.
            _ = stopped.wait_for(|stop| *stop) => return,
            done = step() => done,
        };
        let pause = match (done, trouble.take()) {
            (Ok(done), before) => {
                if before.is_some() {
                    tracing::info!(view, "the graph view follows the runs again");
                }
                if matches!(done, Step::Moved(_)) { Duration::ZERO } else { LOOK }
            }
            (Err(error), before) => {
                let told = error.to_string();
                let (told_before, pause) = before.unwrap_or((String::new(), LOOK));
                if told != told_before {
                    tracing::error!(
                        view,
                        error = told,
                        "the graph view cannot follow the runs; none is lost, and they are taken in when it can"
                    );
                }
                trouble = Some((told, (pause * 2).min(LONGEST_PAUSE)));
                pause
            }
        };
        if tokio::time::timeout(pause, stopped.wait_for(|stop| *stop)).await.is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn trouble_is_looked_at_ever_more_seldom_and_what_moves_at_once() {
        let (tell, stopped) = watch::channel(false);
        let (began, looks) = (Instant::now(), RefCell::new(Vec::new()));
        let step = || async {
            looks.borrow_mut().push(began.elapsed().as_secs());
            match looks.borrow().len() {
                1..=7 => Err(GraphError::Busy("away".to_owned())),
                8 => Ok(Step::Moved(1)),
                9 => Ok(Step::CaughtUp),
                _ => {
                    tell.send_replace(true);
                    Ok(Step::Elsewhere)
                }
            }
        };
        keep_up(stopped, "here", step).await;
        assert_eq!(*looks.borrow(), [0, 1, 3, 7, 15, 31, 61, 91, 91, 92]);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_catches_up_waits_for_another_process_and_counts_its_own() {
        let steps = RefCell::new(vec![Step::CaughtUp, Step::Moved(3), Step::Elsewhere, Step::Moved(2)]);
        let step = || async { Ok::<_, GraphError>(steps.borrow_mut().pop().unwrap()) };
        assert_eq!(catch_up(step).await.unwrap(), 5);
    }
}
