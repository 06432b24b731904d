//! How sizes, durations, counts and lists are written in messages. Every message of every crate
//! uses these functions, so that one value is never written in two ways.

/// A size on a disk or a network, in units of 1000: `999 B`, `122.9 MB`.
pub fn bytes(count: u64) -> String {
    scaled(count, 1000.0, ["B", "kB", "MB", "GB", "TB"])
}

/// A size of memory, in units of 1024: `512 MiB`, `23.6 GiB`.
pub fn memory(count: u64) -> String {
    scaled(count, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB"])
}

fn scaled(count: u64, base: f64, units: [&str; 5]) -> String {
    let mut value = count as f64;
    let mut unit = 0;
    // A value that would be written with four digits before the point goes to the next unit.
    while value >= base - 0.05 && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    if unit == 0 {
        return format!("{count} B");
    }
    format!("{value:.1} {}", units[unit])
}

/// A duration, to the precision that matters at its length: `35 ms`, `0.3 s`, `42 s`, `3 min 7 s`,
/// `5 h 2 min`, `3 days`. Negative and non-finite values count as 0.
pub fn duration(seconds: f64) -> String {
    let seconds = if seconds.is_finite() { seconds.max(0.0) } else { 0.0 };
    if seconds > 0.0 && seconds < 0.0995 {
        return format!("{:.0} ms", (seconds * 1000.0).max(1.0));
    }
    if seconds < 9.95 && seconds.fract() != 0.0 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    let (minutes, hours) = (whole / 60, whole / 3600);
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => pair((minutes, "min"), (whole % 60, "s")),
        3600..172_800 => pair((hours, "h"), (minutes % 60, "min")),
        _ => format!("{} days", whole / 86_400),
    }
}

fn pair((large, large_unit): (u64, &str), (small, small_unit): (u64, &str)) -> String {
    match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    }
}

/// A count with its noun: `1 image`, `3 images`. For a noun that takes no plain `s`, see
/// [`count_of`].
pub fn count(number: usize, noun: &str) -> String {
    count_of(number, noun, &format!("{noun}s"))
}

/// A count with its noun in the singular or in the plural: `1 process`, `2 processes`.
pub fn count_of(number: usize, singular: &str, plural: &str) -> String {
    format!("{number} {}", if number == 1 { singular } else { plural })
}

/// A list as a sentence has it: `a`, `a and b`, `a, b and c`.
pub fn list<T: AsRef<str>>(items: &[T]) -> String {
    joined(items, "and")
}

/// A choice as a sentence has it: `a`, `a or b`, `a, b or c`.
pub fn choice<T: AsRef<str>>(items: &[T]) -> String {
    joined(items, "or")
}

fn joined<T: AsRef<str>>(items: &[T], word: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} {word} {}", first.join(", "), last.as_ref())
        }
    }
}

/// A text as a CSV field: in quotes if it has a comma, a quote or a line break (RFC 4180).
pub fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(
            [999, 1000, 122_940_000, 999_960_000].map(bytes),
            ["999 B", "1.0 kB", "122.9 MB", "1.0 GB"]
        );
        assert_eq!([1023, 1 << 20, 25_344_532_480].map(memory), ["1023 B", "1.0 MiB", "23.6 GiB"]);
        assert_eq!(memory((1 << 20) - 1), "1.0 MiB");
    }

    #[test]
    fn durations() {
        assert_eq!(
            [0.0001, 0.0352, 0.31, 3.0, 41.6, 187.0, 3600.0, 18_125.0, 300_000.0].map(duration),
            ["1 ms", "35 ms", "0.3 s", "3 s", "42 s", "3 min 7 s", "1 h", "5 h 2 min", "3 days"]
        );
        assert_eq!([-1.0, f64::NAN].map(duration), ["0 s", "0 s"]);
    }

    #[test]
    fn counts_and_lists() {
        assert_eq!([0, 1, 2].map(|number| count(number, "image")), ["0 images", "1 image", "2 images"]);
        assert_eq!(count_of(2, "process", "processes"), "2 processes");
        assert_eq!(list(&["a"]), "a");
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
        assert_eq!(choice(&["a", "b"]), "a or b");
    }

    #[test]
    fn texts_with_commas_quotes_and_lines_are_quoted() {
        assert_eq!(csv_field("out of memory"), "out of memory");
        assert_eq!(csv_field("a, b"), "\"a, b\"");
        assert_eq!(csv_field("a \"b\"\nc"), "\"a \"\"b\"\"\nc\"");
    }
}
