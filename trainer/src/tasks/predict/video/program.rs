//! The programs ffmpeg and ffprobe: whether they are there, what this version of them can do, and running processes,
//! which end with the value that holds them.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::said::Said;
use crate::error::TrainError;

/// Of the messages of a program, so many bytes at the end are kept.
const KEPT: usize = 65_536;

/// The installed ffmpeg.
#[derive(Debug, Clone)]
pub(crate) struct Ffmpeg {
    /// The options that keep every frame once, whatever its time.
    pub(super) every_frame: [&'static str; 2],
    /// The options that keep the times of frames.
    pub(super) own_times: [&'static str; 2],
    /// The encoder of videos, and its options.
    pub(super) encoder: &'static [&'static str],
}

impl Ffmpeg {
    /// Asks ffmpeg what it can do.
    ///
    /// # Errors
    /// When it cannot be started, or has no encoder for MP4.
    pub(crate) fn find() -> Result<Self, TrainError> {
        let version = answer(&["-version"])?;
        let (every_frame, own_times) = match has_fps_mode(&version) {
            true => (["-fps_mode", "passthrough"], ["-fps_mode", "vfr"]),
            false => (["-vsync", "0"], ["-vsync", "vfr"]),
        };
        let encoders = answer(&["-hide_banner", "-encoders"])?;
        let encoder = encoder(&encoders).ok_or_else(|| {
            TrainError::new(
                "ffmpeg can write no MP4 video: it has none of the encoders libx264, libopenh264, mpeg4",
            )
            .with_hint("install another build of ffmpeg, or omit the video with --nosave")
        })?;
        Ok(Self { every_frame, own_times, encoder })
    }
}

/// What ffmpeg prints.
fn answer(arguments: &[&str]) -> Result<String, TrainError> {
    let failed = |why: String| {
        TrainError::new(format!("cannot read videos: ffmpeg {why}"))
            .with_hint("install ffmpeg, on Debian and Ubuntu: apt-get install ffmpeg")
    };
    let output = Command::new("ffmpeg")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(format!("cannot be started: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(failed(format!("{} ends with {}: {said}", arguments.join(" "), output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether ffmpeg knows `-fps_mode`: since 5.1, and in builds from its repository, whose versions are no numbers.
fn has_fps_mode(version: &str) -> bool {
    let number = version.strip_prefix("ffmpeg version ").unwrap_or_default();
    let mut parts = number.trim_start_matches('n').split(|letter: char| !letter.is_ascii_digit());
    let mut next = || parts.next().and_then(|part| part.parse::<u32>().ok());
    match (next(), next()) {
        (Some(major), minor) => (major, minor.unwrap_or(0)) >= (5, 1),
        (None, _) => true,
    }
}

/// The best encoder of the list that ffmpeg prints.
fn encoder(list: &str) -> Option<&'static [&'static str]> {
    const KNOWN: [&[&str]; 3] = [
        &["libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p"],
        &["libopenh264", "-pix_fmt", "yuv420p"],
        &["mpeg4", "-q:v", "4", "-pix_fmt", "yuv420p"],
    ];
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    KNOWN.into_iter().find(|known| names.contains(&known[0]))
}

/// A running program. It is ended when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// The end of what it says on stderr.
    said: Option<JoinHandle<String>>,
}

impl Process {
    /// Starts a program. Ctrl-C at the terminal does not reach it: the run decides when it ends.
    pub(super) fn start<S: AsRef<OsStr>>(
        program: &str,
        arguments: impl IntoIterator<Item = S>,
        stdin: Stdio,
        stdout: Stdio,
    ) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let said = child.stderr.take().map(|stderr| std::thread::spawn(move || end_of(stderr)));
        Ok(Self { child, said })
    }

    pub(super) fn stdin(&mut self) -> Option<std::process::ChildStdin> {
        self.child.stdin.take()
    }

    pub(super) fn stdout(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// Waits for the program, for `limit` at most. Returns its status and what it said; the status is `None` if it was
    /// ended because of the limit.
    pub(super) fn wait(mut self, limit: Duration) -> io::Result<(Option<ExitStatus>, Said)> {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break Some(status);
            }
            if began.elapsed() > limit {
                self.child.kill()?;
                self.child.wait()?;
                break None;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let said = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        Ok((status, Said::new(said)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn end_of(mut stream: impl Read) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..count]);
        let excess = kept.len().saturating_sub(KEPT);
        kept.drain(..excess);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_decide_the_options() {
        for (version, has) in [
            ("ffmpeg version 5.1.9-0+deb12u1 Copyright", true),
            ("ffmpeg version 4.4.2-0ubuntu0.22.04.1 Copyright", false),
            ("ffmpeg version 5.0 Copyright", false),
            ("ffmpeg version n7.1 Copyright", true),
            ("ffmpeg version N-118193-g5f38c82 Copyright", true),
            ("ffmpeg version 2024-02-01-git Copyright", true),
        ] {
            assert_eq!(has_fps_mode(version), has, "{version}");
        }
    }

    #[test]
    fn the_best_encoder_is_taken() {
        let list =
            " V..... = Video\n V....D mpeg4   MPEG-4 part 2\n V....D libx264  libx264 H.264 (codec h264)\n";
        assert_eq!(encoder(list).unwrap()[0], "libx264");
        assert_eq!(encoder(" V....D mpeg4   MPEG-4 part 2 (libx264 is better)").unwrap()[0], "mpeg4");
        assert_eq!(encoder(""), None);
    }

    #[test]
    fn a_program_ends_at_its_limit_and_says_why_it_failed() {
        let run = |script: &str| Process::start("sh", ["-c", script], Stdio::null(), Stdio::null()).unwrap();
        let (status, said) = run("echo no >&2; exit 3").wait(Duration::from_secs(60)).unwrap();
        assert_eq!((status.unwrap().code(), said.last().as_str()), (Some(3), "no"));
        let (status, _) = run("exec sleep 600").wait(Duration::from_millis(20)).unwrap();
        assert_eq!(status, None);
    }
}
