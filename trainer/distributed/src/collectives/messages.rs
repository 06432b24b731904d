//! Messages from one rank to another. Before each tensor goes its kind and shape, because gloo ends the
//! process of a rank that receives more than it expects.

#![expect(unsafe_code, reason = "calls the shim's send and receive")]

use std::ffi::c_int;
use std::rc::Rc;

use tch::{Device, Kind, Tensor};

use super::tensors::{contiguous, describe, from_tch, share};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi;
use crate::process_group::ProcessGroup;
use crate::work::RawWork;

/// The most dimensions of a tensor in a message.
const DIMENSIONS: usize = 8;

/// The kinds that can be sent, by their numbers in a message.
const KINDS: [Kind; 10] = [
    Kind::Uint8,
    Kind::Int8,
    Kind::Int16,
    Kind::Int,
    Kind::Int64,
    Kind::Half,
    Kind::Float,
    Kind::Double,
    Kind::Bool,
    Kind::BFloat16,
];

impl ProcessGroup {
    /// Sends a tensor to rank `to`, and waits until that rank receives it with [`Self::recv`] or
    /// [`Self::recv_any`] under the same `tag`. Over NCCL all tags are the same. Without NCCL a CUDA tensor is
    /// copied to the CPU first, and only its values cross: the receiver's may be on any device.
    ///
    /// # Errors
    /// If the rank is lost or too slow, is this one or none of the group, or the tensor cannot be sent.
    pub fn send(&self, tensor: &Tensor, to: usize, tag: u16) -> Result<()> {
        let action = self.message_action("send", "to", to)?;
        let sent = self.start_send(&action, tensor, to, tag);
        sent.and_then(finish).map_err(|error| self.roll().explain_message(error, Some(to)))
    }

    /// Overwrites a contiguous tensor with the one that rank `from` sends under the same `tag`.
    ///
    /// # Errors
    /// If the rank is lost or too slow, is this one or none of the group, or its tensor has another shape or
    /// kind. If `tensor` itself cannot be received, the message stays for the next call.
    pub fn recv(&self, tensor: &Tensor, from: usize, tag: u16) -> Result<()> {
        let action = self.message_action("receive", "from", from)?;
        let received = self.receive(&action, tensor, Some(from), tag);
        received.map(|_| ()).map_err(|error| self.roll().explain_message(error, Some(from)))
    }

    /// Overwrites a contiguous tensor with the next one that any rank sends under the same `tag`, and returns
    /// that rank. Over gloo only.
    ///
    /// # Errors
    /// If no rank sends one in time, a rank is lost, or the tensor has another shape or kind.
    pub fn recv_any(&self, tensor: &Tensor, tag: u16) -> Result<usize> {
        let action: Rc<str> = self.action("receive from any rank").into();
        self.receive(&action, tensor, None, tag).map_err(|error| self.explain(error))
    }

    /// Sends a tensor to rank `to` and receives one from rank `from` at the same time. Two ranks that send to
    /// each other first and receive then would wait for each other.
    ///
    /// # Errors
    /// As [`Self::send`] and [`Self::recv`], and if a tensor is on CUDA and the group uses NCCL, which would run
    /// the receive after the send.
    pub fn send_recv(
        &self,
        outgoing: &Tensor,
        to: usize,
        incoming: &Tensor,
        from: usize,
        tag: u16,
    ) -> Result<()> {
        let sending = self.message_action("send", "to", to)?;
        let receiving = self.message_action("receive", "from", from)?;
        if exchange_waits_for_itself(self.uses_nccl(), [outgoing.device(), incoming.device()]) {
            let message = "CUDA tensors cannot be sent and received at once over NCCL, because each rank would \
                           wait for the other; use all_to_all, or CPU tensors";
            return Err(Error::new(ErrorKind::Other, &*sending, message));
        }
        // Before anything is sent.
        receivable(incoming, &receiving)?;
        let explain = |rank| move |error| self.roll().explain_message(error, Some(rank));
        let sent = self.start_send(&sending, outgoing, to, tag).map_err(explain(to))?;
        let received = self.receive(&receiving, incoming, Some(from), tag).map_err(explain(from));
        // Also after an error: a message must not be dropped on its way.
        let sent = finish(sent);
        received?;
        sent.map_err(explain(to))
    }

