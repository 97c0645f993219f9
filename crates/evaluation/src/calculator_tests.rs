use super::*;
use proptest::prelude::*;

fn is(expression: &str) -> String {
    calculate(expression).unwrap_or_else(|error| error.to_string())
}

#[test]
fn expressions_have_the_value_that_they_have_on_paper() {
    for (expression, value) in [
        ("4837 * 6291", "30429567"),
        ("(98765 - 43219) * 173", "9609458"),
        ("0.1 + 0.2", "0.3"),
        ("7318.46 + 12905.77 + 3864.29", "24088.52"),
        ("2 + 3 * 4 - 6 / 3", "12"),
        ("-2^2", "-4"),
        ("2^3^2", "512"),
        ("2**-1", "0.5"),
        ("17 % 5", "2"),
        ("17 % (2 + 3) % 2", "0"),
        ("15% of 80", "12"),
        ("15% of (40 + 40) + 1", "13"),
        ("200 * 15%", "30"),
        ("20%", "0.2"),
        ("sqrt(16) + abs(-3) + min(4, 2, 8) + MAX(1, 2)", "11"),
        ("round(2.5) + round(3.14159, 2)", "6.14"),
        ("6 × 7 ÷ 2 − 1", "20"),
        (".5 * 2", "1"),
        ("0 * -1", "0"),
        ("10^20", "1e20 (rounded)"),
        ("1 / 3", "0.333333333333"),
    ] {
        assert_eq!(is(expression), value, "{expression}");
    }
}

#[test]
fn errors_say_what_to_write_instead() {
    for (expression, part) in [
        (" ", "the expression is empty; write one such as"),
        ("1,234 + 1", "`1,234` may be one number or two; write thousands without a comma"),
        ("max(1,200)", "`1,200` may be one number or two"),
        ("1.2.3", "`1.2.3` is no number"),
        ("1 / (2 - 2)", "division by zero"),
        ("5 % 0", "division by zero"),
        ("sqrt(-1)", "the square root of a negative number"),
        ("sqrt(1, 2)", "`sqrt` takes one number, not 2"),
        ("round(1, 0.5)", "`round` takes one number, and how many decimals to keep, from 0 to 12, not 2"),
        ("5 times 3", "found `times` where an operator was expected"),
        ("sin(1)", "`sin` cannot be read; use numbers, + - * /"),
        ("$5", "`$` cannot be read"),
        ("(1 + 2", "the expression ends where an operator or `)` was expected; complete it"),
        ("1 +", "the expression ends where a number was expected"),
        ("1 + * 2", "found `*` where a number was expected"),
        ("1 2", "found `2` where an operator was expected"),
        ("1)", "found `)` where an operator was expected"),
        ("sqrt 4", "found `4` where `(` with the function's numbers was expected"),
        ("15 of 3", "found `of` where an operator was expected"),
        ("10^400", "the result is too large"),
        ("(-8)^0.5", "the result is too large or is no real number"),
    ] {
        assert!(is(expression).contains(part), "{expression}: {}", is(expression));
    }
}

#[test]
fn hostile_depth_is_refused_before_it_costs_anything() {
    for open in ["(", "-", "sqrt(", "1^", "1% of "] {
        assert_eq!(calculate(&open.repeat(900 / open.len())), Err(CalculatorError::TooDeep), "{open}");
    }
    assert_eq!(calculate(&"(".repeat(100_000)), Err(CalculatorError::TooLong));
}

proptest! {
    #[test]
    fn any_text_has_a_value_or_an_error(text in "[0-9.,+*/%^() a-z-]{0,60}|\\PC{0,40}") {
        let value = calculate(&text);
        prop_assert!(!value.is_ok_and(|value| value.contains("NaN") || value.contains("inf")), "{text}");
    }

    #[test]
    fn any_sum_of_integers_is_exact(a in -100_000_000_i64..100_000_000, b in 0_i64..1_000_000) {
        prop_assert_eq!(calculate(&format!("{a} + {b}")), Ok((a + b).to_string()));
        prop_assert_eq!(calculate(&format!("({a}) * {b}")), Ok((a * b).to_string()));
    }
}
