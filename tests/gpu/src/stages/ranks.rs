//! Several ranks: two that share one GPU over gloo and over NCCL, without and with MPS, and one over NCCL; then a
//! single rank that has the GPU twice, with replicas of the model and with its layers spread. Each is compared
//! with the same ranks on the CPU, and a rank is killed in the middle of each. A combination that `yolo`
//! refuses is reported as not built yet, with its reason.

use std::path::PathBuf;

use super::interrupted::{Cause, interrupt, resume_with};
use super::mps::{self, PrivateDaemon};
use crate::invocation::{Ended, Invocation};
use crate::results::{self, Row};
use crate::session::Session;
use crate::stage_run::{StageRun, Stop};

/// How far the losses of ranks on a GPU may differ from those of the same ranks on the CPU.
const TOLERANCE: f64 = 0.05;

/// The run folder of two ranks that share a GPU over NCCL.
const TWO_OVER_NCCL: &str = "two-nccl";

/// What that run shows.
const SHOWS_TWO_OVER_NCCL: &str = "two ranks over NCCL on one GPU";

/// Which training on the CPU a case is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Like {
    /// One rank. Spread layers compute the same.
    One,
    /// Two ranks.
    Two,
    /// Two replicas in one process.
    Replicas,
}

impl Like {
    /// The name of its run, what it is, and its options.
    fn on_the_cpu(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::One => ("1-on-the-cpu", "1 rank over gloo", "--device cpu --nproc-per-node 1"),
            Self::Two => ("2-on-the-cpu", "2 ranks over gloo", "--device cpu --nproc-per-node 2"),
            Self::Replicas => ("replicas-on-the-cpu", "2 replicas", "--device cpu,cpu --parallel dp"),
        }
    }
}

/// Ranks, and what connects them.
struct Case {
    name: &'static str,
    what: &'static str,
    /// The options that choose devices and backend.
    options: String,
    like: Like,
    /// The libnccl to use instead of the one of libtorch.
    nccl: Option<PathBuf>,
    /// Variables for the ranks.
    environment: Vec<(&'static str, PathBuf)>,
}

impl Case {
    fn train(&self, session: &Session, name: &str, epochs: usize) -> Invocation {
        let invocation = self.in_environment(train(session, name, &self.options, epochs));
        match &self.nccl {
            Some(nccl) => invocation.arg("--nccl").arg(nccl),
            None => invocation,
        }
    }

