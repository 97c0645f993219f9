//! The ids of calls in a conversation.

use std::collections::{HashSet, VecDeque};

/// The id of each call of a conversation and of each result, in their order: where a provider gave none, one that others
/// do not take, or the same twice, one is made up, the same for a call and its result.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    calls: usize,
    /// One vendor takes nothing but nine letters and digits.
    only_nine: bool,
    used: HashSet<String>,
    /// Calls whose results have not been seen yet: the id that was given and the one that is sent.
    open: VecDeque<(Option<String>, String)>,
}

impl CallIds {
    /// Ids that all who speak chat completions take.
    pub(crate) fn of_nine() -> Self {
        Self { only_nine: true, ..Self::default() }
    }

    pub(crate) fn of_call(&mut self, given: Option<&String>) -> String {
        self.calls += 1;
        let is_taken = |id: &str| if self.only_nine { is_nine(id) } else { is_plain(id) };
        let usable = given.filter(|id| is_taken(id) && !self.used.contains(*id));
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

fn is_nine(id: &str) -> bool {
    id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_plain(id: &str) -> bool {
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

    #[test]
    fn where_only_nine_letters_and_digits_are_taken_others_are_replaced() {
        let mut ids = CallIds::of_nine();
        let [taken, foreign] = ["D681PevKs", "toolu_1"].map(str::to_owned);
        assert_eq!([ids.of_call(Some(&taken)), ids.of_call(Some(&foreign))], ["D681PevKs", "call00002"]);
        assert_eq!([ids.of_result(Some(&foreign)), ids.of_result(Some(&taken))], ["call00002", "D681PevKs"]);
    }
}
