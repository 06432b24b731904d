//! Files, links, folders and file systems.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::facts::answer::{MOST_NAMES, of_bytes, of_error};

/// Files beyond this are not read whole.
const LARGEST: u64 = 1 << 20;
/// Bytes of a head or tail.
const PART: u64 = 512;

/// Paths that the kernel answers from memory, without a drive. Lustre asks its servers for some of its files there.
pub(super) fn cannot_hang(path: &str) -> bool {
    if path.contains("/fs/lustre/") {
        return false;
    }
    ["/proc/", "/sys/", "/dev/", "/etc/"].iter().any(|root| path.starts_with(root))
}

pub(super) fn contents(path: &str) -> Value {
    let read = || -> std::io::Result<Value> {
        let mut bytes = Vec::new();
        File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            return Ok(of_error("it is larger than 1 MiB"));
        }
        Ok(of_bytes(&bytes))
    };
    answer(read())
}

pub(super) fn head(path: &str) -> Value {
    let read = || -> std::io::Result<Value> {
        let mut bytes = Vec::new();
        File::open(path)?.take(PART).read_to_end(&mut bytes)?;
        Ok(of_bytes(&bytes))
    };
    answer(read())
}

pub(super) fn tail(path: &str) -> Value {
    let read = || -> std::io::Result<Value> {
        let mut file = File::open(path)?;
        let size = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(size.saturating_sub(PART)))?;
        let mut bytes = Vec::new();
        file.take(PART).read_to_end(&mut bytes)?;
        Ok(of_bytes(&bytes))
    };
    answer(read())
}

pub(super) fn link(path: &str) -> Value {
    match fs::read_link(path) {
        // `read_link` fails with EINVAL for anything that is not a link.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Value::Null,
        other => answer(other.map(|target| json!(target.to_string_lossy()))),
    }
}

pub(super) fn folder(path: &str) -> Value {
    let read = || -> std::io::Result<Value> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path)?.take(MOST_NAMES) {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(json!(names))
    };
    match read() {
        Err(error) if error.kind() == ErrorKind::NotADirectory => Value::Null,
        other => answer(other),
    }
}

fn answer(result: std::io::Result<Value>) -> Value {
    match result {
        Ok(value) => value,
        Err(error) if error.kind() == ErrorKind::NotFound => Value::Null,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => of_error("permission denied"),
        Err(error) => of_error(error),
    }
}

pub(super) fn stat(path: &str) -> Value {
    answer(fs::metadata(path).map(|data| describe(path, &data)))
}

fn describe(path: &str, data: &fs::Metadata) -> Value {
    let mut stat = Map::new();
    stat.insert("kind".into(), json!(kind(data)));
    stat.insert("size".into(), json!(data.len()));
    let modified = data.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    stat.extend(modified.map(|since| ("modified".to_owned(), json!(since.as_secs()))));
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;

        use rustix::fs::{Access, access};
        if matches!(kind(data), "char" | "block") {
            let number = data.rdev();
            let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
            stat.insert("device".into(), json!(number));
        }
        stat.insert("mode".into(), json!(format!("{:04o}", data.mode() & 0o7777)));
        stat.insert("uid".into(), json!(data.uid()));
        stat.insert("gid".into(), json!(data.gid()));
        stat.insert("readable".into(), json!(access(path, Access::READ_OK).is_ok()));
        stat.insert("writable".into(), json!(access(path, Access::WRITE_OK).is_ok()));
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        stat.insert("writable".into(), json!(!data.permissions().readonly()));
    }
    Value::Object(stat)
}

fn kind(data: &fs::Metadata) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        let kind = data.file_type();
        if kind.is_char_device() {
            return "char";
        } else if kind.is_block_device() {
            return "block";
        } else if kind.is_socket() {
            return "socket";
        } else if kind.is_fifo() {
            return "fifo";
        }
    }
    if data.is_dir() { "folder" } else { "file" }
}

