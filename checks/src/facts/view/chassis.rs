//! Whether a machine is a laptop, from the chassis type in the firmware's tables or, if that is
//! unknown, from a battery. Batteries of mice and keyboards have other names.

use crate::facts::host::Host;

/// Portable, laptop, notebook, sub-notebook, tablet, convertible and detachable: SMBIOS 3.7, 7.4.1.
const PORTABLE: [&str; 7] = ["8", "9", "10", "14", "30", "31", "32"];
/// Other and unknown.
const UNKNOWN: [&str; 2] = ["1", "2"];

impl Host {
    /// Whether this is known to be a laptop.
    pub(crate) fn is_laptop(&self) -> bool {
        let chassis = self.text("/sys/class/dmi/id/chassis_type").ok().flatten();
        match chassis.as_deref().map(str::trim).filter(|kind| !UNKNOWN.contains(kind)) {
            Some(kind) => PORTABLE.contains(&kind),
            None => self.folder("/sys/class/power_supply").is_ok_and(|names| {
                names.is_some_and(|names| {
                    let mut numbers = names.iter().filter_map(|name| name.strip_prefix("BAT"));
                    numbers.any(|number| number.parse::<u32>().is_ok())
                })
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_chassis_type_or_a_battery_identifies_a_laptop() {
        let host = |files, supplies: &[&str]| {
            let folders = json!({ "/sys/class/power_supply": supplies });
            Host::from_value(json!({ "version": 1, "files": files, "folders": folders })).unwrap().0
        };
        let chassis = |kind: &str| json!({ "/sys/class/dmi/id/chassis_type": kind });
        assert!(host(chassis("10\n"), &[]).is_laptop());
        assert!(!host(chassis("3\n"), &["BAT0"]).is_laptop(), "a desktop with an uninterruptible supply");
        assert!(host(json!({}), &["AC", "BAT0"]).is_laptop());
        assert!(!host(json!({}), &["hidpp_battery_0"]).is_laptop());
    }
}
