//! The result of a scan on disk, so that the next run need not read every image. The file is next to the
//! folder of the labels. Its key is a hash of the path, size and modification time of every image and label,
//! so a changed file makes it invalid. A cache that is damaged or of another version counts as absent.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::{Sample, Scan, label_path};

/// The first bytes of the file, with the version of its format.
const MAGIC: &[u8; 16] = b"yolo scan cache1";

/// A SHA-256 hash.
pub(super) type Key = [u8; 32];

/// The path of the cache of a split: `labels/train.yolo-cache` for a folder. For a list file it is next to
/// the list, because several lists may name images of one folder.
pub(super) fn location(roots: &[PathBuf], first_label: &Path) -> PathBuf {
    let base = match roots {
        [root] if root.is_file() => root.as_path(),
        _ => first_label.parent().unwrap_or(Path::new("labels")),
    };
    let mut name = base.file_name().unwrap_or("labels".as_ref()).to_os_string();
    name.push(".yolo-cache");
    base.with_file_name(name)
}

/// The hash of all images and their label files, whether these exist or not.
pub(super) fn key(images: &[PathBuf]) -> Key {
    let parts: Vec<Key> = images
        .par_iter()
        .map(|image| {
            let mut hash = Sha256::new();
            for path in [image.clone(), label_path(image)] {
                hash.update(path.as_os_str().as_encoded_bytes());
                let Ok(metadata) = path.metadata() else {
                    hash.update(b"\0absent");
                    continue;
                };
                hash.update([0]);
                hash.update(metadata.len().to_le_bytes());
                let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                hash.update(changed.map_or(0, |time| time.as_nanos()).to_le_bytes());
            }
            hash.finalize().into()
        })
        .collect();
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

/// Reads a cache; `None` unless it is complete and has this key.
pub(super) fn read(path: &Path, key: &Key) -> Option<Scan> {
    let bytes = std::fs::read(path).ok()?;
    let (body, sum) = bytes.split_last_chunk::<32>()?;
    let mut reader = Reader(body);
    if reader.take(MAGIC.len())? != MAGIC
        || reader.take(32)? != key
        || Key::from(Sha256::digest(body)) != *sum
    {
        return None;
    }
    let [found, missing, empty, corrupt] =
        [reader.length()?, reader.length()?, reader.length()?, reader.length()?];
    let messages = (0..reader.length()?).map(|_| reader.text()).collect::<Option<_>>()?;
    let samples = (0..reader.length()?).map(|_| reader.sample()).collect::<Option<_>>()?;
    Some(Scan { samples, found, missing, empty, corrupt, messages })
}

/// Writes a cache. A rename replaces the old file, so a reader sees either the old or the new one.
pub(super) fn write(path: &Path, key: &Key, scan: &Scan) -> std::io::Result<()> {
    let mut writer = Writer(Vec::new());
    writer.0.extend_from_slice(MAGIC);
    writer.0.extend_from_slice(key);
    [scan.found, scan.missing, scan.empty, scan.corrupt].into_iter().for_each(|count| writer.length(count));
    writer.length(scan.messages.len());
    scan.messages.iter().for_each(|message| writer.text(message.as_bytes()));
    writer.length(scan.samples.len());
    scan.samples.iter().for_each(|sample| writer.sample(sample));
    let sum = Sha256::digest(&writer.0);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&writer.0)?;
    file.write_all(&sum)?;
    // Temporary files are private, but data sets are often shared.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    file.persist(path)?;
    Ok(())
}

/// Appends little-endian fields.
struct Writer(Vec<u8>);

impl Writer {
    fn length(&mut self, length: usize) {
        self.0.extend_from_slice(&(length as u64).to_le_bytes());
    }

    fn text(&mut self, text: &[u8]) {
        self.length(text.len());
        self.0.extend_from_slice(text);
    }

    fn floats(&mut self, values: &[f32]) {
        values.iter().for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
    }

    fn sample(&mut self, sample: &Sample) {
        self.text(sample.image.as_os_str().as_encoded_bytes());
        self.0.extend_from_slice(&sample.width.to_le_bytes());
        self.0.extend_from_slice(&sample.height.to_le_bytes());
        self.length(sample.boxes.len());
        self.floats(sample.boxes.as_flattened());
        self.length(sample.segments.len());
        for segment in &sample.segments {
            self.length(segment.len());
            self.floats(segment.as_flattened());
        }
    }
}

/// The bytes not read yet; every method returns `None` if there are too few.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<[u8; 4]> {
        self.take(4)?.try_into().ok()
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(u64::from_le_bytes(self.take(8)?.try_into().ok()?)).ok()
    }

    fn text(&mut self) -> Option<String> {
        let length = self.length()?;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn rows<const N: usize>(&mut self) -> Option<Vec<[f32; N]>> {
        let count = self.length()?;
        let bytes = self.take(count.checked_mul(N * 4)?)?;
        let values: Vec<f32> =
            bytes.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value)).collect();
        Some(values.as_chunks::<N>().0.to_vec())
    }

    fn sample(&mut self) -> Option<Sample> {
        // A path that is not UTF-8 cannot be restored on every platform; such a data set is scanned each time.
        let image = PathBuf::from(self.text()?);
        let width = u32::from_le_bytes(self.number()?);
        let height = u32::from_le_bytes(self.number()?);
        let boxes = self.rows::<5>()?;
        let segments = (0..self.length()?).map(|_| self.rows::<2>()).collect::<Option<_>>()?;
        Some(Sample { image, width, height, boxes, segments })
    }
}
