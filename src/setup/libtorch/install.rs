//! Installs a variant into a staging directory: downloads its wheels and writes the stamp. The caller
//! runs the smoke test and publishes.

use std::fs;
use std::path::Path;

use super::fetch_wheels::fetch_wheels;
use super::installation::{A_HEADER, LIBTORCH_VERSION};
use super::stamp::{Stamp, StampedFile, Trust};
use super::variant::Variant;
use super::wheel::RECORDS;
use super::wheel_set::WheelSet;
use crate::fetch::{FetchError, Progress, Staging, UnpackedMember, sync};
use crate::setup::error::SetupError;

/// The installation of one set of wheels.
pub(super) struct Job<'a> {
    pub(super) wheels: &'a WheelSet,
    pub(super) variant: Variant,
    pub(super) headers: bool,
    pub(super) progress: &'a dyn Progress,
}

impl Job<'_> {
    /// Fills `staging` with the variant. After a failed connection its contents are kept for the next run;
    /// after wrong bytes or on a full disk it is removed.
    pub(super) fn run(&self, mut staging: Staging) -> Result<Staging, SetupError> {
        let mut result = self.fill(&staging);
        if staging.resumed() && matches!(&result, Err(SetupError::Fetch(error)) if error.is_wrong_bytes()) {
            // The wrong bytes may come from an earlier run.
            staging.clear()?;
            result = self.fill(&staging);
        }
        match result {
            Ok(()) => Ok(staging),
            Err(error) => {
                if let SetupError::Fetch(why) = &error
                    && (why.is_wrong_bytes() || why.is_full_disk())
                {
                    staging.discard();
                }
                Err(error)
            }
        }
    }

    fn fill(&self, staging: &Staging) -> Result<(), SetupError> {
        let (files, trust) = fetch_wheels(self.wheels, staging, self.progress)?;
        self.finish(staging.path(), &files, trust)
    }

    /// Writes the files that are not in a wheel, and the stamp.
    fn finish(&self, into: &Path, files: &[UnpackedMember], trust: Trust) -> Result<(), SetupError> {
        let records = into.join(RECORDS);
        fs::remove_dir_all(&records).map_err(SetupError::file("remove", records))?;
        if self.headers && !into.join(A_HEADER).is_file() {
            let archive = self.wheels.opened.first().map_or_else(String::new, |one| one.archive.shown());
            return Err(FetchError::Missing { archive, member: A_HEADER.into() }.into());
        }
        // torch-sys links against libtorch.so. The wheel's would pull in libtorch_cuda.
        let script = into.join("lib/libtorch.so");
        if script.symlink_metadata().is_ok() {
            fs::remove_file(&script).map_err(SetupError::file("remove", &script))?;
        }
        fs::write(&script, "INPUT ( libtorch_cpu.so libc10.so )\n")
            .map_err(SetupError::file("write", script))?;
        let version = into.join("build-version");
        let text = match self.variant {
            Variant::Cpu => LIBTORCH_VERSION.to_owned(),
            variant => format!("{LIBTORCH_VERSION}+{}", variant.name()),
        };
        fs::write(&version, text).map_err(SetupError::file("write", version))?;
        // Headers are not listed: they are many, and only a build needs them.
        let is_script = |file: &UnpackedMember| file.path == Path::new("lib/libtorch.so");
        let stamped = files
            .iter()
            .filter(|file| {
                !file.path.starts_with("include") && !file.path.starts_with(RECORDS) && !is_script(file)
            })
            .map(|file| StampedFile {
                path: file.path.display().to_string(),
                size: file.size,
                sha256: hex::encode(file.sha256),
            })
            .collect();
        let sources = self.wheels.opened.iter().map(|one| one.archive.shown()).collect();
        Stamp::new(self.variant.name(), sources, trust, self.headers, stamped)
            .write(into)
            .map_err(SetupError::file("write the stamp in", into))?;
        // Otherwise a power cut after the rename could leave empty files under the final names.
        for file in files.iter().filter(|file| file.path.starts_with("lib") && !is_script(file)) {
            let path = into.join(&file.path);
            sync(&path).map_err(SetupError::file("write", path))?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(dead_code, clippy::unwrap_used, reason = "shared with the tests of fetch, which use all of it")]
#[path = "../../../tests/support/rude_server.rs"]
mod rude_server;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::io::{Cursor, Write};
    use std::time::Duration;

    use sha2::{Digest, Sha256};
    use zip::write::SimpleFileOptions;

    use super::super::package_tool::WheelLocation;
    use super::super::sources::FoundWheel;
    use super::super::wheel::Wheel;
    use super::*;
    use crate::fetch::{Client, FolderLock, Meter, Policy, Silent, WheelRecord};

    use super::rude_server::{Manner, RudeServer};

    const CUPTI: &[u8] = b"the bytes of a library";

    /// A wheel named like the real one with another content, and its RECORD's hash.
    fn a_wheel(record_of: &[u8]) -> (Vec<u8>, String) {
        let mut library = UnpackedMember {
            name: "nvidia/cu13/lib/libcupti.so.13".into(),
            path: "".into(),
            size: record_of.len() as u64,
            sha256: Sha256::digest(record_of).into(),
        };
        // The record's notation is read back from the comparison's own message.
        let line = |unpacked: &UnpackedMember| {
            let hash = WheelRecord::default().check(unpacked).unwrap_err().actual;
            format!("{},sha256={},{}\n", unpacked.name, hash.split(' ').next().unwrap(), unpacked.size)
        };
        let mut record = line(&library);
        library.name = "nvidia_cuda_cupti-13.0.85.dist-info/licenses/License.txt".into();
        library.size = 3;
        library.sha256 = Sha256::digest(b"may").into();
        record += &line(&library);
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let info = "nvidia_cuda_cupti-13.0.85.dist-info";
        for (name, bytes) in [
            ("nvidia/cu13/lib/libcupti.so.13".to_owned(), CUPTI),
            (format!("{info}/licenses/License.txt"), b"may"),
            (format!("{info}/RECORD"), record.as_bytes()),
        ] {
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
        }
        (zip.finish().unwrap().into_inner(), hex::encode(Sha256::digest(&record)))
    }

    fn pinned(wheel: &[u8], record: &str) -> Wheel {
        let sha256 = hex::encode(Sha256::digest(wheel));
        Wheel::from(super::super::pinned_wheels::CPU[1]).with_pins(&sha256, record)
    }

    /// Installs from a server that serves `bytes`; what the stamp says, or the message.
    fn run(bytes: &[u8], wheel: Wheel, told: Option<String>, manner: Manner) -> Result<Stamp, String> {
        let server = RudeServer::start(HashMap::from([("/w.whl".to_owned(), bytes.to_vec())]));
        server.behave("/w.whl", &[manner]);
        let home = tempfile::tempdir().unwrap();
        let policy = Policy { first_pause: Duration::from_millis(1), attempts: 2, ..Policy::default() };
        let (client, target) = (Client::new(policy).unwrap(), home.path().join("it"));
        let located = WheelLocation { address: server.url("/w.whl"), sha256: told };
        let found = vec![FoundWheel { wheel, located, named_by_user: false }];
        let lock = FolderLock::acquire(home.path(), &Silent).unwrap();
        let install = || -> Result<(), SetupError> {
            let wheels = WheelSet::open(&client, found, false, &Meter::new(&Silent))?;
            let job = Job { wheels: &wheels, variant: Variant::Cpu, headers: false, progress: &Silent };
            job.run(Staging::open(&lock, "it")?)?.publish(&target)?;
            Ok(())
        };
        let result = install();
        let left: Vec<_> = fs::read_dir(home.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
        let left = left.iter().filter(|name| !name.to_string_lossy().starts_with(".lock")).count();
        match result {
            Ok(()) => {
                assert_eq!(fs::read(target.join("lib/libcupti.so.13")).unwrap(), CUPTI);
                assert_eq!(fs::read(target.join("licenses/nvidia-cuda-cupti/License.txt")).unwrap(), b"may");
                assert!(!target.join(RECORDS).exists());
                Ok(Stamp::check(&target, false).unwrap())
            }
            Err(error) => {
                assert_eq!(left, 0, "only the lock is left after a failure");
                Err(error.to_string())
            }
        }
    }

    #[test]
    fn a_pinned_wheel_is_installed_by_ranges_and_as_a_stream() {
        let (bytes, record) = a_wheel(CUPTI);
        for manner in [Manner::Fine, Manner::NoRanges] {
            let stamp = run(&bytes, pinned(&bytes, &record), None, manner).unwrap();
            assert_eq!(stamp.trust, Trust::Pinned);
            assert_eq!(stamp.files.len(), 2);
        }
    }

    #[test]
    fn a_member_that_its_record_does_not_know_is_refused() {
        let (bytes, record) = a_wheel(b"the bytes of another one");
        let message = run(&bytes, pinned(&bytes, &record), None, Manner::Fine).unwrap_err();
        assert!(message.contains("libcupti.so.13") && message.contains("nothing was installed"), "{message}");
    }

    #[test]
    fn another_wheel_under_the_pinned_name_is_refused() {
        let (bytes, _) = a_wheel(CUPTI);
        let wheel = pinned(&bytes, &"0".repeat(64));
        let message = run(&bytes, wheel, None, Manner::Fine).unwrap_err();
        assert!(message.contains("RECORD") && message.contains("SHA-256"), "{message}");
    }

    #[test]
    fn an_unknown_wheel_over_an_open_line_is_taken_only_whole_and_with_its_hash() {
        let (bytes, _) = a_wheel(CUPTI);
        let wheel = || pinned(b"another wheel", &"0".repeat(64));
        let told = Some(hex::encode(Sha256::digest(&bytes)));
        assert_eq!(run(&bytes, wheel(), told, Manner::Fine).unwrap().trust, Trust::WholeWheel);
        let message = run(&bytes, wheel(), Some("1".repeat(64)), Manner::Fine).unwrap_err();
        assert!(message.contains("the whole file"), "{message}");
    }

    #[test]
    fn a_page_instead_of_a_wheel_and_a_missing_wheel_are_one_message() {
        let (bytes, record) = a_wheel(CUPTI);
        let message = run(&bytes, pinned(&bytes, &record), None, Manner::Html).unwrap_err();
        assert!(message.contains("web page"), "{message}");
        let message = run(&bytes, pinned(&bytes, &record), None, Manner::Status(404, "")).unwrap_err();
        assert!(message.contains("404"), "{message}");
    }
}
