//! Every event is one line of JSON that reads back as the same event.

use proptest::prelude::*;
use yolo_plan::bench_report::{LoaderStages, Measurement, Rate, Source, StepPhases, Together, ValPhases};
use yolo_plan::dataset::SplitSummary;
use yolo_plan::event::{
    CocoScores, EpochSummary, Event, Metrics, OutputFile, Progress, Stage, Step, ValRow, ValTable,
};

fn metrics() -> impl Strategy<Value = Metrics> {
    (0.0..1.0, 0.0..1.0, 0.0..1.0, 0.0..1.0).prop_map(|(precision, recall, map50, map50_95)| Metrics {
        precision,
        recall,
        map50,
        map50_95,
    })
}

fn measurement() -> impl Strategy<Value = Measurement> {
    let rate = || (any::<u32>(), 0.0..1e6).prop_map(|(images, seconds)| Rate::new(images as usize, seconds));
    prop_oneof![
        (rate(), any::<bool>(), prop::option::of(any::<usize>()), 0.0..1.0, prop::option::of(0.0..1e3))
            .prop_map(|(rate, synthetic, workers, wait, host_waits)| Measurement::Training {
                source: if synthetic { Source::Synthetic } else { Source::Files },
                workers,
                rate,
                phases: StepPhases { wait, forward: 1.0 - wait, ..StepPhases::default() },
                host_waits,
                launch_share: host_waits.map(|waits| waits / 1e3),
            }),
        (rate(), any::<usize>(), prop::option::of(prop::array::uniform3(0.0..9.0))).prop_map(
            |(rate, workers, parts)| Measurement::Loader {
                workers,
                rate,
                stages: parts.map(|parts| LoaderStages::new(parts, 2, 10.0)),
            }
        ),
        (rate(), 0.0..1.0).prop_map(|(rate, nms)| Measurement::Validation {
            rate,
            phases: ValPhases { preprocess: 0.0, inference: 1.0 - nms, nms },
        }),
        (prop::collection::vec(rate(), 0..4), any::<[usize; 2]>(), any::<[u64; 2]>()).prop_map(
            |(rates, [training_images, validation_images], memory)| {
                Measurement::Together(Together {
                    training: rates.clone(),
                    training_images,
                    validation: rates,
                    validation_images,
                    memory: memory.to_vec(),
                })
            }
        ),
    ]
}

fn progress() -> impl Strategy<Value = Progress> {
    let stage = prop::sample::select(Stage::ALL.to_vec());
    (any::<[u64; 2]>(), any::<[u16; 3]>(), stage, prop::array::uniform3(0.0..1e6)).prop_map(
        |([steps, images], [epoch, batch, batches], stage, seconds)| Progress {
            epoch: epoch.into(),
            batch: batch.into(),
            batches: batches.into(),
            steps,
            images,
            stage,
            seconds,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let text = || "\\PC*|.*\n.*";
    prop_oneof![
        (any::<u32>(), text(), any::<usize>(), any::<u32>(), text(), any::<usize>()).prop_map(
            |(protocol, version, rank, pid, device, threads)| Event::Hello {
                protocol,
                version,
                rank,
                pid,
                device,
                threads
            }
        ),
        prop::option::of(progress()).prop_map(|progress| Event::Alive { progress }),
        (text(), any::<bool>()).prop_map(|(doing, steps)| Event::Phase { doing, steps }),
        text().prop_map(|message| Event::Warning { message }),
        text().prop_map(|message| Event::Note { message }),
        (any::<[usize; 4]>(), prop::array::uniform3(-1e6f32..1e6), 0.0..1e9, any::<u64>()).prop_map(
            |([epoch, epochs, batch, batches], losses, images_per_second, memory)| Event::Step(Step {
                epoch,
                epochs,
                batch,
                batches,
                losses,
                images_per_second,
                image_size: 640,
                memory,
                instances: batch / 2,
            })
        ),
        (prop::array::uniform3(-1e9..1e9), prop::option::of(metrics()), any::<bool>()).prop_map(
            |(losses, metrics, best)| Event::Epoch(EpochSummary {
                epoch: 1,
                epochs: 2,
                train_losses: losses,
                val_losses: metrics.map(|_| losses),
                metrics,
                lr: losses,
                seconds: losses[0].abs(),
                best,
            })
        ),
        (text(), prop::collection::vec((text(), metrics()), 0..4)).prop_map(|(title, rows)| {
            Event::Validated {
                title,
                table: ValTable {
                    rows: rows
                        .into_iter()
                        .map(|(class, metrics)| ValRow { class, images: 3, instances: 4, metrics })
                        .collect(),
                    speed_ms: [0.5, 1.25, 2.0],
                    images: 7,
                },
            }
        }),
        (text(), prop::array::uniform12(prop::option::of(0.0..1.0)))
            .prop_map(|(title, scores)| Event::CocoEvaluated { title, scores: CocoScores(scores) }),
        (text(), any::<[usize; 2]>(), any::<u64>()).prop_map(
            |(split, [images, objects], hash)| Event::Split(SplitSummary { split, images, objects, hash })
        ),
        measurement().prop_map(|measurement| Event::BenchMeasured { measurement }),
        (text(), any::<usize>(), any::<bool>()).prop_map(|(what, epochs, stopped_early)| Event::Finished {
            files: vec![OutputFile { path: what.clone().into(), what }],
            epochs,
            seconds: 1.5,
            stopped_early,
        }),
        text().prop_map(|what| Event::Kept { files: vec![OutputFile { path: what.clone().into(), what }] }),
        prop::option::of(text()).prop_map(|path| Event::Interrupted { resume_from: path.map(Into::into) }),
        (text(), prop::option::of(text()), text(), any::<bool>(), any::<bool>()).prop_map(
            |(message, hint, doing, peer_lost, of_data)| Event::Failed {
                message,
                hint,
                doing,
                peer_lost,
                of_data,
                progress: None
            }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_event_is_one_line_and_reads_back(event in event()) {
        let line = serde_json::to_string(&event).unwrap();
        prop_assert!(!line.contains('\n'), "{line}");
        prop_assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }
}

#[test]
fn unknown_fields_are_ignored_and_unknown_events_are_not() {
    let line = r#"{"event":"phase","doing":"training","since":"later versions"}"#;
    assert_eq!(
        serde_json::from_str::<Event>(line).unwrap(),
        Event::Phase { doing: "training".into(), steps: false }
    );
    assert!(serde_json::from_str::<Event>(r#"{"event":"song"}"#).is_err());
}

#[test]
fn a_loss_that_is_not_a_number_still_arrives() {
    let step = Step {
        epoch: 1,
        epochs: 2,
        batch: 3,
        batches: 4,
        losses: [f32::NAN, f32::INFINITY, 0.5],
        images_per_second: 1.0,
        image_size: 64,
        memory: 5,
        instances: 6,
    };
    let line = serde_json::to_string(&Event::Step(step)).unwrap();
    let Event::Step(read) = serde_json::from_str(&line).unwrap() else { panic!("{line}") };
    assert!(read.losses[0].is_nan() && read.losses[1].is_nan());
    assert_eq!(read.losses[2], 0.5);
}
