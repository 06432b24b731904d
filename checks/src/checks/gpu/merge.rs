//! Merges findings that say the same about several GPUs. The cards of a server have the same
//! settings, cooling and job: eight findings with one cause would hide it.

use crate::finding::{Finding, Remedy};
use crate::status::Status;

/// Merges findings whose titles differ only in numbers, and name their card as `GPU 3`.
pub(super) fn merge_alike(findings: Vec<Finding>) -> Vec<Finding> {
    let mut kinds: Vec<Vec<Finding>> = Vec::new();
    for finding in findings {
        match kinds.iter_mut().find(|kind| are_alike(&kind[0], &finding)) {
            Some(kind) => kind.push(finding),
            None => kinds.push(vec![finding]),
        }
    }
    kinds.into_iter().filter_map(joined).collect()
}

fn are_alike(one: &Finding, other: &Finding) -> bool {
    let words = |finding: &Finding| {
        let title = finding.title.chars().filter(|letter| !letter.is_ascii_digit());
        (finding.id, finding.status, title.collect::<String>())
    };
    let count = |finding: &Finding| finding.remedy.as_ref().map(|remedy| remedy.commands.len());
    number(one).is_some() && words(one) == words(other) && count(one) == count(other)
}

/// The number of the card in a title.
fn number(finding: &Finding) -> Option<usize> {
    let (_, rest) = finding.title.split_once("GPU ")?;
    rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// The first finding, with the numbers of the other cards in its title, and their evidence.
fn joined(kind: Vec<Finding>) -> Option<Finding> {
    let mut others = kind.into_iter();
    let mut first = others.next()?;
    let others: Vec<Finding> = others.collect();
    let numbers: Vec<usize> = others.iter().filter_map(number).collect();
    if numbers.is_empty() {
        return Some(first);
    }
    let word = if numbers.len() == 1 { "GPU" } else { "GPUs" };
    first.title = format!("{}; also {word} {}", first.title, listed(&numbers));
    if first.status == Status::Skipped {
        return Some(first);
    }
    if let Some(remedy) = &mut first.remedy {
        let of_others: Vec<&Remedy> = others.iter().filter_map(|other| other.remedy.as_ref()).collect();
        remedy.commands = commands(remedy, &of_others);
        remedy.changes.extend(of_others.iter().flat_map(|other| other.changes.clone()));
    }
    Some(
        others.into_iter().fold(first, |first, other| {
            other.evidence.into_iter().fold(first.seen(other.title), Finding::seen)
        }),
    )
}

/// `1`, `1, 3` or `1 to 7`.
fn listed(numbers: &[usize]) -> String {
    match (numbers.first(), numbers.last()) {
        (Some(first), Some(last)) if numbers.len() > 2 && last - first + 1 == numbers.len() => {
            format!("{first} to {last}")
        }
        _ => numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Merges commands that differ in one number into one command with all numbers.
fn commands(first: &Remedy, others: &[&Remedy]) -> Vec<String> {
    let mut commands = Vec::new();
    for (place, command) in first.commands.iter().enumerate() {
        let mut same: Vec<&str> = vec![command];
        same.extend(others.iter().filter_map(|other| other.commands.get(place)).map(String::as_str));
        same.dedup();
        match one_command(&same) {
            Some(command) => commands.push(command),
            None => commands.extend(same.into_iter().map(ToOwned::to_owned)),
        }
    }
    commands
}

/// `nvidia-smi -i 0 -c 0` and `nvidia-smi -i 1 -c 0` become `nvidia-smi -i 0,1 -c 0`; kill takes spaces.
fn one_command(commands: &[&str]) -> Option<String> {
    let lines: Vec<Vec<&str>> = commands.iter().map(|line| line.split(' ').collect()).collect();
    let (first, others) = lines.split_first()?;
    let differ = |place: &usize| others.iter().any(|line| line.get(*place) != first.get(*place));
    let places: Vec<usize> = (0..first.len()).filter(differ).collect();
    let is_number = |word: &&str| word.bytes().all(|digit| digit.is_ascii_digit());
    let numbers: Option<Vec<&str>> = match places[..] {
        [] => return Some(commands[0].to_owned()),
        [place] => lines.iter().map(|line| line.get(place).copied().filter(is_number)).collect(),
        _ => None,
    };
    let is_as_long = others.iter().all(|line| line.len() == first.len());
    let numbers = numbers.filter(|_| is_as_long)?;
    let numbers = numbers.join(if first.contains(&"kill") { " " } else { "," });
    let mut words = first.clone();
    words[places[0]] = &numbers;
    Some(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exclusive(number: usize) -> Finding {
        let title = format!("GPU {number} (NVIDIA A100) is in prohibited compute mode");
        Finding::new("gpu.exclusive", title).command(format!("sudo nvidia-smi -i {number} -c 0"))
    }

    #[test]
    fn cards_that_are_set_alike_are_one_finding() {
        let found = merge_alike((0..8).map(exclusive).collect());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].title, "GPU 0 (NVIDIA A100) is in prohibited compute mode; also GPUs 1 to 7");
        assert_eq!(found[0].remedy.as_ref().unwrap().commands, ["sudo nvidia-smi -i 0,1,2,3,4,5,6,7 -c 0"]);
        assert_eq!(found[0].evidence.len(), 7);
    }

    #[test]
    fn findings_with_different_texts_are_not_merged() {
        let hot = |number| {
            Finding::new("gpu.hot", format!("GPU {number} is slowed by heat: it is at 9{number} °C"))
        };
        let found = merge_alike(vec![exclusive(0), hot(1), exclusive(2), hot(3)]);
        assert_eq!(found.len(), 2);
        assert!(found[0].title.ends_with("; also GPU 2"));
        assert_eq!(merge_alike(vec![exclusive(5)])[0], exclusive(5));
    }

    #[test]
    fn commands_with_one_number_that_differs_are_one() {
        assert_eq!(one_command(&["kill 7", "kill 9"]).as_deref(), Some("kill 7 9"));
        assert_eq!(one_command(&["ps -p 7", "ps -p 9"]).as_deref(), Some("ps -p 7,9"));
        assert_eq!(one_command(&["nvidia-smi"]).as_deref(), Some("nvidia-smi"));
        assert_eq!(one_command(&["nvidia-smi -i 0 -pl 300", "nvidia-smi -i 1 -pl 350"]), None);
    }
}
