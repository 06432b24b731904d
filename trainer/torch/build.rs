//! Compiles the C++ shim in `csrc/` against libtorch and links it.

/// The shim's sources, most with a header.
const SOURCES: &[&str] = &[
    "autocast",
    "batch_norm_silu",
    "batch_norm_silu_kernels",
    "context",
    "error",
    "host_waits",
    "memory",
    "memory_format",
    "optimizer",
    "streams",
];

fn main() {
    // Where the processor can, multiplications are fused with additions, and comparisons do not keep loops from SIMD.
    libtorch_installed::build_shim("tcht", SOURCES, |build| {
        build.flag_if_supported("-ffp-contract=fast").flag_if_supported("-fno-trapping-math");
    });
}
