//! Every row of the comparison: two machines that differ in it, and what the difference means. All machines
//! are the server with eight A100 of `linux-8-gpus.json`, patched.

use serde_json::{Value, json};
use yolo_checks::Status;

use crate::support::{base_recording, merge};

/// A row: its id, patches to machines a and b, the status of the difference, and text that its reason
/// or its remedy contains.
pub(crate) type Row = (&'static str, Value, Value, Status, &'static str);

fn env(name: &str, value: &str) -> Value {
    json!({ "env": { name: value } })
}

pub(crate) fn run(options: Value) -> Value {
    let mut intent = json!({ "run": true, "devices": [0, 1] });
    merge(&mut intent, &options);
    json!({ "intent": intent })
}

/// A run on a data set whose YAML file has these contents and whose folder has these images.
fn data(yaml: &str, images: &[&str]) -> Value {
    json!({
        "intent": { "run": true, "devices": [0], "data": "birds.yaml" },
        "files": { "/home/mara/birds/birds.yaml": yaml },
        "folders": { "/home/mara/birds/images": images },
    })
}

fn gpus(patch: Value) -> Value {
    let all: serde_json::Map<String, Value> = (0..8).map(|gpu| (gpu.to_string(), patch.clone())).collect();
    json!({ "nvml": { "devices": all } })
}

const ROOT: &str = "/home/mara/.local/share/yolo/libtorch/2.11.0-cu130";

/// All machines are the server with eight A100 of `linux-8-gpus.json`, patched.
fn platform_rows() -> Vec<Row> {
    let none = Value::Null;
    vec![
        (
            "yolo",
            json!({ "yolo": "0.1.0" }),
            json!({ "yolo": "0.2.0" }),
            Status::Error,
            "same version of yolo",
        ),
        ("os", json!({}), json!({ "os": "windows" }), Status::Error, "Linux only"),
        ("arch", json!({}), json!({ "arch": "aarch64" }), Status::Error, "x86-64 only"),
        (
            "wsl",
            json!({}),
            json!({ "files": { "/proc/sys/kernel/osrelease": "6.6.87.2-microsoft-standard-WSL2\n" } }),
            Status::Warning,
            "behind NAT",
        ),
        (
            "wsl",
            json!({}),
            json!({ "files": { "/proc/sys/kernel/osrelease": "4.4.0-19041-Microsoft\n" } }),
            Status::Error,
            "WSL 1 has neither",
        ),
        (
            "container",
            json!({}),
            json!({ "stats": { "/.dockerenv": { "kind": "file" } } }),
            Status::Warning,
            "--network host",
        ),
        ("container", none, env("APPTAINER_CONTAINER", "a.sif"), Status::Info, "can reach"),
        ("system", json!({}), json!({ "system": { "name": "Fedora 43" } }), Status::Info, "glibc"),
        (
            "kernel",
            json!({}),
            json!({ "files": { "/proc/sys/kernel/osrelease": "6.9.1\n" } }),
            Status::Info,
            "kernel",
        ),
        ("cpu", json!({}), json!({ "system": { "cpu": "Intel(R) Xeon(R)" } }), Status::Info, "load"),
        (
            "cpu",
            run(json!({ "devices": [], "cpu": true })),
            {
                let mut patch = run(json!({ "devices": [], "cpu": true }));
                merge(&mut patch, &json!({ "system": { "cpu": "Intel(R) Xeon(R)" } }));
                patch
            },
            Status::Warning,
            "slowest CPU",
        ),
    ]
}

fn library_rows() -> Vec<Row> {
    let build = |version: &str| json!({ "files": { format!("{ROOT}/build-version"): version } });
    let driver = |version: &str| json!({ "nvml": { "driver_version": version } });
    vec![
        ("libtorch-version", json!({}), build("2.10.0+cu130\n"), Status::Error, "c10d"),
        (
            "libtorch-variant",
            json!({}),
            build("2.11.0+cu126\n"),
            Status::Warning,
            "yolo setup --libtorch cu130",
        ),
        (
            "libtorch-variant",
            json!({}),
            json!({ "folders": { format!("{ROOT}/lib"): ["libtorch_cpu.so"] } }),
            Status::Error,
            "the CPU variant on b cannot use GPUs",
        ),
        // Which variant suits all machines is not known.
        (
            "libtorch-variant",
            gpus(json!({ "name": "NVIDIA X", "compute_capability": { "error": 3 } })),
            build("2.11.0+cu126\n"),
            Status::Warning,
            "`yolo setup --libtorch VARIANT`",
        ),
        // No variant has kernels for the P100 and the B200.
        (
            "libtorch-variant",
            gpus(json!({ "name": "Tesla P100-PCIE-16GB", "compute_capability": "6.0" })),
            {
                let mut patch = build("2.11.0+cu126\n");
                merge(&mut patch, &gpus(json!({ "name": "NVIDIA B200", "compute_capability": "10.0" })));
                patch
            },
            Status::Warning,
            "update the older drivers",
        ),
        (
            "libtorch-variant",
            json!({}),
            json!({ "places": { "libtorch": null } }),
            Status::Warning,
            "until b has downloaded libtorch",
        ),
        // The remedy is a variant that the older of the two drivers runs.
        (
            "libtorch-variant",
            json!({}),
            {
                let mut patch = build("2.11.0+cu126\n");
                merge(&mut patch, &driver("550.54.14"));
                patch
            },
            Status::Warning,
            "yolo setup --libtorch cu128",
        ),
        (
            "nccl",
            json!({}),
            json!({ "libraries": { "libnccl.so.2": {
                "path": "/opt/nccl/libnccl.so.2", "version": "2.27.5", "via": "LD_LIBRARY_PATH"
            } } }),
            Status::Error,
            "another version of NCCL",
        ),
        ("driver", json!({}), driver("590.44.01"), Status::Info, "run the libtorch variants"),
        (
            "driver",
            json!({}),
            driver("550.54.14"),
            Status::Warning,
            "cu130, the variant on a, needs driver 580 or newer; b is older",
        ),
    ]
}

