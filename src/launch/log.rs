//! The log of a rank, `logs/rankN.log`. The libraries of the rank write into it directly, so that their last words
//! are there however the rank or this program ends. Between them, this program writes what it hears and sees of
//! the rank, each line with the time in UTC and a mark by which messages quote the libraries alone. A later start
//! of the same run appends.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use fs_err as fs;

/// What follows the time in a line of this program.
const MARK: &str = " yolo: ";
/// The length of a time such as `2026-11-23T09:37:18.123Z`.
const TIME: usize = 24;
/// Lines of libraries that a message quotes.
const QUOTED_LINES: usize = 8;
/// Only so many bytes at the end of a log are looked at: with its debug output on, NCCL writes gigabytes.
const QUOTED_BYTES: u64 = 256 << 10;

/// The log of one start of a rank.
#[derive(Debug)]
pub(super) struct RankLog {
    path: PathBuf,
    file: File,
    /// Where this start begins: what is before it is of an earlier one.
    begin: u64,
    written: Mutex<Written>,
}

/// Bytes since the start.
#[derive(Debug, Default)]
struct Written {
    own: u64,
    /// Those of libraries that are followed by a line with the time.
    dated: u64,
}

impl RankLog {
    /// Opens the log at `path`, to append to it.
    #[cfg_attr(not(unix), allow(dead_code, reason = "on Windows only tests open a log"))]
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        let file = fs::OpenOptions::new().create(true).append(true).read(true).open(path)?.into_parts().0;
        let begin = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, begin, written: Mutex::default() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file, for the output of the rank.
    #[cfg_attr(not(unix), allow(dead_code, reason = "on Windows only tests open a log"))]
    pub(super) fn output(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }

    /// Appends these lines with the time. A log that cannot be written, as on a full disk, ends no run.
    pub(super) fn say(&self, text: &str) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let theirs = self.of_libraries(&written);
        let time = humantime::format_rfc3339_millis(SystemTime::now());
        let mut lines = String::new();
        if theirs > written.dated && !self.ends_with_a_line() {
            lines.push('\n');
        }
        for line in text.lines() {
            lines.push_str(&format!("{time}{MARK}{line}\n"));
        }
        written.dated = theirs;
        if (&self.file).write_all(lines.as_bytes()).is_ok() {
            written.own += lines.len() as u64;
        }
    }

    /// Dates what libraries have written since the last line. Called every second, so that each of their lines has
    /// a time soon after it, without a pipe between them and the file that could block the rank.
    pub(super) fn date(&self) {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = self.of_libraries(&written) > written.dated;
        drop(written);
        if is_new {
            self.say("libraries of the rank wrote the lines above");
        }
    }

    /// The last lines of libraries in this start, without the frames of C++ backtraces.
    pub(super) fn quoted(&self) -> Vec<String> {
        let lines = of_libraries(&self.text().unwrap_or_default());
        lines[lines.len().saturating_sub(QUOTED_LINES)..].to_vec()
    }

    fn text(&self) -> std::io::Result<String> {
        // A file of its own, since the position in `self.file` belongs to the rank as well.
        let mut file = File::open(&self.path)?;
        let end = file.metadata()?.len();
        let from = end.saturating_sub(QUOTED_BYTES).max(self.begin);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let whole =
            if from > self.begin { text.split_once('\n').map_or("", |(_, rest)| rest) } else { &text };
        Ok(whole.to_owned())
    }

    /// Bytes of libraries.
    fn of_libraries(&self, written: &Written) -> u64 {
        let length = self.file.metadata().map_or(0, |metadata| metadata.len());
        length.saturating_sub(self.begin + written.own)
    }

    fn ends_with_a_line(&self) -> bool {
        let mut last = [b'\n'];
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)
        });
        read.is_err() || last == [b'\n']
    }
}

/// Whether libraries have written anything into a log in this folder.
pub(crate) fn have_output(logs: &Path) -> bool {
    let files = fs::read_dir(logs).into_iter().flatten().filter_map(Result::ok);
    let text = |path: PathBuf| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    files.into_iter().any(|file| !of_libraries(&text(file.path())).is_empty())
}

