//! One rank of a training run.
fn main() {}
