//! What is in an ONNX file: the model, its inputs and outputs, its operations and tensors (field numbers: `onnx.proto`
//! of ONNX). Operations are counted and not followed, and nothing in the file is run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::Serialize;
use serde_json::Value;

use super::diff::Difference;
use super::protobuf::{Damaged, Field, Fields, numbers};
use crate::fetch::Sha256;

/// A protobuf message is at most so many bytes.
const LARGEST: u64 = 2 << 30;
/// Most inputs, outputs, metadata entries and kinds of operations of a file, far more than any detector has.
const MOST: usize = 10_000;
/// Most dimensions of a tensor.
const DIMENSIONS: usize = 64;

/// What `yolo weights` says about an ONNX file.
#[derive(Debug, Default, Serialize)]
pub(crate) struct OnnxDescription {
    /// The file.
    pub(crate) file: PathBuf,
    /// Its size.
    pub(crate) bytes: u64,
    /// The SHA-256 sum of its content, in hexadecimal digits.
    pub(crate) sha256: String,
    /// `onnx`.
    pub(crate) format: &'static str,
    /// The program that wrote it, with its version.
    pub(crate) producer: String,
    /// The version of the file format.
    pub(crate) ir_version: i64,
    /// The version of the operations of each domain; ONNX's own is the domain without a name.
    pub(crate) opsets: BTreeMap<String, i64>,
    /// Entries such as `names` and `stride`.
    pub(crate) metadata: BTreeMap<String, String>,
    /// What it takes.
    pub(crate) inputs: Vec<Port>,
    /// What it returns.
    pub(crate) outputs: Vec<Port>,
    /// How often each operation is there, outside of loops and branches.
    pub(crate) operations: BTreeMap<String, usize>,
    /// Whether suppression is inside.
    pub(crate) suppresses: bool,
    /// How many tensors have each type.
    pub(crate) tensors: BTreeMap<&'static str, usize>,
    /// Numbers in all tensors.
    pub(crate) parameters: u64,
    /// The SHA-256 sum of all tensors, with their names.
    pub(crate) tensors_sha256: String,
}

/// An input or an output.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Port {
    /// Its name.
    pub(crate) name: String,
    /// The type of its numbers.
    pub(crate) r#type: &'static str,
    /// Its dimensions: numbers, or names of those that may be any.
    pub(crate) shape: Vec<Value>,
}

/// Why a file is not described: the phrase after its name.
pub(crate) type Refusal = String;

/// Whether a file has the extension of ONNX models.
pub(crate) fn is_onnx(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"))
}

/// Describes a file.
///
/// # Errors
/// If it cannot be read, or is no ONNX file.
pub(crate) fn describe(path: &Path) -> Result<OnnxDescription, Refusal> {
    let unreadable = |error: std::io::Error| format!("cannot be opened: {error}");
    // Checked before opening: opening a pipe would wait for a writer.
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err("is not a file".to_owned());
    }
    if metadata.len() > LARGEST {
        return Err("is larger than 2 GB, which no ONNX file is".to_owned());
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    let mut found = model(&bytes).map_err(|Damaged| "is no ONNX file, or damaged".to_owned())?;
    if found.ir_version == 0 || found.outputs.is_empty() {
        return Err("is no ONNX file: it has no graph with outputs".to_owned());
    }
    found.file = path.to_owned();
    found.bytes = bytes.len() as u64;
    let mut sum = Sha256::new();
    sum.update(&bytes);
    found.sha256 = hex(&sum.finish());
    Ok(found)
}

/// How two files differ.
pub(crate) fn diff(a: &OnnxDescription, b: &OnnxDescription) -> Vec<Difference> {
    let [a, b] = [a, b].map(|one| serde_json::to_value(one).unwrap_or_default());
    let Value::Object(fields) = &a else { return Vec::new() };
    let differs =
        |name: &&String| !matches!(name.as_str(), "file" | "sha256") && a[name.as_str()] != b[name.as_str()];
    fields
        .keys()
        .filter(differs)
        .map(|name| Difference { what: name.replace('_', " "), values: [a[name].clone(), b[name].clone()] })
        .collect()
}

