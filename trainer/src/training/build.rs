//! The model and the learner of a training run.

use torch_checkpoint::WeightsFile;
use yolo_base::format;
use yolo_plan::model::{Load, ModelPart};
use yolo_plan::options::{Optimizer as Algorithm, Parallel};
use yolo_plan::precision::Precision;
use yolo_plan::run::TrainTask;
use yolo_plan::schedule::scaled_weight_decay;

use crate::checkpoint::Resume;
use crate::error::TrainError;
use crate::learner::{Ema, Learner, Optimizer};
use crate::loss::LossSettings;
use crate::model::{Model, Transfer};
use crate::precision::why_not_fp16;
use crate::rank::context::{Context, Devices};

/// The model of the plan with the tensors of its weights, or of the checkpoint to resume. With `--parallel model`,
/// its layers are spread over the devices of this rank.
pub(crate) fn build_model(
    context: &Context,
    task: &TrainTask,
    weights: Option<&WeightsFile>,
    resume: Option<&Resume>,
) -> Result<Model, TrainError> {
    let model = on_main_device(context, task, weights, resume)?;
    if task.parallel == Parallel::Model { spread(context, task, &model) } else { Ok(model) }
}

fn on_main_device(
    context: &Context,
    task: &TrainTask,
    weights: Option<&WeightsFile>,
    resume: Option<&Resume>,
) -> Result<Model, TrainError> {
    tch::manual_seed(task.seed as i64 + 1 + context.rank as i64);
    let classes = Some(task.data.names.len());
    if let Some(resume) = resume {
        let model = Model::from_weights(&resume.model, classes, None, context.device)?;
        expect_all(&model.transfer(&resume.model, false)?)?;
        return Ok(model);
    }
    let model = match (&task.model, weights) {
        (Some(spec), _) => Model::new(spec, context.device)?,
        (None, Some(file)) => Model::from_weights(file, classes, task.hyp.anchors, context.device)?,
        (None, None) => {
            return Err(TrainError::new("the plan has neither a model nor weights")
                .with_hint("give `--cfg yolov5n` or `--weights FILE`"));
        }
    };
    if let Some(file) = weights {
        // Anchors of a yaml or of the hyperparameters win over those of the file (spec §10).
        let skip_anchors = task.model.is_some() || task.hyp.anchors.is_some();
        let transfer = model.transfer(file, skip_anchors)?;
        if context.is_main() {
            if transfer.matched == 0 {
                context.reporter.warning(format!(
                    "the weights do not fit the model, which starts untrained: {}",
                    transfer.summary()
                ));
            } else {
                context.reporter.note(transfer.summary());
            }
        }
    }
    if context.is_main() {
        context.reporter.note(model.summary()?.to_string());
    }
    Ok(model)
}

/// The model with its layers on the devices of this rank, in proportion to their memory, and a note that says
/// which layers are where.
fn spread(context: &Context, task: &TrainTask, model: &Model) -> Result<Model, TrainError> {
    let buffers = if task.optimizer == Algorithm::Sgd { 1 } else { 2 };
    let load = Load { image_size: task.image_size, batch: task.batch, buffers };
    let Devices { all, names, memory } = &context.devices;
    let parts = model.spec().parts(&load, all.len(), memory)?;
    let described = parts.iter().zip(names).map(|(ModelPart { layers, memory }, name)| {
        let layers = match layers.len() {
            1 => format!("layer {}", layers.start),
            _ => format!("layers {} to {}", layers.start, layers.end - 1),
        };
        format!("{layers} on {name}, about {}", format::memory(*memory))
    });
    context.reporter.note(format!("the model is spread: {}", described.collect::<Vec<_>>().join("; ")));
    for ((part, name), free) in parts.iter().zip(names).zip(memory) {
        if part.memory > *free {
            context.reporter.warning(format!(
                "the layers on {name} need about {}, but only {} can be used there: if memory runs out, lower \
                 --batch or --imgsz, or add a device",
                format::memory(part.memory),
                format::memory(*free)
            ));
        }
    }
    let devices: Vec<tch::Device> =
        parts.iter().zip(all).flat_map(|(part, device)| vec![*device; part.layers.len()]).collect();
    model.spread_over(&devices)
}

