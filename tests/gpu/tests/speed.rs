//! What the stages `speed` and `original` of the kit conclude from a `yolo bench` and a Python original that are scripts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::{Duration, Instant};

use gpu_kit::gpus::GpuMonitor;
use gpu_kit::report::{self, Outcome, Report, StageReport};
use gpu_kit::session::Session;
use gpu_kit::stage::Stage;
use gpu_kit::stages;
use support::{FakeKit, a_report};

/// A `yolo bench` on a GPU: the network alone, the loader alone and training are equally fast, and batches of more than
/// 600 images do not fit. Tests replace a line of it.
const BENCH: &str = r#"
network=64 loader=64 files=64 memory=64 waits=0 without_room=never pause=0
sleep $pause
batch=$(echo "$*" | sed 's/.*--batch \([0-9]*\).*/\1/')
if [ $batch -gt 600 ] || [ -z "${*##*$without_room*}" ]; then
    echo 'error: rank 0: CUDA out of memory: 2 GB could not be allocated' >&2; exit 1
fi
list= began=$(($(date +%s) - 10))
add() { list="$list${list:+,}{\"what\":$1,\"began\":$began,\"seconds\":600,\"images_per_second\":$2$3}"; }
case "$*" in *'cache ram'*) files=$memory;; esac
case "$*" in *--training*) add '"training","workers":2,"source":"files"' $files ",\"host_waits\":$waits";; esac
case "$*" in *--synthetic*) add '"training","source":"synthetic"' $network ",\"host_waits\":$waits,\"launch_share\":0.4";; esac
case "$*" in *--loader*) add '"loader","workers":16' $loader;; esac
case "$*" in *--validation*) add '"validation"' 64;; esac
echo "{\"program\":\"0.1.0\",\"measurements\":[$list],\"limit\":\"loader\"}"
"#;

/// [`BENCH`] with other numbers, for example `waits=3`.
fn bench_with(changes: &[&str]) -> String {
    changes.iter().fold(BENCH.to_owned(), |script, change| {
        let (name, value) = change.split_once('=').unwrap();
        let begin = script.find(&format!("{name}=")).unwrap() + name.len() + 1;
        let length = script[begin..].find([' ', '\n']).unwrap();
        format!("{}{value}{}", &script[..begin], &script[begin + length..])
    })
}

/// The stage `speed` of a kit whose `yolo` is this script, on a GPU, with this time.
fn speed(script: &str, seconds: u64) -> StageReport {
    let kit = FakeKit::new(script);
    let session = kit.session_on_a_gpu();
    stages::perform(Stage::Speed, &session, Instant::now() + Duration::from_secs(seconds))
}

/// Enough for all that the stage `speed` measures: it begins nothing that might not end in time.
const ENOUGH: u64 = 900;

/// What is compared of each model, in their order.
const MODELS: [&str; 6] =
    ["yolov5n fp16", "yolov5s fp16", "yolov5m fp16", "yolov5n fp32", "yolov5s fp32", "yolov5m fp32"];

/// What is said of each of them.
const VERDICTS: [&str; 4] = [
    "what limits training is known",
    "training from memory reaches 95 % of synthetic data",
    "training from files reaches 90 % of the slower of network and loader",
    "the GPU is busy for 90 % of training from memory",
];

/// The verdicts of a model. Each must be there once.
fn verdicts(report: &StageReport, model: &str) -> [(Outcome, String); 4] {
    let (model, precision) = model.split_once(' ').unwrap();
    VERDICTS.map(|verdict| {
        let what = format!("{model}, 640 px, batch 64, {precision}: {verdict}");
        let found: Vec<_> = report.checks.iter().filter(|check| check.what == what).collect();
        assert_eq!(found.len(), 1, "{what} in {report:#?}");
        (found[0].outcome, found[0].detail.clone())
    })
}

fn outcomes(report: &StageReport, model: &str) -> [Outcome; 4] {
    verdicts(report, model).map(|(outcome, _)| outcome)
}

