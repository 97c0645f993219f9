//! From words to expressions.

use super::fault::Outcome;
use super::lexer::Token;
use super::parser::Parser;
use super::tree::{Arguments, Comparison, Expr, Operator, Suffix};

/// Left to right, the weakest first.
const LEVELS: [&[(&str, Operator)]; 4] = [
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("~", Operator::Join)],
    &[("*", Operator::Multiply), ("/", Operator::Divide), ("//", Operator::FloorDivide), ("%", Operator::Remainder)],
    &[("**", Operator::Power)],
];

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// Names that go on with the expression around a test instead of being its argument.
const AFTER_TEST: [&str; 7] = ["and", "or", "not", "is", "if", "else", "in"];

impl Parser<'_, '_> {
    /// `then if condition else otherwise`, or anything simpler.
    pub(super) fn expression(&mut self) -> Outcome<Expr> {
        self.nested(|parser| {
            let then = parser.without_choice()?;
            if !parser.skip_name("if") {
                return Ok(then);
            }
            let condition = Box::new(parser.without_choice()?);
            let otherwise = if parser.skip_name("else") { Some(Box::new(parser.expression()?)) } else { None };
            Ok(Expr::Choice { condition, then: Box::new(then), otherwise })
        })
    }

    pub(super) fn without_choice(&mut self) -> Outcome<Expr> {
        let mut all = vec![self.all_of()?];
        while self.skip_name("or") {
            all.push(self.all_of()?);
        }
        Ok(one_or(all, Expr::Or))
    }

    fn all_of(&mut self) -> Outcome<Expr> {
        let mut all = vec![self.negated()?];
        while self.skip_name("and") {
            all.push(self.negated()?);
        }
        Ok(one_or(all, Expr::And))
    }

