//! Whether NCCL is told to use a description of channels between GPUs that is not of this run. Images for Azure's machines
//! with four A100 name one in /etc/nccl.conf, which breaks the machines with one or two.

use std::collections::BTreeSet;

use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::nccl_files;
use crate::status::Status;

const VARIABLE: &str = "NCCL_GRAPH_FILE";
/// Azure's file for the machines NC A100 v4, which describes this many GPUs.
const OF_AZURE: (&str, usize) = ("/opt/microsoft/ncv4/graph.xml", 4);

/// What is wrong with the file for this run.
pub(super) fn finding(host: &Host, intent: &Intent) -> Option<Finding> {
    let setting = nccl_files::setting(host, VARIABLE)?;
    if intent.cpu || intent.run && intent.ranks_in_all() < 2 {
        return None;
    }
    let ranks = match intent.ranks_on_gpus() {
        0 => host.gpus().ok()?.len(),
        ranks => ranks,
    };
    let file = &setting.value;
    let (what, described) = match host.text(file) {
        Ok(None) => ("which does not exist".to_owned(), None),
        Ok(Some(text)) => of_count(gpus(&text), ranks)?,
        Err(_) if file == OF_AZURE.0 => of_count(OF_AZURE.1, ranks)?,
        Err(_) => return None,
    };
    let title = format!("{} names {file}, {what}: NCCL does not start", setting.place());
    let finding = Finding::new("shell.variable-breaks", title).because(
        "NCCL takes its channels between GPUs from this file, and fails (`XML Import Channel : dev … not found`, unhandled system \
         error) if it is of another machine or another number of GPUs; without the variable it finds them itself",
    );
    let finding = described.into_iter().fold(finding, Finding::seen);
    let finding = if intent.run { finding } else { finding.status(Status::Warning) };
    Some(setting.removed(finding))
}

fn of_count(described: usize, ranks: usize) -> Option<(String, Option<String>)> {
    let count = |count: usize| yolo_base::format::count(count, "GPU");
    // A file that describes none is not understood here.
    (described > 0 && described != ranks).then(|| {
        (format!("which describes {}", count(described)), Some(format!("here are {}", count(ranks))))
    })
}

/// How many GPUs the channels have: `<gpu dev="0"/>`.
fn gpus(text: &str) -> usize {
    let devices = text.split("<gpu").skip(1).filter_map(|rest| {
        let tag = rest.split('>').next()?;
        let (_, value) = tag.split_once("dev=")?;
        Some(value.trim_start_matches(['"', '\'']).split(['"', '\'']).next()?.to_owned())
    });
    devices.collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::gpus;

    #[test]
    fn the_gpus_of_all_channels_are_counted_once() {
        let text = "<graphs version=\"1\"><graph id=\"0\"><channel><gpu dev=\"0\"/><gpu dev=\"1\"/></channel>\n\
            <channel><gpu dev=\"1\"/><gpu dev=\"0\"/></channel></graph></graphs>";
        assert_eq!(gpus(text), 2);
        assert_eq!(gpus("<graphs/>"), 0);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(<gpu|dev=|\"|0|/>|\\PC){0,20}") {
            let _ = gpus(&text);
        }
    }
}
