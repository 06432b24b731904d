//! Compiles the C++ shim in `csrc/` against libtorch and links it.

/// The shim's sources, one per header.
const SOURCES: &[&str] =
    &["autocast", "context", "error", "host_waits", "memory", "memory_format", "optimizer", "streams"];

fn main() {
    libtorch_installed::build_shim("tcht", SOURCES, |_| ());
}
