//! The time at the start of a line of a log, to tell how far apart two lines of one log are.

/// In one of the ways that `journalctl` and `dmesg` write it, in seconds from a beginning that all lines of that way share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum LogTime {
    /// `1763690000.123456 host kernel: …`
    Unix(f64),
    /// `[  123.456789] …`
    SinceStart(f64),
    /// `2025-11-21T01:45:12+0100 host kernel: …`, since 1970.
    Iso(f64),
    /// `Nov 21 01:45:12 host kernel: …`: the month from 0 and the day from 1, and the seconds of the day.
    OfYear(u32, u32, u32),
}

const DAY: u32 = 86_400;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// The days of a year that are before each month.
const BEFORE: [u32; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

impl LogTime {
    pub(crate) fn of(line: &str) -> Option<Self> {
        let line = line.trim_start();
        if let Some(rest) = line.strip_prefix('[') {
            let time = rest.split_once(']')?.0.trim();
            // `dmesg -T` writes `[Fri Nov 21 01:45:12 2025]`.
            return match time.parse() {
                Ok(seconds) => Some(Self::SinceStart(seconds)),
                Err(_) => Self::of(time.split_once(' ')?.1),
            };
        }
        let mut words = line.split_whitespace();
        let first = words.next()?;
        if let Some(month) = MONTHS.iter().position(|month| *month == first) {
            let day: u32 = words.next()?.parse().ok()?;
            return Some(Self::OfYear(u32::try_from(month).ok()?, day.min(31), seconds(words.next()?)?));
        }
        if let Some((date, time)) = first.split_once('T') {
            let mut numbers = date.splitn(3, '-').map(|number| number.parse::<u32>().ok());
            let (year, month, day) = (numbers.next()??, numbers.next()??, numbers.next()??);
            let days = f64::from(days_since_1970(year, month, day)?);
            let of_day = f64::from(seconds(time.get(..8)?)?);
            return Some(Self::Iso(days * f64::from(DAY) + of_day - f64::from(zone(time.get(8..)?))));
        }
        // Of this century.
        first.parse().ok().filter(|time| (1e9..1e10).contains(time)).map(Self::Unix)
    }

    /// The seconds from this line to a later one; `None` if the times are written in different ways, or out of order. In the
    /// form without a year, it is a leap year only if one of the lines is of February 29.
    pub(crate) fn until(self, later: Self) -> Option<f64> {
        let (from, to) = match (self, later) {
            (Self::Unix(from), Self::Unix(to))
            | (Self::SinceStart(from), Self::SinceStart(to))
            | (Self::Iso(from), Self::Iso(to)) => (from, to),
            (Self::OfYear(month, day, second), Self::OfYear(to_month, to_day, to_second)) => {
                let is_leap = [(month, day), (to_month, to_day)].contains(&(1, 29));
                let at = |month: u32, day: u32, second: u32| {
                    let before = BEFORE[month.min(11) as usize] + u32::from(is_leap && month > 1);
                    f64::from((before + day) * DAY + second)
                };
                let (from, to) = (at(month, day, second), at(to_month, to_day, to_second));
                let year = f64::from((365 + u32::from(is_leap)) * DAY);
                (from, if to < from { to + year } else { to })
            }
            _ => return None,
        };
        (to >= from).then_some(to - from)
    }
}

/// The days from the start of 1970 to a date, by the calendar of today.
fn days_since_1970(year: u32, month: u32, day: u32) -> Option<u32> {
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let before = year - 1970.min(year);
    let leap_days = |year: u32| year / 4 - year / 100 + year / 400;
    let leaps = leap_days(year.checked_sub(1)?).checked_sub(leap_days(1969))?;
    let of_year = BEFORE[month.checked_sub(1)?.min(11) as usize] + u32::from(is_leap && month > 2);
    is_date.then(|| before * 365 + leaps + of_year + day - 1)
}

/// The seconds that a clock is ahead of UTC: `+0100`, `+01:00`, also after a fraction of a second; 0 without any.
fn zone(text: &str) -> i32 {
    let Some((at, sign)) = text.char_indices().find(|(_, letter)| matches!(letter, '+' | '-')) else {
        return 0;
    };
    let digits: Vec<i32> = text[at + 1..]
        .chars()
        .filter(|letter| *letter != ':')
        .map_while(|letter| letter.to_digit(10).and_then(|digit| i32::try_from(digit).ok()))
        .take(4)
        .collect();
    let [h, hours, m, minutes] = digits[..] else { return 0 };
    let seconds = (h * 10 + hours) * 3600 + (m * 10 + minutes) * 60;
    if sign == '-' { -seconds } else { seconds }
}

/// `01:45:12`
fn seconds(time: &str) -> Option<u32> {
    let mut parts = time.splitn(3, ':').map(|part| part.parse::<u32>().ok().filter(|part| *part < 62));
    Some(parts.next()?? * 3600 + parts.next()?? * 60 + parts.next()??)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::LogTime;

    #[test]
    fn lines_of_all_ways_tell_how_far_apart_they_are() {
        for (first, second, apart) in [
            ("1763690000.5 host kernel: a", "1763693600.5 host kernel: b", Some(3600.0)),
            ("[   10.5] a", "[ 70.5] b", Some(60.0)),
            ("2025-11-21T01:45:12+0100 host a", "2025-11-21T03:45:12+0100 host b", Some(7200.0)),
            ("Nov 21 01:45:12 host a", "Nov 22 01:45:12 host b", Some(86_400.0)),
            ("Dec 31 23:59:59 host a", "Jan  1 00:00:59 host b", Some(60.0)),
            ("Nov 21 01:45:12 host a", "[ 70.5] b", None),
            ("2026-04-30T23:50:00+0200 host a", "2026-05-01T00:05:00+0200 host b", Some(900.0)),
            ("2026-02-28T23:50:00Z host a", "2026-03-01T00:05:00Z host b", Some(900.0)),
            ("2028-02-28T23:50:00Z host a", "2028-03-01T00:05:00Z host b", Some(87_300.0)),
            ("2026-10-25T02:50:00.5+02:00 host a", "2026-10-25T02:10:00+01:00 host b", Some(1200.0)),
            ("1970-01-02T00:00:00+0000 host a", "2000-01-01T00:00:00+0000 host b", Some(946_598_400.0)),
            ("Apr 30 23:50:00 host a", "May  1 00:05:00 host b", Some(900.0)),
            ("Feb 28 23:50:00 host a", "Mar  1 00:05:00 host b", Some(900.0)),
            ("Feb 29 23:50:00 host a", "Mar  1 00:05:00 host b", Some(900.0)),
            ("[Fri Nov 21 01:45:12 2025] a", "[Fri Nov 21 01:46:12 2025] b", Some(60.0)),
        ] {
            let apart_as_read = LogTime::of(first).unwrap().until(LogTime::of(second).unwrap());
            assert_eq!(apart_as_read, apart, "{first}");
        }
        assert_eq!(LogTime::of("NVRM: Xid (PCI:0000:01:00): 79"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "(Nov|2026-02-|T01:02:03|[0-9T:.+-]| |\\[|\\]|\\PC){0,30}") {
            if let Some(time) = LogTime::of(&line) {
                let _ = time.until(time);
            }
        }
    }
}
