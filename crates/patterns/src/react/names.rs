//! Names of iterations.

use crate::session::Session;
use trellis_domain::record::{Name, Observed, Replied};

/// The reply of iteration `n`. Every iteration looks at all before it, so nothing is made for this.
pub(super) fn reply_of(session: &Session, n: u32) -> Option<&Replied> {
    session.replied_as(ShortName::iteration(n).as_str())
}

/// What came back of a call of iteration `n`, counted from 1.
pub(super) fn observation_of(session: &Session, n: u32, call: u32) -> Option<&Observed> {
    session.observed_as(ShortName::observation_of(n, call).as_str())
}

/// A name that is written down only to look for it.
struct ShortName {
    bytes: [u8; Self::LONGEST],
    length: usize,
}

impl ShortName {
    /// The longest are those of observations, with two numbers of ten digits.
    const LONGEST: usize = 40;

    fn iteration(n: u32) -> Self {
        Self { bytes: [0; Self::LONGEST], length: 0 }.text("i").number(n)
    }

    fn observation_of(n: u32, call: u32) -> Self {
        match call {
            1 => Self::iteration(n).text("/observation"),
            _ => Self::iteration(n).text("/call/").number(call).text("/observation"),
        }
    }

    fn text(mut self, text: &str) -> Self {
        self.bytes[self.length..][..text.len()].copy_from_slice(text.as_bytes());
        self.length += text.len();
        self
    }

    fn number(mut self, number: u32) -> Self {
        self.length += number.checked_ilog10().unwrap_or(0) as usize + 1;
        let (mut place, mut rest) = (self.length, number);
        loop {
            place -= 1;
            self.bytes[place] = b'0' + u8::try_from(rest % 10).expect("a digit");
            rest /= 10;
            if rest == 0 {
                return self;
            }
        }
    }

    fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.length]).expect("it was written as text")
    }
}

/// The names of records and turns in a session that goes on in iterations.
pub trait IterationNames: Sized {
    /// Iteration `n`, counted from 1: a turn, and the record of the model's reply in it.
    fn iteration(n: u32) -> Self;

    /// What came back in iteration `n`.
    fn observation(n: u32) -> Self;

    /// What came back of one of the calls of iteration `n`, counted from 1.
    fn observation_of(n: u32, call: u32) -> Self;

    /// The call whose observation this names, counted from 1.
    fn as_observation(&self) -> Option<u32>;

    /// The iteration whose turn or reply this names.
    fn as_iteration(&self) -> Option<u32>;

    /// The iteration that a turn or record of any kind belongs to.
    fn iteration_of(&self) -> Option<u32>;
}

impl IterationNames for Name {
    fn iteration(n: u32) -> Self {
        Self::new(format!("i{n}"))
    }

    fn observation(n: u32) -> Self {
        Self::new(format!("i{n}/observation"))
    }

    fn observation_of(n: u32, call: u32) -> Self {
        if call == 1 { Self::observation(n) } else { Self::new(format!("i{n}/call/{call}/observation")) }
    }

    fn as_observation(&self) -> Option<u32> {
        self.iteration_of()?;
        let parts: Vec<_> = self.parts().skip(1).collect();
        match parts.as_slice() {
            ["observation"] => Some(1),
            ["call", call, "observation"] => call.parse().ok(),
            _ => None,
        }
    }

    fn as_iteration(&self) -> Option<u32> {
        self.as_str().strip_prefix('i')?.parse().ok()
    }

    fn iteration_of(&self) -> Option<u32> {
        self.parts().next()?.strip_prefix('i')?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_only_written_down_are_the_same() {
        for (n, call) in [(0, 2), (1, 1), (9, 10), (12, 3), (u32::MAX, u32::MAX)] {
            assert_eq!(ShortName::iteration(n).as_str(), Name::iteration(n).as_str());
            assert_eq!(ShortName::observation_of(n, call).as_str(), Name::observation_of(n, call).as_str());
        }
    }

    #[test]
    fn names_of_iterations_are_read_and_others_are_not() {
        assert_eq!(Name::iteration(12).as_iteration(), Some(12));
        assert_eq!(Name::observation(12).as_iteration(), None);
        assert_eq!(Name::observation(12).iteration_of(), Some(12));
        assert_eq!((Name::observation(12).as_observation(), Name::iteration(12).as_observation()), (Some(1), None));
        let third = Name::observation_of(12, 3);
        assert_eq!((third.iteration_of(), third.as_iteration(), third.as_observation()), (Some(12), None, Some(3)));
        assert_eq!(Name::observation_of(12, 1), Name::observation(12));
        for other in [Name::end(), Name::session(), Name::new("in/1")] {
            assert_eq!((other.as_iteration(), other.iteration_of()), (None, None), "{other}");
        }
    }
}
