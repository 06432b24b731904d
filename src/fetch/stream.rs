//! Streams an archive once from its beginning and unpacks it on the fly, for servers that do not support
//! ranges. The archive itself is never stored.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::archive::{Archive, BUFFER, Source, UnpackedMember, find, not_a_zip};
use super::body::Body;
use super::central_directory::{self, LOCAL, LocalHeader, Method};
use super::error::FetchError;
use super::member_pattern::MemberPattern;
use super::meter::{AnnouncingReader, CountingReader, HashingReader, Meter};
use super::remote_file::RemoteFile;
use super::sha256::Sha256;
use super::unpack::{self, Sums, UnpackError};

impl Archive {
    /// Streams the archive and unpacks the members that match. Also returns the SHA-256 of the whole
    /// archive.
    ///
    /// # Errors
    /// As [`Self::fetch_members`].
    pub fn stream(
        &self,
        patterns: &[MemberPattern],
        into: &Path,
        meter: &Meter<'_>,
    ) -> Result<(Vec<UnpackedMember>, [u8; 32]), FetchError> {
        let file_meter = meter.file(&self.name(), None);
        let reader: Box<dyn Read + '_> = match &self.source {
            Source::Http(remote) => Box::new(AnnouncingReader {
                body: Body::whole(RemoteFile::clone(remote), file_meter.progress()),
                file: &file_meter,
                announced: false,
            }),
            Source::File(path) => {
                let file = File::open(path).map_err(FetchError::disk("open", path))?;
                file_meter.expect(file.metadata().map_or(0, |data| data.len()));
                Box::new(file)
            }
        };
        let mut reader = BufReader::with_capacity(
            BUFFER,
            HashingReader { inner: CountingReader { inner: reader, tally: &file_meter }, sha: Sha256::new() },
        );
        let unpacked = self.stream_members(&mut reader, patterns, into)?;
        io::copy(&mut reader, &mut io::sink()).map_err(|error| FetchError::from_io(error, &self.shown()))?;
        Ok((unpacked, reader.into_inner().sha.finish()))
    }

    fn stream_members(
        &self,
        reader: &mut impl BufRead,
        patterns: &[MemberPattern],
        into: &Path,
    ) -> Result<Vec<UnpackedMember>, FetchError> {
        let broken = |error| FetchError::from_io(error, &self.shown());
        let start = reader.fill_buf().map_err(broken)?;
        if !start.starts_with(b"PK\x03\x04") {
            return Err(self.unusable(not_a_zip(start)));
        }
        let (mut unpacked, mut matched, mut seen) = (Vec::new(), HashSet::new(), HashSet::new());
        while central_directory::read_u32(reader).map_err(broken)? == LOCAL {
            let header = LocalHeader::read(reader).map_err(broken)?;
            if !seen.insert(header.name.clone()) {
                return Err(self.unusable(format!("it contains {} twice", header.name)));
            }
            if header.sums.is_none() && header.method == Method::Stored && !header.name.ends_with('/') {
                return Err(self.unusable(format!(
                    "{} can only be read by ranges, since its length is not stored before it",
                    header.name
                )));
            }
            let found = find(patterns, &header.name);
            if found.is_none()
                && let Some((_, compressed, _)) = header.sums
            {
                let skipped = io::copy(&mut reader.take(compressed), &mut io::sink()).map_err(broken)?;
                if skipped < compressed {
                    return Err(self.unusable(format!("it ends inside {}", header.name)));
                }
                continue;
            }
            let result = stream_member(reader, &header, found.as_ref().map(|(_, path)| into.join(path)));
            let (sums, announced) = result.map_err(|error| error.into_error(&self.shown(), &header.name))?;
            self.compare(&header.name, announced, &sums)?;
            if let Some((pattern, path)) = found {
                matched.insert(pattern);
                unpacked.push(UnpackedMember {
                    name: header.name,
                    path,
                    size: sums.size,
                    sha256: sums.sha256,
                });
            }
        }
        self.all_matched(patterns, &matched)?;
        Ok(unpacked)
    }
}

fn stream_member(
    reader: &mut impl BufRead,
    header: &LocalHeader,
    path: Option<PathBuf>,
) -> Result<(Sums, (u32, u64, u64)), UnpackError> {
    let (compressed, size) =
        header.sums.map_or((u64::MAX, None), |(_, compressed, size)| (compressed, Some(size)));
    // A folder without a length is empty.
    let compressed =
        if header.name.ends_with('/') && header.method == Method::Stored { 0 } else { compressed };
    let mut data = (&mut *reader).take(compressed);
    let sums = match path {
        Some(path) => unpack::to_file(&mut data, header.method, size, &path)?,
        None => unpack::skip(&mut data, header.method, size)?,
    };
    if header.sums.is_some() && data.limit() > 0 {
        let why = format!("it ends {} bytes early", data.limit());
        return Err(UnpackError::Data(io::Error::other(why)));
    }
    let announced = match header.sums {
        Some(sums) => sums,
        None => header.read_descriptor(reader).map_err(UnpackError::Data)?,
    };
    Ok((sums, announced))
}
