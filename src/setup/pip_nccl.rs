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

/// The programs that may be the active Python, in the order of their age.
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
        options.nccl = Some(find(&PYTHONS)?);
    }
    Ok(options)
}

fn find(pythons: &[&str]) -> Result<PathBuf, NcclError> {
    let asked = pythons.iter().find_map(|python| Some((*python, folders(python)?)));
    let Some((python, folders)) = asked else { return Err(NcclError::NoPython) };
    let libraries =
        folders.lines().filter(|folder| !folder.is_empty()).map(|folder| Path::new(folder).join(LIBRARY));
    let found = libraries.into_iter().find(|library| library.is_file());
    found.ok_or_else(|| NcclError::NoPackage { python: python.to_owned() })
}

/// What this Python prints, if it is there and works.
fn folders(python: &str) -> Option<String> {
    // Isolated from the working folder, in which a `nvidia` folder of the user's may be.
    let output = Command::new(python)
        .args(["-c", FOLDERS])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A program that prints these folders, as Python would.
    fn python(folder: &Path, printed: &[&Path]) -> String {
        use std::os::unix::fs::PermissionsExt as _;

        let lines: Vec<String> = printed.iter().map(|path| format!("echo '{}'\n", path.display())).collect();
        let program = folder.join("python3");
        std::fs::write(&program, format!("#!/bin/sh\n{}", lines.concat())).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program.display().to_string()
    }

    #[test]
    fn the_library_is_in_the_first_folder_that_has_one() {
        let root = tempfile::tempdir().unwrap();
        let [standard, first, second] = ["standard", "first", "second"].map(|name| root.path().join(name));
        for packages in [&first, &second] {
            let library = packages.join(LIBRARY);
            std::fs::create_dir_all(library.parent().unwrap()).unwrap();
            std::fs::write(library, "").unwrap();
        }
        let both = python(root.path(), &[Path::new(""), &standard, &first, &second]);
        assert_eq!(find(&["no-such-python", &both]).unwrap(), first.join(LIBRARY));
        let neither = python(root.path(), &[&standard]);
        let error = find(&[&neither]).unwrap_err();
        assert_eq!(error.to_string(), format!("--nccl pip: {neither} has no package of NCCL"));
        let error = find(&["no-such-python"]).unwrap_err();
        assert_eq!(error.to_string(), "--nccl pip: there is no Python that could have the package");
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
