//! One host: this machine, or one that was recorded. Every question is asked once and its answer
//! kept, so that all checks see the same facts and a recording holds exactly what they asked. A
//! recorded host answers from its file only; what the file omits is unknown.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::Value;
use yolo_base::env::WSLENV;
use yolo_base::wsl_variables::reaches_wsl;

use super::answer::{
    self, Fact, FileSystem, Interface, KnownPaths, Library, Listener, Process, Stat, System, Unknown, User,
    decode,
};
use super::live::{Live, WslExe};
use super::question::{Question, Section};

type Cell = Arc<OnceLock<Value>>;

/// The facts of one machine, asked when they are needed.
#[derive(Debug)]
pub struct Host {
    pub(super) asked: Mutex<BTreeMap<Question, Cell>>,
    /// Answers questions that are not in `asked`; a recorded host has none.
    live: Option<Live>,
    /// Whether there is an environment: then a variable that it omits is unset.
    pub(super) has_environment: bool,
    /// The version of the program that made the recording.
    pub(super) recorded_by: Option<String>,
}

impl Host {
    /// This machine, of which nothing has been asked yet.
    pub fn of_this_machine(places: &KnownPaths) -> Self {
        let live = Live::of_programs(places.trainer.as_deref(), places.libtorch.as_deref());
        let host =
            Self { asked: Mutex::default(), live: Some(live), has_environment: true, recorded_by: None };
        let places = serde_json::to_value(places).unwrap_or(Value::Null);
        host.remember(Question::one(Section::Places), places);
        host
    }

    /// Runs `program` where a view asks for `wsl.exe`, and waits for it at least this long. A
    /// recorded host runs nothing.
    pub fn with_wsl_exe(mut self, program: String, budget: Duration) -> Self {
        if let Some(live) = &mut self.live {
            live.use_wsl_exe(WslExe { program, budget });
        }
        self
    }

    /// Takes the answers of `known`, and asks only for what it leaves out.
    pub fn with_known(self, known: &Self) -> Self {
        known.answers().into_iter().for_each(|(question, answer)| self.remember(question, answer));
        self
    }

    /// A machine with these answers.
    pub(super) fn recorded(answers: Vec<(Question, Value)>, has_environment: bool) -> Self {
        let host = Self { asked: Mutex::default(), live: None, has_environment, recorded_by: None };
        answers.into_iter().for_each(|(question, answer)| host.remember(question, answer));
        host.complete_nvml();
        host
    }

    /// Adds to the driver's answers those that only a recorded output of nvidia-smi has.
    fn complete_nvml(&self) {
        let question = Question::one(Section::Nvml);
        if let Some(completed) = self.recalled(&question).and_then(|answers| self.completed(answers)) {
            self.remember(question, completed);
        }
    }

    /// Whether these are the facts of a recording.
    pub fn is_recorded(&self) -> bool {
        self.live.is_none()
    }

    /// The version of the `yolo` that made the recording; `None` on a live host, and if the recording
    /// does not name it.
    pub fn recorded_by(&self) -> Option<&str> {
        self.recorded_by.as_deref()
    }

