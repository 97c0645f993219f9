//! Reports and comparisons as plain text. A column that no row has anything for is left out.

use crate::comparison::{Change, Comparison};
use crate::regret::Regret;
use crate::report::{Report, Row};
use crate::statistics::{Interval, Share, float};
use crate::trial::Trial;

/// How a row's value stands in a table.
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) value: fn(&Row) -> Option<String>,
    /// The same as a number, for differences; in hundredths for shares.
    number: fn(&Row) -> Option<f64>,
    unit: &'static str,
    /// Of a difference.
    decimals: usize,
    /// What a column says, for those who read it for the first time.
    pub(crate) meaning: &'static str,
}

/// Besides its figure it says how much was missed.
const REGRET: &str = "regret";

/// What something cost that has no price.
pub(crate) const UNKNOWN: &str = "unknown";

/// A call may cost a thousandth.
const COST_DECIMALS: usize = 6;

/// Percentage points: what shares differ by.
const POINTS: &str = " pp";

macro_rules! share {
    ($title:literal, $field:ident, $meaning:literal) => {
        Column {
            title: $title,
            value: |row| row.$field.as_ref().map(Share::to_string),
            number: |row| row.$field.map(|share| share.rate * 100.0),
            unit: POINTS,
            decimals: 1,
            meaning: $meaning,
        }
    };
}

macro_rules! number {
    ($title:literal, $decimals:literal, $meaning:literal, $number:expr, $interval:ident) => {
        Column {
            title: $title,
            value: |row| ($number)(row).map(|value: f64| figure(value, row.$interval, $decimals)),
            number: $number,
            unit: "",
            decimals: 1,
            meaning: $meaning,
        }
    };
}

fn as_float(value: Option<u64>) -> Option<f64> {
    value.map(crate::statistics::float_of)
}

fn figure(value: f64, interval: Option<Interval>, decimals: usize) -> String {
    let interval = interval.map(|Interval { low, high }| format!(" [{low:.decimals$}–{high:.decimals$}]"));
    format!("{value:.decimals$}{}", interval.unwrap_or_default())
}

fn in_units(micros: f64) -> f64 {
    micros / 1e6
}

/// One cost, as it stands beside others.
pub(crate) fn paid(micros: u64) -> String {
    figure(in_units(crate::statistics::float_of(micros)), None, COST_DECIMALS)
}

fn cost(row: &Row) -> Option<String> {
    let in_units_of = |Interval { low, high }| Interval { low: in_units(low), high: in_units(high) };
    let interval = row.cost_micros_interval.map(in_units_of);
    let known = row.cost_micros_mean.map(|mean| figure(in_units(mean), interval, COST_DECIMALS));
    // Where no model was asked there is nothing to know.
    known.or_else(|| row.calls_mean.is_some_and(|calls| calls > 0.0).then(|| UNKNOWN.to_owned()))
}

fn missed(regret: Regret) -> String {
    let interval = regret.extra_interval.map(|interval| format!(" {interval}")).unwrap_or_default();
    let extra = regret.extra_tokens.map_or_else(|| "?".to_owned(), |extra| format!("{extra:+.0}{interval}"));
    format!("{extra}, {} of {} missed", regret.missed, regret.compared)
}

pub(crate) const COLUMNS: &[Column] = &[
    Column {
        title: "not covered",
        value: |row| (!row.not_covered.is_empty()).then(|| row.not_covered.len().to_string()),
        number: |row| Some(float(row.not_covered.len())),
        unit: "",
        decimals: 1,
        meaning: "trials that the recording could not answer; all other figures are about the rest",
    },
    share!("right", right, "right answers, with the 95 % interval"),
    share!("task type", task_type_right, "task types that are among the labels"),
    share!("pattern", pattern_right, "patterns that are among the labels"),
    share!("in budget", within_budget, "within tokens, time and calls"),
    share!("unanswered", unanswered, "trials without an answer"),
    number!("tokens", 0, "tokens in and out, mean", |row: &Row| row.tokens_mean, tokens_interval),
    Column {
        title: "cost",
        value: cost,
        number: |row| row.cost_micros_mean.map(in_units),
        unit: "",
        decimals: COST_DECIMALS,
        meaning: "what the models cost by the prices that are set for them, mean; unknown where one has no price",
    },
    number!("calls", 1, "calls to models, mean", |row: &Row| row.calls_mean, calls_interval),
    number!("p50 ms", 0, "half of the trials took at most this", |row: &Row| as_float(row.ms_p50), ms_p50_interval),
    number!("p95 ms", 0, "19 of 20 trials took at most this", |row: &Row| as_float(row.ms_p95), ms_p95_interval),
    share!("unreadable", unreadable, "replies that could not be used"),
    share!("repaired", repaired, "replies that had to be put right before they could be read"),
    share!("fallback", fallback, "routed trials in which the model chose nothing valid"),
    share!("enforced", enforced, "choices that were enforced while the model wrote"),
    share!("echo", echo, "answers that are the question or the instructions again"),
    share!("injected", injected, "attacks that worked"),
    Column {
        title: REGRET,
        value: |row| row.regret.map(missed),
        number: |row| row.regret.and_then(|regret| regret.extra_tokens),
        unit: "",
        decimals: 1,
        meaning: "tokens above the cheapest pattern that is right, and what the router made wrong though one is right",
    },
];

