//! The wheels of a variant, opened before the download: which members to take, how many bytes they have,
//! and what their integrity will rest on.

use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use super::sources::FoundWheel;
use super::stamp::Trust;
use super::wheel::{HEADERS_SIZE, UNKNOWN_CPU, UNKNOWN_CUDA};
use crate::fetch::{
    Archive, Client, FetchError, MemberFetch, MemberPattern, Meter, ProgressEvent, ResumeState, Selection,
    UnpackedMember, kept_bytes,
};

/// Wheels whose central directories are read at the same time.
const AT_ONCE: usize = 5;

/// Ranges that are on the disk while they are unpacked: as many as are downloaded at the same time.
const KEPT: usize = 3;

/// All wheels of a variant, ready to download.
pub(super) struct WheelSet {
    pub(super) opened: Vec<OpenedWheel>,
}

/// A wheel and how it will be read.
pub(super) struct OpenedWheel {
    pub(super) found: FoundWheel,
    pub(super) archive: Archive,
    pub(super) patterns: Vec<MemberPattern>,
    /// The members to read by ranges. `None`: the server does not support ranges, so the wheel is streamed.
    pub(super) selection: Option<Selection>,
    /// The SHA-256 of the whole wheel, if known.
    pub(super) whole: Option<String>,
    headers: bool,
}

impl WheelSet {
    /// Opens every wheel and selects its members.
    pub(super) fn open(
        client: &Client,
        found: Vec<FoundWheel>,
        headers: bool,
        meter: &Meter<'_>,
    ) -> Result<Self, FetchError> {
        let mut opened = Vec::with_capacity(found.len());
        for some in found.chunks(AT_ONCE) {
            let some_opened: Result<Vec<_>, _> = thread::scope(|scope| {
                let open = |one: &FoundWheel| OpenedWheel::open(client, one.clone(), headers, meter);
                let running: Vec<_> = some.iter().map(|one| scope.spawn(move || open(one))).collect();
                // A panic in a thread is a bug and must not be swallowed.
                let join = |one: thread::ScopedJoinHandle<'_, _>| one.join();
                running
                    .into_iter()
                    .map(|one| join(one).unwrap_or_else(|panic| resume_unwind(panic)))
                    .collect()
            });
            opened.extend(some_opened?);
        }
        Ok(Self { opened })
    }

    /// Bytes to download; `None` if a server does not report sizes in advance.
    pub(super) fn transfer(&self) -> Option<u64> {
        self.opened.iter().map(|one| one.selection.as_ref().map(Selection::transfer)).sum()
    }

    /// Bytes on the disk afterwards, possibly estimated.
    pub(super) fn unpacked(&self) -> u64 {
        self.opened.iter().map(OpenedWheel::unpacked).sum()
    }

    /// Bytes that an earlier run already downloaded, in `tree` and `parts`.
    pub(super) fn kept(&self, (tree, parts): (&Path, &Path)) -> u64 {
        let takes: Vec<MemberFetch<'_>> = self.opened.iter().filter_map(OpenedWheel::member_fetch).collect();
        kept_bytes(&takes, tree, &ResumeState::open(parts))
    }

    /// Additional bytes on the disk during the installation. Ranges of local files are not stored.
    pub(super) fn kept_meanwhile(&self) -> u64 {
        let travel = self.opened.iter().filter(|one| !one.archive.is_here());
        let selections = travel.filter_map(|one| one.selection.as_ref());
        let mut ranges: Vec<u64> = selections.flat_map(Selection::ranges).collect();
        ranges.sort_unstable_by(|one, other| other.cmp(one));
        ranges.iter().take(KEPT).sum()
    }
}

impl OpenedWheel {
    /// The members to download by ranges; `None` if the server does not support them.
    pub(super) fn member_fetch(&self) -> Option<MemberFetch<'_>> {
        let selection = self.selection.as_ref()?;
        Some(MemberFetch { archive: &self.archive, selection, sha256: self.whole.as_deref() })
    }

    fn open(
        client: &Client,
        found: FoundWheel,
        headers: bool,
        meter: &Meter<'_>,
    ) -> Result<Self, FetchError> {
        let FoundWheel { wheel, located, named_by_user } = &found;
        let archive = Archive::open(client, &located.address)?;
        let patterns = wheel.patterns(headers);
        let index_hash = located.sha256.as_ref();
        let pinned =
            wheel.sha256.is_some() && index_hash.is_none_or(|hash| Some(hash) == wheel.sha256.as_ref());
        // Over plain http, unpinned bytes are accepted only as a whole wheel with the index's hash, or
        // from a server that the user named.
        let is_untrusted = located.address.starts_with("http:") && !pinned && !named_by_user;
        if is_untrusted && index_hash.is_none() {
            return Err(FetchError::Refused {
                url: archive.shown(),
                why: "its hash is unknown and the connection is not encrypted".into(),
            });
        }
        let selection = if is_untrusted {
            None
        } else {
            match archive.select(&patterns, meter) {
                Ok(selection) => Some(selection),
                Err(FetchError::NoRanges { url }) => {
                    let text = format!("{url} does not support byte ranges; downloading all of it");
                    meter.note(ProgressEvent::Note { text: &text });
                    None
                }
                Err(error) => return Err(error),
            }
        };
        let whole = index_hash.or(wheel.sha256.as_ref()).cloned();
        Ok(Self { archive, patterns, selection, whole, headers, found })
    }

    fn unpacked(&self) -> u64 {
        let headers = if self.headers && self.found.wheel.is_torch() { HEADERS_SIZE.1 } else { 0 };
        match (&self.selection, self.found.wheel.size) {
            (Some(selection), _) => selection.unpacked(),
            (None, Some((_, unpacked))) => unpacked + headers,
            // The estimate for torch includes the other wheels.
            (None, None) if !self.found.wheel.is_torch() => 0,
            (None, None) if self.found.wheel.names_others() => UNKNOWN_CUDA + headers,
            (None, None) => UNKNOWN_CPU + headers,
        }
    }

    /// Reads the whole wheel once.
    pub(super) fn stream(
        &self,
        into: &Path,
        meter: &Meter<'_>,
    ) -> Result<(Vec<UnpackedMember>, String), FetchError> {
        let (unpacked, sha256) = self.archive.stream(&self.patterns, into, meter)?;
        let actual = hex::encode(sha256);
        match &self.whole {
            Some(expected) if *expected != actual => {
                Err(self.wrong("the whole file", expected.clone(), actual))
            }
            _ => Ok((unpacked, actual)),
        }
    }

    /// What the integrity of the bytes rests on, once they match RECORD.
    pub(super) fn trust(&self, record: &UnpackedMember, streamed: bool) -> Result<Trust, FetchError> {
        let wheel = &self.found.wheel;
        if let (Some(pin), true) = (&wheel.record_sha256, self.whole == wheel.sha256) {
            let actual = hex::encode(record.sha256);
            if actual != *pin {
                return Err(self.wrong(&record.name, pin.clone(), actual));
            }
            return Ok(Trust::Pinned);
        }
        Ok(match (streamed && self.whole.is_some(), self.found.named_by_user) {
            (true, _) => Trust::WholeWheel,
            (false, true) => Trust::Mirror,
            (false, false) => Trust::Tls,
        })
    }

    pub(super) fn wrong(&self, member: &str, expected: String, actual: String) -> FetchError {
        let (archive, member) = (self.archive.shown(), member.to_owned());
        FetchError::Wrong { archive, member, what: "SHA-256", expected, actual }
    }
}
