//! [`Model`]: its tensors and its layers (`network.rs`). A model is built from a resolved description
//! (`yolo_plan::model`) and is the same on every device, and spread over several. Images and convolution
//! weights are channels-last in memory.

use std::rc::Rc;

use tch::{Device, Kind, Tensor, no_grad};
use tch_distributed::ProcessGroup;
use torch_checkpoint::WeightsFile;
use yolo_plan::model::{ModelSpec, Module, largest_stride};

use super::block::Pass;
use super::build::{NORM_EPS, Source};
use super::conv;
use super::detect::Detect;
use super::network::{Network, Placement};
use super::packed::PackedBuffers;
use super::saved_activations;
use super::state::State;
use crate::error::TrainError;

/// Weight of a batch in the running statistics of batch normalization (spec §2).
pub(crate) const NORM_MOMENTUM: f64 = 0.03;

/// Side of the image of zeros on which a new model runs once (spec §2).
const PROBE: usize = 256;

/// A detector.
pub struct Model {
    pub(super) spec: ModelSpec,
    pub(super) state: State,
    /// The memory of the buffers in `state`; none in a fused model, which is not trained.
    buffers: PackedBuffers,
    network: Network,
    pub(super) fused: bool,
    sync: Option<Rc<ProcessGroup>>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("name", &self.spec.name).field("device", &self.device()).finish()
    }
}

impl Model {
    /// A model with random weights, drawn from the generator that `tch::manual_seed` seeds.
    ///
    /// # Errors
    /// When the description is inconsistent, or libtorch fails.
    pub fn new(spec: &ModelSpec, device: Device) -> Result<Self, TrainError> {
        let model = Self::build(spec, Source::Fresh, false, Placement::on(device))?;
        if spec.layers.iter().any(|layer| has_inner_bias(&layer.module)) {
            model.settle_statistics()?;
        }
        model.detect()?.add_priors()?;
        Ok(model)
    }

    /// The model that a checkpoint describes, with random weights; [`Self::transfer`] copies the
    /// file's. `nc` replaces the number of classes, `anchors` the number of anchors per level.
    ///
    /// # Errors
    /// When the file has no description, or one that is not a model.
    pub fn from_weights(
        file: &WeightsFile,
        nc: Option<usize>,
        anchors: Option<f64>,
        device: Device,
    ) -> Result<Self, TrainError> {
        let bare = || {
            TrainError::new("the weights file contains only tensors, not the model that they belong to")
                .with_hint("pass the model as well: `--cfg yolov5n`, or your own yaml file")
        };
        let mut yaml = file.yaml.clone().ok_or_else(bare)?;
        saved_activations::add(&mut yaml, &file.root);
        let written = || yaml.get("nc").and_then(serde_json::Value::as_u64).map(|nc| nc as usize);
        let nc = nc.or_else(written).or_else(|| file.names.as_ref().map(Vec::len)).ok_or_else(|| {
            TrainError::new("the weights file does not say how many classes its model detects")
                .with_hint("pass the model as well: `--cfg yolov5n`, or your own yaml file")
        })?;
        Self::new(&ModelSpec::from_yaml_value(&yaml, nc, anchors)?, device)
    }

