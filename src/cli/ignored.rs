//! Options of YOLOv5's `train.py` that have no effect here: they are accepted, so that commands that people have
//! keep working, and one warning names those that were given.

use clap::Args;
use yolo_base::format::list;

/// The options. They are not in the help.
#[derive(Debug, Args)]
pub(crate) struct IgnoredArgs {
    #[arg(long, value_name = "NAME", hide = true)]
    entity: Option<String>,
    #[arg(long = "upload_dataset", alias = "upload-dataset", num_args = 0..=1, default_missing_value = "true", hide = true)]
    upload_dataset: Option<String>,
    #[arg(
        long = "bbox_interval",
        alias = "bbox-interval",
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
        value_name = "N",
        allow_negative_numbers = true,
        hide = true
    )]
    local_rank: Option<i64>,
    #[arg(long, value_name = "URL", hide = true)]
    bucket: Option<String>,
}

impl IgnoredArgs {
    /// The warning about the options that were given, if there are any.
    pub(crate) fn warning(&self) -> Option<String> {
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
        if self.local_rank.is_some() {
            parts.push(
                "--local_rank has no effect: yolo starts its ranks itself (--device), and `yolo rank` takes their \
                 numbers from the launcher's environment"
                    .to_owned(),
            );
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The bucket to which the user wants results to be uploaded, which nothing here does.
    pub(crate) fn bucket(&self) -> Option<&str> {
        self.bucket.as_deref().map(str::trim).filter(|bucket| !bucket.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        ignored: IgnoredArgs,
    }

    fn parsed(arguments: &str) -> IgnoredArgs {
        Command::try_parse_from(std::iter::once("yolo").chain(arguments.split_whitespace())).unwrap().ignored
    }

    #[test]
    fn options_of_tracking_services_are_named_in_one_warning() {
        assert_eq!(parsed("").warning(), None);
        assert_eq!(
            parsed("--entity team --upload_dataset val --bbox_interval -1 --artifact_alias latest")
                .warning()
                .unwrap(),
            "--entity, --upload_dataset, --bbox_interval and --artifact_alias have no effect, because yolo sends nothing \
             to tracking services"
        );
        assert_eq!(
            parsed("--upload-dataset --local-rank 0").warning().unwrap(),
            "--upload_dataset has no effect, because yolo sends nothing to tracking services; --local_rank has no \
             effect: yolo starts its ranks itself (--device), and `yolo rank` takes their numbers from the launcher's \
             environment"
        );
    }

    #[test]
    fn an_empty_bucket_is_none() {
        // What train.py has by default.
        assert_eq!(parsed("--bucket=").bucket(), None);
        assert_eq!(parsed("--bucket gs://mine").bucket(), Some("gs://mine"));
    }
}