    fn in_environment(&self, invocation: Invocation) -> Invocation {
        self.environment.iter().fold(invocation, |invocation, (name, value)| invocation.env(name, value))
    }
}

pub(super) fn run(stage: &mut StageRun<'_>) -> Result<(), Stop> {
    let session = stage.session;
    let one = reference(stage, Like::One)?;
    let two = reference(stage, Like::Two)?;
    let mut are_built = false;
    if !session.scale.rehearsal && session.kit.nccl().is_none() {
        stage.skip(SHOWS_TWO_OVER_NCCL, "it needs NCCL 2.30, which is in the second archive");
    }
    for case in cases(session) {
        let expected = match case.like {
            Like::One => &one,
            Like::Two => &two,
            Like::Replicas => &reference(stage, Like::Replicas)?,
        };
        let is_built = train_and_kill(stage, &case, expected)?;
        are_built |= is_built;
        if is_built && case.name == TWO_OVER_NCCL {
            with_mps(stage, case, &two)?;
        }
    }
    // The references on the CPU prove nothing about the device.
    match are_built {
        true => Ok(()),
        false => Err(Stop::NotBuilt("`yolo` refuses every combination of ranks on this device".to_owned())),
    }
}

/// Trains, compares the result, and kills a rank. `false`: `yolo` refuses these options.
fn train_and_kill(stage: &mut StageRun<'_>, case: &Case, expected: &[Row]) -> Result<bool, Stop> {
    let session = stage.session;
    let ended = stage.run(case.train(session, case.name, 1))?;
    if let Some(why) = refusal(&ended) {
        stage.not_built(case.what, why);
        return Ok(false);
    }
    if !stage.check_success(case.what, &ended) {
        return Ok(true);
    }
    let rows = results::of_run(&session.run_folder(case.name));
    let difference = results::difference(expected, &rows);
    let allowed = session.scale.of(TOLERANCE, 0.0);
    stage.check(
        format!("{}: the result is that of the same ranks on the CPU", case.what),
        difference <= allowed,
        results::compared(difference, allowed),
    );
    killed(stage, case)?;
    Ok(true)
}

/// The same case once more, with a private MPS daemon.
fn with_mps(stage: &mut StageRun<'_>, case: Case, expected: &[Row]) -> Result<(), Stop> {
    let what = "two ranks over NCCL on one GPU with MPS";
    let Ok(program) = which::which(mps::PROGRAM) else {
        stage.skip(what, format!("{} is not installed", mps::PROGRAM));
        return Ok(());
    };
    let (folder, mark) = (stage.session.work.join("mps"), stage.session.mark_of_daemons());
    let daemon = match PrivateDaemon::start(&program, &folder, &mark) {
        Ok(daemon) => daemon,
        Err(error) => {
            stage.skip(what, format!("the MPS daemon cannot be started: {error}"));
            return Ok(());
        }
    };
    let environment = daemon.environment().map(|(name, folder)| (name, folder.to_owned())).to_vec();
    let case = Case { name: "two-nccl-mps", what, environment, ..case };
    train_and_kill(stage, &case, expected).map(|_is_built| ())
}

fn cases(session: &Session) -> Vec<Case> {
    if session.scale.rehearsal {
        let options = "--device cpu --nproc-per-node 2".to_owned();
        return vec![Case {
            name: "two-gloo",
            what: "two ranks over gloo",
            options,
            like: Like::Two,
            nccl: None,
            environment: Vec::new(),
        }];
    }
    let device = &session.scale.device;
    // `uses` is how often the run has the GPU.
    let case = |name, what, like, uses: usize, options: &str| {
        let devices = vec![device.as_str(); uses].join(",");
        Case {
            name,
            what,
            options: format!("--device {devices} {options}"),
            like,
            nccl: None,
            environment: Vec::new(),
        }
    };
    let mut cases = vec![
        case("two-gloo", "two ranks over gloo on one GPU", Like::Two, 2, "--backend gloo"),
        case("one-nccl", "one rank over NCCL", Like::One, 1, "--backend nccl"),
    ];
    // Two ranks can share a GPU with NCCL 2.30 and later only, which is in the second archive.
    if let Some(nccl) = session.kit.nccl() {
        let two = case(TWO_OVER_NCCL, SHOWS_TWO_OVER_NCCL, Like::Two, 2, "--backend nccl");
        cases.push(Case { nccl: Some(nccl), ..two });
    }
    cases.push(case(
        "replicas",
        "two replicas on one GPU in one process",
        Like::Replicas,
        2,
        "--parallel dp",
    ));
    cases.push(case("spread", "layers spread over one GPU twice", Like::One, 2, "--parallel model"));
    cases
}

/// A short training with these devices.
fn train(session: &Session, name: &str, devices: &str, epochs: usize) -> Invocation {
    let size = session.scale.of("--imgsz 320 --batch 16", "--imgsz 64 --batch 16");
    let invocation = session.yolo().args(&format!(
        "train --project runs --name {name} --exist-ok --noplots --epochs {epochs} {size} {devices}"
    ));
    session.data_and_weights(invocation)
}

/// The same on the CPU.
fn reference(stage: &mut StageRun<'_>, like: Like) -> Result<Vec<Row>, Stop> {
    let (name, what, devices) = like.on_the_cpu();
    let ended = stage.run(train(stage.session, name, devices, 1))?;
    stage.require_success(&format!("the reference: {what} on the CPU"), &ended)?;
    Ok(results::of_run(&stage.session.run_folder(name)))
}

/// Why `yolo` refuses these options: exit status 2 is an invalid command line.
fn refusal(ended: &Ended) -> Option<String> {
    (ended.code() == Some(2)).then(|| ended.message())
}

/// A rank is killed in the middle, named, and the run continues.
fn killed(stage: &mut StageRun<'_>, case: &Case) -> Result<(), Stop> {
    let name = format!("{}-killed", case.name);
    let invocation = case.train(stage.session, &name, 3);
    if interrupt(stage, invocation, &name, 1, Cause::KilledRank)? {
        let ended = resume_with(stage, &name, |invocation| case.in_environment(invocation))?;
        stage.check_success(format!("{}: the run continues after a rank was killed", case.what), &ended);
    }
    Ok(())
}
