//! What is at a web address that is neither a picture nor a video: often a page about it. ffmpeg, which reads addresses
//! for `yolo predict`, fetches the first bytes, so that the same proxies and certificates apply.

use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::program::Process;

/// Bytes that are looked at.
const BEGINNING: u64 = 512;
/// How long ffmpeg may take in all.
const LIMIT: Duration = Duration::from_secs(10);

/// What is at an address that ffmpeg cannot play, if it is a page or text.
pub(crate) fn page_at(address: &Path) -> Option<&'static str> {
    let before = ["-nostdin", "-v", "quiet", "-rw_timeout", "10000000", "-f", "data", "-i"];
    let after = ["-map", "0", "-c", "copy", "-f", "data", "pipe:1"];
    let texts = before.iter().map(std::ffi::OsStr::new).chain([address.as_os_str()]);
    let arguments = texts.chain(after.iter().map(std::ffi::OsStr::new));
    let mut process = Process::start("ffmpeg", arguments, Stdio::null(), Stdio::piped()).ok()?;
    let stdout = process.stdout()?;
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.take(BEGINNING).read_to_end(&mut bytes).map(|_| bytes)
    });
    // It cannot send the rest, and ends; at the limit it is ended, and so is the reader.
    let _ = process.wait(LIMIT);
    of_beginning(&reader.join().ok()?.ok()?)
}

/// What begins with these bytes, if it is a page or text.
fn of_beginning(bytes: &[u8]) -> Option<&'static str> {
    // The last letter may be cut off.
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    // Playlists are text that ffmpeg plays; it has said why it cannot.
    let is_playlist = text.starts_with("#EXTM3U") || text.starts_with("v=0");
    if text.trim().is_empty() || text.contains('\0') || is_playlist {
        None
    } else if text.trim_start().starts_with('<') {
        Some("it is a web page, not a picture or video; give the address of the file itself")
    } else {
        Some("it is text, not a picture or video; give the address of the file itself")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_texts_are_told_apart_from_videos() {
        assert!(of_beginning(b"\n<!DOCTYPE html><html>").unwrap().starts_with("it is a web page"));
        assert!(of_beginning("caf\u{e9}".as_bytes()).unwrap().starts_with("it is text"));
        assert!(of_beginning(&"caf\u{e9}".as_bytes()[..4]).unwrap().starts_with("it is text"));
        for other in [&b""[..], b"\0\0\0\x18ftypmp42", b"RIFF\xff\xfe", b" \n", b"#EXTM3U\na.ts"] {
            assert_eq!(of_beginning(other), None, "{other:?}");
        }
    }
}
