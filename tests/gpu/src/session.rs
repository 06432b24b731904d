//! What all stages of a run share: the kit, the sizes, libtorch, a working folder, and how the
//! programs under test are started.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use yolo_base::env::{
    CUDA_DEVICE_ORDER, CUDA_VISIBLE_DEVICES, LD_LIBRARY_PATH, LIBTORCH, YOLO_HOME, YOLO_MIRROR, YOLO_OFFLINE,
    YOLO_TRAINER,
};

use crate::gpus::GpuMonitor;
use crate::invocation::Invocation;
use crate::kit::Kit;
use crate::libtorch::Libtorch;
use crate::processes::MARK;
use crate::scale::Scale;

/// What all stages share.
#[derive(Debug)]
pub struct Session {
    /// The kit.
    pub kit: Kit,
    /// The sizes.
    pub scale: Scale,
    /// The libtorch of all programs.
    pub libtorch: Libtorch,
    /// The GPU under test; `None` in a rehearsal.
    pub monitor: Option<Arc<GpuMonitor>>,
    /// The folder for runs and logs.
    pub work: PathBuf,
    /// Marks the processes of this run.
    pub mark: String,
    /// The number of the next log.
    pub log: Cell<usize>,
}

impl Session {
    /// `yolo`, which finds nothing but what the kit has and downloads nothing.
    pub fn yolo(&self) -> Invocation {
        self.with_environment(Invocation::new(&self.kit.program("yolo"), &self.work))
    }

    /// `yolo train` on the device under test with these options, into the run folder `NAME`.
    pub fn train(&self, name: &str, options: &str) -> Invocation {
        let device = &self.scale.device;
        self.yolo()
            .args(&format!("train --device {device} --project runs --name {name} --exist-ok --noplots"))
            .args(options)
    }

    /// The run folder of [`Self::train`].
    pub fn run_folder(&self, name: &str) -> PathBuf {
        self.work.join("runs").join(name)
    }

    /// Data set and initial weights: BCCD and `yolov5n.pt` if the kit has them, otherwise the built-in
    /// data set and random weights. A rehearsal always uses the latter, because it is small.
    pub fn data_and_weights(&self, invocation: Invocation) -> Invocation {
        match (self.kit.bccd(), self.kit.weights()) {
            (Some(data), Some(weights)) if !self.scale.rehearsal => {
                invocation.arg("--data").arg(data).arg("--weights").arg(weights)
            }
            _ => invocation.args("--data shapes --cfg yolov5n --weights="),
        }
    }

    /// The data set of `yolo bench`: BCCD if the kit has it, otherwise the built-in one.
    pub fn bench_data(&self, invocation: Invocation) -> Invocation {
        match self.kit.bccd() {
            Some(data) if !self.scale.rehearsal => invocation.arg("--data").arg(data),
            _ => invocation.args("--data shapes"),
        }
    }

    /// A script for the shell, whose `$0` is the program.
    pub fn shell(&self, script: &str, program: &Path) -> Invocation {
        let shell = Invocation::new(Path::new("/bin/sh"), &self.work).arg("-c").arg(script).arg(program);
        self.with_environment(shell)
    }

    /// A test program of a crate.
    pub fn test_program(&self, name: &str) -> Invocation {
        self.with_environment(Invocation::new(&self.kit.test_program(name), &self.work))
    }

    fn with_environment(&self, invocation: Invocation) -> Invocation {
        let mut libraries = self.libtorch.root.join("lib").into_os_string();
        if let Some(before) = std::env::var_os(LD_LIBRARY_PATH).filter(|before| !before.is_empty()) {
            libraries.push(":");
            libraries.push(before);
        }
        let invocation = invocation
            .env(YOLO_HOME, self.work.join("home"))
            .env(YOLO_OFFLINE, "1")
            .env(YOLO_MIRROR, "")
            .env(YOLO_TRAINER, self.kit.program("yolo-trainer"))
            .env(LIBTORCH, &self.libtorch.root)
            .env(LD_LIBRARY_PATH, libraries)
            // `--device` is the number that nvidia-smi shows, for the crates' tests too.
            .env(CUDA_DEVICE_ORDER, "PCI_BUS_ID")
            .env(MARK, &self.mark);
        if self.scale.rehearsal {
            // A rehearsal is the same on a machine with a GPU.
            return invocation.env(CUDA_VISIBLE_DEVICES, "");
        }
        invocation
    }

    /// Marks the daemons of this run, which no stage stops as left over.
    pub fn mark_of_daemons(&self) -> String {
        format!("{}-daemon", self.mark)
    }

    /// The path of the next log, without its extension.
    pub fn next_log(&self, stage: &str) -> PathBuf {
        let number = self.log.get() + 1;
        self.log.set(number);
        self.logs().join(format!("{number:02}-{stage}"))
    }

    /// The folder of all logs.
    pub fn logs(&self) -> PathBuf {
        self.work.join("logs")
    }

    /// Whether the file or folder exists in the working folder.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.work.join(path).exists()
    }
}