/// The file system of the nearest folder above a path that exists.
pub(super) fn file_system(path: &str) -> Value {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let Some(real) = absolute.ancestors().find_map(|parent| parent.canonicalize().ok()) else {
        return Value::Null;
    };
    space(&real)
}

#[cfg(target_os = "linux")]
fn space(real: &Path) -> Value {
    let mut answer = Map::new();
    if let Ok(mounts) = fs::read_to_string("/proc/self/mountinfo")
        && let Some(mount) = yolo_base::mounts::holding(&mounts, &real.to_string_lossy())
    {
        answer.insert("type".into(), json!(mount.kind));
        answer.insert("mount".into(), json!(mount.point));
        answer.insert("options".into(), json!(mount.options));
    }
    match rustix::fs::statvfs(real) {
        Ok(space) => {
            answer.insert("total".into(), json!(space.f_blocks * space.f_frsize));
            answer.insert("available".into(), json!(space.f_bavail * space.f_frsize));
            answer.insert("inodes".into(), json!(space.f_files));
            answer.insert("inodes_free".into(), json!(space.f_favail));
            Value::Object(answer)
        }
        Err(error) => of_error(error),
    }
}

/// Windows calls a canonical path `\\?\C:\…`, and its drives `C:\`.
#[cfg(windows)]
fn space(real: &Path) -> Value {
    let text = real.to_string_lossy();
    let plain = Path::new(text.strip_prefix(r"\\?\").unwrap_or(&text));
    let disks = sysinfo::Disks::new_with_refreshed_list();
    let holds = |disk: &&sysinfo::Disk| plain.starts_with(disk.mount_point());
    let depth = |disk: &&sysinfo::Disk| disk.mount_point().components().count();
    let mut answer = Map::new();
    if let Some(disk) = disks.iter().filter(holds).max_by_key(depth) {
        answer.insert("type".into(), json!(disk.file_system().to_string_lossy()));
        answer.insert("mount".into(), json!(disk.mount_point().to_string_lossy()));
    }
    match fs4::statvfs(real) {
        Ok(space) => {
            answer.insert("total".into(), json!(space.total_space()));
            answer.insert("available".into(), json!(space.available_space()));
            Value::Object(answer)
        }
        Err(error) => of_error(error),
    }
}

#[cfg(not(any(target_os = "linux", windows)))]
fn space(real: &Path) -> Value {
    let disks = sysinfo::Disks::new_with_refreshed_list();
    let holds = |disk: &&sysinfo::Disk| real.starts_with(disk.mount_point());
    let depth = |disk: &&sysinfo::Disk| disk.mount_point().components().count();
    disks.iter().filter(holds).max_by_key(depth).map_or(Value::Null, |disk| {
        json!({
            "type": disk.file_system().to_string_lossy(),
            "mount": disk.mount_point().to_string_lossy(),
            "total": disk.total_space(),
            "available": disk.available_space(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_paths_are_null() {
        assert_eq!(contents("/no/such/file"), Value::Null);
        assert_eq!(link("/no/such/link"), Value::Null);
        assert_eq!(folder("/no/such/folder"), Value::Null);
        assert_eq!(stat("/no/such/path"), Value::Null);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn devices_and_folders_have_different_kinds() {
        assert_eq!(stat("/dev/null")["kind"], "char");
        assert_eq!(stat("/dev/null")["device"], "1:3");
        assert_eq!(stat("/proc")["kind"], "folder");
        assert_eq!(contents("/proc"), of_error("Is a directory (os error 21)"));
        assert_eq!(link("/proc"), Value::Null);
    }

    #[test]
    fn a_missing_folder_is_on_the_disk_of_its_nearest_parent() {
        let answer = file_system("not/made/yet");
        assert!(answer["available"].as_u64().is_some_and(|bytes| bytes > 0), "{answer}");
    }
}
