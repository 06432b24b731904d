//! The error type of the trainer. The message of a [`TrainError`] is complete: what happened, on
//! which file or value, and why. Its hint says what to do next.

use std::borrow::Cow;
use std::error::Error;
use std::path::Path;

use tch::TchError;
use tch_distributed::ErrorKind;
use torch_checkpoint::WeightsError;
use yolo_base::Hint;
use yolo_data::error::DataError;
use yolo_data::loader::LoaderError;
use yolo_plan::PlanError;

/// Why a rank failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct TrainError {
    message: String,
    hint: Option<String>,
    peer_lost: bool,
    out_of_memory: bool,
    of_data: bool,
    #[source]
    source: Option<Box<dyn Error + Send + Sync + 'static>>,
}

impl TrainError {
    /// An error with a complete message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            peer_lost: false,
            out_of_memory: false,
            of_data: false,
            source: None,
        }
    }

    /// Adds what the user can do next, as a sentence without a period.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Keeps the error that led to this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// Puts the place of the error in front of the message: `layer 7: …`.
    #[must_use]
    pub fn at(mut self, place: impl std::fmt::Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// Puts the file in front of the message, unless the message already begins with it.
    #[must_use]
    pub fn at_file(self, file: &Path) -> Self {
        let name = file.display().to_string();
        if self.message.starts_with(&name) { self } else { self.at(name) }
    }

    /// The cause is on this rank, whatever the error says about others.
    #[must_use]
    pub fn of_this_rank(self) -> Self {
        Self { peer_lost: false, ..self }
    }

    /// Whether the memory of the device or of the host did not suffice.
    pub fn is_out_of_memory(&self) -> bool {
        self.out_of_memory
    }

    /// Whether a file of the data set is the cause, so that other hyperparameters would fail, too.
    pub fn is_of_data(&self) -> bool {
        self.of_data
    }

    /// Whether this rank only noticed that another one is gone or hangs, so the cause is there.
    pub fn peer_lost(&self) -> bool {
        self.peer_lost
    }
}

impl Hint for TrainError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        self.hint.as_deref().map(Cow::Borrowed)
    }
}

impl From<TchError> for TrainError {
    fn from(error: TchError) -> Self {
        // libtorch appends its C++ stack to the text; the first line is the message.
        let text = match &error {
            TchError::Torch(text) => text.lines().next().unwrap_or_default().to_owned(),
            other => other.to_string(),
        };
        Self::of_libtorch(&text, format!("libtorch: {text}")).with_source(error)
    }
}

impl TrainError {
    /// An error with this `message`, unless libtorch's `text` says that memory ran out.
    fn of_libtorch(text: &str, message: String) -> Self {
        match out_of_memory(text) {
            Some(message) => Self { out_of_memory: true, ..Self::new(message).with_hint(LESS_MEMORY) },
            None => Self::new(message),
        }
    }
}

/// What to do when memory runs out, where the plan does not say what to lower.
const LESS_MEMORY: &str = "lower --batch or --imgsz, or use a smaller model";

/// How CUDA and its libraries say that memory ran out where libtorch's allocator was not asked for it.
const NO_MEMORY_OF_GPU: [&str; 6] = [
    "CUDA error: out of memory",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "CUBLAS_STATUS_ALLOC_FAILED",
    // cuDNN 8 and 9.
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    // NCCL's words.
    "Cuda failure 2 'out of memory'",
];

/// How libtorch ends its search for a way to compute a convolution. It tries those that fit into memory, so that this is
/// what remains of a lack of memory, or of a convolution that cuDNN does not know, which no network here has.
const NO_ENGINE: &str = "unable to find an engine to execute this computation";

/// libtorch's report that memory ran out, without its advice for PyTorch users. libtorch gives no error
/// code for this, so its text decides.
fn out_of_memory(text: &str) -> Option<String> {
    if let Some((_, about)) = text.split_once("CUDA out of memory. ") {
        let ends = [" Including non-PyTorch", " Of the allocated", " If reserved"];
        let end = ends.iter().filter_map(|end| about.find(end)).min().unwrap_or(about.len());
        return Some(format!("CUDA out of memory: {}", about[..end].trim().trim_end_matches('.')));
    }
    if NO_MEMORY_OF_GPU.iter().any(|sign| text.contains(sign)) {
        return Some(format!("CUDA out of memory: {text}"));
    }
    if text.contains(NO_ENGINE) {
        return Some(format!("CUDA is probably out of memory: {text}"));
    }
    if text.contains("std::bad_alloc") {
        return Some("out of memory: the system gave no more".to_owned());
    }
    let (_, about) = text.split_once("can't allocate memory: you tried to allocate ")?;
    let wanted: u64 = about.split(' ').next()?.parse().ok()?;
    Some(format!("out of memory: {} could not be allocated", yolo_base::format::memory(wanted)))
}

impl From<PlanError> for TrainError {
    fn from(error: PlanError) -> Self {
        let hint = error.hint().map(Into::into);
        Self { hint, ..Self::new(error.to_string()) }
    }
}

impl From<tch_distributed::Error> for TrainError {
    fn from(error: tch_distributed::Error) -> Self {
        let peer_lost = matches!(error.kind(), ErrorKind::PeerLost | ErrorKind::Timeout);
        Self { peer_lost, ..Self::of_libtorch(error.message(), error.to_string()).with_source(error) }
    }
}

