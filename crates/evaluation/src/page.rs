//! A report as one page that needs nothing else: no scripts, no fonts, no pictures.

use crate::outcome::Outcome;
use crate::report::Report;
use crate::table::{UNKNOWN, paid, shown};
use crate::trial::Trial;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:80rem;padding:0 1rem;\
color:#1d2a24;background:#fbfcfa}table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{text-align:left;\
padding:.35rem .6rem;border-bottom:1px solid #d5ddd6;vertical-align:top}th{font-weight:600}.scroll{overflow-x:auto}\
.wrong{background:#fbeceb}details{margin:.3rem 0}pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0}\
@media(prefers-color-scheme:dark){body{color:#e4ece6;background:#141a17}th,td{border-color:#33403a}.wrong{background:#3a2322}}";

impl Report {
    /// One HTML page with the table and every trial. What models wrote is shown as text, whatever it contains.
    pub fn to_page(&self) -> String {
        let title = format!("Evaluation: {}", escaped(&self.suite));
        let columns = shown(&self.rows);
        let heads =
            columns.iter().map(|column| format!("<th title=\"{}\">{}</th>", escaped(column.meaning), column.title));
        let heads = heads.collect::<String>();
        let rows = self.rows.iter().map(|row| {
            let values = columns.iter().map(|column| cell(&(column.value)(row).unwrap_or_else(|| "–".to_owned())));
            let names = [&row.model, &row.pattern, &row.trials.to_string()].map(|text| cell(text)).concat();
            format!("<tr>{names}{}</tr>\n", values.collect::<String>())
        });
        let rows = rows.collect::<String>();
        let meanings =
            columns.iter().map(|column| format!("<li><b>{}</b>: {}</li>", column.title, escaped(column.meaning)));
        let meanings = meanings.collect::<String>();
        let trials = self.rows.iter().map(|row| {
            let summary = format!("{} / {}", escaped(&row.model), escaped(&row.pattern));
            let trials = self.trials_of(row).map(trial_row).collect::<String>();
            let head = "<th>item</th><th>verdict</th><th>answer</th><th>chosen</th><th>tokens</th><th>cost</th>\
                        <th>calls</th><th>ms</th>";
            format!("<details><summary>{summary}</summary><div class=\"scroll\"><table><tr>{head}</tr>\n{trials}</table></div></details>\n")
        });
        let trials = trials.collect::<String>();
        let recorded = "<p>No model was asked: recorded replies gave the answers. Times are not measured.</p>\n";
        let recorded = if self.replayed { recorded } else { "" };
        let missed: Vec<_> = self.not_covered().map(|line| format!("<li>{}</li>", escaped(&line))).collect();
        let missed = missed.concat();
        let missed = if missed.is_empty() { missed } else { format!("<h2>Not covered</h2>\n<ul>{missed}</ul>\n") };
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style></head>\n\
             <body><h1>{title}</h1>\n{recorded}<div class=\"scroll\"><table><tr><th>model</th><th>pattern</th><th>n</th>{heads}</tr>\n\
             {rows}</table></div>\n<details><summary>What the columns mean</summary><ul>{meanings}</ul></details>\n\
             {missed}<h2>Trials</h2>\n{trials}</body></html>\n"
        )
    }
}

fn trial_row(trial: &Trial) -> String {
    let outcome = &trial.outcome;
    let verdict = match (trial.is_right(), &trial.not_covered) {
        (_, Some(lacks)) => format!("not covered: {lacks}"),
        (None, None) => "not judged".to_owned(),
        (Some(true), None) => "right".to_owned(),
        (Some(false), None) => trial.why.as_ref().map_or_else(|| "wrong".to_owned(), |why| format!("wrong: {why}")),
    };
    let answer = outcome.answer.as_ref().or(outcome.error.as_ref()).map_or("–", String::as_str);
    let chosen = [&outcome.task_type, &outcome.pattern].into_iter().flatten();
    let chosen = chosen.map(|choice| format!("{} ({})", choice.name, choice.decided_by)).collect::<Vec<_>>().join(", ");
    let tokens = outcome.tokens().map_or_else(|| "–".to_owned(), |tokens| tokens.to_string());
    let item = format!("{} #{}", trial.item, trial.key.repeat);
    let class = if trial.is_right() == Some(false) { " class=\"wrong\"" } else { "" };
    let ms = outcome.ms.map_or_else(|| "–".to_owned(), |ms| ms.to_string());
    let figures = [tokens, cost_of(outcome), outcome.model_calls.to_string(), ms].map(|text| cell(&text)).concat();
    let answer = format!("<td><pre>{}</pre></td>", escaped(answer));
    format!("<tr{class}>{}{}{answer}{}{figures}</tr>\n", cell(&item), cell(&verdict), cell(&chosen))
}

fn cost_of(outcome: &Outcome) -> String {
    match outcome.cost_micros {
        Some(micros) => paid(micros),
        None if outcome.model_calls > 0 => UNKNOWN.to_owned(),
        None => "–".to_owned(),
    }
}

fn cell(text: &str) -> String {
    format!("<td>{}</td>", escaped(text))
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
