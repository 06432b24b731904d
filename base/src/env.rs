//! The names of the environment variables that `yolo` reads or sets, each with its meaning. Code
//! uses the constants, never a literal, and `docs/environment.md` is generated from [`ALL`].
//!
//! Variables of other programs that the doctor only reports are not here, but in the checks.

/// Who sets a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user sets it, to change what `yolo` does.
    User,
    /// A standard variable of the system or of another tool, which `yolo` respects.
    Standard,
    /// `yolo` or a launcher sets it for the ranks.
    Rank,
    /// `yolo` sets it for other programs that it runs.
    Tool,
    /// Tests and benchmarks set it.
    Test,
}

/// One variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Who sets it.
    pub role: Role,
    /// What it means, as a phrase without a period.
    pub meaning: &'static str,
}

/// Declares a constant for each variable, and the table of all of them.
macro_rules! variables {
    ($($name:ident: $role:ident = $meaning:literal;)*) => {
        $(
            #[allow(non_upper_case_globals, reason = "some names are in lower or mixed case")]
            #[doc = $meaning]
            pub const $name: &str = stringify!($name);
        )*

        /// Every variable, in the order of this file.
        pub const ALL: &[Variable] =
            &[$(Variable { name: $name, role: Role::$role, meaning: $meaning }),*];
    };
}

