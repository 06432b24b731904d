//! The addresses and cameras among the sources of `yolo predict`. An address that ends in the name of a picture or a
//! video is a file to fetch, as in YOLOv5; any other is a stream. Passwords in addresses are not shown.

use std::path::{Path, PathBuf};

use super::video::{Video, VideoKind};
use crate::error::PlanError;

/// Protocols of streams that ffmpeg reads, apart from HTTP.
const STREAMS: [&str; 8] = ["rtsp", "rtsps", "rtmp", "rtmps", "tcp", "udp", "rtp", "srt"];
/// Sites whose addresses are those of pages, not of videos.
const PAGES: [&str; 2] = ["youtube.com", "youtu.be"];

/// What an address is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// A picture or a video of a web server.
    File,
    /// A stream, and the name of its results.
    Stream { stem: String },
}

impl Address {
    /// Parses an address. `is_readable` says whether a file can be read, by its name.
    ///
    /// # Errors
    /// When it is a page, or its protocol is unknown.
    pub(super) fn parse(address: &str, is_readable: impl Fn(&Path) -> bool) -> Result<Self, PlanError> {
        let shown = shown_address(address);
        let (scheme, rest) = shown.split_once("://").unwrap_or(("", &shown));
        let scheme = scheme.to_ascii_lowercase();
        let host = rest.split(['/', ':', '?']).next().unwrap_or_default().to_ascii_lowercase();
        if PAGES.iter().any(|page| host == *page || host.ends_with(&format!(".{page}"))) {
            return Err(PlanError::new(format!(
                "--source {shown}: yolo predict does not read YouTube's pages"
            ))
            .with_hint(format!("download the video first: yt-dlp -f mp4 -o video.mp4 '{shown}'")));
        }
        let is_web = matches!(scheme.as_str(), "http" | "https");
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        let file = path.split_once('/').map_or("", |(_, path)| path);
        if is_web && is_readable(Path::new(file)) {
            return Ok(Self::File);
        }
        if !is_web && !STREAMS.contains(&scheme.as_str()) {
            return Err(PlanError::usage(format!(
                "--source {shown}: yolo predict does not know {scheme} addresses"
            ))
            .with_hint(format!(
                "give an address that begins with https, http, {}, or download the file first",
                STREAMS.join(", ")
            )));
        }
        let letters = path.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
        let stem = letters.collect::<String>().trim_matches('_').to_owned();
        Ok(Self::Stream { stem: if stem.is_empty() { "stream".to_owned() } else { stem } })
    }
}

/// An address without user name and password.
pub(super) fn shown_address(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

/// The address of a file without user name, password, query and fragment, any of which may be secret.
pub(super) fn shown_file(address: &str) -> String {
    let mut shown = shown_address(address);
    shown.truncate(shown.find(['?', '#']).unwrap_or(shown.len()));
    shown
}

/// The camera that a source names by its number (`0`) or its device (`/dev/video0`); `None` if it names none. Its
/// results have its number as their name, as in YOLOv5.
pub(super) fn camera(source: &str) -> Option<Result<Video, PlanError>> {
    let number = source.strip_prefix("/dev/video").unwrap_or(source);
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let device = PathBuf::from(format!("/dev/video{number}"));
    if !device.exists() {
        let error = PlanError::new(format!(
            "--source {source} is the camera {}, which does not exist",
            device.display()
        ));
        return Some(Err(error.with_hint(
            "ls /dev/video* lists the cameras; a container sees one with --device /dev/video0, \
             WSL after usbipd has attached it",
        )));
    }
    Some(Ok(Video {
        shown: device.clone(),
        source: device,
        stem: number.to_owned(),
        kind: VideoKind::Camera,
        area: None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_sees_a_password() {
        for (address, shown) in [
            ("rtsp://me:pass@h:554/a?x=1", "rtsp://h:554/a?x=1"),
            ("rtsp://me:p@ss@h", "rtsp://h"),
            ("http://h/a@b", "http://h/a@b"),
            ("no address", "no address"),
        ] {
            assert_eq!(shown_address(address), shown);
        }
    }

    #[test]
    fn the_address_of_a_file_is_shown_without_its_query() {
        assert_eq!(shown_file("https://me:pass@h/a.jpg?token=1#b"), "https://h/a.jpg");
    }

    #[test]
    fn an_address_is_a_file_or_a_stream() {
        let parse =
            |address: &str| Address::parse(address, |path| path.extension().is_some_and(|it| it == "mp4"));
        let stream = |stem: &str| Address::Stream { stem: stem.to_owned() };
        assert_eq!(parse("https://h/x/film.mp4?token=3").unwrap(), Address::File);
        assert_eq!(parse("HTTP://h.mp4").unwrap(), stream("h_mp4"), "that is a host");
        assert_eq!(parse("rtsp://h/film.mp4").unwrap(), stream("h_film_mp4"));
        assert_eq!(parse("udp://:5000").unwrap(), stream("5000"));
        assert_eq!(parse("tcp://").unwrap(), stream("stream"));
        assert!(parse("https://www.youtube.com/watch?v=1").is_err() && parse("file://a.mp4").is_err());
        assert!(parse("https://notyoutube.com/a").is_ok());
    }

    #[test]
    fn a_number_is_a_camera() {
        assert!(camera("a0").is_none() && camera("/dev/video").is_none() && camera("").is_none());
        assert!(camera("4711").unwrap().unwrap_err().to_string().contains("/dev/video4711"));
        assert!(camera("/dev/video4711").unwrap().is_err());
    }
}
