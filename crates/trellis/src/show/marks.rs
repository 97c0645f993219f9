//! The marks in front of lines.

/// A word follows each mark, so that none has to be understood.
#[derive(Debug)]
pub(crate) struct Marks {
    /// A choice out of a set.
    pub(crate) choice: &'static str,
    /// Several things that begin together: a plan, a fan-out.
    pub(crate) many: &'static str,
    pub(crate) thought: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) good: &'static str,
    pub(crate) bad: &'static str,
    /// Something is missing, and the work goes on without it.
    pub(crate) partly: &'static str,
    pub(crate) between: &'static str,
    pub(crate) branch: &'static str,
    pub(crate) last: &'static str,
    pub(crate) beside: &'static str,
    pub(crate) chosen: &'static str,
    pub(crate) offered: &'static str,
}

impl Marks {
    pub(crate) const fn of(ascii: bool) -> &'static Self {
        const SYMBOLS: Marks = Marks {
            choice: "◆",
            many: "≡",
            thought: "·",
            tool: "→",
            good: "✓",
            bad: "✕",
            partly: "!",
            between: " · ",
            branch: "├─",
            last: "└─",
            beside: "│  ",
            chosen: "●",
            offered: "○",
        };
        const PLAIN: Marks = Marks {
            choice: "*",
            many: "=",
            thought: "-",
            tool: ">",
            good: "+",
            bad: "x",
            partly: "!",
            between: " - ",
            branch: "|-",
            last: "`-",
            beside: "|  ",
            chosen: "(x)",
            offered: "( )",
        };
        if ascii { &PLAIN } else { &SYMBOLS }
    }
}
