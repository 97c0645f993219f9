//! Everybody who is or was at work in a run, one line each: what they do, for how long, and what it took.

use super::cast::{Label, name_columns};
use crate::show::live::Room;
use crate::show::{Marks, excerpt, grouped, one_line, padded, seconds, width};
use owo_colors::OwoColorize;
use trellis_domain::Timestamp;

/// Below so many columns, tokens are left out and an agent goes by its number.
const SLIM: usize = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Waits,
    Works,
    Good,
    Partly,
    Bad,
}

#[derive(Debug)]
struct Member {
    label: Label,
    doing: String,
    standing: Standing,
    began: Option<Timestamp>,
    ended: Option<Timestamp>,
    tokens: u64,
}

/// The root first, then agents and plan steps, each below the agent that they belong to.
#[derive(Debug)]
pub(super) struct Team {
    members: Vec<Member>,
}

impl Default for Team {
    fn default() -> Self {
        Self { members: vec![Member::new(Label::default())] }
    }
}

impl Member {
    fn new(label: Label) -> Self {
        Self { label, doing: String::new(), standing: Standing::Waits, began: None, ended: None, tokens: 0 }
    }

    fn ms(&self, now: Timestamp) -> Option<u64> {
        Some(self.ended.unwrap_or(now).ms_since(self.began?))
    }
}

impl Team {
    /// Somebody who will be at work.
    pub(super) fn add(&mut self, label: &Label) {
        if self.members.iter().any(|member| member.label == *label) {
            return;
        }
        let behind = |member: &Member| member.label.is_root() || label.is_below(&member.label);
        // Behind the nearest one above it and everybody who is below that one.
        let above = self.members.iter().rposition(behind).unwrap_or(0);
        let head = self.members[above].label.clone();
        let below = |member: &&Member| head.is_root() || member.label.is_below(&head);
        let count = self.members[above + 1..].iter().take_while(below).count();
        self.members.insert(above + 1 + count, Member::new(label.clone()));
    }

    pub(super) fn works(&mut self, who: &Label, what: &str, now: Timestamp) {
        self.add(who);
        if let Some(member) = self.member(who) {
            what.clone_into(&mut member.doing);
            member.standing = Standing::Works;
            member.began.get_or_insert(now);
            member.ended = None;
        }
    }

    pub(super) fn ends(&mut self, who: &Label, standing: Standing, now: Timestamp) {
        if let Some(member) = self.member(who) {
            member.standing = standing;
            member.ended = Some(now);
            member.doing.clear();
        }
    }

    pub(super) fn spends(&mut self, who: &Label, tokens: u64) {
        if let Some(member) = self.member(who) {
            member.tokens += tokens;
        }
    }

    fn member(&mut self, who: &Label) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.label == *who)
    }

    /// No line is wider than the room, and there are no more of them than fit.
    pub(super) fn lines(&self, now: Timestamp, room: Room, marks: &Marks, turn: &str, hint: &str) -> Vec<String> {
        let (first, others) = self.members.split_first().expect("the root is always there");
        // The last column stays empty: a terminal may go on to the next row when it is written.
        let columns = room.columns.saturating_sub(1);
        let places = room.rows.saturating_sub(1);
        let shown = chosen(others, places);
        let mut lines: Vec<_> = shown.iter().map(|member| line(member, now, columns, marks, turn)).collect();
        if shown.len() < others.len() && places > 0 {
            let hidden = others.iter().filter(|member| !shown.iter().any(|one| std::ptr::eq(*one, *member)));
            let (working, rest): (Vec<_>, Vec<_>) = hidden.partition(|member| member.standing == Standing::Works);
            let text = format!("  … {} more: {} at work", working.len() + rest.len(), working.len());
            let text = text.replace('…', if marks.many == "=" { "..." } else { "…" });
            lines.push(excerpt_of(&text, columns).dimmed().to_string());
        }
        let working = others.iter().filter(|member| member.standing == Standing::Works).count();
        let doing = match working {
            0 if first.doing.is_empty() => "at work".to_owned(),
            0 => first.doing.clone(),
            1 => "1 at work".to_owned(),
            several => format!("{several} at work"),
        };
        let tokens: u64 = self.members.iter().map(|member| member.tokens).sum();
        let since = self.members.iter().filter_map(|member| member.began).min();
        let parts = [
            since.map(|since| seconds(now.ms_since(since))),
            (tokens > 0).then(|| format!("{} tok", grouped(tokens))),
            Some(hint.to_owned()),
        ];
        let behind = parts.into_iter().flatten().collect::<Vec<_>>().join(marks.between);
        let left = columns.saturating_sub(width(turn) + 1 + width(marks.between) + width(&behind));
        let doing = if left < 8 { String::new() } else { excerpt(&doing, left) + marks.between };
        lines.push(excerpt_of(&format!("{turn} {doing}{behind}"), columns));
        lines
    }
}

/// Those who are at work come first, then those who are done; in the order in which they stand.
fn chosen(others: &[Member], places: usize) -> Vec<&Member> {
    if others.len() <= places {
        return others.iter().collect();
    }
    // One line says how many are not shown.
    let places = places.saturating_sub(1);
    let mut wanted: Vec<_> = others.iter().enumerate().collect();
    wanted.sort_by_key(|(place, member)| (member.standing != Standing::Works, *place));
    wanted.truncate(places);
    wanted.sort_by_key(|(place, _)| *place);
    wanted.into_iter().map(|(_, member)| member).collect()
}

