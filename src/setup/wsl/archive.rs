//! The archive with the Linux program, next to `yolo.exe` in a Windows release. It is verified
//! against the release's list of checksums.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::error::WslError;
use crate::fetch::Sha256;

/// The checksums of a release, as `sha256sum` writes them.
const SUMS: &str = "SHA256SUMS";

/// The name of this version's Linux archive.
pub(super) fn archive_name() -> String {
    format!("yolo-{}-x86_64-unknown-linux-gnu.tar.gz", env!("CARGO_PKG_VERSION"))
}

/// The archive next to a program, if its checksum is right.
pub(super) fn archive_next_to(program: &Path) -> Result<PathBuf, WslError> {
    let folder = program.parent().unwrap_or(Path::new("."));
    let path = folder.join(archive_name());
    let bad = |why: &str| WslError::BadArchive { path: path.clone(), why: why.to_owned() };
    if !path.is_file() {
        return Err(WslError::NoArchive(path));
    }
    let sums = folder.join(SUMS);
    let listed = std::fs::read_to_string(&sums).map_err(WslError::file("read", &sums))?;
    let expected =
        sum_of(&listed, &archive_name()).ok_or_else(|| bad(&format!("{SUMS} does not list it")))?;
    let mut file = std::fs::File::open(&path).map_err(WslError::file("open", &path))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).map_err(WslError::file("read", &path))? {
            0 => break,
            count => hasher.update(&buffer[..count]),
        }
    }
    if hex::encode(hasher.finish()) != expected {
        return Err(bad(&format!("its SHA-256 is not the one that {SUMS} lists")));
    }
    Ok(path)
}

/// The checksum of a file in such a list.
fn sum_of(list: &str, name: &str) -> Option<String> {
    list.lines().find_map(|line| {
        let (sum, file) = line.trim_end().split_once(' ')?;
        (file.trim_start_matches([' ', '*']) == name).then(|| sum.to_ascii_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use sha2::Digest as _;

    use super::*;

    /// A release folder with an archive of these bytes, and its checksums.
    fn release(bytes: &[u8], sums: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(archive_name()), bytes).unwrap();
        std::fs::write(folder.path().join(SUMS), sums).unwrap();
        folder
    }

    #[test]
    fn an_archive_with_the_right_checksum_is_accepted() {
        let sum = hex::encode(sha2::Sha256::digest(b"archive"));
        for line in [
            format!("{sum}  {}\n", archive_name()),
            format!("{} *{}\r\n", sum.to_uppercase(), archive_name()),
        ] {
            let folder = release(b"archive", &format!("00  other\n{line}"));
            assert_eq!(
                archive_next_to(&folder.path().join("yolo.exe")).unwrap(),
                folder.path().join(archive_name())
            );
        }
    }

    #[test]
    fn damaged_missing_and_unlisted_archives_are_rejected() {
        let sum = hex::encode(sha2::Sha256::digest(b"archive"));
        let line = format!("{sum}  {}\n", archive_name());
        let refuse = |folder: &Path| archive_next_to(&folder.join("yolo.exe")).unwrap_err().to_string();
        assert!(refuse(release(b"archi", &line).path()).contains("is damaged: its SHA-256"));
        assert!(refuse(release(b"archive", "").path()).contains("does not list it"));
        let empty = tempfile::tempdir().unwrap();
        assert!(refuse(empty.path()).contains("does not exist"));
    }
}
