//! Arithmetic on numbers as models write them. Every error says what to write instead, for the model reads it.

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CalculatorError {
    #[error("the expression is empty; write one such as `(12 + 3.5) * 4`")]
    Empty,
    #[error("the expression is longer than {MOST_BYTES} characters; calculate it in parts")]
    TooLong,
    #[error("there are more than {DEEPEST} levels of parentheses or signs; calculate it in parts")]
    TooDeep,
    #[error("`{0}` cannot be read; use numbers, + - * / % ^, parentheses, sqrt, min, max, abs, round and `15% of 80`")]
    Unknown(String),
    #[error(
        "`{0}` may be one number or two; write thousands without a comma, and a blank behind a comma between numbers"
    )]
    Comma(String),
    #[error("`{0}` is no number; write one decimal point at most, as in 1234.5")]
    Number(String),
    #[error("the expression ends where {expected} was expected; complete it")]
    Unfinished { expected: &'static str },
    #[error("found `{found}` where {expected} was expected")]
    Unexpected { found: String, expected: &'static str },
    #[error("`{name}` takes {takes}, not {given}")]
    Arguments { name: String, takes: &'static str, given: usize },
    #[error("division by zero; check the number behind / or %")]
    DivisionByZero,
    #[error("the square root of a negative number is not real; check the number in sqrt")]
    NegativeRoot,
    #[error("the result is too large or is no real number; check the exponents")]
    NotFinite,
}

const MOST_BYTES: usize = 1000;
const DEEPEST: usize = 50;

/// The value of an expression, as text.
///
/// ```
/// use trellis_evaluation::calculate;
///
/// assert_eq!(calculate("1384 * 47.85").as_deref(), Ok("66224.4"));
/// assert_eq!(calculate("15% of 80 + max(1, 2)").as_deref(), Ok("14"));
/// assert_eq!(calculate("1 / 0").unwrap_err().to_string(), "division by zero; check the number behind / or %");
/// ```
pub fn calculate(expression: &str) -> Result<String, CalculatorError> {
    if expression.trim().is_empty() {
        return Err(CalculatorError::Empty);
    }
    if expression.len() > MOST_BYTES {
        return Err(CalculatorError::TooLong);
    }
    let mut parser = Parser { tokens: tokens(expression)?, at: 0, depth: 0 };
    let value = parser.sum()?;
    match parser.peek() {
        None => Ok(written(value)),
        Some(_) => Err(parser.unexpected("an operator")),
    }
}

/// Without the noise that fractions have in the last digits.
fn written(value: f64) -> String {
    const EXACT: f64 = 1e15;
    if value.abs() >= EXACT {
        return format!("{value:e} (rounded)");
    }
    if value.fract() == 0.0 {
        // Not `-0`.
        return format!("{}", value + 0.0);
    }
    let rounded = format!("{value:.11e}").parse::<f64>().unwrap_or(value);
    format!("{rounded}")
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(f64),
    Name(String),
    Symbol(char),
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => name.fmt(f),
            Self::Symbol(symbol) => symbol.fmt(f),
        }
    }
}

