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
    #[command(flatten)]
    package: PackageOnlyArgs,
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

/// What the package `yolov5` from PyPI adds to `train.py`.
#[derive(Debug, Args)]
struct PackageOnlyArgs {
    #[arg(long = "neptune_token", alias = "neptune-token", value_name = "TOKEN", hide = true)]
    neptune_token: Option<String>,
    #[arg(long = "neptune_project", alias = "neptune-project", value_name = "NAME", hide = true)]
    neptune_project: Option<String>,
    #[arg(long = "neptune_resume_id", alias = "neptune-resume-id", value_name = "ID", hide = true)]
    neptune_resume_id: Option<String>,
    #[arg(long = "s3_upload_dir", alias = "s3-upload-dir", value_name = "URL", hide = true)]
    s3_upload_dir: Option<String>,
    #[arg(long = "hf_model_id", alias = "hf-model-id", value_name = "ID", hide = true)]
    hf_model_id: Option<String>,
    #[arg(long = "hf_token", alias = "hf-token", value_name = "TOKEN", hide = true)]
    hf_token: Option<String>,
    #[arg(long = "hf_private", alias = "hf-private", hide = true)]
    hf_private: bool,
    #[arg(long = "hf_dataset_id", alias = "hf-dataset-id", value_name = "ID", hide = true)]
    hf_dataset_id: Option<String>,
    #[arg(long = "roboflow_token", alias = "roboflow-token", value_name = "TOKEN", hide = true)]
    roboflow_token: Option<String>,
    #[arg(long = "roboflow_upload", alias = "roboflow-upload", hide = true)]
    roboflow_upload: bool,
}

impl PackageOnlyArgs {
    /// The options of its tracking service, and whether they were given.
    fn tracking(&self) -> [(&'static str, bool); 3] {
        [
            ("--neptune_token", self.neptune_token.is_some()),
            ("--neptune_project", self.neptune_project.is_some()),
            ("--neptune_resume_id", self.neptune_resume_id.is_some()),
        ]
    }

    /// The first option that was given of those that upload.
    fn upload(&self) -> Option<&'static str> {
        let options = [
            ("--s3_upload_dir", self.s3_upload_dir.is_some()),
            ("--hf_model_id", self.hf_model_id.is_some()),
            ("--hf_private", self.hf_private),
            ("--roboflow_upload", self.roboflow_upload),
        ];
        options.into_iter().find_map(|(name, given)| given.then_some(name))
    }

    /// The first option that was given of those for hubs that need an account. Tokens are among them, because nothing
    /// but these services uses them; no message shows their values.
    fn account(&self) -> Option<&'static str> {
        let options = [
            ("--hf_dataset_id", self.hf_dataset_id.is_some()),
            ("--hf_token", self.hf_token.is_some()),
            ("--roboflow_token", self.roboflow_token.is_some()),
        ];
        options.into_iter().find_map(|(name, given)| given.then_some(name))
    }
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
        let tracking = tracking.into_iter().chain(self.package.tracking());
        let given = |(name, given): &(&str, bool)| given.then(|| (*name).to_owned());
        let tracking: Vec<String> = tracking.filter_map(|option| given(&option)).collect();
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
        // -1, the default of train.py, says that no launcher has started it, which is so.
        if self.local_rank.is_some_and(|rank| rank != -1) && !under_launcher {
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
        if let Some(option) = self.package.upload() {
            return error(
                format!("{option}: yolo uploads nothing"),
                "omit it, and copy the run folder when the run is complete",
            );
        }
        if let Some(option) = self.package.account() {
            return error(
                format!("{option}: yolo does not download from hubs that need an account"),
                "omit it, and download the data set before the run",
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
        assert_eq!(
            parsed("--neptune_token secret --neptune_project a/b --neptune_resume_id 7")
                .warning(false)
                .unwrap(),
            "--neptune_token, --neptune_project and --neptune_resume_id have no effect, because yolo sends nothing to \
             tracking services"
        );
        for option in ["--local_rank -1", "--local-rank=-1"] {
            assert_eq!(parsed(option).warning(false), None, "what train.py has by default");
        }
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
        let uploads = "yolo uploads nothing";
        let account = "yolo does not download from hubs that need an account";
        for (option, why) in [
            ("--s3_upload_dir s3://mine", uploads),
            ("--hf_model_id me/cells", uploads),
            ("--hf_dataset_id me/cells", account),
            ("--hf_token secret", account),
            ("--hf-private", uploads),
            ("--roboflow_token secret", account),
            ("--roboflow-upload", uploads),
        ] {
            let name = option.split(' ').next().unwrap().replace("f-", "f_").replace("w-", "w_");
            assert_eq!(refused(option).to_string(), format!("{name}: {why}"));
        }
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
