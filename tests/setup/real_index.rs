//! Looks up every wheel of the `cpu` and `cu130` variants in the real package index, through pip and
//! through uv. Nothing is installed. A machine without network skips this test; CI (`CI=true`)
//! fails instead.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::user::{Answer, User};

/// Runs a program to its end: its stdout, or the end of its stderr.
fn output(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(stderr.lines().last().unwrap_or("no message").to_owned()),
    }
}

/// The path of the Python interpreter, and of a uv that pip installs into `folder` from the index.
fn python_and_uv(folder: &Path) -> Result<(PathBuf, PathBuf), String> {
    let python = output(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))
        .map_err(|why| format!("there is no python3: {why}"))?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--retries", "1", "--target"]).arg(folder).arg("uv");
    output(&mut install).map_err(|why| format!("pip cannot reach the package index: {why}"))?;
    Ok((python.into(), folder.join("bin/uv")))
}

/// Who serves the variant, as the plan of a dry run says.
fn source(user: &User, variant: &str, path: &Path, python: &Path) -> String {
    let mut command = user.command(&format!("setup --libtorch {variant} --dry-run --json"));
    command.env("YOLO_HOME", user.path().join("home")).env("YOLO_TRAINER", std::env::current_exe().unwrap());
    command.env_remove("YOLO_OFFLINE").env_remove("LIBTORCH");
    command.env("PATH", path).env("UV_PYTHON", python).stdin(Stdio::null());
    let answer = Answer::from(command.output().unwrap()).succeeded();
    let plan: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(plan["steps"][0]["state"], "fetch", "{plan}");
    assert!(plan["steps"][0]["transfer"].as_u64().unwrap() > 50_000_000, "{plan}");
    plan["steps"][0]["from"][0].as_str().unwrap().to_owned()
}

#[test]
fn pip_and_uv_find_every_wheel_in_the_real_index() {
    let user = User::new();
    let (python, uv) = match python_and_uv(&user.path().join("packages")) {
        Ok(found) => found,
        Err(why) => {
            assert!(std::env::var_os("CI").is_none(), "{why}");
            println!("skipped: {why}");
            return;
        }
    };
    // One folder per program, so that the other one is not found.
    for (program, target) in [("python3", &python), ("uv", &uv)] {
        let folder = user.path().join(format!("only-{program}"));
        std::fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(target, folder.join(program)).unwrap();
        let through = if program == "uv" { "through uv" } else { "through pip" };
        for variant in ["cpu", "cu130"] {
            let source = source(&user, variant, &folder, &python);
            assert!(source.contains(through), "{variant} comes from {source}");
        }
    }
}
