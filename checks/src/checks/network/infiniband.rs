//! Whether NCCL can use the InfiniBand or RoCE adapters that the kernel shows. It needs a library and the device files of
//! the adapters; a container sees the adapters in sysfs, but often has neither, and a run over several machines then uses
//! TCP sockets, many times slower, without a message.

use crate::checks::gpu::is_of_grace;
use crate::checks::shell::infiniband::takes;
use crate::checks::{Answer, Check};
use crate::facts::{Family, Host, InfinibandPort, NvmlState, Place, Version};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::nccl_files;
use crate::remedies::restart::restart;
use crate::remedies::start_container::{Start, start_with};
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Can NCCL use the InfiniBand adapters of this machine?",
    reports: &["network.infiniband-unusable", "network.subnet-manager", "network.no-gpudirect"],
    preflight: false,
    run,
};

/// What NCCL opens.
const LIBRARY: &str = "libibverbs.so.1";
const DEVICES: &str = "/dev/infiniband";
/// Gbit/s from which an Ethernet adapter is one that was bought for RoCE.
const FAST: u64 = 100;

fn run(host: &Host, intent: &Intent) -> Answer {
    let uses_nccl = !intent.cpu && intent.backend.as_deref() != Some("gloo");
    if !intent.has_several_nodes() || !uses_nccl || host.os()? != "linux" {
        return Ok(Vec::new());
    }
    let value = |name: &str| nccl_files::setting(host, name).map(|setting| setting.value);
    let is_off = value("NCCL_IB_DISABLE").is_some_and(|value| value != "0");
    let network = value("NCCL_NET").map(|name| name.to_ascii_lowercase());
    if is_off || network.is_some_and(|name| name != "ib") {
        return Ok(Vec::new());
    }
    let list = value("NCCL_IB_HCA").unwrap_or_default();
    let mut ports = host.infiniband_ports();
    ports.retain(|port| !port.is_efa(host) && (list.is_empty() || takes(&list, port)));
    let (unfit, ports): (Vec<InfinibandPort>, Vec<InfinibandPort>) =
        ports.into_iter().partition(|port| list.is_empty() && unfit_kind(host, port).is_some());
    if let Some(finding) = with_unfit(host, &unfit, &ports) {
        return Ok(vec![finding]);
    }
    let Some(port) = ports.iter().find(|port| port.is_active() == Some(true)) else {
        return Ok(subnet_manager(host, &ports).or_else(|| without_link(host, &ports)).into_iter().collect());
    };
    let status = if is_meant(host, port, &list) { Status::Warning } else { Status::Info };
    let finding = if is_library_missing(host) {
        let title = format!("NCCL cannot use the {}: the library {LIBRARY} is missing", named(port));
        with_library(host, port, title)
    } else if is_driver_missing(host, port) {
        let title = format!(
            "NCCL cannot use the {}: {LIBRARY} is there, but not its driver for these adapters (libmlx5)",
            named(port)
        );
        with_library(host, port, title)
    } else if is_device_missing(host) {
        without_devices(host, port)
    } else if is_closed(host) {
        without_permission(host, port)
    } else if let Some(port) = without_interface(host, &ports) {
        with_interface(host, port)
    } else {
        return Ok(without_gpudirect(host, port).into_iter().collect());
    };
    Ok(vec![finding.status(status)])
}

/// The kind of adapter with which NCCL never connects.
const IWARP: &str = "iWARP";

/// What kind of adapter this is, if NCCL takes it and fails to connect through it: iWARP, and Intel's for Ethernet, which also
/// come up by themselves on boards that have one.
fn unfit_kind(host: &Host, port: &InfinibandPort) -> Option<&'static str> {
    const INTEL: &str = "0x8086";
    let file = |name: &str| {
        host.text(&format!("/sys/class/infiniband/{}/{name}", port.adapter))
            .ok()
            .flatten()
            .unwrap_or_default()
    };
    if file("node_type").contains("RNIC") {
        Some(IWARP)
    } else if port.is_ethernet()
        && (file("device/vendor").trim() == INTEL || port.adapter.starts_with("irdma"))
    {
        Some("RoCE of Intel")
    } else {
        None
    }
}

