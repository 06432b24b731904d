//! The tensors of an ONNX file with their values (`TensorProto` of `onnx.proto`). Most programs write values as raw bytes,
//! some as fields of a type. What is kept is bounded by the size of the file and a fixed number of integers; values in
//! other files are not followed.

use std::collections::HashSet;

use torch_checkpoint::{DType, TensorData};

use crate::weights_file::protobuf::{Damaged, Field, Fields, numbers};

/// Most dimensions of a tensor.
pub(super) const DIMENSIONS: usize = 64;
/// Most values in a file that are written as integers of any length. In memory they take up to eight times their room, and
/// large tensors are written as bytes.
const INTEGERS: usize = 1 << 20;

/// The tensors of a graph.
#[derive(Debug, Default)]
pub(crate) struct Tensors {
    /// Those whose values are in the file, by name and in its order.
    pub(crate) named: Vec<(String, TensorData)>,
    /// Those whose values are in another file or of a type that is not read.
    pub(crate) unread: Vec<String>,
    names: HashSet<String>,
    /// The values so far that are written as integers.
    integers: usize,
}

/// What is counted of a tensor.
pub(super) struct Counted {
    pub(super) kind: &'static str,
    pub(super) elements: u64,
}

impl Tensors {
    /// Whether a tensor has this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Reads a tensor.
    pub(super) fn add(&mut self, message: Field<'_>) -> Result<Counted, Damaged> {
        let mut written = Written::default();
        for field in Fields(message.bytes()) {
            match field? {
                (1, field) => {
                    for side in numbers(field, DIMENSIONS)? {
                        written.shape.push(usize::try_from(side).map_err(|_| Damaged)?);
                    }
                    if written.shape.len() > DIMENSIONS {
                        return Err(Damaged);
                    }
                }
                (2, field) => written.kind = field.number(),
                (4 | 10, field) => written.floats.extend(field.bytes()),
                (5 | 7, field) => written.integers.push(field),
                (8, field) => written.name = field.text(),
                (9, field) => written.raw = field.bytes(),
                _ => {}
            }
        }
        let counted = Counted {
            kind: type_name(written.kind),
            elements: written.shape.iter().fold(1, |all: u64, side| all.saturating_mul(*side as u64)),
        };
        self.names.insert(written.name.clone());
        match written.data(counted.elements, &mut self.integers) {
            Some(data) => self.named.push((written.name, data)),
            None => self.unread.push(written.name),
        }
        Ok(counted)
    }
}

/// A tensor as the file has it.
#[derive(Default)]
struct Written<'a> {
    name: String,
    kind: i64,
    shape: Vec<usize>,
    raw: &'a [u8],
    floats: Vec<u8>,
    integers: Vec<Field<'a>>,
}

impl Written<'_> {
    /// Its values; `None` if they are elsewhere, of another type, or more integers than may be read. `integers` counts those
    /// of the file.
    fn data(&self, elements: u64, integers: &mut usize) -> Option<TensorData> {
        let dtype = match self.kind {
            1 => DType::F32,
            2 => DType::U8,
            3 => DType::I8,
            5 => DType::I16,
            6 => DType::I32,
            7 => DType::I64,
            9 => DType::Bool,
            10 => DType::F16,
            11 => DType::F64,
            16 => DType::BF16,
            _ => return None,
        };
        let length = usize::try_from(elements).ok()?.checked_mul(dtype.size())?;
        let bytes = if self.raw.len() == length {
            self.raw.to_vec()
        } else if self.floats.len() == length {
            self.floats.clone()
        } else {
            let bytes = self.integers(dtype.size(), INTEGERS - *integers)?;
            *integers += bytes.len() / dtype.size();
            bytes
        };
        (bytes.len() == length).then(|| TensorData { dtype, shape: self.shape.clone(), bytes })
    }

    /// At most `most` values that are written as integers, of which the last `size` bytes count.
    fn integers(&self, size: usize, most: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        for field in &self.integers {
            for number in numbers(*field, most).ok()? {
                bytes.extend_from_slice(&number.to_le_bytes()[..size]);
            }
            if bytes.len() > most * size {
                return None;
            }
        }
        Some(bytes)
    }
}

/// The name of a type of numbers (`TensorProto.DataType`).
pub(super) fn type_name(number: i64) -> &'static str {
    match number {
        1 => "float32",
        2 => "uint8",
        3 => "int8",
        5 => "int16",
        6 => "int32",
        7 => "int64",
        8 => "string",
        9 => "bool",
        10 => "float16",
        11 => "float64",
        16 => "bfloat16",
        _ => "another type",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tensor of two elements with this name, type and field of values.
    fn read(kind: u8, values: &[u8]) -> Tensors {
        let message = [&[0x08, 2, 0x10, kind, 0x42, 1, b't'][..], values].concat();
        let mut tensors = Tensors::default();
        let counted = tensors.add(Field::Bytes(&message)).unwrap();
        assert_eq!(counted.elements, 2);
        tensors
    }

    #[test]
    fn values_are_read_however_they_are_written() {
        let floats = [1.5_f32.to_le_bytes(), 2.0_f32.to_le_bytes()].concat();
        for (kind, values, expected) in [
            (1, [&[0x4a, 8][..], &floats].concat(), [1.5, 2.0]),
            (1, [&[0x22, 8][..], &floats].concat(), [1.5, 2.0]),
            (7, vec![0x3a, 3, 3, 0x8e, 2], [3.0, 270.0]),
            (6, vec![0x28, 3, 0x28, 4], [3.0, 4.0]),
            (9, vec![0x2a, 2, 0, 1], [0.0, 1.0]),
        ] {
            let tensors = read(kind, &values);
            let (name, tensor) = &tensors.named[0];
            assert_eq!((name.as_str(), tensor.to_f64()), ("t", expected.to_vec()), "{values:?}");
        }
    }

    #[test]
    fn values_that_are_elsewhere_are_not_made_up() {
        // No values, too few, and text.
        for (kind, values) in [(1, vec![]), (7, vec![0x3a, 1, 3]), (8, vec![0x32, 1, b'x'])] {
            let tensors = read(kind, &values);
            assert!(tensors.named.is_empty() && tensors.unread == ["t"], "{values:?}");
        }
    }
}