    /// Whether a tensor is sent and received as a copy on the CPU. gloo would read the address of a CUDA tensor
    /// as one of the host's memory.
    fn crosses_on_cpu(&self, tensor: &Tensor) -> bool {
        match tensor.device() {
            Device::Cpu => false,
            Device::Cuda(_) => !self.uses_nccl(),
            _ => true,
        }
    }

    fn message_action(&self, verb: &str, direction: &str, rank: usize) -> Result<Rc<str>> {
        let what = format!("{verb} {direction} rank {rank}");
        self.check_rank(&what, "rank", rank)?;
        if rank == self.rank() {
            return Err(Error::new(ErrorKind::Other, self.action(&what), "that is this rank"));
        }
        Ok(self.action(&what).into())
    }

    fn start_send(&self, action: &Rc<str>, tensor: &Tensor, to: usize, tag: u16) -> Result<[RawWork; 2]> {
        let tensor = contiguous(tensor, action)?;
        let tensor = if self.crosses_on_cpu(&tensor) {
            tensor.f_to_device(Device::Cpu).map_err(from_tch(action))?
        } else {
            tensor
        };
        let header = Tensor::f_from_slice(&header(&tensor, action)?).map_err(from_tch(action))?;
        let start = |tensor: &Tensor, tag| {
            RawWork::start(action, self.timeout(), share([tensor]), |out| {
                // SAFETY: group and tensor are alive during the call; the work keeps the tensor. The rank is
                // less than the world size, which fits in an int.
                unsafe { ffi::tchd_send(self.as_ptr(), ffi::pointer(tensor), to as c_int, tag, out) }
            })
        };
        let [first, second] = tags(tag);
        let header = start(&header, first)?;
        match start(&tensor, second) {
            Ok(tensor) => Ok([header, tensor]),
            Err(error) => {
                // The first error says more.
                let _ = header.wait();
                Err(error)
            }
        }
    }

    fn receive(&self, action: &Rc<str>, tensor: &Tensor, from: Option<usize>, tag: u16) -> Result<usize> {
        // Before anything is taken off the wire.
        let wanted = receivable(tensor, action)?;
        let receive = |tensor: &Tensor, from: Option<usize>, tag| {
            let rank = from.map_or(-1, |rank| rank as c_int);
            let work = RawWork::start(action, self.timeout(), share([tensor]), |out| {
                // SAFETY: group and tensor are alive during the call; the work keeps the tensor. The rank is
                // less than the world size, which fits in an int, or negative for any.
                unsafe { ffi::tchd_receive(self.as_ptr(), ffi::pointer(tensor), rank, tag, out) }
            })?;
            work.wait()?;
            from.map_or_else(|| work.source(), Ok)
        };
        let [first, second] = tags(tag);
        let numbers = Tensor::f_from_slice(&[0i64; DIMENSIONS + 2]).map_err(from_tch(action))?;
        let from = receive(&numbers, from, first)?;
        let sent = Vec::<i64>::try_from(&numbers).map_err(from_tch(action))?;
        let on_cpu = self.crosses_on_cpu(tensor);
        if sent == wanted && !on_cpu {
            receive(tensor, Some(from), second)?;
            return Ok(from);
        }
        // The tensor is on its way, and the next message comes after it.
        let refuse =
            |message: String| Error::new(ErrorKind::Other, &**action, message).with_ranks(vec![from]);
        let Some((kind, shape)) = parse_header(&sent) else {
            return Err(refuse(format!("the message of rank {from} is not one of this crate")));
        };
        let device = if on_cpu { Device::Cpu } else { tensor.device() };
        let other = Tensor::f_empty(&shape[..], (kind, device)).map_err(from_tch(action))?;
        receive(&other, Some(from), second)?;
        if sent == wanted {
            // Not a step of autograd.
            let copied = tensor.f_detach().and_then(|mut tensor| tensor.f_copy_(&other));
            return copied.map(|()| from).map_err(from_tch(action));
        }
        Err(refuse(format!("rank {from} sent a tensor{}, not{}", describe(&other), describe(tensor))))
    }
}

