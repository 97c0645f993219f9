//! Names of iterations.

use trellis_domain::record::Name;

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
