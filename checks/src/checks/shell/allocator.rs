//! Whether the options of libtorch's memory allocator can be read. libtorch stops at the first GPU tensor if
//! one cannot. The rules here are those of libtorch 2.11, found by giving it one value after another.

use crate::change::Change;
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;

/// Both are read by libtorch 2.11; the first is the older name.
pub(in crate::checks) const VARIABLES: [&str; 2] = ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"];

/// The command that takes expandable segments out of a variable, if it asks for them. They are memory that is mapped piece
/// by piece, which the drivers of WSL and of some virtual GPUs do not support.
pub(in crate::checks) fn command_without_segments(host: &Host, name: &str) -> Option<String> {
    let value = host.env(name).ok().flatten().filter(|value| asks_for_segments(value))?;
    Some(match without_segments(&value) {
        Some(others) => format!("export {name}={}", quote(&others)),
        None => format!("unset {name}"),
    })
}

/// The form of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// MiB, of which at least so many.
    Size(u64),
    /// Exactly `True` or `False`.
    Switch,
    /// Between 0 and 1, without the two.
    Fraction,
    /// `native` or `cudaMallocAsync`.
    Backend,
    /// A power of two, or a list of them.
    Divisions,
    /// Not checked here.
    Other,
}

/// The options of libtorch 2.11.
const OPTIONS: [(&str, Form); 13] = [
    ("max_split_size_mb", Form::Size(20)),
    ("max_non_split_rounding_mb", Form::Size(20)),
    ("garbage_collection_threshold", Form::Fraction),
    ("roundup_power2_divisions", Form::Divisions),
    ("backend", Form::Backend),
    ("expandable_segments", Form::Switch),
    ("release_lock_on_cudamalloc", Form::Switch),
    ("pinned_use_cuda_host_register", Form::Switch),
    ("pinned_use_background_threads", Form::Switch),
    ("graph_capture_record_stream_reuse", Form::Switch),
    ("pinned_num_register_threads", Form::Other),
    ("pinned_reserve_segment_size_mb", Form::Other),
    ("per_process_memory_fraction", Form::Other),
];
/// Also an option, with a value that is never wrong enough to stop.
const LARGE_SEGMENTS: &str = "large_segment_size_mb";

/// What stops libtorch, for each variable.
pub(super) fn findings(host: &Host, intent: &Intent) -> Vec<Finding> {
    if intent.cpu {
        return Vec::new();
    }
    VARIABLES.iter().filter_map(|name| finding(host, name)).collect()
}

fn finding(host: &Host, name: &str) -> Option<Finding> {
    let value = host.env_of_run(name).ok()??;
    let why = read(&value).err()?;
    let title = format!("{name} is {value}: {why}");
    let finding = Finding::new("shell.variable-breaks", title).because(
        "libtorch reads these options with the first tensor on a GPU, and stops at one that it cannot read",
    );
    // A corrected value is better than none, if it is right. WSL and Windows must not have expandable segments.
    let avoids_segments = host.is_wsl2().unwrap_or(false) || host.is_windows().unwrap_or(false);
    let corrected =
        if avoids_segments { without_segments(&value).unwrap_or_default() } else { corrected(&value) };
    let (finding, value) = if !corrected.is_empty() && read(&corrected).is_ok() {
        let finding = finding
            .remedy("write the options as name:value, with a colon, and commas between them; or unset the variable")
            .command(format!("export {name}={}", quote(&corrected)));
        (finding, Some(corrected))
    } else {
        (finding.command(format!("unset {name}")), None)
    };
    Some(finding.change(Change::Variable { name: name.to_owned(), value }))
}

/// Reads the options as libtorch does, which leaves out spaces; the error says what stops it.
fn read(value: &str) -> Result<(), String> {
    let text: String = value.chars().filter(|letter| *letter != ' ').collect();
    // A comma inside brackets belongs to a list.
    let mut depth = 0_i32;
    let options = text.split(|letter: char| {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        letter == ',' && depth == 0
    });
    options.filter(|option| !option.is_empty()).try_for_each(option)
}

fn option(text: &str) -> Result<(), String> {
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    if name.starts_with(['"', '\'']) {
        return Err("the quotes are a part of the value".to_owned());
    }
    if let Some((before, _)) = name.split_once('=') {
        return Err(format!("libtorch wants a colon after {before}, not an equals sign"));
    }
    if name == LARGE_SEGMENTS {
        return Ok(());
    }
    let Some((_, form)) = OPTIONS.iter().find(|(known, _)| *known == name) else {
        return Err(format!("libtorch 2.11 has no option {name}"));
    };
    if value.is_empty() {
        return Err(format!("{name} has no value"));
    }
    if *form != Form::Divisions && value.contains(':') {
        return Err("libtorch wants a comma between options".to_owned());
    }
    match form {
        Form::Switch if !matches!(value, "True" | "False") => {
            Err(format!("{name} is True or False, written like this"))
        }
        // libtorch reads the digits, and ignores what follows them.
        Form::Size(least) => match digits(value) {
            None => Err(format!("{name} is a number of MiB")),
            Some(size) if size < *least => Err(format!("{name} is at least {least}")),
            Some(_) => Ok(()),
        },
        Form::Fraction if !value.parse::<f64>().is_ok_and(|number| number > 0.0 && number < 1.0) => {
            Err(format!("{name} is between 0 and 1, such as 0.8"))
        }
        Form::Backend if !matches!(value, "native" | "cudaMallocAsync") => {
            Err(format!("{name} is native or cudaMallocAsync"))
        }
        Form::Divisions if !value.starts_with('[') && !digits(value).is_some_and(u64::is_power_of_two) => {
            Err(format!("{name} is a power of two, or a list such as [256:1,512:2]"))
        }
        _ => Ok(()),
    }
}

