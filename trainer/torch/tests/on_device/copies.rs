//! Copies to the device arrive with the bytes of their source, however many are on the way.

use tch::{Device, Kind, Tensor};
use tch_train::{copy_to_device, page_locked, to_channels_last};

use crate::compare::{device, random};

/// Copies on the way at once, and the elements of each: 1 MiB of 64-bit integers, less one.
const COPIES: i64 = 32;
const LENGTH: i64 = 131_071;

/// The elements of a tensor as bytes, row after row.
fn bytes(tensor: &Tensor) -> Vec<u8> {
    let tensor = tensor.to_device(Device::Cpu).contiguous();
    let mut bytes = vec![0; tensor.numel() * tensor.kind().elt_size_in_bytes()];
    tensor.copy_data_u8(&mut bytes, tensor.numel());
    bytes
}

/// Fails unless `copy` is on the device and has the bytes of `source`.
fn is_copy(what: &str, copy: &Tensor, source: &Tensor) {
    assert_eq!(copy.device(), device(), "{what} is on another device");
    assert_eq!((copy.size(), copy.kind()), (source.size(), source.kind()), "{what}");
    let (got, want) = (bytes(copy), bytes(source));
    let differing = got.iter().zip(&want).filter(|(got, want)| got != want).count();
    assert!(differing == 0, "{what}: {differing} of {} bytes differ, none may", want.len());
}

#[test]
fn copies_have_the_bytes_of_their_source() {
    let numbers = random(1, &[3, 5, 17, 6]);
    let sources = [
        ("float32", numbers.shallow_clone()),
        ("float64", numbers.to_kind(Kind::Double)),
        ("float16", numbers.to_kind(Kind::Half)),
        ("bfloat16", numbers.to_kind(Kind::BFloat16)),
        ("int64", (&numbers * 1e6).to_kind(Kind::Int64)),
        ("bytes", (numbers.abs() * 50).to_kind(Kind::Uint8)),
        ("booleans", numbers.gt(0)),
        ("scalar", Tensor::full([], 2.5, (Kind::Float, Device::Cpu))),
        ("empty", Tensor::zeros([0, 4], (Kind::Float, Device::Cpu))),
        ("transposed", numbers.transpose(1, 2)),
        ("part of a tensor", numbers.narrow(2, 3, 7)),
        ("channels_last", to_channels_last(&numbers).unwrap()),
    ];
    for (what, source) in &sources {
        is_copy(what, &copy_to_device(source, device()).unwrap(), source);
    }
}

#[test]
fn many_copies_on_the_way_do_not_mix() {
    let source = |number: i64| Tensor::arange(LENGTH, (Kind::Int64, Device::Cpu)) + number * LENGTH;
    // The device has work to do, so that the copies wait for their turn.
    let mut busy = random(2, &[512, 512]).to_device(device());
    for _ in 0..20 {
        busy = busy.matmul(&busy).tanh();
    }
    let copies: Vec<Tensor> = (0..COPIES)
        .map(|number| {
            let mut source = source(number);
            let copy = copy_to_device(&source, device()).unwrap();
            // The caller may change its tensor at once. On the CPU the copy is the tensor itself.
            if device().is_cuda() {
                let _ = source.fill_(-1);
            }
            copy
        })
        .collect();
    for (number, copy) in (0..).zip(&copies) {
        is_copy(&format!("copy {number} of {COPIES}"), copy, &source(number));
    }
    assert!(busy.abs().max().double_value(&[]) <= 1.0);
}

#[test]
fn page_locked_tensors_are_copied() {
    let mut source = random(3, &[1000, 77]);
    // Only CUDA has page-locked memory.
    if device().is_cuda() {
        source = page_locked(&source).unwrap();
        assert!(source.is_pinned(device()));
    }
    is_copy("page-locked tensor", &copy_to_device(&source, device()).unwrap(), &source);
}
