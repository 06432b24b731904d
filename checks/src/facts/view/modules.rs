//! Which kernel modules are loaded, from /proc/modules, /sys/module or a recorded `lsmod`.

use crate::facts::answer::{Fact, Unknown};
use crate::facts::host::Host;

impl Host {
    /// Whether a module such as `nouveau` or `nvidia_uvm` is loaded.
    pub fn has_module(&self, name: &str) -> Fact<bool> {
        let lists = |text: &str| text.lines().any(|line| line.split_whitespace().next() == Some(name));
        if let Ok(Some(text)) = self.text("/proc/modules") {
            return Ok(lists(&text));
        }
        if let Some((_, output)) = self.recorded_outputs("lsmod").first() {
            return Ok(lists(&output.text()));
        }
        self.exists(&format!("/sys/module/{name}"))
            .map_err(|_| Unknown(format!("it is unknown whether the kernel module {name} is loaded")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn has_nouveau(sections: Value) -> Fact<bool> {
        let mut recording = json!({ "version": 1 });
        recording.as_object_mut().unwrap().extend(sections.as_object().unwrap().clone());
        Host::from_value(recording).unwrap().0.has_module("nouveau")
    }

    #[test]
    fn a_module_is_found_in_each_source() {
        let table = "nouveau 2306048 3 - Live 0x0\nvideo 65536 1 nouveau, Live 0x0\n";
        assert_eq!(has_nouveau(json!({ "files": { "/proc/modules": table } })), Ok(true));
        assert_eq!(
            has_nouveau(json!({ "commands": { "lsmod": "Module Size Used by\nnvidia 1 0\n" } })),
            Ok(false)
        );
        assert_eq!(
            has_nouveau(json!({ "folders": { "/sys/module": ["nouveau"], "/sys/module/nouveau": [] } })),
            Ok(true)
        );
        assert!(has_nouveau(json!({})).is_err());
    }
}
