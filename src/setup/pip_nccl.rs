//! `--nccl pip`: the NCCL of NVIDIA's Python package, which is often newer than libtorch's. The active Python is
//! asked where its packages are, so that virtual environments and conda work as everywhere else.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use yolo_plan::options::TrainOptions;

use super::error::{NcclError, SetupError};

/// What the user writes instead of a file.
const PIP: &str = "pip";

/// The library's place in the folder of packages. The packages for CUDA 12 and 13 share it.
const LIBRARY: &str = "nvidia/nccl/lib/libnccl.so.2";

/// The programs that may be the active Python, the usual name first.
const PYTHONS: [&str; 2] = ["python3", "python"];

/// Prints the folders of packages, one per line.
const FOLDERS: &str = "import sys; print('\\n'.join(sys.path))";

/// The options with the library that the active Python has, where they say `--nccl pip`. Everything else is the name
/// of a file.
///
/// # Errors
/// When there is no Python, or it does not have the package.
pub fn with_named_nccl(options: &TrainOptions) -> Result<TrainOptions, SetupError> {
    let mut options = options.clone();
    if options.nccl.as_deref() == Some(Path::new(PIP)) {
        let asked = PYTHONS.iter().find_map(|python| Some((*python, folders(python)?)));
        let (python, folders) = asked.ok_or(NcclError::NoPython)?;
        options.nccl = Some(find(python, &folders)?);
    }
    Ok(options)
}

/// The library in the first of these folders, one per line, that has it.
fn find(python: &str, folders: &str) -> Result<PathBuf, NcclError> {
    let folders = folders.lines().filter(|folder| !folder.is_empty());
    let mut libraries = folders.map(|folder| Path::new(folder).join(LIBRARY));
    let found = libraries.find(|library| library.is_file());
    found.ok_or_else(|| NcclError::NoPackage { python: python.to_owned() })
}

/// What this Python prints, if it is there and works.
fn folders(python: &str) -> Option<String> {
    let output = Command::new(python)
        .args(["-c", FOLDERS])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_in_the_first_folder_that_has_one() {
        let root = tempfile::tempdir().unwrap();
        let [standard, first, second] = ["standard", "first", "second"].map(|name| root.path().join(name));
        for packages in [&first, &second] {
            let library = packages.join(LIBRARY);
            std::fs::create_dir_all(library.parent().unwrap()).unwrap();
            std::fs::write(library, "").unwrap();
        }
        let lines = |folders: &[&Path]| -> String {
            folders.iter().map(|folder| format!("{}\n", folder.display())).collect()
        };
        // Python's first folder is the working one, whose name is empty.
        let found = find("python3", &lines(&[Path::new(""), &standard, &first, &second])).unwrap();
        assert_eq!(found, first.join(LIBRARY));
        let error = find("python3", &lines(&[&standard])).unwrap_err();
        assert_eq!(error.to_string(), "--nccl pip: python3 has no package of NCCL");
    }

    #[test]
    fn a_program_that_is_not_there_has_no_folders() {
        assert_eq!(folders("no-such-python"), None);
    }

    #[test]
    fn other_words_are_files() {
        let named = |nccl: Option<&str>| {
            let options = TrainOptions { nccl: nccl.map(PathBuf::from), ..TrainOptions::default() };
            with_named_nccl(&options).unwrap().nccl
        };
        assert_eq!(named(Some("./pip")), Some(PathBuf::from("./pip")));
        assert_eq!(named(None), None);
    }
}
