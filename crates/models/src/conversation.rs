//! The ids of calls in a conversation.

use std::collections::{HashSet, VecDeque};

/// The id of each call of a conversation and of each result, in their order: where a provider gave none, one that others
/// do not take, or the same twice, one is made up, the same for a call and its result.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    calls: usize,
    used: HashSet<String>,
    /// Calls whose results have not been seen yet: the id that was given and the one that is sent.
    open: VecDeque<(Option<String>, String)>,
}

impl CallIds {
    pub(crate) fn of_call(&mut self, given: Option<&String>) -> String {
        self.calls += 1;
        let usable = given.filter(|id| is_taken_everywhere(id) && !self.used.contains(*id));
        // One of them takes nothing but nine letters and digits.
        let id = usable.cloned().unwrap_or_else(|| format!("call{:05}", self.calls));
        self.used.insert(id.clone());
        self.open.push_back((given.cloned(), id.clone()));
        id
    }

    pub(crate) fn of_result(&mut self, given: Option<&String>) -> String {
        let place = given.and_then(|given| self.open.iter().position(|(open, _)| open.as_ref() == Some(given)));
        self.open.remove(place.unwrap_or(0)).map(|(_, sent)| sent).or_else(|| given.cloned()).unwrap_or_default()
    }
}

fn is_taken_everywhere(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=64).contains(&id.len()) && id.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_and_its_result_have_one_id() {
        let mut ids = CallIds::default();
        let given = "toolu_1".to_owned();
        let calls = [ids.of_call(None), ids.of_call(Some(&given)), ids.of_call(None)];
        assert_eq!(calls, ["call00001", "toolu_1", "call00003"]);
        assert_eq!(
            [ids.of_result(Some(&given)), ids.of_result(None), ids.of_result(None)],
            ["toolu_1", "call00001", "call00003"]
        );
    }

    #[test]
    fn ids_that_are_not_taken_or_not_unique_are_replaced() {
        let mut ids = CallIds::default();
        let [twice, odd] = ["same", "functions.search:0"].map(str::to_owned);
        let calls = [ids.of_call(Some(&twice)), ids.of_call(Some(&twice)), ids.of_call(Some(&odd))];
        assert_eq!(calls, ["same", "call00002", "call00003"]);
        let results = [ids.of_result(Some(&odd)), ids.of_result(Some(&twice)), ids.of_result(Some(&twice))];
        assert_eq!(results, ["call00003", "same", "call00002"]);
    }
}
