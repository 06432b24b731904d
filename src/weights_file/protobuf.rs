//! The fields of a protobuf message, in order and without copies. Nothing is followed that the caller does not ask for, so
//! neither depth nor memory depends on what a file claims. Format: <https://protobuf.dev/programming-guides/encoding>.

/// The bytes are no protobuf message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damaged;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field<'a> {
    /// A whole number or an enum.
    Number(u64),
    /// Text, bytes, a message, or packed numbers.
    Bytes(&'a [u8]),
    /// A number of fixed size, which no caller needs.
    Fixed,
}

impl<'a> Field<'a> {
    /// Its bytes; none if it is a number.
    pub(super) fn bytes(self) -> &'a [u8] {
        if let Self::Bytes(bytes) = self { bytes } else { &[] }
    }

    /// Its text, with replacements for what is no UTF-8.
    pub(super) fn text(self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// Its number; 0 if it has none.
    pub(super) fn number(self) -> i64 {
        // Negative numbers are written in two's complement.
        if let Self::Number(number) = self { number.cast_signed() } else { 0 }
    }
}

/// The fields of a message with their numbers.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for place in 0..10 {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f).checked_shl(7 * place)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn field(&mut self) -> Option<(u64, Field<'a>)> {
        let key = self.varint()?;
        let field = match key & 7 {
            0 => Field::Number(self.varint()?),
            1 => self.take(8).map(|_| Field::Fixed)?,
            2 => {
                let length = self.varint()?;
                Field::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Field::Fixed)?,
            _ => return None,
        };
        Some((key >> 3, field))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>), Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field().ok_or(Damaged);
        if field.is_err() {
            // Nothing can be found behind damage.
            self.0 = &[];
        }
        Some(field)
    }
}

/// The numbers of a field that is repeated, packed or not; at most `most`.
pub(super) fn numbers(field: Field<'_>, most: usize) -> Result<Vec<i64>, Damaged> {
    let bytes = match field {
        Field::Number(_) => return Ok(vec![field.number()]),
        Field::Fixed => return Err(Damaged),
        Field::Bytes(bytes) => bytes,
    };
    let mut packed = Fields(bytes);
    let mut numbers = Vec::new();
    while !packed.0.is_empty() {
        if numbers.len() == most {
            return Err(Damaged);
        }
        numbers.push(packed.varint().ok_or(Damaged)?.cast_signed());
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_order() {
        // Field 1 is the number 150, field 2 the text "testing" (the examples of the specification).
        let bytes = [&[0x08, 0x96, 0x01, 0x12, 0x07][..], b"testing"].concat();
        let fields: Vec<_> = Fields(&bytes).collect();
        assert_eq!(fields, [Ok((1, Field::Number(150))), Ok((2, Field::Bytes(b"testing")))]);
        assert_eq!(numbers(Field::Bytes(&[3, 0x8e, 2]), 2), Ok(vec![3, 270]));
        assert_eq!(numbers(Field::Bytes(&[3, 4]), 1), Err(Damaged));
    }

    #[test]
    fn damage_is_an_error_and_an_end() {
        for bytes in [&[0x12, 0xff, 0xff, 0xff, 0x7f][..], &[0x08], &[0x0b], &[0xff; 12]] {
            assert_eq!(Fields(bytes).collect::<Vec<_>>(), [Err(Damaged)], "{bytes:?}");
        }
    }
}
