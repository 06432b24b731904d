//! Keeps resized images as raw bytes next to the originals, for `--cache disk`. Reading them is many times
//! faster than decoding. The file name contains the image size and the filter, and the file records the
//! length and modification time of the original, so a changed image or option never yields old pixels.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::image::Image;

/// The first bytes of the file, with the version of its format.
const MAGIC: &[u8; 8] = b"YOLOIMG1";

/// The length and modification time of the original; a cached image is valid while they stay the same.
fn stamp(original: &Path) -> io::Result<[u64; 2]> {
    let metadata = fs::metadata(original)?;
    // A time before 1970 becomes zero; the length still counts.
    let changed = metadata.modified()?.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    Ok([metadata.len(), changed])
}

/// The path of the cached form of `original`: `photo.jpg` → `photo.jpg.640-linear.yolo-img`.
pub(super) fn path_of(original: &Path, size: usize, filter: &str) -> PathBuf {
    let mut name = original.as_os_str().to_owned();
    name.push(format!(".{size}-{filter}.yolo-img"));
    name.into()
}

/// Reads a cached image into `image`, whose memory is used again; `None` unless it is complete and matches its
/// original.
pub(super) fn read_into(original: &Path, cached: &Path, image: &mut Image) -> Option<()> {
    let mut file = File::open(cached).ok()?;
    let mut magic = [0; 8];
    file.read_exact(&mut magic).ok()?;
    let mut number = || {
        let mut bytes = [0; 8];
        file.read_exact(&mut bytes).ok().map(|()| u64::from_le_bytes(bytes))
    };
    let [length, changed, width, height] = [number()?, number()?, number()?, number()?];
    if &magic != MAGIC || stamp(original).ok()? != [length, changed] {
        return None;
    }
    let (width, height) = (usize::try_from(width).ok()?, usize::try_from(height).ok()?);
    let expected = width.checked_mul(height)?.checked_mul(3)?;
    // Invariant: damaged dimensions never allocate memory; the length of the file is checked first.
    if file.metadata().ok()?.len() != expected as u64 + 40 {
        return None;
    }
    (image.width, image.height) = (width, height);
    image.data.resize(expected, 0);
    file.read_exact(&mut image.data).ok()
}

/// Writes a cached image. A rename puts it in place, so the file is complete or absent.
pub(super) fn write(original: &Path, cached: &Path, image: &Image) -> io::Result<()> {
    let folder = cached.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(MAGIC)?;
    for number in stamp(original)?.into_iter().chain([image.width as u64, image.height as u64]) {
        file.write_all(&number.to_le_bytes())?;
    }
    file.write_all(&image.data)?;
    file.persist(cached)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(original: &Path, cached: &Path) -> Option<Image> {
        let mut image = Image::default();
        read_into(original, cached, &mut image).map(|()| image)
    }

    #[test]
    fn a_cached_image_is_valid_until_it_or_its_original_changes() {
        let folder = tempfile::tempdir().unwrap();
        let original = folder.path().join("a.jpg");
        fs::write(&original, "original").unwrap();
        let image = Image { width: 2, height: 1, data: vec![1, 2, 3, 4, 5, 6] };
        let cached = path_of(&original, 64, "linear");
        assert_eq!(read(&original, &cached), None);
        write(&original, &cached, &image).unwrap();
        assert_eq!(read(&original, &cached), Some(image));

        let whole = fs::read(&cached).unwrap();
        for cut in [0, 7, 39, whole.len() - 1] {
            fs::write(&cached, &whole[..cut]).unwrap();
            assert_eq!(read(&original, &cached), None, "cut at {cut}");
        }
        fs::write(&cached, &whole).unwrap();
        fs::write(&original, "another original").unwrap();
        assert_eq!(read(&original, &cached), None);
    }
}
