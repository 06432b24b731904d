//! How much of a damaged JPEG can be decoded. In progressive files the decoder rejects invalid Huffman codes. libjpeg
//! substitutes others and continues; the rest of this scan and the later scans are then noise. So the file is cut before
//! the damage: between two scans, or within the first one.

/// A scan: the part of an image that a progressive file adds at once.
#[derive(Debug, PartialEq, Eq)]
struct Scan {
    /// Where its marker is.
    start: usize,
    /// Where its compressed data begins.
    data: usize,
}

/// Where the longest beginning of a JPEG ends that `is_sound` accepts: before a scan, or within the first one. `None` if
/// nothing of the image is left.
pub(super) fn sound_end(bytes: &[u8], mut is_sound: impl FnMut(usize) -> bool) -> Option<usize> {
    let scans = scans(bytes);
    let (first, later) = scans.split_first()?;
    let whole = later.partition_point(|scan| is_sound(scan.start));
    if let Some(scan) = later[..whole].last() {
        return Some(scan.start);
    }
    let (mut sound, mut end) = (first.data, later.first().map_or(bytes.len(), |scan| scan.start));
    if !is_sound(sound) {
        return None;
    }
    // The end `sound` is sound, and what comes after `end` is not.
    while sound < end {
        let middle = end - (end - sound) / 2;
        if is_sound(middle) {
            sound = middle;
        } else {
            end = middle - 1;
        }
    }
    Some(sound)
}

/// The scans of a file, found from segment to segment: a thumbnail inside a segment has scans of its own.
fn scans(bytes: &[u8]) -> Vec<Scan> {
    const START_OF_SCAN: u8 = 0xDA;
    const END_OF_IMAGE: u8 = 0xD9;
    let mut scans = Vec::new();
    // After the marker of the start of the image.
    let mut at = 2;
    while let (Some(0xFF), Some(&marker)) = (bytes.get(at).copied(), bytes.get(at + 1)) {
        match marker {
            // Any number of these bytes may come before a marker.
            0xFF => at += 1,
            END_OF_IMAGE => break,
            _ => {
                let Some(&[high, low]) = bytes.get(at + 2..at + 4).and_then(|length| length.first_chunk())
                else {
                    break;
                };
                let next = at + 2 + usize::from(u16::from_be_bytes([high, low]));
                if next > bytes.len() {
                    break;
                }
                if marker == START_OF_SCAN {
                    scans.push(Scan { start: at, data: next });
                    at = end_of_data(bytes, next);
                } else {
                    at = next;
                }
            }
        }
    }
    scans
}

/// Where compressed data ends: at a marker that is not a part of it, as a zero after 0xFF and restart markers are.
fn end_of_data(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let is_marker = |pair: &[u8]| pair[0] == 0xFF && !matches!(pair[1], 0 | 0xD0..=0xD7 | 0xFF);
    from + rest.windows(2).position(is_marker).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A segment with a thumbnail, two scans with a table between them.
    const FILE: &[u8] = &[
        0xFF, 0xD8, // start of the image
        0xFF, 0xE1, 0, 6, 0xFF, 0xDA, 0, 2, // a segment that contains the marker of a scan
        0xFF, 0xDA, 0, 3, 1, 9, 0xFF, 0, 8, 0xFF, 0xD0, 7, // a scan with a restart marker
        0xFF, 0xC4, 0, 2, // a table
        0xFF, 0xFF, 0xDA, 0, 2, 5, // another scan
        0xFF, 0xD9,
    ];

    #[test]
    fn scans_are_found_from_segment_to_segment() {
        assert_eq!(scans(FILE), [Scan { start: 10, data: 15 }, Scan { start: 27, data: 31 }]);
    }

    #[test]
    fn a_file_is_cut_between_scans_or_within_the_first() {
        assert_eq!(sound_end(FILE, |end| end < 30), Some(27));
        assert_eq!(sound_end(FILE, |end| end < 20), Some(19));
        assert_eq!(sound_end(FILE, |end| end < 16), Some(15), "the first scan without its data");
        assert_eq!(sound_end(FILE, |_| false), None);
        assert_eq!(sound_end(b"\xFF\xD8\xFF\xD9", |_| true), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(prop_oneof![Just(0xFF_u8), Just(0xDA), any::<u8>()], 0..64),
            least in 0..64_usize) {
            if let Some(end) = sound_end(&bytes, |end| end <= least) {
                prop_assert!(end <= least);
            }
        }
    }
}
