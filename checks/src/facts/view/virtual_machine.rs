//! Whether this system is a guest in a virtual machine, from the names that the firmware gives the machine.
//! Most kinds have no NVIDIA card unless somebody gave them one.

use crate::facts::host::Host;

/// Where Windows keeps what the firmware says.
const BIOS: &str = r"HKLM\HARDWARE\DESCRIPTION\System\BIOS";

/// The kind of a virtual machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guest {
    /// A program on a desktop that cannot pass a card on: VirtualBox, Parallels.
    Desktop(&'static str),
    /// VMware, on a PC or a server.
    VmWare,
    /// Hyper-V, on a PC or a server.
    HyperV,
    /// QEMU, as Proxmox and virt-manager run it.
    Qemu,
    /// A machine that somebody rents out.
    Cloud(&'static str),
}

impl Guest {
    /// Its display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Desktop(name) | Self::Cloud(name) => name,
            Self::VmWare => "VMware",
            Self::HyperV => "Hyper-V",
            Self::Qemu => "QEMU",
        }
    }
}

/// What vendor or product of the machine are called, in lower case; the first that applies wins. Machines in a
/// cloud often have the names of the program that runs them as well.
const NAMES: [(&str, Guest); 16] = [
    ("virtualbox", Guest::Desktop("VirtualBox")),
    ("innotek", Guest::Desktop("VirtualBox")),
    ("parallels", Guest::Desktop("Parallels")),
    ("vmware", Guest::VmWare),
    ("amazon ec2", Guest::Cloud("Amazon EC2")),
    ("google compute engine", Guest::Cloud("Google Compute Engine")),
    ("digitalocean", Guest::Cloud("DigitalOcean")),
    ("hetzner", Guest::Cloud("Hetzner Cloud")),
    ("openstack", Guest::Cloud("OpenStack")),
    ("alibaba cloud", Guest::Cloud("Alibaba Cloud")),
    ("linode", Guest::Cloud("Linode")),
    ("vultr", Guest::Cloud("Vultr")),
    ("scaleway", Guest::Cloud("Scaleway")),
    ("qemu", Guest::Qemu),
    // QEMU as Red Hat names it, and old versions of it.
    ("kvm", Guest::Qemu),
    ("bochs", Guest::Qemu),
];

impl Host {
    /// Whether this is known to be a virtual machine, whose devices the host's IOMMU may redirect.
    pub(crate) fn is_virtual_machine(&self) -> bool {
        // Xen says so for its own guests and for those of clouds, so that it is no kind of its own.
        let is_xen = || self.firmware("sys_vendor").contains("xen");
        self.guest().is_some() || is_xen()
    }

    /// Whether it is a whole machine of a cloud, such as an instance of the type `c5.metal`.
    pub(crate) fn is_bare_metal(&self) -> bool {
        self.firmware("product_name").trim().split('-').next().is_some_and(|name| name.ends_with(".metal"))
    }

    /// What the firmware says, in lower case. Windows keeps it in its registry.
    fn firmware(&self, name: &str) -> String {
        let text = if self.is_windows() == Ok(true) {
            let value = if name == "sys_vendor" { "SystemManufacturer" } else { "SystemProductName" };
            self.registry(&format!(r"{BIOS}\{value}")).ok().flatten().or_else(|| self.of_systeminfo(name))
        } else {
            self.text(&format!("/sys/class/dmi/id/{name}")).ok().flatten()
        };
        text.unwrap_or_default().to_lowercase()
    }

    /// The line of a recorded `systeminfo` in English.
    fn of_systeminfo(&self, name: &str) -> Option<String> {
        let label = if name == "sys_vendor" { "System Manufacturer:" } else { "System Model:" };
        let texts = self.recorded_texts("systeminfo");
        let line =
            |text: &String| text.lines().find_map(|line| Some(line.strip_prefix(label)?.trim().to_owned()));
        texts.iter().find_map(line)
    }

    /// The kind of virtual machine that this system is known to be.
    pub fn guest(&self) -> Option<Guest> {
        let (vendor, product) = (self.firmware("sys_vendor"), self.firmware("product_name"));
        if vendor.contains("microsoft") && product.trim() == "virtual machine" {
            // Azure's machines have the names of Hyper-V's, and its agent.
            let is_azure =
                ["/var/lib/waagent", r"C:\WindowsAzure"].iter().any(|path| self.exists(path) == Ok(true));
            return Some(if is_azure { Guest::Cloud("Azure") } else { Guest::HyperV });
        }
        NAMES
            .iter()
            .find(|(name, _)| vendor.contains(name) || product.contains(name))
            .map(|(_, guest)| *guest)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Guest, Host};

    /// A machine whose firmware has these names.
    fn named(vendor: &str, product: &str) -> Host {
        let files =
            json!({ "/sys/class/dmi/id/sys_vendor": vendor, "/sys/class/dmi/id/product_name": product });
        Host::from_value(json!({ "version": 1, "os": "linux", "files": files })).unwrap().0
    }

    #[test]
    fn guests_are_known_by_vendor_and_product() {
        let guest = |vendor: &str, product: &str| named(vendor, product).guest();
        assert_eq!(guest("innotek GmbH\n", "VirtualBox\n"), Some(Guest::Desktop("VirtualBox")));
        assert_eq!(guest("VMware, Inc.\n", "VMware20,1\n"), Some(Guest::VmWare));
        assert_eq!(
            guest("Parallels International GmbH.\n", "Parallels Virtual Platform\n"),
            Some(Guest::Desktop("Parallels"))
        );
        assert_eq!(guest("QEMU\n", "Standard PC (Q35 + ICH9, 2009)\n"), Some(Guest::Qemu));
        assert_eq!(guest("Microsoft Corporation\n", "Virtual Machine\n"), Some(Guest::HyperV));
        assert_eq!(guest("Microsoft Corporation\n", "Surface Laptop 5\n"), None);
        assert_eq!(guest("Google\n", "Google Compute Engine\n"), Some(Guest::Cloud("Google Compute Engine")));
        assert_eq!(guest("Red Hat\n", "KVM\n"), Some(Guest::Qemu));
        assert_eq!(guest("ASUS\n", "System Product Name\n"), None);
        assert!(named("Amazon EC2\n", "m7i.metal-24xl\n").is_bare_metal());
        assert!(!named("Amazon EC2\n", "g5.xlarge\n").is_bare_metal());
    }

    #[test]
    fn every_guest_is_a_virtual_machine_and_so_is_one_of_xen() {
        for (vendor, product) in
            [("QEMU\n", "Standard PC\n"), ("Hetzner\n", "vServer\n"), ("Xen\n", "HVM domU\n")]
        {
            assert!(named(vendor, product).is_virtual_machine(), "{vendor}");
        }
        assert!(!named("Supermicro\n", "AS -4124GS-TNR\n").is_virtual_machine());
    }
}
