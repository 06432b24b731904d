//! Runs the example of the README.

#![allow(clippy::unwrap_used, dead_code, reason = "the example is a program with its own main")]

#[path = "../examples/linear_regression.rs"]
mod linear_regression;

#[test]
fn the_example_runs() {
    linear_regression::main().unwrap();
}
