//! Numbers as C's `%g` prints them, for `results.csv`, `evolve.csv` and saved label files.

/// `value` with at most `digits` significant digits and without trailing zeros. Numbers below 1e-4,
/// and those with more digits before the point, get an exponent.
pub fn percent_g(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return if value.is_nan() { "nan".to_owned() } else { format!("{value}") };
    }
    let digits = digits.max(1);
    // Rounding can raise the exponent (9.9999 becomes 10), so it is read from the rounded text.
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
    } else {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        trimmed(&format!("{value:.decimals$}")).to_owned()
    }
}

fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::percent_g;

    #[test]
    fn prints_as_c_does() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (0.012345678, "0.012346"),
            (0.00001234, "1.234e-05"),
            (123456.0, "1.2346e+05"),
            (99999.7, "1e+05"),
            (-0.5, "-0.5"),
            (0.1, "0.1"),
            (12.5, "12.5"),
            (f64::NAN, "nan"),
        ];
        for (value, text) in cases {
            assert_eq!(percent_g(value, 5), text);
        }
    }
}
