//! From words to statements.

use super::fault::{Fault, Outcome};
use super::lexer::{self, Placed, Token};
use super::tree::{Expr, For, Kind, Macro, Statement, Suffix, Target, Tree};

/// Tags within tags and brackets within brackets.
const DEPTH: usize = 40;

pub(super) fn parse(source: &str) -> Outcome<Tree> {
    let tokens = lexer::tokens(source)?;
    let parts = tokens.len();
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let (body, _) = parser.statements(&[])?;
    Ok(Tree { body, parts })
}

pub(super) struct Parser<'t, 's> {
    tokens: &'t [Placed<'s>],
    at: usize,
    depth: usize,
}

impl<'t, 's> Parser<'t, 's> {
    /// Statements up to one of these tags, whose name is taken; up to the end if there are none.
    fn statements(&mut self, until: &[&str]) -> Outcome<(Vec<Statement>, &'s str)> {
        let began = self.line();
        let mut statements = Vec::new();
        loop {
            let line = self.line();
            let kind = match self.next() {
                None if until.is_empty() => return Ok((statements, "")),
                None => return Err(Fault::new(format!("{{% {} %}} is missing", until.join(" %} or {% "))).at(began)),
                Some(Token::Text(text)) => Kind::Text((*text).into()),
                Some(Token::PrintStart) => {
                    let value = self.expression_or_list()?;
                    self.expect(&Token::PrintEnd, "}}")?;
                    Kind::Print(value)
                }
                Some(Token::BlockStart) => {
                    let name = self.name()?;
                    if until.contains(&name) {
                        return Ok((statements, name));
                    }
                    self.nested(|parser| parser.block(name, line))?
                }
                Some(_) => return Err(self.unexpected("a tag")),
            };
            statements.push(Statement { line, kind });
        }
    }

    /// The rest of a tag, and what belongs to it.
    fn block(&mut self, name: &str, line: usize) -> Outcome<Kind> {
        match name {
            "if" => self.branches(),
            "for" => self.for_loop(),
            "set" => self.set(),
            "with" => self.with(),
            "filter" => {
                let filters = self.filter_names()?;
                self.end_of_block()?;
                Ok(Kind::Filter { filters, body: self.body("endfilter")? })
            }
            "macro" => self.macro_(),
            "do" => {
                let value = self.expression()?;
                self.end_of_block()?;
                Ok(Kind::Do(value))
            }
            "empty" => Err(Fault::new("there is no {% empty %}; write {% else %} instead").at(line)),
            "include" | "import" | "from" | "extends" | "block" | "endblock" => {
                Err(Fault::new(format!("{{% {name} %}} is of no use here: a prompt is one template by itself"))
                    .at(line))
            }
            "else" | "elif" | "endif" | "endfor" | "endset" | "endwith" | "endfilter" | "endmacro" | "endraw" => {
                Err(Fault::new(format!("{{% {name} %}} stands alone; what it ends or continues is missing")).at(line))
            }
            _ => {
                Err(Fault::new(format!("there is no {{% {name} %}}; use if, for, set, with, filter, macro, do or raw"))
                    .at(line))
            }
        }
    }

    fn branches(&mut self) -> Outcome<Kind> {
        let mut branches = Vec::new();
        loop {
            let condition = self.expression()?;
            self.end_of_block()?;
            let (body, ended_by) = self.statements(&["elif", "else", "endif"])?;
            branches.push((condition, body));
            if ended_by == "elif" {
                continue;
            }
            let has_else = ended_by == "else";
            self.end_of_block()?;
            let otherwise = if has_else { self.body("endif")? } else { Vec::new() };
            return Ok(Kind::If { branches, otherwise });
        }
    }

    fn for_loop(&mut self) -> Outcome<Kind> {
        let target = self.targets()?;
        self.expect(&Token::Name("in"), "in")?;
        let over = self.without_choice()?;
        let only_if = if self.skip_name("if") { Some(self.expression()?) } else { None };
        if self.skip_name("recursive") {
            return Err(self.wrong("a loop cannot be recursive; use a macro that calls itself"));
        }
        self.end_of_block()?;
        let (body, ended_by) = self.statements(&["else", "endfor"])?;
        self.end_of_block()?;
        let otherwise = if ended_by == "else" { self.body("endfor")? } else { Vec::new() };
        Ok(Kind::For(Box::new(For { target, over, only_if, body, otherwise })))
    }

    fn set(&mut self) -> Outcome<Kind> {
        let target = self.targets()?;
        if self.skip("=") {
            let value = self.expression_or_list()?;
            self.end_of_block()?;
            return Ok(Kind::Set { target, value });
        }
        let filters = if self.skip("|") { self.filter_names()? } else { Vec::new() };
        self.end_of_block()?;
        Ok(Kind::SetBlock { target, filters, body: self.body("endset")? })
    }

