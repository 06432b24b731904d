//! ld.so.cache, in which the loader looks up libraries outside its default folders. Parses the format
//! of glibc, `glibc-ld.so.cache1.1`, which may follow an older table in the same file. Anything else
//! gives an empty table.

/// The magic bytes of the table.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// Magic bytes, number of entries, length of strings, flags, and 20 reserved bytes.
const HEADER: usize = 48;
/// flags, key, value, osversion, hwcap.
const ENTRY: usize = 24;
/// Flags of 64-bit x86 and 64-bit Arm libraries for glibc 2.
const FLAGS: [u32; 2] = [0x0303, 0x0a03];

/// Name and path of every 64-bit library, in the order of the table.
pub(super) fn libraries(cache: &[u8]) -> Vec<(String, String)> {
    let Some(start) = cache.windows(MAGIC.len()).position(|window| window == MAGIC) else {
        return Vec::new();
    };
    let table = &cache[start..];
    let count = number(table, 20).unwrap_or(0) as usize;
    let entries = (0..count).map_while(|index| {
        let at = HEADER + index * ENTRY;
        Some((number(table, at)?, number(table, at + 4)?, number(table, at + 8)?))
    });
    entries
        .filter(|(flags, ..)| FLAGS.contains(flags))
        .filter_map(|(_, key, value)| Some((string(table, key)?, string(table, value)?)))
        .collect()
}

fn number(table: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(table.get(at..at + 4)?.try_into().ok()?))
}

fn string(table: &[u8], at: u32) -> Option<String> {
    let rest = table.get(at as usize..)?;
    let end = rest.iter().position(|&byte| byte == 0)?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A table with one entry.
    fn cache(name: &str, path: &str, flags: u32) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(1u32.to_le_bytes());
        bytes.resize(HEADER, 0);
        let strings = HEADER + ENTRY;
        for number in [flags, strings as u32, (strings + name.len() + 1) as u32, 0, 0, 0] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(name.as_bytes());
        bytes.push(0);
        bytes.extend(path.as_bytes());
        bytes.push(0);
        bytes
    }

    #[test]
    fn a_table_after_an_older_one_is_read() {
        let table = cache("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", 0x0303);
        let expected = vec![("libcuda.so.1".to_owned(), "/usr/lib/wsl/lib/libcuda.so.1".to_owned())];
        assert_eq!(libraries(&table), expected);
        assert_eq!(libraries(&[b"ld.so-1.7.0\0".as_slice(), &table].concat()), expected);
        assert!(libraries(&cache("libcuda.so.1", "/usr/lib32/libcuda.so.1", 0x0003)).is_empty());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_cache_of_this_machine_contains_the_c_library() {
        let Ok(bytes) = std::fs::read("/etc/ld.so.cache") else { return };
        assert!(libraries(&bytes).iter().any(|(name, _)| name == "libc.so.6"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_accepted(tail in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = libraries(&[MAGIC, &tail].concat());
        }
    }
}
