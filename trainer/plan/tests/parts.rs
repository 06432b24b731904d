//! Plans that hold a part of a run's ranks: those of one machine of several, or one rank that another
//! launcher starts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;

use yolo_base::Hint as _;
use yolo_plan::backend::Backend;
use yolo_plan::options::TrainOptions;
use yolo_plan::run::{Part, plan_join_resumed, plan_train, ranks_to_resume};

use support::{Fixture, ready, scratch, task};

/// The third of four ranks, two on each of two machines with eight cores.
const THIRD: Part = Part { first: 2, first_here: 0, here: 2, world_size: 4 };

fn fixture(part: Option<Part>) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.context.part = part;
    fixture
}

#[test]
fn the_batch_is_divided_among_all_ranks_and_the_cores_among_those_here() {
    let fixture = fixture(Some(THIRD));
    let batch = |images| TrainOptions { batch_size: Some(images), ..scratch() };
    let planned = fixture.train(batch(32)).unwrap();
    let ranks = &planned.plan.ranks;
    assert_eq!((ranks.first, ranks.world_size, ranks.devices.len(), ranks.threads), (2, 4, 1, 4));
    assert_eq!(ranks.backend, Some(Backend::Gloo), "there are others");
    assert_eq!((task(&planned).shares(4), task(&planned).workers), (vec![8; 4], 4));
    let error = fixture.train_error(batch(30));
    assert!(error.contains("--batch 30") && error.contains('4'), "{error}");
}

#[test]
fn shares_are_given_for_all_ranks() {
    let fixture = fixture(Some(THIRD));
    let split = |list: &str| TrainOptions { batch_split: Some(list.to_owned()), ..scratch() };
    let planned = fixture.train(split("16,8,4,4")).unwrap();
    assert_eq!(task(&planned).shares(4), [16, 8, 4, 4]);
    assert!(fixture.train_error(split("16,8")).contains("there are 4 ranks"));
    let error = fixture.train(split("auto")).unwrap_err();
    assert!(error.to_string().contains("3 of 4 ranks are planned elsewhere"), "{error}");
    assert!(error.hint().unwrap().contains("--batch-split 16,8"));
}

#[test]
fn a_run_in_parts_is_resumed_in_parts_or_on_one_machine() {
    let mut fixture = fixture(Some(Part { first: 0, ..THIRD }));
    let mut first = fixture.train(TrainOptions { batch_size: Some(16), ..scratch() }).unwrap().plan;
    fs::create_dir_all(first.run_dir.join("weights")).unwrap();
    fs::write(first.run_dir.join("weights/last.pt"), "tensors").unwrap();
    first.write().unwrap();
    first.run_dir = first.run_dir.canonicalize().unwrap();
    let options = TrainOptions { resume: Some(first.run_dir.display().to_string()), ..Default::default() };
    let resumed = |fixture: &Fixture| ready(plan_train(&options, &fixture.context).unwrap());

    fixture.context.part = Some(THIRD);
    let again = resumed(&fixture);
    assert_eq!((again.plan.ranks.first, again.plan.ranks.world_size, task(&again).batch), (2, 4, 16));

    fixture.context.part = Some(Part { first: 1, first_here: 1, here: 2, world_size: 2 });
    let fewer = resumed(&fixture);
    assert_eq!((fewer.plan.ranks.world_size, task(&fewer).batch), (2, 16));
    let said = "resuming on 2 ranks instead of 4 ranks: the batch over all ranks stays 16, 8 images on each";
    assert!(fewer.notes.iter().any(|note| note == said), "{:?}", fewer.notes);

    fixture.context.part = None;
    let alone = resumed(&fixture);
    assert!(alone.plan.ranks.are_all(), "no rank waits for others that nobody starts");
    assert_eq!((alone.plan.ranks.world_size, alone.plan.ranks.backend), (1, None));
}

#[test]
fn a_machine_joins_a_resumed_run_with_its_own_files() {
    let master = fixture(Some(Part { first: 0, ..THIRD }));
    let mut first = master.train(TrainOptions { batch_size: Some(16), ..scratch() }).unwrap().plan;
    fs::create_dir_all(first.run_dir.join("weights")).unwrap();
    first.write().unwrap();
    let run = first.run_dir.display().to_string();
    let options = TrainOptions { resume: Some(run.clone()), ..TrainOptions::default() };
    assert_eq!(ranks_to_resume(&run, &options, &master.context).unwrap(), (1, 16));
    first = first.resumed_from(Some("last.pt".into()));
    let sent = first.task.train().unwrap();

    // This machine has no folder of that name.
    let member = fixture(Some(THIRD));
    let named = |options: TrainOptions| {
        plan_join_resumed(sent, &TrainOptions { resume: Some(String::new()), ..options }, &member.context)
    };
    let data = |name: &str| TrainOptions { data: Some(name.into()), ..TrainOptions::default() };
    let joined = ready(named(data("data.yaml")).unwrap());
    assert_eq!((joined.plan.ranks.first, joined.plan.ranks.world_size), (2, 4));
    assert!(task(&joined).data.yaml.starts_with(&member.context.places.working_dir));
    assert_eq!((&task(&joined).resume, task(&joined).batch), (&sent.resume, 16));
    assert!(!joined.in_its_folder && !joined.plan.run_dir.exists(), "its logs have a folder of their own");
    let same = ready(named(TrainOptions::default()).unwrap());
    assert_eq!(task(&same).data, sent.data, "the paths of the master exist here as well");

    fs::remove_dir_all(&sent.data.train[0]).unwrap();
    let error = named(TrainOptions::default()).unwrap_err();
    assert!(error.to_string().contains("is not where machine 0 has it"), "{error}");
    assert!(error.hint().unwrap().contains("--data"));
    let error = named(TrainOptions { epochs: Some(3), ..data("data.yaml") }).unwrap_err();
    assert!(error.to_string().starts_with("--epochs cannot be changed with --resume"), "{error}");
}
