//! The `RECORD` file of a wheel, which lists the SHA-256 and length of every member. Pinning the hash of
//! this file pins the whole wheel.

use std::collections::HashMap;

use super::archive::UnpackedMember;

/// Hashes by member name.
#[derive(Debug, Clone, Default)]
pub struct WheelRecord {
    lines: HashMap<String, (String, u64)>,
}

/// How a member differs from the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The member.
    pub member: String,
    /// What RECORD says, in its notation.
    pub expected: String,
    /// What was downloaded.
    pub actual: String,
}

impl WheelRecord {
    /// Reads `name,sha256=…,length` lines; lines without a hash (RECORD itself) are skipped.
    pub fn parse(text: &str) -> Self {
        let mut lines = HashMap::new();
        for line in text.lines() {
            let mut fields = line.rsplitn(3, ',');
            let (Some(length), Some(hash), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
                continue;
            };
            // A name with a comma or a quote is quoted as in CSV.
            let name = match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
                Some(quoted) => quoted.replace("\"\"", "\""),
                None => name.to_owned(),
            };
            if let (Some(hash), Ok(length)) = (hash.strip_prefix("sha256="), length.trim().parse()) {
                lines.insert(name, (hash.to_owned(), length));
            }
        }
        Self { lines }
    }

    /// Compares one unpacked member.
    ///
    /// # Errors
    /// When the member is not in RECORD, or has another length or hash.
    pub fn check(&self, unpacked: &UnpackedMember) -> Result<(), Mismatch> {
        let actual = base64_url(&unpacked.sha256);
        match self.lines.get(&unpacked.name) {
            Some((hash, length)) if *hash == actual && *length == unpacked.size => Ok(()),
            other => Err(Mismatch {
                member: unpacked.name.clone(),
                expected: other.map_or_else(
                    || "a line in RECORD".to_owned(),
                    |(hash, length)| format!("{hash} ({length} bytes)"),
                ),
                actual: format!("{actual} ({} bytes)", unpacked.size),
            }),
        }
    }
}

/// RFC 4648 §5, without padding, as wheels write it.
fn base64_url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word =
            group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..=group.len() {
            text.push(char::from(ALPHABET[(word >> (18 - 6 * place)) as usize & 63]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_written_as_wheels_write_them() {
        assert_eq!(base64_url(b""), "");
        assert_eq!(base64_url(b"f"), "Zg");
        assert_eq!(base64_url(b"fo"), "Zm8");
        assert_eq!(base64_url(&[0xfb, 0xff, 0xfe]), "-__-");
    }

    #[test]
    fn quoted_names_and_missing_hashes_are_understood() {
        let hash = base64_url(&[7; 32]);
        let record = WheelRecord::parse(&format!("\"a,b\",sha256={hash},3\nx/RECORD,,\n"));
        let mut unpacked = UnpackedMember { name: "a,b".into(), path: "a".into(), size: 3, sha256: [7; 32] };
        assert_eq!(record.check(&unpacked), Ok(()));
        unpacked.size = 4;
        assert!(record.check(&unpacked).is_err());
        unpacked.name = "x/RECORD".into();
        assert_eq!(record.check(&unpacked).unwrap_err().expected, "a line in RECORD");
    }
}
