//! What Slurm said when Pyxis and Enroot could not give a container its GPUs. NVIDIA's hook of Enroot calls
//! nvidia-container-cli on the node, whose administrator has to install and repair what it needs.

use crate::facts::Host;
use crate::finding::Finding;
use crate::remedies::restart::restart;
use crate::status::Status;

/// How Enroot names the hook that failed.
const HOOK: &str = "98-nvidia.sh exited with return code";
const WITHOUT_PROGRAM: &str = "Command not found: nvidia-container-cli";

/// The disk to which Enroot unpacks images is full: mostly a file system in memory, or a home folder with a quota.
fn without_space(host: &Host) -> Option<Finding> {
    const OF_ENROOT: [&str; 4] = ["enroot", "pyxis", "squashfs", "SQUASHFS"];
    let texts = host.recorded_commands().into_iter().map(|(_, output)| output.all_text());
    let is_it = |text: &String| {
        text.contains("No space left on device") && OF_ENROOT.iter().any(|word| text.contains(word))
    };
    let text = texts.into_iter().find(is_it)?;
    let seen = text.lines().map(str::trim).find(|line| line.contains("No space left on device"))?;
    let title = "Enroot cannot unpack the image: the disk for it is full";
    Some(
        Finding::new("container.toolkit-missing", title)
            .status(Status::Warning)
            .seen(seen.to_owned())
            .because(
                "Enroot unpacks images in ~/.local/share/enroot and ~/.cache/enroot, and Pyxis in /run, which is in memory, if their settings \
                 name no other place; Pyxis hands none of the job's ENROOT_ variables on",
            )
            .remedy(
                "import the image once to a disk with room, and start the job with that file; or name folders of the node's disk, for Enroot \
                 alone by ENROOT_DATA_PATH, ENROOT_CACHE_PATH and ENROOT_TEMP_PATH, in a job by the variables below; the administrator can \
                 set `runtime_path=` of spank_pyxis.so in plugstack.conf, and the paths in enroot.conf, to a disk of the node (not a shared \
                 one)",
            )
            .command("ENROOT_TEMP_PATH=/scratch/$USER ENROOT_CACHE_PATH=/scratch/$USER/cache enroot import -o image.sqsh docker://…")
            .command("srun --container-image=./image.sqsh …")
            .command("XDG_DATA_HOME=/scratch/$USER XDG_CACHE_HOME=/scratch/$USER/cache srun --container-image=… …"),
    )
}

/// Only recorded commands tell it: a container that did not start runs nothing.
pub(super) fn find(host: &Host) -> Option<Finding> {
    if let Some(finding) = without_space(host) {
        return Some(finding);
    }
    let outputs = host.recorded_commands().into_iter().map(|(_, output)| output.all_text());
    let text = outputs.into_iter().find(|text| text.contains(HOOK) || text.contains(WITHOUT_PROGRAM))?;
    let line =
        |words: &str| text.lines().map(str::trim).find(|line| line.contains(words)).map(ToOwned::to_owned);
    let finding = |title: &str, seen: String| {
        Finding::new("container.toolkit-missing", title).status(Status::Warning).seen(seen)
    };
    if let Some(seen) = line(WITHOUT_PROGRAM) {
        let title = "Enroot cannot give containers GPUs: the node lacks nvidia-container-cli";
        return Some(
            finding(title, seen)
                .because("NVIDIA's hook of Enroot calls this program, which comes with the NVIDIA Container Toolkit")
                .remedy(
                    "ask the administrator of the cluster to install libnvidia-container-tools on all nodes with GPUs (NVIDIA's \
                     repository for the container toolkit has it); until then, use another container, such as Apptainer's with --nv",
                ),
        );
    }
    if let Some(seen) = line("unsatisfied condition: cuda") {
        let title = "the driver of the node is too old for this image: its container does not start";
        return Some(
            finding(title, seen)
                .because("an image says which CUDA its programs need, and the driver decides which it can run")
                .remedy(
                    "take an image for an older CUDA, or ask the administrator for a newer driver; with the variable the container starts \
                     anyway, which works if its programs do not need the newer CUDA",
                )
                .command("NVIDIA_DISABLE_REQUIRE=1 srun --gres=gpu:1 --container-image=… …"),
        );
    }
    let driver =
        line("driver not loaded").or_else(|| line("libnvidia-ml.so.1")).or_else(|| line("nvml error"));
    let title = match driver {
        Some(_) => "Enroot cannot give containers GPUs: the NVIDIA driver of the node does not work",
        None => "Enroot cannot give containers GPUs: NVIDIA's hook fails on the node",
    };
    let seen = driver.or_else(|| line("nvidia-container-cli:")).or_else(|| line(HOOK))?;
    let finding = finding(title, seen)
        .because("NVIDIA's hook of Enroot mounts the driver of the node into the container");
    Some(match host.job() {
        Some(_) => restart(host, finding),
        None => finding.remedy(
            "tell the administrator of the cluster, and submit the job so that it runs on another node (`sbatch --exclude=<node> …`)",
        ),
    })
}
