//! The error type of the trainer. The message of a [`TrainError`] is complete: what happened, on
//! which file or value, and why. Its hint says what to do next.

use std::borrow::Cow;
use std::error::Error;

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
    #[source]
    source: Option<Box<dyn Error + Send + Sync + 'static>>,
}

impl TrainError {
    /// An error with a complete message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, peer_lost: false, source: None }
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
        Self::new(format!("libtorch: {text}")).with_source(error)
    }
}

impl From<PlanError> for TrainError {
    fn from(error: PlanError) -> Self {
        let hint = error.hint().map(Into::into);
        Self { message: error.to_string(), hint, peer_lost: false, source: None }
    }
}

impl From<tch_distributed::Error> for TrainError {
    fn from(error: tch_distributed::Error) -> Self {
        let peer_lost = matches!(error.kind(), ErrorKind::PeerLost | ErrorKind::Timeout);
        Self { peer_lost, ..Self::new(error.to_string()).with_source(error) }
    }
}

impl From<tch_train::Error> for TrainError {
    fn from(error: tch_train::Error) -> Self {
        Self::new(error.to_string()).with_source(error)
    }
}

impl From<DataError> for TrainError {
    fn from(error: DataError) -> Self {
        let hint = error.hint().map(Into::into);
        Self { hint, ..Self::new(error.to_string()).with_source(error) }
    }
}

impl From<LoaderError> for TrainError {
    fn from(error: LoaderError) -> Self {
        let hint = error.hint().map(Into::into);
        Self { hint, ..Self::new(error.to_string()).with_source(error) }
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
    fn a_libtorch_error_is_one_line_and_keeps_its_source() {
        let error = TrainError::from(TchError::Torch("sizes differ\nframe #0: …".to_owned()));
        assert_eq!(error.to_string(), "libtorch: sizes differ");
        assert!(error.source().is_some());
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
