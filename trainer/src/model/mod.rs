//! The detector: its tensors ([`State`]), its modules by family, and the pass through them. A [`Model`] is built
//! from the resolved description of a yaml and is the same on every device; images and
//! convolution weights lie in memory as N, H, W, C.

mod block;
mod build;
mod conv;
mod csp;
mod detect;
mod ghost;
mod layer;
mod pool;
mod reshape;
mod state;
mod summary;
mod transfer;
mod transformer;

use std::rc::Rc;

use tch::{Device, Kind, Tensor, no_grad};
use tch_distributed::ProcessGroup;
use torch_checkpoint::WeightsFile;
use yolo_plan::model::{ModelSpec, Module};

use self::block::Pass;
use self::build::{Builder, NORM_EPS, Source};
use self::detect::Detect;
use self::layer::{Body, Layer};
pub use self::state::{Entry, Role, State};
pub use self::summary::Summary;
pub use self::transfer::{Reshaped, Transfer};
use crate::error::TrainError;

/// Weight of a batch in the running statistics (spec §2).
const NORM_MOMENTUM: f64 = 0.03;

/// The side of the image of zeros that a fresh model sees first (spec §2).
const PROBE: usize = 256;

/// A detector on one device.
pub struct Model {
    spec: ModelSpec,
    state: State,
    layers: Vec<Layer>,
    device: Device,
    fused: bool,
    sync: Option<Rc<ProcessGroup>>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("name", &self.spec.name).field("device", &self.device).finish()
    }
}

impl Model {
    /// A model with random weights, drawn from the generator that `tch::manual_seed` seeds.
    ///
    /// # Errors
    /// When the description does not fit together, or libtorch refuses a tensor.
    pub fn new(spec: &ModelSpec, device: Device) -> Result<Self, TrainError> {
        let model = Self::build(spec, Source::Fresh, false, device)?;
        if spec.layers.iter().any(|layer| has_inner_bias(&layer.module)) {
            model.settle_statistics()?;
        }
        model.detect()?.add_priors()?;
        Ok(model)
    }

    /// The model that a checkpoint describes, with random weights: [`Self::transfer`] brings the file's.
    /// `nc` replaces the number of classes.
    ///
    /// # Errors
    /// When the file carries no description, or one that is not a model.
    pub fn from_weights(file: &WeightsFile, nc: Option<usize>, device: Device) -> Result<Self, TrainError> {
        let bare = || {
            TrainError::new(
                "the weights file holds tensors alone and does not say which model they belong to",
            )
            .with_hint("name the model too: `--cfg yolov5n`, or a yaml file of your own")
        };
        let yaml = file.yaml.as_ref().ok_or_else(bare)?;
        let written = || yaml.get("nc").and_then(serde_json::Value::as_u64).map(|nc| nc as usize);
        let nc = nc.or_else(written).or_else(|| file.names.as_ref().map(Vec::len)).ok_or_else(|| {
            TrainError::new("the weights file does not say how many classes its model knows")
                .with_hint("name the model too: `--cfg yolov5n`, or a yaml file of your own")
        })?;
        Self::new(&ModelSpec::from_yaml_value(yaml, nc, None)?, device)
    }

    /// A copy with tensors of its own, none of which asks for gradients: the EMA of a model.
    ///
    /// # Errors
    /// When libtorch refuses a tensor.
    pub fn copy(&self) -> Result<Self, TrainError> {
        Self::build(&self.spec, Source::Copy(&self.state), self.fused, self.device)
    }

    /// The same function with every batch normalisation folded into its convolution: faster, and
    /// for inference only.
    ///
    /// # Errors
    /// When libtorch refuses a tensor.
    pub fn fuse(&self) -> Result<Self, TrainError> {
        let source = if self.fused { Source::Copy(&self.state) } else { Source::Fuse(&self.state) };
        Self::build(&self.spec, source, true, self.device)
    }

