//! Nodes, and how they are drawn.

use crate::show::wrap::{Piece, pieces, shown, wrap};
use crate::show::{Marks, width};

/// A line, what belongs to it, and what is below it.
#[derive(Debug, Default)]
pub(super) struct TreeNode {
    pub(super) title: String,
    /// Lines between the title and the children.
    pub(super) details: Vec<String>,
    pub(super) children: Vec<TreeNode>,
    /// Lines behind the children.
    pub(super) tail: Vec<String>,
}

impl TreeNode {
    pub(super) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    pub(super) fn with(mut self, details: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(details);
        self
    }
}

/// A node and everything below it, no wider than so many columns if there is such a limit.
pub(super) fn lines(root: &TreeNode, marks: &Marks, columns: Option<usize>) -> Vec<String> {
    let mut drawing = Drawing { marks, columns, out: Vec::new() };
    drawing.put("", "", &root.title);
    drawing.below(root, "");
    drawing.out
}

struct Drawing<'a> {
    marks: &'a Marks,
    columns: Option<usize>,
    out: Vec<String>,
}

impl Drawing<'_> {
    /// One line, or as many as it takes, with what stands before the first and before the others.
    fn put(&mut self, first: &str, rest: &str, text: &str) {
        let before = width(first).max(width(rest));
        let room = self.columns.map_or(usize::MAX, |columns| columns.saturating_sub(before).max(LEAST));
        for (number, line) in folded(text, room).into_iter().enumerate() {
            let before = if number == 0 { first } else { rest };
            self.out.push(format!("{before}{line}").trim_end().to_owned());
        }
    }

    fn below(&mut self, node: &TreeNode, indent: &str) {
        let beside = if node.children.is_empty() { "   " } else { self.marks.beside };
        let before = format!("{indent}{beside}");
        for line in node.details.iter().flat_map(|detail| detail.lines()) {
            self.put(&before, &before, line);
        }
        for (index, child) in node.children.iter().enumerate() {
            let last = index + 1 == node.children.len();
            let (branch, under) = if last { (self.marks.last, "   ") } else { (self.marks.branch, self.marks.beside) };
            let below = format!("{indent}{under}");
            // What a title goes on with stands beside what is below it.
            let beside = if child.children.is_empty() { "   " } else { self.marks.beside };
            let mut title = child.title.lines();
            self.put(&format!("{indent}{branch} "), &format!("{below}{beside}"), title.next().unwrap_or_default());
            for more in title {
                self.put(&below, &below, more);
            }
            self.below(child, &below);
        }
        for line in node.tail.iter().flat_map(|text| text.lines()) {
            self.put(indent, indent, line);
        }
    }
}

/// However deep it is, a text gets so many columns.
const LEAST: usize = 24;

/// Where texts begin behind their labels.
pub(super) const LABEL: usize = 11;

/// A line that is too long goes on below its text. Where a choice comes from has a line of its own then.
fn folded(line: &str, room: usize) -> Vec<String> {
    let shown = |text: &str| width(&anstream::adapter::strip_str(text).to_string());
    if shown(line) <= room {
        return vec![line.to_owned()];
    }
    let plain = anstream::adapter::strip_str(line).to_string();
    let has_label = plain.chars().nth(LABEL - 1) == Some(' ') && plain.chars().nth(LABEL).is_some_and(|c| c != ' ');
    let hang = if has_label && room >= 2 * LABEL { LABEL } else { 2 };
    let before = " ".repeat(hang);
    let (first, origin) = match line.rsplit_once("   ").filter(|(set, _)| shown(set.trim_end()) > LABEL) {
        Some((set, origin)) => (set, Some(origin)),
        None => (line, None),
    };
    let wrapped = |text: &str, number: usize| -> Vec<String> {
        let cut = wrap(&pieces(text), room.saturating_sub(hang));
        cut.into_iter()
            .enumerate()
            .map(|(place, line)| if place + number == 0 { line } else { format!("{before}{line}") })
            .collect()
    };
    // The label and its column stay; what is behind them is wrapped.
    let mut lines = if hang == LABEL {
        let (label, text) = split_at_column(first, LABEL);
        let mut lines = wrapped(&text, 1);
        if let Some(line) = lines.first_mut() {
            *line = format!("{label}{}", &line[hang..]);
        }
        lines
    } else {
        wrapped(first, 0)
    };
    lines.extend(origin.into_iter().flat_map(|origin| wrapped(origin, 1)));
    lines
}

/// What takes the first columns, and the rest with its colours.
fn split_at_column(line: &str, columns: usize) -> (String, String) {
    let (mut label, mut text, mut taken) = (String::new(), String::new(), 0);
    for piece in pieces(line) {
        let place = piece.text.char_indices().find(|(place, _)| taken + width(&piece.text[..*place]) >= columns);
        let place = place.map_or(piece.text.len(), |(place, _)| place);
        let (left, right) = piece.text.split_at(place);
        taken += width(left);
        for (part, whole) in [(left, &mut label), (right, &mut text)] {
            if !part.is_empty() {
                whole.push_str(&shown(&Piece { text: part.to_owned(), look: piece.look.clone() }));
            }
        }
    }
    (label, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_end_where_the_last_child_is() {
        let step = |title: &str| TreeNode::new(title).with(["why\nand how".to_owned()]);
        let inner =
            TreeNode { children: vec![step("a"), step("b")], ..TreeNode::new("agent").with(["goal".to_owned()]) };
        let root = TreeNode {
            children: vec![inner, TreeNode::new("end\nat last")],
            tail: vec!["total".into()],
            ..TreeNode::new("root")
        };
        let drawn = lines(&root, Marks::of(/* ascii */ true), None).join("\n");
        let expected = "\
root
|- agent
|  |  goal
|  |- a
|  |     why
|  |     and how
|  `- b
|        why
|        and how
`- end
   at last
total";
        assert_eq!(drawn, expected);
    }

    #[test]
    fn a_line_that_is_too_long_goes_on_below_its_text() {
        let child = TreeNode::new("1 a title that is long enough").with([
            "pattern    (x) react ( ) supervisor   by model, from pattern v1".to_owned(),
            "why        because it is so and not so".to_owned(),
        ]);
        let root = TreeNode { children: vec![child], ..TreeNode::new("root") };
        let drawn = lines(&root, Marks::of(/* ascii */ true), Some(38)).join("\n");
        let expected = "\
root
`- 1 a title that is long enough
      pattern    (x) react ( )
                 supervisor
                 by model, from
                 pattern v1
      why        because it is so and
                 not so";
        assert_eq!(drawn, expected);
        assert!(drawn.lines().all(|line| width(line) <= 38));
    }
}
