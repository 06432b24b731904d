//! What a source offers, looked at before anything travels: which bytes of which wheels, how many,
//! and on what their rightness will rest.

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

/// Directories of wheels that are read at once.
const AT_ONCE: usize = 5;

/// Ranges that may be kept on the disk while they are unpacked; as many as are fetched at once.
const KEPT: usize = 3;

/// All wheels of a variant, ready to be fetched.
pub(super) struct WheelSet {
    pub(super) opened: Vec<OpenedWheel>,
}

/// How a wheel will be read.
pub(super) struct OpenedWheel {
    pub(super) found: FoundWheel,
    pub(super) archive: Archive,
    pub(super) picks: Vec<MemberPattern>,
    /// `None`: without ranges, streamed once.
    pub(super) selection: Option<Selection>,
    /// What a whole wheel must hash to, where someone told.
    pub(super) whole: Option<String>,
    headers: bool,
}

impl WheelSet {
    /// Looks into every wheel.
    pub(super) fn open(
        client: &Client,
        found: Vec<FoundWheel>,
        headers: bool,
        meter: &Meter<'_>,
    ) -> Result<Self, FetchError> {
        let mut opened = Vec::with_capacity(found.len());
        for some in found.chunks(AT_ONCE) {
            let looked: Result<Vec<_>, _> = thread::scope(|scope| {
                let look = |one: &FoundWheel| OpenedWheel::open(client, one.clone(), headers, meter);
                let running: Vec<_> = some.iter().map(|one| scope.spawn(move || look(one))).collect();
                // A panic of a thread is a defect of this program and goes on as one.
                let join = |one: thread::ScopedJoinHandle<'_, _>| one.join();
                running
                    .into_iter()
                    .map(|one| join(one).unwrap_or_else(|panic| resume_unwind(panic)))
                    .collect()
            });
            opened.extend(looked?);
        }
        Ok(Self { opened })
    }

    /// Bytes that will travel; `None` where a server does not tell before.
    pub(super) fn transfer(&self) -> Option<u64> {
        self.opened.iter().map(|one| one.selection.as_ref().map(Selection::transfer)).sum()
    }

    /// Bytes on the disk afterwards, at least about.
    pub(super) fn unpacked(&self) -> u64 {
        self.opened.iter().map(OpenedWheel::unpacked).sum()
    }

    /// Bytes of it that an earlier run has brought, in `tree` and `parts`.
    pub(super) fn kept(&self, (tree, parts): (&Path, &Path)) -> u64 {
        let takes: Vec<MemberFetch<'_>> = self.opened.iter().filter_map(OpenedWheel::member_fetch).collect();
        kept_bytes(&takes, tree, &ResumeState::open(parts))
    }

    /// Bytes on the disk beside those, while it runs: ranges of files that are here already are not kept.
    pub(super) fn kept_meanwhile(&self) -> u64 {
        let travel = self.opened.iter().filter(|one| !one.archive.is_here());
        let selections = travel.filter_map(|one| one.selection.as_ref());
        let mut ranges: Vec<u64> = selections.flat_map(Selection::ranges).collect();
        ranges.sort_unstable_by(|one, other| other.cmp(one));
        ranges.iter().take(KEPT).sum()
    }
}

impl OpenedWheel {
    fn open(
        client: &Client,
        found: FoundWheel,
        headers: bool,
        meter: &Meter<'_>,
    ) -> Result<Self, FetchError> {
        let FoundWheel { wheel, located, named_by_user } = &found;
        let archive = Archive::open(client, &located.address)?;
        let picks = wheel.picks(headers);
        let told = located.sha256.as_ref();
        let pinned = wheel.sha256.is_some() && told.is_none_or(|told| Some(told) == wheel.sha256.as_ref());
        // Unknown bytes over an open line are believed only as a whole that has the told hash, or
        // from a server that the user has named.
        let open_line = located.address.starts_with("http:") && !pinned && !named_by_user;
        if open_line && told.is_none() {
            return Err(FetchError::Refused {
                url: archive.shown(),
                why: "neither its hash is known nor is the connection encrypted".into(),
            });
        }
        let selection = if open_line {
            None
        } else {
            match archive.select(&picks, meter) {
                Ok(selection) => Some(selection),
                Err(FetchError::NoRanges { url }) => {
                    let text = format!("{url} cannot be read in parts; it is fetched whole");
                    meter.note(ProgressEvent::Note { text: &text });
                    None
                }
                Err(error) => return Err(error),
            }
        };
        let whole = told.or(wheel.sha256.as_ref()).cloned();
        Ok(Self { archive, picks, selection, whole, headers, found })
    }

    fn unpacked(&self) -> u64 {
        let headers = if self.headers && self.found.wheel.is_torch() { HEADERS_SIZE.1 } else { 0 };
        match (&self.selection, self.found.wheel.size) {
            (Some(selection), _) => selection.unpacked(),
            (None, Some((_, unpacked))) => unpacked + headers,
            // The other wheels of a variant are counted in this one's room.
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
        let (unpacked, sha256) = self.archive.stream(&self.picks, into, meter)?;
        let actual = hex::encode(sha256);
        match &self.whole {
            Some(expected) if *expected != actual => {
                Err(self.wrong("the whole file", expected.clone(), actual))
            }
            _ => Ok((unpacked, actual)),
        }
    }

    /// On what the bytes rest once they have been compared with RECORD.
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