/// The finding about active adapters that NCCL takes to no avail. Without the library, or the device files, it takes none.
fn with_unfit(host: &Host, unfit: &[InfinibandPort], others: &[InfinibandPort]) -> Option<Finding> {
    let port = unfit.iter().find(|port| port.is_active() == Some(true))?;
    if is_library_missing(host) || is_device_missing(host) {
        return None;
    }
    let kind = unfit_kind(host, port)?;
    // NCCL was reported to fail with Intel's RoCE; clusters that were set up for it use it.
    let is_certain = kind == IWARP;
    let title = if is_certain {
        format!("NCCL takes the adapter {}, but cannot connect through it ({kind})", port.adapter)
    } else {
        format!("NCCL may fail to connect through the adapter {} ({kind})", port.adapter)
    };
    let good: Vec<String> = others
        .iter()
        .filter(|port| port.is_active() == Some(true))
        .map(|port| format!("{}:{}", port.adapter, port.number))
        .collect();
    let finding = Finding::new("network.infiniband-unusable", title)
        .seen(format!("port {} of {} is active", port.number, port.adapter))
        .because(
            "NCCL takes every active adapter of RDMA, and connects as InfiniBand and Mellanox' RoCE do: through this one, the first \
             connection fails with `ibv_modify_qp failed with error Invalid argument`, or hangs",
        );
    let finding = if !is_certain {
        return Some(finding.status(Status::Info).remedy(
            "nothing while runs start; if one fails with `ibv_modify_qp failed`, set NCCL_IB_DISABLE=1 on all machines, or name other \
             adapters in NCCL_IB_HCA",
        ));
    } else if good.is_empty() {
        finding
            .remedy("let NCCL use TCP sockets, on all machines of the run")
            .command("export NCCL_IB_DISABLE=1")
    } else {
        finding
            .remedy("name the other adapters, on all machines of the run")
            .command(format!("export NCCL_IB_HCA=={}", good.join(",")))
    };
    Some(if host.is_own_machine() && good.is_empty() {
        finding.machine_remedy(
            "keep the kernel from loading its driver at each start, if nothing else uses it (`echo 'blacklist irdma' | sudo tee \
             /etc/modprobe.d/irdma.conf`)",
        )
    } else {
        finding
    })
}

/// Whether somebody built this machine for it. A slower Ethernet adapter can do RoCE too, but mostly nobody set it up.
fn is_meant(host: &Host, port: &InfinibandPort, list: &str) -> bool {
    let rate = host.text(&format!("{}/rate", port.folder())).ok().flatten().unwrap_or_default();
    let rate: Option<u64> = rate.split([' ', '.']).next().and_then(|number| number.parse().ok());
    let names_entry = nccl_files::setting(host, "NCCL_IB_GID_INDEX").is_some();
    !port.is_ethernet() || !list.is_empty() || names_entry || rate.is_some_and(|rate| rate >= FAST)
}

fn is_library_missing(host: &Host) -> bool {
    match host.library(LIBRARY) {
        Ok(found) => found.is_empty(),
        // A recording may have the loader's list instead.
        Err(_) => host
            .recorded_output("ldconfig")
            .is_some_and(|list| list.contains("libc.so.6") && !list.contains("libibverbs.so")),
    }
}

/// Whether the library of the distribution has no driver for adapters of Mellanox, as in images that install it alone. Other
/// adapters have drivers of many names, and another library has its own list.
fn is_driver_missing(host: &Host, port: &InfinibandPort) -> bool {
    const LIST: &str = "/etc/libibverbs.d";
    let found = host.library(LIBRARY).ok().and_then(|found| found.into_iter().next());
    let is_of_system = found.is_some_and(|library| {
        ["/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"].iter().any(|folder| library.path.starts_with(folder))
    });
    let is_listed = |names: Option<Vec<String>>| {
        names.is_some_and(|names| names.iter().any(|name| name == "mlx5.driver"))
    };
    port.adapter.starts_with("mlx5") && is_of_system && host.folder(LIST).is_ok_and(|names| !is_listed(names))
}

/// The device files of adapters, `uverbs0`, …
fn device_files(host: &Host) -> Option<Vec<String>> {
    let names = host.folder(DEVICES).ok()?.unwrap_or_default();
    Some(names.into_iter().filter(|name| name.starts_with("uverbs")).collect())
}

