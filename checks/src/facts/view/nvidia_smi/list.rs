//! `nvidia-smi -L`: `GPU 0: NVIDIA A10 (UUID: GPU-466be1f8-…)`, followed by the MIG instances of the
//! card: `  MIG 1g.5gb     Device  0: (UUID: MIG-…)`.

use serde_json::Value;

use super::Parsed;

pub(super) fn read(text: &str, parsed: &mut Parsed) {
    let mut card = None;
    for line in text.lines().map(str::trim) {
        if let Some((index, rest)) = line.strip_prefix("GPU ").and_then(|rest| rest.split_once(": ")) {
            let Some(index) = index.parse::<usize>().ok().filter(|index| *index < 64) else { continue };
            let Some((name, uuid)) = rest.split_once(" (UUID: ") else { continue };
            parsed.put(index, "name", name);
            parsed.put(index, "uuid", uuid.trim_end_matches(')'));
            card = Some(index);
        } else if line.starts_with("MIG ") && line.contains("UUID: MIG-") {
            let Some(answers) = card.and_then(|index| parsed.devices.get_mut(&index)) else { continue };
            let instances = answers.get("mig_instances").and_then(Value::as_u64).unwrap_or(0);
            answers.insert("mig_mode".to_owned(), true.into());
            answers.insert("mig_instances".to_owned(), (instances + 1).into());
            let uuid = line.split("UUID: ").nth(1).unwrap_or_default().trim_end_matches(')');
            let device = serde_json::json!({ "uuid": uuid });
            match answers.get_mut("mig_devices") {
                Some(Value::Array(known)) => known.push(device),
                _ => drop(answers.insert("mig_devices".to_owned(), serde_json::json!([device]))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_and_their_mig_instances_are_counted() {
        let text = "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\n  \
                    MIG 3g.20gb     Device  0: (UUID: MIG-1)\n  \
                    MIG 3g.20gb     Device  1: (UUID: MIG-2)\n\
                    GPU 1: Tesla T4 (UUID: GPU-2)\n";
        let mut parsed = Parsed::default();
        read(text, &mut parsed);
        assert_eq!(parsed.devices[&0]["mig_instances"], 2);
        assert_eq!(
            parsed.devices[&0]["mig_devices"],
            serde_json::json!([{ "uuid": "MIG-1" }, { "uuid": "MIG-2" }])
        );
        assert_eq!(parsed.devices[&1]["name"], "Tesla T4");
        assert_eq!(parsed.devices[&1].get("mig_mode"), None);
    }
}