    fn build(spec: &ModelSpec, source: Source<'_>, fused: bool, device: Device) -> Result<Self, TrainError> {
        let strides = spec.strides()?;
        let mut builder = Builder::new(source, fused, device);
        let layers = builder.scope("model", |b| {
            spec.layers.iter().map(|row| Layer::new(b, row, spec, &strides)).collect::<Result<Vec<_>, _>>()
        })?;
        let state = builder.finish();
        let model = Self { spec: spec.clone(), state, layers, device, fused, sync: None };
        model.detect()?;
        Ok(model)
    }

    /// All tensors, in registration order.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What the model was built from.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// Where its tensors are.
    pub fn device(&self) -> Device {
        self.device
    }

    /// True when batch normalisations are folded into the convolutions.
    pub fn is_fused(&self) -> bool {
        self.fused
    }

    /// Pixels a cell, of each level of Detect.
    pub fn strides(&self) -> &[f64] {
        self.detect().map_or(&[], Detect::strides)
    }

    /// The anchors, (levels, anchors, 2), in cells.
    ///
    /// # Errors
    /// Never for a model that was built; the signature keeps callers free of panics.
    pub fn anchors(&self) -> Result<&Tensor, TrainError> {
        Ok(self.detect()?.anchors())
    }

    /// Raw outputs of the levels, (B, na, ny, nx, nc + 5), for images (B, 3, H, W) from 0 to 1.
    /// Batch normalisation uses the batch and updates its running statistics.
    ///
    /// # Errors
    /// When the images' size does not fit the strides, or memory is out.
    pub fn forward_train(&self, x: &Tensor) -> Result<Vec<Tensor>, TrainError> {
        self.forward_train_with(x, &mut |_, _| ())
    }

    /// Boxes in pixels with probabilities, (B, N, nc + 5), and the raw outputs. Batch
    /// normalisation uses the running statistics.
    ///
    /// # Errors
    /// As [`Self::forward_train`].
    pub fn forward_eval(&self, x: &Tensor) -> Result<(Tensor, Vec<Tensor>), TrainError> {
        self.forward_eval_with(x, &mut |_, _| ())
    }

    /// [`Self::forward_eval`], showing the output of every layer but the last to `seen`.
    ///
    /// # Errors
    /// As [`Self::forward_train`].
    pub fn forward_eval_with(
        &self,
        x: &Tensor,
        seen: &mut dyn FnMut(usize, &Tensor),
    ) -> Result<(Tensor, Vec<Tensor>), TrainError> {
        let pass = Pass { training: false, momentum: NORM_MOMENTUM, eps: NORM_EPS, sync: None };
        let raw = self.pass(x, &pass, seen)?;
        Ok((self.detect()?.decode(&raw)?, raw))
    }

    /// [`Self::forward_train`], showing the output of every layer but the last to `seen`.
    ///
    /// # Errors
    /// As [`Self::forward_train`].
    pub fn forward_train_with(
        &self,
        x: &Tensor,
        seen: &mut dyn FnMut(usize, &Tensor),
    ) -> Result<Vec<Tensor>, TrainError> {
        self.pass(x, &self.training(), seen)
    }