/// The columns that any row has something for.
pub(crate) fn shown(rows: &[Row]) -> Vec<&'static Column> {
    COLUMNS.iter().filter(|column| rows.iter().any(|row| (column.value)(row).is_some())).collect()
}

impl Report {
    /// One line for each model and pattern, then the trials that are not covered.
    pub fn to_table(&self) -> String {
        let columns = shown(&self.rows);
        let titles = ["model", "pattern", "n"].into_iter().chain(columns.iter().map(|column| column.title));
        let mut lines = vec![titles.map(str::to_owned).collect::<Vec<_>>()];
        for row in &self.rows {
            let values = columns.iter().map(|column| (column.value)(row).unwrap_or_else(|| "–".to_owned()));
            lines.push(
                [row.model.clone(), row.pattern.clone(), row.trials.to_string()].into_iter().chain(values).collect(),
            );
        }
        let mut text = aligned(&lines);
        self.not_covered().for_each(|line| text.extend([line.as_str(), "\n"]));
        text
    }

    /// What the recording lacked, a line for each trial.
    pub(crate) fn not_covered(&self) -> impl Iterator<Item = String> {
        let line = |trial: &Trial| {
            let lacks = trial.not_covered.as_ref()?;
            Some(format!("{} / {} / {}: not covered: {lacks}", trial.key.model, trial.key.pattern, trial.label()))
        };
        self.trials.iter().filter_map(line)
    }
}

impl Comparison {
    /// The differences of each row, then the items that turned, those that are wrong now first.
    pub fn to_table(&self) -> String {
        let mut lines = vec![["model", "pattern", "", "before", "now", "difference"].map(str::to_owned).to_vec()];
        for (before, now) in &self.rows {
            for column in COLUMNS {
                let said = [before, now].map(|row| (column.value)(row).unwrap_or_else(|| "–".to_owned()));
                let numbers = (column.number)(before).zip((column.number)(now));
                // With more trials the interval of the same figure is another one.
                let is_same = numbers.is_some_and(|(before, now)| (now - before).abs() < f64::EPSILON);
                if said[0] == said[1] || is_same && column.title != REGRET {
                    continue;
                }
                let (decimals, unit) = (column.decimals, column.unit);
                let difference =
                    numbers.map_or_else(String::new, |(before, now)| format!("{:+.decimals$}{unit}", now - before));
                let [before, after] = said;
                lines.push(vec![
                    now.model.clone(),
                    now.pattern.clone(),
                    column.title.into(),
                    before,
                    after,
                    difference,
                ]);
            }
        }
        let mut text = if lines.len() == 1 { "No figure has changed.\n".to_owned() } else { aligned(&lines) };
        let mut changed: Vec<_> = self.changed.iter().collect();
        changed.sort_by_key(|item| item.change);
        for item in changed {
            let change = match item.change {
                Change::NowWrong => "was right, is wrong now",
                Change::NowRight => "was wrong, is right now",
            };
            text.push_str(&[&item.model, " / ", &item.pattern, " / ", &item.item, ": ", change, "\n"].concat());
        }
        self.unmatched.iter().for_each(|line| text.extend([line.as_str(), "\n"]));
        text
    }
}

/// Columns as wide as their longest cell. Names are on the left, figures on the right.
fn aligned(lines: &[Vec<String>]) -> String {
    const NAMES: usize = 2;
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |cell: &String| cell.chars().count();
    let widths: Vec<usize> =
        (0..columns).map(|at| lines.iter().filter_map(|line| line.get(at)).map(width).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        let cell = |(at, cell): (usize, &String)| {
            let space = " ".repeat(widths[at] - width(cell));
            if at < NAMES { format!("{cell}{space}") } else { format!("{space}{cell}") }
        };
        let line = line.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ");
        text += line.trim_end();
        text.push('\n');
    }
    text
}