    /// Everything asked so far with its answer.
    pub(super) fn answers(&self) -> Vec<(Question, Value)> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().filter_map(|(question, cell)| Some((question.clone(), cell.get()?.clone()))).collect()
    }

    /// The rows of a table in a recording, so that a view finds an answer under the name that its
    /// author chose. Empty on a live machine, which holds only what was asked.
    pub(super) fn recorded_names(&self, section: Section) -> Vec<String> {
        if self.live.is_some() {
            return Vec::new();
        }
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let named = asked.iter().filter(|(question, cell)| {
            question.section == section && cell.get().is_some_and(|answer| !answer.is_null())
        });
        named.map(|(question, _)| question.name.clone()).collect()
    }

    /// The output of recorded commands whose line contains this text, because recordings written by
    /// hand may get a fact from any command.
    pub fn recorded_texts(&self, text: &str) -> Vec<String> {
        let names = self.recorded_names(Section::Commands).into_iter();
        let has_text = |name: &String| name.to_ascii_lowercase().contains(&text.to_ascii_lowercase());
        names
            .filter(has_text)
            .filter_map(|name| answer::output(&self.recalled(&Question::row(Section::Commands, name))?))
            .map(|output| output.all_text())
            .collect()
    }

    pub(super) fn remember(&self, question: Question, answer: Value) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.insert(question, Arc::new(OnceLock::from(answer)));
    }

    /// The answer, if it is already known.
    fn recalled(&self, question: &Question) -> Option<Value> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = |question: &Question| asked.get(question)?.get().cloned();
        let of_windows = || self.is_recorded() && question.name.contains('\\');
        answer(question).or_else(|| {
            // Windows accepts both, and recordings written by hand have backslashes throughout.
            let name = of_windows().then(|| question.name.replace('/', "\\"))?;
            answer(&Question::row(question.section, name))
        })
    }

    /// The answer; a live host is asked once, however many checks ask at the same time.
    fn raw(&self, question: Question, budget: Option<Duration>) -> Fact<Value> {
        let Some(live) = &self.live else {
            return self
                .recalled(&question)
                .or_else(|| self.inferred(&question))
                .ok_or_else(|| Unknown(format!("the recording does not include {question}")));
        };
        let cell = {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(asked.entry(question.clone()).or_default())
        };
        Ok(cell.get_or_init(|| live.ask(&question, budget)).clone())
    }

    /// What a recording implies: a variable that its environment omits is unset, and a name that a
    /// listed folder omits does not exist.
    fn inferred(&self, question: &Question) -> Option<Value> {
        match question.section {
            Section::Env if self.has_environment => Some(Value::Null),
            Section::Files
            | Section::Heads
            | Section::Tails
            | Section::Links
            | Section::Folders
            | Section::Stats => self.is_missing_from_its_folder(&question.name).then_some(Value::Null),
            _ => None,
        }
    }

    /// Whether a folder above this path is recorded and does not list what leads to it.
    fn is_missing_from_its_folder(&self, path: &str) -> bool {
        let mut path = path.trim_end_matches(['/', '\\']);
        while let Some(cut) = path.rfind(['/', '\\']) {
            let (parent, name) = (&path[..cut.max(1)], &path[cut + 1..]);
            match self.recalled(&Question::row(Section::Folders, parent)) {
                Some(Value::Array(names)) => return names.iter().all(|listed| listed != name),
                Some(Value::Null) => return true,
                _ if cut == 0 => return false,
                _ => path = parent,
            }
        }
        false
    }

    /// Whether the folder of this path is recorded and lists its name, and no other answer says that
    /// it does not exist.
    fn is_listed(&self, path: &str) -> bool {
        let Some((folder, name)) = path.rsplit_once(['/', '\\']) else { return false };
        let denied = self.recalled(&Question::row(Section::Stats, path)) == Some(Value::Null);
        match self.recalled(&Question::row(Section::Folders, folder)) {
            Some(Value::Array(names)) => !denied && names.iter().any(|listed| listed == name),
            _ => false,
        }
    }

    /// An answer read as `T`; `None` if the thing does not exist.
    fn read<T>(&self, question: Question, read: impl FnOnce(&Value) -> Option<T>) -> Fact<Option<T>> {
        self.read_within(question, None, read)
    }

    pub(super) fn read_within<T>(
        &self,
        question: Question,
        budget: Option<Duration>,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Fact<Option<T>> {
        let what = question.to_string();
        let answer = self.raw(question, budget)?;
        if answer.is_null() {
            return Ok(None);
        }
        if let Some(why) = answer::error(&answer) {
            return Err(Unknown(format!("{what} could not be determined: {why}")));
        }
        read(&answer)
            .map(Some)
            .ok_or_else(|| Unknown(format!("the answer for {what} does not have the documented form")))
    }

    fn one<T: DeserializeOwned>(&self, section: Section) -> Fact<T> {
        let question = Question::one(section);
        let what = question.to_string();
        self.read(question, |value| T::deserialize(value).ok())?
            .ok_or_else(|| Unknown(format!("the system does not report {what}")))
    }

    fn row<T: DeserializeOwned>(&self, section: Section, name: &str) -> Fact<Option<T>> {
        self.read(Question::row(section, name), |value| T::deserialize(value).ok())
    }

    /// `linux`, `windows` or `macos`.
    pub fn os(&self) -> Fact<String> {
        self.one(Section::Os)
    }

    /// The architecture, such as `x86_64` or `aarch64`.
    pub fn arch(&self) -> Fact<String> {
        self.one(Section::Arch)
    }

    /// Seconds since 1970 when the facts were asked.
    pub fn time(&self) -> Fact<u64> {
        self.one(Section::Time)
    }

    /// Who runs `yolo`.
    pub fn user(&self) -> Fact<User> {
        self.one(Section::User)
    }

    /// The machine's name.
    pub fn hostname(&self) -> Fact<String> {
        self.one(Section::Hostname)
    }

    /// Where `yolo` keeps its files.
    pub fn places(&self) -> Fact<KnownPaths> {
        let question = Question::one(Section::Places);
        let what = question.to_string();
        self.read(question, KnownPaths::read)?
            .ok_or_else(|| Unknown(format!("the system does not report {what}")))
    }

    /// Name and kernel of the operating system, CPUs and memory, as it reports them.
    pub fn system(&self) -> Fact<System> {
        self.one(Section::System)
    }

    /// Listening TCP sockets, with the owner of each where it is visible.
    pub fn listening(&self) -> Fact<Vec<Listener>> {
        self.one(Section::Listening)
    }

    /// Network interfaces with their addresses.
    pub fn interfaces(&self) -> Fact<Vec<Interface>> {
        self.one(Section::Interfaces)
    }

    /// Whether this process can start a thread; the inner `Err` says why not.
    pub fn can_start_threads(&self) -> Fact<Result<(), String>> {
        let answer = self.raw(Question::one(Section::Threads), None)?;
        match answer::error(&answer) {
            Some(why) => Ok(Err(why)),
            None if answer == Value::Bool(true) => Ok(Ok(())),
            None => Err(Unknown::because("the answer about threads does not have the documented form")),
        }
    }

    /// Processes that may belong to a run of ours, and those stuck in the kernel.
    pub fn processes(&self) -> Fact<Vec<Process>> {
        self.one(Section::Processes)
    }

    /// The raw answers of the NVIDIA driver; `None` without its library. The views `nvml_state`,
    /// `gpus` and `driver_version` read them.
    pub(super) fn nvml(&self) -> Fact<Option<Value>> {
        let answer = match self.raw(Question::one(Section::Nvml), None) {
            Ok(answer) => answer,
            // A recording may hold the output of nvidia-smi instead.
            Err(why) => self.nvml_of_nvidia_smi().ok_or(why)?,
        };
        Ok((!answer.is_null()).then_some(answer))
    }

    /// The bytes of a file of up to 1 MiB; `None` if there is no such file.
    pub fn file(&self, path: &str) -> Fact<Option<Vec<u8>>> {
        self.read(Question::row(Section::Files, path), answer::bytes)
    }

    /// A file as text, in any of the encodings that Windows uses.
    pub fn text(&self, path: &str) -> Fact<Option<String>> {
        Ok(self.file(path)?.map(|bytes| decode(&bytes)))
    }

    /// The first 512 bytes of a file.
    pub fn head(&self, path: &str) -> Fact<Option<Vec<u8>>> {
        self.read(Question::row(Section::Heads, path), answer::bytes)
    }

    /// The last 512 bytes of a file.
    pub fn tail(&self, path: &str) -> Fact<Option<Vec<u8>>> {
        self.read(Question::row(Section::Tails, path), answer::bytes)
    }

    /// The target of a symbolic link, as written; `None` if there is no link.
    pub fn link(&self, path: &str) -> Fact<Option<String>> {
        self.row(Section::Links, path)
    }

    /// The sorted names in a folder; `None` if there is no such folder.
    pub fn folder(&self, path: &str) -> Fact<Option<Vec<String>>> {
        self.row(Section::Folders, path)
    }

    /// The file or folder at a path, links followed; `None` if nothing exists there.
    pub fn stat(&self, path: &str) -> Fact<Option<Stat>> {
        self.row(Section::Stats, path)
    }

    /// Whether a path exists. A recording with the contents of a file or folder need not repeat it.
    pub fn exists(&self, path: &str) -> Fact<bool> {
        if self.is_recorded() {
            for section in [Section::Files, Section::Folders, Section::Links, Section::Heads] {
                if self.recalled(&Question::row(section, path)).is_some_and(|answer| !answer.is_null()) {
                    return Ok(true);
                }
            }
            if self.is_listed(path) {
                return Ok(true);
            }
            if self.recalled(&Question::row(Section::Files, path)) == Some(Value::Null)
                && self.recalled(&Question::row(Section::Stats, path)).is_none()
            {
                return Ok(false);
            }
        }
        Ok(self.stat(path)?.is_some())
    }

    /// The file system that holds a path, or would hold it: the nearest folder that exists counts.
    pub fn file_system(&self, path: &str) -> Fact<FileSystem> {
        let answer =
            self.row(Section::Filesystems, path).or_else(|why| self.recorded_above(path).ok_or(why))?;
        answer.ok_or_else(|| Unknown(format!("{path} is on no known file system")))
    }

    /// The file system of a path in a recording, from that of a parent folder or from the table of
    /// mounts.
    fn recorded_above(&self, path: &str) -> Option<Option<FileSystem>> {
        if !self.is_recorded() {
            return None;
        }
        let above = |path: &str| Some(Some(self.row(Section::Filesystems, path).ok()??));
        let mut folder = path.trim_end_matches('/');
        while let Some((parent, _)) = folder.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
            if let Some(found) = above(parent) {
                return Some(found);
            }
            folder = parent;
        }
        let table = self.text("/proc/self/mountinfo").ok().flatten();
        if let Some(mount) = table.and_then(|table| yolo_base::mounts::holding(&table, path)) {
            return Some(Some(FileSystem {
                kind: Some(mount.kind),
                mount: Some(mount.point),
                total: None,
                available: None,
                inodes_free: None,
                inodes: None,
                options: mount.options,
            }));
        }
        path.starts_with('/').then(|| above("/"))?
    }

    /// An environment variable; `None` if it is not set.
    pub fn env(&self, name: &str) -> Fact<Option<String>> {
        self.row(Section::Env, name)
    }

    /// An environment variable as a run gets it: at a Windows prompt only if it reaches WSL, in which runs are.
    pub fn env_of_run(&self, name: &str) -> Fact<Option<String>> {
        if self.is_windows().unwrap_or(false) {
            let wslenv = self.env(WSLENV).ok().flatten().unwrap_or_default();
            if !reaches_wsl(name, &wslenv) {
                return Ok(None);
            }
        }
        self.env(name)
    }

    /// The places where the loader finds a shared library for `yolo-trainer`, in its order: it takes
    /// the first. Empty if it finds none.
    pub fn library(&self, name: &str) -> Fact<Vec<Library>> {
        let found = self.read(Question::row(Section::Libraries, name), |value| match value {
            Value::String(path) => Some(vec![Library::at(path)]),
            Value::Array(_) => Vec::deserialize(value).ok(),
            other => Some(vec![Library::deserialize(other).ok()?]),
        })?;
        Ok(found.unwrap_or_default())
    }

    /// The addresses of a host name, by the system's resolver; empty if it knows none.
    pub fn addresses(&self, name: &str) -> Fact<Vec<IpAddr>> {
        Ok(self.row(Section::Names, name)?.unwrap_or_default())
    }

    /// A value of the Windows registry as text, such as
    /// `HKLM\SYSTEM\CurrentControlSet\Control\FileSystem\LongPathsEnabled`.
    pub fn registry(&self, value: &str) -> Fact<Option<String>> {
        self.read(Question::row(Section::Registry, value), |value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
    }

    pub(super) fn binary_answer(&self, path: &str) -> Fact<Option<answer::Binary>> {
        self.row(Section::Binaries, path)
    }

    /// Whether a socket can listen on an address such as `0.0.0.0:29500`; the inner `Err` says why not.
    pub fn can_listen(&self, address: &str) -> Fact<Result<(), String>> {
        let answer = self.raw(Question::row(Section::Binds, address), None)?;
        Ok(match answer::error(&answer) {
            Some(why) => Err(why),
            None => Ok(()),
        })
    }
}

impl Library {
    /// A library of which only the path is known; its version is in the file's name.
    fn at(path: &str) -> Self {
        let version = super::view::library_version(path);
        Self { path: path.to_owned(), real: None, version, via: None }
    }
}
