//! Buffers of a model, packed: all of one kind on one device lie in one tensor, and the modules see parts of it. So a
//! training step adds one to all batch counters by one operation, and ranks exchange two tensors without copying
//! parts of them together, where yolov5n has 172 buffers.

use tch::{Device, Kind, Tensor, no_grad};

use super::state::State;
use crate::error::TrainError;

/// Each buffer starts at a multiple of this, as in a tensor of its own: kernels may load whole vectors.
const ALIGNMENT: usize = 64;

/// The packed buffers of a model.
#[derive(Debug, Default)]
pub(super) struct PackedBuffers {
    packs: Vec<Tensor>,
}

impl PackedBuffers {
    /// Moves the buffers of a model into packs. Tensors that modules share with the state stay the same tensors.
    ///
    /// # Errors
    /// When memory runs out.
    pub(super) fn pack(state: &State) -> Result<Self, TrainError> {
        let mut groups: Vec<((Kind, Device), Vec<&Tensor>)> = Vec::new();
        for entry in state.buffers() {
            let key = (entry.tensor.kind(), entry.tensor.device());
            match groups.iter_mut().find(|(other, _)| *other == key) {
                Some((_, group)) => group.push(&entry.tensor),
                None => groups.push((key, vec![&entry.tensor])),
            }
        }
        let packs = groups.iter().map(|(key, tensors)| pack(tensors, *key)).collect::<Result<_, _>>()?;
        Ok(Self { packs })
    }

    /// The tensors in which all buffers lie.
    pub(super) fn tensors(&self) -> &[Tensor] {
        &self.packs
    }

    /// Adds one to every batch counter, the only buffers that are integers.
    ///
    /// # Errors
    /// When libtorch fails.
    pub(super) fn count_batch(&self) -> Result<(), TrainError> {
        for pack in self.packs.iter().filter(|pack| pack.kind() == Kind::Int64) {
            let _ = pack.shallow_clone().f_add_scalar_(1)?;
        }
        Ok(())
    }
}

/// One tensor with the values of all these, of which each becomes a part.
fn pack(tensors: &[&Tensor], (kind, device): (Kind, Device)) -> Result<Tensor, TrainError> {
    let slot = |tensor: &Tensor| {
        let per_slot = (ALIGNMENT / kind.elt_size_in_bytes()).max(1);
        tensor.numel().next_multiple_of(per_slot) as i64
    };
    let length = tensors.iter().map(|tensor| slot(tensor)).sum::<i64>();
    let all = Tensor::f_zeros([length], (kind, device))?;
    let mut start = 0;
    for &tensor in tensors {
        let part = all.f_narrow(0, start, tensor.numel() as i64)?.f_view(tensor.size().as_slice())?;
        no_grad(|| {
            part.shallow_clone().f_copy_(tensor)?;
            // Replaces the memory in place, so that the module that shares the tensor sees it too.
            tensor.shallow_clone().f_set_data(&part)
        })?;
        start += slot(tensor);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use yolo_plan::model::ModelSpec;

    use super::super::Model;
    use super::*;

    fn model() -> Model {
        tch::manual_seed(1);
        Model::new(&ModelSpec::load("yolov5n", 2, None).unwrap(), Device::Cpu).unwrap()
    }

    fn buffers(model: &Model) -> Vec<(String, Tensor)> {
        model.state().buffers().map(|entry| (entry.name.clone(), entry.tensor.copy())).collect()
    }

    #[test]
    fn buffers_lie_in_two_tensors_and_keep_their_values() {
        let model = model();
        let packs = model.buffers();
        assert_eq!(packs.iter().map(Tensor::kind).collect::<Vec<_>>(), [Kind::Float, Kind::Int64]);
        for pack in packs {
            let mut pack = pack.shallow_clone();
            let _ = pack.fill_(7);
        }
        for (name, tensor) in buffers(&model) {
            assert!(bool::try_from(tensor.eq(7).all()).unwrap(), "{name} is not in a pack");
        }
    }

    #[test]
    fn a_pass_in_training_counts_once_for_every_normalization_and_changes_its_statistics() {
        let model = model();
        let before = buffers(&model);
        let images = Tensor::rand([2, 3, 64, 64], (Kind::Float, Device::Cpu));
        drop(model.forward_eval(&images).unwrap());
        for ((name, old), (_, new)) in before.iter().zip(buffers(&model)) {
            assert_eq!(*old, new, "{name} changed in inference");
        }
        drop(model.forward_train(&images).unwrap());
        for ((name, old), (_, new)) in before.iter().zip(buffers(&model)) {
            match name.rsplit('.').next().unwrap() {
                "num_batches_tracked" => assert_eq!(new, old + 1, "{name}"),
                "running_mean" | "running_var" => assert_ne!(*old, new, "{name} did not change"),
                _ => assert_eq!(*old, new, "{name} changed"),
            }
        }
    }

    #[test]
    fn the_buffers_of_a_copy_are_its_own() {
        let model = model();
        let copy = model.copy().unwrap();
        for pack in model.buffers() {
            let mut pack = pack.shallow_clone();
            let _ = pack.fill_(7);
        }
        for (name, tensor) in buffers(&copy) {
            assert!(!bool::try_from(tensor.eq(7).all()).unwrap(), "{name} is shared");
        }
    }
}
