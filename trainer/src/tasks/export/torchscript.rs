//! TorchScript: the operations of the network for images of one size, traced by libtorch, with its tensors as
//! constants. `torch.jit.load` opens it in Python, and `CModule` in tch. As in YOLOv5's exports, the file `config.txt`
//! in it has the class names, the largest stride and the shape of the input.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;

use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::{Map, json};
use tch::{CModule, Tensor, no_grad};
use torch_checkpoint::Replacement;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::compare::{Difference, compare};
use super::source::Source;
use crate::error::TrainError;
use crate::model::Model;

/// The folder in the archive, which libtorch calls after the file.
const FOLDER: &str = "detector";

/// Traces and writes the network. In `folder`, the file of libtorch has a name, which is part of its content.
///
/// # Errors
/// When it cannot be written, or differs from the network.
pub(super) fn write(source: &Source, folder: &Path, file: &Replacement) -> Result<Difference, TrainError> {
    let (network, input) = (source.network()?, source.input()?);
    let module = trace(&network, &input)?;
    file.write(&saved(&module, folder, &config(source))?)?;
    let written = CModule::load_on_device(file.path(), network.device())?;
    let outputs = no_grad(|| written.forward_ts(&[&input]))?;
    compare(&Source::outputs(&network, &input)?, &outputs, source.computes_half)
}

/// The bytes of the file of a module, with this `config.txt`. libtorch ends the process when it cannot write to a disk, so it
/// writes to memory.
fn saved(module: &CModule, folder: &Path, config: &str) -> Result<Vec<u8>, TrainError> {
    let failed = |error: zip::result::ZipError| TrainError::new(format!("the archive of libtorch: {error}"));
    let mut memory =
        File::from(memfd_create("torchscript", MemfdFlags::CLOEXEC).map_err(std::io::Error::from)?);
    let name = folder.join(format!("{FOLDER}.torchscript"));
    std::os::unix::fs::symlink(format!("/proc/self/fd/{}", memory.as_raw_fd()), &name)?;
    module.save(&name)?;
    add_config(memory.try_clone()?, config).map_err(failed)?;
    let mut bytes = Vec::new();
    memory.rewind()?;
    memory.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The operations of the network for images of this size.
fn trace(network: &Model, input: &Tensor) -> Result<CModule, TrainError> {
    let (_, _, height, width) = input.size4()?;
    let grids = network.grids(height, width)?;
    let mut failed = None;
    let mut pass = |inputs: &[Tensor]| match network.forward_on_grids(&inputs[0], &grids) {
        Ok(outputs) => vec![outputs],
        Err(error) => {
            failed = Some(error);
            Vec::new()
        }
    };
    let input = [input.shallow_clone()];
    let module = no_grad(|| CModule::create_by_tracing("Detector", "forward", &input, &mut pass));
    match failed {
        Some(error) => Err(error),
        None => Ok(module?),
    }
}

/// What YOLOv5 reads from `config.txt`.
fn config(source: &Source) -> String {
    let names: Map<String, serde_json::Value> =
        source.names.iter().enumerate().map(|(class, name)| (class.to_string(), json!(name))).collect();
    let stride = source.model.largest_stride();
    json!({ "shape": source.images.size(), "stride": stride, "names": names }).to_string()
}

/// Adds `config.txt` to an archive, without touching what libtorch has written.
fn add_config(archive: File, text: &str) -> Result<(), zip::result::ZipError> {
    let mut archive = ZipWriter::new_append(archive)?;
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    archive.start_file(format!("{FOLDER}/extra/config.txt"), stored)?;
    archive.write_all(text.as_bytes())?;
    archive.finish()?;
    Ok(())
}
