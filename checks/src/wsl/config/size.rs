//! Sizes as `.wslconfig` writes them: a whole number and a unit in capitals, in powers of 1024,
//! without a space. A number without a unit means bytes, so `memory=8` asks for 8 bytes and gets the
//! minimum of WSL, 256 MB.

/// The minimum memory of the virtual machine, in bytes; WSL raises smaller values to it.
pub const LEAST_MEMORY: u64 = 256 << 20;

const UNITS: [(char, u32); 5] = [('B', 0), ('K', 10), ('M', 20), ('G', 30), ('T', 40)];

/// The bytes that WSL reads from a value: `8GB`, `8G`, `512MB`, `8`. `None` for values that it ignores:
/// `8 GB`, `8gb`, `8.5GB`, `eight`.
pub fn parse(value: &str) -> Option<u64> {
    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (number, unit) = value.split_at(digits);
    // Zero is valid only as a single digit.
    if number.is_empty() || (number != "0" && number.bytes().all(|digit| digit == b'0')) {
        return None;
    }
    let mut unit = unit.chars();
    let factor = match (unit.next(), unit.next(), unit.next()) {
        (None, ..) => 0,
        (Some(letter), None, _) => shift(letter)?,
        (Some(letter), Some('B'), None) if letter != 'B' => shift(letter)?,
        _ => return None,
    };
    // A number that does not fit is more than any machine has.
    let number: u64 = number.parse().unwrap_or(u64::MAX);
    Some(u64::saturating_mul(number, 1 << factor))
}

fn shift(letter: char) -> Option<u32> {
    UNITS.iter().find(|(unit, _)| *unit == letter).map(|&(_, shift)| shift)
}

/// A size in the syntax of the file: in gigabytes if it is a multiple of one, else in megabytes,
/// rounded down.
pub fn format(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        _ if bytes.is_multiple_of(1 << 30) => format!("{}GB", bytes >> 30),
        _ => format!("{}MB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::{format, parse};

    #[test]
    fn sizes_are_parsed_like_wsl_does() {
        for (text, bytes) in [
            ("8GB", 8 << 30),
            ("8G", 8 << 30),
            ("512MB", 512 << 20),
            ("1T", 1 << 40),
            ("64KB", 64 << 10),
            ("8B", 8),
            ("8", 8),
            ("0", 0),
            ("0GB", 0),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn sizes_that_wsl_ignores_are_rejected() {
        for text in ["", "8 GB", "8gb", "8Gb", "8.5GB", "8GiB", "GB", "8BB", "00", "eight", "8GB!"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_formatted_size_parses_back() {
        for bytes in [0, 256 << 20, 8 << 30, 1536 << 20] {
            assert_eq!(parse(&format(bytes)), Some(bytes));
        }
        assert_eq!([format(8 << 30), format(1536 << 20)], ["8GB", "1536MB"]);
    }
}
