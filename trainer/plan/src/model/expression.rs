//! The arithmetic that a model yaml may use in arguments (spec §1): numbers, names of values in the
//! yaml, `+ - * / // % **`, parentheses, lists and tuples. Unknown names stay strings (`nearest`),
//! as in YOLOv5. Nothing else of Python is supported.

use serde_json::{Value, json};

/// The deepest nesting; more could exhaust the stack.
const MAX_DEPTH: usize = 32;

/// Evaluates `text`, with the names in scope from `lookup`. Errors do not name the file or the row.
pub(crate) fn evaluate(text: &str, lookup: &dyn Fn(&str) -> Option<Value>) -> Result<Value, String> {
    let mut parser = Parser { text, at: 0, depth: 0, lookup };
    let value = parser.sum()?;
    parser.space();
    if parser.at < text.len() {
        return Err(format!("cannot parse `{text}` from `{}` on", &text[parser.at..]));
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    lookup: &'a dyn Fn(&str) -> Option<Value>,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Consumes `token` if it comes next.
    fn take(&mut self, token: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn sum(&mut self) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("`{}` is nested too deeply", self.text));
        }
        let mut left = self.product()?;
        loop {
            if self.take("+") {
                left = arithmetic('+', &left, &self.product()?)?;
            } else if self.take("-") {
                left = arithmetic('-', &left, &self.product()?)?;
            } else {
                self.depth -= 1;
                return Ok(left);
            }
        }
    }

    fn product(&mut self) -> Result<Value, String> {
        let mut left = self.unary()?;
        loop {
            if self.take("//") {
                left = arithmetic('f', &left, &self.unary()?)?;
            } else if self.take("/") {
                left = arithmetic('/', &left, &self.unary()?)?;
            } else if self.take("%") {
                left = arithmetic('%', &left, &self.unary()?)?;
            } else if self.take("*") {
                left = arithmetic('*', &left, &self.unary()?)?;
            } else {
                return Ok(left);
            }
        }
    }

    fn unary(&mut self) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("`{}` is nested too deeply", self.text));
        }
        let value = if self.take("-") {
            arithmetic('-', &json!(0), &self.unary()?)
        } else if self.take("+") {
            self.unary()
        } else {
            let base = self.atom()?;
            if self.take("**") { arithmetic('^', &base, &self.unary()?) } else { Ok(base) }
        };
        self.depth -= 1;
        value
    }

    fn atom(&mut self) -> Result<Value, String> {
        if self.take("(") {
            return self.items(")", true);
        }
        if self.take("[") {
            return self.items("]", false);
        }
        self.space();
        let rest = self.rest();
        match rest.chars().next() {
            Some(quote @ ('\'' | '"')) => {
                let inner = &rest[1..];
                let end =
                    inner.find(quote).ok_or_else(|| format!("`{}` has an unclosed quote", self.text))?;
                self.at += end + 2;
                Ok(json!(&inner[..end]))
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' => {
                let end =
                    rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
                let name = &rest[..end];
                self.at += end;
                Ok(match name {
                    "None" => Value::Null,
                    "True" => json!(true),
                    "False" => json!(false),
                    _ => (self.lookup)(name).unwrap_or_else(|| json!(name)),
                })
            }
            _ => Err(format!("`{}` is not a supported expression", self.text)),
        }
    }

    /// The content of brackets: one value in parentheses, or a list.
    fn items(&mut self, close: &str, parentheses: bool) -> Result<Value, String> {
        let mut items = Vec::new();
        let mut comma = false;
        loop {
            if self.take(close) {
                break;
            }
            items.push(self.sum()?);
            if self.take(",") {
                comma = true;
            } else if self.take(close) {
                break;
            } else {
                return Err(format!("`{}` has an unclosed bracket", self.text));
            }
        }
        match items.pop() {
            Some(only) if parentheses && !comma && items.is_empty() => Ok(only),
            last => {
                items.extend(last);
                Ok(Value::Array(items))
            }
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let bytes = self.rest().as_bytes();
        let mut end = 0;
        while end < bytes.len() {
            let exponent_sign =
                end > 0 && matches!(bytes[end - 1], b'e' | b'E') && matches!(bytes[end], b'+' | b'-');
            if bytes[end].is_ascii_digit() || matches!(bytes[end], b'.' | b'e' | b'E' | b'_') || exponent_sign
            {
                end += 1;
            } else {
                break;
            }
        }
        let digits = self.rest()[..end].replace('_', "");
        self.at += end;
        if let Ok(integer) = digits.parse::<i64>() {
            return Ok(json!(integer));
        }
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(json!(number)),
            _ => Err(format!("`{digits}` in `{}` is not a number", self.text)),
        }
    }
}

