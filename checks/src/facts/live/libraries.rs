//! Shared libraries as the loader finds them for `yolo-trainer`, without loading any: first the run paths of the older
//! kind (DT_RPATH), then LD_LIBRARY_PATH, in which `yolo` puts libtorch's folder first, then the newer run paths
//! (DT_RUNPATH) of the trainer and of libtorch, then ld.so.cache, then the loader's own folders.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value, json};
use yolo_base::env::LD_LIBRARY_PATH;

use super::{elf, loader_cache};
use crate::facts::view::library_version;

/// The loader's built-in folders, with those of Debian's multi-architecture layout.
const DEFAULT: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// The folders of this machine's loader, read when the first library is asked for.
#[derive(Debug, Default)]
pub(super) struct Loader {
    trainer: Option<PathBuf>,
    libtorch: Option<PathBuf>,
    folders: OnceLock<Folders>,
    cache: OnceLock<Vec<(String, String)>>,
}

/// The folders in which the loader searches, with what names them.
#[derive(Debug, Default)]
struct Folders {
    /// Those of libtorch's DT_RPATH, for what it needs.
    first: Vec<(PathBuf, &'static str)>,
    /// All others.
    all: Vec<(PathBuf, &'static str)>,
    /// What the trainer needs itself is loaded before libtorch is asked.
    of_trainer: Vec<String>,
}

impl Loader {
    /// The loader with the search path of these programs.
    pub(super) fn of_programs(trainer: Option<&str>, libtorch: Option<&str>) -> Self {
        Self { trainer: trainer.map(PathBuf::from), libtorch: libtorch.map(PathBuf::from), ..Self::default() }
    }

    /// Every path at which the loader would find a library, in search order.
    pub(super) fn ask(&self, name: &str) -> Value {
        let mut found: Vec<(PathBuf, &str)> = Vec::new();
        let mut add = |path: PathBuf, via: &'static str| {
            if found.iter().all(|(other, _)| *other != path) && path.exists() {
                found.push((path, via));
            }
        };
        let folders = self.folders.get_or_init(|| self.search_path());
        let is_of_trainer = folders.of_trainer.iter().any(|needed| needed == name);
        for (folder, via) in folders.first.iter().filter(|_| !is_of_trainer).chain(&folders.all) {
            add(folder.join(name), via);
        }
        let cache = self.cache.get_or_init(|| {
            std::fs::read("/etc/ld.so.cache").map(|bytes| loader_cache::libraries(&bytes)).unwrap_or_default()
        });
        for (_, path) in cache.iter().filter(|(known, _)| known == name) {
            add(PathBuf::from(path), "ld.so.cache");
        }
        for folder in DEFAULT {
            add(Path::new(folder).join(name), "default");
        }
        found.into_iter().map(|(path, via)| describe(&path, via)).collect()
    }

    fn search_path(&self) -> Folders {
        let library_folder = self.libtorch.as_ref().map(|root| root.join("lib"));
        let of_user = std::env::var_os(LD_LIBRARY_PATH).unwrap_or_default();
        // An empty entry of the variable means the working directory.
        let of_user = std::env::split_paths(&of_user)
            .filter(|_| !of_user.is_empty())
            .map(|folder| if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder });
        let linked = |file: &PathBuf| elf::linked(file);
        let trainer = self.trainer.as_ref().map(linked).unwrap_or_default();
        let parts = ["libtorch_cuda.so", "libtorch_cpu.so"];
        let of_libtorch: Vec<elf::Linked> = library_folder
            .iter()
            .flat_map(|folder| parts.map(|part| elf::linked(&folder.join(part))))
            .collect();
        let run_paths = |of: &elf::Linked| {
            of.folders.iter().map(|folder| (PathBuf::from(folder), "run path")).collect::<Vec<_>>()
        };
        let first = |of: &&elf::Linked| of.is_first;
        Folders {
            first: of_libtorch.iter().filter(first).flat_map(run_paths).collect(),
            all: Some(&trainer)
                .into_iter()
                .filter(first)
                .flat_map(run_paths)
                .chain(
                    library_folder.clone().into_iter().chain(of_user).map(|folder| (folder, LD_LIBRARY_PATH)),
                )
                .chain(run_paths(&trainer))
                .chain(of_libtorch.iter().flat_map(run_paths))
                .collect(),
            of_trainer: trainer.needed,
        }
    }
}

fn describe(path: &Path, via: &str) -> Value {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let real = real.to_string_lossy();
    json!({ "path": path.to_string_lossy(), "real": real, "version": library_version(&real), "via": via })
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_is_found() {
        let found = Loader::default().ask("libc.so.6");
        assert!(found[0]["path"].as_str().is_some_and(|path| path.ends_with("libc.so.6")), "{found}");
        assert_eq!(Loader::default().ask("libno-such-thing.so.1"), json!([]));
    }
}
