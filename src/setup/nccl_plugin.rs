//! The NCCL plugin: the one next to the trainer, or one built from the checkout. It is compiled with
//! libtorch's headers and those of NCCL and CUDA from the package index, so neither a GPU nor a CUDA
//! toolkit is needed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use yolo_base::env::CXX;
use yolo_plan::backend::NCCL_PLUGIN;

use super::checkout;
use super::context::Context;
use super::error::{LibtorchError, NcclError, SetupError};
use super::libtorch::installation::Libtorch;
use super::libtorch::nccl_headers::ensure_nccl_headers;
use super::noted::noted;
use super::trainer::trainer_place;
use crate::fetch::{FolderLock, ProgressEvent};
use crate::undo::{Entry, Step};

/// The folder of its source, in the checkout.
const SOURCE: &str = "trainer/distributed/nccl";

/// The folder of the shims' own headers, in the checkout.
const SHIM_HEADERS: &str = "trainer/libtorch/include";

/// Lines of the compiler's output that an error shows.
const SHOWN_LINES: usize = 12;

/// Whether the plugin is available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NcclPluginStatus {
    /// It is next to the trainer.
    Installed(PathBuf),
    /// It is built from the checkout to this path.
    Build(PathBuf),
    /// It is not next to a trainer that was not built here.
    Missing(PathBuf),
}

/// Looks for the plugin. `libtorch` is what the trainer would be built against.
///
/// # Errors
/// When there is no trainer, and none can be built.
pub fn nccl_plugin_status(libtorch: Option<&Libtorch>) -> Result<NcclPluginStatus, SetupError> {
    let place = trainer_place(libtorch)?;
    let plugin = place.program.with_file_name(NCCL_PLUGIN);
    Ok(match (place.is_built_here, plugin.is_file()) {
        (false, true) => NcclPluginStatus::Installed(plugin),
        (false, false) => NcclPluginStatus::Missing(plugin),
        (true, _) if is_fresh(&plugin, checkout::root()) => NcclPluginStatus::Installed(plugin),
        (true, _) => NcclPluginStatus::Build(plugin),
    })
}

/// Finds the plugin, or builds it from the checkout.
///
/// # Errors
/// When there is none, or it cannot be built.
pub fn ensure_nccl_plugin(context: &Context<'_>, libtorch: &Libtorch) -> Result<PathBuf, SetupError> {
    let plugin = match nccl_plugin_status(Some(libtorch))? {
        NcclPluginStatus::Installed(plugin) => return Ok(plugin),
        NcclPluginStatus::Missing(plugin) => return Err(NcclError::Missing { plugin }.into()),
        NcclPluginStatus::Build(plugin) => plugin,
    };
    let Some(libtorch_headers) = &libtorch.include else {
        return Err(LibtorchError::NoHeaders { path: libtorch.root.clone() }.into());
    };
    let what = format!("built the NCCL plugin: {}", plugin.display());
    let describe = |entry: &mut Entry| {
        entry.step(Step::Download { path: plugin.clone(), sha256: None });
        Ok(())
    };
    noted((context.dirs, context.progress), what, describe, || build(context, libtorch_headers, &plugin))?;
    Ok(plugin)
}

/// Builds the plugin from the checkout.
fn build(context: &Context<'_>, libtorch_headers: &Path, plugin: &Path) -> Result<(), SetupError> {
    let headers = ensure_nccl_headers(context)?;
    let _lock = FolderLock::acquire(&context.dirs.cache().join("build"), context.progress)?;
    context.progress.event(ProgressEvent::Step { text: "building the NCCL plugin (half a minute)" });
    let folder = plugin.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(SetupError::file("create", folder))?;
    let unfinished = plugin.with_extension(format!("so.{}.part", std::process::id()));
    let result = compile(&compiler(), &headers, libtorch_headers, &unfinished);
    if result.is_err() {
        // What is left of it is overwritten by the next build.
        let _ = fs::remove_file(&unfinished);
    }
    result?;
    fs::rename(&unfinished, plugin).map_err(SetupError::file("create", plugin))?;
    let text = format!("built the NCCL plugin: {}", plugin.display());
    context.progress.event(ProgressEvent::Done { text: &text });
    Ok(())
}