fn line(member: &Member, now: Timestamp, columns: usize, marks: &Marks, turn: &str) -> String {
    let indent = "  ".repeat(member.label.depth());
    let mark = match member.standing {
        Standing::Waits => marks.thought,
        Standing::Works => turn,
        Standing::Good => marks.good,
        Standing::Partly => marks.partly,
        Standing::Bad => marks.bad,
    };
    let name = member.label.within(name_columns(columns));
    let took = member.ms(now).map(seconds).unwrap_or_default();
    let tokens =
        if member.tokens > 0 && columns >= SLIM { format!("{} tok", grouped(member.tokens)) } else { String::new() };
    let behind = if columns >= SLIM { format!("{took:>8} {tokens:>12}") } else { format!("{took:>8}") };
    let before = format!("{indent}{mark} {name} ");
    let left = columns.saturating_sub(width(&before) + width(&behind) + 1);
    let doing = match member.standing {
        Standing::Waits => "has not begun".to_owned(),
        Standing::Works => one_line(&member.doing),
        Standing::Good => "done".to_owned(),
        Standing::Partly => "done in part".to_owned(),
        Standing::Bad => "failed".to_owned(),
    };
    let text = format!("{before}{} {behind}", padded(&excerpt(&doing, left), left));
    let text = excerpt_of(&text, columns);
    match member.standing {
        Standing::Works => text.replacen(turn, &turn.cyan().to_string(), 1),
        Standing::Bad => text.replacen(mark, &mark.red().to_string(), 1),
        Standing::Partly => text.replacen(mark, &mark.yellow().to_string(), 1),
        Standing::Good => text.replacen(mark, &mark.green().to_string(), 1),
        Standing::Waits => text,
    }
}

/// At most so many columns; spaces stay as they are.
fn excerpt_of(line: &str, columns: usize) -> String {
    crate::show::cut(line.trim_end().to_owned(), columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(number: &str, name: &str) -> Label {
        Label { number: number.to_owned(), name: name.to_owned() }
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_micros(ms * 1000)
    }

    fn drawn(team: &Team, columns: usize, rows: usize) -> Vec<String> {
        let lines = team.lines(at(4_100), Room { columns, rows }, Marks::of(/* ascii */ false), "⠋", "Ctrl-C stops");
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn everybody_has_a_line_below_whom_they_belong_to() {
        let mut team = Team::default();
        team.works(&Label::default(), "thinking", at(0));
        assert_eq!(drawn(&team, 60, 20), ["⠋ thinking · 4.1 s · Ctrl-C stops"]);
        for (number, name) in [("#0", "Finances"), ("#1", "東京の天気を調べて"), ("#0.1", "Debts"), ("#0.0", "Cash")]
        {
            team.add(&label(number, name));
        }
        team.works(&label("#0.1", "Debts"), "financial-data(\"x\")", at(2_000));
        team.spends(&label("#0.1", "Debts"), 1_234);
        team.works(&label("#1", "東京の天気を調べて"), "thinking", at(100));
        team.ends(&label("#1", "東京の天気を調べて"), Standing::Bad, at(600));
        let lines = drawn(&team, 100, 20);
        assert!(lines.iter().all(|line| width(line) < 100), "{lines:#?}");
        assert!(lines[0].starts_with("· #0 Finances                 has not begun"), "{lines:#?}");
        assert!(lines[1].starts_with("  ⠋ #0.1 Debts                  financial-data(\"x\")"), "{lines:#?}");
        assert!(lines[1].ends_with("2.1 s    1,234 tok"), "{lines:#?}");
        assert!(lines[2].starts_with("  · #0.0 Cash"), "{lines:#?}");
        assert!(lines[3].starts_with("✕ #1 東京の天気を調べて") && lines[3].ends_with("500 ms"), "{lines:#?}");
        assert_eq!(lines[4], "⠋ 1 at work · 4.1 s · 1,234 tok · Ctrl-C stops");
        let narrow = drawn(&team, 40, 20);
        assert!(narrow.iter().all(|line| width(line) < 40), "{narrow:#?}");
        assert!(narrow[1].starts_with("  ⠋ #0.1 financial") && narrow[1].ends_with("2.1 s"), "{narrow:#?}");
        let usual = drawn(&team, 80, 20);
        assert!(usual.iter().all(|line| width(line) < 80), "{usual:#?}");
        assert!(usual[1].starts_with("  ⠋ #0.1 Debts         financial-data(\"x\")"), "{usual:#?}");
    }

    #[test]
    fn what_does_not_fit_is_folded_and_those_at_work_stay() {
        let mut team = Team::default();
        for number in 0..20 {
            let who = label(&format!("#{number}"), "Look");
            team.works(&who, "thinking", at(0));
            if number < 18 {
                team.ends(&who, Standing::Good, at(10));
            }
        }
        let lines = drawn(&team, 80, 5);
        assert_eq!(lines.len(), 5);
        assert!(lines[0].starts_with("✓ #0 ") && lines[1].starts_with("⠋ #18 ") && lines[2].starts_with("⠋ #19 "));
        assert_eq!(lines[3], "  … 17 more: 0 at work");
        assert_eq!(drawn(&team, 80, 1).len(), 1);
    }
}
