//! Looks up every wheel of the `cpu` and `cu130` variants in the real package index, through pip and
//! through uv. Nothing is installed. A machine without network skips this test; CI (`CI=true`)
//! fails instead.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::user::{Finished, User};

/// Runs a program to its end: its stdout, or the last line of its stderr.
fn output(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(stderr.lines().last().unwrap_or("no message").to_owned()),
    }
}

/// A directory that holds only a Python with pip, and one that holds only a uv, which pip installs from
/// the index, with a Python without pip.
fn pip_and_uv(folder: &Path) -> Result<(PathBuf, PathBuf), String> {
    let python = output(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))
        .map_err(|why| format!("there is no python3: {why}"))?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--retries", "1", "--target"]).arg(folder).arg("uv");
    output(&mut install).map_err(|why| format!("pip cannot reach the package index: {why}"))?;
    let uv = folder.join("bin/uv");
    let environment = folder.join("environment");
    output(Command::new(&uv).args(["venv", "--python", &python]).arg(&environment)).unwrap();
    std::os::unix::fs::symlink(&uv, environment.join("bin/uv")).unwrap();
    let with_pip = folder.join("with-pip");
    std::fs::create_dir(&with_pip).unwrap();
    std::os::unix::fs::symlink(&python, with_pip.join("python3")).unwrap();
    Ok((with_pip, environment.join("bin")))
}

/// Who serves the variant, as the plan of a dry run says.
fn source(user: &User, variant: &str, path: &OsStr) -> String {
    let mut command = user.command(&format!("setup --libtorch {variant} --dry-run --json"));
    command.env("YOLO_HOME", user.path().join("home")).env("YOLO_TRAINER", std::env::current_exe().unwrap());
    command.env_remove("YOLO_OFFLINE").env_remove("LIBTORCH");
    let output = Finished::from(command.env("PATH", path).stdin(Stdio::null()).output().unwrap()).succeeded();
    let plan: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(plan["steps"][0]["state"], "fetch", "{plan}");
    assert!(plan["steps"][0]["transfer"].as_u64().unwrap() > 50_000_000, "{plan}");
    plan["steps"][0]["from"][0].as_str().unwrap().to_owned()
}

#[test]
fn pip_and_uv_find_every_wheel_in_the_real_index() {
    let user = User::new();
    let (pip, uv) = match pip_and_uv(&user.path().join("packages")) {
        Ok(found) => found,
        Err(why) => {
            assert!(std::env::var_os("CI").is_none(), "{why}");
            println!("skipped: {why}");
            return;
        }
    };
    for (path, through) in [(pip, "(pip)"), (uv, "(uv)")] {
        for variant in ["cpu", "cu130"] {
            let source = source(&user, variant, path.as_os_str());
            assert!(source.contains(through), "{variant} comes from {source}");
        }
    }
}
