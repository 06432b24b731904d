//! Parsers for the numbers of the command line. clap puts "invalid value 'X' for '--option': " before
//! their messages. The standard library's messages ("invalid digit found in string") are not helpful
//! to users.

use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

/// Parses a whole number.
///
/// # Errors
/// With what is wrong with the number.
pub fn whole<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, &'static str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => "the number is too large",
        IntErrorKind::NegOverflow => "the number is too small",
        _ if text.strip_prefix('-').is_some_and(is_number) => "the number must not be negative",
        _ => "not a whole number",
    })
}

/// Parses a whole number that is at least 1.
///
/// # Errors
/// With what is wrong with the number.
pub fn positive<T: FromStr<Err = ParseIntError> + From<u8> + PartialOrd>(
    text: &str,
) -> Result<T, &'static str> {
    whole(text).and_then(
        |number| if number < T::from(1) { Err("the number must be at least 1") } else { Ok(number) },
    )
}

/// Parses a number that may have a fraction.
///
/// # Errors
/// When it is not a number.
pub fn decimal(text: &str) -> Result<f64, &'static str> {
    text.parse().ok().filter(|number: &f64| !number.is_nan()).ok_or("not a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_for_users() {
        assert_eq!(whole::<usize>("12"), Ok(12));
        assert_eq!(whole::<i64>("-1"), Ok(-1));
        for text in ["", "abc", "1.5", "-", "--1", "1e3"] {
            assert_eq!(whole::<usize>(text), Err("not a whole number"), "{text}");
        }
        assert_eq!(whole::<usize>("-1"), Err("the number must not be negative"));
        assert_eq!(whole::<u8>("256"), Err("the number is too large"));
        assert_eq!(whole::<i64>("-9999999999999999999"), Err("the number is too small"));
        assert_eq!(positive::<u32>("0"), Err("the number must be at least 1"));
        assert_eq!(decimal("0.5"), Ok(0.5));
        for text in ["", "abc", "0,5", "nan"] {
            assert_eq!(decimal(text), Err("not a number"), "{text}");
        }
    }
}
