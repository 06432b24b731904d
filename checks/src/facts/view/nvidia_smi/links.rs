//! `nvidia-smi nvlink -s`: below the line of each card, one for each of its links.

use serde_json::Value;

use super::Parsed;

pub(super) fn read(line: &str, text: &str, parsed: &mut Parsed) {
    if !line.split_whitespace().any(|word| word == "nvlink") {
        return;
    }
    let mut card = None;
    let mut links: Vec<(usize, Vec<Value>)> = Vec::new();
    for row in text.lines().map(str::trim) {
        if let Some(rest) = row.strip_prefix("GPU ") {
            card = rest
                .split(':')
                .next()
                .and_then(|number| number.parse().ok())
                .filter(|&number: &usize| number < 64);
            links.extend(card.map(|card| (card, Vec::new())));
        } else if let (Some(_), Some((_, state))) =
            (card, row.strip_prefix("Link ").and_then(|rest| rest.split_once(':')))
        {
            let is_active = !state.to_ascii_lowercase().contains("inactive");
            if let Some((_, states)) = links.last_mut() {
                states.push(is_active.into());
            }
        } else if row.to_ascii_lowercase().ends_with("all links are inactive")
            && let Some((_, states)) = links.last_mut()
        {
            // `NVML: Unable to retrieve NVLink information as all links are inActive`
            states.push(false.into());
        }
    }
    // Other outputs about links, such as their errors, have lines of the same beginning.
    let is_status =
        ["-s", "--status"].iter().any(|option| line.split_whitespace().any(|word| word == *option));
    for (card, states) in links.into_iter().filter(|(_, states)| is_status && !states.is_empty()) {
        parsed.put(card, "nvlinks", states);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn links_follow_the_line_of_their_card() {
        let text = "GPU 0: NVIDIA RTX A6000 (UUID: GPU-1)\n\t Link 0: 14.062 GB/s\n\t Link 1: <inactive>\n\
            GPU 1: NVIDIA RTX A6000 (UUID: GPU-2)\n\t Link 0: 14.062 GB/s\n";
        let mut parsed = Parsed::default();
        read("nvidia-smi nvlink -s", text, &mut parsed);
        assert_eq!(parsed.devices[&0]["nvlinks"], json!([true, false]));
        assert_eq!(parsed.devices[&1]["nvlinks"], json!([true]));
    }

    proptest! {
        #[test]
        fn any_output_is_read(text in "(GPU |[0-9]{1,3}|: |Link |<inactive>|\\PC|\n){0,30}") {
            read("nvidia-smi nvlink -s", &text, &mut Parsed::default());
        }
    }
}
