//! Nodes, and how they are drawn.

use crate::show::Marks;

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

/// A node and everything below it.
pub(super) fn lines(root: &TreeNode, marks: &Marks) -> Vec<String> {
    let mut out = vec![root.title.clone()];
    below(root, "", marks, &mut out);
    out
}

fn below(node: &TreeNode, indent: &str, marks: &Marks, out: &mut Vec<String>) {
    let more = |text: &String, beside: &str, out: &mut Vec<String>| {
        out.extend(text.lines().map(|part| format!("{indent}{beside}{part}").trim_end().to_owned()));
    };
    let beside = if node.children.is_empty() { "   " } else { marks.beside };
    for detail in &node.details {
        more(detail, beside, out);
    }
    for (index, child) in node.children.iter().enumerate() {
        let last = index + 1 == node.children.len();
        let (branch, under) = if last { (marks.last, "   ") } else { (marks.branch, marks.beside) };
        let mut title = child.title.lines();
        out.push(format!("{indent}{branch} {}", title.next().unwrap_or_default()).trim_end().to_owned());
        out.extend(title.map(|more| format!("{indent}{under}{more}").trim_end().to_owned()));
        below(child, &format!("{indent}{under}"), marks, out);
    }
    for text in &node.tail {
        more(text, "", out);
    }
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
        let drawn = lines(&root, Marks::of(/* ascii */ true)).join("\n");
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
}
