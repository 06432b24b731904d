//! Finds a libtorch 2.11 with CUDA on this machine: the one that `LIBTORCH` names, the one of Python's
//! PyTorch, or a variant that `yolo setup` installed. A rehearsal needs no CUDA.

use std::path::{Path, PathBuf};
use std::process::Command;

use yolo_base::env::{HOME, LIBTORCH, XDG_DATA_HOME, YOLO_HOME};

/// The version that the kit's programs are built for.
const NUMBER: &str = "2.11.0";

/// A libtorch on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Libtorch {
    /// The folder that contains `lib`.
    pub root: PathBuf,
    /// `2.11.0+cu130`.
    pub version: String,
}

/// Where a libtorch may be, and why it is looked for there.
struct Place {
    what: &'static str,
    root: PathBuf,
}

/// Finds libtorch.
///
/// # Errors
/// When there is none; the message says why each place was rejected and what to do.
pub fn find(needs_cuda: bool) -> Result<Libtorch, String> {
    let mut rejected = Vec::new();
    for place in places() {
        match usable(&place.root, needs_cuda) {
            Ok(version) => return Ok(Libtorch { root: place.root, version }),
            Err(why) => rejected.push(format!("{} ({}) {why}", place.what, place.root.display())),
        }
    }
    let kind = if needs_cuda { "libtorch 2.11 with CUDA" } else { "libtorch 2.11" };
    rejected.insert(0, format!("there is no {kind}"));
    rejected.push(format!("install PyTorch {NUMBER} in the Python that `python3` starts, or set LIBTORCH"));
    Err(rejected.join("; "))
}

fn places() -> Vec<Place> {
    let mut places = Vec::new();
    if let Some(root) = std::env::var_os(LIBTORCH).filter(|value| !value.is_empty()) {
        // A libtorch that the user names is used or refused, but never passed over.
        return vec![Place { what: "LIBTORCH", root: without_links(Path::new(&root)) }];
    }
    places.extend(of_python().map(|root| Place { what: "Python's torch", root }));
    places.extend(installed().into_iter().map(|root| Place { what: "the installed libtorch", root }));
    places
}

/// The folder itself, for programs that start in another folder. `yolo` ignores a LIBTORCH that is the link of its
/// checkout, because cargo sets it for everything that it starts.
fn without_links(root: &Path) -> PathBuf {
    std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned())
}

/// The `torch` folder of the Python that `python3` starts. Torch is found, but not imported.
fn of_python() -> Option<PathBuf> {
    let script =
        "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0])";
    let output = Command::new("python3").args(["-c", script]).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !path.trim().is_empty()).then(|| PathBuf::from(path.trim()))
}

/// The variants that `yolo setup` installed, those with CUDA first.
fn installed() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = variable(YOLO_HOME)
        .map(|home| home.join("data"))
        .or_else(|| variable(XDG_DATA_HOME).map(|data| data.join("yolo")))
        .or_else(|| variable(HOME).map(|home| home.join(".local/share/yolo")));
    let Some(folder) = data.map(|data| data.join("libtorch")) else { return Vec::new() };
    ["cu130", "cu128", "cu126", "cpu"]
        .iter()
        .map(|variant| folder.join(format!("{NUMBER}-{variant}")))
        .filter(|root| root.is_dir())
        .collect()
}

/// The version of the libtorch in this folder, or why it cannot be used.
fn usable(root: &Path, needs_cuda: bool) -> Result<String, String> {
    if !root.join("lib/libtorch_cpu.so").is_file() {
        return Err("has no lib/libtorch_cpu.so".to_owned());
    }
    let version = version(root).ok_or("does not state its version")?;
    if version.split('+').next() != Some(NUMBER) {
        return Err(format!("is {version}, not {NUMBER}"));
    }
    if needs_cuda && !root.join("lib/libtorch_cuda.so").is_file() {
        return Err(format!("is {version}, which has no CUDA"));
    }
    Ok(version)
}

/// From libtorch's `build-version` or Python's `version.py`.
fn version(root: &Path) -> Option<String> {
    if let Ok(text) = std::fs::read_to_string(root.join("build-version")) {
        return Some(text.trim().to_owned());
    }
    let text = std::fs::read_to_string(root.join("version.py")).ok()?;
    let line = text.lines().find(|line| line.starts_with("__version__"))?;
    line.split(['\'', '"']).nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn libtorch(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("lib")).unwrap();
        for (name, content) in files {
            std::fs::write(root.path().join(name), content).unwrap();
        }
        root
    }

    #[test]
    fn python_with_cuda_is_usable() {
        let root = libtorch(&[
            ("version.py", "from typing import Optional\n__version__ = '2.11.0+cu130'\n"),
            ("lib/libtorch_cpu.so", ""),
            ("lib/libtorch_cuda.so", ""),
        ]);
        assert_eq!(usable(root.path(), true), Ok("2.11.0+cu130".to_owned()));
    }

    #[test]
    fn a_rejected_libtorch_has_a_reason() {
        let cpu = libtorch(&[("build-version", "2.11.0+cpu\n"), ("lib/libtorch_cpu.so", "")]);
        assert_eq!(usable(cpu.path(), false), Ok("2.11.0+cpu".to_owned()));
        assert_eq!(usable(cpu.path(), true), Err("is 2.11.0+cpu, which has no CUDA".to_owned()));
        let old = libtorch(&[("build-version", "2.7.1+cu126"), ("lib/libtorch_cpu.so", "")]);
        assert_eq!(usable(old.path(), true), Err("is 2.7.1+cu126, not 2.11.0".to_owned()));
        assert_eq!(usable(Path::new("/nowhere"), true), Err("has no lib/libtorch_cpu.so".to_owned()));
        let nameless = libtorch(&[("lib/libtorch_cpu.so", "")]);
        assert_eq!(usable(nameless.path(), true), Err("does not state its version".to_owned()));
    }

    #[test]
    fn the_link_of_a_checkout_is_followed() {
        let root = libtorch(&[("lib/libtorch_cpu.so", "")]);
        let checkout = tempfile::tempdir().unwrap();
        let link = checkout.path().join(".libtorch");
        std::os::unix::fs::symlink(root.path(), &link).unwrap();
        assert_eq!(without_links(&link), std::fs::canonicalize(root.path()).unwrap());
        assert_eq!(without_links(Path::new("/nowhere")), Path::new("/nowhere"));
    }
}
