//! The directories of a `yolo` installation: configuration, data and cache. On Linux these are the
//! XDG directories. With `YOLO_HOME` set, all three are in it, so that the whole installation can be
//! moved to another disk or deleted at once.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use yolo_base::Hint;
use yolo_base::env::YOLO_HOME;

/// The three directories of an installation. None of them has to exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YoloDirs {
    config: PathBuf,
    data: PathBuf,
    cache: PathBuf,
}

/// Why the directories cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum YoloDirsError {
    /// Neither a home directory nor `YOLO_HOME`.
    #[error("this user has no home folder; set HOME, or set YOLO_HOME to a folder for yolo's files")]
    NoHome,
    /// `YOLO_HOME` is a file, or is below one.
    #[error(
        "YOLO_HOME is {}, which is not a folder and cannot be created; set it to a writable folder, or unset it",
        path.display()
    )]
    NoFolder {
        /// Its value.
        path: PathBuf,
    },
    /// The path is not Unicode, which the JSON files that setup writes cannot hold.
    #[error(
        "yolo's folder would be {}, which is not valid UTF-8; set YOLO_HOME to a folder with a valid UTF-8 name",
        path.display()
    )]
    NotUnicode {
        /// The directory.
        path: PathBuf,
    },
    /// `YOLO_HOME` is relative and the working directory cannot be read.
    #[error("YOLO_HOME is {}, which cannot be made absolute: {source}; set it to an absolute path", path.display())]
    Relative {
        /// The value as given.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
}

// Each message names its own remedy.
impl Hint for YoloDirsError {}

impl YoloDirs {
    /// The directories in `YOLO_HOME` if it is set, otherwise the platform's.
    ///
    /// # Errors
    /// When there is neither `YOLO_HOME` nor a home directory, or a path cannot be used.
    pub fn from_env() -> Result<Self, YoloDirsError> {
        let dirs = Self::resolve(std::env::var_os(YOLO_HOME))?;
        let is_text = |path: &&PathBuf| path.to_str().is_some();
        if let Some(path) = [&dirs.config, &dirs.data, &dirs.cache].into_iter().find(|path| !is_text(path)) {
            return Err(YoloDirsError::NotUnicode { path: path.clone() });
        }
        Ok(dirs)
    }

    fn resolve(home: Option<OsString>) -> Result<Self, YoloDirsError> {
        if let Some(home) = home.filter(|home| !home.is_empty()) {
            let path = PathBuf::from(home);
            let path =
                std::path::absolute(&path).map_err(|source| YoloDirsError::Relative { path, source })?;
            // A missing directory is created when something is installed into it.
            return match path.ancestors().find(|part| part.exists()) {
                Some(part) if !part.is_dir() => Err(YoloDirsError::NoFolder { path }),
                _ => Ok(Self::under(&path)),
            };
        }
        let base = etcetera::choose_base_strategy().map_err(|_| YoloDirsError::NoHome)?;
        Ok(Self {
            config: base.config_dir().join("yolo"),
            data: base.data_dir().join("yolo"),
            cache: base.cache_dir().join("yolo"),
        })
    }

    /// All three in one directory, as with `YOLO_HOME`.
    pub fn under(home: &Path) -> Self {
        Self { config: home.join("config"), data: home.join("data"), cache: home.join("cache") }
    }

    /// Settings that the user edits.
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// The file of shell variables that `yolo doctor --fix` writes, for POSIX shells to source.
    pub fn variables(&self) -> PathBuf {
        self.config.join("env.sh")
    }

    /// Downloaded or generated files that are worth keeping: libtorch, weights, data sets.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Files that can be recreated at any time.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// The directory of all data sets, one subdirectory each.
    pub fn data_sets(&self) -> PathBuf {
        self.data.join("datasets")
    }

    /// The directory of all libtorch variants, one subdirectory each.
    pub fn libtorch(&self) -> PathBuf {
        self.data.join("libtorch")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yolo_home_holds_everything() {
        let home = std::path::absolute("/srv/yolo").unwrap();
        let dirs = YoloDirs::resolve(Some("/srv/yolo".into())).unwrap();
        assert_eq!(dirs.config(), home.join("config"));
        assert_eq!(dirs.libtorch(), home.join("data/libtorch"));
        assert_eq!(dirs.cache(), home.join("cache"));
    }

    #[test]
    fn a_relative_yolo_home_is_made_absolute() {
        let dirs = YoloDirs::resolve(Some("here".into())).unwrap();
        assert!(dirs.data().is_absolute(), "{dirs:?}");
    }

    #[test]
    fn an_empty_yolo_home_counts_as_unset() {
        assert_eq!(YoloDirs::resolve(Some(OsString::new())).unwrap(), YoloDirs::resolve(None).unwrap());
    }
}