fn is_device_missing(host: &Host) -> bool {
    let says_none = |program: &str| {
        host.recorded_output(program).is_some_and(|text| text.contains("No IB devices found"))
    };
    if says_none("ibv_devinfo") || says_none("ibv_devices") {
        return true;
    }
    match device_files(host) {
        Some(names) => names.is_empty(),
        None => host.exists(DEVICES) == Ok(false),
    }
}

/// Whether this user may not open any of them.
fn is_closed(host: &Host) -> bool {
    let files = device_files(host).unwrap_or_default();
    let may_open = |name: &String| {
        let stat = host.stat(&format!("{DEVICES}/{name}")).ok().flatten();
        stat.is_none_or(|stat| stat.readable != Some(false) && stat.writable != Some(false))
    };
    !files.is_empty() && !files.iter().any(may_open)
}

fn named(port: &InfinibandPort) -> String {
    let kind = if port.is_ethernet() { "RoCE" } else { "InfiniBand" };
    format!("{kind} adapter {}", port.adapter)
}

fn with_library(host: &Host, port: &InfinibandPort, title: String) -> Finding {
    let finding = Finding::new("network.infiniband-unusable", title)
        .seen(format!("port {} of {} is active", port.number, port.adapter));
    let where_to = if host.is_container() { " in the image of this container" } else { "" };
    let finding = finding.remedy(format!(
        "install libibverbs with the drivers of the adapters{where_to}, on all machines of the run"
    ));
    let of_apt = match host.place() {
        // Images have no lists of packages.
        Place::Docker | Place::DockerInWsl | Place::Podman | Place::Pod => {
            "RUN apt-get update && apt-get install -y libibverbs1 ibverbs-providers  # in the Dockerfile"
        }
        _ => "sudo apt install libibverbs1 ibverbs-providers",
    };
    let package = host.package_command([
        of_apt,
        "sudo dnf install libibverbs",
        "sudo zypper install libibverbs1 libibverbs",
        "sudo pacman -Syu rdma-core",
    ]);
    let finding = package.into_iter().fold(finding, Finding::command);
    // The image lacks the device files as well.
    if host.is_container() && is_device_missing(host) {
        let mut finding =
            start_with(host, finding.seen(format!("{DEVICES} is missing too")), Start::Infiniband);
        if let Some(remedy) = &mut finding.remedy {
            let library = format!("install libibverbs with the drivers of the adapters{where_to}");
            remedy.text = if remedy.text.starts_with("install ") {
                format!("{library}, and start it with the device files, on all machines of the run")
            } else {
                format!("{library}; {}", remedy.text)
            };
        }
        return finding;
    }
    finding
}

/// The finding, with the way to start this container with the adapters.
fn with_devices(host: &Host, finding: Finding) -> Finding {
    let remedy = "start the container with the device files of the adapters, on all machines of the run";
    start_with(host, finding.remedy(remedy), Start::Infiniband)
}

fn without_devices(host: &Host, port: &InfinibandPort) -> Finding {
    let title = format!("NCCL cannot use the {}: {DEVICES}/uverbs0 is missing", named(port));
    let finding = Finding::new("network.infiniband-unusable", title)
        .seen(format!("port {} of {} is active", port.number, port.adapter));
    if host.is_container() {
        return with_devices(host, finding);
    }
    if host.job().is_some() {
        return finding
            .remedy(
                "in a container of enroot or Pyxis, set this variable before `srun`, so that it gets the adapters; otherwise \
                 ask the administrator to load the kernel module ib_uverbs on the nodes",
            )
            .command("export MELLANOX_VISIBLE_DEVICES=all");
    }
    finding
        .remedy("load the kernel module that makes the device files, now and at each start")
        .command("sudo modprobe ib_uverbs")
        .command("echo ib_uverbs | sudo tee /etc/modules-load.d/ib_uverbs.conf")
}

fn without_permission(host: &Host, port: &InfinibandPort) -> Finding {
    let title = format!("NCCL cannot use the {}: this user may not open {DEVICES}/uverbs0", named(port));
    let finding = Finding::new("network.infiniband-unusable", title);
    if host.is_container() {
        return with_devices(host, finding);
    }
    let finding = finding
        .remedy("let all users open the files; the package rdma-core has rules that do so at each start");
    finding.command(format!("sudo chmod a+rw {DEVICES}/uverbs*"))
}

