//! What kind of machine this is, by the firmware's tables. A laptop has a chassis type of its own or, if that is
//! unknown, a battery; batteries of mice and keyboards have other names. A virtual machine has the name of its
//! hypervisor or cloud.

use crate::facts::host::Host;

/// Portable, laptop, notebook, sub-notebook, tablet, convertible and detachable: SMBIOS 3.7, 7.4.1.
const PORTABLE: [&str; 7] = ["8", "9", "10", "14", "30", "31", "32"];
/// Other and unknown.
const UNKNOWN: [&str; 2] = ["1", "2"];

/// How hypervisors and clouds name their machines, in the vendor or the product.
const OF_HYPERVISORS: [&str; 12] = [
    "QEMU",
    "KVM",
    "VMware",
    "VirtualBox",
    "innotek",
    "Virtual Machine",
    "Xen",
    "Amazon EC2",
    "Google Compute Engine",
    "DigitalOcean",
    "OpenStack",
    "Bochs",
];

impl Host {
    /// Whether this is known to be a virtual machine, whose devices the host's IOMMU may redirect.
    pub(crate) fn is_virtual_machine(&self) -> bool {
        ["sys_vendor", "product_name"].iter().any(|name| {
            let text = self.text(&format!("/sys/class/dmi/id/{name}")).ok().flatten().unwrap_or_default();
            OF_HYPERVISORS.iter().any(|word| text.contains(word))
        })
    }

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
    fn a_virtual_machine_is_named_after_its_hypervisor() {
        let host = |vendor: &str, product: &str| {
            let files =
                json!({ "/sys/class/dmi/id/sys_vendor": vendor, "/sys/class/dmi/id/product_name": product });
            Host::from_value(json!({ "version": 1, "files": files })).unwrap().0
        };
        assert!(host("QEMU\n", "Standard PC (Q35 + ICH9, 2009)\n").is_virtual_machine());
        assert!(host("Microsoft Corporation\n", "Virtual Machine\n").is_virtual_machine());
        assert!(!host("Supermicro\n", "AS -4124GS-TNR\n").is_virtual_machine());
    }

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
