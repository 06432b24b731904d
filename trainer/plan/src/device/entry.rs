//! The grammar of `--device`: entries between commas, each of them the CPU, all GPUs, a number, or the
//! beginning of a UUID.

/// One entry of `--device`, before it is looked up on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// `cpu`.
    Cpu,
    /// `all`: every GPU, and every MIG instance of GPUs that are divided.
    All,
    /// `0`, `cuda:0` or `cuda`, which is the first: a GPU by nvidia-smi's number.
    Number(usize),
    /// `GPU-…`: the beginning of a GPU's UUID.
    Gpu(String),
    /// `MIG-…`: the beginning of a MIG instance's UUID.
    Mig(String),
}

/// The entries of an argument, or the one that is none.
///
/// # Errors
/// With the text of the first invalid entry.
pub fn entries(argument: &str) -> Result<Vec<Entry>, &str> {
    argument.trim().split(',').map(|text| entry(text.trim()).ok_or(text.trim())).collect()
}

fn entry(text: &str) -> Option<Entry> {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "cpu" => return Some(Entry::Cpu),
        "all" => return Some(Entry::All),
        "cuda" => return Some(Entry::Number(0)),
        _ => {}
    }
    for (prefix, of) in [("GPU-", Entry::Gpu as fn(String) -> Entry), ("MIG-", Entry::Mig)] {
        if let Some(uuid) = lower.strip_prefix(&prefix.to_ascii_lowercase()) {
            let is_uuid = uuid.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
            return is_uuid.then(|| of(format!("{prefix}{uuid}")));
        }
    }
    let number = lower.strip_prefix("cuda:").unwrap_or(&lower);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| number.parse().ok()).flatten().map(Entry::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_between_commas() {
        assert_eq!(
            entries(" 0, cuda:3,CPU,all,gpu-4F,MIG-0a-1 ").unwrap(),
            [
                Entry::Number(0),
                Entry::Number(3),
                Entry::Cpu,
                Entry::All,
                Entry::Gpu("GPU-4f".into()),
                Entry::Mig("MIG-0a-1".into()),
            ]
        );
        for (argument, wrong) in [("0,", ""), ("1,gpu", "gpu"), ("0,cuda0", "cuda0"), ("GPU-xyz", "GPU-xyz")]
        {
            assert_eq!(entries(argument), Err(wrong), "{argument}");
        }
    }
}
