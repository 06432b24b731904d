//! The program `yolo-trainer`: the one that `YOLO_TRAINER` names, the one next to `yolo` in a release,
//! or one built from the checkout if it is missing or older than its source.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::SystemTime;

use yolo_base::env::{
    CARGO, CARGO_CRATE_NAME, CARGO_MANIFEST_DIR, CARGO_PRIMARY_PACKAGE, CXX, LD_LIBRARY_PATH, LIBTORCH,
    LIBTORCH_CXX11_ABI, LIBTORCH_USE_PYTORCH, OUT_DIR, YOLO_TRAINER,
};

use crate::dirs::YoloDirs;
use crate::fetch::{FolderLock, Progress, ProgressEvent};
use crate::setup::checkout;
use crate::setup::error::{LibtorchError, SetupError, TrainerError};
use crate::setup::libtorch::installation::Libtorch;
use crate::setup::noted::noted;
use crate::undo::{Entry, Step};

const NAME: &str = "yolo-trainer";

/// The files and directories of the checkout that the trainer is built from. All crates that it
/// depends on are in `trainer`, except `base`.
const SOURCES: [&str; 7] =
    ["Cargo.lock", "Cargo.toml", ".cargo", "base", "trainer", "rust-toolchain.toml", "rust-toolchain"];

/// Lines of the compiler's output that are kept for the error message.
const KEPT_LINES: usize = 60;

/// Whether the trainer is available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TrainerStatus {
    /// It can be started.
    Installed(PathBuf),
    /// It is built from the checkout to this path.
    Build(PathBuf),
}

/// Checks whether the trainer is available. `libtorch` is what it would be built against, if it is
/// installed.
///
/// # Errors
/// When there is none and it cannot be built.
pub(super) fn trainer_status(
    dirs: &YoloDirs,
    libtorch: Option<&Libtorch>,
) -> Result<TrainerStatus, SetupError> {
    Ok(match source(libtorch)? {
        TrainerSource::Program(path) => TrainerStatus::Installed(path),
        TrainerSource::Checkout(build) => {
            let program = build.product();
            let linked = libtorch.is_some_and(|libtorch| checkout::is_linked(dirs, libtorch));
            if linked && build.is_fresh(&program) {
                TrainerStatus::Installed(program)
            } else {
                TrainerStatus::Build(program)
            }
        }
    })
}

/// Where the trainer is or will be.
pub(super) struct TrainerPlace {
    pub(super) program: PathBuf,
    /// Whether it is built from the checkout.
    pub(super) is_built_here: bool,
}

/// Finds the place of the trainer, which need not exist yet if it is built here.
///
/// # Errors
/// When there is none and it cannot be built.
pub(super) fn trainer_place(libtorch: Option<&Libtorch>) -> Result<TrainerPlace, SetupError> {
    Ok(match source(libtorch)? {
        TrainerSource::Program(program) => TrainerPlace { program, is_built_here: false },
        TrainerSource::Checkout(build) => TrainerPlace { program: build.product(), is_built_here: true },
    })
}

/// An existing trainer, or how to build one.
enum TrainerSource {
    Program(PathBuf),
    Checkout(Build),
}

fn source(libtorch: Option<&Libtorch>) -> Result<TrainerSource, SetupError> {
    if let Some(path) = named_by_user() {
        return runnable(path).map(TrainerSource::Program);
    }
    let exe = env::current_exe().map_err(SetupError::file("find", "this program"))?;
    let build = Build::of(&exe);
    if let Some(next_to_us) = exe.parent().map(|folder| folder.join(NAME))
        && next_to_us.is_file()
        // In a target directory, the program next to us is a build product, which may be stale.
        && !(checkout::exists() && build.target.is_some())
    {
        return Ok(TrainerSource::Program(next_to_us));
    }
    if !checkout::exists() {
        return Err(TrainerError::Missing { exe, checkout: checkout::root().to_owned() }.into());
    }
    if let Some(libtorch) = libtorch.filter(|libtorch| libtorch.include.is_none()) {
        return Err(LibtorchError::NoHeaders { path: libtorch.root.clone() }.into());
    }
    Ok(TrainerSource::Checkout(build))
}

