//! Compute capabilities by the names of cards, for drivers and outputs that report only the name.
//! Source: NVIDIA's list of CUDA GPUs (developer.nvidia.com/cuda-gpus and its legacy page).

/// The capability of a card by its name; `None` if the name is unknown or truncated.
pub(crate) fn capability(name: &str) -> Option<(u32, u32)> {
    let name = name.trim().to_ascii_uppercase();
    if name.contains("...") {
        return None;
    }
    let words: Vec<&str> = name.split([' ', '-', '(', ')']).filter(|word| !word.is_empty()).collect();
    let has = |word: &str| words.contains(&word);
    if has("BLACKWELL") {
        return Some((12, 0));
    }
    if has("ADA") {
        return Some((8, 9));
    }
    if let Some(kind) = words.iter().position(|word| matches!(*word, "RTX" | "GTX" | "MX" | "GT")) {
        let number = words.get(kind + 1).and_then(|word| leading_number(word));
        let letter = words.get(kind + 1).is_some_and(|word| word.starts_with('A'));
        return match (words[kind], number) {
            ("RTX", Some(5050..=5090)) => Some((12, 0)),
            ("RTX", Some(4050..=4090)) => Some((8, 9)),
            ("RTX", Some(3050..=3090)) => Some((8, 6)),
            ("RTX", Some(2050)) => Some((8, 6)),
            ("RTX", Some(2060..=2080)) => Some((7, 5)),
            // Quadro RTX 3000 to 8000; the RTX A series succeeded them.
            ("RTX", Some(3000 | 4000 | 5000 | 6000 | 8000)) if has("QUADRO") => Some((7, 5)),
            ("RTX", _) if letter => Some((8, 6)),
            ("GTX", Some(1630..=1660)) => Some((7, 5)),
            ("GTX" | "GT", Some(1010..=1080)) => Some((6, 1)),
            ("GTX", Some(950..=980)) => Some((5, 2)),
            ("GTX", Some(745..=750)) => Some((5, 0)),
            _ => None,
        };
    }
    const BY_WORD: [(&[&str], (u32, u32)); 15] = [
        (&["B300", "GB300"], (10, 3)),
        (&["B200", "GB200", "B100"], (10, 0)),
        (&["H100", "H200", "H800", "H20", "GH200"], (9, 0)),
        (&["L4", "L40", "L40S", "L20"], (8, 9)),
        (&["A2", "A10", "A10G", "A16", "A40"], (8, 6)),
        (&["A100", "A800", "A30"], (8, 0)),
        (&["ORIN"], (8, 7)),
        (&["T4", "T4G", "T600", "T1000"], (7, 5)),
        (&["XAVIER"], (7, 2)),
        (&["V100", "V100S", "GV100"], (7, 0)),
        (&["P4", "P40", "P6"], (6, 1)),
        (&["P100", "GP100"], (6, 0)),
        (&["M4", "M40", "M60", "M6"], (5, 2)),
        (&["K80"], (3, 7)),
        (&["K40", "K40C", "K40M", "K20", "K20X", "K20M"], (3, 5)),
    ];
    let of_word = BY_WORD.iter().find(|(names, _)| names.iter().any(|name| has(name)));
    let of_word = of_word.map(|(_, capability)| *capability);
    of_word.or_else(|| match has("TITAN") {
        true if has("V") => Some((7, 0)),
        true if has("XP") => Some((6, 1)),
        _ => None,
    })
}

/// `4090`, also of `4090D`.
fn leading_number(word: &str) -> Option<u32> {
    let end = word.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(word.len());
    word[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_follow_from_names() {
        for (name, expected) in [
            ("NVIDIA GeForce RTX 5090", (12, 0)),
            ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", (12, 0)),
            ("NVIDIA RTX 6000 Ada Generation", (8, 9)),
            ("NVIDIA GeForce RTX 4070 Laptop GPU", (8, 9)),
            ("NVIDIA GeForce RTX 3090 Ti", (8, 6)),
            ("NVIDIA RTX A6000", (8, 6)),
            ("Quadro RTX 6000", (7, 5)),
            ("NVIDIA GeForce GTX 1660 SUPER", (7, 5)),
            ("GeForce GTX 1080 Ti", (6, 1)),
            ("NVIDIA A100-SXM4-40GB", (8, 0)),
            ("NVIDIA H100 NVL", (9, 0)),
            ("NVIDIA A10", (8, 6)),
            ("Tesla V100-SXM2-16GB", (7, 0)),
            ("Tesla T4", (7, 5)),
            ("Tesla K80", (3, 7)),
        ] {
            assert_eq!(capability(name), Some(expected), "{name}");
        }
    }

    #[test]
    fn a_truncated_name_gives_no_capability() {
        assert_eq!(capability("NVIDIA GeForce ..."), None);
        assert_eq!(capability("Graphics Device"), None);
    }
}
