//! Checkpoints that YOLOv5 saved during a run, in the form of ours (spec §10). Its modules become state dicts. It saves at
//! the end of an epoch only, in half precision, and starts to count the batches between two optimizer steps anew when it
//! resumes.

use std::path::Path;

use indexmap::IndexMap;
use torch_checkpoint::{TensorData, Value, WeightsFile};
use yolo_plan::run::{WrittenBy, check_resumable, lacks};

use super::write::json;
use crate::error::TrainError;

/// Returns a checkpoint of YOLOv5 as one of ours, and any other as it is.
///
/// # Errors
/// When the run of YOLOv5 is finished, or the checkpoint holds only weights.
pub(super) fn as_ours(file: WeightsFile, path: &Path) -> Result<WeightsFile, TrainError> {
    let get = |name: &str| file.root.get(name).filter(|value| **value != Value::None);
    if !file.holds_module("model") {
        return Ok(file);
    }
    let written = WrittenBy::Yolov5 { epoch: get("epoch").and_then(Value::as_i64) };
    check_resumable(path, written, |name| get(name).is_some())?;
    let module = |name: &str| {
        let tensors = file.module(name).ok_or_else(|| lacks(path, name))?;
        Ok::<_, TrainError>((name.to_owned(), state_dict(tensors)))
    };
    let number = |name: &str| {
        let number = get(name).and_then(Value::as_f64).ok_or_else(|| lacks(path, name))?;
        Ok::<_, TrainError>((name.to_owned(), Value::Float(number)))
    };
    let copy = |name: &str| Some((name.to_owned(), get(name)?.clone()));
    let mut entries = vec![module("model")?, module("ema")?, number("best_fitness")?];
    entries.extend(["epoch", "updates", "optimizer"].into_iter().filter_map(copy));
    entries.push(("batches_done".to_owned(), Value::Int(0)));
    entries.push(("last_optimizer_step".to_owned(), Value::Int(-1)));
    // What describes the model is in its module there.
    let names = file.names.iter().flatten().enumerate();
    let names = names.map(|(class, name)| (Value::Int(class as i64), Value::Str(name.clone())));
    entries.push(("names".to_owned(), Value::Dict(names.collect())));
    let stride = file.stride.iter().flatten().map(|stride| Value::Float(*stride));
    entries.push(("stride".to_owned(), Value::List(stride.collect())));
    entries.extend(file.yaml.as_ref().map(|yaml| ("yaml".to_owned(), json(yaml))));
    Ok(WeightsFile { root: Value::dict(entries), ..file })
}

fn state_dict(tensors: IndexMap<String, TensorData>) -> Value {
    Value::dict(tensors.into_iter().map(|(name, tensor)| (name, Value::Tensor(tensor))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/yolov5_run.pt");

    /// The message for the checkpoint with this entry replaced.
    fn error(name: &str, value: Value) -> String {
        let mut file = torch_checkpoint::read(Path::new(PATH)).unwrap();
        let Value::Dict(entries) = &mut file.root else { panic!("no dict") };
        entries.push((Value::Str(name.to_owned()), value));
        as_ours(file, Path::new("last.pt")).unwrap_err().to_string()
    }

    #[test]
    fn what_a_run_needs_must_be_there() {
        for field in ["optimizer", "ema", "updates", "best_fitness", "epoch"] {
            assert_eq!(error(field, Value::None), format!("last.pt cannot be resumed: it has no `{field}`"));
        }
        let dict = Value::dict([("weight", Value::Int(1))]);
        assert_eq!(error("ema", dict), "last.pt cannot be resumed: it has no `ema`");
        let text = Value::Str("high".to_owned());
        assert_eq!(error("best_fitness", text), "last.pt cannot be resumed: it has no `best_fitness`");
        let finished = error("epoch", Value::Int(-1));
        assert_eq!(finished, "the run of last.pt is finished, so there is nothing to resume");
    }

    #[test]
    fn another_checkpoint_stays_as_it_is() {
        let tensor = Value::Tensor(TensorData::from_f32(vec![1], &[1.0]));
        let root = Value::dict([("model", Value::dict([("weight", tensor)]))]);
        let file = torch_checkpoint::decode(
            &torch_checkpoint::encode(&root, Path::new("a")).unwrap(),
            Path::new("a"),
        );
        let file = file.unwrap();
        assert_eq!(as_ours(file.clone(), Path::new("a")).unwrap(), file);
    }
}