/// A port of RoCE that has no address in this container, because its network interface is in the network of the host; `None`
/// if a port of the run has one. InfiniBand needs no interface.
fn without_interface<'a>(host: &Host, ports: &'a [InfinibandPort]) -> Option<&'a InfinibandPort> {
    let mut active = ports.iter().filter(|port| port.is_active() == Some(true)).peekable();
    let first = *active.peek()?;
    let is_without = |port: &InfinibandPort| {
        port.is_ethernet()
            && match port.addresses(host) {
                Some(addresses) => addresses.is_empty(),
                None => has_foreign_interface(host, port),
            }
    };
    (host.is_container() && active.all(is_without)).then_some(first)
}

/// Whether the interface of an adapter is known, and this container does not have it.
fn has_foreign_interface(host: &Host, port: &InfinibandPort) -> bool {
    let folder = format!("/sys/class/infiniband/{}/device/net", port.adapter);
    let names = host.folder(&folder).ok().flatten().unwrap_or_default();
    let Ok(interfaces) = host.interfaces() else { return false };
    !names.is_empty() && !names.iter().any(|name| interfaces.iter().any(|one| one.name == *name))
}

/// The finding about such an adapter, with the way to give the container its interface.
fn with_interface(host: &Host, port: &InfinibandPort) -> Finding {
    let title = format!(
        "NCCL cannot use the RoCE adapter {}: it has no address in this container, because its network interface is on the host",
        port.adapter
    );
    let finding = Finding::new("network.infiniband-unusable", title)
        .seen(match port.addresses(host) {
            Some(_) => format!("all entries of {}/gids are empty", port.folder()),
            None => format!("this container lacks the interface of {}", port.adapter),
        })
        .because(
            "RoCE takes its addresses from the network interface of the adapter; without one, connections fail with `ibv_modify_qp \
             failed with error No such device`, `Network is unreachable` or `Invalid argument`",
        );
    const SOCKETS: &str =
        "until then NCCL_IB_DISABLE=1 on all machines lets NCCL use TCP sockets, many times slower";
    let finding = match host.place() {
        _ if host.rental().is_some() => finding.remedy(
            "let NCCL use TCP sockets on all machines, many times slower: only the service can give a container the interface",
        ),
        Place::Pod => finding
            .remedy(format!(
                "give the pod the interface besides the `rdma/…` resource: the node's network (`hostNetwork: true` with \
                 `dnsPolicy: ClusterFirstWithHostNet`), or an \
                 interface of this adapter by Multus (a NetworkAttachmentDefinition of the type macvlan, host-device or SR-IOV, \
                 named in the annotation k8s.v1.cni.cncf.io/networks); {SOCKETS}"
            ))
            .command("hostNetwork: true")
            .command("dnsPolicy: ClusterFirstWithHostNet"),
        Place::Lxc => finding.remedy(format!(
            "move the adapter's interface into the container (LXD and Incus: a device of the type nic with nictype=physical; Proxmox: \
             `lxc.net.1.type: phys` and `lxc.net.1.link`); {SOCKETS}"
        )),
        _ => {
            let remedy = format!(
                "start the container with the host's network, on all machines of the run; a bridge or macvlan of another \
                 interface is not enough; {SOCKETS}"
            );
            start_with(host, finding.remedy(remedy), Start::Infiniband)
        }
    };
    // It is the other way: who did both would have no RoCE.
    let has_way = host.rental().is_none() && host.place() != Place::Lxc;
    if has_way { finding } else { finding.command("export NCCL_IB_DISABLE=1") }
}

/// An adapter cannot read the memory of a GPU by itself: NCCL copies through the machine's memory. The open kernel module
/// offers it by a means of the kernel (DMA-BUF); the proprietary one needs another module.
fn without_gpudirect(host: &Host, port: &InfinibandPort) -> Option<Finding> {
    const MODULE: &str = "nvidia_peermem";
    let module = host.text("/proc/driver/nvidia/version").ok()??;
    let kernel = host.kernel_release().ok().and_then(|kernel| Version::find(&kernel))?;
    let has_other_means = module.contains("Open Kernel Module") && !kernel.is_below(&[5, 12]);
    let names: Vec<String> = host.gpus().ok()?.iter().filter_map(|gpu| gpu.name().ok()).collect();
    let is_for_it = |name: &String| !name.contains("GeForce") && !name.contains("TITAN");
    if has_other_means || names.is_empty() || !names.iter().all(is_for_it) || host.is_virtual_machine() {
        return None;
    }
    let is_loaded = [MODULE, "nv_peer_mem"].iter().any(|name| host.has_module(name) != Ok(false));
    if is_loaded {
        return None;
    }
    let title = format!(
        "{} cannot read the memory of the GPUs: the kernel module nvidia-peermem is not loaded",
        port.adapter
    );
    let finding = Finding::new("network.no-gpudirect", title);
    if host.is_container() || host.job().is_some() {
        return Some(finding.remedy(
            "ask the administrator of the node to load the kernel module nvidia-peermem, or to install the driver with its open \
             kernel module, which needs none (GPU Operator: `driver.rdma.enabled=true`)",
        ));
    }
    Some(
        finding
            .command("sudo modprobe nvidia-peermem")
            .command("echo nvidia-peermem | sudo tee /etc/modules-load.d/nvidia-peermem.conf"),
    )
}

