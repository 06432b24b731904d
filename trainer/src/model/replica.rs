//! [`Replica`]: a model on another device for one forward pass of training. Its parameters are copies through
//! which gradients flow back into those of the model, and its running statistics are copies that are dropped with
//! it. It holds nothing of the process, so a thread can run it.

use tch::{Device, Tensor};

use super::block::Pass;
use super::build::{NORM_EPS, Source};
use super::detector::{Model, NORM_MOMENTUM};
use super::network::{Network, Placement};
use crate::error::TrainError;

/// A model for one forward pass.
pub struct Replica {
    network: Network,
}

impl Model {
    /// A replica of the model on a device. Make it before the pass of the model itself, which changes the
    /// running statistics.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn replica(&self, device: Device) -> Result<Replica, TrainError> {
        let source = Source::Replica(self.state());
        let placement = Placement::on(device);
        let (network, _) = Network::build(self.spec(), self.strides(), source, self.is_fused(), placement)?;
        Ok(Replica { network })
    }
}

impl Replica {
    /// As [`Model::forward_train`], for images on the device of the replica.
    ///
    /// # Errors
    /// As there.
    pub fn forward_train(&self, x: &Tensor) -> Result<Vec<Tensor>, TrainError> {
        let pass = Pass { training: true, momentum: NORM_MOMENTUM, eps: NORM_EPS, sync: None };
        self.network.pass(x, &pass, &mut |_, _| ())
    }
}
