//! The Windows prompt at which the command of this process was typed: its paths are read as Windows means them, by
//! [`yolo_base::windows_paths`]. What follows `~` is in the Linux home folder, where `yolo` keeps data.

use std::sync::{LazyLock, Mutex, PoisonError};

use yolo_base::env::{HOME, YOLO_HOME, YOLO_MIRROR};
use yolo_base::windows_paths::{Drives, Form, NotHere, with_backslashes};

use super::error::InWslError;
use super::marker::Marker;

/// The paths that Windows paths on the command line mean. Messages may name them although nothing is there.
static NAMED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn note(path: &str) {
    let here = std::env::current_dir().unwrap_or_default().join(path);
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    named.extend(here.to_str().map(str::to_owned));
}

/// The paths that Windows paths on the command line mean, absolute.
pub(super) fn named() -> Vec<String> {
    NAMED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Variables without which data would be put elsewhere, or come from the internet.
const NEEDED: [&str; 2] = [YOLO_HOME, YOLO_MIRROR];

/// A Windows prompt.
#[derive(Debug)]
pub(crate) struct Prompt {
    marker: Marker,
    drives: &'static Drives,
    home: Option<String>,
}

impl Prompt {
    /// The prompt at which the command of this process was typed; `None` if it was typed in Linux.
    pub(crate) fn of_this_process() -> Option<&'static Self> {
        static HERE: LazyLock<Option<Prompt>> = LazyLock::new(|| {
            let home = std::env::var(HOME).ok().filter(|home| home.starts_with('/'));
            Some(Prompt { marker: Marker::of_this_process()?, drives: Drives::of_this_system(), home })
        });
        HERE.as_ref()
    }

    /// The distribution that it chose.
    pub(crate) fn distribution(&self) -> &str {
        &self.marker.distribution
    }

    /// The path here that a path on the command line means. Names, addresses and Linux paths stay as they are.
    ///
    /// # Errors
    /// If a Windows path leads nowhere.
    pub(crate) fn path(&self, text: &str) -> Result<String, NotHere> {
        let here = self.read(text)?;
        if here != text {
            note(&here);
        }
        Ok(here)
    }

    fn read(&self, text: &str) -> Result<String, NotHere> {
        if text.contains("://") {
            return Ok(text.to_owned());
        }
        if text.contains('"') {
            return Err(NotHere::Quote);
        }
        // cmd keeps the single quotes that PowerShell removes.
        let unquoted = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        let text = unquoted.filter(|path| Form::of(path).is_some()).unwrap_or(text);
        // At this prompt, `//server/share` is what it is in Windows.
        let share = with_backslashes(text).filter(|_| !std::path::Path::new(text).exists());
        if let Some(read) = self.drives.read(share.as_deref().unwrap_or(text), Some(&self.marker.folder)) {
            return read;
        }
        let slashes = text.replace('\\', "/");
        match (slashes.strip_prefix('~'), &self.home) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                Ok(format!("{home}{rest}"))
            }
            _ => Ok(slashes),
        }
    }

    /// Makes this process work in the folder of the prompt, and refuses a `yolo.exe` of another version. Returns a warning if
    /// variables are not set here, because WSL does not see the paths in them.
    ///
    /// # Errors
    /// If WSL does not see that folder or the path in a variable that is needed, or the versions differ.
    pub(crate) fn enter(&self) -> Result<Option<String>, InWslError> {
        let here = env!("CARGO_PKG_VERSION");
        if self.marker.yolo != here {
            return Err(InWslError::OtherVersion {
                distribution: self.marker.distribution.clone(),
                here: here.to_owned(),
                windows: self.marker.yolo.clone(),
            });
        }
        let warning = self.unseen()?;
        let folder = &self.marker.folder;
        // The tests of this module and of forwarding run on Linux.
        let path = match Form::of(folder) {
            None => folder.clone(),
            Some(_) => self
                .path(folder)
                .map_err(|why| InWslError::Folder { folder: folder.clone(), why: why.to_string() })?,
        };
        std::env::set_current_dir(path).map_err(|error| InWslError::Folder {
            folder: folder.clone(),
            why: format!("cannot open it in WSL: {error}"),
        })?;
        Ok(warning)
    }

    /// Which variables WSL has dropped, in one line.
    fn unseen(&self) -> Result<Option<String>, InWslError> {
        let mut dropped = Vec::new();
        for (name, value) in &self.marker.paths {
            let Err(why) = self.read(value) else { continue };
            let why = why.to_string();
            if NEEDED.contains(&name.as_str()) {
                return Err(InWslError::Variable { name: name.clone(), value: value.clone(), why });
            }
            dropped.push(format!("the variable {name} is {value}, and {why}"));
        }
        let is_any = !dropped.is_empty();
        Ok(is_any.then(|| format!("{}; yolo goes on without it", dropped.join("; "))))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn prompt(paths: BTreeMap<String, String>) -> Prompt {
        let told = |name: &str| (name == "YOLO_DRIVE_C").then(|| "/mnt/c".to_owned());
        let drives = Box::leak(Box::new(Drives::found(told, "", Some("Ubuntu".to_owned()))));
        let marker = Marker {
            yolo: "1".to_owned(),
            distribution: "Ubuntu".to_owned(),
            folder: r"C:\my work".to_owned(),
            paths,
        };
        Prompt { marker, drives, home: Some("/home/ada".to_owned()) }
    }

    fn path(text: &str) -> Result<String, NotHere> {
        prompt(BTreeMap::new()).path(text)
    }

    #[test]
    fn only_variables_that_are_needed_are_refused() {
        let unseen = |names: &[&str]| {
            let paths = names.iter().map(|&name| (name.to_owned(), r"\\nas\s\x".to_owned()));
            prompt(paths.collect()).unseen()
        };
        for name in ["YOLO_HOME", "YOLO_MIRROR"] {
            let why = unseen(&["NETRC", name]).unwrap_err().to_string();
            assert!(why.starts_with(&format!(r"the variable {name} is \\nas\s\x, and ")), "{why}");
        }
        let warning = unseen(&["SSL_CERT_FILE", "YOLO_GOLDEN"]).unwrap().unwrap();
        assert!(warning.contains("SSL_CERT_FILE") && warning.contains("YOLO_GOLDEN"), "{warning}");
        assert!(!warning.contains('\n'), "{warning}");
        assert_eq!(unseen(&[]).unwrap(), None);
    }

    #[test]
    fn paths_mean_what_windows_means_and_other_values_stay() {
        for (typed, meant) in [
            (r"data\x.yaml", "data/x.yaml"),
            (r"..\my data\x.yaml", "../my data/x.yaml"),
            (r"photos\*.jpg", "photos/*.jpg"),
            (r"C:\Zoë\x.yaml", "/mnt/c/Zoë/x.yaml"),
            (r"\x.yaml", "/mnt/c/x.yaml"),
            ("C:x.yaml", "x.yaml"),
            (r"'C:\$env\x.yaml'", "/mnt/c/$env/x.yaml"),
            ("'x'", "'x'"),
            ("~", "/home/ada"),
            ("~/data", "/home/ada/data"),
            (r"~\data", "/home/ada/data"),
            ("~x", "~x"),
            (r"\\wsl.localhost\Ubuntu\home\ada\x", "/home/ada/x"),
            ("//wsl.localhost/Ubuntu/home/ada/x", "/home/ada/x"),
            ("/home/ada/x", "/home/ada/x"),
            ("yolov5n", "yolov5n"),
            ("https://host/a", "https://host/a"),
            ("rtsp://host/a", "rtsp://host/a"),
            ("-", "-"),
            ("0", "0"),
            ("", ""),
        ] {
            assert_eq!(path(typed).as_deref(), Ok(meant), "{typed}");
        }
    }

    #[test]
    fn a_share_is_on_the_network_with_either_separator() {
        for typed in [r"\\nas\s\x.yaml", "//nas/s/x.yaml"] {
            let why = path(typed).unwrap_err().to_string();
            assert!(why.contains(r"\\nas\s is on the network"), "{why}");
        }
        // This exists, but on Linux only.
        if cfg!(unix) {
            assert_eq!(path("//usr/bin").as_deref(), Ok("//usr/bin"));
        }
    }

    #[test]
    fn a_folder_whose_closing_quotation_mark_was_swallowed_is_explained() {
        let why = path("C:\\my data\" --epochs 3").unwrap_err().to_string();
        assert!(why.contains("omit the last backslash"), "{why}");
    }
}
