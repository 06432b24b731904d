//! What recorded commands such as `docker run` said when a container with GPUs did not start. Each message has one
//! cause, which other facts of the machine need not show.

use crate::facts::{Host, NvmlState, Place, RUNTIME_CONFIG};
use crate::finding::Finding;
use crate::remedies::install_driver::{advice, install};

/// The cause of the first message that is known; `None` if there is none.
pub(super) fn find(host: &Host) -> Option<Finding> {
    // In a batch job, containers are the business of whoever administers the node.
    if host.job().is_some() {
        return None;
    }
    let said = host.container_outputs();
    let line = |words: &str| {
        let lines = said.iter().flat_map(|text| text.lines());
        lines.map(str::trim).find(|line| line.contains(words)).map(ToOwned::to_owned)
    };
    let finding =
        |title: &str, seen: String| Finding::new("container.toolkit-missing", title).seen(shortened(&seen));
    if let Some(seen) = line("unsatisfied condition: cuda") {
        return Some(old_driver(
            host,
            finding("the driver is too old for this image: its container does not start", seen),
        ));
    }
    if let Some(seen) = line("no adapters were found") {
        let title = "Windows gives WSL no NVIDIA GPU, so no container gets one";
        return Some(
            finding(title, seen)
                .because(
                    "containers in WSL get the GPU that Windows gives to WSL; there is none without an NVIDIA card, with a \
                     driver that is older than 470 or in the mode TCC, with an old WSL, or on a Windows that cannot do it",
                )
                .remedy(
                    "update WSL and the NVIDIA driver of Windows, quit Docker Desktop, restart Windows, and see whether nvidia-smi works in \
                     WSL; if it does not, `nvidia-smi` in Windows must show the card in the mode WDDM (data center cards start in TCC: \
                     `nvidia-smi -g 0 -dm 0` as administrator), and `wsl -l -v` must show version 2 (`wsl --set-version <name> 2`); then \
                     install the driver again as a clean installation; if nvidia-smi works in WSL and containers still find nothing, \
                     install another version of Docker Desktop",
                )
                .command("wsl.exe -l -v")
                .command("wsl.exe --update")
                .command("wsl.exe --shutdown")
                .command("wsl.exe nvidia-smi"),
        );
    }
    let exists = said.iter().flat_map(|text| text.lines()).map(str::trim).find(|line| {
        line.contains("file creation failed") && line.contains("file exists") && line.contains(".so")
    });
    if let Some(seen) = exists {
        let title = "the image brings libraries of the NVIDIA driver itself, so its container does not start with GPUs";
        return Some(
            finding(title, seen.to_owned())
                .because(
                    "the toolkit mounts the driver's libraries of the host into the container, and files of those names are there: the image \
                     was saved from a container with GPUs (`docker commit`), or a package in it brought them (nvidia-driver, nvidia-utils, \
                     libnvidia-compute, cuda-drivers, nvidia-cuda-toolkit, the installer of Ollama)",
                )
                .remedy(
                    "remove the libraries at the end of the Dockerfile and build the image again; one that was saved is started without GPUs, \
                     cleaned by the same command, and saved again",
                )
                .command(
                    "RUN rm -f /usr/lib/x86_64-linux-gnu/libcuda.so* /usr/lib/x86_64-linux-gnu/libnvidia-*.so* \
                     /usr/lib/x86_64-linux-gnu/libnvcuvid.so*  # in the Dockerfile",
                ),
        );
    }
    if host.os().is_ok_and(|os| os != "linux") {
        return None;
    }
    if let Some(seen) = line("unsupported Nvidia driver version").or_else(|| {
        line("cannot create sandbox: cannot read client sync file")
            .filter(|seen| seen.contains("nvproxy") || seen.to_ascii_lowercase().contains("nvidia"))
    }) {
        let title = "gVisor (runsc) does not start a container with GPUs: it knows certain versions of the driver only";
        return Some(
            finding(title, seen)
                .because("gVisor passes the calls of programs to the driver itself, and refuses a driver that it was not made for")
                .remedy(
                    "update runsc, or let it try (`--nvproxy-allow-unsupported-driver` among the runtimeArgs of runsc in \
                     /etc/docker/daemon.json, besides `--nvproxy`); or install a driver that it knows; or start the container with another \
                     runtime",
                )
                .command("runsc nvproxy list-supported-drivers")
                .command("docker run --runtime=nvidia --gpus all …"),
        );
    }
    if let Some(seen) =
        line("nvml error: driver not loaded").or_else(|| line("load library failed: libnvidia-ml.so.1"))
    {
        return without_driver(host, &seen, finding);
    }
    if let Some(seen) =
        line("ldconfig").filter(|line| line.contains("ldcache error") || line.contains("ldconfig.real"))
    {
        let title = "NVIDIA's container runtime calls an ldconfig that does not exist here";
        return Some(
            finding(title, seen)
                .because(format!(
                    "{RUNTIME_CONFIG} names /sbin/ldconfig.real, which only Debian and Ubuntu have"
                ))
                .remedy(
                    "name the ldconfig of this machine; `@` means that it is not the one of the container",
                )
                .command(
                    "sudo nvidia-ctk config --set nvidia-container-cli.ldconfig=@/sbin/ldconfig --in-place",
                ),
        );
    }
    if let Some(seen) = line("cgroup subsystem devices not found") {
        let title =
            "this NVIDIA Container Toolkit is too old for the control groups of this machine (cgroup v2)";
        return Some(
            finding(title, seen)
                .because(
                    "versions before 1.8 cannot allow a container to use devices there, so it does not start",
                )
                .remedy("update nvidia-container-toolkit and libnvidia-container1, then restart Docker"),
        );
    }
    if let Some(seen) = line("last insn is not an exit or jmp")
        .or_else(|| line("unable to create new device filters program"))
        .filter(|_| host.text(BPF_HARDENED).ok().flatten().is_none_or(|value| value.trim() == "2"))
    {
        return Some(hardened(
            host,
            finding(
                "the kernel's hardening of eBPF keeps NVIDIA's toolkit from giving a container its GPUs",
                seen,
            ),
        ));
    }
    if let Some(seen) =
        line("pivot_root").filter(|line| line.to_ascii_lowercase().contains("invalid argument"))
    {
        return Some(in_memory(finding(
            "no container starts, because the root file system of this machine is in memory",
            seen,
        )));
    }
    if let Some(seen) = line("invoking the NVIDIA Container Runtime Hook directly") {
        let title = "NVIDIA's container runtime is in the mode cdi, in which `docker run --gpus` fails";
        return Some(
            finding(title, seen)
                .because(
                    "Docker's option `--gpus` calls NVIDIA's hook directly, which this mode does not support",
                )
                .remedy("name the GPUs as CDI devices instead of `--gpus`, or set the mode back to auto")
                .command("docker run --device nvidia.com/gpu=all --ipc=host …")
                .command("sudo nvidia-ctk config --set nvidia-container-runtime.mode=auto --in-place"),
        );
    }
    None
}

