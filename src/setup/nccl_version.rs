//! The version of the NCCL that ranks will use, as far as it can be told without loading it: libtorch's own is
//! pinned, and another has it in the name of its file or, in a Python package, next to it.

use std::path::Path;

use yolo_checks::facts::library_version;

use super::libtorch::NCCL_VERSION;

/// The version of the libnccl that `--nccl` names, or of libtorch's.
pub fn nccl_version(named: Option<&Path>) -> Option<String> {
    let Some(named) = named else { return Some(NCCL_VERSION.to_owned()) };
    // `libnccl.so.2` is often a link to `libnccl.so.2.30.7`.
    let file = named.canonicalize().ok()?;
    library_version(&file.to_string_lossy()).or_else(|| of_package(&file))
}

/// The version of the Python package of `nvidia/nccl/lib/libnccl.so.2`: that of `nvidia_nccl_cu13-2.30.7.dist-info`.
fn of_package(file: &Path) -> Option<String> {
    let packages = file.ancestors().nth(4)?;
    let mut found = std::fs::read_dir(packages).ok()?.flatten().filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let (_, version) =
            name.strip_prefix("nvidia_nccl_cu")?.strip_suffix(".dist-info")?.split_once('-')?;
        Some(version.to_owned())
    });
    // With several packages, nobody knows whose file it is.
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_in_the_name_or_next_to_it() {
        assert_eq!(nccl_version(None).as_deref(), Some(NCCL_VERSION));
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let file = root.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            file
        };
        assert_eq!(nccl_version(Some(&write("lib/libnccl.so.2.30.7"))).as_deref(), Some("2.30.7"));
        assert_eq!(nccl_version(Some(&write("lib/libnccl.so.2"))), None);
        let packaged = write("site/nvidia/nccl/lib/libnccl.so.2");
        write("site/nvidia_nccl_cu13-2.29.3.dist-info/METADATA");
        assert_eq!(nccl_version(Some(&packaged)).as_deref(), Some("2.29.3"));
        write("site/nvidia_nccl_cu12-2.28.9.dist-info/METADATA");
        assert_eq!(nccl_version(Some(&packaged)), None);
        assert_eq!(nccl_version(Some(Path::new("/nowhere/libnccl.so.2.30.7"))), None);
    }
}