/// Finds the trainer, or builds it from the checkout.
///
/// # Errors
/// When there is none, or it cannot be built.
pub fn ensure_trainer(
    dirs: &YoloDirs,
    libtorch: &Libtorch,
    progress: &dyn Progress,
) -> Result<PathBuf, SetupError> {
    let build = match source(Some(libtorch))? {
        TrainerSource::Program(path) => return Ok(path),
        TrainerSource::Checkout(build) => build,
    };
    let changed = checkout::point_link(dirs, libtorch)?;
    let program = build.product();
    if !changed && build.is_fresh(&program) {
        return Ok(program);
    }
    // Cargo does its own locking; this lock keeps two setups from checking freshness at the same time.
    let _lock = FolderLock::acquire(&dirs.cache().join("build"), progress)?;
    if !changed && build.is_fresh(&program) {
        return Ok(program);
    }
    let what = format!("built the trainer: {}", program.display());
    let describe = |entry: &mut Entry| {
        for path in [program.clone(), build.stamp()] {
            entry.step(Step::Download { path, sha256: None });
        }
        Ok(())
    };
    noted((dirs, progress), what, describe, || build.run(&program, progress))?;
    Ok(program)
}

/// Whether [`super::ensure_libtorch`] must install headers, because the trainer is built from a checkout.
pub fn checkout_needs_headers() -> bool {
    if named_by_user().is_some() || !checkout::exists() {
        return false;
    }
    let Ok(exe) = env::current_exe() else { return true };
    Build::of(&exe).target.is_some() || !exe.with_file_name(NAME).is_file()
}

/// The environment in which a trainer finds this libtorch before any other.
pub fn trainer_environment(libtorch: &Libtorch) -> Vec<(OsString, OsString)> {
    let mut path = libtorch.lib_dir.clone().into_os_string();
    if let Some(before) = env::var_os(LD_LIBRARY_PATH).filter(|before| !before.is_empty()) {
        path.push(":");
        path.push(before);
    }
    vec![(LD_LIBRARY_PATH.into(), path)]
}

fn named_by_user() -> Option<PathBuf> {
    env::var_os(YOLO_TRAINER).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The trainer that runs would start now, without building anything: the one that `YOLO_TRAINER`
/// names, or the one next to this program.
pub fn installed_trainer() -> Option<PathBuf> {
    let next_to_us = || Some(env::current_exe().ok()?.with_file_name(NAME));
    named_by_user().or_else(next_to_us).filter(|path| path.is_file())
}

fn runnable(path: PathBuf) -> Result<PathBuf, SetupError> {
    match fs::metadata(&path) {
        Err(_) => Err(TrainerError::Named { path, why: "which does not exist" }.into()),
        Ok(data) if !data.is_file() || !is_executable(&data) => {
            Err(TrainerError::Named { path, why: "which is not executable" }.into())
        }
        Ok(_) => Ok(path),
    }
}

#[cfg(unix)]
fn is_executable(data: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    data.permissions().mode() & 0o111 != 0
}

/// On Windows, the extension decides.
#[cfg(not(unix))]
fn is_executable(_data: &fs::Metadata) -> bool {
    true
}

/// How cargo is called: with this program's own target directory and profile.
struct Build {
    /// `None` if this program is not in a target directory.
    target: Option<PathBuf>,
    /// The directory of the profile: `release`, `debug` or a custom profile's name.
    profile: String,
    /// The target triple, if cargo was given one.
    triple: Option<String>,
}

impl Build {
    fn of(exe: &Path) -> Self {
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        // Cargo always writes this file. CACHEDIR.TAG is missing if the folder existed before.
        let is_target = |path: &Path| path.join(".rustc_info.json").is_file();
        // Test programs are in `deps`, one level deeper.
        let folder = exe
            .parent()
            .map(|folder| if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder });
        let none = Self { target: None, profile: "release".into(), triple: None };
        let (Some(folder), Some(above)) = (folder, folder.and_then(Path::parent)) else { return none };
        let Some(profile) = name(folder) else { return none };
        if is_target(above) {
            return Self { target: Some(above.into()), profile, triple: None };
        }
        match above.parent() {
            Some(target) if is_target(target) => {
                Self { target: Some(target.into()), profile, triple: name(above) }
            }
            _ => none,
        }
    }

    fn folder(&self) -> PathBuf {
        let target = self.target.clone().unwrap_or_else(|| checkout::root().join("target"));
        let target = match &self.triple {
            Some(triple) => target.join(triple),
            None => target,
        };
        target.join(&self.profile)
    }

    fn product(&self) -> PathBuf {
        self.folder().join(NAME)
    }

    /// A file whose modification time is the start of the last build. The program's own time does not
    /// work: cargo keeps it when a touched source changes nothing.
    fn stamp(&self) -> PathBuf {
        self.folder().join(".yolo-trainer.built")
    }

    fn is_fresh(&self, program: &Path) -> bool {
        let Ok(built) = fs::metadata(self.stamp()).and_then(|data| data.modified()) else { return false };
        program.is_file() && !SOURCES.iter().any(|source| newer(&checkout::root().join(source), built))
    }

    fn command(&self) -> Result<Command, SetupError> {
        let cargo = env::var_os(CARGO).map(PathBuf::from).filter(|cargo| cargo.is_file());
        let cargo = cargo.or_else(|| which::which("cargo").ok()).ok_or(TrainerError::Tool {
            tool: "cargo",
            remedy: "install Rust (https://rustup.rs), or use a release archive of yolo",
        })?;
        let compiler = env::var(CXX).unwrap_or_else(|_| "c++".into());
        let compiler = compiler.split_whitespace().next().unwrap_or("c++");
        if which::which(compiler).is_err() && which::which("g++").is_err() {
            return Err(TrainerError::Tool {
                tool: "a C++ compiler",
                remedy: "install g++ (Debian, Ubuntu: `sudo apt install build-essential`; Fedora: `sudo dnf install gcc-c++`)",
            }
            .into());
        }
        let mut command = Command::new(cargo);
        command.current_dir(checkout::root()).args(["build", "-p", NAME, "--bin", NAME]);
        command.arg("--profile").arg(if self.profile == "debug" { "dev" } else { &self.profile });
        command.arg("--message-format=json-render-diagnostics");
        if let Some(target) = &self.target {
            command.arg("--target-dir").arg(target);
        }
        if let Some(triple) = &self.triple {
            command.arg("--target").arg(triple);
        }
        clean(&mut command);
        Ok(command)
    }

    fn run(&self, program: &Path, progress: &dyn Progress) -> Result<(), SetupError> {
        let text = "building yolo-trainer (the first build takes a few minutes)";
        progress.event(ProgressEvent::Step { text });
        let began = SystemTime::now();
        let mut command = self.command()?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(SetupError::file("start", command.get_program()))?;
        let errors = child.stderr.take().map(|stderr| thread::spawn(move || last_lines(stderr)));
        if let Some(stdout) = child.stdout.take() {
            report_crates(BufReader::new(stdout), progress);
        }
        let status = child.wait().map_err(SetupError::file("wait for", command.get_program()))?;
        let lines = errors.and_then(|errors| errors.join().ok()).unwrap_or_default();
        if !status.success() {
            return Err(explain(&status.to_string(), &lines));
        }
        if !program.is_file() {
            let status = format!("cargo succeeded, but {} does not exist", program.display());
            return Err(explain(&status, &lines));
        }
        let stamp = self.stamp();
        File::create(&stamp)
            .and_then(|file| file.set_modified(began))
            .map_err(SetupError::file("write", stamp))?;
        progress.event(ProgressEvent::Done { text: &format!("built yolo-trainer: {}", program.display()) });
        Ok(())
    }
}

