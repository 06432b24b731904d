//! One attempt to install libtorch from one source: select, check the room, fetch, compare with
//! each wheel's RECORD, publish. The same steps serve every source.

use std::fs;
use std::path::Path;

use super::pip::Located;
use super::stamp::{A_HEADER, Stamp, StampedFile, Trust};
use super::wheels::{RECORDS, UNPACKED, Wheel};
use super::{LIBTORCH_VERSION, SetupError};
use crate::fetch::{
    Archive, Client, Event, FetchError, Incoming, Lock, Meter, Pick, Progress, Record, Selection, Unpacked,
    free_bytes,
};

/// Room that must be left beside the libraries.
const MARGIN: u64 = 64 << 20;

/// A source that answered, and where its wheels go.
pub(super) struct Job<'a> {
    pub(super) client: &'a Client,
    pub(super) wheels: &'a [Wheel],
    pub(super) located: &'a [Located],
    pub(super) headers: bool,
    pub(super) target: &'a Path,
    pub(super) progress: &'a dyn Progress,
}

/// How a wheel will be read.
struct Prepared<'a> {
    wheel: &'a Wheel,
    archive: Archive,
    picks: Vec<Pick>,
    /// `None`: without ranges, streamed once.
    selection: Option<Selection>,
    /// What a whole wheel must hash to, where someone told.
    whole: Option<&'a str>,
}

