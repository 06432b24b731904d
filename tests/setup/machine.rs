//! A user of `yolo setup` with an empty home and a mirror, shared by the tests of setup.

use std::collections::HashMap;
use std::fs;
use std::io::{Cursor, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use zip::write::SimpleFileOptions;

use crate::rude_server::RudeServer;
use crate::user::{Finished, User, square};

/// A user with an empty home, and a mirror.
pub(crate) struct Machine {
    pub(crate) user: User,
    pub(crate) server: RudeServer,
}

impl Machine {
    pub(crate) fn with(files: HashMap<String, Vec<u8>>) -> Self {
        Self { user: User::new(), server: RudeServer::start(files) }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.user.path().join("home")
    }

    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = self.user.command(words);
        command
            .env("YOLO_HOME", self.home())
            .env("YOLO_MIRROR", self.server.url(""))
            .env_remove("LIBTORCH")
            .env_remove("YOLO_OFFLINE");
        // These tests are not about the trainer.
        command.env("YOLO_TRAINER", std::env::current_exe().unwrap()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &str) -> Finished {
        Finished::from(self.command(words).output().unwrap())
    }

    pub(crate) fn json(&self, words: &str) -> serde_json::Value {
        serde_json::from_str(&self.run(words).succeeded().stdout).unwrap()
    }

    /// All files in the home, without locks and the notes for `yolo undo`.
    pub(crate) fn installed(&self) -> Vec<String> {
        fn walk(folder: &std::path::Path, found: &mut Vec<String>) {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().ends_with("config/backups") {
                    continue;
                }
                if entry.path().is_dir() {
                    walk(&entry.path(), found);
                } else if !entry.file_name().to_string_lossy().starts_with(".lock") {
                    found.push(entry.path().display().to_string());
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.home(), &mut found);
        found
    }

    /// Writes the yaml of a data set with two classes into the user's working folder.
    pub(crate) fn yaml(&self, name: &str, path: &str, download: &str) {
        let yaml = format!(
            "path: {path}\ntrain: images/train\nval: images/val\nnames: [red, blue]\ndownload: {download}\n"
        );
        fs::write(self.user.path().join(name), yaml).unwrap();
    }

    pub(crate) fn data_sets(&self) -> PathBuf {
        self.home().join("data/datasets")
    }
}

pub(crate) fn zip(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        writer.start_file(name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A data set in YOLOv5's layout: four images to train and two to validate.
pub(crate) fn squares(root: &str) -> Vec<(String, Vec<u8>)> {
    let mut members = Vec::new();
    for (split, count) in [("train", 4), ("val", 2)] {
        for index in 0..count {
            let (image, label) = square(index, split == "val");
            members.push((format!("{root}images/{split}/{index}.bmp"), image));
            members.push((format!("{root}labels/{split}/{index}.txt"), label.into_bytes()));
        }
    }
    members
}

pub(crate) fn coco8() -> Machine {
    Machine::with(HashMap::from([("/coco8.zip".to_owned(), zip(&squares("coco8/")))]))
}
