//! Slurm's short form of a list of hosts: `node[01-03,07],login,rack[1-2]n[1-4]`.

/// More hosts than this are a mistake.
const MAX_HOSTS: usize = 1 << 16;

/// The hosts of a list, in its order.
///
/// # Errors
/// Why the text is not a list of hosts, as words that follow "the list".
pub fn hosts(text: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for entry in entries(text)? {
        let names = expanded(entry)?;
        all.extend(names);
        if all.len() > MAX_HOSTS {
            return Err(format!("it has more than {MAX_HOSTS} hosts"));
        }
    }
    if all.is_empty() {
        return Err("it names no host".to_owned());
    }
    Ok(all)
}

/// Splits at the commas that are not in brackets.
fn entries(text: &str) -> Result<Vec<&str>, String> {
    let mut entries = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (at, character) in text.char_indices() {
        match character {
            '[' if inside => return Err("a bracket opens inside another".to_owned()),
            '[' => inside = true,
            ']' if !inside => return Err("a bracket closes that was not opened".to_owned()),
            ']' => inside = false,
            ',' if !inside => {
                entries.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err("a bracket is not closed".to_owned());
    }
    entries.push(&text[start..]);
    Ok(entries.into_iter().map(str::trim).filter(|entry| !entry.is_empty()).collect())
}

/// The hosts of one entry, whose brackets are balanced: all combinations, of which the last bracket changes
/// fastest.
fn expanded(entry: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut rest = entry;
    while let Some((prefix, tail)) = rest.split_once('[') {
        let (ranges, tail) = tail.split_once(']').unwrap_or((tail, ""));
        let numbers = numbers(ranges)?;
        if names.len().saturating_mul(numbers.len()) > MAX_HOSTS {
            return Err(format!("{entry} means more than {MAX_HOSTS} hosts"));
        }
        let with = |name: &String| {
            numbers.iter().map(|number| format!("{name}{prefix}{number}")).collect::<Vec<_>>()
        };
        names = names.iter().flat_map(with).collect();
        rest = tail;
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    if let Some(wrong) = names.iter().find(|name| name.chars().any(|c| c.is_whitespace() || "()".contains(c)))
    {
        return Err(format!("{wrong:?} is not the name of a host"));
    }
    Ok(names)
}

/// The numbers of `01-03,07`, with their leading zeros.
fn numbers(ranges: &str) -> Result<Vec<String>, String> {
    let mut numbers = Vec::new();
    for range in ranges.split(',').map(str::trim) {
        let invalid = || format!("[{ranges}] has `{range}`, which is not a number or a range such as 01-03");
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<usize>().ok().filter(|_| digits).ok_or_else(invalid)
        };
        let (from, to) = (number(first)?, number(last)?);
        if from > to || to - from >= MAX_HOSTS {
            return Err(invalid());
        }
        numbers.extend((from..=to).map(|number| format!("{number:0width$}", width = first.len())));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn expanded(text: &str) -> String {
        hosts(text).map_or_else(|why| format!("error: {why}"), |hosts| hosts.join(" "))
    }

    #[test]
    fn the_forms_of_slurm_are_understood() {
        for (list, expected) in [
            ("node7", "node7"),
            ("node[01-03,07]", "node01 node02 node03 node07"),
            ("node[8-11]", "node8 node9 node10 node11"),
            ("node[098-101]", "node098 node099 node100 node101"),
            ("login,gpu-a[1-2]-ib,gpu-b3", "login gpu-a1-ib gpu-a2-ib gpu-b3"),
            ("rack[1-2]n[1,3]", "rack1n1 rack1n3 rack2n1 rack2n3"),
            ("n[2].cluster.example", "n2.cluster.example"),
        ] {
            assert_eq!(expanded(list), expected, "{list}");
        }
    }

    #[test]
    fn a_list_that_is_none_is_refused() {
        for (list, words) in [
            ("", "no host"),
            (" , ", "no host"),
            ("node[1-2", "not closed"),
            ("node1-2]", "not opened"),
            ("node[1,[2]]", "inside another"),
            ("node[]", "not a number"),
            ("node[3-1]", "3-1"),
            ("node[1-x]", "1-x"),
            ("node[+1]", "+1"),
            ("(null)", "not the name"),
            ("node[1-99999999999999999999]", "not a number"),
            ("n[1-60000]m[1-60000]", "more than 65536"),
        ] {
            assert!(expanded(list).contains(words), "{list}: {}", expanded(list));
        }
    }

    proptest! {
        #[test]
        fn ranges_mean_their_numbers(
            parts in prop::collection::vec(("[a-z]{1,4}-?", prop::collection::vec((0..300_usize, 0..5_usize), 1..4), 1..5_usize), 1..4),
        ) {
            let (mut text, mut expected) = (Vec::new(), Vec::new());
            for (prefix, ranges, width) in parts {
                let mut inside = Vec::new();
                for (from, length) in ranges {
                    let first = format!("{from:0width$}");
                    inside.push(if length == 0 { first.clone() } else { format!("{first}-{:0width$}", from + length) });
                    let width = first.len();
                    expected.extend((from..=from + length).map(|number| format!("{prefix}{number:0width$}")));
                }
                text.push(format!("{prefix}[{}]", inside.join(",")));
            }
            prop_assert_eq!(hosts(&text.join(",")), Ok(expected));
        }

        #[test]
        fn no_text_makes_it_panic_or_name_nobody(text in "[a-c0-2,\\-\\[\\] ]{0,24}") {
            if let Ok(hosts) = hosts(&text) {
                prop_assert!(!hosts.is_empty());
                prop_assert!(hosts.iter().all(|host| !host.contains(['[', ']', ','])));
            }
        }
    }
}
