//! The byte strings that the ranks of a validation send to each other: numbers in eight bytes, the
//! lowest first, floats in four, and byte strings after their length.

use crate::error::TrainError;

/// Writes a message.
#[derive(Debug, Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    pub(super) fn float(&mut self, float: f32) {
        self.0.extend(float.to_le_bytes());
    }

    pub(super) fn double(&mut self, double: f64) {
        self.number(double.to_bits());
    }

    pub(super) fn short(&mut self, short: u16) {
        self.0.extend(short.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads what [`Writer`] wrote, in the same order.
#[derive(Debug)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    pub(super) fn number(&mut self) -> Result<u64, TrainError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of things that follow, each of at least one byte.
    pub(super) fn count(&mut self) -> Result<usize, TrainError> {
        let number = self.number()?;
        usize::try_from(number).ok().filter(|count| *count <= self.0.len()).ok_or_else(incomplete)
    }

    pub(super) fn float(&mut self) -> Result<f32, TrainError> {
        self.array().map(f32::from_le_bytes)
    }

    pub(super) fn double(&mut self) -> Result<f64, TrainError> {
        self.number().map(f64::from_bits)
    }

    pub(super) fn short(&mut self) -> Result<u16, TrainError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], TrainError> {
        let length = self.count()?;
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], TrainError> {
        let (array, rest) = self.0.split_first_chunk().ok_or_else(incomplete)?;
        self.0 = rest;
        Ok(*array)
    }
}

fn incomplete() -> TrainError {
    TrainError::new("a rank has sent incomplete results of its validation")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written_or_refused() {
        let mut message = Writer::default();
        message.number(3);
        message.float(0.1);
        message.double(-0.1);
        message.short(0x3ff);
        message.bytes(b"boxes");
        let message = message.finish();
        let mut read = Reader::new(&message);
        assert_eq!(read.number().unwrap(), 3);
        assert_eq!(read.float().unwrap().to_bits(), 0.1f32.to_bits());
        assert_eq!(read.double().unwrap().to_bits(), (-0.1f64).to_bits());
        assert_eq!((read.short().unwrap(), read.bytes().unwrap()), (0x3ff, &b"boxes"[..]));
        assert!(read.number().is_err());
        assert!(Reader::new(&message[..message.len() - 1][22..]).bytes().is_err());
    }
}
