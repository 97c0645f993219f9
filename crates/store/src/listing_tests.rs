use super::*;
use std::collections::BTreeMap;
use tempfile::TempDir;
use trellis_domain::Timestamp;
use trellis_domain::run::RunState;

fn summary(n: usize, question: &str, state: RunState) -> RunSummary {
    let row = serde_json::json!({
        "workspace": "default", "run": format!("r{n}"), "state": state, "question": question, "pattern": "react",
        "task_type": "general", "conversation": null, "started": n, "ended": null, "seq": 1, "usage": {},
    });
    RunSummary { started: Timestamp::from_micros(i64::try_from(n).unwrap()), ..serde_json::from_value(row).unwrap() }
}

struct Lists {
    _folder: TempDir,
    tables: Tables,
    shared: Shared,
}

impl Lists {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let tables = Tables::open(folder.path()).unwrap();
        let served = crate::served::Served::read(&tables, Timestamp::from_micros(0), None).unwrap();
        Self { _folder: folder, tables, shared: Shared::new(BTreeMap::new(), 0, served) }
    }

    fn list(&self, run: &RunSummary) {
        for (key, value) in rows(run, true, run.state.is_end()) {
            self.tables.index.insert(key, value).unwrap();
        }
    }

    fn put(&self, run: &RunSummary) {
        self.list(run);
        self.tables.index.insert(keys::run(&run.workspace, &run.run), serde_json::to_vec(run).unwrap()).unwrap();
    }

    fn page(&self, filter: &RunFilter, cursor: Option<&str>, limit: usize) -> RunPage {
        page(&self.tables, &self.shared, &Workspace::default(), filter, cursor, limit).unwrap()
    }

    /// All pages, and how many they were.
    fn all(&self, filter: &RunFilter) -> (Vec<String>, usize) {
        let (mut found, mut pages, mut cursor) = (Vec::new(), 0, None);
        loop {
            let page = self.page(filter, cursor.as_deref(), 10);
            assert_eq!(page.unreadable, []);
            found.extend(page.runs.iter().map(|run| run.run.to_string()));
            pages += 1;
            cursor = page.next;
            if cursor.is_none() {
                return (found, pages);
            }
        }
    }
}

fn searching(text: &str) -> RunFilter {
    RunFilter { search: Some(text.to_owned()), ..RunFilter::default() }
}

/// Only what may fit is read at all: here nothing else could be.
#[test]
fn a_search_reads_only_the_runs_that_it_finds() {
    let lists = Lists::new();
    for n in 0..200 {
        lists.list(&summary(n, "what is the capital of France?", RunState::Answered));
    }
    lists.put(&summary(7, "Why is the Sky blue?", RunState::Answered));
    lists.put(&summary(90, "why is the sky dark at night?", RunState::Failed));
    assert_eq!(lists.all(&searching("SKY")), (vec!["r90".to_owned(), "r7".to_owned()], 1));
    let failed = RunFilter { state: Some(RunState::Failed), ..searching("y da") };
    assert_eq!(lists.all(&failed), (vec!["r90".to_owned()], 1));
}

#[test]
fn what_is_rare_is_looked_for_in_portions() {
    let lists = Lists::new();
    for n in 0..MOST_ROWS + 10 {
        lists.list(&summary(n, "common", RunState::Answered));
    }
    // Where a page may end there has to be a run.
    for n in 0..20 {
        lists.put(&summary(n, "common", RunState::Answered));
    }
    lists.put(&summary(0, "needle", RunState::Answered));
    let first = lists.page(&searching("needle"), None, 10);
    assert!(first.runs.is_empty() && first.next.is_some(), "a page ends after {MOST_ROWS} rows");
    assert_eq!(lists.all(&searching("needle")), (vec!["r0".to_owned()], 2));
}

#[test]
fn a_filter_that_no_list_knows_reads_a_bounded_number_of_runs() {
    let lists = Lists::new();
    for n in 0..=MOST_IN_VAIN * 2 {
        lists.put(&summary(n, "common", RunState::Answered));
    }
    let planned = RunFilter { pattern: Some("plan-then-execute".into()), ..RunFilter::default() };
    assert_eq!(lists.all(&planned), (Vec::new(), 2));
    assert_eq!(
        lists.page(&RunFilter::default(), None, MOST_IN_VAIN * 2).runs.len(),
        MOST_IN_VAIN * 2,
        "what fits counts"
    );
}

#[test]
fn a_run_that_cannot_be_read_is_named_and_the_others_are_listed() {
    let lists = Lists::new();
    for n in 0..4 {
        lists.put(&summary(n, "question", RunState::Answered));
    }
    let place = |n: usize| keys::run(&Workspace::default(), &summary(n, "", RunState::Answered).run);
    lists.tables.index.insert(place(1), "not a summary").unwrap();
    lists.tables.index.remove(place(2)).unwrap();
    for filter in
        [RunFilter::default(), searching("quest"), RunFilter { state: Some(RunState::Answered), ..searching("q") }]
    {
        let page = lists.page(&filter, None, 10);
        let (listed, named): (Vec<_>, Vec<_>) = (
            page.runs.iter().map(|run| run.run.as_str()).collect(),
            page.unreadable.iter().map(|run| run.run.as_str()).collect(),
        );
        assert_eq!((listed, named), (vec!["r3", "r0"], vec!["r2", "r1"]));
        assert!(page.unreadable[0].reason.contains("missing"), "{:?}", page.unreadable);
        assert!(page.unreadable[1].reason.contains("damaged"), "{:?}", page.unreadable);
    }
}
