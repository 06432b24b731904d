//! The numbers of device files, which must be those that the running kernel gave the driver.

use crate::facts::answer::Fact;
use crate::facts::host::Host;

impl Host {
    /// The device file of a card in this system: that of the first one if there are several. A container may have
    /// another card than the first of its machine.
    pub fn card_file(&self) -> Fact<Option<String>> {
        const FIRST: &str = "/dev/nvidia0";
        let first = self.exists(FIRST);
        if first == Ok(true) {
            return Ok(Some(FIRST.to_owned()));
        }
        let number = |name: &String| name.strip_prefix("nvidia")?.parse::<u32>().ok();
        let names = self.folder("/dev").ok().flatten();
        match names.and_then(|names| names.iter().filter_map(number).min()) {
            Some(number) => Ok(Some(format!("/dev/nvidia{number}"))),
            None => first.map(|_| None),
        }
    }

    /// The major number of a device file, if it is known.
    pub fn device_major(&self, path: &str) -> Option<u32> {
        let of_stat = self.stat(path).ok().flatten().and_then(|stat| stat.device);
        let of_stat = of_stat.and_then(|device| device.split(':').next()?.parse().ok());
        of_stat.or_else(|| self.major_of_tools(path))
    }

    /// The major number that the running kernel gave a driver, from /proc/devices.
    pub fn major_of_driver(&self, name: &str) -> Option<u32> {
        let devices = self.text("/proc/devices").ok().flatten()?;
        let line = devices.lines().map(str::split_whitespace).find_map(|mut words| {
            let number = words.next()?;
            (words.next() == Some(name)).then(|| number.to_owned())
        });
        line?.parse().ok()
    }

    /// From the recorded output of `ls -l` or `stat -c %t`, which is hexadecimal.
    fn major_of_tools(&self, path: &str) -> Option<u32> {
        let of_path = |(line, _): &(String, _)| line.ends_with(path);
        let listed = self.recorded_outputs("ls").into_iter().filter(of_path).find_map(|(_, output)| {
            let text = output.text();
            text.split_whitespace().find_map(|word| word.strip_suffix(',')?.parse().ok())
        });
        listed.or_else(|| {
            self.recorded_outputs("stat").into_iter().filter(of_path).find_map(|(line, output)| {
                let text = output.text();
                let first = text.split([':', ' ', ',']).next().filter(|_| line.contains("%t"))?;
                u32::from_str_radix(first.trim(), 16).ok()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_may_have_another_card_than_the_first() {
        let of = |names: serde_json::Value| {
            let recording = json!({ "version": 1, "folders": { "/dev": names } });
            Host::from_value(recording).unwrap().0.card_file()
        };
        let some = |name: &str| Ok(Some(name.to_owned()));
        assert_eq!(of(json!(["nvidia-uvm", "nvidia3", "nvidia12", "nvidiactl"])), some("/dev/nvidia3"));
        assert_eq!(of(json!(["nvidia0", "nvidia1"])), some("/dev/nvidia0"));
        assert_eq!(of(json!(["nvidiactl", "null"])), Ok(None));
        assert!(Host::from_value(json!({ "version": 1 })).unwrap().0.card_file().is_err());
    }

    #[test]
    fn the_number_is_known_from_several_sources() {
        let major = |section: &str, rows: serde_json::Value| {
            let recording = json!({ "version": 1, section: rows });
            Host::from_value(recording).unwrap().0.device_major("/dev/nvidia-uvm")
        };
        let stat = json!({ "/dev/nvidia-uvm": { "kind": "char", "device": "510:0" } });
        assert_eq!(major("stats", stat), Some(510));
        let listed = "crw-rw-rw- 1 root root 510, 0 Aug 25 08:11 /dev/nvidia-uvm\n";
        assert_eq!(major("commands", json!({ "ls -l /dev/nvidia-uvm": listed })), Some(510));
        assert_eq!(major("commands", json!({ "stat -c %t:%T /dev/nvidia-uvm": "1fe:0\n" })), Some(510));
        assert_eq!(major("commands", json!({})), None);
    }
}
