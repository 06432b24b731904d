//! Copies on a stream of their own arrive with their bytes while the device computes, memory that is freed too early is
//! not written again, and the host waits for nothing.

use tch::{Device, Kind, Tensor};
use tch_train::{CopyStream, Copying, Moment, Reading};

use crate::compare::{device, random};
use crate::host_waits::waits_in;

/// Bytes of a copy, and copies in turn.
const BYTES: usize = 1 << 20;
const COPIES: usize = 24;

fn bytes(number: usize) -> Vec<u8> {
    (0..BYTES).map(|index| (index * 31 + number * 97 + index / 1000) as u8).collect()
}

/// The sum of the bytes times their position, which another order or another byte changes.
fn sum_of(bytes: &[u8]) -> f64 {
    bytes.iter().enumerate().map(|(index, byte)| f64::from(*byte) * (index % 1009) as f64).sum()
}

/// The same on the device, after it has worked for a while.
fn slow_sum(copy: &Tensor, mut busy: Tensor) -> Tensor {
    for _ in 0..10 {
        busy = busy.matmul(&busy).tanh();
    }
    let positions = Tensor::arange(BYTES as i64, (Kind::Double, copy.device())).remainder(1009);
    let idle = busy.sum(Kind::Double) * 0.0;
    (copy.to_kind(Kind::Double).reshape([-1]) * positions).sum(Kind::Double) + idle
}

#[test]
fn copies_ahead_arrive_with_their_bytes() {
    let stream = CopyStream::new(device()).unwrap();
    let busy = random(1, &[256, 256]).to_device(device());
    let shape = [2, BYTES as i64 / 2];
    let mut buffer = bytes(0);
    let mut next = Some(stream.copy_bytes(&buffer, &shape).unwrap());
    let mut sums = Vec::new();
    for number in 1..=COPIES {
        let copy = next.take().unwrap().arrive().unwrap();
        assert_eq!((copy.device(), copy.kind(), copy.size()), (device(), Kind::Uint8, shape.to_vec()));
        sums.push(slow_sum(&copy, busy.shallow_clone()));
        // The host is far ahead of the device, which still needs the memory of this copy.
        drop(copy);
        buffer.copy_from_slice(&bytes(number));
        next = Some(stream.copy_bytes(&buffer, &shape).unwrap());
        buffer.fill(0);
    }
    for (number, sum) in sums.iter().enumerate() {
        assert_eq!(sum.double_value(&[]), sum_of(&bytes(number)), "copy {number}");
    }
}

#[test]
fn values_are_read_as_they_were_when_reading_began() {
    let mut values = random(2, &[3]).to_device(device());
    let want = Vec::<f32>::try_from(values.to_device(Device::Cpu)).unwrap();
    let reading = Reading::begin(&values).unwrap();
    let _ = values.fill_(7.0);
    while !reading.has_arrived().unwrap() {
        std::thread::yield_now();
    }
    assert_eq!(Vec::<f32>::try_from(reading.finish().unwrap()).unwrap(), want);
    // Without asking first.
    let sevens = Reading::begin(&values).unwrap().finish().unwrap();
    assert_eq!(Vec::<f32>::try_from(sevens).unwrap(), [7.0; 3]);
}

#[test]
fn neither_direction_waits_for_the_device() {
    let stream = CopyStream::new(device()).unwrap();
    let (source, sum) = (bytes(3), random(3, &[8]).to_device(device()));
    let waits = waits_in(|| {
        let copy = stream.copy_bytes(&source, &[BYTES as i64]).unwrap();
        let _copy = copy.arrive().unwrap();
        let reading = Reading::begin(&sum).unwrap();
        while !reading.has_arrived().unwrap() {
            std::thread::yield_now();
        }
        // The values are there.
        let _sum = reading.finish().unwrap();
    });
    assert_eq!(waits, 0);
}

#[test]
fn what_one_thread_begins_arrives_in_another() {
    let shape = [BYTES as i64];
    let copies: Vec<Copying> = std::thread::scope(|scope| {
        let begin = |number| move || CopyStream::new(device())?.copy_bytes(&bytes(number), &shape);
        let threads = [1, 2, 3, 4].map(|number| scope.spawn(begin(number)));
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
    });
    for (copy, number) in copies.into_iter().zip(1..) {
        let copy = copy.arrive().unwrap().to_device(Device::Cpu);
        assert!(Vec::<u8>::try_from(copy).unwrap() == bytes(number), "copy {number}");
    }
}

#[test]
fn bytes_must_fit_their_shape() {
    let stream = CopyStream::new(device()).unwrap();
    let error = stream.copy_bytes(&[1, 2, 3], &[2, 2]).unwrap_err().to_string();
    assert!(error.ends_with("3 bytes are no tensor of shape [2, 2]"), "{error}");
}

#[test]
fn a_device_tells_how_long_it_has_worked() {
    let Ok(begin) = Moment::of(device()) else {
        assert_eq!(device(), Device::Cpu, "a GPU tells the time");
        return;
    };
    let mut busy = random(3, &[1024, 1024]).to_device(device());
    for _ in 0..50 {
        busy = busy.matmul(&busy).clamp(-1.0, 1.0);
    }
    let end = Moment::of(device()).unwrap();
    let _value = busy.sum(Kind::Float).double_value(&[]);
    let worked = begin.until(&end).unwrap();
    assert!(worked.as_nanos() > 0 && worked.as_secs() < 60, "{worked:?}");
    // Nothing was given to it in between.
    let [one, other] = [(); 2].map(|()| Moment::of(device()).unwrap());
    assert!(one.until(&other).unwrap() < worked);
}
