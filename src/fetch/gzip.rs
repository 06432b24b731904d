//! A gzip stream of one or more members, as written by pigz or `cat a.gz b.gz`. Anything after the last
//! member is ignored, as gzip and tar do: it is padding or garbage.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// The first byte of a member.
const MAGIC: u8 = 0x1f;

/// Reads the members one after the other and verifies the checksum of each.
pub(super) struct Members<R> {
    /// `None` after the last member.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { member: Some(GzDecoder::new(inner)) }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while let Some(member) = &mut self.member {
            let count = member.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            let Some(mut inner) = self.member.take().map(GzDecoder::into_inner) else { break };
            if inner.fill_buf()?.first() == Some(&MAGIC) {
                self.member = Some(GzDecoder::new(inner));
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        Members::new(bytes).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn all_members_are_read_and_what_follows_them_is_not() {
        let two = [packed("one "), packed("two")].concat();
        assert_eq!(read(&two).unwrap(), "one two");
        assert_eq!(read(&[two.clone(), vec![0; 700]].concat()).unwrap(), "one two");
        assert_eq!(read(&[two, b"rubbish".to_vec()].concat()).unwrap(), "one two");
    }

    #[test]
    fn a_member_that_is_cut_or_wrong_is_an_error() {
        let whole = packed("some text that is long enough");
        assert!(read(&whole[..whole.len() - 3]).is_err());
        let mut wrong = whole.clone();
        let checksum = wrong.len() - 8;
        wrong[checksum] ^= 1;
        assert!(read(&wrong).is_err());
        assert!(read(&[packed("one"), whole[..12].to_vec()].concat()).is_err());
    }
}
