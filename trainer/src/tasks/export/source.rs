//! What is exported: the network of a weights file as it was trained, images on which it runs, and what its outputs
//! for them are.

use tch::{Device, Kind, Tensor, no_grad};
use torch_checkpoint::{DType, TensorData, Value, WeightsFile};
use yolo_plan::run::ExportTask;
use yolo_plan::schedule::round_image_size;

use crate::error::TrainError;
use crate::model::Model;

/// The network to export.
pub(super) struct Source {
    /// As trained: batch normalizations are not folded.
    pub(super) model: Model,
    /// The names of its classes.
    pub(super) names: Vec<String>,
    /// Whether files have half precision, because the task or the weights file does.
    pub(super) stores_half: bool,
    /// Whether operations have half precision.
    pub(super) computes_half: bool,
    /// Whether formats with operations have folded normalizations.
    pub(super) fuse: bool,
    /// Plain values that the weights file has besides the model: fitness, training options, git commit, date.
    pub(super) facts: Vec<(String, Value)>,
    /// (B, channels, height, width) in single precision.
    pub(super) images: Tensor,
}

impl Source {
    /// Reads the weights of a task.
    ///
    /// # Errors
    /// When they are not a complete model, or the images do not fit it.
    pub(super) fn read(task: &ExportTask, device: Device) -> Result<Self, TrainError> {
        let file = torch_checkpoint::read(&task.weights)?;
        let at = |error: TrainError| error.at(task.weights.display());
        if file.yaml.is_none() {
            return Err(at(TrainError::new(
                "the file has only tensors, and not the model that they belong to",
            )
            .with_hint("export the checkpoint from which they were taken")));
        }
        let model = Model::from_weights(&file, None, None, device).map_err(at)?;
        let transfer = model.transfer(&file, false).map_err(at)?;
        if transfer.matched < transfer.total {
            return Err(at(TrainError::new(format!("the model is incomplete: {}", transfer.summary()))
                .with_hint("export a checkpoint that `yolo val` or YOLOv5 reads without a warning")));
        }
        // Copied, because gradients have no place in an export.
        let model = model.copy()?;
        let [height, width] = task.image_size;
        check_size([height, width], model.largest_stride())?;
        let channels = model.spec().channels as i64;
        let images = pattern([task.batch as i64, channels, height as i64, width as i64], device)?;
        let names = class_names(&file, model.spec().nc);
        let stores_half = task.half || is_half(&file);
        let facts = facts(&file);
        let source =
            Self { model, names, stores_half, computes_half: task.half, fuse: task.fuse, facts, images };
        source.check_finite()?;
        Ok(source)
    }

    /// The network that a format with operations has.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn network(&self) -> Result<Model, TrainError> {
        let mut network = if self.fuse { self.model.fuse()? } else { self.model.copy()? };
        if self.computes_half {
            network.to_half()?;
        }
        Ok(network)
    }

    /// The images as [`Self::network`] takes them.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn input(&self) -> Result<Tensor, TrainError> {
        Ok(self.images.f_to_kind(if self.computes_half { Kind::Half } else { Kind::Float })?)
    }

    /// The tensors as files have them, by name.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn tensors(&self) -> Result<Vec<(String, TensorData)>, TrainError> {
        let Value::Dict(entries) = self.model.state().to_value(self.stores_half)? else {
            return Ok(Vec::new());
        };
        let named = entries.into_iter().filter_map(|entry| match entry {
            (Value::Str(name), Value::Tensor(tensor)) => Some((name, tensor)),
            _ => None,
        });
        Ok(named.collect())
    }

    /// The outputs of a network for the images, which have its precision.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn outputs(network: &Model, images: &Tensor) -> Result<Tensor, TrainError> {
        no_grad(|| Ok(network.forward_eval(images)?.0))
    }

    fn check_finite(&self) -> Result<(), TrainError> {
        let outputs = Self::outputs(&self.network()?, &self.input()?)?;
        if outputs.f_isfinite()?.f_all()?.f_int64_value(&[])? != 0 {
            return Ok(());
        }
        let single = "the network computes values that are not finite";
        Err(match self.computes_half {
            true => TrainError::new(format!("{single} in half precision")).with_hint("omit --half"),
            false => TrainError::new(single).with_hint("export other weights: these cannot detect anything"),
        })
    }
}

/// Sizes must be multiples of the stride.
fn check_size(size: [usize; 2], stride: usize) -> Result<(), TrainError> {
    if size.iter().all(|side| side.is_multiple_of(stride)) {
        return Ok(());
    }
    let [height, width] = size;
    let [up, wide] = size.map(|side| round_image_size(side, stride, 0));
    Err(TrainError::new(format!(
        "--imgsz {height} {width} is not a multiple of the model's largest stride {stride}"
    ))
    .with_hint(format!("use --imgsz {up} {wide}")))
}

/// Images with all brightnesses and with edges, the same in every export.
fn pattern(shape: [i64; 4], device: Device) -> Result<Tensor, TrainError> {
    let pixels = Tensor::f_arange(shape.iter().product::<i64>(), (Kind::Int64, device))?;
    Ok(pixels.f_remainder(251)?.f_to_kind(Kind::Float)?.f_div_scalar(250.0)?.f_view(shape)?)
}

/// Whether half precision loses nothing: the file has it.
fn is_half(file: &WeightsFile) -> bool {
    let mut floats = file.tensors.values().filter(|tensor| tensor.dtype.is_float()).peekable();
    floats.peek().is_some() && floats.all(|tensor| tensor.dtype == DType::F16)
}

/// Entries of the file that say where it comes from. Objects and tensors are left out.
fn facts(file: &WeightsFile) -> Vec<(String, Value)> {
    let plain = |name: &str| file.root.get(name).filter(|value| value.to_json().is_some());
    let names = ["best_fitness", "opt", "git", "date"];
    names.iter().filter_map(|name| Some(((*name).to_owned(), plain(name)?.clone()))).collect()
}

/// The names in the file; numbers if it has none, or not one per class.
fn class_names(file: &WeightsFile, classes: usize) -> Vec<String> {
    match &file.names {
        Some(names) if names.len() == classes => names.clone(),
        _ => (0..classes).map(|class| class.to_string()).collect(),
    }
}
