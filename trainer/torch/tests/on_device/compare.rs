//! The device under test, tensors on it, and comparisons with double precision.

use std::sync::{Mutex, OnceLock, PoisonError};

use tch::{Device, Kind, Tensor};

/// The variable that names the device under test.
pub(crate) const DEVICE: &str = "YOLO_TEST_DEVICE";

/// Shapes that the kernels for lists of tensors treat differently: a scalar, lengths that are a
/// multiple of 4 and that are not, and one above the 65,536 elements of a block.
const SHAPES: [&[i64]; 7] = [&[7, 3], &[5], &[], &[4, 8], &[2, 3, 3, 3], &[1], &[259, 257]];

/// More tensors than one launch of these kernels takes (110 at most).
const TENSORS: usize = 128;

/// The device under test. Every test calls this before anything else of libtorch, because the first
/// question about CUDA decides whether there is CUDA. TF32 is off.
pub(crate) fn device() -> Device {
    static FOUND: OnceLock<Device> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let name = std::env::var_os(DEVICE).map_or("cpu".into(), |name| name.to_string_lossy().into_owned());
        let device = tch_train::cuda::device(&name)
            .unwrap_or_else(|error| panic!("{DEVICE}={name} cannot be used: {error}"));
        tch_train::set_allow_tf32(false).unwrap();
        device
    })
}

/// Standard normal numbers on the CPU, the same for the same seed.
pub(crate) fn random(seed: i64, shape: &[i64]) -> Tensor {
    randoms(seed, &[shape]).remove(0)
}

/// Tensors of many shapes with standard normal numbers, on the CPU.
pub(crate) fn many(seed: i64) -> Vec<Tensor> {
    let shapes: Vec<&[i64]> = SHAPES.iter().copied().cycle().take(TENSORS).collect();
    randoms(seed, &shapes)
}

fn randoms(seed: i64, shapes: &[&[i64]]) -> Vec<Tensor> {
    // All threads of the process share one generator, and tests run in parallel.
    static GENERATOR: Mutex<()> = Mutex::new(());
    let _guard = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = device();
    tch::manual_seed(seed);
    shapes.iter().map(|&shape| Tensor::randn(shape, (Kind::Float, Device::Cpu))).collect()
}

/// Copies on the device. Every third starts four bytes after its buffer, as a view does, because
/// kernels read aligned memory in another way.
pub(crate) fn placed(tensors: &[Tensor]) -> Vec<Tensor> {
    let place = |(index, tensor): (usize, &Tensor)| {
        let (length, offset) = (tensor.numel() as i64, i64::from(index % 3 == 0));
        let buffer = Tensor::zeros([length + offset], (Kind::Float, device()));
        let mut view = buffer.narrow(0, offset, length).reshape(tensor.size());
        view.copy_(tensor);
        view
    };
    tensors.iter().enumerate().map(place).collect()
}

/// Copies on the CPU in double precision.
pub(crate) fn doubles(tensors: &[Tensor]) -> Vec<Tensor> {
    tensors.iter().map(|tensor| tensor.to_kind(Kind::Double)).collect()
}

/// Fails unless a tensor on the device differs from the one in double precision by at most `bound`,
/// relative to the largest of its values, or to 1 if all are smaller.
pub(crate) fn agree(what: &str, got: &Tensor, want: &Tensor, bound: f64) {
    let (off, scale) = difference(what, got, want);
    let bound = bound * scale.max(1.0);
    assert!(off <= bound, "{what}: the largest difference is {off:e}, the bound {bound:e}");
}

/// [`agree`] for each tensor of two lists.
pub(crate) fn all_agree(what: &str, got: &[Tensor], want: &[Tensor], bound: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (index, (got, want)) in got.iter().zip(want).enumerate() {
        agree(&format!("{what} {index} of shape {:?}", want.size()), got, want, bound);
    }
}

/// The largest difference of a tensor on the device from one in double precision, and the largest
/// value of the latter. A NaN is larger than any bound.
pub(crate) fn difference(what: &str, got: &Tensor, want: &Tensor) -> (f64, f64) {
    assert_eq!(got.device(), device(), "{what} is on another device");
    assert_eq!(want.kind(), Kind::Double, "{what}: the reference has another precision");
    assert_eq!(got.size(), want.size(), "{what} has another shape");
    let got = got.detach().to_device(Device::Cpu).to_kind(Kind::Double);
    let want = want.detach();
    ((got - &want).abs().max().double_value(&[]), want.abs().max().double_value(&[]))
}