#[test]
fn each_model_and_precision_is_compared_with_the_network_and_the_loader() {
    use Outcome::{Failed, Passed, Skipped};
    let report = speed(BENCH, ENOUGH);
    assert_eq!(report.outcome, Passed, "{report:#?}");
    for model in MODELS {
        let details = [
            "the network",
            "100.0 %: 64 of 64 images/s",
            "100.0 %: 64 of 64 images/s of the network alone",
            "97.0 %",
        ];
        assert_eq!(verdicts(&report, model), details.map(|detail| (Passed, detail.to_owned())), "{model}");
    }
    // The report's page says what limits each.
    let page = report::page(&Report { stages: vec![report], ..a_report() });
    assert!(page.contains("- yolov5s, 640 px, batch 64, fp16: the network limits training\n"), "{page}");

    let report = speed(&bench_with(&["network=80"]), ENOUGH);
    assert_eq!(report.outcome, Failed);
    // The loader now is slower than the network, so training from files is compared with it, and the GPU may idle.
    MODELS.iter().for_each(|model| assert_eq!(outcomes(&report, model), [Passed, Failed, Passed, Skipped]));
    let report = speed(&bench_with(&["files=57", "memory=60"]), ENOUGH);
    MODELS.iter().for_each(|model| assert_eq!(outcomes(&report, model), [Passed, Failed, Failed, Passed]));
}

#[test]
fn a_gpu_that_idles_where_the_network_limits_does_not_pass() {
    let kit = FakeKit::new(BENCH);
    let with = |busy| {
        let session = kit.session_with(GpuMonitor::made_up(support::h100(), 0, busy));
        stages::perform(Stage::Speed, &session, Instant::now() + Duration::from_secs(ENOUGH))
    };
    let report = with(Some(80));
    assert_eq!(report.outcome, Outcome::Failed);
    let expected = (Outcome::Failed, "80.0 %".to_owned());
    MODELS.iter().for_each(|model| assert_eq!(verdicts(&report, model)[3], expected));
    // A MIG device does not say.
    let report = with(None);
    assert_eq!(report.outcome, Outcome::Passed);
    MODELS.iter().for_each(|model| assert_eq!(outcomes(&report, model)[3], Outcome::Skipped));
}

#[test]
fn a_step_that_waits_for_the_gpu_does_not_pass() {
    for (waits, detail) in [("0.25", "0.25 waits per step"), ("null", "not reported")] {
        let report = speed(&bench_with(&[&format!("waits={waits}")]), ENOUGH);
        assert_eq!(report.outcome, Outcome::Failed);
        let checks = report.checks.iter().filter(|check| check.what.ends_with("no step waits for the GPU"));
        let details: Vec<&str> = checks.map(|check| check.detail.as_str()).collect();
        assert!(
            details.len() > 3 * MODELS.len() && details.iter().all(|found| *found == detail),
            "{details:?}"
        );
    }
}

#[test]
fn the_largest_batch_is_found_by_trial_and_measured() {
    let report = speed(&bench_with(&["without_room=yolov5m"]), ENOUGH);
    assert_eq!(report.outcome, Outcome::Passed, "{report:#?}");
    let found = report.checks.iter().find(|check| check.what == "a batch that fits is found").unwrap();
    assert_eq!(found.detail, "576; 640 does not fit");
    let step = "yolov5n, 640 px, batch 576, fp32: training on synthetic data";
    let figure = |what: &str| {
        let found =
            report.figures.iter().find(|figure| figure.of.as_deref() == Some(step) && figure.what == what);
        found.map(|figure| (figure.value, figure.unit.as_str()))
    };
    assert_eq!(figure("speed"), Some((64.0, "images/s")));
    assert_eq!(figure("waits for the GPU"), Some((0.0, "per step")));
    assert_eq!(figure("launching"), Some((40.0, "% of the time")));
    assert_eq!(figure("GPU busy"), Some((97.0, "%")));
    let graphs = format!("{step}: what CUDA graphs would gain");
    let graphs = report.checks.iter().find(|check| check.what == graphs).unwrap();
    assert!(graphs.detail.starts_with("CUDA graphs would not pay: "), "{}", graphs.detail);
    let large = verdicts(&report, "yolov5m fp16");
    let why = "it does not fit into the memory of this GPU";
    assert_eq!(large, [(); 4].map(|()| (Outcome::Skipped, why.to_owned())));
}

