//! Memory: a batch that does not fit ends in one message and leaves nothing behind, `--batch -1` chooses one that
//! fits, and how much memory each batch size takes.

use yolo_base::format::memory;

use super::bench;
use crate::gpus::{Sampler, peak_memory};
use crate::invocation::{Ended, Invocation};
use crate::session::Session;
use crate::stage_run::{StageRun, Stop};

/// What a GPU may hold after the run besides what it held before: another program's change.
const SLACK: u64 = 256 << 20;
/// The batch sizes whose memory is measured on a GPU.
const BATCHES: [u32; 4] = [16, 32, 64, 128];
/// Address space of the trainer in a rehearsal, in KiB: enough to start, too little for the batch.
const ADDRESS_SPACE: u64 = 12 << 20;

pub(super) fn run(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    too_large(stage)?;
    automatic(stage)?;
    by_batch(stage)
}

fn too_large(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    let session = stage.session;
    let before = session.monitor.as_ref().map(|monitor| (monitor, monitor.memory_in_use()));
    let invocation = match session.scale.rehearsal {
        false => on_the_gpu(session),
        true => limited(stage),
    };
    let ended = stage.run(invocation)?;
    says_what_to_lower(stage, &ended);
    stage.check_nothing_left("a batch that does not fit");
    if let Some((monitor, before)) = before {
        let (is_free, detail) = match (before, monitor.memory_in_use()) {
            (Ok(before), Ok(after)) => {
                (after <= before + SLACK, format!("{} before, {} after", memory(before), memory(after)))
            }
            (Err(error), _) | (_, Err(error)) => (false, format!("the driver does not report it: {error}")),
        };
        stage.check("the GPU's memory is free again", is_free, detail);
    }
    Ok(())
}

/// A large model with a batch that fits into no memory of this size. The preflight checks would refuse it before the GPU
/// does.
fn on_the_gpu(session: &Session) -> Invocation {
    let memory = session.monitor.as_ref().and_then(|monitor| monitor.memory().ok());
    let batch = batch_that_does_not_fit(memory);
    let options = format!("--cfg yolov5x --weights= --imgsz 1280 --batch {batch} --epochs 1 --no-preflight");
    session.bench_data(session.train("too-large", &options))
}

/// The number of images that should need several times this memory: one per GB, and an image of 1280 pixels should take
/// about 4 GB in the training of yolov5x in fp16 (estimated, not measured). A batch of a fixed size would fit into the next
/// GPU. BCCD has no more than 205 images.
fn batch_that_does_not_fit(memory: Option<u64>) -> u64 {
    memory.map_or(192, |bytes| bytes.div_ceil(1_000_000_000).clamp(16, 192))
}

/// The rehearsal: the same on the CPU, with a limit on the address space.
fn limited(stage: &StageRun<'_>) -> Invocation {
    let session = stage.session;
    let yolo = session.kit.program("yolo");
    let script = format!(
        "ulimit -v {ADDRESS_SPACE} && exec \"$0\" train --device cpu --project runs --name too-large --exist-ok \
         --noplots --no-preflight --data shapes --cfg yolov5x --weights= --imgsz 640 --batch 64 --epochs 1"
    );
    session.shell(&script, &yolo)
}

fn says_what_to_lower(stage: &mut StageRun<'_>, ended: &Ended) {
    let message = ended.message();
    let is_right = ended.code() == Some(1)
        && message.contains("out of memory")
        && message.contains("--batch")
        && message.matches("error: ").count() == 1;
    if !is_right {
        stage.lines.extend(ended.last_lines(12));
    }
    let found = if message.is_empty() { ended.how() } else { message };
    stage.check("a batch that does not fit ends in one message that says what to lower", is_right, found);
}

/// The measured batch trains an epoch without running out of memory.
fn automatic(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    let session = stage.session;
    // Without a GPU nothing is measured, and the batch is 16: an epoch of it at 640 px would take a slow CPU minutes.
    let size = session.scale.of(640, 64);
    let options = format!("--imgsz {size} --batch -1 --epochs 1 --noval --noplots");
    let ended = stage.run(session.data_and_weights(session.train("automatic-batch", &options)))?;
    let chosen = ended.stderr.lines().rfind(|line| line.contains("images per step"));
    let chosen = chosen.unwrap_or("no batch was named").to_owned();
    if stage.check_success("--batch -1 chooses a batch that fits", &ended) {
        stage.check("--batch -1 names the batch", chosen.starts_with("--batch -1: "), chosen);
    }
    Ok(())
}

fn by_batch(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    let session = stage.session;
    let Some(monitor) = session.monitor.clone() else {
        stage.skip("memory by batch size", "there is no GPU in a rehearsal");
        return Ok(());
    };
    for batch in BATCHES {
        let sampler = Sampler::start(std::sync::Arc::clone(&monitor));
        let ended = stage.run(bench::invocation(
            session,
            "yolov5n",
            640,
            batch,
            2,
            "--synthetic --precision fp32",
        ))?;
        let samples = sampler.finish();
        if batch > BATCHES[0] && bench::ran_out_of_memory(&ended) {
            stage.skip(format!("memory of batch {batch} and larger"), "it does not fit into this GPU");
            break;
        }
        if !stage.check_success(format!("a step of batch {batch} fits"), &ended) {
            break;
        }
        let peak = peak_memory(&samples);
        let detail = peak.map_or_else(|| "the driver does not report it".to_owned(), memory);
        stage.check(format!("the memory of batch {batch} is measured"), peak.is_some(), detail);
        if let Some(peak) = peak {
            stage.figure(format!("yolov5n, 640 px, batch {batch}, fp32"), peak as f64 / 1e9, "GB");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batch_that_does_not_fit_grows_with_the_gpu() {
        let (h100, h200) = (85_520_809_984, 150_754_820_096);
        assert_eq!([h100, h200].map(|memory| batch_that_does_not_fit(Some(memory))), [86, 151]);
        // A GPU whose size is unknown, a small one, and one that does not exist yet.
        assert_eq!([None, Some(8 << 30), Some(1 << 40)].map(batch_that_does_not_fit), [192, 16, 192]);
    }
}
