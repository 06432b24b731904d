//! What all stages of a run share: the kit, the sizes, libtorch, a working folder, and how the
//! programs under test are started.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use yolo_base::env::{
    CUDA_DEVICE_ORDER, CUDA_VISIBLE_DEVICES, LD_LIBRARY_PATH, LIBTORCH, TMPDIR, YOLO_HOME, YOLO_MIRROR,
    YOLO_OFFLINE, YOLO_TRAINER,
};

use crate::gpus::GpuMonitor;
use crate::invocation::Invocation;
use crate::kit::Kit;
use crate::libtorch::Libtorch;
use crate::processes::MARK;
use crate::scale::Scale;

/// Folders in which Python looks for packages first.
const PYTHONPATH: &str = "PYTHONPATH";
/// The folder in which Python keeps compiled code, instead of one next to each package.
const PYTHONPYCACHEPREFIX: &str = "PYTHONPYCACHEPREFIX";

/// The folder for temporary files of the programs, in the working folder.
pub const TEMPORARY: &str = "tmp";

/// What all stages share.
#[derive(Debug)]
pub struct Session {
    /// The kit.
    pub kit: Kit,
    /// The sizes.
    pub scale: Scale,
    /// The libtorch of all programs.
    pub libtorch: Libtorch,
    /// The Python whose PyTorch runs the original: a name that is looked up in `PATH`, or a file.
    pub python: PathBuf,
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

    /// The file of the data set of [`Self::bench_data`]. The built-in one exists once `yolo` has used it.
    pub fn data_file(&self) -> PathBuf {
        match self.kit.bccd() {
            Some(data) if !self.scale.rehearsal => data,
            _ => self.home().join("data/datasets/shapes/shapes.yaml"),
        }
    }

    /// Python with the packages of this folder before its own. It finds the libraries of its PyTorch by
    /// itself.
    pub fn python(&self, packages: &Path) -> Invocation {
        let mut path = packages.as_os_str().to_owned();
        if let Some(before) = std::env::var_os(PYTHONPATH).filter(|before| !before.is_empty()) {
            path.push(":");
            path.push(before);
        }
        let python = Invocation::new(&self.python, &self.work)
            .env(PYTHONPATH, path)
            .env(PYTHONPYCACHEPREFIX, self.work.join("pycache"));
        self.on_the_device(python)
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
            .env(YOLO_HOME, self.home())
            .env(TMPDIR, self.work.join(TEMPORARY))
            .env(YOLO_OFFLINE, "1")
            .env(YOLO_MIRROR, "")
            .env(YOLO_TRAINER, self.kit.program("yolo-trainer"))
            .env(LIBTORCH, &self.libtorch.root)
            .env(LD_LIBRARY_PATH, libraries);
        self.on_the_device(invocation)
    }

    /// Marked as a program of this run, and with the GPUs in the order of nvidia-smi, whose numbers
    /// `--device` has, for the crates' tests too.
    fn on_the_device(&self, invocation: Invocation) -> Invocation {
        let invocation = invocation.env(CUDA_DEVICE_ORDER, "PCI_BUS_ID").env(MARK, &self.mark);
        if self.scale.rehearsal {
            // A rehearsal is the same on a machine with a GPU.
            return invocation.env(CUDA_VISIBLE_DEVICES, "");
        }
        invocation
    }

    /// Where `yolo` installs something.
    fn home(&self) -> PathBuf {
        self.work.join("home")
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