variables! {
    YOLO_HOME: User = "one folder for everything that `yolo` installs, instead of the platform's folders";
    YOLO_MIRROR: User = "an address or folder with wheels, weights and data set archives under their own names";
    YOLO_OFFLINE: User = "download nothing, like `--offline`";
    YOLO_TRAINER: User = "the `yolo-trainer` program to start";
    YOLO_WSL: User = "the `wsl.exe` to use";
    YOLO_FROM_WINDOWS: Tool = "what `yolo.exe` tells the `yolo` that it starts in WSL: its version, the distribution and the working folder";
    YOLO_DRIVE_C: Tool = "where WSL mounts drive C:, which `yolo.exe` lets WSL fill in; likewise with the letter of every other drive";
    WSLENV: Tool = "the names of the variables that WSL passes to Linux; `yolo.exe` adds `YOLO_*`, proxies and package indexes";
    WSL_DISTRO_NAME: Standard = "the distribution, which WSL sets";
    YOLO_JOIN_SECONDS: User = "seconds for which the machines of `--nnodes`, or the ranks of `yolo rank`, wait for each other to start, instead of 600 or 900";
    LIBTORCH: User = "a libtorch 2.11, or Python's `torch` folder, to use instead of an installed variant";
    OMP_NUM_THREADS: Standard = "CPU threads per rank, instead of an equal share of the cores";
    CUBLAS_WORKSPACE_CONFIG: Standard = "memory for cuBLAS; unless set, ranks get the value with which its results do not vary";
    GLIBC_TUNABLES: Standard = "settings of the C library; unless set, ranks use huge pages";
    LD_LIBRARY_PATH: Standard = "folders with libraries; ranks get the libtorch variant's folder first";
    HOME: Standard = "the user's home folder";
    USERPROFILE: Standard = "the user's home folder, on Windows";
    USERNAME: Standard = "the user's name, on Windows";
    SystemRoot: Standard = "the folder of Windows, which contains `wsl.exe`";
    USER: Standard = "the user's name, if the system does not report it";
    PATH: Standard = "folders with programs";
    DISPLAY: Standard = "the X display that `yolo predict screen` reads";
    TERM_PROGRAM: Standard = "the terminal, from which `--view-img` knows how it shows pictures";
    LC_TERMINAL: Standard = "like `TERM_PROGRAM`, also on another machine";
    XDG_DATA_HOME: Standard = "the parent of the data folder on Linux, instead of `~/.local/share`";
    XDG_CONFIG_HOME: Standard = "the parent of the settings folder on Linux, instead of `~/.config`";
    XDG_CACHE_HOME: Standard = "the parent of the cache folder on Linux, instead of `~/.cache`";
    TMPDIR: Standard = "the folder for temporary files";
    NETRC: Standard = "the file with passwords for downloads, instead of `~/.netrc`";
    HTTPS_PROXY: Standard = "the proxy for https addresses";
    HTTP_PROXY: Standard = "the proxy for http addresses";
    ALL_PROXY: Standard = "the proxy for all addresses";
    https_proxy: Standard = "like `HTTPS_PROXY`, which takes precedence";
    http_proxy: Standard = "like `HTTP_PROXY`, likewise";
    all_proxy: Standard = "like `ALL_PROXY`, likewise";
    NO_PROXY: Standard = "hosts to reach without a proxy";
    SSL_CERT_FILE: Standard = "certificates to trust instead of the system's";
    PIP_INDEX_URL: Standard = "the package index of pip; its user name and password are used for downloads";
    PIP_EXTRA_INDEX_URL: Standard = "further package indexes of pip, likewise";
    UV_DEFAULT_INDEX: Standard = "the package index of uv, likewise";
    UV_INDEX: Standard = "further package indexes of uv, likewise";
    UV_INDEX_URL: Standard = "the older name of `UV_DEFAULT_INDEX`";
    UV_EXTRA_INDEX_URL: Standard = "the older name of `UV_INDEX`";
    CXX: Standard = "the C++ compiler that builds the trainer";
    CARGO: Standard = "the cargo that builds the trainer; `cargo run` sets it";
    CARGO_MANIFEST_DIR: Standard = "set by `cargo run`; the build of the trainer does not inherit it, nor cargo's part of `LD_LIBRARY_PATH`";
    CARGO_PRIMARY_PACKAGE: Standard = "set by cargo; the build of the trainer does not inherit it";
    CARGO_CRATE_NAME: Standard = "set by cargo, likewise";
    OUT_DIR: Standard = "set by cargo, likewise";
    LIBTORCH_CXX11_ABI: Standard = "a setting of tch; the build of the trainer does not inherit it";
    LIBTORCH_USE_PYTORCH: Standard = "a setting of tch, likewise";
    CUDA_VISIBLE_DEVICES: Rank = "the GPUs that a process may use";
    CUDA_DEVICE_ORDER: Rank = "the order in which CUDA numbers GPUs; ranks get nvidia-smi's order";
    RANK: Rank = "the number of this rank among all ranks";
    LOCAL_RANK: Rank = "the number of this rank on its machine";
    WORLD_SIZE: Rank = "the number of ranks on all machines";
    LOCAL_WORLD_SIZE: Rank = "the number of ranks on this machine";
    MASTER_ADDR: Rank = "the address of the machine where rank 0 runs";
    MASTER_PORT: Rank = "the port on which the ranks meet";
    TORCHELASTIC_USE_AGENT_STORE: Rank = "`True` if torchrun serves the store in which ranks meet; `yolo rank` reads it and the following ones";
    TORCHELASTIC_RUN_ID: Rank = "the name of torchrun's job";
    TORCHELASTIC_RESTART_COUNT: Rank = "how many times torchrun has restarted the ranks";
    KUBERNETES_SERVICE_HOST: Rank = "set in every pod of Kubernetes; `yolo rank` reads it to name its launcher";
    PET_NNODES: Rank = "the number of pods, in Kubernetes";
    PET_NODE_RANK: Rank = "the number of this pod";
    PET_NPROC_PER_NODE: Rank = "the number of ranks in a pod: 1, or `auto`, `gpu` or `cpu`, which `yolo rank` takes as 1";
    PET_MASTER_ADDR: Rank = "the address of the pod with rank 0";
    PET_MASTER_PORT: Rank = "the port on which the ranks meet, in Kubernetes";
    SLURM_PROCID: Rank = "the number of this rank, under Slurm's `srun`";
    SLURM_LOCALID: Rank = "the number of this rank on its node";
    SLURM_NODEID: Rank = "the number of this node";
    SLURM_NTASKS: Rank = "the number of ranks of a job";
    SLURM_STEP_NUM_TASKS: Rank = "the number of ranks of a step, which takes precedence";
    SLURM_NTASKS_PER_NODE: Rank = "the number of ranks per node";
    SLURM_STEP_TASKS_PER_NODE: Rank = "the numbers of ranks on the nodes of a step, which take precedence";
    SLURM_JOB_NODELIST: Rank = "the nodes of a job, of which the first serves the store";
    SLURM_STEP_NODELIST: Rank = "the nodes of a step, which take precedence";
    SLURM_JOB_ID: Rank = "the number of a job, from which the port of the store follows unless `MASTER_PORT` is set";
    SLURM_STEP_ID: Rank = "the number of a step, likewise";
    YOLO_STORE_PREFIX: Rank = "the part of a launcher's store in which the ranks of a run meet";
    YOLO_EVENTS_FD: Rank = "the file descriptor to which a rank writes its events";
    YOLO_RENDEZVOUS_FD: Rank = "the open socket on which rank 0 serves the store";
    YOLO_IMAGES_FD: Rank = "the file in memory in which the ranks of a machine share decoded images";
    YOLO_CPUS: Rank = "the CPUs on which a rank runs, such as `0-15`: those next to its device";
    YOLO_LIBTORCH_LIB: Rank = "the folder of the libtorch variant that a rank uses";
    NCCL_SOCKET_IFNAME: Rank = "the interface on which NCCL listens: loopback if all ranks are on one machine, else that of the route to machine 0";
    NCCL_MULTI_RANK_GPU_ENABLE: Rank = "`1` if ranks share a GPU: NCCL 2.30 and newer then allow it";
    NCCL_NVLS_ENABLE: Rank = "`0` if ranks share a GPU: NVLink SHARP does not support it";
    NCCL_MAX_CTAS: Rank = "thread blocks of NCCL, fewer if ranks share a GPU, because they need theirs at the same time";
    NCCL_P2P_DISABLE: Rank = "`1` on machines where GPUs that communicate directly are known to hang";
    NCCL_SHM_DISABLE: Standard = "`1`: NCCL uses sockets instead of shared memory, so `yolo doctor` does not ask for space in `/dev/shm`";
    NCCL_CUMEM_ENABLE: Rank = "`0` in WSL, where NCCL's newer way to share memory can fail";
    NCCL_CUMEM_HOST_ENABLE: Rank = "`0` in WSL, likewise, and where the NUMA node of a GPU has no CPUs or no memory";
    NCCL_RAS_ADDR: Rank = "where NCCL answers which ranks are behind: a free port of this machine, so that runs do not share one";
    TORCH_NCCL_DUMP_ON_TIMEOUT: Rank = "`1`: after a time-out, each rank writes its last collective operations";
    TORCH_FR_DUMP_TEMP_FILE: Rank = "where it writes them: in `logs` of the run folder";
    TORCH_NCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN: Rank = "`0`, so that no C++ stack buries the message of a failure";
    LC_ALL: Tool = "`C`, so that programs write English messages";
    WSL_UTF8: Tool = "`1`, so that `wsl.exe` writes UTF-8";
    PIP_USER: Tool = "`0`, because the setting is for installations only";
    PIP_REQUIRE_VIRTUALENV: Tool = "`0`, likewise";
    UV_PYTHON_DOWNLOADS: Tool = "`never`, because looking up wheels needs no Python";
    CUDA_MPS_PIPE_DIRECTORY: Test = "the folder by which ranks find the MPS daemon that the GPU acceptance kit starts";
    CUDA_MPS_LOG_DIRECTORY: Test = "the folder of that daemon's logs";
    YOLO_SILENCE_SECONDS: Test = "seconds without a sign of life after which a rank is reported as hung";
    YOLO_GOLDEN: Test = "the folder with numbers from the Python original";
    YOLO_TEST_PYTHON: Test = "a Python that can import torch, for tests that open our checkpoints in it";
    YOLO_TEST_LINUX: Test = "the Linux program for tests under Wine, and where `linux_side` runs it: path, address and a word";
    YOLO_TEST_DEVICE: Test = "the device of the tests named `on_device`: `cpu`, the default, or `cuda:0`";
    YOLO_TEST_NCCL_PLUGIN: Test = "the NCCL plugin to load in a test, into the libtorch with CUDA in `LD_LIBRARY_PATH`";
    YOLO_TEST_NCCL: Test = "a newer libnccl for the same test";
    YOLO_TEST_WEIGHTS: Test = "a weights file for the trainer's tests named `on_device`, instead of random weights";
    YOLO_TEST_DATA: Test = "a folder of labeled images for the same tests, instead of painted ones";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_meanings_are_phrases() {
        for (index, variable) in ALL.iter().enumerate() {
            assert!(!ALL[..index].iter().any(|other| other.name == variable.name), "{}", variable.name);
            assert!(!variable.meaning.ends_with('.'), "{}", variable.name);
        }
    }
}