/// One operation on two numbers, with Python's rules: `/` always gives a float, and `//` and `%`
/// round toward minus infinity.
fn arithmetic(operator: char, left: &Value, right: &Value) -> Result<Value, String> {
    let both = |name: &str| format!("cannot compute {left} {name} {right}: both sides must be numbers");
    let symbol = match operator {
        'f' => "//".to_owned(),
        '^' => "**".to_owned(),
        other => other.to_string(),
    };
    if let (Some(a), Some(b)) = (left.as_i64(), right.as_i64()) {
        let exact = match operator {
            '+' => a.checked_add(b),
            '-' => a.checked_sub(b),
            '*' => a.checked_mul(b),
            'f' if b > 0 => a.checked_div_euclid(b),
            '%' if b > 0 => a.checked_rem_euclid(b),
            '^' => u32::try_from(b).ok().and_then(|exponent| a.checked_pow(exponent)),
            _ => None,
        };
        if let Some(value) = exact {
            return Ok(json!(value));
        }
    }
    let (Some(a), Some(b)) = (left.as_f64(), right.as_f64()) else {
        return Err(both(&symbol));
    };
    let value = match operator {
        '+' => a + b,
        '-' => a - b,
        '*' => a * b,
        '/' => a / b,
        'f' => (a / b).floor(),
        '%' => a - (a / b).floor() * b,
        _ => a.powf(b),
    };
    if value.is_finite() { Ok(json!(value)) } else { Err(format!("{left} {symbol} {right} is not finite")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<Value, String> {
        evaluate(text, &|name| (name == "nc").then(|| json!(80)))
    }

    #[test]
    fn arithmetic_matches_python() {
        assert_eq!(value("3*(nc+5)"), Ok(json!(255)));
        assert_eq!(value("nc // 3 - 1"), Ok(json!(25)));
        assert_eq!(value("-2**2"), Ok(json!(-4)));
        assert_eq!(value("-7 % 3"), Ok(json!(2)));
        assert_eq!(value("1/2"), Ok(json!(0.5)));
        assert_eq!(value("(5, 9, 13)"), Ok(json!([5, 9, 13])));
        assert_eq!(value("[1, [2, nc]]"), Ok(json!([1, [2, 80]])));
        assert_eq!(value("(4)"), Ok(json!(4)));
    }

    #[test]
    fn constants_are_evaluated_and_unknown_names_stay_strings() {
        assert_eq!(value("None"), Ok(Value::Null));
        assert_eq!(value("False"), Ok(json!(false)));
        assert_eq!(value("nearest"), Ok(json!("nearest")));
        assert_eq!(value("'bilinear'"), Ok(json!("bilinear")));
    }

    #[test]
    fn unsupported_expressions_are_errors() {
        for text in ["", "1 +", "(1", "nc nc", "1/0", "nearest*2", "__import__('os')", "2**99999", "é'"] {
            assert!(value(text).is_err(), "{text}");
        }
        assert!(value(&"(".repeat(10_000)).is_err());
        assert!(value(&"-".repeat(10_000)).is_err());
    }
}