fn digits(value: &str) -> Option<u64> {
    let end = value.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(value.len());
    value[..end].parse().ok().or_else(|| value.starts_with('-').then_some(u64::MAX))
}

/// The value with the signs that libtorch wants, and without quotes that a file or a Windows prompt has added.
fn corrected(value: &str) -> String {
    let text = value.trim_matches(['"', '\'', ' ']).replace('=', ":").replace(';', ",");
    let options = text.split(',').map(|option| match option.split_once(':') {
        Some((name, on)) if is_switch(name) => match on.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => format!("{name}:True"),
            "false" | "0" | "off" | "no" => format!("{name}:False"),
            _ => option.to_owned(),
        },
        _ => option.to_owned(),
    });
    options.collect::<Vec<_>>().join(",")
}

/// Whether the value asks for expandable segments, also if libtorch cannot read it.
fn asks_for_segments(value: &str) -> bool {
    let value = corrected(value);
    value
        .split(',')
        .filter_map(|option| option.split_once(':'))
        .any(|(name, on)| is_segments(name) && on.trim().eq_ignore_ascii_case("true"))
}

/// The corrected value without expandable segments; `None` if no other option remains, or libtorch cannot read them.
fn without_segments(value: &str) -> Option<String> {
    let value = corrected(value);
    let others = value.split(',').filter(|option| !is_segments(option.split(':').next().unwrap_or_default()));
    let rest = others.map(str::trim).filter(|option| !option.is_empty()).collect::<Vec<_>>().join(",");
    (!rest.is_empty() && read(&rest).is_ok()).then_some(rest)
}

fn is_segments(name: &str) -> bool {
    name.trim() == "expandable_segments"
}

fn is_switch(name: &str) -> bool {
    OPTIONS.iter().any(|(known, form)| *known == name.trim() && *form == Form::Switch)
}

#[cfg(test)]
mod tests {
    use super::{asks_for_segments, corrected, read, without_segments};

    /// As libtorch 2.11 answered.
    #[test]
    fn libtorch_reads_these() {
        for value in [
            "",
            "max_split_size_mb:512",
            "max_split_size_mb: 512 , expandable_segments:True",
            "max_split_size_mb:512,",
            "max_split_size_mb:512MB",
            "max_split_size_mb:-1",
            "garbage_collection_threshold:0.8",
            "roundup_power2_divisions:4",
            "roundup_power2_divisions:[256:1,512:2,1024:4,>:8],expandable_segments:False",
            "backend:cudaMallocAsync",
            "pinned_num_register_threads:8,per_process_memory_fraction:0.5,large_segment_size_mb:30",
        ] {
            assert_eq!(read(value), Ok(()), "{value}");
        }
    }

    /// As libtorch 2.11 answered.
    #[test]
    fn libtorch_stops_at_these() {
        for (value, why) in [
            ("max_split_size_mb=512", "libtorch wants a colon after max_split_size_mb, not an equals sign"),
            ("expandable_segments:true", "expandable_segments is True or False, written like this"),
            ("expandable_segments:1", "expandable_segments is True or False, written like this"),
            (
                "garbage_collection_threshold:80",
                "garbage_collection_threshold is between 0 and 1, such as 0.8",
            ),
            ("max_split_size_mb:10", "max_split_size_mb is at least 20"),
            ("max_split_size_mb:abc", "max_split_size_mb is a number of MiB"),
            ("max_split_size_mb", "max_split_size_mb has no value"),
            ("'max_split_size_mb:128'", "the quotes are a part of the value"),
            ("foo:1", "libtorch 2.11 has no option foo"),
            ("backend:foo", "backend is native or cudaMallocAsync"),
            (
                "roundup_power2_divisions:3",
                "roundup_power2_divisions is a power of two, or a list such as [256:1,512:2]",
            ),
        ] {
            assert_eq!(read(value), Err(why.to_owned()), "{value}");
        }
        let semicolon = read("max_split_size_mb:512;expandable_segments:True");
        assert_eq!(semicolon, Err("libtorch wants a comma between options".to_owned()));
    }

    #[test]
    fn the_usual_mistakes_are_corrected() {
        assert_eq!(corrected("max_split_size_mb=512"), "max_split_size_mb:512");
        assert_eq!(corrected("'max_split_size_mb:128'"), "max_split_size_mb:128");
        assert_eq!(corrected("expandable_segments=true"), "expandable_segments:True");
        assert_eq!(
            corrected("max_split_size_mb:512;expandable_segments:True"),
            "max_split_size_mb:512,expandable_segments:True"
        );
    }

    #[test]
    fn expandable_segments_are_found_and_left_out_however_they_are_written() {
        for (value, rest) in [
            ("expandable_segments:True", None),
            ("expandable_segments:true", None),
            ("expandable_segments=True", None),
            ("'expandable_segments=TRUE'", None),
            ("max_split_size_mb=128;expandable_segments=1", Some("max_split_size_mb:128")),
            ("expandable_segments:True, max_split_size_mb:128", Some("max_split_size_mb:128")),
            ("expandable_segments:True,foo:1", None),
        ] {
            assert!(asks_for_segments(value), "{value}");
            assert_eq!(without_segments(value).as_deref(), rest, "{value}");
        }
        assert!(!asks_for_segments("expandable_segments:False,max_split_size_mb:128"));
    }

    proptest::proptest! {
        #[test]
        fn no_value_without_segments_asks_for_them(value in "[a-z_:=,;' ]{0,40}(expandable_segments[:=](True|true|1))?") {
            let rest = without_segments(&value).unwrap_or_default();
            proptest::prop_assert!(!asks_for_segments(&rest), "{}", rest);
        }
    }
}