/// Waits for both, also if the first fails.
fn finish(works: [RawWork; 2]) -> Result<()> {
    works.map(|work| work.wait()).into_iter().collect()
}

/// Whether a rank that sends and receives at once waits for a rank that does the same. NCCL runs the
/// operations of a communicator one after another.
fn exchange_waits_for_itself(uses_nccl: bool, devices: [Device; 2]) -> bool {
    uses_nccl && devices.iter().any(|device| device.is_cuda())
}

/// The header of the only message that fits a tensor. Fails if none can be received into it.
fn receivable(tensor: &Tensor, action: &str) -> Result<Vec<i64>> {
    let header = header(tensor, action)?;
    if tensor.is_sparse() || !tensor.is_contiguous() {
        let message = format!("a tensor{} that is not contiguous cannot be received into", describe(tensor));
        return Err(Error::new(ErrorKind::Other, action, message));
    }
    Ok(header)
}

/// The tags of header and tensor.
fn tags(tag: u16) -> [c_int; 2] {
    [c_int::from(tag) * 2, c_int::from(tag) * 2 + 1]
}

/// Number of the kind, number of dimensions, and dimensions.
fn header(tensor: &Tensor, action: &str) -> Result<Vec<i64>> {
    let (kind, shape) = (tensor.kind(), tensor.size());
    match KINDS.iter().position(|other| *other == kind) {
        Some(number) if shape.len() <= DIMENSIONS => {
            let mut numbers = vec![number as i64, shape.len() as i64];
            numbers.extend(&shape);
            numbers.resize(DIMENSIONS + 2, 0);
            Ok(numbers)
        }
        _ => {
            let message = format!("a tensor{} cannot be sent", describe(tensor));
            Err(Error::new(ErrorKind::Other, action, message))
        }
    }
}

fn parse_header(numbers: &[i64]) -> Option<(Kind, Vec<i64>)> {
    let [kind, count, shape @ ..] = numbers else { return None };
    let kind = *KINDS.get(usize::try_from(*kind).ok()?)?;
    let shape = shape.get(..usize::try_from(*count).ok()?)?;
    shape.iter().all(|size| *size >= 0).then(|| (kind, shape.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_kind_and_shape() {
        let tensor = Tensor::zeros([2, 3], (Kind::BFloat16, Device::Cpu));
        let numbers = header(&tensor, "").unwrap();
        assert_eq!(numbers, [9, 2, 2, 3, 0, 0, 0, 0, 0, 0]);
        assert_eq!(parse_header(&numbers), Some((Kind::BFloat16, vec![2, 3])));
        assert_eq!(parse_header(&[77, 1, 2]), None);
        assert_eq!(parse_header(&[6, 1, -2]), None);
        let complex = Tensor::zeros([1], (Kind::ComplexFloat, Device::Cpu));
        assert!(header(&complex, "").unwrap_err().message().contains("cannot be sent"));
    }

    #[test]
    fn a_tensor_that_is_not_contiguous_cannot_be_received_into() {
        let tensor = Tensor::zeros([2, 3], (Kind::Float, Device::Cpu));
        assert_eq!(receivable(&tensor, "").unwrap(), header(&tensor, "").unwrap());
        let error = receivable(&tensor.transpose(0, 1), "").unwrap_err();
        assert_eq!(
            error.message(),
            "a tensor of Float [3, 2] that is not contiguous cannot be received into"
        );
    }

    #[test]
    fn only_nccl_keeps_cuda_tensors_from_an_exchange() {
        let (cpu, cuda) = (Device::Cpu, Device::Cuda(0));
        assert!(exchange_waits_for_itself(true, [cuda, cuda]));
        assert!(exchange_waits_for_itself(true, [cpu, cuda]));
        assert!(!exchange_waits_for_itself(true, [cpu, cpu]));
        assert!(!exchange_waits_for_itself(false, [cuda, cuda]));
    }
}