fn gpu_rows() -> Vec<Row> {
    let two = base_recording("two-a6000")["nvml"].clone();
    let old = gpus(json!({ "name": "Tesla P100-PCIE-16GB", "compute_capability": "6.0" }));
    let new = gpus(json!({ "name": "NVIDIA B200", "compute_capability": "10.0" }));
    vec![
        ("gpu-count", json!({}), json!({ "nvml": two }), Status::Info, "one rank"),
        ("gpu-count", json!({}), json!({ "nvml": null }), Status::Error, "CPUs of b cannot join"),
        ("gpu-model", json!({}), gpus(json!({ "name": "NVIDIA H100" })), Status::Warning, "slowest GPU"),
        (
            "gpu-memory",
            json!({}),
            json!({ "nvml": { "devices": { "3": { "memory": { "total": 42_949_672_960_u64 } } } } }),
            Status::Warning,
            "fits into the GPUs of b",
        ),
        (
            "compute-capability",
            json!({}),
            gpus(json!({ "compute_capability": "8.6" })),
            Status::Info,
            "one variant",
        ),
        ("compute-capability", old, new, Status::Warning, "no single variant"),
        ("mig", json!({}), gpus(json!({ "mig_mode": true })), Status::Warning, "nvidia-smi -mig 0"),
        (
            "pcie",
            json!({}),
            json!({ "nvml": { "devices": { "2": { "pcie_width_max": 4 } } } }),
            Status::Warning,
            "more lanes",
        ),
        ("power-limit", json!({}), gpus(json!({ "power_limit": 300_000 })), Status::Warning, "lower clocks"),
        (
            "power-limit",
            json!({}),
            gpus(json!({ "name": "NVIDIA H100", "power_limit": 700_000 })),
            Status::Info,
            "its own limit",
        ),
    ]
}

fn network_rows() -> Vec<Row> {
    let interface =
        |name: &str| json!({ "interfaces": [{ "name": name, "up": true, "addresses": ["10.20.0.9/16"] }] });
    let mtu = |mtu: &str| {
        json!({ "interfaces": [{ "name": "eth0", "up": true, "addresses": ["10.20.0.9/16"] }],
            "files": { "/sys/class/net/eth0/mtu": mtu } })
    };
    let adapters = |names: &[&str]| json!({ "folders": { "/sys/class/infiniband": names } });
    vec![
        ("network", json!({}), interface("wlp3s0"), Status::Warning, "slower network"),
        ("mtu", mtu("1500\n"), mtu("9000\n"), Status::Info, "agree on the smaller"),
        ("network-interfaces", json!({}), interface("eno1"), Status::Info, "by address"),
        ("infiniband", adapters(&[]), adapters(&["mlx5_0"]), Status::Warning, "NCCL_IB_DISABLE=1"),
        (
            "infiniband",
            adapters(&["mlx5_0", "mlx5_1"]),
            adapters(&["mlx5_0"]),
            Status::Warning,
            "NCCL_IB_HCA",
        ),
    ]
}

