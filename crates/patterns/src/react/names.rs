//! Names of iterations.

use trellis_domain::record::Name;

/// The names of records and turns in a session that goes on in iterations.
pub trait IterationNames: Sized {
    /// Iteration `n`, counted from 1: a turn, and the record of the model's reply in it.
    fn iteration(n: u32) -> Self;

    /// What came back in iteration `n`.
    fn observation(n: u32) -> Self;

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
        for other in [Name::end(), Name::session(), Name::new("in/1")] {
            assert_eq!((other.as_iteration(), other.iteration_of()), (None, None), "{other}");
        }
    }
}