    fn training(&self) -> Pass<'_> {
        Pass { training: true, momentum: NORM_MOMENTUM, eps: NORM_EPS, sync: self.sync.as_deref() }
    }

    fn pass(
        &self,
        x: &Tensor,
        pass: &Pass<'_>,
        seen: &mut dyn FnMut(usize, &Tensor),
    ) -> Result<Vec<Tensor>, TrainError> {
        let image = build::channels_last(x)?;
        let last_use = self.last_use();
        let mut outputs: Vec<Option<Tensor>> = Vec::with_capacity(self.layers.len());
        for (index, layer) in self.layers.iter().enumerate() {
            let mut inputs = Vec::with_capacity(layer.from.len());
            for &from in &layer.from {
                let source = match usize::try_from(from) {
                    Ok(from) => outputs.get(from).and_then(Option::as_ref),
                    Err(_) => Some(&image),
                };
                let source = source
                    .ok_or_else(|| TrainError::new(format!("layer {index} reads layer {from} too early")))?;
                inputs.push(source.shallow_clone());
            }
            // An output nobody reads any more is let go before the next one is made.
            for (output, &last) in outputs.iter_mut().zip(&last_use) {
                if last <= index {
                    *output = None;
                }
            }
            if let Body::Detect(detect) = &layer.body {
                return detect.forward(&inputs, pass);
            }
            let output = layer
                .forward(&inputs, pass)
                .map_err(|error| error.at(format!("layer {index} of {}", self.spec.name)))?;
            seen(index, &output);
            outputs.push(Some(output));
        }
        Err(TrainError::new(format!("{} has no Detect layer", self.spec.name)))
    }

    /// For every layer, the last layer that reads its output.
    fn last_use(&self) -> Vec<usize> {
        let mut last = vec![0; self.layers.len()];
        for (index, layer) in self.layers.iter().enumerate() {
            for from in layer.from.iter().filter_map(|&from| usize::try_from(from).ok()) {
                last[from] = index;
            }
        }
        last
    }

    /// Normalises by the batches of all ranks together, or each by its own with `None`.
    pub fn set_sync_bn(&mut self, group: Option<Rc<ProcessGroup>>) {
        self.sync = group;
    }

    /// Keeps every floating tensor in half precision from now on: for inference on CUDA, with images in
    /// half precision.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn to_half(&mut self) -> Result<(), TrainError> {
        no_grad(|| {
            for entry in self.state.iter().filter(|entry| conv::is_floating(&entry.tensor)) {
                // Replaces what the tensor holds, so that the module that shares it sees it too.
                entry.tensor.shallow_clone().f_set_data(&entry.tensor.f_to_kind(Kind::Half)?)?;
            }
            Ok(())
        })
    }

    /// Rounds every floating tensor to fp16 and back, as training starts with (spec §6).
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn round_to_half(&self) -> Result<(), TrainError> {
        no_grad(|| {
            for entry in self.state.iter().filter(|entry| conv::is_floating(&entry.tensor)) {
                let rounded = entry.tensor.f_to_kind(Kind::Half)?.f_to_kind(Kind::Float)?;
                entry.tensor.shallow_clone().f_copy_(&rounded)?;
            }
            Ok(())
        })
    }

    /// Freezes the layers of these indices and thaws all others; returns the names of frozen tensors.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn freeze(&self, layers: &[usize]) -> Result<Vec<String>, TrainError> {
        let marks: Vec<String> = layers.iter().map(|layer| format!("model.{layer}.")).collect();
        let mut frozen = Vec::new();
        for entry in self.state.parameters() {
            let freezes = marks.iter().any(|mark| entry.name.contains(mark));
            let _ = entry.tensor.f_set_requires_grad(!freezes)?;
            if freezes {
                frozen.push(entry.name.clone());
            }
        }
        Ok(frozen)
    }

    /// Modules with a bias before a normalisation turn an image of zeros into something: the running
    /// statistics that a fresh model has are then those of a real pass, with the framework's default
    /// momentum and epsilon (spec §2).
    fn settle_statistics(&self) -> Result<(), TrainError> {
        no_grad(|| {
            for entry in self.state.buffers() {
                let value = match entry.name.rsplit('.').next() {
                    Some("running_mean" | "num_batches_tracked") => 0.0,
                    Some("running_var") => 1.0,
                    _ => continue,
                };
                let _ = entry.tensor.shallow_clone().f_fill_(value)?;
            }
            let side = PROBE as i64;
            let zeros =
                Tensor::f_zeros([1, self.spec.channels as i64, side, side], (Kind::Float, self.device))?;
            let pass = Pass { training: true, momentum: 0.1, eps: 1e-5, sync: None };
            self.pass(&zeros, &pass, &mut |_, _| ()).map(drop)
        })
    }

    fn detect(&self) -> Result<&Detect, TrainError> {
        match self.layers.last().map(|layer| &layer.body) {
            Some(Body::Detect(detect)) => Ok(detect),
            _ => Err(TrainError::new(format!("the last layer of {} is not Detect", self.spec.name))
                .with_hint("end the `head` of the model's yaml with a Detect row")),
        }
    }
}

/// True for modules in which a bias precedes a normalisation.
fn has_inner_bias(module: &Module) -> bool {
    matches!(module, Module::C3Tr(_) | Module::ConvTranspose2d { .. } | Module::DwConvTranspose2d { .. })
}
