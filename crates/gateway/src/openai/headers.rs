//! What headers say here: which run answers, and for how long a caller waits.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use std::time::Duration;
use trellis_domain::RunId;

/// The longest wait. The packages give up after ten minutes and send the question again, which would begin another run.
const LONGEST: Duration = Duration::from_mins(9);
/// Where the packages say after how many seconds they give up: Python's and Node's.
const TIMEOUTS: [&str; 2] = ["x-stainless-read-timeout", "x-stainless-timeout"];

/// The run that answers, under our own name and under the one that the packages look at.
pub(super) fn of_run(run: &RunId) -> HeaderMap {
    // What HTTP cannot write is left out; ids that are made here have no such characters.
    let id = HeaderValue::from_str(run.as_str()).ok();
    let names = ["x-trellis-run", "x-request-id"].map(HeaderName::from_static);
    names.into_iter().zip(id.clone().into_iter().chain(id)).collect()
}

/// For how long a caller waits: not so long that it gives up before it hears how to go on.
pub(super) fn patience(headers: &HeaderMap) -> Duration {
    let seconds = |name: &str| headers.get(name)?.to_str().ok()?.parse::<f64>().ok();
    let given =
        TIMEOUTS.iter().find_map(|name| seconds(name)).and_then(|given| Duration::try_from_secs_f64(given).ok());
    given.map_or(LONGEST, |given| LONGEST.min(given.mul_f64(0.9)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_answered_before_it_gives_up() {
        let waits = |name: &'static str, value: &'static str| {
            patience(&HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))]))
        };
        assert_eq!(patience(&HeaderMap::new()), LONGEST);
        assert_eq!(waits("x-stainless-read-timeout", "20.0"), Duration::from_secs(18));
        assert_eq!(waits("x-stainless-timeout", "30"), Duration::from_secs(27));
        for odd in ["600", "1e300", "-1", "NaN", "soon", ""] {
            assert_eq!(waits("x-stainless-timeout", odd), LONGEST, "{odd}");
        }
    }
}
