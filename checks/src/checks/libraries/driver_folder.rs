//! Folders in which a container, a notebook service or a distribution keeps the driver's libraries, and where the
//! loader does not search by itself.

use crate::facts::{Family, Host, Place};
use crate::finding::Finding;

/// The driver's own library.
pub(super) const NAME: &str = "libcuda.so.1";

/// In the order in which a system is likely to have them.
const FOLDERS: [&str; 13] = [
    // Google's clusters and its Container-Optimized OS.
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/home/kubernetes/bin/nvidia/lib64",
    "/var/lib/nvidia/lib64",
    // Colab.
    "/usr/lib64-nvidia",
    // NixOS.
    "/run/opengl-driver/lib",
    // NVIDIA's GPU operator.
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    "/run/nvidia/driver/usr/lib64",
    // Apptainer's --nv.
    "/.singularity.d/libs",
    // Debian, and older Ubuntu.
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/nvidia",
    // The usual ones: of another distribution, or not in the loader's cache.
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
];

/// The folder that has the driver's libcuda, if the loader does not find it.
pub(in crate::checks) fn unsearched(host: &Host) -> Option<String> {
    if !host.library(NAME).ok()?.is_empty() {
        return None;
    }
    let has_library = |folder: &String| host.exists(&format!("{folder}/{}", NAME)) == Ok(true);
    FOLDERS.into_iter().map(ToOwned::to_owned).chain(of_flatpak(host)).find(has_library)
}

/// Flatpak's extension with the driver, for programs in its sandbox.
fn of_flatpak(host: &Host) -> Option<String> {
    let version = host.driver_module_version().ok()??.to_string().replace('.', "-");
    Some(format!("/usr/lib/x86_64-linux-gnu/GL/nvidia-{version}/lib"))
}

/// Whether this is a terminal in Flatpak's sandbox, as that of an editor.
pub(super) fn is_in_flatpak(host: &Host) -> bool {
    host.exists("/.flatpak-info") == Ok(true)
}

/// The finding that the libraries are in this folder.
pub(super) fn finding(host: &Host, folder: &str) -> Finding {
    let title = format!("the NVIDIA driver's libraries are in {folder}, where the loader does not search");
    let finding = Finding::new("libraries.libcuda-missing", title);
    let export = format!("export LD_LIBRARY_PATH={folder}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}");
    if host.family() == Some(Family::NixOs) {
        return finding
            .because(format!(
                "NixOS keeps the driver's libraries in {folder}, where only programs built for NixOS look"
            ))
            .remedy(format!(
                "set the variable, or add {folder} to programs.nix-ld.libraries in configuration.nix"
            ))
            .command(export);
    }
    match host.place() {
        Place::Pod => finding
            .because("the node mounts its driver there, and the image does not set LD_LIBRARY_PATH to it")
            .remedy("set the variable in the pod's container, or in its image; for this shell, with the second line")
            .command(format!("env: [{{ name: LD_LIBRARY_PATH, value: {folder} }}]"))
            .command(export),
        Place::Machine if folder.starts_with("/usr/lib") => finding
            .remedy("let the loader read its folders again, or set the variable")
            .command("sudo ldconfig")
            .command(export),
        _ => finding.remedy("set the variable in the shell that starts yolo").command(export),
    }
}