/// Whether the kernel rewrites programs of eBPF, so that nobody can read them: 2 for all users.
const BPF_HARDENED: &str = "/proc/sys/net/core/bpf_jit_harden";

/// The toolkit extends the filter of devices that Docker has made, which it cannot read then.
fn hardened(host: &Host, finding: Finding) -> Finding {
    let value =
        host.text(BPF_HARDENED).ok().flatten().map(|value| format!("{BPF_HARDENED}: {}", value.trim()));
    value
        .into_iter()
        .fold(finding, Finding::seen)
        .because(
            "with net.core.bpf_jit_harden=2, as hardened kernels and guides set it, programs cannot read the filter of devices that \
             Docker made for the container, which the toolkit has to extend",
        )
        .remedy(
            "start containers with CDI, where Docker makes the whole filter itself; or set net.core.bpf_jit_harden to 1, also in \
             /etc/sysctl.d, and restart Docker",
        )
        .command("sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml")
        .command("docker run --device nvidia.com/gpu=all --ipc=host …")
}

/// The kernel's first file system (rootfs) cannot be left, which each container does.
fn in_memory(finding: Finding) -> Finding {
    finding
        .because(
            "a container leaves the root file system of its host (pivot_root), which the kernel refuses if that is the first one \
             (rootfs), as on machines that start from the network or from a USB stick into memory",
        )
        .remedy(
            "update NVIDIA's Container Toolkit (1.18.0 fails there); start Docker with the variable \
             DOCKER_RAMDISK=true in the settings of its service; or let the machine start into a tmpfs or from a disk (Warewulf: \
             `root=tmpfs`); Apptainer needs none of this",
        )
        .command("findmnt /")
}

/// The image names a version of CUDA that the driver does not support.
fn old_driver(host: &Host, finding: Finding) -> Finding {
    let finding = finding
        .because("an image says which CUDA its programs need, and the driver decides which it can run");
    let finding = match host.driver_cuda() {
        Ok(most) => finding.seen(format!("the driver supports CUDA up to {most}")),
        Err(_) => finding,
    };
    let disable = "docker run --gpus all -e NVIDIA_DISABLE_REQUIRE=1 …";
    match host.place() {
        Place::Windows | Place::Wsl => finding.remedy(
            "update the NVIDIA driver of Windows, which WSL and Docker Desktop use, or take an image for an older CUDA; the \
             command starts the container anyway, which works if its programs do not need the newer CUDA",
        ),
        _ => finding.remedy(
            "update the NVIDIA driver of this machine and restart it, or take an image for an older CUDA; the command starts \
             the container anyway, which works if its programs do not need the newer CUDA",
        ),
    }
    .command(disable)
}

/// NVIDIA's runtime does not find a working driver on the host; the check of the driver says more.
fn without_driver(host: &Host, seen: &str, finding: impl Fn(&str, String) -> Finding) -> Option<Finding> {
    let seen = seen.to_owned();
    let state = host.nvml_state().ok();
    if state == Some(NvmlState::Ready) {
        let title = "Docker does not find the NVIDIA driver, which works on this machine";
        return Some(
            finding(title, seen)
                .because(
                    "NVIDIA's runtime looks for the driver's libraries in the list of the loader, where Docker runs: a Docker \
                     of snap or of Docker Desktop is closed off from this machine",
                )
                .remedy("use Docker's own package instead of snap and Docker Desktop, and write the loader's list anew")
                .command("sudo ldconfig")
                .command("docker context use default"),
        );
    }
    // Other checks say why the driver does not work.
    if state.is_some() {
        return None;
    }
    let title = "containers get no GPU, because the NVIDIA driver does not work on their host";
    let finding = finding(title, seen)
        .because(
            "a container uses the driver of its host, and NVIDIA's runtime finds none there that is loaded",
        )
        .remedy(advice(host).unwrap_or(
            "install the NVIDIA driver on the host, and restart it; nvidia-smi has to work there first",
        ));
    Some(install(host).into_iter().fold(finding, Finding::command).command("nvidia-smi"))
}

/// The end of a message, in which the cause is.
fn shortened(line: &str) -> String {
    const MOST: usize = 160;
    let start = line.char_indices().rev().nth(MOST).map_or(0, |(at, _)| at);
    if start == 0 { line.to_owned() } else { format!("…{}", &line[start..]) }
}