#[test]
fn what_time_does_not_suffice_for_is_not_finished() {
    // A model needs 44 s, so there is time for the loader and the first ones.
    let report = speed(&bench_with(&["pause=0.5"]), 47);
    assert_eq!(report.outcome, Outcome::Unfinished, "{report:#?}");
    let why = report.why.clone().unwrap();
    assert!(why.contains("repeat it with `--only speed` and a higher --limit"), "{why}");
    let is_open = |model: &&&str| outcomes(&report, model).contains(&Outcome::Unfinished);
    let unfinished = MODELS.iter().filter(is_open).count();
    assert!((1..MODELS.len()).contains(&unfinished), "{report:#?}");
    assert_eq!(outcomes(&report, MODELS[5]), [Outcome::Unfinished; 4]);

    let report = speed(BENCH, 17);
    let outcome =
        |what: &str| report.checks.iter().find(|check| check.what == what).map(|check| check.outcome);
    let fastest = "yolov5s, 640 px, batch 64, fp16, nondeterministic is measured";
    assert_eq!(outcome(fastest), Some(Outcome::Unfinished), "{report:#?}");
    assert_eq!(outcome("yolov5n, 640 px, batch 64, fp32 is measured"), Some(Outcome::Unfinished));
    // What nobody must measure does not count.
    assert_eq!(outcome("a batch that fits is found"), Some(Outcome::Skipped));
    assert_eq!(outcome("yolov5n, 640 px, batch 16, fp32 is measured"), Some(Outcome::Skipped));
    let page = report::page(&Report { stages: vec![report], ..a_report() });
    assert!(page.starts_with("# Report of the GPU kit\n\nNot finished: speed.\n"), "{page}");
    assert!(page.contains("## What speed has not finished\n\n- yolov5"), "{page}");
}

/// A Python with an original that trains twice as fast with AMP.
const PYTHON: &str = r#"
echo "$*" | sed 's/ --data .*//' >>python
case "$*" in *'precision amp'*) rate=4;; *) rate=2;; esac
echo 'a line of a library'
echo "{\"images_per_second\":$rate,\"version\":\"7.0.14\",\"torch\":\"2.11.0\",\"numpy\":\"2.4.6\",\"opencv\":\"4.11.0\",\"workers\":1,\"deterministic\":true,\"tf32\":true}"
"#;

/// The report of a stage `original` that ran for these seconds, and its checks and figures.
fn side_by_side(session: &Session, seconds: u64) -> (StageReport, String) {
    let report = stages::perform(Stage::Original, session, Instant::now() + Duration::from_secs(seconds));
    let checks = report.checks.iter().filter(|check| check.what.contains("original"));
    let checks = checks.map(|check| format!("{:?}: {}: {}\n", check.outcome, check.what, check.detail));
    let figures = report.figures.iter().filter_map(|figure| {
        let what = format!("{}: {}", figure.of.as_deref().unwrap_or_default(), figure.what);
        what.contains("images in memory").then(|| format!("{what}: {} {}\n", figure.value, figure.unit))
    });
    let text = checks.chain(figures).collect();
    (report, text)
}

#[test]
fn the_original_is_measured_side_by_side() {
    let kit = FakeKit::new(&bench_with(&["files=16", "memory=16"]));
    kit.add_original(PYTHON);
    let session = kit.session_on_a_gpu();
    let (report, text) = side_by_side(&session, 60);
    assert_eq!(report.outcome, Outcome::Passed, "{report:#?}");
    insta::assert_snapshot!(text);
    let calls = std::fs::read_to_string(session.work.join("python")).unwrap();
    let calls: Vec<&str> = calls.lines().collect();
    assert_eq!(calls.len(), 3 * 2, "three rounds of two batch sizes, with AMP only: {calls:#?}");
    let workers = std::thread::available_parallelism().unwrap().get().min(8);
    let options = "--device 0 --imgsz 640 --batch-size 64";
    let expected = format!("measure.py {options} --workers {workers} --precision amp --seconds 4");
    assert!(calls[..3].iter().all(|call| call.ends_with(&expected)), "{calls:#?}");
}

