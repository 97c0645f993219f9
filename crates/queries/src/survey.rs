//! A look at a parsed query before it is planned.
//!
//! Finds what is refused, even where evaluation would never come to it, and what would take the
//! planner too long: its time grows with the cube of the patterns, and it cannot be cancelled.

use crate::query::QueryError;
use spargebra::Query;
use spargebra::algebra::{AggregateExpression, Expression, GraphPattern, OrderExpression};
use spargebra::term::NamedNodePattern;

pub(crate) const MAX_DEPTH: usize = 200;
pub(crate) const MAX_PATTERNS: usize = 200;

#[derive(Debug, Default)]
pub(crate) struct Survey {
    depth: usize,
    patterns: usize,
}

impl Survey {
    pub(crate) fn check(query: &Query) -> Result<(), QueryError> {
        let (Query::Select { pattern, .. }
        | Query::Construct { pattern, .. }
        | Query::Describe { pattern, .. }
        | Query::Ask { pattern, .. }) = query;
        Self::default().pattern(pattern)
    }

    fn pattern(&mut self, pattern: &GraphPattern) -> Result<(), QueryError> {
        self.deeper(|survey| survey.inside_pattern(pattern))
    }

    fn inside_pattern(&mut self, pattern: &GraphPattern) -> Result<(), QueryError> {
        match pattern {
            GraphPattern::Bgp { patterns } => self.count(patterns.len()),
            GraphPattern::Values { .. } | GraphPattern::Path { .. } => self.count(1),
            GraphPattern::Join { left, right }
            | GraphPattern::Lateral { left, right }
            | GraphPattern::Union { left, right }
            | GraphPattern::Minus { left, right } => self.pattern(left).and_then(|()| self.pattern(right)),
            GraphPattern::LeftJoin { left, right, expression } => {
                self.pattern(left)?;
                self.pattern(right)?;
                self.expressions(expression)
            }
            GraphPattern::Filter { expr, inner } => self.pattern(inner).and_then(|()| self.expression(expr)),
            GraphPattern::Extend { inner, expression, .. } => {
                self.count(1)?;
                self.pattern(inner)?;
                self.expression(expression)
            }
            GraphPattern::OrderBy { inner, expression } => {
                self.pattern(inner)?;
                self.expressions(expression.iter().map(|(OrderExpression::Asc(by) | OrderExpression::Desc(by))| by))
            }
            GraphPattern::Group { inner, aggregates, .. } => {
                self.pattern(inner)?;
                self.expressions(aggregates.iter().filter_map(|(_, aggregate)| aggregated(aggregate)))
            }
            GraphPattern::Graph { inner, .. }
            | GraphPattern::Project { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::Slice { inner, .. } => self.pattern(inner),
            GraphPattern::Service { name, .. } => Err(QueryError::ServiceRefused { service: service_name(name) }),
        }
    }

    fn expression(&mut self, expression: &Expression) -> Result<(), QueryError> {
        self.deeper(|survey| survey.inside_expression(expression))
    }

    fn inside_expression(&mut self, expression: &Expression) -> Result<(), QueryError> {
        match expression {
            Expression::NamedNode(_) | Expression::Literal(_) | Expression::Variable(_) | Expression::Bound(_) => {
                Ok(())
            }
            Expression::Exists(pattern) => self.pattern(pattern),
            Expression::Or(a, b)
            | Expression::And(a, b)
            | Expression::Equal(a, b)
            | Expression::SameTerm(a, b)
            | Expression::Greater(a, b)
            | Expression::GreaterOrEqual(a, b)
            | Expression::Less(a, b)
            | Expression::LessOrEqual(a, b)
            | Expression::Add(a, b)
            | Expression::Subtract(a, b)
            | Expression::Multiply(a, b)
            | Expression::Divide(a, b) => self.expressions([a.as_ref(), b.as_ref()]),
            Expression::UnaryPlus(a) | Expression::UnaryMinus(a) | Expression::Not(a) => self.expression(a),
            Expression::If(a, b, c) => self.expressions([a.as_ref(), b.as_ref(), c.as_ref()]),
            Expression::In(a, list) => self.expression(a).and_then(|()| self.expressions(list)),
            Expression::Coalesce(list) | Expression::FunctionCall(_, list) => self.expressions(list),
        }
    }

    fn expressions<'a>(&mut self, expressions: impl IntoIterator<Item = &'a Expression>) -> Result<(), QueryError> {
        expressions.into_iter().try_for_each(|expression| self.expression(expression))
    }

    fn count(&mut self, patterns: usize) -> Result<(), QueryError> {
        self.patterns += patterns;
        if self.patterns > MAX_PATTERNS {
            return Err(QueryError::TooComplex { what: "patterns", max: MAX_PATTERNS });
        }
        Ok(())
    }

    fn deeper(&mut self, look: impl FnOnce(&mut Self) -> Result<(), QueryError>) -> Result<(), QueryError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(QueryError::TooComplex { what: "levels of nesting", max: MAX_DEPTH });
        }
        look(self)?;
        self.depth -= 1;
        Ok(())
    }
}

fn aggregated(aggregate: &AggregateExpression) -> Option<&Expression> {
    match aggregate {
        AggregateExpression::CountSolutions { .. } => None,
        AggregateExpression::FunctionCall { expr, .. } => Some(expr),
    }
}

fn service_name(name: &NamedNodePattern) -> String {
    name.to_string()
}
