//! The ids of calls in a conversation.

/// The id of each call of a conversation and of each result, in their order: where a provider gave none, one is made up,
/// the same for a call and its result.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    made: usize,
    /// The ids of calls whose results have not been seen yet.
    open: std::collections::VecDeque<String>,
}

impl CallIds {
    pub(crate) fn of_call(&mut self, given: Option<&String>) -> String {
        self.made += 1;
        let id = given.cloned().unwrap_or_else(|| format!("call_{}", self.made));
        self.open.push_back(id.clone());
        id
    }

    pub(crate) fn of_result(&mut self, given: Option<&String>) -> String {
        let place = given.and_then(|given| self.open.iter().position(|open| open == given)).unwrap_or(0);
        let open = self.open.remove(place);
        given.cloned().or(open).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_and_its_result_have_one_id() {
        let mut ids = CallIds::default();
        let given = "toolu_1".to_owned();
        let calls = [ids.of_call(None), ids.of_call(Some(&given)), ids.of_call(None)];
        assert_eq!(calls, ["call_1", "toolu_1", "call_3"]);
        assert_eq!(
            [ids.of_result(Some(&given)), ids.of_result(None), ids.of_result(None)],
            ["toolu_1", "call_1", "call_3"]
        );
    }
}
