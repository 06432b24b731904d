//! The bytes of a pickle with a position. Invariant: each length is checked against the remaining bytes,
//! so a pickle cannot request memory that the file does not fill.

use crate::error::Problem;

/// A position in a pickle.
pub(super) struct Stream<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Stream<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The bytes taken so far.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// An error at this position. `reason` continues the phrase "its pickle".
    pub(super) fn damaged(&self, reason: impl Into<String>) -> Problem {
        Problem::Pickle { at: self.at, reason: reason.into() }
    }

    pub(super) fn take(&mut self, count: u64) -> Result<&'a [u8], Problem> {
        let rest = &self.bytes[self.at..];
        match usize::try_from(count).ok().and_then(|count| rest.get(..count)) {
            Some(taken) => {
                self.at += taken.len();
                Ok(taken)
            }
            None => Err(self.damaged(format!("ends early: {count} bytes announced, {} left", rest.len()))),
        }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        match self.bytes[self.at..].first_chunk::<N>() {
            Some(array) => {
                self.at += N;
                Ok(*array)
            }
            None => Err(self.damaged("ends in the middle of an instruction")),
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8, Problem> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, Problem> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Problem> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Problem> {
        self.array().map(u64::from_le_bytes)
    }

    /// The text up to the next line feed, which instructions of protocol 0 use.
    pub(super) fn line(&mut self) -> Result<&'a str, Problem> {
        let rest = &self.bytes[self.at..];
        let Some(length) = rest.iter().position(|b| *b == b'\n') else {
            return Err(self.damaged("ends in the middle of a line"));
        };
        let text = self.text(length as u64)?;
        self.at += 1;
        Ok(text)
    }

    /// Text of a length in bytes.
    pub(super) fn text(&mut self, length: u64) -> Result<&'a str, Problem> {
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes).map_err(|_| self.damaged("holds text that is not UTF-8"))
    }
}