fn tokens(expression: &str) -> Result<Vec<Token>, CalculatorError> {
    let expression = expression.replace("**", "^");
    let (mut tokens, mut rest) = (Vec::new(), expression.trim());
    while let Some(first) = rest.chars().next() {
        let while_is = |is: fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
        let (token, length) = match first {
            '0'..='9' | '.' => {
                let length = while_is(|c| c.is_ascii_digit() || c == '.');
                refuse_thousands(rest, length)?;
                let text = &rest[..length];
                (Token::Number(text.parse().map_err(|_| CalculatorError::Number(text.to_owned()))?), length)
            }
            'a'..='z' | 'A'..='Z' => {
                let length = while_is(|c| c.is_ascii_alphabetic());
                (Token::Name(rest[..length].to_lowercase()), length)
            }
            _ => (Token::Symbol(symbol(first)?), first.len_utf8()),
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn symbol(c: char) -> Result<char, CalculatorError> {
    match c {
        '+' | '-' | '*' | '/' | '%' | '^' | '(' | ')' | ',' => Ok(c),
        '×' | '·' => Ok('*'),
        '÷' => Ok('/'),
        '−' | '–' => Ok('-'),
        other => Err(CalculatorError::Unknown(other.to_string())),
    }
}

/// `1,234` is a thousand for whoever writes it, and two arguments for whoever reads it.
fn refuse_thousands(rest: &str, length: usize) -> Result<(), CalculatorError> {
    let Some(behind) = rest[length..].strip_prefix(',') else { return Ok(()) };
    let digits = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
    if digits == 3 { Err(CalculatorError::Comma(rest[..=length + digits].to_owned())) } else { Ok(()) }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

type Value = Result<f64, CalculatorError>;

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, symbol: char) -> bool {
        let found = self.peek() == Some(&Token::Symbol(symbol));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: char, expected: &'static str) -> Result<(), CalculatorError> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn unexpected(&self, expected: &'static str) -> CalculatorError {
        match self.peek() {
            Some(found) => CalculatorError::Unexpected { found: found.to_string(), expected },
            None => CalculatorError::Unfinished { expected },
        }
    }

    /// Everything that can contain itself goes through here.
    fn deeper(&mut self, parse: fn(&mut Self) -> Value) -> Value {
        if self.depth == DEEPEST {
            return Err(CalculatorError::TooDeep);
        }
        self.depth += 1;
        let value = parse(self);
        self.depth -= 1;
        value
    }

    fn sum(&mut self) -> Value {
        let mut value = self.product()?;
        loop {
            value = match () {
                () if self.take('+') => value + self.product()?,
                () if self.take('-') => value - self.product()?,
                () => return Ok(value),
            };
        }
    }

    fn product(&mut self) -> Value {
        let mut value = self.signed()?;
        loop {
            value = match () {
                () if self.take('*') => value * self.signed()?,
                () if self.take('/') => value / nonzero(self.signed()?)?,
                () if self.take('%') => value % nonzero(self.signed()?)?,
                () => return finite(value),
            };
        }
    }

    /// A minus binds less than a power: -2^2 is -4.
    fn signed(&mut self) -> Value {
        match () {
            () if self.take('-') => Ok(-self.deeper(Self::signed)?),
            () if self.take('+') => self.deeper(Self::signed),
            () => self.power(),
        }
    }

    fn power(&mut self) -> Value {
        let base = self.percentage()?;
        if self.take('^') { finite(base.powf(self.deeper(Self::signed)?)) } else { Ok(base) }
    }

    /// `%` in front of a number, a name or a parenthesis is the remainder; anywhere else it means hundredths. `of` stands
    /// behind hundredths only.
    fn percentage(&mut self) -> Value {
        let value = self.operand()?;
        let next = self.tokens.get(self.at + 1);
        let is_of = |token: &Token| matches!(token, Token::Name(name) if name == "of");
        let is_remainder = match next {
            Some(Token::Number(_) | Token::Symbol('(')) => true,
            Some(name @ Token::Name(_)) => !is_of(name),
            Some(Token::Symbol(_)) | None => false,
        };
        if is_remainder || !self.take('%') {
            return Ok(value);
        }
        if self.peek().is_some_and(is_of) {
            self.at += 1;
            return Ok(value / 100.0 * self.deeper(Self::signed)?);
        }
        Ok(value / 100.0)
    }

    fn operand(&mut self) -> Value {
        let Some(token) = self.peek().cloned() else { return Err(self.unexpected("a number")) };
        match token {
            Token::Number(number) => {
                self.at += 1;
                Ok(number)
            }
            Token::Name(name) => self.function(&name),
            Token::Symbol('(') => {
                self.at += 1;
                let value = self.deeper(Self::sum)?;
                self.expect(')', "an operator or `)`").map(|()| value)
            }
            Token::Symbol(_) => Err(self.unexpected("a number")),
        }
    }

    fn function(&mut self, name: &str) -> Value {
        if !["sqrt", "abs", "round", "min", "max"].contains(&name) {
            return Err(CalculatorError::Unknown(name.to_owned()));
        }
        self.at += 1;
        self.expect('(', "`(` with the function's numbers")?;
        let mut given = vec![self.deeper(Self::sum)?];
        while self.take(',') {
            given.push(self.deeper(Self::sum)?);
        }
        self.expect(')', "`,` or `)`")?;
        apply(name, &given)
    }
}

fn apply(name: &str, given: &[f64]) -> Value {
    match (name, given) {
        ("sqrt", [value]) if *value < 0.0 => Err(CalculatorError::NegativeRoot),
        ("sqrt", [value]) => Ok(value.sqrt()),
        ("abs", [value]) => Ok(value.abs()),
        ("round", [value]) => Ok(value.round()),
        ("round", [value, places]) if places.fract() == 0.0 && (0.0..=12.0).contains(places) => {
            let scale = 10_f64.powf(*places);
            finite((value * scale).round() / scale)
        }
        ("min", given) => Ok(given.iter().copied().fold(f64::INFINITY, f64::min)),
        ("max", given) => Ok(given.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        (name, given) => {
            let round = "one number, and how many decimals to keep, from 0 to 12";
            let takes = if name == "round" { round } else { "one number" };
            Err(CalculatorError::Arguments { name: name.to_owned(), takes, given: given.len() })
        }
    }
}

fn nonzero(value: f64) -> Value {
    if value == 0.0 { Err(CalculatorError::DivisionByZero) } else { Ok(value) }
}

fn finite(value: f64) -> Value {
    if value.is_finite() { Ok(value) } else { Err(CalculatorError::NotFinite) }
}

#[cfg(test)]
#[path = "calculator_tests.rs"]
mod tests;