impl Job<'_> {
    /// Installs into `target`, whole or not at all.
    pub(super) fn run(&self, lock: &Lock) -> Result<(), SetupError> {
        let meter = Meter::new(self.progress);
        let prepared = self
            .wheels
            .iter()
            .zip(self.located)
            .map(|(wheel, located)| self.prepare(wheel, located, &meter))
            .collect::<Result<Vec<_>, _>>()?;
        self.check_room(&prepared)?;
        for selection in prepared.iter().filter_map(|one| one.selection.as_ref()) {
            meter.expect(selection.transfer());
        }
        let incoming = Incoming::new(lock)?;
        let into = incoming.path();
        let results: Vec<_> = std::thread::scope(|scope| {
            let running: Vec<_> =
                prepared.iter().map(|one| scope.spawn(|| one.fetch(into, &meter))).collect();
            // A panic of a thread is a defect of this program and goes on as one.
            running
                .into_iter()
                .map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let (mut files, mut trust) = (Vec::new(), Trust::Pinned);
        for result in results {
            let (unpacked, rests_on) = result?;
            files.extend(unpacked);
            trust = weaker(trust, rests_on);
        }
        self.finish(into, &files, &prepared, trust)?;
        incoming.publish(self.target)?;
        Ok(())
    }

    fn prepare<'a>(
        &self,
        wheel: &'a Wheel,
        located: &'a Located,
        meter: &Meter<'_>,
    ) -> Result<Prepared<'a>, FetchError> {
        let archive = Archive::open(self.client, &located.address)?;
        let picks = wheel.picks(self.headers);
        let pinned =
            located.sha256.as_deref().is_none_or(|sha| sha == wheel.sha256) && !wheel.sha256.is_empty();
        // Unknown bytes over an open line are believed only as a whole that has the told hash.
        let open_line = located.address.starts_with("http:") && !pinned;
        let selection = if open_line {
            None
        } else {
            match archive.select(&picks, meter) {
                Ok(selection) => Some(selection),
                Err(FetchError::NoRanges { url }) => {
                    let text = format!("{url} cannot be read in parts; it is fetched whole");
                    self.progress.event(Event::Note { text: &text });
                    None
                }
                Err(error) => return Err(error),
            }
        };
        if open_line && located.sha256.is_none() {
            return Err(FetchError::Refused {
                url: archive.shown(),
                why: "neither its hash is known nor is the connection encrypted".into(),
            });
        }
        let told = located.sha256.as_deref();
        let whole = told.or((!wheel.sha256.is_empty()).then_some(wheel.sha256));
        Ok(Prepared { wheel, archive, picks, selection, whole })
    }

    fn check_room(&self, prepared: &[Prepared<'_>]) -> Result<(), FetchError> {
        let need = prepared.iter().map(|one| one.selection.as_ref().map_or(UNPACKED, Selection::unpacked));
        let need = need.sum::<u64>() + MARGIN;
        let free = free_bytes(self.target)?;
        if free < need {
            let path = self.target.parent().unwrap_or(self.target).to_owned();
            return Err(FetchError::Space { path, free: megabytes(free), need: megabytes(need) });
        }
        Ok(())
    }

    /// The files that no wheel holds, and the stamp.
    fn finish(
        &self,
        into: &Path,
        files: &[Unpacked],
        prepared: &[Prepared<'_>],
        trust: Trust,
    ) -> Result<(), SetupError> {
        let records = into.join(RECORDS);
        fs::remove_dir_all(&records).map_err(SetupError::file("remove", records))?;
        if self.headers && !into.join(A_HEADER).is_file() {
            return Err(FetchError::Missing {
                archive: prepared[0].archive.shown(),
                member: A_HEADER.into(),
            }
            .into());
        }
        // torch-sys links libtorch, which in the wheel would ask for libtorch_cuda as well.
        let script = into.join("lib/libtorch.so");
        if !script.exists() {
            fs::write(&script, "INPUT ( libtorch_cpu.so libc10.so )\n")
                .map_err(SetupError::file("write", script))?;
        }
        let version = into.join("build-version");
        fs::write(&version, LIBTORCH_VERSION).map_err(SetupError::file("write", version))?;
        // Headers are many and matter to a build only; libraries and licences are few.
        let stamped = files
            .iter()
            .filter(|file| !file.path.starts_with("include") && !file.path.starts_with(RECORDS))
            .map(|file| StampedFile {
                path: file.path.display().to_string(),
                size: file.size,
                sha256: hex::encode(file.sha256),
            })
            .collect();
        let sources = prepared.iter().map(|one| one.archive.shown()).collect();
        Stamp::new("cpu", sources, trust, self.headers, stamped)
            .write(into)
            .map_err(SetupError::file("write the stamp in", into))?;
        // A power cut after the rename must not find empty files under the right names.
        for file in files.iter().filter(|file| file.path.starts_with("lib")) {
            let path = into.join(&file.path);
            let synced = fs::File::open(&path).and_then(|file| file.sync_data());
            synced.map_err(SetupError::file("write", path))?;
        }
        Ok(())
    }
}

impl Prepared<'_> {
    fn fetch(&self, into: &Path, meter: &Meter<'_>) -> Result<(Vec<Unpacked>, Trust), FetchError> {
        let (unpacked, whole) = match &self.selection {
            Some(selection) => (self.archive.take(selection, into, meter)?, None),
            None => {
                let (unpacked, sha256) = self.archive.stream(&self.picks, into, meter)?;
                (unpacked, Some(hex::encode(sha256)))
            }
        };
        if let (Some(expected), Some(actual)) = (self.whole, &whole)
            && expected != actual
        {
            return Err(self.wrong("the whole file", expected.to_owned(), actual.clone()));
        }
        let trust = self.check_record(&unpacked, into, whole.is_some() && self.whole.is_some())?;
        Ok((unpacked, trust))
    }

    /// Compares every member with RECORD, and RECORD with its pin where this wheel is the known one.
    fn check_record(&self, unpacked: &[Unpacked], into: &Path, whole: bool) -> Result<Trust, FetchError> {
        let place = self.wheel.record_place();
        let is_record = |file: &&Unpacked| file.path == Path::new(&place);
        let record = unpacked
            .iter()
            .find(is_record)
            .ok_or_else(|| FetchError::Missing { archive: self.archive.shown(), member: "RECORD".into() })?;
        let trust = if self.whole == Some(self.wheel.sha256) && !self.wheel.sha256.is_empty() {
            let actual = hex::encode(record.sha256);
            if actual != self.wheel.record_sha256 {
                return Err(self.wrong(&record.name, self.wheel.record_sha256.to_owned(), actual));
            }
            Trust::Pinned
        } else if whole {
            Trust::WholeWheel
        } else {
            Trust::Tls
        };
        let path = into.join(&place);
        let text =
            fs::read_to_string(&path).map_err(|source| FetchError::Disk { action: "read", path, source })?;
        let record = Record::parse(&text);
        for file in unpacked.iter().filter(|file| !is_record(file)) {
            record
                .check(file)
                .map_err(|mismatch| self.wrong(&mismatch.member, mismatch.expected, mismatch.actual))?;
        }
        Ok(trust)
    }

    fn wrong(&self, member: &str, expected: String, actual: String) -> FetchError {
        let (archive, member) = (self.archive.shown(), member.to_owned());
        FetchError::Wrong { archive, member, what: "SHA-256", expected, actual }
    }
}

