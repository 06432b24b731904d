//! What keeps a module of the driver that is installed from being loaded, and whether the kernel takes only modules that
//! are signed: facts that the checks of the module share.

use crate::facts::Host;
use crate::finding::Finding;

/// Kernel messages when Secure Boot blocks a module.
pub(super) const REFUSED: [&str; 5] = [
    "unsigned module loading is restricted",
    "Key was rejected by service",
    "Loading of unsigned module is rejected",
    "Loading of module with unavailable key is rejected",
    "Required key not available",
];
/// The UEFI variable for Secure Boot, whose last byte is 1 if it is on.
const SECURE_BOOT: &str = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

/// A module that is built, and that a setting keeps from being loaded: programs that switch a laptop to its other card
/// leave such a file, and so do guides against nouveau that name too much.
pub(super) fn forbidden_to_load(host: &Host) -> Option<Finding> {
    let (place, remedy) = match forbidding(host, "nvidia")? {
        Forbidding::Option(option) => (
            format!("`{option}` in the kernel command line"),
            "remove that option from the kernel command line, then restart".to_owned(),
        ),
        Forbidding::File(file) => {
            let remedy = format!(
                "if a program such as envycontrol or prime-select wrote {file}, switch the card on with it; otherwise remove the \
                 line for nvidia from the file and rebuild the initramfs, then restart"
            );
            (file, remedy)
        }
    };
    let title = format!("the NVIDIA driver's module is not allowed to load: {place} forbids it");
    Some(
        Finding::new("gpu.switched-off", title)
            .because("the module is installed, and a setting of this system keeps it from being loaded")
            .remedy(remedy),
    )
}

/// What forbids a module to load.
pub(super) enum Forbidding {
    /// An option of the kernel command line.
    Option(String),
    /// A file of modprobe.
    File(String),
}

pub(super) fn forbidding(host: &Host, module: &str) -> Option<Forbidding> {
    let line = host.text("/proc/cmdline").ok().flatten().unwrap_or_default();
    let names_it = |list: &str| list.split(',').any(|one| one.trim() == module);
    // `rd.driver.blacklist` is for the initramfs only, which is enough for a module that nothing loads later.
    let option = line.split_whitespace().find(|word| {
        ["modprobe.blacklist=", "module_blacklist=", "rd.driver.blacklist="]
            .iter()
            .filter(|name| module == "nvidia" || !name.starts_with("rd."))
            .any(|name| word.strip_prefix(name).is_some_and(names_it))
    });
    if let Some(option) = option {
        return Some(Forbidding::Option(option.to_owned()));
    }
    let rule = |text: &str| {
        text.lines().map(str::trim).any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.starts_with(&["blacklist", module])
                || words.starts_with(&["install", module])
                    && words.last().is_some_and(|last| *last == "/bin/false" || *last == "/bin/true")
                || words.starts_with(&["alias", module, "off"])
        })
    };
    let folders = ["/etc/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d", "/run/modprobe.d"];
    let file = folders.iter().find_map(|folder| {
        let names = host.folder(folder).ok().flatten()?;
        let files =
            names.into_iter().filter(|name| name.ends_with(".conf")).map(|name| format!("{folder}/{name}"));
        files.into_iter().find(|file| host.text(file).ok().flatten().is_some_and(|text| rule(&text)))
    });
    file.map(Forbidding::File)
}

/// Whether Secure Boot is on, as far as known.
pub(super) fn secure_boot(host: &Host) -> bool {
    let state = host.command(&["mokutil", "--sb-state"]).ok().flatten().map(|output| output.all_text());
    match state {
        Some(text) if text.contains("SecureBoot") => text.contains("SecureBoot enabled"),
        _ => host.file(SECURE_BOOT).ok().flatten().is_some_and(|bytes| bytes.last() == Some(&1)),
    }
}

/// Whether this kernel may refuse modules, as far as known: Secure Boot alone does not make it, on distributions whose
/// kernels are not locked down then, and the distribution's own signature is accepted.
pub(super) fn may_refuse(host: &Host) -> bool {
    const TRUSTED: [&str; 4] = ["Canonical", "openSUSE", "SUSE Linux", "Red Hat"];
    let text = |path: &str| host.text(path).ok().flatten();
    let is_open = text("/sys/kernel/security/lockdown").is_some_and(|text| text.contains("[none]"));
    let enforces = text("/sys/module/module/parameters/sig_enforce").is_some_and(|text| text.trim() == "Y");
    let signer = host.command(&["modinfo", "-F", "signer", "nvidia"]).ok().flatten();
    let is_trusted = signer.is_some_and(|output| TRUSTED.iter().any(|name| output.text().contains(name)));
    (!is_open || enforces) && !is_trusted
}

/// Whether the module was built for the running kernel; `None` if unknown.
pub(super) fn is_built(host: &Host) -> Option<bool> {
    let kernel = host.kernel_release().ok()?;
    let lines = module_lines(host);
    if !lines.is_empty() {
        let of_kernel = |line: &String| line.split([',', ':']).any(|word| word.trim() == kernel);
        return Some(lines.iter().any(|line| of_kernel(line) && line.contains("installed")));
    }
    if let Ok(Some(found)) = host.command(&["modinfo", "-F", "version", "nvidia"]) {
        return Some(found.succeeded());
    }
    // A recording may have the same question in other words.
    let recorded = host.recorded_outputs("modinfo");
    recorded.iter().find(|(words, _)| words.ends_with(" nvidia")).map(|(_, output)| output.succeeded())
}

/// `nvidia/535.113.01, 6.2.0-34-generic, x86_64: installed`
pub(super) fn module_lines(host: &Host) -> Vec<String> {
    let status = host.command(&["dkms", "status"]).ok().flatten().map(|output| output.text());
    let status = status.unwrap_or_default();
    status.lines().map(str::trim).filter(|line| line.starts_with("nvidia")).map(ToOwned::to_owned).collect()
}
