//! libtorch for this machine: the one that `LIBTORCH` names, the one that an earlier run installed,
//! or a new one from the first source that answers (DESIGN.md, "Where libtorch comes from").

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::install::{Job, megabytes};
use super::pip::Located;
use super::stamp::{A_HEADER, Stamp, Trust};
use super::wheels::{CPU, CPU_OF_PYTORCH, Wheel};
use super::{LIBTORCH_VERSION, Refusal, SetupError, checkout, index, pip};
use crate::fetch::{Client, Event, FetchError, Lock, Policy, Progress};
use crate::places::Places;

/// A libtorch that a trainer can run with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Libtorch {
    /// The folder that holds `lib`.
    pub root: PathBuf,
    /// The folder of the shared libraries.
    pub lib_dir: PathBuf,
    /// The headers, where they are there.
    pub include: Option<PathBuf>,
    /// `cpu`, or for a libtorch that `LIBTORCH` names what its version says: `cu130`, `cpu`.
    pub variant: String,
    /// Whether `libtorch_cuda.so` is among the libraries.
    pub has_cuda: bool,
}

/// Finds libtorch or installs it, with headers where the trainer must be built.
///
/// # Errors
/// When `LIBTORCH` names something else, no source can serve, or the disk refuses.
pub fn ensure_libtorch(
    places: &Places,
    want_headers: bool,
    progress: &dyn Progress,
) -> Result<Libtorch, SetupError> {
    if let Some(found) = find(places, want_headers)? {
        return Ok(found);
    }
    let target = place_of_cpu(places);
    supported_platform()?;
    let lock = Lock::acquire(&places.libtorch(), progress)?;
    lock.sweep();
    // Another setup may have finished while this one waited for the lock.
    if Stamp::check(&target, want_headers).is_ok() {
        return Ok(installed(target));
    }
    // Headers that are there once are kept by a repair, so that a checkout goes on building.
    let headers = want_headers || target.join(A_HEADER).exists();
    install(&target, headers, &lock, progress)?;
    Stamp::check(&target, want_headers)
        .map_err(|why| SetupError::NoSource(vec![Refusal { source: target.display().to_string(), why }]))?;
    Ok(installed(target))
}

/// Finds libtorch as [`ensure_libtorch`] would, and installs nothing: `None` when it is not there,
/// or not whole.
///
/// # Errors
/// When `LIBTORCH` names something else.
pub fn find_libtorch(places: &Places) -> Result<Option<Libtorch>, SetupError> {
    find(places, false)
}

fn find(places: &Places, want_headers: bool) -> Result<Option<Libtorch>, SetupError> {
    if let Some(path) = named_by_user() {
        return from_user(&path, want_headers).map(Some);
    }
    let target = place_of_cpu(places);
    Ok(Stamp::check(&target, want_headers).is_ok().then(|| installed(target)))
}

fn place_of_cpu(places: &Places) -> PathBuf {
    places.libtorch().join(format!("{LIBTORCH_VERSION}-cpu"))
}

fn installed(root: PathBuf) -> Libtorch {
    let include = root.join("include");
    Libtorch {
        lib_dir: root.join("lib"),
        include: root.join(A_HEADER).is_file().then_some(include),
        variant: "cpu".into(),
        has_cuda: false,
        root,
    }
}

fn supported_platform() -> Result<(), SetupError> {
    if cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        return Ok(());
    }
    Err(SetupError::Platform(format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH)))
}

/// A place to ask; what answers is a wheel list and where each lies.
type Ask<'a> = Box<dyn Fn() -> Result<(&'static [Wheel], Vec<Located>), String> + 'a>;

fn install(target: &Path, headers: bool, lock: &Lock, progress: &dyn Progress) -> Result<(), SetupError> {
    let client = Client::new(Policy::default())?;
    let mut sources: Vec<(String, Ask<'_>)> = Vec::new();
    if let Some(mirror) = std::env::var("YOLO_MIRROR").ok().filter(|mirror| !mirror.is_empty()) {
        sources.push(("YOLO_MIRROR".into(), Box::new(move || Ok((&CPU, mirrored(&mirror))))));
    }
    sources
        .push(("the package index, asked through pip".into(), Box::new(|| Ok((&CPU, pip::ask_pip(&CPU)?)))));
    sources.push(("the package index, asked through uv".into(), Box::new(|| Ok((&CPU, pip::ask_uv(&CPU)?)))));
    let wheel: &'static [Wheel] = const { &[CPU_OF_PYTORCH] };
    sources.push((
        "PyTorch's own site".into(),
        Box::new(|| {
            let located =
                index::ask_pytorch(&client, &wheel[0], progress).map_err(|error| error.to_string())?;
            Ok((wheel, vec![located]))
        }),
    ));
    let mut refusals = Vec::new();
    for (source, ask) in &sources {
        let began = Instant::now();
        progress
            .event(Event::Step { text: &format!("looking for libtorch {LIBTORCH_VERSION} (cpu): {source}") });
        let attempt = ask().map_err(Attempt::Refused).and_then(|(wheels, located)| {
            progress.event(Event::Step { text: &format!("fetching libtorch {LIBTORCH_VERSION} (cpu)") });
            let job = Job { client: &client, wheels, located: &located, headers, target, progress };
            job.run(lock).map_err(Attempt::from)
        });
        match attempt {
            Ok(()) => {
                report(target, began, progress);
                return Ok(());
            }
            Err(Attempt::Final(error)) => return Err(error),
            Err(Attempt::Refused(why)) => refusals.push(Refusal { source: source.clone(), why }),
        }
    }
    Err(SetupError::NoSource(refusals))
}

/// How an attempt with one source ended.
enum Attempt {
    /// The next source may serve.
    Refused(String),
    /// No source can help: the disk.
    Final(SetupError),
}

impl From<SetupError> for Attempt {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Fetch(FetchError::Disk { .. } | FetchError::Space { .. })
            | SetupError::File { .. } => Self::Final(error),
            other => Self::Refused(other.to_string()),
        }
    }
}

