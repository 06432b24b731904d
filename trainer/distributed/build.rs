//! Compiles the C++ shim in `csrc/` against libtorch and links it.

/// The shim's sources, one per header.
const SOURCES: &[&str] = &[
    "batch_norm",
    "collectives",
    "comm_hooks",
    "error",
    "gloo",
    "nccl",
    "process_group",
    "reducer",
    "store",
    "sync_batch_norm",
    "tcp_store",
    "work",
];

fn main() {
    libtorch_installed::build_shim("tchd", SOURCES, |build| {
        build.define("USE_C10D_GLOO", None).define("USE_DISTRIBUTED", None).include("csrc/gloo_stubs");
    });
}