fn model(bytes: &[u8]) -> Result<OnnxDescription, Damaged> {
    let mut found = OnnxDescription { format: "onnx", ..OnnxDescription::default() };
    let mut version = String::new();
    let mut sum = Sha256::new();
    for field in Fields(bytes) {
        match field? {
            (1, field) => found.ir_version = field.number(),
            (2, field) => found.producer = field.text(),
            (3, field) => version = field.text(),
            (7, field) => graph(field, &mut found, &mut sum)?,
            (8, field) => {
                let (domain, number) = (member(field, 1)?, member(field, 2)?);
                found.opsets.insert(text(domain), number.map_or(0, Field::number));
            }
            (14, field) => {
                found.metadata.insert(text(member(field, 1)?), text(member(field, 2)?));
            }
            _ => {}
        }
        if found.opsets.len() + found.metadata.len() > MOST {
            return Err(Damaged);
        }
    }
    if !version.is_empty() {
        found.producer = format!("{} {version}", found.producer);
    }
    found.suppresses =
        found.operations.keys().any(|name| name.contains("NonMaxSuppression") || name.contains("NMS"));
    found.tensors_sha256 = hex(&sum.finish());
    Ok(found)
}

fn graph(message: Field<'_>, found: &mut OnnxDescription, sum: &mut Sha256) -> Result<(), Damaged> {
    let mut constants = std::collections::HashSet::new();
    let mut inputs = Vec::new();
    for field in Fields(message.bytes()) {
        match field? {
            (1, node) => *found.operations.entry(text(member(node, 4)?)).or_default() += 1,
            (5, tensor) => {
                sum.update(tensor.bytes());
                let (name, kind, elements) = self::tensor(tensor)?;
                *found.tensors.entry(kind).or_default() += 1;
                found.parameters = found.parameters.saturating_add(elements);
                constants.insert(name);
            }
            (11, port) => inputs.push(self::port(port)?),
            (12, port) => found.outputs.push(self::port(port)?),
            _ => {}
        }
        if found.operations.len().max(inputs.len()).max(found.outputs.len()) > MOST {
            return Err(Damaged);
        }
    }
    // Before version 4 of the format, constants were inputs as well.
    found.inputs.extend(inputs.into_iter().filter(|input| !constants.contains(input.name.as_bytes())));
    Ok(())
}

/// Name, type and number of elements.
fn tensor(message: Field<'_>) -> Result<(&[u8], &'static str, u64), Damaged> {
    let (mut name, mut kind, mut elements, mut dimensions) = (&[][..], 0, 1u64, 0);
    for field in Fields(message.bytes()) {
        match field? {
            (1, field) => {
                for side in numbers(field, DIMENSIONS)? {
                    dimensions += 1;
                    elements = elements.saturating_mul(u64::try_from(side).map_err(|_| Damaged)?);
                }
                if dimensions > DIMENSIONS {
                    return Err(Damaged);
                }
            }
            (2, field) => kind = field.number(),
            (8, field) => name = field.bytes(),
            _ => {}
        }
    }
    Ok((name, type_name(kind), elements))
}

/// An input or an output; its type is that of a tensor, or unknown.
fn port(message: Field<'_>) -> Result<Port, Damaged> {
    let mut port = Port { name: text(member(message, 1)?), r#type: type_name(0), shape: Vec::new() };
    let Some(tensor) = member(message, 2)?.map(|kind| member(kind, 1)).transpose()?.flatten() else {
        return Ok(port);
    };
    port.r#type = type_name(member(tensor, 1)?.map_or(0, Field::number));
    let Some(shape) = member(tensor, 2)? else { return Ok(port) };
    for dimension in Fields(shape.bytes()) {
        let (1, dimension) = dimension? else { continue };
        let (side, name) = (member(dimension, 1)?, member(dimension, 2)?);
        port.shape.push(side.map_or_else(|| text(name).into(), |side| side.number().into()));
        if port.shape.len() > DIMENSIONS {
            return Err(Damaged);
        }
    }
    Ok(port)
}

/// The last field of this number in a message.
fn member(message: Field<'_>, number: u64) -> Result<Option<Field<'_>>, Damaged> {
    let mut found = None;
    for field in Fields(message.bytes()) {
        let (other, field) = field?;
        if other == number {
            found = Some(field);
        }
    }
    Ok(found)
}

fn text(field: Option<Field<'_>>) -> String {
    field.map(Field::text).unwrap_or_default()
}

fn type_name(number: i64) -> &'static str {
    match number {
        1 => "float32",
        2 => "uint8",
        3 => "int8",
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
