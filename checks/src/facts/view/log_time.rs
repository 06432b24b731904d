//! The time at the start of a line of a log, to tell how far apart two lines of one log are.

/// In one of the ways that `journalctl` and `dmesg` write it, in seconds from a beginning that all lines of that way share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum LogTime {
    /// `1763690000.123456 host kernel: …`
    Unix(f64),
    /// `[  123.456789] …`
    SinceStart(f64),
    /// `2025-11-21T01:45:12+0100 host kernel: …`
    Iso(f64),
    /// `Nov 21 01:45:12 host kernel: …`
    OfYear(f64),
}

const DAY: u32 = 86_400;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl LogTime {
    pub(super) fn of(line: &str) -> Option<Self> {
        let line = line.trim_start();
        if let Some(rest) = line.strip_prefix('[') {
            return Some(Self::SinceStart(rest.split_once(']')?.0.trim().parse().ok()?));
        }
        let mut words = line.split_whitespace();
        let first = words.next()?;
        if let Some(month) = MONTHS.iter().position(|month| *month == first) {
            let day: u32 = words.next()?.parse().ok()?;
            let days = u32::try_from(month).ok()? * 31 + day.min(31);
            return Some(Self::OfYear(f64::from(days * DAY + seconds(words.next()?)?)));
        }
        if let Some((date, time)) = first.split_once('T') {
            let mut numbers = date.splitn(3, '-').map(|number| number.parse::<u32>().ok());
            let (year, month, day) = (numbers.next()??, numbers.next()??, numbers.next()??);
            let days = f64::from(year.min(9999)) * 372.0 + f64::from(month.min(12) * 31 + day.min(31));
            return Some(Self::Iso(days * f64::from(DAY) + f64::from(seconds(time.get(..8)?)?)));
        }
        // Of this century.
        first.parse().ok().filter(|time| (1e9..1e10).contains(time)).map(Self::Unix)
    }

    /// The seconds from this line to a later one. Months count as 31 days, which matters to none who asks about hours; `None`
    /// if the times are written in different ways, or out of order.
    pub(super) fn until(self, later: Self) -> Option<f64> {
        let (from, to) = match (self, later) {
            (Self::Unix(from), Self::Unix(to))
            | (Self::SinceStart(from), Self::SinceStart(to))
            | (Self::Iso(from), Self::Iso(to)) => (from, to),
            (Self::OfYear(from), Self::OfYear(to)) if to < from => (from, to + f64::from(372 * DAY)),
            (Self::OfYear(from), Self::OfYear(to)) => (from, to),
            _ => return None,
        };
        (to >= from).then_some(to - from)
    }
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
        ] {
            let apart_as_read = LogTime::of(first).unwrap().until(LogTime::of(second).unwrap());
            assert_eq!(apart_as_read, apart, "{first}");
        }
        assert_eq!(LogTime::of("NVRM: Xid (PCI:0000:01:00): 79"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "(Nov|[0-9T:.+-]| |\\[|\\]|\\PC){0,30}") {
            if let Some(time) = LogTime::of(&line) {
                let _ = time.until(time);
            }
        }
    }
}
