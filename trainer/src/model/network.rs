//! The layers of a model in order, the device of each, and the forward pass through them. Usually all are on one
//! device. With `--parallel model`, outputs move to the device of the layer that reads them, and gradients move
//! back the same way.

use tch::{Device, Tensor};
use yolo_plan::model::{Layer as LayerSpec, ModelSpec};

use super::block::Pass;
use super::build::{self, Builder, Source};
use super::detect::Detect;
use super::layer::{Body, Layer};
use super::state::State;
use crate::error::TrainError;

/// Where the layers of a model are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placement {
    /// Where images come from, and where the outputs and the anchors are.
    pub(super) home: Device,
    /// The device of each layer; empty if all are at home.
    pub(super) layers: Vec<Device>,
}

impl Placement {
    /// All layers on one device.
    pub(super) fn on(home: Device) -> Self {
        Self { home, layers: Vec::new() }
    }

    /// The device of a layer.
    pub(super) fn of(&self, layer: usize) -> Device {
        self.layers.get(layer).copied().unwrap_or(self.home)
    }
}

/// The layers of a model.
pub(super) struct Network {
    /// The name of the model.
    name: String,
    layers: Vec<Layer>,
    pub(super) placement: Placement,
}

impl Network {
    /// The layers of a model whose detection levels have these strides, and their tensors.
    pub(super) fn build(
        spec: &ModelSpec,
        strides: &[f64],
        source: Source<'_>,
        fused: bool,
        placement: Placement,
    ) -> Result<(Self, State), TrainError> {
        let home = placement.home;
        let mut builder = Builder::new(source, fused, home);
        let layers = builder.scope("model", |b| {
            let layer =
                |row: &LayerSpec| b.on(placement.of(row.index), |b| Layer::new(b, row, spec, strides, home));
            spec.layers.iter().map(layer).collect::<Result<Vec<_>, _>>()
        })?;
        Ok((Self { name: spec.name.clone(), layers, placement }, builder.finish()))
    }

    /// The raw outputs of the levels for images (B, 3, H, W), at home. Shows the output of every layer but
    /// the last to `seen`.
    pub(super) fn pass(
        &self,
        x: &Tensor,
        pass: &Pass<'_>,
        seen: &mut dyn FnMut(usize, &Tensor),
    ) -> Result<Vec<Tensor>, TrainError> {
        let mut image = build::channels_last(x)?;
        let last_use = self.last_use();
        let mut outputs: Vec<Option<Tensor>> = Vec::with_capacity(self.layers.len());
        for (index, layer) in self.layers.iter().enumerate() {
            let device = self.placement.of(index);
            let mut inputs = Vec::with_capacity(layer.from.len());
            for &from in &layer.from {
                let source = match usize::try_from(from) {
                    Ok(from) => outputs.get_mut(from).and_then(Option::as_mut),
                    Err(_) => Some(&mut image),
                };
                let source = source
                    .ok_or_else(|| TrainError::new(format!("layer {index} reads layer {from} too early")))?;
                if source.device() != device {
                    // The layers that read it later are on the same device or on a later one, so it moves
                    // once to each.
                    *source = source.f_to_device(device)?;
                }
                inputs.push(source.shallow_clone());
            }
            // An output that no later layer reads is freed before the next one is computed.
            for (output, &last) in outputs.iter_mut().zip(&last_use) {
                if last <= index {
                    *output = None;
                }
            }
            if let Body::Detect(detect) = &layer.body {
                let heads = detect.forward(&inputs, pass)?;
                return heads.iter().map(|head| Ok(head.f_to_device(self.placement.home)?)).collect();
            }
            let output = layer
                .forward(&inputs, pass)
                .map_err(|error| error.at(format!("layer {index} of {}", self.name)))?;
            seen(index, &output);
            outputs.push(Some(output));
        }
        Err(TrainError::new(format!("{} has no Detect layer", self.name)))
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

    /// The last layer.
    pub(super) fn detect(&self) -> Result<&Detect, TrainError> {
        match self.layers.last().map(|layer| &layer.body) {
            Some(Body::Detect(detect)) => Ok(detect),
            _ => Err(TrainError::new(format!("the last layer of {} is not Detect", self.name))
                .with_hint("end the `head` of the model's yaml with a Detect row")),
        }
    }
}