    /// A copy with its own tensors, which need no gradients. The moving average starts as one.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn copy(&self) -> Result<Self, TrainError> {
        Self::build(&self.spec, Source::Copy(&self.state), self.fused, self.network.placement.clone())
    }

    /// A copy with the layers on these devices, one entry for each layer. Images come from the device of the
    /// first layer, and the outputs and the anchors are there. What needs gradients here needs them there.
    ///
    /// # Errors
    /// When there is not one device per layer, or memory runs out.
    pub fn spread_over(&self, layers: &[Device]) -> Result<Self, TrainError> {
        let home = *layers.first().filter(|_| layers.len() == self.spec.layers.len()).ok_or_else(|| {
            let (given, there) = (layers.len(), self.spec.layers.len());
            TrainError::new(format!("{given} devices are given for {there} layers"))
        })?;
        let placement = Placement { home, layers: layers.to_vec() };
        let copy = Self::build(&self.spec, Source::Copy(&self.state), self.fused, placement)?;
        for (own, other) in copy.state.parameters().zip(self.state.parameters()) {
            let _ = own.tensor.f_set_requires_grad(other.tensor.requires_grad())?;
        }
        Ok(copy)
    }

    /// The same model on the devices of another one of the same structure.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn placed_like(self, other: &Self) -> Result<Self, TrainError> {
        match other.network.placement.layers.as_slice() {
            [] => Ok(self),
            layers => self.spread_over(layers),
        }
    }

    /// The same model with every batch normalization folded into its convolution: faster, and for
    /// inference only.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn fuse(&self) -> Result<Self, TrainError> {
        let source = if self.fused { Source::Copy(&self.state) } else { Source::Fuse(&self.state) };
        Self::build(&self.spec, source, true, self.network.placement.clone())
    }

    fn build(
        spec: &ModelSpec,
        source: Source<'_>,
        fused: bool,
        placement: Placement,
    ) -> Result<Self, TrainError> {
        let strides = spec.strides()?;
        let (network, state) = Network::build(spec, &strides, source, fused, placement)?;
        let buffers = if fused { PackedBuffers::default() } else { PackedBuffers::pack(&state)? };
        let model = Self { spec: spec.clone(), state, buffers, network, fused, sync: None };
        model.detect()?;
        Ok(model)
    }

    /// All tensors, in registration order.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The tensors in which all buffers lie, for ranks that exchange them. A fused model has none.
    pub fn buffers(&self) -> &[Tensor] {
        self.buffers.tensors()
    }

    /// The description that the model was built from.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// The device of its tensors; of a model on several devices, the one for images and outputs.
    pub fn device(&self) -> Device {
        self.network.placement.home
    }

    /// Whether batch normalizations are folded into the convolutions.
    pub fn is_fused(&self) -> bool {
        self.fused
    }

    /// Pixels per cell of each detection level.
    pub fn strides(&self) -> &[f64] {
        self.detect().map_or(&[], Detect::strides)
    }

    /// The largest stride, and at least 32: image sizes must be multiples of it.
    pub fn largest_stride(&self) -> usize {
        largest_stride(self.strides())
    }

    /// The `[rows, columns]` of each head for these images. Their sides must be multiples of the largest
    /// stride.
    pub(crate) fn head_sizes(&self, images: &Tensor) -> Vec<[i64; 2]> {
        let size = images.size();
        let [.., height, width] = size.as_slice() else { return Vec::new() };
        self.strides().iter().map(|&stride| [height, width].map(|side| side / stride as i64)).collect()
    }

    /// The anchors, (levels, anchors, 2), in cells.
    ///
    /// # Errors
    /// Never, for a model that was built.
    pub fn anchors(&self) -> Result<&Tensor, TrainError> {
        Ok(self.detect()?.anchors())
    }

    /// The raw outputs of the levels, (B, na, ny, nx, nc + 5), for images (B, 3, H, W) from 0 to 1.
    /// Batch normalization uses the statistics of the batch and updates the running ones.
    ///
    /// # Errors
    /// When the image size is not a multiple of the stride, or memory runs out.
    pub fn forward_train(&self, x: &Tensor) -> Result<Vec<Tensor>, TrainError> {
        self.forward_train_with(x, &mut |_, _| ())
    }

    /// Decoded boxes in pixels with probabilities, (B, N, nc + 5), and the raw outputs. Batch
    /// normalization uses the running statistics.
    ///
    /// # Errors
    /// As [`Self::forward_train`].
    pub fn forward_eval(&self, x: &Tensor) -> Result<(Tensor, Vec<Tensor>), TrainError> {
        self.forward_eval_with(x, &mut |_, _| ())
    }

    /// [`Self::forward_eval`], which shows the output of every layer but the last to `seen`.
    ///
    /// # Errors
    /// As [`Self::forward_train`].
    pub fn forward_eval_with(
        &self,
        x: &Tensor,
        seen: &mut dyn FnMut(usize, &Tensor),
    ) -> Result<(Tensor, Vec<Tensor>), TrainError> {
        let pass = Pass { training: false, momentum: NORM_MOMENTUM, eps: NORM_EPS, sync: None };
        let raw = self.network.pass(x, &pass, seen)?;
        Ok((self.detect()?.decode(&raw)?, raw))
    }

    /// The cells of the levels for images of this size, for [`Self::forward_on_grids`].
    ///
    /// # Errors
    /// When memory runs out.
    pub fn grids(&self, height: i64, width: i64) -> Result<Vec<Tensor>, TrainError> {
        self.detect()?.grids(height, width)
    }

    /// The decoded boxes of [`Self::forward_eval`], with cells that were made before. In a traced network they are then
    /// constants, which move with it to another device.
    ///
    /// # Errors
    /// As [`Self::forward_train`].
    pub fn forward_on_grids(&self, x: &Tensor, grids: &[Tensor]) -> Result<Tensor, TrainError> {
        let pass = Pass { training: false, momentum: NORM_MOMENTUM, eps: NORM_EPS, sync: None };
        let raw = self.network.pass(x, &pass, &mut |_, _| ())?;
        self.detect()?.decode_on(&raw, grids)
    }

    /// [`Self::forward_train`], which shows the output of every layer but the last to `seen`.
    ///
    /// # Errors
    /// As [`Self::forward_train`].
    pub fn forward_train_with(
        &self,
        x: &Tensor,
        seen: &mut dyn FnMut(usize, &Tensor),
    ) -> Result<Vec<Tensor>, TrainError> {
        let pass =
            Pass { training: true, momentum: NORM_MOMENTUM, eps: NORM_EPS, sync: self.sync.as_deref() };
        self.train(x, &pass, seen)
    }

    /// A pass that changes the running statistics.
    fn train(
        &self,
        x: &Tensor,
        pass: &Pass<'_>,
        seen: &mut dyn FnMut(usize, &Tensor),
    ) -> Result<Vec<Tensor>, TrainError> {
        self.buffers.count_batch()?;
        self.network.pass(x, pass, seen)
    }

    fn detect(&self) -> Result<&Detect, TrainError> {
        self.network.detect()
    }

    /// Batch normalization uses the images of all ranks of `group`; with `None`, only this rank's.
    pub fn set_sync_bn(&mut self, group: Option<Rc<ProcessGroup>>) {
        self.sync = group;
    }

    /// A fused copy in half precision, for inference on CUDA.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn fused_half(&self) -> Result<Self, TrainError> {
        let mut half = self.fuse()?;
        half.to_half()?;
        Ok(half)
    }

    /// Converts every floating-point tensor to half precision, for inference on CUDA with images in
    /// half precision.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn to_half(&mut self) -> Result<(), TrainError> {
        no_grad(|| {
            for entry in self.state.iter().filter(|entry| conv::is_floating(&entry.tensor)) {
                // Replaces the data in place, so that the module that shares the tensor sees it too.
                entry.tensor.shallow_clone().f_set_data(&entry.tensor.f_to_kind(Kind::Half)?)?;
            }
            Ok(())
        })
    }

    /// Rounds every floating-point tensor to fp16 and back, as YOLOv5 does before training (spec §6).
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn round_to_half(&self) -> Result<(), TrainError> {
        no_grad(|| {
            for entry in self.state.iter().filter(|entry| conv::is_floating(&entry.tensor)) {
                let rounded = entry.tensor.f_to_kind(Kind::Half)?.f_to_kind(Kind::Float)?;
                entry.tensor.shallow_clone().f_copy_(&rounded)?;
            }
            Ok(())
        })
    }

    /// Freezes the layers with these indices and unfreezes all others. Returns the names of the
    /// frozen tensors.
    ///
    /// # Errors
    /// When libtorch fails.
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

    /// YOLOv5 runs a new model once on an image of zeros. Modules with a bias before a normalization
    /// make something of it, so their running statistics must come from such a pass, with torch's
    /// default momentum and epsilon (spec §2).
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
                Tensor::f_zeros([1, self.spec.channels as i64, side, side], (Kind::Float, self.device()))?;
            let pass = Pass { training: true, momentum: 0.1, eps: 1e-5, sync: None };
            self.train(&zeros, &pass, &mut |_, _| ()).map(drop)
        })
    }
}

/// Whether a bias precedes a normalization in this module.
fn has_inner_bias(module: &Module) -> bool {
    matches!(module, Module::C3Tr(_) | Module::ConvTranspose2d { .. } | Module::DwConvTranspose2d { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_of_heads_are_known_before_they_are_computed() {
        for name in ["yolov5n", "yolov5n6"] {
            let model = Model::new(&ModelSpec::load(name, 2, None).unwrap(), Device::Cpu).unwrap();
            let images = Tensor::zeros([1, 3, 64, 128], (Kind::Float, Device::Cpu));
            let heads = no_grad(|| model.forward_train(&images)).unwrap();
            let computed: Vec<[i64; 2]> = heads.iter().map(|head| [head.size()[2], head.size()[3]]).collect();
            assert_eq!(model.head_sizes(&images), computed, "{name}");
        }
    }
}
