//! The description of one weights file, from its content alone, and from the `opt.yaml` of its run if there is one.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::Serialize;
use torch_checkpoint::{Format, Reference, Value, WeightsError, WeightsFile};
use yolo_plan::model::ModelSpec;

use super::openers::{self, Opener};
use super::training::{self, Training};
use crate::fetch::Sha256;

/// Buffers of a model, which do not count as parameters.
const BUFFERS: [&str; 5] = ["running_mean", "running_var", "num_batches_tracked", "anchors", "anchor_grid"];

/// What `yolo weights` says about a file.
#[derive(Debug, Serialize)]
pub(crate) struct Description {
    /// The file.
    pub(crate) file: PathBuf,
    /// Its size.
    pub(crate) bytes: u64,
    /// The SHA-256 sum of its content, in hexadecimal digits.
    pub(crate) sha256: String,
    /// The layout: `zip`, `legacy`, `torchscript`, `pickle` or `safetensors`.
    pub(crate) format: &'static str,
    /// The pickle protocol; `null` without a pickle.
    pub(crate) pickle_protocol: Option<u8>,
    /// The model; `null` if `yolo` refuses the file.
    pub(crate) model: Option<Model>,
    /// The training that the file is from, as far as the file says; `null` if `yolo` refuses the file.
    pub(crate) training: Option<Training>,
    /// Which programs can open the file.
    pub(crate) opens_in: Vec<Opener>,
    /// What Python would import and call to open the file, in the order of the pickle.
    pub(crate) python: Vec<PythonCall>,
    /// Why the pickle could not be followed to its end; `null` if it was.
    pub(crate) python_unknown_after: Option<String>,
    /// Why `yolo` refuses the file; `null` if it does not.
    pub(crate) refused: Option<String>,
    /// What to do then.
    #[serde(skip)]
    pub(crate) hint: Option<String>,
    /// The content, for comparisons.
    #[serde(skip)]
    pub(crate) content: Option<WeightsFile>,
}

/// The model of a file.
#[derive(Debug, Serialize)]
pub(crate) struct Model {
    /// A built-in configuration such as `yolov5s`, or `custom`; `null` if the file does not describe its model.
    pub(crate) architecture: Option<String>,
    /// Numbers that training changes.
    pub(crate) parameters: u64,
    /// How many tensors have each type, such as `float16`.
    pub(crate) tensors: BTreeMap<&'static str, usize>,
    /// Strides of the detection levels in pixels; empty if the file does not say.
    pub(crate) strides: Vec<f64>,
    /// Class names; `null` if the file has none.
    pub(crate) classes: Option<Vec<String>>,
    /// Whether the tensors are a moving average, and the file has the trained weights as well.
    pub(crate) is_average: bool,
}

/// A class or function that Python imports, and calls, to open the file.
#[derive(Debug, Serialize)]
pub(crate) struct PythonCall {
    /// Its module and name.
    pub(crate) name: String,
    /// How often it is called. Naming it already imports its module, which runs that module's code.
    pub(crate) calls: usize,
    /// Whether it stands for data: a tensor, a number, a layer of a model.
    pub(crate) known: bool,
    /// The arguments of the first call, if it is not known.
    pub(crate) arguments: Option<String>,
}

impl From<&Reference> for PythonCall {
    fn from(one: &Reference) -> Self {
        Self {
            name: one.name.clone(),
            calls: one.calls,
            known: one.allowed,
            arguments: one.arguments.clone(),
        }
    }
}

/// Describes a file.
///
/// # Errors
/// If it cannot be read, or is no weights file of any kind. A file that is refused for what it would execute is
/// described.
pub(crate) fn describe(path: &Path) -> Result<Description, WeightsError> {
    let inspection = torch_checkpoint::inspect(path)?;
    let (content, refusal) = match torch_checkpoint::read(path) {
        Ok(content) => (Some(content), None),
        Err(error) => (None, Some(error)),
    };
    let unreadable = |source| WeightsError::unreadable(path, source);
    Ok(Description {
        file: path.to_owned(),
        bytes: fs::metadata(path).map_err(unreadable)?.len(),
        sha256: sum(path).map_err(unreadable)?,
        format: match inspection.format {
            Format::Zip => "zip",
            Format::Legacy => "legacy",
            Format::TorchScript => "torchscript",
            Format::Pickle => "pickle",
            Format::Safetensors => "safetensors",
        },
        pickle_protocol: inspection.protocol,
        model: content.as_ref().map(model),
        training: content.as_ref().map(|content| training::of_file(content, path)),
        opens_in: openers::of_file(&inspection, content.as_ref(), refusal.as_ref()),
        python: inspection.references.iter().map(PythonCall::from).collect(),
        python_unknown_after: inspection.problem.map(|problem| problem.to_string()),
        refused: refusal.as_ref().map(|error| error.problem().to_string()),
        hint: refusal.and_then(|error| error.hint()),
        content,
    })
}

fn sum(path: &Path) -> io::Result<String> {
    let mut sum = Sha256::new();
    let mut file = fs::File::open(path)?;
    let mut part = vec![0; 1 << 20];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(sum.finish().iter().map(|byte| format!("{byte:02x}")).collect()),
            length => sum.update(&part[..length]),
        }
    }
}

fn model(file: &WeightsFile) -> Model {
    let mut tensors = BTreeMap::new();
    for tensor in file.tensors.values() {
        *tensors.entry(tensor.dtype.name()).or_default() += 1;
    }
    let has = |key| file.root.get(key).is_some_and(|value| *value != Value::None);
    Model {
        architecture: file.yaml.as_ref().map(|yaml| architecture(yaml, file.names.as_ref().map(Vec::len))),
        parameters: parameters(file),
        tensors,
        strides: file.stride.clone().unwrap_or_default(),
        classes: file.names.clone(),
        is_average: has("ema") && has("model"),
    }
}

/// The name of the built-in model with this configuration, or `custom`.
fn architecture(yaml: &serde_json::Value, classes: Option<usize>) -> String {
    let classes = classes.unwrap_or(1).max(1);
    let spec = ModelSpec::from_yaml_value(yaml, classes, None);
    spec.map_or_else(|_| "custom".to_owned(), |spec| spec.name)
}

/// The number of trainable parameters of a file.
pub(crate) fn parameters(file: &WeightsFile) -> u64 {
    let learns = |name: &str| !BUFFERS.contains(&name.rsplit('.').next().unwrap_or_default());
    let numbers = |shape: &[usize]| shape.iter().map(|&side| side as u64).product::<u64>();
    file.tensors.iter().filter(|(name, _)| learns(name)).map(|(_, tensor)| numbers(&tensor.shape)).sum()
}