fn option_rows() -> Vec<Row> {
    let names = |last: &str| {
        data(&format!("train: images\nval: images\nnames: [crow, rook, {last}]\n"), &["a.jpg", "b.jpg"])
    };
    let with = |option: &str, value: Value| run(json!({ option: value }));
    let agree = "same value on all machines";
    vec![
        ("nnodes", with("nnodes", json!(2)), with("nnodes", json!(3)), Status::Error, agree),
        ("master-port", with("master_port", json!(29500)), run(json!({})), Status::Error, agree),
        ("backend", with("backend", json!("nccl")), with("backend", json!("gloo")), Status::Error, agree),
        ("batch", with("batch", json!(64)), with("batch", json!(32)), Status::Error, agree),
        ("imgsz", with("image_size", json!(640)), with("image_size", json!(320)), Status::Error, agree),
        ("cfg", with("model", json!("yolov5s")), with("model", json!("yolov5m")), Status::Error, agree),
        (
            "weights",
            with("weights", json!("/a/n.pt")),
            with("weights", json!("/a/s.pt")),
            Status::Error,
            agree,
        ),
        ("data", with("data", json!("a.yaml")), with("data", json!("b.yaml")), Status::Error, agree),
        ("batch-split", with("batch_split", json!("16,8")), run(json!({})), Status::Error, agree),
        ("sync-bn", with("sync_bn", json!(true)), run(json!({})), Status::Error, agree),
        ("multi-scale", with("multi_scale", json!(true)), run(json!({})), Status::Error, agree),
        ("amp", with("amp", json!(true)), run(json!({})), Status::Error, agree),
        ("cache", with("cache", json!("ram")), run(json!({})), Status::Info, "its own way"),
        ("workers", with("workers", json!(4)), with("workers", json!(8)), Status::Info, "loaders"),
        ("class-names", names("jay"), names("daw"), Status::Error, "class 2 is `jay` on a and `daw` on b"),
        (
            "train-images",
            names("jay"),
            data("train: images\nval: images\nnames: [crow, rook, jay]\n", &["a.jpg"]),
            Status::Error,
            "complete data set",
        ),
    ]
}

fn resource_rows() -> Vec<Row> {
    let memory = |kib: u64| {
        let text = [format!("MemTotal: {kib} kB"), format!("MemAvailable: {kib} kB")];
        json!({ "files": { "/proc/meminfo": text } })
    };
    let shared = |bytes: u64| json!({ "filesystems": { "/dev/shm": { "total": bytes } } });
    let limits = |files: &str, locked: &str| {
        let text = [
            format!("Max open files            {files}       {files}      files"),
            format!("Max locked memory         {locked}     {locked}    bytes"),
        ];
        json!({ "files": { "/proc/self/limits": text } })
    };
    let with_adapter = |mut patch: Value| {
        merge(&mut patch, &json!({ "folders": { "/sys/class/infiniband": ["mlx5_0"] } }));
        patch
    };
    vec![
        ("cores", json!({}), json!({ "system": { "cores": 64 } }), Status::Info, "8 loader threads"),
        (
            "cores",
            json!({}),
            json!({ "system": { "cores": 16 } }),
            Status::Warning,
            "b has 2.0 cores per rank",
        ),
        ("memory", memory(64 << 20), memory(60 << 20), Status::Info, "about the same"),
        ("memory", memory(64 << 20), memory(16 << 20), Status::Warning, "b may lack memory"),
        (
            "swap",
            json!({}),
            json!({ "files": { "/proc/meminfo": ["MemTotal: 1056000000 kB", "SwapTotal: 8388608 kB"] } }),
            Status::Info,
            "swaps",
        ),
        ("shared-memory", json!({}), shared(64 << 30), Status::Info, "eight ranks"),
        ("shared-memory", json!({}), shared(64 << 20), Status::Warning, "b has less than 1 GiB"),
        (
            "disk",
            json!({}),
            json!({ "filesystems": { "/home/mara/birds": { "type": "nfs4" } } }),
            Status::Info,
            "a finding",
        ),
        ("open-files", json!({}), limits("4096", "8400318464"), Status::Info, "too low"),
        ("locked-memory", json!({}), limits("65536", "65536"), Status::Info, "only InfiniBand"),
        (
            "locked-memory",
            with_adapter(json!({})),
            with_adapter(limits("65536", "unlimited")),
            Status::Warning,
            "ulimit -l unlimited",
        ),
    ]
}

fn variable_rows() -> Vec<Row> {
    let row = |id, name: &str, status, text| (id, json!({}), env(name, "1"), status, text);
    vec![
        row("nccl-algo", "NCCL_ALGO", Status::Warning, "wait for each other forever"),
        row("nccl-proto", "NCCL_PROTO", Status::Warning, "wait for each other forever"),
        row("nccl-net", "NCCL_NET", Status::Warning, "wait for each other forever"),
        row("nccl-ib-disable", "NCCL_IB_DISABLE", Status::Warning, "wait for each other forever"),
        row("nccl-p2p-disable", "NCCL_P2P_DISABLE", Status::Warning, "slower path"),
        row("nccl-shm-disable", "NCCL_SHM_DISABLE", Status::Warning, "slower path"),
        row("cuda-launch-blocking", "CUDA_LAUNCH_BLOCKING", Status::Warning, "after each operation"),
        row("cuda-visible-devices", "CUDA_VISIBLE_DEVICES", Status::Info, "its own numbers"),
        row("omp-num-threads", "OMP_NUM_THREADS", Status::Info, "little on the CPU"),
        row("nccl-socket-ifname", "NCCL_SOCKET_IFNAME", Status::Info, "its own machine"),
        row("gloo-socket-ifname", "GLOO_SOCKET_IFNAME", Status::Info, "its own machine"),
    ]
}

/// All rows.
pub(crate) fn rows() -> Vec<Row> {
    [
        platform_rows(),
        library_rows(),
        gpu_rows(),
        network_rows(),
        option_rows(),
        resource_rows(),
        variable_rows(),
    ]
    .concat()
}
