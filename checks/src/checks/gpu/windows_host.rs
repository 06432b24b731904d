//! A guest of Hyper-V that is not WSL and uses the GPU of its Windows host (GPU-PV). WSL brings the host's driver
//! along; the owner of such a guest copies its libraries, which must be complete and of the host's version. Neither
//! a Linux driver nor a restart of WSL helps here.

use crate::facts::{Host, NvmlState, nvml_error_text};
use crate::finding::Finding;
use crate::wsl::DRIVER_LIBRARIES;

/// What libcuda and NVML of the Windows driver open to reach the device. Newer versions of Windows do not keep it beside
/// the driver's own libraries, but with WSL.
const DXCORE: &str = "libdxcore.so";
/// What the libraries in that folder load: the driver itself.
const DRIVER: &str = "/usr/lib/wsl/drivers";

/// What to copy, in Windows.
const COPY: &str = "copy the driver from the Windows host again, all files of each folder: C:\\Program Files\\WSL\\lib and \
                    C:\\Windows\\System32\\lxss\\lib to /usr/lib/wsl/lib, and the folder nv*.inf_amd64_… of NVIDIA's driver in \
                    C:\\Windows\\System32\\DriverStore\\FileRepository to /usr/lib/wsl/drivers; or train in WSL 2, which \
                    needs no copies";

/// Why the driver of the Windows host does not work in this guest.
pub(super) fn silent(host: &Host, state: &NvmlState) -> Finding {
    let why = match state {
        NvmlState::Failed(code) => nvml_error_text(*code),
        _ => "the loader does not find its libraries".to_owned(),
    };
    let title = format!("the driver of the Windows host does not respond in this virtual machine: {why}");
    let finding = Finding::new("gpu.driver-silent", title);
    let finding = match missing_of_copy(host) {
        Some(missing) => finding
            .seen(missing)
            .because("this guest uses the GPU through a copy of the host's driver, and the copy is not complete"),
        None => finding.because(
            "this guest uses the GPU through a copy of the host's driver, which must be complete and of the same version: \
             an update of the driver on Windows makes the copy unusable",
        ),
    };
    finding
        .remedy(COPY)
        .command("echo /usr/lib/wsl/lib | sudo tee /etc/ld.so.conf.d/ld.wsl.conf && sudo ldconfig")
        .command("nvidia-smi")
}

/// What is known to be missing in the copy.
fn missing_of_copy(host: &Host) -> Option<String> {
    let is_empty = |path: &str| host.folder(path).map(|names| names.is_none_or(|names| names.is_empty()));
    if host.exists(&format!("{DRIVER_LIBRARIES}/{DXCORE}")) == Ok(false) {
        return Some(format!("{DRIVER_LIBRARIES} has no {DXCORE}"));
    }
    (is_empty(DRIVER) == Ok(true)).then(|| format!("{DRIVER} is empty or missing"))
}