/// Whether a file, or any file in a directory, changed at or after `built`.
fn newer(path: &Path, built: SystemTime) -> bool {
    let Ok(data) = fs::symlink_metadata(path) else { return false };
    if !data.is_dir() {
        return data.modified().map_or(true, |time| time >= built);
    }
    // Tests are not part of the program. A directory's own time changes when a file is removed.
    if ["tests", "benches", "target"].iter().any(|name| path.ends_with(name)) {
        return false;
    }
    let Ok(entries) = fs::read_dir(path) else { return true };
    entries.flatten().any(|entry| newer(&entry.path(), built))
}

/// Removes the variables that `cargo run` sets for this program and those that would make the inner
/// cargo build something else than the outer one.
fn clean(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let of_the_run =
            ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|start| text.starts_with(start));
        if of_the_run || matches!(&*text, CARGO | CARGO_PRIMARY_PACKAGE | CARGO_CRATE_NAME | OUT_DIR) {
            command.env_remove(&name);
        }
    }
    // Cargo's configuration sets them to the link.
    command.env_remove(LIBTORCH).env_remove(LIBTORCH_CXX11_ABI).env_remove(LIBTORCH_USE_PYTORCH);
    // Cargo prepends its own directories, which a compiler does not need.
    if let (Some(path), Some(_)) = (env::var_os(LD_LIBRARY_PATH), env::var_os(CARGO_MANIFEST_DIR)) {
        let kept = env::split_paths(&path).filter(|folder| {
            let text = folder.to_string_lossy();
            !text.contains("/target/")
                && !text.contains("/.rustup/")
                && !folder.join("libtorch_cpu.so").exists()
        });
        match env::join_paths(kept) {
            Ok(kept) if !kept.is_empty() => command.env(LD_LIBRARY_PATH, kept),
            _ => command.env_remove(LD_LIBRARY_PATH),
        };
    }
}

/// Reports each crate that cargo finishes.
fn report_crates(stdout: impl BufRead, progress: &dyn Progress) {
    let mut count = 0;
    for line in stdout.lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
        if message["reason"] == "compiler-artifact" && message["fresh"] == false {
            count += 1;
            let krate = message["target"]["name"].as_str().unwrap_or_default();
            progress.event(ProgressEvent::Built { krate, count });
        }
    }
}

