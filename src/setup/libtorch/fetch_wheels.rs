//! Downloads the members of a set of wheels into a staging directory: checks the free space, and verifies
//! every file against its wheel's RECORD.

use std::fs;
use std::path::{Path, PathBuf};

use yolo_base::format;

use super::stamp::Trust;
use super::wheel_set::{OpenedWheel, WheelSet};
use crate::fetch::{
    FetchError, MARGIN, MemberFetch, Meter, Progress, ResumeState, Staging, UnpackedMember, WheelRecord,
    fetch_members, free_bytes,
};

/// Downloads all wheels. Returns the files and what their integrity rests on.
pub(super) fn fetch_wheels(
    wheels: &WheelSet,
    staging: &Staging,
    progress: &dyn Progress,
) -> Result<(Vec<UnpackedMember>, Trust), FetchError> {
    let into = staging.path();
    check_room(wheels, staging)?;
    let meter = Meter::new(progress);
    wheels
        .opened
        .iter()
        .filter_map(|one| one.selection.as_ref())
        .for_each(|selection| meter.expect(selection.transfer()));
    let parts = ResumeState::open(staging.parts());
    let (by_range, streamed): (Vec<&OpenedWheel>, Vec<&OpenedWheel>) =
        wheels.opened.iter().partition(|one| one.selection.is_some());
    let takes: Vec<MemberFetch<'_>> = by_range.iter().filter_map(|one| one.member_fetch()).collect();
    let unpacked = fetch_members(&takes, into, Some(&parts), &meter)?;
    let (mut files, mut trust) = (Vec::new(), Trust::Pinned);
    for (one, unpacked) in by_range.into_iter().zip(unpacked) {
        trust = trust.weaker(check_record(one, &unpacked, into, false)?);
        files.extend(unpacked);
    }
    for one in streamed {
        let (unpacked, _) = one.stream(into, &meter)?;
        trust = trust.weaker(check_record(one, &unpacked, into, true)?);
        files.extend(unpacked);
    }
    Ok((files, trust))
}

fn check_room(wheels: &WheelSet, staging: &Staging) -> Result<(), FetchError> {
    let there = staging.size();
    let need = wheels.unpacked() + wheels.kept_meanwhile() + MARGIN;
    let need = need.saturating_sub(there);
    let free = free_bytes(staging.path())?;
    if free < need {
        let path = staging.path().parent().unwrap_or(staging.path()).to_owned();
        return Err(FetchError::Space { path, free: format::bytes(free), need: format::bytes(need) });
    }
    Ok(())
}

/// Verifies every member against RECORD, and RECORD against its pinned hash if this is the pinned wheel.
fn check_record(
    one: &OpenedWheel,
    unpacked: &[UnpackedMember],
    into: &Path,
    streamed: bool,
) -> Result<Trust, FetchError> {
    let place = PathBuf::from(one.found.wheel.record_place());
    let missing = || FetchError::Missing { archive: one.archive.shown(), member: "RECORD".into() };
    let record = unpacked.iter().find(|file| file.path == place).ok_or_else(missing)?;
    let trust = one.trust(record, streamed)?;
    let path = into.join(&place);
    let text =
        fs::read_to_string(&path).map_err(|source| FetchError::Disk { action: "read", path, source })?;
    let lines = WheelRecord::parse(&text);
    for file in unpacked.iter().filter(|file| file.path != place) {
        lines
            .check(file)
            .map_err(|mismatch| one.wrong(&mismatch.member, mismatch.expected, mismatch.actual))?;
    }
    Ok(trust)
}
