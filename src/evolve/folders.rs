//! The folders in which generations are trained. One that was trained leaves nothing; one that failed leaves its logs;
//! and one that was being trained when the search was killed is removed by the next search.

use std::path::Path;

use fs_err as fs;
use tempfile::TempDir;

/// What their names begin with, before the number.
const PREFIX: &str = "generation";
/// The file that says why a generation failed.
const FAILURE: &str = "failure.txt";
/// The hyperparameters of a generation.
const HYP: &str = "hyp.yaml";

/// Creates the folder of a generation, counted from 0, under a new name. It is removed when it is dropped.
pub(crate) fn folder_of(search: &Path, generation: usize) -> std::io::Result<TempDir> {
    tempfile::Builder::new().prefix(&format!("{PREFIX}{}-", generation + 1)).tempdir_in(search)
}

/// Keeps the folder of a generation that failed.
pub(crate) fn keep_failed(folder: TempDir, message: &str) {
    let folder = folder.keep();
    // The logs are there without it, until the search is continued.
    let _ = fs::write(folder.join(FAILURE), format!("{message}\n"));
}

/// Removes the folders of generations whose search was killed. One that cannot be removed is in nobody's way.
pub(crate) fn remove_leftovers(search: &Path) {
    for entry in fs::read_dir(search).into_iter().flatten().filter_map(Result::ok) {
        let folder = entry.path();
        let is_ours = is_name(&entry.file_name().to_string_lossy()) && folder.join(HYP).is_file();
        if is_ours && !folder.join(FAILURE).exists() {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Whether [`folder_of`] gives such names: `generation12-x4TzQ9`.
fn is_name(name: &str) -> bool {
    let parts = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(number, end)| {
        number.parse::<usize>().is_ok()
            && end.len() == 6
            && end.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_killed_search_has_left_is_removed() {
        let search = tempfile::tempdir().unwrap();
        let create = |generation| {
            let folder = folder_of(search.path(), generation).unwrap();
            fs::write(folder.path().join(HYP), "lr0: 0.01\n").unwrap();
            folder
        };
        let left = create(11).keep();
        let failed = create(12);
        let path = failed.path().to_owned();
        keep_failed(failed, "rank 0 of 1 failed");
        assert_eq!(fs::read_to_string(path.join(FAILURE)).unwrap(), "rank 0 of 1 failed\n");
        let trained = create(13).path().to_owned();
        let others = ["generation-notes", "generation3-images", "generations"].map(|name| {
            let folder = search.path().join(name);
            fs::create_dir(&folder).unwrap();
            folder
        });
        remove_leftovers(search.path());
        assert!(!left.exists() && !trained.exists() && path.exists());
        assert!(others.iter().all(|folder| folder.exists()));
    }

    #[test]
    fn names_of_generations_are_known() {
        let search = tempfile::tempdir().unwrap();
        let folder = folder_of(search.path(), 11).unwrap();
        let name = folder.path().file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.starts_with("generation12-") && is_name(&name), "{name}");
        assert!(!is_name("generation12") && !is_name("generation12-a.b.cd") && !is_name("generation-abcdef"));
    }
}
