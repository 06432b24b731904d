//! Resuming on several ranks: rank 0 reads the checkpoint, which may lie on its machine only, and sends
//! the others what they need.

use std::path::Path;

use tch_distributed::ProcessGroup;
use torch_checkpoint::{Value, WeightsFile};

use super::read::{Resume, parse_resume};
use super::yolov5;
use crate::error::TrainError;

/// What rank 0 alone needs: the averaged weights.
const OF_RANK_0: &str = "ema";

/// The state of the run of the checkpoint at `path`, on every rank of `group`. Only rank 0 reads the file.
///
/// # Errors
/// On rank 0, when its run is finished or it holds only weights; when a peer is lost.
pub fn read_resume(path: &Path, group: Option<&ProcessGroup>) -> Result<Resume, TrainError> {
    let Some(group) = group else { return parse_resume(&read(path)?, path) };
    if group.rank() > 0 {
        let bytes = group.broadcast_bytes(&[], 0)?;
        return parse_resume(&torch_checkpoint::decode(&bytes, path)?, path);
    }
    let mut file = read(path)?;
    // A file that cannot be resumed is an error of rank 0 alone.
    let resume = parse_resume(&file, path)?;
    if let Value::Dict(fields) = &mut file.root {
        fields.retain(|(name, _)| name.as_str() != Some(OF_RANK_0));
    }
    let bytes = torch_checkpoint::encode(&file.root, path)?;
    drop(file);
    group.broadcast_bytes(&bytes, 0)?;
    Ok(resume)
}

/// The checkpoint at `path`, in the form of ours.
fn read(path: &Path) -> Result<WeightsFile, TrainError> {
    yolov5::as_ours(torch_checkpoint::read(path)?, path)
}
