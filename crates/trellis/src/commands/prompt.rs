//! Questions one after the other at a terminal, all of one conversation.

use super::{ask, run as one_run, why};
use crate::app;
use crate::cli::{Ask, Global};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::serving::Interrupt;
use crate::show::{clean, note, print_line};
use std::io::{BufRead, Write};
use tokio::sync::mpsc;
use trellis_orchestrator::ports::{RealWorld, World};

const HELP: &str = "\
A line is a question; the next ones belong to the same conversation.
/show [RUN]             how the last answer came to be
/why [STEP|SENTENCE]    what the last answer, a step or a sentence of it rests on
/model [PROVIDER/NAME]  which model is asked, or another one from now on
/new                    another conversation
/help                   this
/quit                   leave, as Ctrl-D does. Ctrl-C stops a question; its run is kept, `trellis resume` goes on with it";

/// What somebody wants, by a line.
#[derive(Debug, PartialEq, Eq)]
enum Wish<'a> {
    Nothing,
    Question(&'a str),
    Show(&'a str),
    Why(&'a str),
    Model(&'a str),
    New,
    Help,
    Quit,
    Unknown(&'a str),
}

impl<'a> Wish<'a> {
    fn of(line: &'a str) -> Self {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "" => Self::Nothing,
            "/show" => Self::Show(rest),
            "/why" => Self::Why(rest),
            "/model" => Self::Model(rest),
            "/new" => Self::New,
            "/help" | "/?" => Self::Help,
            "/quit" | "/exit" | "/q" => Self::Quit,
            word if word.starts_with('/') => Self::Unknown(word),
            _ => Self::Question(line),
        }
    }
}

pub(crate) async fn run(global: &Global) -> Result<Exit, Failure> {
    let mut global = global.clone();
    let mut interrupt = Interrupt::new()?;
    let mut lines = typed_lines();
    let mut conversation = RealWorld.fresh_id();
    note(&format!("trellis {}; /help tells what can be done, Ctrl-D leaves", env!("CARGO_PKG_VERSION")));
    tell_model(&global);
    loop {
        {
            let mut out = std::io::stdout().lock();
            out.write_all(b"\n> ")?;
            out.flush()?;
        }
        let line = tokio::select! {
            line = lines.recv() => line,
            () = interrupt.received() => {
                note("\n/quit or Ctrl-D leaves");
                continue;
            }
        };
        let Some(line) = line else {
            print_line("")?;
            return Ok(Exit::Ok);
        };
        let done = match Wish::of(&line) {
            Wish::Nothing => Ok(()),
            Wish::Quit => return Ok(Exit::Ok),
            Wish::Help => print_line(HELP).map_err(Failure::from),
            Wish::New => {
                conversation = RealWorld.fresh_id();
                note("the next question begins another conversation");
                Ok(())
            }
            Wish::Model(name) => {
                choose_model(&mut global, name);
                Ok(())
            }
            Wish::Unknown(word) => {
                note(&format!("there is no {}; /help tells what there is", clean(word)));
                Ok(())
            }
            Wish::Show(wish) => Box::pin(show(&global, wish)).await,
            Wish::Why(about) => Box::pin(explain(&global, about)).await,
            Wish::Question(question) => Box::pin(answer(&global, question, &conversation, &mut interrupt)).await,
        };
        // One question that went wrong does not end the others.
        if let Err(failure) = done {
            failure.report();
        }
    }
}

async fn answer(global: &Global, question: &str, conversation: &str, interrupt: &mut Interrupt) -> Result<(), Failure> {
    let ask = Ask {
        question: question.to_owned(),
        conversation: Some(conversation.to_owned()),
        collection: "default".to_owned(),
        ..Ask::default()
    };
    let asked = ask::run(global, &ask).await;
    // It was meant for the question, which has heard it.
    interrupt.forget();
    asked.map(drop)
}

async fn show(global: &Global, wish: &str) -> Result<(), Failure> {
    let wish = if wish.is_empty() { "last" } else { wish };
    one_run::show(&Desk::look(global, "run show")?, global, wish, /* full */ false).await.map(drop)
}

async fn explain(global: &Global, about: &str) -> Result<(), Failure> {
    let about = Some(about).filter(|about| !about.is_empty());
    why::run(&Desk::look(global, "run why")?, global, "last", about).await.map(drop)
}

fn choose_model(global: &mut Global, name: &str) {
    if !name.is_empty() {
        let wanted = Global { model: name.split(',').map(|name| name.trim().to_owned()).collect(), ..global.clone() };
        match app::models(&wanted) {
            Ok(_) => *global = wanted,
            Err(failure) => {
                failure.report();
                return;
            }
        }
    }
    tell_model(global);
}

fn tell_model(global: &Global) {
    match app::chosen_models(global) {
        Ok(models) => {
            let names: Vec<_> = models.iter().map(ToString::to_string).collect();
            note(&format!("model: {}", clean(&names.join(", then "))));
        }
        Err(failure) => note(&format!("model: {}", clean(&failure.message))),
    }
}

/// The lines of standard input; none behind its end. They are read beside everything else, because nothing can stop such
/// a read.
fn typed_lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::Wish;

    #[test]
    fn a_line_is_a_question_unless_it_begins_with_a_word_of_ours() {
        for (line, expected) in [
            ("  What is it? ", Wish::Question("What is it?")),
            ("", Wish::Nothing),
            ("/why finding 0", Wish::Why("finding 0")),
            ("/why", Wish::Why("")),
            ("/show  last", Wish::Show("last")),
            ("/model openai/gpt-4.1", Wish::Model("openai/gpt-4.1")),
            ("/q", Wish::Quit),
            ("/wyh", Wish::Unknown("/wyh")),
        ] {
            assert_eq!(Wish::of(line), expected);
        }
    }
}
