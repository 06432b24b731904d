//! Where `yolo` keeps its things: configuration, data and cache.
//! On Linux these are the XDG folders; with `YOLO_HOME` set, all three lie under it, so that a
//! whole installation can be moved to another disk or thrown away in one go.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

/// The three folders of an installation. None of them need exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    config: PathBuf,
    data: PathBuf,
    cache: PathBuf,
}

/// Why the folders cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum PlacesError {
    /// Neither a home folder nor `YOLO_HOME`.
    #[error("the home folder of this user is not known; set HOME, or YOLO_HOME to a folder for yolo's files")]
    NoHome,
    /// `YOLO_HOME` is a file, or lies below one.
    #[error("YOLO_HOME is {}, which is no folder and cannot become one; set it to a folder for yolo's files", path.display())]
    NoFolder {
        /// Its value.
        path: PathBuf,
    },
    /// A name in the path is no Unicode text, which stamps and records of files cannot hold.
    #[error(
        "yolo's folder would be {}, whose name is not valid UTF-8; set YOLO_HOME to a folder whose name is",
        path.display()
    )]
    NotUnicode {
        /// The folder.
        path: PathBuf,
    },
    /// `YOLO_HOME` is relative and the working folder cannot be read.
    #[error("YOLO_HOME is {path}, which cannot be made absolute; set it to an absolute path")]
    Relative {
        /// The value as it was given.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

impl Places {
    /// The folders that the environment names: `YOLO_HOME`, else the platform's.
    ///
    /// # Errors
    /// When there is neither `YOLO_HOME` nor a home folder.
    pub fn from_env() -> Result<Self, PlacesError> {
        let places = Self::resolve(std::env::var_os("YOLO_HOME"))?;
        let is_text = |path: &&PathBuf| path.to_str().is_some();
        if let Some(path) =
            [&places.config, &places.data, &places.cache].into_iter().find(|path| !is_text(path))
        {
            return Err(PlacesError::NotUnicode { path: path.clone() });
        }
        Ok(places)
    }

    fn resolve(home: Option<OsString>) -> Result<Self, PlacesError> {
        if let Some(home) = home.filter(|home| !home.is_empty()) {
            let path = PathBuf::from(home);
            let path = std::path::absolute(&path).map_err(|source| PlacesError::Relative { path, source })?;
            // A folder that is not there yet is made when something is put into it.
            return match path.ancestors().find(|part| part.exists()) {
                Some(part) if !part.is_dir() => Err(PlacesError::NoFolder { path }),
                _ => Ok(Self::under(&path)),
            };
        }
        let base = etcetera::choose_base_strategy().map_err(|_| PlacesError::NoHome)?;
        Ok(Self {
            config: base.config_dir().join("yolo"),
            data: base.data_dir().join("yolo"),
            cache: base.cache_dir().join("yolo"),
        })
    }

    /// All three under one folder, as `YOLO_HOME` asks.
    pub fn under(home: &Path) -> Self {
        Self { config: home.join("config"), data: home.join("data"), cache: home.join("cache") }
    }

    /// Settings that a person edits.
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// What was fetched or made and is worth keeping: libtorch, weights, data sets.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// What can be made again at any time.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// The folder that holds one folder a data set.
    pub fn data_sets(&self) -> PathBuf {
        self.data.join("datasets")
    }

    /// The folder that holds one folder a variant of libtorch.
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
        let places = Places::resolve(Some("/srv/yolo".into())).unwrap();
        assert_eq!(places.config(), home.join("config"));
        assert_eq!(places.libtorch(), home.join("data/libtorch"));
        assert_eq!(places.cache(), home.join("cache"));
    }

    #[test]
    fn a_relative_yolo_home_is_made_absolute() {
        let places = Places::resolve(Some("here".into())).unwrap();
        assert!(places.data().is_absolute(), "{places:?}");
    }

    #[test]
    fn an_empty_yolo_home_counts_as_unset() {
        assert_eq!(Places::resolve(Some(OsString::new())).unwrap(), Places::resolve(None).unwrap());
    }
}
