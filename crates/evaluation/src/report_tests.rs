use super::*;
use crate::outcome::{Choice, Outcome};
use crate::trial::TrialKey;
use crate::{Change, ChangedItem};
use expect_test::expect;
use trellis_domain::decision::{DecidedBy, Enforcement};

fn trial(model: &str, pattern: &str, item: &str, right: bool, tokens: u64) -> Trial {
    let chosen =
        |name: &str, decided_by| Some(Choice { name: name.into(), decided_by, enforcement: Enforcement::Decoding });
    let by = if pattern == TrialKey::AUTO { DecidedBy::Model } else { DecidedBy::Caller };
    let outcome = Outcome {
        answer: Some("<b>moss & \"fern\"</b>".into()),
        pattern: chosen("react", by),
        task_type: chosen("general", if tokens > 300 { DecidedBy::Fallback } else { by }),
        in_token: Some(tokens),
        cost_micros: (model == "large").then_some(tokens * 5),
        model_calls: 3,
        ms: Some(tokens * 2),
        replies: 4,
        unreadable_replies: 1,
        decisions: 2,
        enforced_decisions: 2,
        ..Outcome::default()
    };
    let why = (!right).then(|| "the answer is not \"<moss>\"".to_owned());
    let key = TrialKey { model: model.into(), pattern: pattern.into(), repeat: 1 };
    Trial { item: item.into(), key, right: Some(right), why, echo: Some(false), outcome, ..Trial::default() }
}

fn report() -> Report {
    Report::new(
        "moss & fern",
        vec![
            trial("small", "auto", "a", true, 400),
            trial("small", "auto", "b", false, 100),
            trial("small", "react", "a", true, 150),
            trial("small", "react", "b", true, 90),
            trial("small", "debate", "a", true, 900),
            trial("small", "debate", "b", false, 10),
            trial("large", "auto", "a", true, 200),
        ],
    )
}

#[test]
fn a_row_sums_up_its_trials() {
    let report = report();
    let row = &report.rows[0];
    assert_eq!((row.model.as_str(), row.pattern.as_str(), row.trials), ("small", "auto", 2));
    assert_eq!((row.right, row.pattern_right, row.unreadable), (Share::new(1, 2), None, Share::new(2, 8)));
    assert_eq!(
        (row.tokens_mean, row.calls_mean, row.ms_p50, row.ms_p95),
        (Some(250.0), Some(3.0), Some(200), Some(800))
    );
    assert_eq!((row.fallback, row.enforced, row.repaired), (Share::new(1, 2), Share::new(4, 4), Share::new(0, 8)));
    assert_eq!((row.injected, row.within_budget, row.unanswered), (None, None, Share::new(0, 2)));
}

#[test]
fn regret_is_what_the_router_lost_against_the_cheapest_right_pattern() {
    let report = report();
    let regret = |row: usize| report.rows[row].regret;
    assert_eq!(regret(0), Some(Regret { compared: 2, missed: 1, extra_tokens: Some(250.0), extra_interval: None }));
    assert_eq!((regret(1), regret(3)), (None, None), "only where there is something to compare with");
}