fn weaker(one: Trust, other: Trust) -> Trust {
    match (one, other) {
        (Trust::Tls, _) | (_, Trust::Tls) => Trust::Tls,
        (Trust::WholeWheel, _) | (_, Trust::WholeWheel) => Trust::WholeWheel,
        (Trust::Pinned, Trust::Pinned) => Trust::Pinned,
    }
}

pub(super) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
#[allow(dead_code, clippy::unwrap_used, reason = "shared with the tests of fetch, which use all of it")]
#[path = "../../tests/support/rude_server.rs"]
mod rude_server;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::io::{Cursor, Write};
    use std::time::Duration;

    use sha2::{Digest, Sha256};
    use zip::write::SimpleFileOptions;

    use super::*;
    use crate::fetch::{Policy, Silent};

    use super::rude_server::{Manner, RudeServer};

    const CUPTI: &[u8] = b"the bytes of a library";

    /// A wheel named like the real one with another content, and its RECORD's hash.
    fn a_wheel(record_of: &[u8]) -> (Vec<u8>, String) {
        let mut library = Unpacked {
            name: "nvidia/cu13/lib/libcupti.so.13".into(),
            path: "".into(),
            size: record_of.len() as u64,
            sha256: Sha256::digest(record_of).into(),
        };
        // The record's notation is read back from the comparison's own message.
        let line = |unpacked: &Unpacked| {
            let hash = Record::default().check(unpacked).unwrap_err().actual;
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
        // Pins are constants of the program; a test's live as long as its process.
        crate::setup::wheels::CPU[1].with_pins(sha256.leak(), record.to_owned().leak())
    }

    /// Installs from a server that serves `bytes`; what the stamp says, or the message.
    fn run(bytes: &[u8], wheel: Wheel, told: Option<String>, manner: Manner) -> Result<Stamp, String> {
        let server = RudeServer::start(HashMap::from([("/w.whl".to_owned(), bytes.to_vec())]));
        server.behave("/w.whl", &[manner]);
        let home = tempfile::tempdir().unwrap();
        let policy = Policy { first_pause: Duration::from_millis(1), attempts: 2, ..Policy::default() };
        let (client, target) = (Client::new(policy).unwrap(), home.path().join("it"));
        let located = [Located { address: server.url("/w.whl"), sha256: told }];
        let lock = Lock::acquire(home.path(), &Silent).unwrap();
        let job = Job {
            client: &client,
            wheels: &[wheel],
            located: &located,
            headers: false,
            target: &target,
            progress: &Silent,
        };
        let result = job.run(&lock);
        let left = fs::read_dir(home.path()).unwrap().count();
        match result {
            Ok(()) => {
                assert_eq!(fs::read(target.join("lib/libcupti.so.13")).unwrap(), CUPTI);
                assert_eq!(fs::read(target.join("licenses/nvidia-cuda-cupti/License.txt")).unwrap(), b"may");
                assert!(!target.join(RECORDS).exists());
                Ok(Stamp::check(&target, false).unwrap())
            }
            Err(error) => {
                assert_eq!(left, 1, "only the lock is left after a failure");
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
