//! The protocol-buffer messages of event files, as far as a training run uses them: `Event` and `Summary` of
//! TensorFlow, and the messages of TensorBoard's plugin for hyperparameters. Names and field numbers are those of
//! TensorBoard's `compat/proto/*.proto` and `plugins/hparams/*.proto`.

use std::collections::BTreeMap;

/// The plugin that reads hyperparameters.
const HPARAMS: &str = "hparams";

/// One record of an event file.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Event {
    /// Seconds since 1970.
    #[prost(double, tag = "1")]
    pub(super) wall_time: f64,
    #[prost(int64, tag = "2")]
    pub(super) step: i64,
    #[prost(oneof = "What", tags = "3, 5, 7")]
    pub(super) what: Option<What>,
}

/// What an [`Event`] says.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum What {
    /// The first record of each file.
    #[prost(string, tag = "3")]
    FileVersion(String),
    #[prost(message, tag = "5")]
    Summary(Summary),
    #[prost(message, tag = "7")]
    SessionLog(SessionLog),
}

/// A start makes readers drop what earlier files have at this step and later.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SessionLog {
    #[prost(int32, tag = "1")]
    pub(super) status: i32,
}

impl SessionLog {
    pub(super) const START: i32 = 1;
}

/// Values at one step.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Summary {
    #[prost(message, repeated, tag = "1")]
    pub(super) values: Vec<SummaryValue>,
}

/// A scalar, a picture, or the data of a plugin.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SummaryValue {
    #[prost(string, tag = "1")]
    pub(super) tag: String,
    #[prost(message, optional, tag = "9")]
    pub(super) metadata: Option<SummaryMetadata>,
    #[prost(oneof = "Content", tags = "2, 4")]
    pub(super) content: Option<Content>,
}

impl SummaryValue {
    pub(super) fn new(tag: &str, content: Content) -> Self {
        Self { tag: tag.to_owned(), metadata: None, content: Some(content) }
    }

    /// Data of the plugin for hyperparameters.
    pub(super) fn hparams(tag: &str, data: HParamsData) -> Self {
        let data = HParamsPluginData { version: 0, data: Some(data) };
        let plugin = PluginData { name: HPARAMS.to_owned(), content: prost::Message::encode_to_vec(&data) };
        let metadata = SummaryMetadata { plugin: Some(plugin) };
        Self { tag: format!("_hparams_/{tag}"), metadata: Some(metadata), content: None }
    }
}

/// The content of a [`SummaryValue`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Content {
    #[prost(float, tag = "2")]
    Scalar(f32),
    #[prost(message, tag = "4")]
    Picture(Picture),
}

/// A PNG or JPEG file with its size.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Picture {
    #[prost(int32, tag = "1")]
    pub(super) height: i32,
    #[prost(int32, tag = "2")]
    pub(super) width: i32,
    /// The number of channels.
    #[prost(int32, tag = "3")]
    pub(super) colorspace: i32,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) encoded: Vec<u8>,
}

/// Which plugin a value is for.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SummaryMetadata {
    #[prost(message, optional, tag = "1")]
    pub(super) plugin: Option<PluginData>,
}

/// The name of a plugin, and a message that only it understands.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PluginData {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) content: Vec<u8>,
}

/// The message of the plugin for hyperparameters.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HParamsPluginData {
    #[prost(int32, tag = "1")]
    pub(super) version: i32,
    #[prost(oneof = "HParamsData", tags = "2, 3, 4")]
    pub(super) data: Option<HParamsData>,
}

/// The content of an [`HParamsPluginData`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum HParamsData {
    #[prost(message, tag = "2")]
    Experiment(Experiment),
    #[prost(message, tag = "3")]
    Start(SessionStart),
    #[prost(message, tag = "4")]
    End(SessionEnd),
}

/// Which hyperparameters and metrics the table of the HPARAMS tab has.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Experiment {
    #[prost(message, repeated, tag = "4")]
    pub(super) settings: Vec<SettingInfo>,
    #[prost(message, repeated, tag = "5")]
    pub(super) metrics: Vec<MetricInfo>,
}

/// A column of settings.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SettingInfo {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// 1 for text, 2 for yes or no, 3 for numbers.
    #[prost(int32, tag = "4")]
    pub(super) kind: i32,
}

/// A column of metrics.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetricInfo {
    #[prost(message, optional, tag = "1")]
    pub(super) name: Option<MetricName>,
    #[prost(string, tag = "3")]
    pub(super) display_name: String,
}

/// The tag of the scalars of a metric. The group is a folder below that of the run; here there is none.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetricName {
    #[prost(string, tag = "1")]
    pub(super) group: String,
    #[prost(string, tag = "2")]
    pub(super) tag: String,
}

/// The start of a run, with its settings.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SessionStart {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(super) settings: BTreeMap<String, SettingValue>,
    #[prost(double, tag = "5")]
    pub(super) seconds: f64,
}

/// The value of a setting: `google.protobuf.Value`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SettingValue {
    #[prost(oneof = "SettingKind", tags = "2, 3, 4")]
    pub(super) kind: Option<SettingKind>,
}

/// The kinds of settings that TensorBoard has columns for.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum SettingKind {
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    Text(String),
    #[prost(bool, tag = "4")]
    Flag(bool),
}

/// The end of a run.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SessionEnd {
    #[prost(int32, tag = "1")]
    pub(super) status: i32,
    #[prost(double, tag = "2")]
    pub(super) seconds: f64,
}

impl SessionEnd {
    pub(super) const SUCCESS: i32 = 1;
}