#[test]
fn an_original_that_fails_is_quoted() {
    let kit = FakeKit::new(BENCH);
    kit.add_original("echo 'error: RuntimeError: it broke' >&2; exit 1");
    let (report, text) = side_by_side(&kit.session(), 60);
    assert_eq!(report.outcome, Outcome::Failed);
    let expected = "the original in fp32: exit status 1: error: RuntimeError: it broke";
    assert!(text.contains(expected), "{text}");
    kit.add_original("echo done");
    let (report, text) = side_by_side(&kit.session(), 60);
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(text.contains("printed no result: expected value"), "{text}");
}

#[test]
fn a_machine_that_cannot_run_the_original_is_told_why() {
    let kit = FakeKit::new(BENCH);
    let skipped = |why: &str| {
        let (report, _) = side_by_side(&kit.session(), 60);
        assert_eq!((report.outcome, report.why.as_deref()), (Outcome::Skipped, Some(why)), "{report:#?}");
    };
    skipped("the kit was packed without --original");
    kit.add_original("echo 'error: python3 is another one' >&2; exit 3");
    skipped("python3 is another one");
    std::fs::remove_file(kit.path().join("python3")).unwrap();
    skipped("there is no `python3`");
}

#[test]
fn a_comparison_without_enough_rounds_is_not_finished() {
    let kit = FakeKit::new(BENCH);
    kit.add_original("sleep 600");
    let unfinished = |seconds: u64, why: &str| {
        let (report, _) = side_by_side(&kit.session(), seconds);
        assert_eq!(report.outcome, Outcome::Unfinished, "{report:#?}");
        let check = report.checks.iter().find(|check| check.outcome == Outcome::Unfinished).unwrap();
        assert_eq!(check.what, "yolov5n, 64 px, batch 4, images in memory: at least 1 round");
        assert!(check.detail.contains(why), "{check:?}");
    };
    unfinished(10, "of the time of this stage is left, and a round takes about 9 s");
    unfinished(14, "the original in fp32 had not ended after 1");
    // On a GPU, three rounds count. Each takes about 2 s, and then too few are left for the second batch.
    kit.add_original("sleep 2; echo '{\"images_per_second\": 2}'");
    let (report, text) = side_by_side(&kit.session_on_a_gpu(), 16);
    assert_eq!(report.outcome, Outcome::Unfinished, "{report:#?}");
    let open = report.checks.iter().filter(|check| check.what.ends_with(": at least 3 rounds"));
    assert_eq!(open.map(|check| check.outcome).collect::<Vec<_>>(), [Outcome::Unfinished]);
    assert!(text.contains("batch 64, images in memory: the original with AMP: speed: 2 images/s"), "{text}");
}

#[test]
fn yolo_must_have_room_for_what_the_original_has_trained() {
    let kit = FakeKit::new(&bench_with(&["without_room=imgsz?640"]));
    kit.add_original(PYTHON);
    let (report, text) = side_by_side(&kit.session_on_a_gpu(), 60);
    assert_eq!(report.outcome, Outcome::Failed, "{report:#?}");
    assert!(text.is_empty(), "no ratio: {text}");
    assert!(report.checks.iter().any(|check| check.detail.contains("CUDA out of memory")), "{report:#?}");
}

#[test]
fn a_batch_for_which_the_original_has_no_room_is_left_out() {
    let kit = FakeKit::new(BENCH);
    let script = "case \"$*\" in *'batch-size 64'*) echo 'error: CUDA out of memory' >&2; exit 1;; esac
                  echo '{\"images_per_second\": 2}'";
    kit.add_original(script);
    let (report, text) = side_by_side(&kit.session_on_a_gpu(), 60);
    assert_eq!(report.outcome, Outcome::Passed, "{report:#?}");
    assert!(text.contains("batch 16, images in memory: rounds: 3 "), "{text}");
    let why = "batch 64 of the original does not fit into the memory of this GPU";
    assert!(report.checks.iter().any(|check| check.outcome == Outcome::Skipped && check.detail == why));
}
