//! The libtorch that the environment variable `LIBTORCH` names: a libtorch, or Python's `torch` folder.

use std::fs;
use std::path::{Path, PathBuf};

use yolo_base::env::LIBTORCH;

use super::installation::Libtorch;
use super::installation::{A_HEADER, LIBTORCH_VERSION};
use crate::setup::checkout;
use crate::setup::error::{LibtorchError, SetupError};

/// `LIBTORCH`, unless it is the link that setup maintains, which cargo passes to every program it runs.
pub(super) fn named() -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(LIBTORCH).filter(|path| !path.is_empty())?);
    (path != checkout::link()).then_some(path)
}

pub(super) fn libtorch(named: &Path, want_headers: bool) -> Result<Libtorch, SetupError> {
    let wrong = |why: String| SetupError::from(LibtorchError::Named { path: named.to_owned(), why });
    // Python's site-packages, which contains `torch`, is accepted too.
    let candidates = [named.to_owned(), named.join("torch")];
    let root = candidates
        .into_iter()
        .find(|root| root.join("lib/libtorch_cpu.so").is_file())
        .ok_or_else(|| wrong("there is no lib/libtorch_cpu.so".into()))?;
    let root = std::path::absolute(&root).map_err(|error| wrong(error.to_string()))?;
    let version = version_of(&root)
        .ok_or_else(|| wrong("neither build-version nor version.py contains the version".into()))?;
    let (number, build) = version.split_once('+').unwrap_or((&version, ""));
    if number != LIBTORCH_VERSION {
        return Err(wrong(format!("libtorch {version} is installed, but yolo needs {LIBTORCH_VERSION}")));
    }
    let has_cuda = root.join("lib/libtorch_cuda.so").exists();
    let include = root.join(A_HEADER).is_file().then(|| root.join("include"));
    if want_headers && include.is_none() {
        return Err(LibtorchError::NoHeaders { path: root }.into());
    }
    let variant = match (build, has_cuda) {
        ("", true) => "cuda".to_owned(),
        ("", false) => "cpu".to_owned(),
        (build, _) => build.to_owned(),
    };
    Ok(Libtorch { lib_dir: root.join("lib"), include, variant, has_cuda, root })
}

/// `2.11.0` or `2.11.0+cu130`, from libtorch's `build-version` or Python's `version.py`.
fn version_of(root: &Path) -> Option<String> {
    if let Ok(text) = fs::read_to_string(root.join("build-version")) {
        return Some(text.trim().to_owned());
    }
    let text = fs::read_to_string(root.join("version.py")).ok()?;
    let line = text.lines().find(|line| line.starts_with("__version__"))?;
    line.split(['\'', '"']).nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_libtorch(version_file: &str, content: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("lib")).unwrap();
        fs::write(root.path().join("lib/libtorch_cpu.so"), "").unwrap();
        fs::write(root.path().join(version_file), content).unwrap();
        root
    }

    #[test]
    fn a_libtorch_of_this_version_is_taken() {
        let root = a_libtorch("build-version", "2.11.0+cpu\n");
        let found = libtorch(root.path(), false).unwrap();
        assert_eq!((found.variant.as_str(), found.has_cuda), ("cpu", false));
        assert!(matches!(
            libtorch(root.path(), true),
            Err(SetupError::Libtorch(LibtorchError::NoHeaders { .. }))
        ));
    }

    #[test]
    fn a_python_torch_is_taken_and_its_cuda_seen() {
        let text =
            "from typing import Optional\n__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n";
        let root = a_libtorch("version.py", text);
        fs::write(root.path().join("lib/libtorch_cuda.so"), "").unwrap();
        let found = libtorch(root.path(), false).unwrap();
        assert_eq!((found.variant.as_str(), found.has_cuda), ("cu130", true));
    }

    #[test]
    fn another_version_is_refused_by_name() {
        let root = a_libtorch("build-version", "2.7.1+cu126");
        let message = libtorch(root.path(), false).unwrap_err().to_string();
        assert!(message.contains("2.7.1+cu126") && message.contains("2.11.0"), "{message}");
    }

    #[test]
    fn a_folder_without_libtorch_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let message = libtorch(root.path(), false).unwrap_err().to_string();
        assert!(message.contains("no lib/libtorch_cpu.so"), "{message}");
    }
}
