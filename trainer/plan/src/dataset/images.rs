//! Which files are images by their names, and where the paths of a list file lead. The data set's splits and the
//! sources of `yolo predict` share both.

use std::path::{Path, PathBuf};

use yolo_base::windows_paths;

/// The extensions of images in YOLOv5. `dng` and `pfm` cannot be decoded; they are listed so that
/// whoever reads the files reports them as unsupported.
pub const IMAGE_EXTENSIONS: [&str; 10] =
    ["bmp", "dng", "jpeg", "jpg", "mpo", "png", "tif", "tiff", "webp", "pfm"];

/// Whether the file has the extension of an image.
pub fn is_image(path: &Path) -> bool {
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| IMAGE_EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str()))
}

/// The file that a line of a list names. A leading `./` is the folder of the list. Other relative paths are
/// looked up in the working folder, then in the folder of the list. A list may have been written in Windows.
pub fn path_in_list(line: &str, folder: &Path, working_dir: &Path) -> PathBuf {
    let of_windows = windows_paths::in_file(line).filter(|_| !working_dir.join(line).exists());
    let line = of_windows.as_deref().unwrap_or(line);
    let here = working_dir.join(line);
    match line.strip_prefix("./") {
        Some(rest) => folder.join(rest),
        None if here.exists() => here,
        None => folder.join(line),
    }
}