/// Whether the plugin is newer than its source.
fn is_fresh(plugin: &Path, checkout: &Path) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    let Some(built) = time(plugin) else { return false };
    let sources = [
        checkout.join(SOURCE).join("plugin.cpp"),
        checkout.join(SOURCE).join("plugin.h"),
        checkout.join(SHIM_HEADERS).join("shim/error.h"),
    ];
    sources.iter().all(|source| time(source).is_some_and(|changed| changed < built))
}

/// The C++ compiler, with arguments.
fn compiler() -> String {
    env::var(CXX).ok().filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "c++".to_owned())
}

/// Compiles the plugin. It links no library of libtorch, CUDA or NCCL: what it uses is in the process
/// that loads it, whichever variant that has.
fn compile(command_line: &str, headers: &Path, libtorch_headers: &Path, to: &Path) -> Result<(), SetupError> {
    let mut words = command_line.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or("c++"));
    command.args(words).stdin(Stdio::null());
    command.args(["-std=c++17", "-O2", "-fPIC", "-shared", "-s", "-fvisibility=hidden", "-Wall", "-Wextra"]);
    command.args(["-DUSE_C10D_NCCL", "-DUSE_DISTRIBUTED", "-D_GLIBCXX_USE_CXX11_ABI=1"]);
    command.arg("-DSHIM_NAMESPACE=tchn").arg("-I").arg(checkout::root().join(SHIM_HEADERS));
    for folder in [libtorch_headers, &libtorch_headers.join("torch/csrc/api/include"), headers] {
        command.arg("-isystem").arg(folder);
    }
    command.arg(checkout::root().join(SOURCE).join("plugin.cpp")).arg("-o").arg(to);
    let output = command
        .output()
        .map_err(|error| NcclError::Compiler { compiler: command_line.to_owned(), why: error.to_string() })?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().take(SHOWN_LINES).collect();
    Err(NcclError::Build { status: output.status.to_string(), lines: lines.join("\n") }.into())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_changed_source_makes_the_plugin_stale() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let plugin = root.join(NCCL_PLUGIN);
        assert!(!is_fresh(&plugin, root));
        let at = |path: &Path, seconds: u64| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            fs::File::create(path).unwrap().set_modified(time).unwrap();
        };
        let header = root.join(SOURCE).join("plugin.h");
        at(&root.join(SOURCE).join("plugin.cpp"), 100);
        at(&header, 100);
        at(&root.join(SHIM_HEADERS).join("shim/error.h"), 100);
        at(&plugin, 200);
        assert!(is_fresh(&plugin, root));
        at(&header, 300);
        assert!(!is_fresh(&plugin, root));
    }

    #[test]
    fn a_compiler_that_fails_is_an_error_with_its_output() {
        let folder = tempfile::tempdir().unwrap();
        let (nowhere, to) = (folder.path(), folder.path().join(NCCL_PLUGIN));
        let error = compile("no-such-compiler -O2", nowhere, nowhere, &to).unwrap_err();
        let expected = "cannot build the NCCL plugin: no-such-compiler -O2 cannot be started: ";
        assert!(error.to_string().starts_with(expected), "{error}");
        if which::which("c++").is_err() {
            return;
        }
        // Without libtorch's headers.
        let error = compile("c++", nowhere, nowhere, &to).unwrap_err().to_string();
        assert!(error.starts_with("the NCCL plugin could not be built (exit status: 1):\n"), "{error}");
        assert!(error.contains("ProcessGroup.hpp"), "{error}");
        assert!(!to.exists());
    }

    #[test]
    fn the_watched_sources_exist() {
        let root = checkout::root();
        for file in ["plugin.cpp", "plugin.h"] {
            assert!(root.join(SOURCE).join(file).is_file(), "{file}");
        }
        assert!(root.join(SHIM_HEADERS).join("shim/error.h").is_file());
    }
}