/// The lines that libraries wrote.
fn of_libraries(text: &str) -> Vec<String> {
    let is_empty = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with("frame #");
    text.lines().filter(|line| !is_empty(line) && !is_own(line)).map(str::to_owned).collect()
}

/// Whether this program wrote the line.
fn is_own(line: &str) -> bool {
    let time = line.get(..TIME).unwrap_or_default();
    humantime::parse_rfc3339(time).is_ok() && line[TIME..].starts_with(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> (tempfile::TempDir, RankLog) {
        let folder = tempfile::tempdir().unwrap();
        let log = RankLog::open(&folder.path().join("rank0.log")).unwrap();
        (folder, log)
    }

    /// As a library of the rank does.
    fn print(log: &RankLog, text: &str) {
        log.output().unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn text(log: &RankLog) -> String {
        fs::read_to_string(log.path()).unwrap()
    }

    #[test]
    fn each_own_line_has_the_time() {
        let (_folder, log) = log();
        log.say("training\nepoch 1");
        let text = text(&log);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 2 && lines.iter().all(|line| is_own(line)), "{text}");
        assert!(lines[0].ends_with("Z yolo: training") && lines[1].ends_with("Z yolo: epoch 1"), "{text}");
        assert!(
            !is_own("[W1123 09:37:18.123 yolo: x") && !is_own("") && !is_own("2026-11-23T09:37:18.123Z x")
        );
    }

    #[test]
    fn libraries_alone_are_quoted() {
        let (_folder, log) = log();
        log.say("training");
        print(&log, "terminate called\nframe #0: x\n\n  what(): bad\n");
        log.say("the process was killed by signal 6 (SIGABRT)");
        assert_eq!(log.quoted(), ["terminate called", "  what(): bad"]);
        let many: String = (0..100).map(|line| format!("{line}\n")).collect();
        print(&log, &many);
        assert_eq!(log.quoted(), (92..100).map(|line| line.to_string()).collect::<Vec<_>>());
    }

    #[test]
    fn an_earlier_start_is_kept_and_not_quoted() {
        let (_folder, log) = log();
        print(&log, "of the first start\n");
        let again = RankLog::open(log.path()).unwrap();
        again.say("started");
        assert!(again.quoted().is_empty());
        print(&again, "of the second\n");
        assert_eq!(again.quoted(), ["of the second"]);
        assert!(text(&log).starts_with("of the first start\n"));
    }

    #[test]
    fn lines_of_libraries_are_dated_once() {
        let (_folder, log) = log();
        log.date();
        assert_eq!(text(&log), "", "there is nothing to date");
        print(&log, "NCCL INFO\n");
        (0..3).for_each(|_| log.date());
        let dated = text(&log);
        assert_eq!(dated.lines().count(), 2, "{dated}");
        assert!(dated.ends_with("Z yolo: libraries of the rank wrote the lines above\n"), "{dated}");
        log.say("training");
        log.date();
        assert_eq!(text(&log).lines().count(), 3, "own lines need no date");
    }

    #[test]
    fn an_unfinished_line_of_a_library_stays_apart() {
        let (_folder, log) = log();
        print(&log, "loading 10 %");
        log.say("training");
        assert_eq!(log.quoted(), ["loading 10 %"]);
        assert!(text(&log).lines().last().is_some_and(is_own), "{}", text(&log));
    }

    #[test]
    fn a_long_log_is_quoted_from_its_end() {
        let (_folder, log) = log();
        print(&log, &"x".repeat(QUOTED_BYTES as usize));
        print(&log, "\nthe end\n");
        assert_eq!(log.quoted(), ["the end"]);
    }

    #[test]
    fn logs_that_only_this_program_wrote_have_no_output() {
        let (folder, log) = log();
        assert!(!have_output(folder.path()) && !have_output(&folder.path().join("none")));
        log.say("started");
        assert!(!have_output(folder.path()));
        print(&log, "NCCL WARN\n");
        assert!(have_output(folder.path()));
    }
}
