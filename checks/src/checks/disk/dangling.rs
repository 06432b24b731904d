//! Whether the data set consists of links that lead nowhere: into a folder that a container does not have, to a drive
//! that is gone, or into the store of a tool that has not fetched the files yet.

use yolo_base::format;

use crate::facts::view::data_set::{DataSet, join, parent, sample};
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::remedies::fit::is_of_service;
use crate::shell_quote::quote;
use crate::status::Status;

/// `disk.data-missing` for folders or images of the data set that are such links. `missing` has the entries of the YAML
/// file that were found nowhere: a link that is only one of several places to look does not matter.
pub(super) fn finding(host: &Host, set: &DataSet, missing: &[(&str, String)]) -> Option<Finding> {
    for (split, entry) in missing {
        let candidates = set.candidates(entry);
        let folders = candidates.iter().flat_map(|path| {
            std::iter::successors(Some(path.clone()), |path| parent(path)).take(3).collect::<Vec<_>>()
        });
        if let Some((path, target)) =
            folders.into_iter().find_map(|path| Some((path.clone(), target(host, &path)?)))
        {
            let title =
                format!("the images of {split} are in {path}, a link to {target}, which does not exist here");
            return Some(with_remedy(host, Finding::new("disk.data-missing", title), set, &target));
        }
    }
    for split in ["train", "val"] {
        let Ok(images) = set.images(host, split) else { continue };
        let looked: Vec<&String> = sample(&images.paths).collect();
        let lost: Vec<String> = looked.iter().filter_map(|image| target(host, image)).collect();
        let Some(first) = lost.first() else { continue };
        let title = format!(
            "{} of {} of {split} are links to files that do not exist here",
            lost.len(),
            format::count(looked.len(), "sampled image")
        );
        let folder = parent(first).unwrap_or_default();
        let finding = Finding::new("disk.data-missing", title)
            .seen(format!("{} leads to {first}", looked_at(host, &looked)));
        // A run goes on without a few images.
        let finding = if lost.len() < looked.len() { finding.status(Status::Warning) } else { finding };
        return Some(with_remedy(host, finding, set, &folder));
    }
    None
}

/// The first image that is such a link.
fn looked_at(host: &Host, images: &[&String]) -> String {
    images.iter().find(|image| target(host, image).is_some()).map_or(String::new(), |image| (*image).clone())
}

/// Where a link leads, if nothing is there.
fn target(host: &Host, path: &str) -> Option<String> {
    // A live machine answers for the end of the link.
    if !host.is_recorded() && host.stat(path) != Ok(None) {
        return None;
    }
    let target = host.link(path).ok().flatten()?;
    let target = join(&parent(path)?, &target);
    let is_lost = host.stat(path) == Ok(None) || host.exists(&target) == Ok(false);
    is_lost.then_some(target)
}

fn with_remedy(host: &Host, finding: Finding, set: &DataSet, target: &str) -> Finding {
    let above = parent(&set.yaml).unwrap_or_default();
    if target.contains("/annex/objects") {
        return finding
            .because("git-annex and DataLad store links, and fetch the files they lead to on demand")
            .remedy("fetch the files of the data set")
            .command(format!("git -C {} annex get .", quote(&above)));
    }
    if target.contains("/.dvc/cache") || target.contains("/dvc/") {
        return finding
            .because("DVC stores links into its cache, which does not have the files yet")
            .remedy("fetch the files of the data set, in its repository")
            .command("dvc pull");
    }
    let finding = finding.because(
        "a link is only a path: where it leads to is not on this machine, not mounted, or was moved, so the images cannot \
         be read",
    );
    let folder = quote(target);
    match host.place() {
        _ if is_of_service(host) => {
            finding.remedy("copy the data set, where the files are, with the files instead of the links: `cp -rL`")
        }
        Place::Docker | Place::DockerInWsl | Place::Podman => {
            let program = if host.place() == Place::Podman { "podman" } else { "docker" };
            finding
                .remedy(
                    "mount the folder that the links lead to at the same path into the container; or copy the data set on the host \
                     with the files instead of the links, `cp -rL`",
                )
                .command(format!("{program} run -v {folder}:{folder}:ro …"))
        }
        Place::Apptainer => finding
            .remedy("bind the folder that the links lead to at the same path into the container")
            .command(format!("apptainer exec --nv --bind {folder} …")),
        Place::Pod => finding.remedy(format!(
            "mount the volume with {target} at the same path into the pod, or copy the data set with the files instead of the \
             links, `cp -rL`"
        )),
        _ => finding.remedy(format!(
            "mount the drive with {target}, or correct the links (`ln -sfn`); or copy the data set, where the files are, with \
             the files instead of the links: `cp -rL`"
        )),
    }
}
