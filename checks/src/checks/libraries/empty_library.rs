//! A library of the driver that is an empty file. An image that is built, or a container that is saved, while NVIDIA's
//! runtime shows the host's libraries in it keeps the places of these as empty files, and the loader takes them
//! (`libcuda.so.1: file too short`).

use crate::facts::Host;
use crate::finding::Finding;

/// The libraries that a program opens first.
const NAMES: [&str; 2] = ["libcuda.so.1", "libnvidia-ml.so.1"];
/// Deletes what is empty among the driver's files, and nothing else.
const DELETE: &str = "find /usr/lib /usr/lib64 /lib -name '*.so*' -size 0 '(' -name 'libcuda*' -o -name 'libnv*' ')' -exec rm {} +";

/// The finding, if the loader finds such a file first.
pub(super) fn find(host: &Host) -> Option<Finding> {
    if !host.is_container() {
        return None;
    }
    let path = NAMES.iter().find_map(|name| {
        let first = host.library(name).ok()?.into_iter().next()?;
        let path = first.real.unwrap_or(first.path);
        let size = host.stat(&path).ok()??.size;
        (size == Some(0)).then_some(path)
    })?;
    let title = format!("the driver's library {path} is an empty file, so that no program can use the GPU");
    Some(
        Finding::new("libraries.libcuda-missing", title)
            .because(
                "the image was built, or this container saved, while the libraries of a host with another driver were shown in it: their \
                 places have stayed as empty files, which the loader finds first (`file too short`)",
            )
            .remedy(
                "delete the empty files of the driver and have the loader look again; if the libraries are then missing, start the \
                 container with the GPUs (`--gpus all`, or `--device nvidia.com/gpu=all`); in Distrobox stop the container and enter it \
                 again; build the image anew where NVIDIA's runtime is not Docker's default",
            )
            .command(DELETE)
            .command("ldconfig"),
    )
}
