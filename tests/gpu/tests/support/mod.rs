//! A kit whose `yolo` is a shell script, and a report with every kind of result.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gpu_kit::gpus::{Gpu, GpuMonitor};
use gpu_kit::kit::{Kit, Manifest};
use gpu_kit::libtorch::Libtorch;
use gpu_kit::machine::Machine;
use gpu_kit::report::{Check, Figure, Outcome, Report, StageReport, VERSION};
use gpu_kit::scale::Scale;
use gpu_kit::session::Session;
use gpu_kit::stage::Stage;

/// An unpacked kit with programs that are shell scripts.
pub struct FakeKit {
    folder: tempfile::TempDir,
}

impl FakeKit {
    /// A kit whose `yolo` is this script.
    pub fn new(yolo: &str) -> Self {
        let kit = Self { folder: tempfile::tempdir().unwrap() };
        let root = kit.path();
        for folder in ["bin", "tests", "libtorch/lib"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        kit.write_program("bin/yolo", yolo);
        kit.write_program("bin/yolo-trainer", "exit 1");
        kit.write_program("tests/tch-train", "exit 1");
        kit.write_program("tests/yolo-trainer", "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'");
        let copied =
            Command::new("cp").arg(env!("CARGO_BIN_EXE_gpu-kit")).arg(root.join("bin/gpu-kit")).status();
        assert!(copied.unwrap().success());
        std::fs::write(root.join("manifest.json"), serde_json::to_string(&manifest()).unwrap()).unwrap();
        std::fs::write(root.join("libtorch/build-version"), "2.11.0+cpu").unwrap();
        std::fs::write(root.join("libtorch/lib/libtorch_cpu.so"), "").unwrap();
        kit
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A folder that looks like libtorch.
    pub fn libtorch(&self) -> PathBuf {
        self.path().join("libtorch")
    }

    /// Writes a shell script as one of its programs.
    ///
    /// Another process writes it. If this one did, a process that another test starts at that moment could
    /// inherit the open file, and nothing can execute a file that is open for writing.
    pub fn write_program(&self, name: &str, script: &str) {
        let path = self.path().join(name);
        let written = Command::new("sh")
            .args(["-c", "printf '#!/bin/sh\\n%s\\n' \"$0\" >\"$1\" && chmod 755 \"$1\"", script])
            .arg(&path)
            .status();
        assert!(written.unwrap().success());
    }

    /// Adds the third archive, for a Python that is this shell script.
    pub fn add_original(&self, python: &str) {
        std::fs::create_dir_all(self.path().join("original/site")).unwrap();
        std::fs::write(self.path().join("original/measure.py"), "").unwrap();
        self.write_program("python3", python);
    }

    /// A rehearsal with this kit, in a working folder of its own.
    pub fn session(&self) -> Session {
        self.session_of(true)
    }

    /// What the kit does on a machine with a GPU that is busy for 97 % of the time.
    pub fn session_on_a_gpu(&self) -> Session {
        self.session_with(GpuMonitor::made_up(h100(), 1 << 30, Some(97)))
    }

    /// As [`Self::session_on_a_gpu`], with a GPU that is watched by this.
    pub fn session_with(&self, monitor: GpuMonitor) -> Session {
        Session { monitor: Some(Arc::new(monitor)), ..self.session_of(false) }
    }

    fn session_of(&self, is_rehearsal: bool) -> Session {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let kit = Kit::open(self.path()).unwrap();
        let work = self.path().join(format!("work-{number}"));
        for folder in ["logs", "tmp"] {
            std::fs::create_dir_all(work.join(folder)).unwrap();
        }
        Session {
            scale: Scale::new(&kit, 0, is_rehearsal, false),
            kit,
            libtorch: Libtorch { root: self.libtorch(), version: "2.11.0+cpu".to_owned() },
            python: self.path().join("python3"),
            monitor: None,
            work,
            mark: format!("test-{}-{number}", std::process::id()),
            log: Cell::new(0),
        }
    }
}

/// A GPU.
pub fn h100() -> Gpu {
    Gpu { index: 0, name: "NVIDIA H100 80GB HBM3".to_owned(), memory: 80 << 30, capability: "9.0".to_owned() }
}

fn manifest() -> Manifest {
    Manifest {
        version: 1,
        program: "0.1.0".to_owned(),
        commit: "abc1234".to_owned(),
        built: "2026-11-22".to_owned(),
        tests: vec!["tch-train".to_owned()],
        data: false,
        weights: false,
    }
}

/// A report of a GPU with a stage that passed and one that failed.
pub fn a_report() -> Report {
    let check = |what: &str, outcome, detail: &str| Check {
        what: what.to_owned(),
        outcome,
        detail: detail.to_owned(),
    };
    let figure = |of: Option<&str>, what: &str, value, unit: &str| Figure {
        of: of.map(str::to_owned),
        what: what.to_owned(),
        value,
        unit: unit.to_owned(),
    };
    let (files, loader) = (Some("yolov5n, batch 16: training from files"), Some("yolov5n: loader alone"));
    let passed = StageReport {
        stage: Stage::Train,
        outcome: Outcome::Passed,
        why: None,
        seconds: 61.5,
        checks: vec![check("mAP50 reaches its bar", Outcome::Passed, "mAP50 0.904 of at least 0.88")],
        figures: vec![figure(None, "mAP50", 0.904, ""), figure(None, "50 epochs", 61.04, "s")],
        lines: Vec::new(),
    };
    let speed = StageReport {
        stage: Stage::Speed,
        checks: vec![
            check("yolov5n, batch 16: what limits training is known", Outcome::Passed, "the network"),
            check("mixed precision", Outcome::NotBuilt, "this `yolo` has no mixed precision"),
            check("yolov5m, batch 64 is measured", Outcome::Unfinished, "the time is almost over"),
        ],
        figures: vec![
            figure(files, "speed", 812.4, "images/s"),
            figure(files, "GPU busy", 71.25, "%"),
            figure(files, "forward", 31.0, "% of the time"),
            figure(files, "backward", 52.5, "% of the time"),
            figure(loader, "speed", 1024.0, "images/s"),
        ],
        ..passed.clone()
    };
    let ranks = StageReport {
        stage: Stage::Ranks,
        outcome: Outcome::Unfinished,
        why: Some("the 570 s of --limit were over".to_owned()),
        checks: Vec::new(),
        figures: Vec::new(),
        ..passed.clone()
    };
    let failed = StageReport {
        stage: Stage::Memory,
        outcome: Outcome::TimedOut,
        why: Some("the stage ran out of time during `yolo train --batch 192`".to_owned()),
        seconds: 75.0,
        checks: vec![check("no process is left after the stage", Outcome::Failed, "1 still ran | and more")],
        figures: Vec::new(),
        lines: vec!["error: rank 0 hung".to_owned(), "hint: look at its log".to_owned()],
    };
    Report {
        version: VERSION,
        kit: manifest(),
        date: "2026-11-22T16:05:00Z".to_owned(),
        rehearsal: false,
        machine: Machine {
            system: "Linux (Ubuntu 24.04)".to_owned(),
            kernel: "6.8.0".to_owned(),
            cpu: "AMD EPYC 9554".to_owned(),
            cores: 16,
            memory: 128 << 30,
            gpus: vec![h100()],
            driver: Some("580.95.05".to_owned()),
            libtorch: "2.11.0+cu130".to_owned(),
        },
        stages: vec![passed, failed, speed, ranks],
    }
}

/// Writes a report without redaction.
pub fn write(report: &Report, path: &Path) {
    std::fs::write(path, serde_json::to_string(report).unwrap()).unwrap();
}