    fn negated(&mut self) -> Outcome<Expr> {
        if self.skip_name("not") {
            let value = self.nested(Self::negated)?;
            return Ok(Expr::Not(Box::new(value)));
        }
        let first = self.arithmetic(0)?;
        let mut rest = Vec::new();
        while let Some(comparison) = self.comparison() {
            rest.push((comparison, self.arithmetic(0)?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Compare(Box::new(first), rest) })
    }

    fn comparison(&mut self) -> Option<Comparison> {
        if self.skip_name("in") {
            return Some(Comparison::In);
        }
        if matches!(self.peek(), Some(Token::Name("not"))) {
            self.next();
            if self.skip_name("in") {
                return Some(Comparison::NotIn);
            }
            self.back();
            return None;
        }
        COMPARISONS.iter().find(|(sign, _)| self.skip(sign)).map(|(_, comparison)| *comparison)
    }

    fn arithmetic(&mut self, level: usize) -> Outcome<Expr> {
        let Some(operators) = LEVELS.get(level) else { return self.signed() };
        let first = self.arithmetic(level + 1)?;
        let mut rest = Vec::new();
        while let Some((_, operator)) = operators.iter().find(|(sign, _)| self.skip(sign)) {
            rest.push((*operator, self.arithmetic(level + 1)?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Arithmetic(Box::new(first), rest) })
    }

    /// A value with everything behind it; filters count for the sign in front of it, too.
    fn signed(&mut self) -> Outcome<Expr> {
        let value = self.unfiltered()?;
        let mut suffixes = Vec::new();
        loop {
            let line = self.line();
            if self.skip("|") {
                suffixes.push(self.filter()?);
            } else if self.skip_name("is") {
                let negated = self.skip_name("not");
                let name = self.name()?.into();
                suffixes.push(Suffix::Test { line, name, arguments: self.arguments_of_test()?, negated });
            } else if let Some(suffix) = self.member()? {
                suffixes.push(suffix);
            } else {
                return Ok(if suffixes.is_empty() { value } else { Expr::Suffixed(Box::new(value), suffixes) });
            }
        }
    }

    fn unfiltered(&mut self) -> Outcome<Expr> {
        if self.skip("-") {
            return Ok(Expr::Negative(Box::new(self.nested(Self::unfiltered)?)));
        }
        if self.skip("+") {
            return self.nested(Self::unfiltered);
        }
        let value = self.primary()?;
        let mut suffixes = Vec::new();
        while let Some(suffix) = self.member()? {
            suffixes.push(suffix);
        }
        Ok(if suffixes.is_empty() { value } else { Expr::Suffixed(Box::new(value), suffixes) })
    }

    /// `.name`, `[index]`, `[from:to]` or a call.
    fn member(&mut self) -> Outcome<Option<Suffix>> {
        if self.skip(".") {
            if let Some(Token::Int(index)) = self.peek() {
                self.next();
                return Ok(Some(Suffix::Item(Expr::Int(*index))));
            }
            return Ok(Some(Suffix::Member(self.name()?.into())));
        }
        if self.skip("[") {
            return self.nested(Self::subscript).map(Some);
        }
        if self.peek() == Some(&Token::Sign("(")) {
            return Ok(Some(Suffix::Call(self.arguments()?)));
        }
        Ok(None)
    }

    fn subscript(&mut self) -> Outcome<Suffix> {
        let mut parts = [None, None, None];
        let mut is_slice = false;
        for part in &mut parts {
            if !matches!(self.peek(), Some(Token::Sign(":" | "]"))) {
                *part = Some(self.expression()?);
            }
            if !self.skip(":") {
                break;
            }
            is_slice = true;
        }
        self.expect(&Token::Sign("]"), "]")?;
        if is_slice {
            return Ok(Suffix::Slice(parts));
        }
        let [index, ..] = parts;
        index.map(Suffix::Item).ok_or_else(|| self.wrong("there is nothing between [ and ]"))
    }

    pub(super) fn filter(&mut self) -> Outcome<Suffix> {
        let line = self.line();
        let name = self.name()?.into();
        let has_arguments = self.peek() == Some(&Token::Sign("("));
        let arguments = if has_arguments { self.arguments()? } else { Arguments::default() };
        Ok(Suffix::Filter { line, name, arguments })
    }

    /// In brackets, or one value without.
    fn arguments_of_test(&mut self) -> Outcome<Arguments> {
        match self.peek() {
            Some(Token::Sign("(")) => self.arguments(),
            Some(Token::Name(name)) if AFTER_TEST.contains(name) => Ok(Arguments::default()),
            Some(
                Token::Name(_) | Token::Quoted(_) | Token::Int(_) | Token::Float(_) | Token::Sign("[" | "{" | "-"),
            ) => Ok(Arguments { placed: vec![self.unfiltered()?], named: Vec::new() }),
            _ => Ok(Arguments::default()),
        }
    }

    fn arguments(&mut self) -> Outcome<Arguments> {
        self.expect(&Token::Sign("("), "(")?;
        let mut arguments = Arguments::default();
        let mut is_first = true;
        while !self.skip(")") {
            if !std::mem::take(&mut is_first) {
                self.expect(&Token::Sign(","), "a comma or )")?;
                if self.skip(")") {
                    break;
                }
            }
            let value = self.expression()?;
            match value {
                Expr::Name(name) if self.skip("=") => arguments.named.push((name, self.expression()?)),
                _ if !arguments.named.is_empty() => {
                    return Err(self.wrong("an argument without a name stands behind one with a name"));
                }
                value => arguments.placed.push(value),
            }
        }
        Ok(arguments)
    }

    fn primary(&mut self) -> Outcome<Expr> {
        let token = self.next();
        match token {
            Some(Token::Name("true" | "True")) => Ok(Expr::Bool(true)),
            Some(Token::Name("false" | "False")) => Ok(Expr::Bool(false)),
            Some(Token::Name("none" | "None")) => Ok(Expr::None),
            Some(Token::Name(name)) => Ok(Expr::Name((*name).into())),
            Some(Token::Int(number)) => Ok(Expr::Int(*number)),
            Some(Token::Float(number)) => Ok(Expr::Float(*number)),
            Some(Token::Quoted(text)) => {
                let mut text = text.clone();
                while let Some(Token::Quoted(more)) = self.peek() {
                    text.push_str(more);
                    self.next();
                }
                Ok(Expr::Text(text.into()))
            }
            Some(Token::Sign("(")) => self.brackets(),
            Some(Token::Sign("[")) => Ok(Expr::List(self.until("]")?)),
            Some(Token::Sign("{")) => self.map(),
            _ => {
                if token.is_some() {
                    self.back();
                }
                Err(self.unexpected("a value"))
            }
        }
    }

    /// An expression, or a list that is written with commas.
    fn brackets(&mut self) -> Outcome<Expr> {
        if self.skip(")") {
            return Ok(Expr::List(Vec::new()));
        }
        let first = self.expression()?;
        if self.skip(")") {
            return Ok(first);
        }
        self.expect(&Token::Sign(","), ")")?;
        let mut all = vec![first];
        all.append(&mut self.until(")")?);
        Ok(Expr::List(all))
    }

    fn until(&mut self, end: &str) -> Outcome<Vec<Expr>> {
        let mut all = Vec::new();
        while !self.skip(end) {
            if !all.is_empty() {
                self.expect(&Token::Sign(","), "a comma")?;
                if self.skip(end) {
                    break;
                }
            }
            all.push(self.expression()?);
        }
        Ok(all)
    }

    fn map(&mut self) -> Outcome<Expr> {
        let mut entries = Vec::new();
        while !self.skip("}") {
            if !entries.is_empty() {
                self.expect(&Token::Sign(","), "a comma")?;
                if self.skip("}") {
                    break;
                }
            }
            let key = self.expression()?;
            self.expect(&Token::Sign(":"), ":")?;
            entries.push((key, self.expression()?));
        }
        Ok(Expr::Map(entries))
    }
}

fn one_or(mut all: Vec<Expr>, more: impl FnOnce(Vec<Expr>) -> Expr) -> Expr {
    match all.pop() {
        Some(only) if all.is_empty() => only,
        Some(last) => {
            all.push(last);
            more(all)
        }
        None => more(all),
    }
}
