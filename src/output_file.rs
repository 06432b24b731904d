//! Files that an option names for a command's results: checked before the work begins, and written in one
//! step after it.

use std::io::Write as _;
use std::path::Path;

use crate::error::CommandError;

/// Checks that the file can be written.
///
/// # Errors
/// When it is a folder, or its folder does not exist or is not writable.
pub(crate) fn check(file: &Path) -> Result<(), CommandError> {
    if file.is_dir() {
        return Err(failed(file, std::io::ErrorKind::IsADirectory.into()));
    }
    let folder = folder(file);
    if !folder.is_dir() {
        let shown = folder.display();
        let why = if folder.exists() {
            format!("{shown} is not a folder")
        } else {
            format!("the folder {shown} does not exist")
        };
        return Err(failed(file, std::io::Error::other(why)));
    }
    let created = tempfile::NamedTempFile::new_in(folder).map(drop);
    created.map_err(|source| failed(file, without_temporary_name(source)))
}

/// Writes the file, or replaces it.
///
/// # Errors
/// When it cannot be written. Then an earlier file is still there.
pub(crate) fn write(file: &Path, text: &str) -> Result<(), CommandError> {
    let publish = || {
        let mut unfinished = tempfile::NamedTempFile::new_in(folder(file))?;
        unfinished.write_all(text.as_bytes())?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            unfinished.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
        }
        // Invariant: a file that exists under its final name is complete.
        unfinished.persist(file).map(drop).map_err(|error| error.error)
    };
    publish().map_err(|source| failed(file, without_temporary_name(source)))
}

fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

fn failed(file: &Path, source: std::io::Error) -> CommandError {
    CommandError::File {
        what: format!("cannot write {}", file.display()),
        source,
        hint: Some("name a file in a folder that exists and is writable".to_owned()),
    }
}

/// The system's error, without the temporary name that `tempfile` adds to it.
fn without_temporary_name(error: std::io::Error) -> std::io::Error {
    match error.to_string().split_once(" at path ") {
        Some((why, _)) => std::io::Error::other(why),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_checked_without_being_created() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("tables.csv");
        check(&file).unwrap();
        assert!(!file.exists());
        write(&file, "a").unwrap();
        write(&file, "b").unwrap();
        assert_eq!(fs_err::read_to_string(&file).unwrap(), "b");
        assert_eq!(fs_err::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_and_a_missing_folder_are_errors() {
        let root = tempfile::tempdir().unwrap();
        let (gone, text) = (root.path().join("gone"), root.path().join("text"));
        fs_err::write(&text, "").unwrap();
        for (wrong, why) in [
            (root.path().to_owned(), "is a directory".to_owned()),
            (gone.join("tables.csv"), format!("the folder {} does not exist", gone.display())),
            (text.join("tables.csv"), format!("{} is not a folder", text.display())),
        ] {
            let message = check(&wrong).unwrap_err().to_string();
            assert_eq!(message, format!("cannot write {}: {why}", wrong.display()));
        }
    }

    #[test]
    fn a_message_names_the_file_and_not_a_temporary_one() {
        // Other temporary names begin with a dot.
        let root = tempfile::Builder::new().prefix("results").tempdir().unwrap();
        let file = root.path().join("gone/tables.csv");
        let message = write(&file, "").unwrap_err().to_string();
        assert!(message.starts_with(&format!("cannot write {}: ", file.display())), "{message}");
        assert!(message.contains("(os error ") && !message.contains(" at path "), "{message}");
    }
}
