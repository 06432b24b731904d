//! The pictures of a validation on several ranks: each rank draws those of its batches, and rank 0
//! writes them all, because another machine need not have the run folder. Likewise its worst images.

use std::path::PathBuf;

use fs_err as fs;
use yolo_plan::report::WorstImage;

use super::message::{Reader, Writer};
use crate::error::TrainError;
use crate::rank::context::Context;
use crate::report::{Picture, worst_of_all};

/// Writes the pictures of all ranks, on rank 0. Every rank calls this.
///
/// # Errors
/// When a picture cannot be written, or a peer is lost.
pub(crate) fn write_pictures(context: &Context, own: Vec<Picture>) -> Result<(), TrainError> {
    let mut message = Writer::default();
    message.number(own.len() as u64);
    for (path, bytes) in own {
        message.bytes(path.as_os_str().as_encoded_bytes());
        message.bytes(&bytes);
    }
    let messages = context.gather(message.finish())?;
    if !context.is_main() {
        return Ok(());
    }
    for message in &messages {
        let mut message = Reader::new(message);
        for _ in 0..message.count()? {
            let path = PathBuf::from(String::from_utf8_lossy(message.bytes()?).into_owned());
            fs::write(path, message.bytes()?)
                .map_err(|error| TrainError::new(format!("cannot write a picture: {error}")))?;
        }
    }
    Ok(())
}

/// The worst images of all ranks, on rank 0. Every rank calls this.
///
/// # Errors
/// When a peer is lost, or is of another version.
pub(crate) fn gather_worst(context: &Context, own: Vec<WorstImage>) -> Result<Vec<WorstImage>, TrainError> {
    let unreadable = |error: serde_json::Error| {
        TrainError::new(format!("a rank has sent worst images that cannot be read: {error}"))
    };
    let messages = context.gather(serde_json::to_vec(&own).map_err(unreadable)?)?;
    if !context.is_main() {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for message in &messages {
        all.extend(serde_json::from_slice::<Vec<WorstImage>>(message).map_err(unreadable)?);
    }
    Ok(worst_of_all(all))
}