fn last_lines(stderr: impl Read) -> Vec<String> {
    let mut lines = std::collections::VecDeque::new();
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(&line).into_owned());
    }
    lines.into()
}

/// The error with the relevant lines and the next step.
fn explain(status: &str, lines: &[String]) -> SetupError {
    let all = lines.join("\n");
    let remedy = if all.contains("linker `cc` not found") || all.contains("failed to find tool \"c++\"") {
        "install a C compiler and g++ (Debian, Ubuntu: `sudo apt install build-essential`)"
    } else if all.contains("failed to download") || all.contains("failed to get") {
        "cargo could not download a crate: check the network and HTTPS_PROXY, then run the command again"
    } else if all.contains("No space left") {
        "the disk is full: free some space, then run the command again"
    } else if all.contains("signal: 9") || all.contains("Killed") {
        "the compiler was killed, most likely because memory ran out: set CARGO_BUILD_JOBS=1 and run the command again"
    } else {
        "run `cargo build --release -p yolo-trainer` in the checkout for the full output"
    };
    // From the first error if there is one; otherwise the end.
    let first =
        lines.iter().position(|line| line.starts_with("error")).unwrap_or(lines.len().saturating_sub(15));
    let shown = lines[first..].iter().take(20).map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n");
    TrainerError::Build { status: status.to_owned(), lines: shown, remedy: remedy.to_owned() }.into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use yolo_base::Hint as _;

    use super::*;

    #[test]
    fn the_target_directory_is_derived_from_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        fs::create_dir_all(&target).unwrap();
        fs::write(target.join(".rustc_info.json"), "").unwrap();
        for (path, profile, triple) in [
            ("release/yolo", "release", None),
            ("debug/deps/fetch-0123", "debug", None),
            ("x86_64-unknown-linux-gnu/release/yolo", "release", Some("x86_64-unknown-linux-gnu")),
        ] {
            let build = Build::of(&target.join(path));
            assert_eq!(build.target.as_deref(), Some(&*target), "{path}");
            assert_eq!((build.profile.as_str(), build.triple.as_deref()), (profile, triple), "{path}");
        }
        assert!(Build::of(&folder.path().join("bin/yolo")).target.is_none());
    }

    #[test]
    fn a_touched_source_is_newer_and_a_test_is_not_a_source() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("src")).unwrap();
        fs::create_dir_all(folder.path().join("tests")).unwrap();
        fs::write(folder.path().join("src/lib.rs"), "").unwrap();
        let later = SystemTime::now() + Duration::from_secs(60);
        assert!(!newer(folder.path(), later));
        let touch = |name: &str| {
            File::create(folder.path().join(name))
                .unwrap()
                .set_modified(later + Duration::from_secs(1))
                .unwrap();
        };
        touch("tests/a.rs");
        assert!(!newer(folder.path(), later));
        touch("src/lib.rs");
        assert!(newer(folder.path(), later));
    }

    #[test]
    fn every_crate_that_the_trainer_is_built_from_is_watched() {
        fn manifests(folder: &Path, found: &mut String) {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                if entry.file_name() == "Cargo.toml" {
                    found.push_str(&fs::read_to_string(entry.path()).unwrap());
                } else if entry.path().is_dir() {
                    manifests(&entry.path(), found);
                }
            }
        }
        let mut used = String::new();
        manifests(&checkout::root().join("trainer"), &mut used);
        let workspace = fs::read_to_string(checkout::root().join("Cargo.toml")).unwrap();
        let crates = workspace.lines().filter_map(|line| line.split_once(" = { path = \""));
        let mut count = 0;
        for (name, rest) in crates.filter(|(name, _)| used.contains(&format!("\n{name}.workspace"))) {
            let path = Path::new(rest.split('"').next().unwrap());
            assert!(SOURCES.iter().any(|source| path.starts_with(source)), "{name} in {}", path.display());
            count += 1;
        }
        assert!(count > 3, "{count} crates");
    }

    #[test]
    fn a_failed_build_shows_the_error_and_a_remedy() {
        let lines = ["   Compiling x", "error: linker `cc` not found", "  |"].map(str::to_owned);
        let error = explain("exit status: 101", &lines);
        let message = error.to_string();
        assert!(message.contains("linker `cc`") && !message.contains("Compiling"), "{message}");
        assert!(error.hint().is_some_and(|hint| hint.contains("build-essential")), "{error:?}");
    }

    #[test]
    fn a_trainer_that_is_not_executable_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let message = runnable(folder.path().join("none")).unwrap_err().to_string();
        assert!(message.contains("which does not exist"), "{message}");
        assert!(runnable(folder.path().to_owned()).unwrap_err().to_string().contains("not executable"));
    }
}
