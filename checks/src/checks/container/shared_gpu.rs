//! Whether a platform that divides cards among users, such as HAMi, put a library before CUDA. It limits memory and
//! computing time, answers for NVML, and does not know every call that NCCL makes.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does the container have whole GPUs?",
    reports: &["container.shared-gpu"],
    preflight: true,
    run,
};

/// The library of HAMi, and of the projects that it came from.
const LIBRARY: &str = "libvgpu.so";
const PRELOAD: &str = "/etc/ld.so.preload";
/// With `true`, the library passes everything on.
const SWITCH: &str = "CUDA_DISABLE_CONTROL";
/// The limits of a container; the second is that of its first card.
const LIMITS: [&str; 3] = ["CUDA_DEVICE_MEMORY_LIMIT", "CUDA_DEVICE_MEMORY_LIMIT_0", "CUDA_DEVICE_SM_LIMIT"];

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.os()? != "linux" || intent.cpu {
        return Ok(Vec::new());
    }
    let variable = host.env("LD_PRELOAD").ok().flatten().unwrap_or_default();
    let file = host.text(PRELOAD).ok().flatten().unwrap_or_default();
    let of_file = find(&file).map(|library| (library, PRELOAD));
    let Some((library, from)) = of_file.or_else(|| find(&variable).map(|library| (library, "LD_PRELOAD")))
    else {
        return Ok(Vec::new());
    };
    let set = |name: &str| host.env(name).ok().flatten().filter(|value| !value.is_empty());
    if set(SWITCH).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(Vec::new());
    }
    let ranks = match intent.ranks_on_gpus() {
        0 if !intent.run => host.gpus().map_or(0, |gpus| gpus.len()),
        ranks => ranks,
    };
    let several = ranks > 1 || intent.has_several_nodes();
    let title = if several {
        format!(
            "this platform shares GPUs through {LIBRARY}, with which NCCL can crash: {} would use it",
            format::count(ranks.max(1), "rank")
        )
    } else {
        format!("this platform shares GPUs through {LIBRARY}: a run has a part of the card")
    };
    let finding = Finding::new("container.shared-gpu", title).seen(format!("{from} names {library}"));
    let limits = LIMITS.iter().filter_map(|name| Some(format!("{name}={}", set(name)?)));
    let finding = limits.fold(finding, Finding::seen);
    // The loader goes on without a library that it does not find, and says so in each program.
    let finding = if host.exists(library) == Ok(false) {
        finding.seen(format!("{library} does not exist, so each program begins with a message of ld.so"))
    } else {
        finding
    };
    if !several {
        return Ok(vec![finding]);
    }
    Ok(vec![
        finding
            .status(Status::Warning)
            .remedy(format!(
                "ask the platform for whole GPUs, or use one GPU; if you may, set {SWITCH}=true in the definition of the \
                 container, which takes the library out of the way and with it the limits; --backend gloo avoids NCCL"
            ))
            .command(format!("env: [{{ name: {SWITCH}, value: \"true\" }}]")),
    ])
}

/// The path of the library in a list of those that are loaded first.
fn find(list: &str) -> Option<&str> {
    let lines = list.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.flat_map(|line| line.split([' ', '\t', ':'])).find(|path| path.rsplit('/').next() == Some(LIBRARY))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::find;

    #[test]
    fn only_this_library_counts() {
        assert_eq!(find("/usr/local/vgpu/libvgpu.so\n"), Some("/usr/local/vgpu/libvgpu.so"));
        assert_eq!(find("/lib/libjemalloc.so:/opt/libvgpu.so"), Some("/opt/libvgpu.so"));
        assert_eq!(find("/usr/lib/libjemalloc.so.2\n"), None);
        assert_eq!(find("# /usr/local/vgpu/libvgpu.so\n"), None);
    }

    proptest! {
        #[test]
        fn any_list_is_read(text in ".*") {
            find(&text);
        }
    }
}
