//! The checkout that this program was built from, and the link `.libtorch` that setup maintains in it.
//! `.cargo/config.toml` sets LIBTORCH to that link, so that cargo, tests and editors build against the
//! libtorch that setup installed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::dirs::YoloDirs;
use crate::setup::error::SetupError;
use crate::setup::libtorch::installation::{LIBTORCH_VERSION, Libtorch};

/// The checkout's path when this program was built. It may no longer exist.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Whether the trainer's source still exists.
pub(super) fn exists() -> bool {
    root().join("trainer/Cargo.toml").is_file()
}

/// The link, spelled as in cargo's LIBTORCH.
pub(super) fn link() -> PathBuf {
    root().join(".libtorch")
}

/// Whether the link points to what the trainer is built against.
pub(super) fn is_linked(dirs: &YoloDirs, libtorch: &Libtorch) -> bool {
    let target = if libtorch.has_cuda { build_folder(dirs) } else { libtorch.root.clone() };
    fs::read_link(link()).is_ok_and(|now| now == target)
}

fn build_folder(dirs: &YoloDirs) -> PathBuf {
    dirs.cache().join("libtorch-to-build-against")
}

/// Points the link to what the trainer is built against. Returns whether that changed.
pub(super) fn point_link(dirs: &YoloDirs, libtorch: &Libtorch) -> Result<bool, SetupError> {
    let target = if libtorch.has_cuda { without_cuda(dirs, libtorch)? } else { libtorch.root.clone() };
    let link = link();
    if fs::read_link(&link).is_ok_and(|now| now == target) {
        return Ok(false);
    }
    if link.is_dir() && !link.is_symlink() {
        let taken = std::io::Error::other("it is a folder, where setup needs a link; move it away");
        return Err(SetupError::file("replace", link)(taken));
    }
    // The new link is renamed over the old one, so that there is always a link.
    let new = root().join(format!(".libtorch.{}", std::process::id()));
    let _ = fs::remove_file(&new);
    symlink(&target, &new).map_err(SetupError::file("create", &new))?;
    fs::rename(&new, &link).map_err(SetupError::file("replace", &link))?;
    Ok(true)
}

#[cfg(unix)]
fn symlink(from: &Path, to: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(from, to)
}

/// Windows has different links for files and directories.
#[cfg(windows)]
fn symlink(from: &Path, to: &Path) -> std::io::Result<()> {
    use std::os::windows::fs::{symlink_dir, symlink_file};
    if from.is_dir() { symlink_dir(from, to) } else { symlink_file(from, to) }
}

/// A directory of links to the CPU part of a CUDA libtorch. torch-sys would link libtorch_cuda into the
/// trainer if it found it; the trainer opens it at run time instead.
fn without_cuda(dirs: &YoloDirs, libtorch: &Libtorch) -> Result<PathBuf, SetupError> {
    let folder = build_folder(dirs);
    let lib = folder.join("lib");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&lib).map_err(SetupError::file("create", &lib))?;
    let link = |from: &Path, to: PathBuf| symlink(from, &to).map_err(SetupError::file("create", to));
    link(&libtorch.root.join("include"), folder.join("include"))?;
    for from in [libtorch.lib_dir.clone()].into_iter().chain(nvidia_folders(&libtorch.root)) {
        for entry in fs::read_dir(&from).map_err(SetupError::file("read", &from))?.flatten() {
            let name = entry.file_name();
            let text = name.to_string_lossy();
            let wanted = ["libtorch_cpu", "libc10.", "libgomp", "libcupti.", "libcudart."];
            if wanted.iter().any(|start| text.starts_with(start)) && !lib.join(&name).exists() {
                link(&entry.path(), lib.join(&name))?;
            }
        }
    }
    let script = lib.join("libtorch.so");
    fs::write(&script, "INPUT ( libtorch_cpu.so libc10.so )\n").map_err(SetupError::file("write", script))?;
    let version = folder.join("build-version");
    fs::write(&version, LIBTORCH_VERSION).map_err(SetupError::file("write", version))?;
    Ok(folder)
}

/// `nvidia/*/lib` next to Python's `torch` package, which contains CUDA's libraries.
fn nvidia_folders(root: &Path) -> Vec<PathBuf> {
    let Some(nvidia) = root.parent().map(|packages| packages.join("nvidia")) else { return Vec::new() };
    let Ok(entries) = fs::read_dir(nvidia) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path().join("lib")).filter(|lib| lib.is_dir()).collect()
}

// On Windows, only administrators may create links.
#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_to_build_against_has_no_cuda_library() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("site-packages/torch");
        let nvidia = home.path().join("site-packages/nvidia/cu13/lib");
        fs::create_dir_all(root.join("lib")).unwrap();
        fs::create_dir_all(&nvidia).unwrap();
        for name in ["libtorch_cpu.so", "libtorch_cuda.so", "libc10.so", "libc10_cuda.so", "libtorch.so"] {
            fs::write(root.join("lib").join(name), name).unwrap();
        }
        fs::write(nvidia.join("libcupti.so.13"), "").unwrap();
        let libtorch = Libtorch {
            lib_dir: root.join("lib"),
            include: None,
            variant: "cu130".into(),
            has_cuda: true,
            root,
        };
        let dirs = YoloDirs::under(&home.path().join("yolo"));
        let folder = without_cuda(&dirs, &libtorch).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(folder.join("lib")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["libc10.so", "libcupti.so.13", "libtorch.so", "libtorch_cpu.so"]);
        assert!(fs::read_to_string(folder.join("lib/libtorch.so")).unwrap().starts_with("INPUT"));
    }
}
