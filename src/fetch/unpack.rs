//! Unpacks one member into a file and computes its SHA-256 and CRC-32.
//!
//! Invariant: unpacking stops after the announced size, so that no archive can fill the disk.

use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use super::central_directory::Method;
use super::error::FetchError;
use super::sha256::Sha256;

/// Bytes that are inflated, hashed and written at a time. They fit into a core's cache.
const STEP: usize = 128 << 10;

/// The size limit of a member without an announced size.
const UNANNOUNCED: u64 = 4 << 30;

/// The size and checksums of an unpacked member.
pub(super) struct Sums {
    pub(super) size: u64,
    pub(super) crc: u32,
    pub(super) sha256: [u8; 32],
}

/// Writes a member to a new file. Either `data` or the deflate stream ends with the member.
pub(super) fn to_file(
    data: &mut impl BufRead,
    method: Method,
    announced: Option<u64>,
    path: &Path,
) -> Result<Sums, UnpackError> {
    let disk =
        |action| move |source| UnpackError::Disk(FetchError::Disk { action, path: path.into(), source });
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(disk("create the folder of"))?;
    }
    // Overwrites what an interrupted run left of this member. Two members of one name were rejected before.
    let mut file = File::create(path).map_err(disk("create"))?;
    copy(data, method, announced, |bytes| file.write_all(bytes).map_err(disk("write")))
}

/// Reads a member to its end and drops it, which is the only way past one of unknown length.
pub(super) fn skip(
    data: &mut impl BufRead,
    method: Method,
    announced: Option<u64>,
) -> Result<Sums, UnpackError> {
    copy(data, method, announced, |_| Ok(()))
}

/// Why a member could not be unpacked: the bytes, or the disk.
pub(super) enum UnpackError {
    Data(io::Error),
    Disk(FetchError),
}

impl UnpackError {
    pub(super) fn into_error(self, archive: &str, member: &str) -> FetchError {
        match self {
            Self::Disk(error) => error,
            Self::Data(error) => match FetchError::from_io(error, archive) {
                FetchError::Archive { archive, why } => {
                    FetchError::Archive { archive, why: format!("{member}: {why}") }
                }
                other => other,
            },
        }
    }
}

fn copy(
    data: &mut impl BufRead,
    method: Method,
    announced: Option<u64>,
    mut sink: impl FnMut(&[u8]) -> Result<(), UnpackError>,
) -> Result<Sums, UnpackError> {
    let mut inflater;
    let reader: &mut dyn Read = match method {
        Method::Stored => data,
        Method::Deflated => {
            inflater = DeflateDecoder::new(data);
            &mut inflater
        }
    };
    let limit = announced.unwrap_or(UNANNOUNCED);
    let (mut size, mut crc, mut sha) = (0, Crc::new(), Sha256::new());
    let mut buffer = vec![0; STEP];
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(UnpackError::Data(error)),
        };
        size += count as u64;
        if size > limit {
            return Err(UnpackError::Data(io::Error::other(format!(
                "it unpacks to more than {limit} bytes"
            ))));
        }
        crc.update(&buffer[..count]);
        sha.update(&buffer[..count]);
        sink(&buffer[..count])?;
    }
    Ok(Sums { size, crc: crc.sum(), sha256: sha.finish() })
}
