//! Catalogue entries about networks and ports.

use super::{Area, Entry, Fix};
use crate::status::Status;

pub(super) const ROWS: &[Entry] = &[
    Entry {
        id: "network.loopback",
        area: Area::Network,
        status: Status::Ok,
        title: "Ranks can connect on this machine",
        cause: "the ranks of a run connect through a local port",
        remedy: None,
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.no-loopback",
        area: Area::Network,
        status: Status::Error,
        title: "Programs may not listen on 127.0.0.1",
        cause: "the ranks of a run connect through a local port",
        remedy: Some("allow programs to listen on 127.0.0.1; a firewall or sandbox blocks it"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.no-internet",
        area: Area::Network,
        status: Status::Warning,
        title: "The download servers cannot be reached",
        cause: "libtorch is not installed yet, and the name of the server that has it does not resolve here: \
                there is no Internet, or no name server",
        remedy: Some(
            "connect this machine, set HTTPS_PROXY if it reaches the Internet through a proxy, or copy libtorch \
             from another machine and set LIBTORCH",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.proxy",
        area: Area::Network,
        status: Status::Warning,
        title: "No program answers at the proxy's address",
        cause: "downloads go through the proxy that this variable names, so they fail with `connection refused`",
        remedy: Some("start the proxy, or unset the variable if this network needs none"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.proxy-unknown",
        area: Area::Network,
        status: Status::Warning,
        title: "A proxy has an unknown scheme",
        cause: "yolo ignores this proxy and connects directly; pip and other programs fail",
        remedy: Some(
            "name the proxy's protocol, with the user name and password if it has them; or unset the variable if downloads \
             work without a proxy",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.certificates",
        area: Area::Network,
        status: Status::Warning,
        title: "There are no certificates for downloads",
        cause: "downloads verify servers by the certificates of authorities; without them every download over HTTPS fails",
        remedy: Some("install the package ca-certificates"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.port-taken",
        area: Area::Network,
        status: Status::Error,
        title: "The run's port is in use",
        cause: "all machines of a run connect through one port, which no other program may use",
        remedy: Some(
            "use another port, with `--master-port` on all machines; or stop that process if it is left over from an \
             earlier run",
        ),
        fix: None,
        detects: &["port-in-use"],
    },
    Entry {
        id: "network.port-privileged",
        area: Area::Network,
        status: Status::Error,
        title: "The run's port is reserved for root",
        cause: "all machines of a run connect through one port, and only root may listen on low ports",
        remedy: Some("use another port"),
        fix: None,
        detects: &["port-privileged"],
    },
    Entry {
        id: "network.port-ephemeral",
        area: Area::Network,
        status: Status::Info,
        title: "The run's port may be taken by another program",
        cause: "the kernel assigns ports in this range to outgoing connections, so the port may be in use \
                when the run starts",
        remedy: Some("choose a port below that range, the same on all machines"),
        fix: None,
        detects: &["port-race"],
    },
    Entry {
        id: "network.ras-port",
        area: Area::Network,
        status: Status::Info,
        title: "NCCL's RAS port is in use",
        cause: "NCCL 2.24 and later answers on this port which ranks of a run are behind (RAS); with two runs on one machine, \
                only one of them can be asked. `yolo` gives each of its runs a port of its own",
        remedy: Some("nothing for `yolo`; for other programs, choose another port, or set NCCL_RAS_ENABLE=0"),
        fix: None,
        detects: &["nccl-ras-port-shared"],
    },
    Entry {
        id: "network.interface-guess",
        area: Area::Network,
        status: Status::Warning,
        title: "NCCL may choose the wrong network interface",
        cause: "NCCL takes the first interface that is not docker, lo or virbr; if it picks a bridge, \
                container interface or tunnel, the ranks cannot connect and wait until they time out",
        remedy: Some("set NCCL_SOCKET_IFNAME to the interface that is connected to the other machines"),
        fix: None,
        detects: &["nccl-ifname-veth"],
    },
    Entry {
        id: "network.one-subnet",
        area: Area::Network,
        status: Status::Warning,
        title: "Two network interfaces are in the same subnet",
        cause: "Linux sends everything to this subnet through one of them, whichever address the ranks announce; connections \
                then come from an unexpected address, which a firewall may reject, or use the slower interface",
        remedy: Some(
            "give the route of the interface that the run does not use a larger metric, or move one of the two to another \
             subnet on all machines",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.interface-unknown",
        area: Area::Network,
        status: Status::Error,
        title: "NCCL_SOCKET_IFNAME names an interface that does not exist",
        cause: "ranks use only the interfaces in this variable; if none exists, NCCL fails with \"no \
                socket interface found\"",
        remedy: Some("set NCCL_SOCKET_IFNAME to an existing interface, or unset it"),
        fix: Some(Fix {
            does: "set the variable to a better interface, or unset it, in yolo's variables file, which you then source",
            undo: "`yolo undo` restores that file",
        }),
        detects: &["nccl-ifname-wrong"],
    },
    Entry {
        id: "network.interface-loopback",
        area: Area::Network,
        status: Status::Error,
        title: "NCCL_SOCKET_IFNAME allows only the loopback interface",
        cause: "through lo, a machine reaches only itself",
        remedy: Some("set NCCL_SOCKET_IFNAME to the interface that is connected to the other machines"),
        fix: Some(Fix {
            does: "set the variable to a better interface, or unset it, in yolo's variables file, which you then source",
            undo: "`yolo undo` restores that file",
        }),
        detects: &["nccl-ifname-lo-multinode"],
    },
    Entry {
        id: "network.hostname-loopback",
        area: Area::Network,
        status: Status::Info,
        title: "This machine's host name resolves to a loopback address",
        cause: "PyTorch's gloo announces the address of the host name to the other machines; with 127.0.1.1, \
                which Debian, Ubuntu and WSL write into /etc/hosts, the others connect to themselves and fail \
                with \"Connection refused\". `yolo` announces the address by which this machine reaches \
                machine 0",
        remedy: Some(
            "nothing for `yolo`; for PyTorch's own ranks, set GLOO_SOCKET_IFNAME to the interface that is \
             connected to the other machines",
        ),
        fix: None,
        detects: &["gloo-loopback-hostname"],
    },
    Entry {
        id: "network.hostname-unknown",
        area: Area::Network,
        status: Status::Info,
        title: "This machine's host name does not resolve",
        cause: "PyTorch's gloo looks up the host name to find this machine's address; `yolo` does not",
        remedy: Some(
            "nothing for `yolo`; for PyTorch's own ranks, set GLOO_SOCKET_IFNAME to the interface that is \
             connected to the other machines, or correct /etc/hosts",
        ),
        fix: None,
        detects: &["master-addr-unresolvable"],
    },
    Entry {
        id: "network.hostname-letters",
        area: Area::Network,
        status: Status::Warning,
        title: "gloo cannot use this machine's host name",
        cause: "gloo looks up the host name, and fails if it is empty or has non-ASCII letters",
        remedy: Some("give the machine a host name of ASCII letters, digits and hyphens"),
        fix: None,
        detects: &["gloo-empty-hostname"],
    },
    Entry {
        id: "network.master-unknown",
        area: Area::Network,
        status: Status::Error,
        title: "The master address does not resolve",
        cause: "all ranks connect to the address of machine 0",
        remedy: Some("on all machines, use machine 0's address as `ip -4 addr` shows it there"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.ipv6",
        area: Area::Network,
        status: Status::Warning,
        title: "The master address resolves to IPv6 only",
        cause: "a name that resolves to an IPv6 address cannot be reached if IPv6 is disabled",
        remedy: Some("use the IPv4 address of machine 0"),
        fix: None,
        detects: &["ipv6-disabled-or-broken"],
    },
    Entry {
        id: "network.infiniband-unusable",
        area: Area::Network,
        status: Status::Warning,
        title: "NCCL cannot use an InfiniBand adapter",
        cause: "the kernel shows the adapter, in containers too, but NCCL also needs the library libibverbs and the device \
                files in /dev/infiniband; without them, the machines communicate through TCP sockets, many times slower",
        remedy: Some("install the library, or start the container with the device files"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.sidecar",
        area: Area::Network,
        status: Status::Warning,
        title: "A service mesh takes the connections of a pod",
        cause: "its proxy (sidecar) handles every connection of the pod, and those of ranks are neither HTTP nor on ports that it \
                knows: they connect and then hang, or end with `Connection closed by peer` or `recvValue failed`",
        remedy: Some(
            "start all pods of the run without the proxy: set this in the template of each kind of pod (of a PyTorchJob in those of \
             Master and Worker), or exclude all ports (for Istio the annotations \
             traffic.sidecar.istio.io/excludeInboundPorts and excludeOutboundPorts, for Linkerd \
             config.linkerd.io/skip-inbound-ports and skip-outbound-ports); if the policy of the namespace forbids that, ask \
             the administrator of the cluster",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.no-gpudirect",
        area: Area::Network,
        status: Status::Info,
        title: "A network adapter cannot read the memory of GPUs",
        cause: "between machines, NCCL copies through system memory instead of having the adapter read from the GPU (GPUDirect \
                RDMA), which is slower; with the proprietary kernel module of the driver this needs the module nvidia-peermem",
        remedy: Some(
            "load the module, now and at each start; if it says `Invalid argument`, reinstall the driver, because it was built \
             before the adapter's own driver (OFED); or install the driver with its open kernel module, which needs none",
        ),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.subnet-manager",
        area: Area::Network,
        status: Status::Warning,
        title: "An InfiniBand port waits for a subnet manager",
        cause: "a network of InfiniBand needs one program, the subnet manager, on a switch or on one of the machines; without \
                it all ports stay in the state INIT, and the machines communicate through TCP sockets",
        remedy: Some("start a subnet manager on one machine of this network, or on its switch"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.efa-plugin",
        area: Area::Network,
        status: Status::Warning,
        title: "NCCL cannot use Amazon's network adapter",
        cause: "NCCL uses the Elastic Fabric Adapter (EFA) only through the plugin aws-ofi-nccl; without it, the machines \
                communicate through TCP sockets, many times slower. The security group must allow all traffic to and from itself",
        remedy: Some("install the plugin, and let the loader find it"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.nccl-plugin",
        area: Area::Network,
        status: Status::Info,
        title: "NCCL loads a plugin for networks",
        cause: "NCCL takes a library of this name that the loader finds, also one that an image or a node of a cloud brings for another \
                version of NCCL or another network: a run over several machines then ends with an internal error, crashes or hangs, above \
                all if only some of the machines have it",
        remedy: Some("if a run ends or hangs when it starts, do without the plugin, on all machines"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.roce-stray-port",
        area: Area::Network,
        status: Status::Warning,
        title: "A RoCE port leads nowhere",
        cause: "without NCCL_IB_HCA, NCCL uses all ports that are active; a port without an address in a network of the other \
                machines cannot connect: `ibv_modify_qp failed with 110 Connection timed out`, or the run hangs",
        remedy: Some("name the adapters that lead to the other machines, on each machine its own"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.slow-interface",
        area: Area::Network,
        status: Status::Warning,
        title: "The run uses a slow network",
        cause: "all ranks use the network of the address of machine 0, in which every step exchanges all gradients",
        remedy: Some("use machine 0's address in the fast network as --master-addr, on all machines"),
        fix: None,
        detects: &[],
    },
    Entry {
        id: "network.firewall",
        area: Area::Network,
        status: Status::Warning,
        title: "A firewall is active on this machine",
        cause: "ranks listen on random ports, so opening --master-port is not enough; blocked ranks wait \
                until they time out, or fail with `No route to host`",
        remedy: Some("allow all traffic from the network of the other machines"),
        fix: None,
        detects: &["firewall-multinode"],
    },
];