fn expect_all(transfer: &Transfer) -> Result<(), TrainError> {
    if transfer.matched == transfer.total {
        return Ok(());
    }
    Err(TrainError::new(format!("the checkpoint does not fit its own model: {}", transfer.summary())))
}

/// Model, loss, optimizer and moving average, new or as the checkpoint has them.
pub(crate) fn build_learner(
    context: &Context,
    task: &TrainTask,
    model: Model,
    resume: Option<&Resume>,
) -> Result<Learner, TrainError> {
    let precision = precision(context, task, &model)?;
    let decay = scaled_weight_decay(task.hyp.weight_decay, task.nominal_batch, task.batch);
    let (lr, momentum) = (task.hyp.lr0, task.hyp.momentum);
    let mut optimizer = Optimizer::new(task.optimizer, model.state(), lr, momentum, decay)?;
    // The average starts from the weights before they are rounded (spec §6).
    let mut ema = if context.is_main() { Some(Ema::new(&model)?) } else { None };
    if let Some(resume) = resume {
        optimizer.load_state_dict(&resume.optimizer)?;
        if let Some(ema) = &mut ema {
            let averaged = resume.averaged.as_ref().ok_or_else(|| {
                TrainError::new("the checkpoint cannot be resumed: it has no averaged weights (`ema`)")
            })?;
            ema.restore(averaged, resume.updates)?;
        }
    } else {
        model.round_to_half()?;
    }
    let settings = LossSettings::of_task(task, model.strides().len());
    let group = context.group.as_ref();
    if group.is_some() {
        context.reporter.phase("sharing the first weights");
    }
    let mut learner = Learner::new(model, optimizer, ema, settings, group, task.sync_bn)?;
    if task.parallel == Parallel::Dp {
        learner = learner.with_replicas(context.devices.all.clone())?;
    }
    learner = learner.with_precision(precision)?;
    if precision.is_mixed() && context.is_main() {
        context.reporter.note(format!("mixed precision: {precision}, with weights and loss in fp32"));
    }
    if let Some(resume) = resume {
        if let Some(scaler) = resume.scaler {
            learner.restore_scaler(scaler)?;
        }
        if let Some(gradients) = &resume.gradients {
            learner.restore_gradients(gradients, resume.scaler.map_or(1.0, |scaler| scaler.scale))?;
        }
    }
    Ok(learner)
}

/// The precision of the task, or float32 if the GPU of a rank cannot compute in float16. All ranks get the same answer.
fn precision(context: &Context, task: &TrainTask, model: &Model) -> Result<Precision, TrainError> {
    if task.precision != Precision::Fp16 {
        return Ok(task.precision);
    }
    // The plan of one machine refuses it. A rank on another machine gets the task of the first.
    if !context.device.is_cuda() {
        return Err(TrainError::new("the run is in fp16, for which the CPU of this rank has no arithmetic")
            .with_hint("start runs in which a rank is on the CPU with --precision fp32 or bf16"));
    }
    context.reporter.phase("trying mixed precision");
    let found = why_not_fp16(model)?;
    let found = context.gather(found.unwrap_or_default().into_bytes())?;
    let Some(rank) = found.iter().position(|why| !why.is_empty()) else { return Ok(task.precision) };
    if context.is_main() {
        let why = String::from_utf8_lossy(&found[rank]);
        context.reporter.warning(format!(
            "the run continues in fp32, because the GPU of rank {rank} does not compute well in fp16: {why}; \
             --precision fp32 saves this check"
        ));
    }
    Ok(Precision::Fp32)
}
