//! /proc/self/mountinfo: which file system holds a path, with its type and options.

/// A mount.
#[derive(Debug, PartialEq, Eq)]
pub struct Mount {
    /// Such as `ext4` or `9p`.
    pub kind: String,
    /// What is mounted, such as `/dev/sdd` or `C:\`.
    pub source: String,
    /// Where it is mounted.
    pub point: String,
    /// Its own options and those of its file system.
    pub options: Vec<String>,
}

/// The mount that holds an absolute path: the longest mount point above it, of equals the last.
pub fn holding(mountinfo: &str, path: &str) -> Option<Mount> {
    let holds = |mount: &Mount| {
        mount.point == "/"
            || path.strip_prefix(&mount.point).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    mountinfo.lines().filter_map(parse).filter(holds).max_by_key(|mount| mount.point.len())
}

/// What is mounted at an absolute path, such as `/dev/sda2`.
pub fn source_of(mountinfo: &str, path: &str) -> Option<String> {
    holding(mountinfo, path).map(|mount| mount.source)
}

/// Where a Windows drive is mounted, by its letter. WSL puts the path into the options of the mount,
/// or mounts the drive by its name.
pub fn of_windows_drive(mountinfo: &str, letter: char) -> Option<String> {
    let path = format!("path={letter}:");
    let by_name = |mount: &Mount| {
        let rest = mount.source.strip_prefix(|first: char| first.eq_ignore_ascii_case(&letter));
        mount.kind == "drvfs" && rest.is_some_and(|rest| [":", ":\\"].contains(&rest))
    };
    let is_it = |mount: &Mount| {
        by_name(mount)
            || mount.options.iter().any(|option| {
                option.get(..path.len()).is_some_and(|start| start.eq_ignore_ascii_case(&path))
                    && option[path.len()..].trim_matches('\\').trim_start_matches("134").is_empty()
            })
    };
    mountinfo.lines().filter_map(parse).find(is_it).map(|mount| mount.point)
}

/// `36 35 98:0 /root /mnt/point rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue`
fn parse(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let (left, right): (Vec<&str>, Vec<&str>) = (left.split(' ').collect(), right.split(' ').collect());
    let options = left.get(5)?.split(',').chain(right.get(2).map_or("", |options| options).split([',', ';']));
    Some(Mount {
        kind: (*right.first()?).to_owned(),
        point: unescape(left.get(4)?),
        source: unescape(right.get(1).unwrap_or(&"")),
        options: options.filter(|option| !option.is_empty()).map(ToOwned::to_owned).collect(),
    })
}

/// The kernel writes spaces, tabs, line feeds and backslashes as `\040` and so on.
fn unescape(text: &str) -> String {
    let mut result = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let digits: Vec<u8> = bytes.clone().take(3).collect();
        let is_octal = digits.len() == 3 && digits.iter().all(|digit| (b'0'..b'8').contains(digit));
        if byte == b'\\' && is_octal {
            let code = digits.iter().fold(0u32, |code, digit| code * 8 + u32::from(digit - b'0'));
            result.push(u8::try_from(code).unwrap_or(b'?'));
            bytes.nth(2);
        } else {
            result.push(byte);
        }
    }
    String::from_utf8_lossy(&result).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TABLE: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sdd rw,discard
90 22 0:60 / /mnt/c rw,noatime - 9p C:\\134 rw,dirsync,aname=drvfs;path=C:\\;uid=1000;metadata,cache=5
91 22 0:61 / /mnt/my\\040disk ro,noexec - ext4 /dev/sde ro
";

    #[test]
    fn the_longest_matching_mount_point_contains_the_path() {
        assert_eq!(holding(TABLE, "/mnt/cargo").unwrap().kind, "ext4");
        let drive = holding(TABLE, "/mnt/c/Users/anna").unwrap();
        assert_eq!((drive.kind.as_str(), drive.point.as_str()), ("9p", "/mnt/c"));
        assert!(drive.options.iter().any(|option| option == "metadata"));
        assert_eq!(holding(TABLE, "/mnt/my disk/x").unwrap().point, "/mnt/my disk");
    }

    #[test]
    fn a_windows_drive_is_found_wherever_it_is_mounted() {
        assert_eq!(of_windows_drive(TABLE, 'c').as_deref(), Some("/mnt/c"));
        assert_eq!(of_windows_drive(TABLE, 'D'), None);
        let moved = "90 22 0:60 / /win/c rw - 9p C:\\134 rw,aname=drvfs;path=C:\\134;uid=1000\n";
        assert_eq!(of_windows_drive(moved, 'C').as_deref(), Some("/win/c"));
    }

    proptest! {
        #[test]
        fn any_table_is_read(text in "([0-9 :/-]|\\\\[0-7]{0,3}|\\PC|\n){0,60}") {
            let _ = holding(&text, "/mnt/c");
            let _ = of_windows_drive(&text, 'c');
        }
    }
}
