//! `events.out.tfevents.*`: the event file that TensorBoard opens, with `--tensorboard`. It has the columns of
//! `results.csv` as scalars, the pictures and plots of the run folder, and the settings for the HPARAMS tab. Each
//! start of a run writes a file of its own, as the format demands; TensorBoard joins those of a folder.

mod messages;
mod records;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use fs_err as fs;
use serde_json::{Map, Value};
use yolo_data::image::decode::decode_bytes;
use yolo_plan::event::{EpochSummary, VALIDATION_COLUMNS};
use yolo_plan::results::COLUMNS;

use self::messages::{
    Content, Event, Experiment, HParamsData, MetricInfo, MetricName, Picture, SessionEnd, SessionLog,
    SessionStart, SettingInfo, SettingKind, SettingValue, Summary, SummaryValue, What,
};

/// The version of the format, which the first record names.
const VERSION: &str = "brain.Event:2";

/// The event file of one start of a run.
#[derive(Debug)]
pub struct EventFile {
    file: fs::File,
}

impl EventFile {
    /// Begins a file in `run_dir`. What earlier files have of `first_epoch` and later epochs is repeated, or of another
    /// run with `--exist-ok`, and TensorBoard drops it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(run_dir: &Path, first_epoch: usize) -> io::Result<Self> {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let name = format!("events.out.tfevents.{:010}.{host}.{}.0", now() as u64, std::process::id());
        let this = Self { file: fs::File::create(run_dir.join(name))? };
        this.write(0, What::FileVersion(VERSION.to_owned()))?;
        this.write(first_epoch as i64, What::SessionLog(SessionLog { status: SessionLog::START }))?;
        Ok(this)
    }

    /// A file that exists, without a first record.
    #[cfg(test)]
    pub(crate) fn append_to(path: &Path) -> io::Result<Self> {
        Ok(Self { file: fs::OpenOptions::new().append(true).open(path)? })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Writes the settings of the run under the names of `opt.yaml` and `hyp.yaml`, for the HPARAMS tab.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn settings<'a>(&self, settings: impl IntoIterator<Item = &'a Map<String, Value>>) -> io::Result<()> {
        let settings: BTreeMap<String, SettingValue> = settings
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.clone(), SettingValue { kind: Some(setting(value)?) })))
            .collect();
        let infos = settings.iter().map(|(name, value)| SettingInfo {
            name: name.clone(),
            kind: match value.kind {
                Some(SettingKind::Flag(_)) => 2,
                Some(SettingKind::Number(_)) => 3,
                Some(SettingKind::Text(_)) | None => 1,
            },
        });
        let metrics = VALIDATION_COLUMNS[..4].iter().map(|tag| MetricInfo {
            name: Some(MetricName { group: String::new(), tag: (*tag).to_owned() }),
            display_name: tag.trim_start_matches("metrics/").to_owned(),
        });
        let experiment = Experiment { settings: infos.collect(), metrics: metrics.collect() };
        let start = SessionStart { settings, seconds: now() };
        let values = vec![
            SummaryValue::hparams("experiment", HParamsData::Experiment(experiment)),
            SummaryValue::hparams("session_start_info", HParamsData::Start(start)),
        ];
        self.write(0, What::Summary(Summary { values }))
    }

    /// Writes the scalars of an epoch under the names of the columns of `results.csv`. What was not measured is left out.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn epoch(&self, epoch: &EpochSummary) -> io::Result<()> {
        let metrics = epoch
            .metrics
            .map(|metrics| [metrics.precision, metrics.recall, metrics.map50, metrics.map50_95].map(Some));
        let numbers = epoch.train_losses.map(Some).into_iter();
        let numbers = numbers
            .chain(metrics.unwrap_or_default())
            .chain(epoch.val_losses.map(|losses| losses.map(Some)).unwrap_or_default())
            .chain(epoch.lr.map(Some));
        let scalar = |(tag, number): (&&str, Option<f64>)| {
            Some(SummaryValue::new(tag, Content::Scalar(number? as f32)))
        };
        let values = COLUMNS[1..].iter().zip(numbers).filter_map(scalar).collect();
        self.write(epoch.epoch as i64, What::Summary(Summary { values }))
    }

    /// Adds a picture of the run folder, a PNG or JPEG file, if it is there.
    ///
    /// # Errors
    /// When the event file cannot be written.
    pub fn picture(&self, tag: &str, path: &Path, epoch: usize) -> io::Result<()> {
        let Ok(encoded) = fs::read(path) else { return Ok(()) };
        let Ok(image) = decode_bytes(&encoded) else { return Ok(()) };
        let (height, width) = (image.height as i32, image.width as i32);
        let picture = Picture { height, width, colorspace: 3, encoded };
        let values = vec![SummaryValue::new(tag, Content::Picture(picture))];
        self.write(epoch as i64, What::Summary(Summary { values }))
    }

    /// Says that the run has finished.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finished(&self, epoch: usize) -> io::Result<()> {
        let end = SessionEnd { status: SessionEnd::SUCCESS, seconds: now() };
        let values = vec![SummaryValue::hparams("session_end_info", HParamsData::End(end))];
        self.write(epoch as i64, What::Summary(Summary { values }))
    }

    /// Appends an event by one write, so that a reader sees it at once.
    fn write(&self, step: i64, what: What) -> io::Result<()> {
        let event = Event { wall_time: now(), step, what: Some(what) };
        (&self.file).write_all(&records::framed(&prost::Message::encode_to_vec(&event)))
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// A setting as TensorBoard has it; `None` if it is not set.
fn setting(value: &Value) -> Option<SettingKind> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => SettingKind::Flag(*flag),
        Value::Number(number) => SettingKind::Number(number.as_f64()?),
        Value::String(text) => SettingKind::Text(text.clone()),
        Value::Array(_) | Value::Object(_) => SettingKind::Text(value.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use serde_json::json;
    use yolo_plan::event::Metrics;

    use super::messages::HParamsPluginData;
    use super::*;

    fn events(path: &Path) -> Vec<Event> {
        let bytes = std::fs::read(path).unwrap();
        records::read(&bytes).unwrap().into_iter().map(|record| Event::decode(record).unwrap()).collect()
    }

    fn summary(event: &Event) -> &[SummaryValue] {
        match &event.what {
            Some(What::Summary(summary)) => &summary.values,
            other => panic!("no summary: {other:?}"),
        }
    }

    fn epoch(metrics: Option<Metrics>) -> EpochSummary {
        EpochSummary {
            epoch: 4,
            epochs: 9,
            train_losses: [0.25, 0.5, 0.75],
            metrics,
            val_losses: metrics.map(|_| [1.0, 2.0, 3.0]),
            lr: [0.1, 0.01, 0.001],
            seconds: 1.0,
            best: false,
        }
    }

    #[test]
    fn scalars_have_the_names_of_the_columns_of_results_csv() {
        let folder = tempfile::tempdir().unwrap();
        let file = EventFile::create(folder.path(), 0).unwrap();
        let metrics = Metrics { precision: 0.1, recall: 0.2, map50: 0.3, map50_95: 0.4 };
        file.epoch(&epoch(Some(metrics))).unwrap();
        let name = file.path().file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.starts_with("events.out.tfevents.1") && name.ends_with(".0"), "{name}");
        let events = events(file.path());
        assert_eq!(events[0].what, Some(What::FileVersion("brain.Event:2".to_owned())));
        assert_eq!((events.len(), events[2].step), (3, 4));
        let tags: Vec<&str> = summary(&events[2]).iter().map(|value| value.tag.as_str()).collect();
        assert_eq!(tags, COLUMNS[1..]);
        let at = |tag| summary(&events[2]).iter().find(|value| value.tag == tag).unwrap().content.clone();
        assert_eq!(at("train/obj_loss"), Some(Content::Scalar(0.5)));
        assert_eq!(at("metrics/mAP_0.5"), Some(Content::Scalar(0.3)));
        assert_eq!(at("x/lr2"), Some(Content::Scalar(0.001)));
    }

    #[test]
    fn what_was_not_measured_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = EventFile::create(folder.path(), 0).unwrap();
        file.epoch(&epoch(None)).unwrap();
        let events = events(file.path());
        let tags: Vec<&str> = summary(&events[2]).iter().map(|value| value.tag.as_str()).collect();
        assert_eq!(tags, ["train/box_loss", "train/obj_loss", "train/cls_loss", "x/lr0", "x/lr1", "x/lr2"]);
    }

    #[test]
    fn a_resumed_run_takes_back_the_epochs_that_it_repeats() {
        let folder = tempfile::tempdir().unwrap();
        let file = EventFile::create(folder.path(), 7).unwrap();
        let start = What::SessionLog(SessionLog { status: SessionLog::START });
        let events = events(file.path());
        assert_eq!((events[1].step, &events[1].what), (7, &Some(start)));
    }

    #[test]
    fn settings_keep_their_kind() {
        let folder = tempfile::tempdir().unwrap();
        let file = EventFile::create(folder.path(), 0).unwrap();
        let settings = json!({"lr0": 0.01, "rect": true, "cfg": "yolov5n", "freeze": [1, 2], "cache": null});
        file.settings([settings.as_object().unwrap()]).unwrap();
        let events = events(file.path());
        let plugin = |index: usize| summary(&events[2])[index].metadata.clone().unwrap().plugin.unwrap();
        assert_eq!(plugin(0).name, "hparams");
        let data = |index| HParamsPluginData::decode(plugin(index).content.as_slice()).unwrap().data;
        let Some(HParamsData::Experiment(experiment)) = data(0) else { panic!("no experiment") };
        let kinds: Vec<_> = experiment.settings.iter().map(|one| (one.name.as_str(), one.kind)).collect();
        assert_eq!(kinds, [("cfg", 1), ("freeze", 1), ("lr0", 3), ("rect", 2)]);
        let Some(HParamsData::Start(start)) = data(1) else { panic!("no start") };
        assert_eq!(start.settings["freeze"].kind, Some(SettingKind::Text("[1,2]".to_owned())));
        assert_eq!(start.settings["lr0"].kind, Some(SettingKind::Number(0.01)));
    }
}