impl From<tch_train::Error> for TrainError {
    fn from(error: tch_train::Error) -> Self {
        Self::of_libtorch(error.message(), error.to_string()).with_source(error)
    }
}

impl From<DataError> for TrainError {
    fn from(error: DataError) -> Self {
        let hint = error.hint().map(Into::into);
        Self { hint, of_data: true, ..Self::new(error.to_string()).with_source(error) }
    }
}

impl From<LoaderError> for TrainError {
    fn from(error: LoaderError) -> Self {
        let hint = error.hint().map(Into::into);
        let of_data =
            matches!(error, LoaderError::Image { .. } | LoaderError::Changed { .. } | LoaderError::NoImages);
        Self { hint, of_data, ..Self::new(error.to_string()).with_source(error) }
    }
}

impl From<WeightsError> for TrainError {
    fn from(error: WeightsError) -> Self {
        let hint = error.hint();
        Self { hint, ..Self::new(error.to_string()).with_source(error) }
    }
}

impl From<std::io::Error> for TrainError {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string()).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_and_place_are_kept() {
        let error = TrainError::new("channels differ").with_hint("check the YAML file").at("layer 7");
        assert_eq!(error.to_string(), "layer 7: channels differ");
        assert_eq!(error.hint().as_deref(), Some("check the YAML file"));
    }

    #[test]
    fn a_file_is_named_once() {
        let at = |message: &str| TrainError::new(message).at_file(Path::new("/b.onnx")).to_string();
        assert_eq!(at("/b.onnx cannot be written"), "/b.onnx cannot be written");
        assert_eq!(at("the graph is empty"), "/b.onnx: the graph is empty");
    }

    #[test]
    fn a_libtorch_error_is_one_line_and_keeps_its_source() {
        let error = TrainError::from(TchError::Torch("sizes differ\nframe #0: …".to_owned()));
        assert_eq!(error.to_string(), "libtorch: sizes differ");
        assert!(error.source().is_some());
    }

    #[test]
    fn memory_that_runs_out_is_named_with_what_to_lower() {
        let of = |text: &str| TrainError::from(TchError::Torch(text.to_owned()));
        let gpu = of(
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.18 GiB of \
                      which 1.19 GiB is free. Including non-PyTorch memory, this process has 77.98 GiB memory in \
                      use. Of the allocated memory 77.10 GiB is allocated by PyTorch\nframe #0: …",
        );
        assert_eq!(
            gpu.to_string(),
            "CUDA out of memory: Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.18 GiB of which \
             1.19 GiB is free"
        );
        assert_eq!(gpu.hint().as_deref(), Some(LESS_MEMORY));
        let cpu = of(
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you \
                      tried to allocate 6553600000 bytes. Error code 12 (Cannot allocate memory)",
        );
        assert!(cpu.to_string().starts_with("out of memory: 6."), "{cpu}");
        assert_eq!(cpu.hint().as_deref(), Some(LESS_MEMORY));
        assert!(gpu.is_out_of_memory() && cpu.is_out_of_memory());
        for text in [
            "CUDA error: out of memory",
            "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`",
            "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        ] {
            assert_eq!(of(text).to_string(), format!("CUDA out of memory: {text}"));
            assert!(of(text).is_out_of_memory());
        }
        let no_engine = of("GET was unable to find an engine to execute this computation");
        assert!(no_engine.is_out_of_memory());
        assert!(no_engine.to_string().starts_with("CUDA is probably out of memory: GET was"));
        assert!(of("std::bad_alloc").is_out_of_memory());
        assert!(of("mat1 and mat2 shapes cannot be multiplied").hint().is_none());
    }

    /// Most memory is allocated in the backward pass, which several ranks run through the reducer.
    #[test]
    fn memory_that_runs_out_is_named_wherever_it_does() {
        let text =
            "CUDA out of memory. Tried to allocate 2.00 GiB. If reserved but unallocated memory is large …";
        let error = TchError::Torch(text.to_owned());
        let among_ranks = TrainError::from(tch_distributed::Error::from_tch("backward pass", &error));
        assert_eq!(among_ranks.to_string(), "CUDA out of memory: Tried to allocate 2.00 GiB");
        assert!(among_ranks.is_out_of_memory() && !among_ranks.peer_lost());
        // No machine has as much.
        let images = tch::Tensor::zeros([1], (tch::Kind::Float, tch::Device::Cpu))
            .expand([1, 1 << 25, 1 << 24, 1], false);
        let own = TrainError::from(tch_train::to_channels_last(&images).unwrap_err());
        assert!(own.is_out_of_memory() && own.hint().as_deref() == Some(LESS_MEMORY), "{own}");
    }

    #[test]
    fn the_hint_of_a_plan_is_kept() {
        let error = TrainError::from(PlanError::new("no such file").with_hint("look again"));
        assert_eq!(error.hint().as_deref(), Some("look again"));
    }

    #[test]
    fn a_lost_peer_differs_from_other_failures() {
        let from = |text: &str| {
            let error = TchError::Torch(text.to_owned());
            TrainError::from(tch_distributed::Error::from_tch("all-reduce", &error))
        };
        let lost = from("Connection closed by peer [127.0.0.1]:47314").at("epoch 1");
        assert!(lost.peer_lost());
        assert_eq!(lost.to_string(), "epoch 1: all-reduce: Connection closed by peer [127.0.0.1]:47314");
        assert!(from("Timed out waiting 2000ms for recv operation to complete").peer_lost());
        assert!(!from("sizes differ").peer_lost());
    }
}
