//! What ffmpeg says on stderr, and what of it means that a file is damaged. ffmpeg ends successfully where it could go on,
//! and also warns about what it has corrected, so its words decide.

/// What ffmpeg says where a file is cut off or overwritten, in its versions from 4 to 7.
const DAMAGE: [&str; 8] = [
    "ended prematurely",
    "rror while decoding",
    "Error submitting packet to decoder",
    "Error splitting the input",
    "Invalid NAL unit size",
    "exceeds containing master element",
    "invalid as first byte of an EBML number",
    "partial file",
];
/// What else ffmpeg says of a frame without parameters, before it says that it could not be decoded.
const OF_ONE_FRAME: [&str; 2] = ["decode_slice_header error", "no frame!"];
/// What it says of such a frame in the end.
const NOT_DECODED: [&str; 2] = ["rror while decoding stream", "Error submitting packet to decoder"];
/// What ffmpeg says where a part of a stream is missing, but also where two were joined.
const GAP: [&str; 2] = ["orrupt input packet", "orrupt decoded frame"];

/// What a program has said on stderr.
#[derive(Debug, Default)]
pub(super) struct Said(String);

impl Said {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    /// The last message.
    pub(super) fn last(&self) -> String {
        self.messages().next_back().unwrap_or_default().to_owned()
    }

    /// The last message that is not merely a warning. Levels are only there with `-v level+warning`.
    pub(super) fn last_error(&self) -> String {
        let errors =
            Self(self.0.lines().filter(|line| !line.contains("[warning] ")).collect::<Vec<_>>().join("\n"));
        errors.last()
    }

    /// The last message by which ffmpeg says that a part of a file is damaged. Others are no reason to worry anybody: it also
    /// warns about what it has corrected. It cannot decode what comes before the first key frame of a recording that begins
    /// between two: of each such frame it says at once that parameters (PPS, SPS) are missing, and then that it could not be
    /// decoded. Whatever else it says is not pardoned.
    pub(super) fn damage(&self) -> Option<String> {
        // Frames without parameters of which it has not yet said that they could not be decoded: it decodes several at once.
        let (mut open, mut found) = (0_usize, None);
        for (is_warning, message) in self.messages_with_levels() {
            if misses_parameters_of(message) {
                open += 1;
            } else if has(message, &NOT_DECODED) && open > 0 {
                open -= 1;
            } else if has(message, &DAMAGE) {
                found = Some(message.to_owned());
            } else if !is_warning && !has(message, &OF_ONE_FRAME) {
                open = 0;
            }
        }
        found
    }

    /// Whether it is a recording that begins between two key frames, so that what comes before the second is lost: ffmpeg
    /// misses parameters before anything is damaged.
    pub(super) fn begins_between_key_frames(&self) -> bool {
        self.messages()
            .find(|message| misses_parameters_of(message) || has(message, &DAMAGE))
            .is_some_and(misses_parameters_of)
    }

    /// The last message about a gap, which is damage only if frames are missing.
    pub(super) fn gap(&self) -> Option<String> {
        self.messages().rfind(|message| has(message, &GAP)).map(str::to_owned)
    }

    /// The lines that say something, without the part of ffmpeg that says it (`[mov @ 0x55…] `).
    fn messages(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.messages_with_levels().map(|(_, message)| message)
    }

    /// The same, and whether each is merely a warning.
    fn messages_with_levels(&self) -> impl DoubleEndedIterator<Item = (bool, &str)> {
        let lines = self.0.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("Last message repeated"));
        lines.map(|mut line| {
            let mut is_warning = false;
            while let Some((part, rest)) = line.strip_prefix('[').and_then(|line| line.split_once("] ")) {
                is_warning |= part == "warning";
                line = rest;
            }
            (is_warning, line)
        })
    }
}

fn has(message: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| message.contains(part))
}

/// Whether ffmpeg says that a frame refers to parameters (PPS, SPS) that have not come.
fn misses_parameters_of(message: &str) -> bool {
    message.contains("non-existing PPS") || message.contains("non-existing SPS")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_last_line() {
        let said =
            "[mov,mp4 @ 0x5581] moov atom not found\nfilm.mp4: Invalid data found when processing input\n\n";
        let last = |said: &str| Said(said.to_owned()).last();
        assert_eq!(last(said), "film.mp4: Invalid data found when processing input");
        assert_eq!(last("[a @ 1] [b @ 2] broken\n    Last message repeated 3 times\n"), "broken");
        assert_eq!(last(""), "");
    }

    #[test]
    fn damage_is_told_apart_from_warnings() {
        let damage = |said: &str| Said(said.to_owned()).damage();
        let said = "[matroska,webm @ 0x55a3] File ended prematurely\n[swscaler @ 0x1] deprecated pixel format used\n";
        assert_eq!(damage(said).as_deref(), Some("File ended prematurely"));
        let said = "[warning] hole.ts: corrupt input packet in stream 0\n    Last message repeated 1 times\n";
        let gap = Said(said.to_owned()).gap();
        assert_eq!((damage(said), gap.as_deref()), (None, Some("hole.ts: corrupt input packet in stream 0")));
        assert_eq!(Said(said.to_owned()).last_error(), "");
        // A recording that begins between two key frames.
        let before = "[h264 @ 0x55] [error] non-existing PPS 0 referenced\n[h264 @ 0x55] [error] decode_slice_header error\n\
                      [h264 @ 0x55] [error] no frame!\n";
        let error = "[error] Error while decoding stream #0:0: Invalid data found when processing input\n";
        assert_eq!(damage(&[before, error, before, error].concat()), None);
        assert!(damage(&[before, error, error].concat()).is_some());
        // Damage that comes later.
        let later = "[h264 @ 0x55] [error] error while decoding MB 0 7, bytestream -5\n";
        assert_eq!(
            damage(&[before, later].concat()).as_deref(),
            Some("error while decoding MB 0 7, bytestream -5")
        );
        assert_eq!(damage(&[before, before, error, error].concat()), None, "two frames at once");
        let warning = "[h264 @ 0x55] [warning] Increasing reorder buffer to 2\n";
        assert_eq!(damage(&[before, warning, error].concat()), None);
        let other = "[h264 @ 0x55] [error] mmco: unref short failure\n";
        assert!(damage(&[before, other, error].concat()).is_some());
        assert!(damage(&[before, "[in#0] [error] partial file\n"].concat()).is_some());
        let begins = |said: &str| Said(said.to_owned()).begins_between_key_frames();
        assert!(begins(&[warning, before, later].concat()) && !begins(&[later, before].concat()));
    }
}