#[test]
fn the_table_has_the_columns_that_were_judged() {
    expect![[r"
        model  pattern  n           right  unanswered        tokens      cost          calls         p50 ms          p95 ms   unreadable    repaired        fallback        enforced        echo               regret
        small  auto     2     50 % [9–91]  0 % [0–66]   250 [0–544]   unknown  3.0 [3.0–3.0]  200 [200–800]   800 [200–800]  25 % [7–59]  0 % [0–32]     50 % [9–91]  100 % [51–100]  0 % [0–66]  +250, 1 of 2 missed
        small  react    2  100 % [34–100]  0 % [0–66]  120 [61–179]   unknown  3.0 [3.0–3.0]  180 [180–300]   300 [180–300]  25 % [7–59]  0 % [0–32]               –  100 % [51–100]  0 % [0–66]                    –
        small  debate   2     50 % [9–91]  0 % [0–66]  455 [0–1327]   unknown  3.0 [3.0–3.0]   20 [20–1800]  1800 [20–1800]  25 % [7–59]  0 % [0–32]  100 % [21–100]  100 % [51–100]  0 % [0–66]                    –
        large  auto     1  100 % [21–100]  0 % [0–79]           200  0.001000            3.0            400             400  25 % [5–70]  0 % [0–49]      0 % [0–79]  100 % [34–100]  0 % [0–79]                    –
    "]]
    .assert_eq(&report().to_table());
}

#[test]
fn what_models_cost_is_known_of_all_trials_or_of_none() {
    let paid = |item: &str, tokens: u64| trial("large", "auto", item, true, tokens);
    let free = Trial { outcome: Outcome::default(), ..paid("c", 1) };
    let report = Report::new("s", vec![paid("a", 200), paid("b", 600), free.clone()]);
    let row = &report.rows[0];
    assert_eq!(row.cost_micros_mean, Some(2000.0), "who was not asked is not paid");
    assert!(row.cost_micros_interval.is_some_and(|interval| interval.low > 0.0 && interval.high < 4000.0));
    assert!(report.to_table().contains("0.002000 [0.000040–0.003960]"), "{}", report.to_table());
    let page = report.to_page();
    for cell in ["<td>0.001000</td>", "<td>0.003000</td>", "<td>–</td>"] {
        assert!(page.contains(cell), "{cell}: {page}");
    }
    let json = report.to_json();
    assert!(json.contains("\"cost_micros_mean\": 2000.0") && json.contains("\"cost_micros\": 3000"), "{json}");

    let mut unpriced = paid("d", 200);
    unpriced.outcome.cost_micros = None;
    let mixed = Report::new("s", vec![paid("a", 200), unpriced]);
    assert_eq!((mixed.rows[0].cost_micros_mean, mixed.rows[0].cost_micros_interval), (None, None));
    assert!(mixed.to_table().contains("unknown") && mixed.to_page().contains("<td>unknown</td>"));
    assert!(mixed.to_json().contains("\"cost_micros_mean\": null"), "{}", mixed.to_json());
    assert!(!Report::new("s", vec![free]).to_table().contains("cost"), "nobody was asked");

    let dearer = Report::new("s", vec![paid("a", 300)]).compare(&Report::new("s", vec![paid("a", 200)]));
    assert!(dearer.to_table().contains("0.001000  0.001500   +0.000500"), "{}", dearer.to_table());
}

#[test]
fn a_report_is_read_back_as_it_was_written() {
    let report = report();
    assert_eq!(Report::from_json(&report.to_json()).unwrap(), report);
    let error = |text: &str| Report::from_json(text).unwrap_err().to_string();
    assert!(error("[]").starts_with("it is no report: "), "{}", error("[]"));
    assert!(error(r#"{"version": 7}"#).contains("version 7, this program reads version 1"));
}

#[test]
fn a_comparison_names_what_turned() {
    let now = Report::new(
        "s",
        vec![
            trial("small", "auto", "a", false, 400),
            trial("small", "auto", "b", true, 100),
            trial("small", "auto", "c", true, 100),
            trial("new", "auto", "a", true, 1),
        ],
    );
    let comparison = now.compare(&report());
    let turned =
        |item: &str, change| ChangedItem { model: "small".into(), pattern: "auto".into(), item: item.into(), change };
    assert_eq!(comparison.changed, [turned("a", Change::NowWrong), turned("b", Change::NowRight)]);
    assert!(comparison.has_regressions());
    expect![[r"
        model  pattern                         before           now  difference
        small  auto        right          50 % [9–91]  67 % [21–94]    +16.7 pp
        small  auto       tokens          250 [0–544]   200 [4–396]       -50.0
        small  auto     fallback          50 % [9–91]   33 % [6–79]    -16.7 pp
        small  auto       regret  +250, 1 of 2 missed             –
        small / auto / a: was right, is wrong now
        small / auto / b: was wrong, is right now
        new / auto: not in the baseline
        small / react: only in the baseline
        small / debate: only in the baseline
        large / auto: only in the baseline
    "]]
    .assert_eq(&comparison.to_table());
    let same = report().compare(&report());
    assert_eq!((same.to_table().as_str(), same.has_regressions()), ("No figure has changed.\n", false));
}

#[test]
fn with_repetitions_most_of_them_decide() {
    let trials = |rights: [bool; 3]| rights.map(|right| trial("m", "react", "a", right, 1)).to_vec();
    let before = Report::new("s", trials([true, true, false]));
    assert!(Report::new("s", trials([true, false, true])).compare(&before).changed.is_empty());
    assert!(Report::new("s", trials([true, false, false])).compare(&before).has_regressions());
}

#[test]
fn the_page_stands_alone_and_shows_markup_as_text() {
    let page = report().to_page();
    for part in
        ["<h1>Evaluation: moss &amp; fern</h1>", "&lt;b&gt;moss &amp; &quot;fern&quot;&lt;/b&gt;", "50 % [9–91]"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.contains("wrong: the answer is not &quot;&lt;moss&gt;&quot;"), "{page}");
    for outside in ["<b>moss", "http", "<script", "<img", "<link", "url("] {
        assert!(!page.contains(outside), "{outside}: {page}");
    }
    assert_eq!(page.matches("<tr").count(), 1 + 4 + 4 + 7, "a head and a line for each row and each trial");
}

#[test]
fn nothing_asked_is_an_empty_report() {
    let report = Report::new("none", Vec::new());
    assert_eq!((report.rows.len(), report.to_table().as_str()), (0, "model  pattern  n\n"));
    assert!(report.to_page().contains("Evaluation: none"));
}

#[test]
fn what_is_not_covered_is_listed_and_counts_for_nothing() {
    let lost = |pattern: &str| {
        let missed = trial("small", pattern, "c", false, 9_999);
        let item = crate::Item { id: missed.item, ..crate::Item::default() };
        let key = TrialKey { repeat: 2, ..missed.key };
        Trial::not_covered(&item, key, missed.outcome, "the prompt `agent-react` has <changed>")
    };
    let covered = report();
    let more = covered.trials.iter().cloned().chain([lost("auto"), lost("react")]).collect();
    let all = Report::new("moss & fern", more).from_recording();
    assert_eq!((all.rows[0].trials, &all.rows[0].not_covered[..]), (3, &["c #2".to_owned()][..]));
    for (row, before) in all.rows.iter().zip(&covered.rows) {
        let same = Row { trials: before.trials, not_covered: Vec::new(), ..row.clone() };
        assert_eq!(same, *before, "the figures are those without it");
    }
    assert!(all.compare(&covered).changed.is_empty() && covered.compare(&all).changed.is_empty());
    let line = "small / auto / c #2: not covered: the prompt `agent-react` has <changed>\n";
    assert!(all.to_table().ends_with(&format!("{line}{}", line.replace("auto", "react"))), "{}", all.to_table());
    let page = all.to_page();
    for part in ["No model was asked", "<h2>Not covered</h2>", "has &lt;changed&gt;"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(Report::from_json(&all.to_json()).unwrap(), all);
    assert!(!all.covers_nothing() && Report::new("s", vec![lost("auto")]).covers_nothing());
}

#[test]
fn nobody_misses_an_answer_where_only_the_choice_was_wanted() {
    let routed = Outcome { ms: Some(1), ..Outcome::default() };
    let of = |outcome| Report::new("s", vec![Trial { outcome, ..Trial::default() }]).rows[0].unanswered;
    assert_eq!(of(routed), None);
    assert_eq!(of(Outcome::failed("broken")), Share::new(1, 1));
}