/// No adapter of InfiniBand has a link. On a machine of its own, nobody may have connected it.
fn without_link(host: &Host, ports: &[InfinibandPort]) -> Option<Finding> {
    let is_down = |port: &&InfinibandPort| {
        port.layer.as_deref() == Some("InfiniBand")
            && port.is_active() == Some(false)
            && port.has_link == Some(false)
    };
    let port = ports.iter().find(is_down).filter(|_| ports.iter().all(|port| port.is_active().is_some()))?;
    let state = port.state.as_deref().unwrap_or("DOWN");
    let title = format!("{} has no link on this machine: its port {} is {state}", named(port), port.number);
    let finding = Finding::new("network.infiniband-unusable", title).because(
        "NCCL uses Ethernet on this machine, and InfiniBand on machines whose ports have a link: the connection between them then fails, \
         and without any InfiniBand a run over several machines is many times slower",
    );
    let off = "export NCCL_IB_DISABLE=1  # on all machines of the run";
    if host.job().is_some() {
        // Its remedy names another node for the job.
        return Some(
            restart(host, finding)
                .remedy(
                    "run on other nodes, and tell the administrator of this one that its InfiniBand has no link (cable, switch port); or \
                     turn InfiniBand off on all machines, which is slower",
                )
                .command(off),
        );
    }
    let status = if host.batch_system().is_some() { Status::Warning } else { Status::Info };
    Some(
        finding
            .status(status)
            .remedy(
                "check the cable and the port of the switch (`ibstat` shows the physical state); until then turn InfiniBand off on all \
                 machines, which is slower; nothing if no machine of the run uses InfiniBand",
            )
            .command(off),
    )
}

/// A cable, but no subnet manager: until one runs in the network, ports of InfiniBand stay in the state INIT.
fn subnet_manager(host: &Host, ports: &[InfinibandPort]) -> Option<Finding> {
    // The switches of these boards have such ports, which need none.
    let is_switch_board = host.nvml_state() == Ok(NvmlState::Ready)
        && host.gpus().is_ok_and(|gpus| {
            let names = gpus.iter().filter_map(|gpu| gpu.name().ok());
            names
                .into_iter()
                .any(|name| (name.contains("B200") || name.contains("B300")) && !is_of_grace(&name))
        });
    let is_waiting = |port: &&InfinibandPort| {
        let layer = port.layer.as_deref();
        port.state.as_deref() == Some("INIT") && layer == Some("InfiniBand") && port.has_link != Some(false)
    };
    let port = ports.iter().find(is_waiting).filter(|_| !is_switch_board)?;
    let title =
        format!("port {} of {} has a cable, but no subnet manager has set it up", port.number, port.adapter);
    let finding = Finding::new("network.subnet-manager", title).seen(format!("{}: INIT", port.adapter));
    if host.place() != Place::Machine || !host.is_own_machine() || host.guest().is_some() {
        return Some(
            finding.remedy("ask the administrator of this network to start a subnet manager (opensm)"),
        );
    }
    let package = match host.family() {
        Some(Family::Arch) => Some("sudo pacman -Syu opensm".to_owned()),
        _ => host.package_command([
            "sudo apt install opensm",
            "sudo dnf install opensm",
            "sudo zypper install opensm",
            "",
        ]),
    };
    let finding = package.into_iter().filter(|command| !command.is_empty()).fold(finding, Finding::command);
    Some(finding.command(crate::remedies::service::enable(host, "opensm")))
}
