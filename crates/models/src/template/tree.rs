//! A template that was read. Chains of operators, filters and branches are lists, so a tree is no deeper than its text
//! is nested.

use super::fault::Outcome;
use super::parser;

/// A whole template.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) body: Vec<Statement>,
    /// How many parts it has, as a measure of its size.
    pub(super) parts: usize,
}

impl Tree {
    pub(super) fn of(text: &str) -> Outcome<Self> {
        parser::parse(text)
    }
}

#[derive(Debug)]
pub(super) struct Statement {
    pub(super) line: usize,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Text(Box<str>),
    Print(Expr),
    If { branches: Vec<(Expr, Vec<Statement>)>, otherwise: Vec<Statement> },
    For(Box<For>),
    Set { target: Target, value: Expr },
    SetBlock { target: Target, filters: Vec<Suffix>, body: Vec<Statement> },
    With { bindings: Vec<(Target, Expr)>, body: Vec<Statement> },
    Filter { filters: Vec<Suffix>, body: Vec<Statement> },
    Macro(Macro),
    Do(Expr),
}

#[derive(Debug)]
pub(super) struct For {
    pub(super) target: Target,
    pub(super) over: Expr,
    pub(super) only_if: Option<Expr>,
    pub(super) body: Vec<Statement>,
    pub(super) otherwise: Vec<Statement>,
}

#[derive(Debug)]
pub(super) struct Macro {
    pub(super) name: Box<str>,
    pub(super) parameters: Vec<(Box<str>, Option<Expr>)>,
    pub(super) body: Vec<Statement>,
}

/// Where a value goes.
#[derive(Debug)]
pub(super) enum Target {
    Name(Box<str>),
    Member { space: Box<str>, name: Box<str> },
    Each(Vec<Target>),
}

#[derive(Debug)]
pub(super) enum Expr {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Box<str>),
    Name(Box<str>),
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    /// The first that is true, or the last.
    Or(Vec<Expr>),
    And(Vec<Expr>),
    /// From left to right.
    Arithmetic(Box<Expr>, Vec<(Operator, Expr)>),
    /// `a < b < c` means both.
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    Choice {
        condition: Box<Expr>,
        then: Box<Expr>,
        otherwise: Option<Box<Expr>>,
    },
    Suffixed(Box<Expr>, Vec<Suffix>),
}

#[derive(Debug)]
pub(super) enum Suffix {
    Member(Box<str>),
    Item(Expr),
    Slice([Option<Expr>; 3]),
    Call(Arguments),
    Filter { line: usize, name: Box<str>, arguments: Arguments },
    Test { line: usize, name: Box<str>, arguments: Arguments, negated: bool },
}

#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) placed: Vec<Expr>,
    pub(super) named: Vec<(Box<str>, Expr)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Join,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}
