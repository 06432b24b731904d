//! The frames of a TFRecord file: the length of a record, a checksum of the length, the record, and its checksum.
//! Numbers are little-endian; checksums are CRC-32C, masked because data may itself contain checksums.

/// What is added to a rotated checksum.
const MASK: u32 = 0xa282_ead8;
/// Bytes before a record: its length and the checksum of that.
const HEAD: usize = 12;

/// A record in its frame.
pub(super) fn framed(record: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEAD + record.len() + 4);
    frame.extend((record.len() as u64).to_le_bytes());
    frame.extend(masked(&frame).to_le_bytes());
    frame.extend(record);
    frame.extend(masked(record).to_le_bytes());
    frame
}

fn masked(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(MASK)
}

/// The records of a file; or what is wrong with it.
#[cfg(test)]
pub(super) fn read(mut file: &[u8]) -> Result<Vec<&[u8]>, String> {
    let mut records = Vec::new();
    while !file.is_empty() {
        let (head, rest) = file.split_at_checked(HEAD).ok_or("the head of a record is cut")?;
        let (length, checksum) = head.split_at(8);
        let length = u64::from_le_bytes(length.try_into().unwrap()) as usize;
        if masked(&head[..8]).to_le_bytes() != checksum {
            return Err("the checksum of a length is wrong".to_owned());
        }
        let (record, rest) = rest.split_at_checked(length).ok_or("a record is cut")?;
        let (checksum, rest) = rest.split_at_checked(4).ok_or("a checksum is cut")?;
        if masked(record).to_le_bytes() != checksum {
            return Err("the checksum of a record is wrong".to_owned());
        }
        records.push(record);
        file = rest;
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CRC-32C of 32 zero bytes is 0x8a9136aa (RFC 3720, B.4).
    #[test]
    fn checksums_are_masked_castagnoli() {
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(masked(&[0; 32]), 0x8a91_36aa_u32.rotate_right(15).wrapping_add(0xa282_ead8));
    }

    #[test]
    fn records_are_read_back_and_damage_is_found() {
        let file = [framed(b"one"), framed(b""), framed(b"three")].concat();
        assert_eq!(read(&file).unwrap(), [b"one".as_slice(), b"", b"three"]);
        for place in 0..file.len() {
            let mut damaged = file.clone();
            damaged[place] ^= 1;
            assert!(read(&damaged).is_err(), "a change of byte {place} was not noticed");
        }
        assert!(read(&file[..file.len() - 1]).is_err());
    }
}
