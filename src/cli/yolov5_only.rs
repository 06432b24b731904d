//! Options of YOLOv5's `train.py` that `yolo train` does not have. Those without an effect here are accepted, so that
//! commands that people have keep working, and one warning names them. The others are refused by name: a message about
//! an unexpected argument would suggest another option.

use clap::Args;
use yolo_base::format::list;
use yolo_plan::PlanError;
use yolo_plan::number::whole;

/// The options of `train.py`. They are not in the help.
#[derive(Debug, Args)]
pub(crate) struct Yolov5OnlyArgs {
    #[arg(long, value_name = "NAME", hide = true)]
    entity: Option<String>,
    #[arg(long = "upload_dataset", alias = "upload-dataset", num_args = 0..=1, default_missing_value = "true", hide = true)]
    upload_dataset: Option<String>,
    #[arg(
        long = "bbox_interval",
        alias = "bbox-interval",
        value_parser = whole::<i64>,
        value_name = "N",
        allow_negative_numbers = true,
        hide = true
    )]
    bbox_interval: Option<i64>,
    #[arg(long = "artifact_alias", alias = "artifact-alias", value_name = "NAME", hide = true)]
    artifact_alias: Option<String>,
    #[arg(
        long = "local_rank",
        alias = "local-rank",
        value_parser = whole::<i64>,
        value_name = "N",
        allow_negative_numbers = true,
        hide = true
    )]
    local_rank: Option<i64>,
    #[arg(long, value_name = "URL", hide = true)]
    bucket: Option<String>,
    #[arg(long = "ndjson-console", hide = true)]
    ndjson_console: bool,
    #[arg(long = "ndjson-file", hide = true)]
    ndjson_file: bool,
    #[arg(long, hide = true)]
    adam: bool,
    #[arg(long = "linear-lr", hide = true)]
    linear_lr: bool,
    #[arg(long, hide = true)]
    notest: bool,
    #[arg(long = "cache-images", hide = true)]
    cache_images: bool,
}

impl Yolov5OnlyArgs {
    /// The warning about the options that were given, if there are any. A launcher adds `--local_rank` by itself, so
    /// it needs none `under_launcher`.
    pub(crate) fn warning(&self, under_launcher: bool) -> Option<String> {
        let tracking = [
            ("--entity", self.entity.is_some()),
            ("--upload_dataset", self.upload_dataset.is_some()),
            ("--bbox_interval", self.bbox_interval.is_some()),
            ("--artifact_alias", self.artifact_alias.is_some()),
        ];
        let given = |(name, given): &(&str, bool)| given.then(|| (*name).to_owned());
        let tracking: Vec<String> = tracking.iter().filter_map(given).collect();
        let mut parts = Vec::new();
        if !tracking.is_empty() {
            parts.push(format!(
                "{} {} no effect, because yolo sends nothing to tracking services",
                list(&tracking),
                if tracking.len() == 1 { "has" } else { "have" }
            ));
        }
        let logs = [("--ndjson-console", self.ndjson_console), ("--ndjson-file", self.ndjson_file)];
        let logs: Vec<String> = logs.iter().filter_map(given).collect();
        if !logs.is_empty() {
            parts.push(format!(
                "{} {} no effect: --json prints what happens as one JSON object per line",
                list(&logs),
                if logs.len() == 1 { "has" } else { "have" }
            ));
        }
        if self.local_rank.is_some() && !under_launcher {
            parts.push(
                "--local_rank has no effect: yolo starts its ranks itself (--device), and `yolo rank` takes their \
                 numbers from the launcher's environment"
                    .to_owned(),
            );
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Refuses the options that would change the run.
    ///
    /// # Errors
    /// When one is given.
    pub(crate) fn refuse(&self) -> Result<(), PlanError> {
        let error = |what: String, hint: &str| Err(PlanError::usage(what).with_hint(hint));
        let bucket = self.bucket.as_deref().map(str::trim).filter(|bucket| !bucket.is_empty());
        if let Some(bucket) = bucket {
            // Nobody should believe that results are safe elsewhere when they are not.
            return error(
                format!("--bucket {bucket}: yolo uploads nothing"),
                "omit it, and copy the run folder when the run is complete, for example with `gcloud storage rsync`",
            );
        }
        let older = [
            (self.adam, "--adam", "use --optimizer Adam"),
            (
                self.linear_lr,
                "--linear-lr",
                "omit it: the learning rate falls linearly unless --cos-lr is given",
            ),
            (self.notest, "--notest", "use --noval"),
            (self.cache_images, "--cache-images", "use --cache"),
        ];
        match older.into_iter().find(|(given, ..)| *given) {
            Some((_, option, hint)) => {
                error(format!("{option} is an option of older versions of YOLOv5"), hint)
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use yolo_base::Hint as _;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        options: Yolov5OnlyArgs,
    }

    fn parsed(arguments: &str) -> Yolov5OnlyArgs {
        Command::try_parse_from(std::iter::once("yolo").chain(arguments.split_whitespace())).unwrap().options
    }

    #[test]
    fn options_of_tracking_services_are_named_in_one_warning() {
        assert_eq!(parsed("").warning(false), None);
        assert_eq!(
            parsed("--entity team --upload_dataset val --bbox_interval -1 --artifact_alias latest")
                .warning(false)
                .unwrap(),
            "--entity, --upload_dataset, --bbox_interval and --artifact_alias have no effect, because yolo sends nothing \
             to tracking services"
        );
        assert_eq!(
            parsed("--upload-dataset --local-rank 0").warning(false).unwrap(),
            "--upload_dataset has no effect, because yolo sends nothing to tracking services; --local_rank has no \
             effect: yolo starts its ranks itself (--device), and `yolo rank` takes their numbers from the launcher's \
             environment"
        );
        assert_eq!(
            parsed("--ndjson-console --ndjson-file").warning(false).unwrap(),
            "--ndjson-console and --ndjson-file have no effect: --json prints what happens as one JSON object per line"
        );
        for option in ["--local_rank=1", "--local-rank 1"] {
            assert_eq!(parsed(option).warning(true), None, "launchers add it");
        }
    }

    #[test]
    fn options_that_would_change_the_run_are_refused_by_name() {
        let refused = |arguments: &str| parsed(arguments).refuse().unwrap_err();
        assert!(parsed("--entity team").refuse().is_ok());
        assert!(parsed("--bucket=").refuse().is_ok(), "what train.py has by default");
        assert_eq!(refused("--bucket gs://mine").to_string(), "--bucket gs://mine: yolo uploads nothing");
        for (option, hint) in [
            ("--adam", "use --optimizer Adam"),
            ("--linear-lr", "omit it: the learning rate falls linearly unless --cos-lr is given"),
            ("--notest", "use --noval"),
            ("--cache-images", "use --cache"),
        ] {
            assert_eq!(
                refused(option).to_string(),
                format!("{option} is an option of older versions of YOLOv5")
            );
            assert_eq!(refused(option).hint().unwrap(), hint);
        }
    }
}