/// A mirror serves the wheels by their names, below an address or in a folder.
fn mirrored(mirror: &str) -> Vec<Located> {
    let base = mirror.trim_end_matches('/');
    CPU.iter()
        .map(|wheel| Located { address: format!("{base}/{}", wheel.file), sha256: Some(wheel.sha256.into()) })
        .collect()
}

fn report(target: &Path, began: Instant, progress: &dyn Progress) {
    let Ok(stamp) = Stamp::check(target, false) else { return };
    let bytes = stamp.files.iter().map(|file| file.size).sum();
    let trust = match stamp.trust {
        Trust::Pinned => "every file has the hash that yolo expects",
        Trust::WholeWheel => "the wheel has the hash that its index told",
        Trust::Tls => "its hashes are not known to yolo: it rests on the encrypted connection",
    };
    let text = format!(
        "libtorch {LIBTORCH_VERSION} ({}) is in {} ({}, {:.0} s); {trust}",
        stamp.variant,
        target.display(),
        megabytes(bytes),
        began.elapsed().as_secs_f64()
    );
    progress.event(Event::Done { text: &text });
}

/// `LIBTORCH`, unless it is the link that setup itself keeps: cargo hands that to every program it runs.
fn named_by_user() -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os("LIBTORCH").filter(|path| !path.is_empty())?);
    (path != checkout::link()).then_some(path)
}

fn from_user(named: &Path, want_headers: bool) -> Result<Libtorch, SetupError> {
    let wrong = |why: String| SetupError::Named { path: named.to_owned(), why };
    // Also the folder that holds Python's `torch` package.
    let candidates = [named.to_owned(), named.join("torch")];
    let root = candidates
        .into_iter()
        .find(|root| root.join("lib/libtorch_cpu.so").is_file())
        .ok_or_else(|| wrong("there is no lib/libtorch_cpu.so".into()))?;
    let root = std::path::absolute(&root).map_err(|error| wrong(error.to_string()))?;
    let version = version_of(&root)
        .ok_or_else(|| wrong("neither build-version nor version.py tells the version".into()))?;
    let (number, build) = version.split_once('+').unwrap_or((&version, ""));
    if number != LIBTORCH_VERSION {
        return Err(wrong(format!("libtorch {version} lies, and yolo needs {LIBTORCH_VERSION}")));
    }
    let has_cuda = root.join("lib/libtorch_cuda.so").exists();
    let include = root.join(A_HEADER).is_file().then(|| root.join("include"));
    if want_headers && include.is_none() {
        return Err(SetupError::NoHeaders { path: root });
    }
    let variant = match (build, has_cuda) {
        ("", true) => "cuda".to_owned(),
        ("", false) => "cpu".to_owned(),
        (build, _) => build.to_owned(),
    };
    Ok(Libtorch { lib_dir: root.join("lib"), include, variant, has_cuda, root })
}

/// `2.11.0` or `2.11.0+cu130`, from libtorch's `build-version` or Python's `version.py`.
fn version_of(root: &Path) -> Option<String> {
    if let Ok(text) = fs::read_to_string(root.join("build-version")) {
        return Some(text.trim().to_owned());
    }
    let text = fs::read_to_string(root.join("version.py")).ok()?;
    let line = text.lines().find(|line| line.starts_with("__version__"))?;
    line.split(['\'', '"']).nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_libtorch(version_file: &str, content: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("lib")).unwrap();
        fs::write(root.path().join("lib/libtorch_cpu.so"), "").unwrap();
        fs::write(root.path().join(version_file), content).unwrap();
        root
    }

    #[test]
    fn a_libtorch_of_this_version_is_taken() {
        let root = a_libtorch("build-version", "2.11.0+cpu\n");
        let libtorch = from_user(root.path(), false).unwrap();
        assert_eq!((libtorch.variant.as_str(), libtorch.has_cuda), ("cpu", false));
        assert!(matches!(from_user(root.path(), true), Err(SetupError::NoHeaders { .. })));
    }

    #[test]
    fn a_python_torch_is_taken_and_its_cuda_seen() {
        let text =
            "from typing import Optional\n__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n";
        let root = a_libtorch("version.py", text);
        fs::write(root.path().join("lib/libtorch_cuda.so"), "").unwrap();
        let libtorch = from_user(root.path(), false).unwrap();
        assert_eq!((libtorch.variant.as_str(), libtorch.has_cuda), ("cu130", true));
    }

    #[test]
    fn another_version_is_refused_by_name() {
        let root = a_libtorch("build-version", "2.7.1+cu126");
        let message = from_user(root.path(), false).unwrap_err().to_string();
        assert!(message.contains("2.7.1+cu126") && message.contains("2.11.0"), "{message}");
    }

    #[test]
    fn a_folder_without_libtorch_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let message = from_user(root.path(), false).unwrap_err().to_string();
        assert!(message.contains("no lib/libtorch_cpu.so"), "{message}");
    }

    #[test]
    fn a_mirror_may_be_an_address_or_a_folder() {
        assert_eq!(
            mirrored("http://localhost:1/w/")[0].address,
            format!("http://localhost:1/w/{}", CPU[0].file)
        );
        assert_eq!(mirrored("/srv/wheels")[1].address, format!("/srv/wheels/{}", CPU[1].file));
    }
}