    fn with(&mut self) -> Outcome<Kind> {
        let mut bindings = Vec::new();
        while self.peek() != Some(&Token::BlockEnd) {
            if !bindings.is_empty() {
                self.expect(&Token::Sign(","), ",")?;
            }
            let target = self.target()?;
            self.expect(&Token::Sign("="), "=")?;
            bindings.push((target, self.expression()?));
        }
        self.end_of_block()?;
        Ok(Kind::With { bindings, body: self.body("endwith")? })
    }

    fn macro_(&mut self) -> Outcome<Kind> {
        let name = self.name()?.into();
        self.expect(&Token::Sign("("), "(")?;
        let mut parameters = Vec::new();
        while !self.skip(")") {
            if !parameters.is_empty() {
                self.expect(&Token::Sign(","), ",")?;
            }
            let name = self.name()?.into();
            let default = if self.skip("=") { Some(self.expression()?) } else { None };
            parameters.push((name, default));
        }
        self.end_of_block()?;
        Ok(Kind::Macro(Macro { name, parameters, body: self.body("endmacro")? }))
    }

    fn body(&mut self, end: &str) -> Outcome<Vec<Statement>> {
        let (body, _) = self.statements(&[end])?;
        // Jinja allows the name of a macro or block once more.
        if matches!(self.peek(), Some(Token::Name(_))) {
            self.at += 1;
        }
        self.end_of_block()?;
        Ok(body)
    }

    fn targets(&mut self) -> Outcome<Target> {
        let first = self.target()?;
        if self.peek() != Some(&Token::Sign(",")) {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.skip(",") {
            all.push(self.target()?);
        }
        Ok(Target::Each(all))
    }

    fn target(&mut self) -> Outcome<Target> {
        if self.skip("(") {
            let inner = self.nested(Self::targets)?;
            self.expect(&Token::Sign(")"), ")")?;
            return Ok(inner);
        }
        let name = self.name()?.into();
        if self.skip(".") {
            return Ok(Target::Member { space: name, name: self.name()?.into() });
        }
        Ok(Target::Name(name))
    }

    fn filter_names(&mut self) -> Outcome<Vec<Suffix>> {
        let mut filters = vec![self.filter()?];
        while self.skip("|") {
            filters.push(self.filter()?);
        }
        Ok(filters)
    }

    fn end_of_block(&mut self) -> Outcome<()> {
        self.expect(&Token::BlockEnd, "%}")
    }

    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        if self.depth >= DEPTH {
            return Err(self.wrong(&format!("it is nested more than {DEPTH} levels deep")));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    pub(super) fn line(&self) -> usize {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |placed| placed.line)
    }

    pub(super) fn peek(&self) -> Option<&'t Token<'s>> {
        self.tokens.get(self.at).map(|placed| &placed.token)
    }

    pub(super) fn next(&mut self) -> Option<&'t Token<'s>> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    /// Puts the last word back.
    pub(super) fn back(&mut self) {
        self.at -= 1;
    }

    /// Takes a sign if it is next.
    pub(super) fn skip(&mut self, sign: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Token::Sign(next)) if *next == sign);
        self.at += usize::from(is_next);
        is_next
    }

    pub(super) fn skip_name(&mut self, name: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Token::Name(next)) if *next == name);
        self.at += usize::from(is_next);
        is_next
    }

    pub(super) fn name(&mut self) -> Outcome<&'s str> {
        match self.peek() {
            Some(Token::Name(name)) => {
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    pub(super) fn expect(&mut self, token: &Token<'_>, written: &str) -> Outcome<()> {
        if self.peek() == Some(token) {
            self.at += 1;
            return Ok(());
        }
        Err(self.unexpected(written))
    }

    pub(super) fn unexpected(&self, expected: &str) -> Fault {
        let found = match self.peek() {
            None => "the end of the template".to_owned(),
            Some(Token::Name(name)) => format!("`{name}`"),
            Some(Token::Sign(sign)) => format!("`{sign}`"),
            Some(Token::PrintEnd | Token::BlockEnd) => "the end of the tag".to_owned(),
            Some(Token::Int(_) | Token::Float(_)) => "a number".to_owned(),
            Some(Token::Quoted(_)) => "a text in quotes".to_owned(),
            Some(Token::Text(_) | Token::PrintStart | Token::BlockStart) => "the next tag".to_owned(),
        };
        self.wrong(&format!("expected {expected}, found {found}"))
    }

    pub(super) fn wrong(&self, reason: &str) -> Fault {
        Fault::new(reason).at(self.line())
    }

    pub(super) fn expression_or_list(&mut self) -> Outcome<Expr> {
        let first = self.expression()?;
        if self.peek() != Some(&Token::Sign(",")) {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.skip(",") {
            if matches!(self.peek(), Some(Token::PrintEnd | Token::BlockEnd)) {
                break;
            }
            all.push(self.expression()?);
        }
        Ok(Expr::List(all))
    }
}
