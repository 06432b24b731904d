//! Setting up a Windows PC: each step is reported, agreed to where it needs consent, and run; then
//! the facts are asked again. A step that would have to run twice has had no effect, and stops.

pub(super) mod facts;
pub(super) mod plan;
mod restart;
pub(super) mod step;

use std::cell::RefCell;
use std::path::PathBuf;

use yolo_checks::Host;
use yolo_checks::wsl::vm::differences;

pub(crate) use facts::WindowsFacts;
pub(crate) use plan::WindowsPlan;
pub(super) use restart::RestartNote;
pub(crate) use step::{Needs, WindowsStep};

use super::error::WslError;
use super::exe::WslExe;
use super::noted::noted;
use super::observer::{Observer, Progress};
use super::{WslRequest, archive, chosen, config};
use crate::undo::{Entry, Journal};
use plan::{Blocked, plan};

/// What setting up a PC works with.
pub(super) struct Setup<'a> {
    /// A host of which nothing has been asked yet.
    pub(super) fresh_host: &'a dyn Fn() -> Host,
    pub(super) exe: &'a WslExe,
    /// This program; the archive with the Linux one is next to it.
    pub(super) yolo: PathBuf,
    pub(super) restart: RestartNote,
    /// The folder of the user's settings.
    pub(super) settings: PathBuf,
    pub(super) observer: &'a dyn Observer,
    pub(super) journal: RefCell<Journal>,
}

impl Setup<'_> {
    /// Brings this PC to where `yolo train` starts inside WSL.
    pub(super) fn run(&self, request: &WslRequest) -> Result<(), WslError> {
        let wanted = request.distribution.as_deref();
        let mut facts = WindowsFacts::of(&(self.fresh_host)(), wanted, self.restart.features())?;
        let mut next = plan(&facts, request);
        self.observer.report(&Progress::WindowsPlan(&facts, &next));
        let mut done: Vec<&'static str> = Vec::new();
        loop {
            if let Some(Blocked { why, remedy }) = next.blocked {
                return Err(WslError::Blocked { why, remedy });
            }
            if request.dry_run {
                return Ok(());
            }
            // `finish` reports a shutdown that changed nothing.
            let is_repeated =
                |step: &WindowsStep| matches!(step, WindowsStep::Shutdown(_)) && done.contains(&step.id());
            let Some(step) = next.steps.into_iter().find(|step| !is_repeated(step)) else { return Ok(()) };
            if done.contains(&step.id()) {
                let command = step.command().unwrap_or_else(|| step.text());
                let still = format!("it would have to {} again", step.text());
                return Err(WslError::NoEffect { command, still });
            }
            self.ask_consent(&step)?;
            self.take_noted(&step, &facts)?;
            done.push(step.id());
            if let WindowsStep::SetUpInside(distribution) = &step {
                return self.finish(distribution);
            }
            facts = facts.after_step(&(self.fresh_host)(), wanted, self.restart.features())?;
            next = plan(&facts, request);
        }
    }

    /// Reports a step and, if it needs consent, asks for it.
    fn ask_consent(&self, step: &WindowsStep) -> Result<(), WslError> {
        self.observer.report(&Progress::WindowsStep(step));
        // The user restarts Windows; nothing is done without them.
        if matches!(step.needs(), Needs::Nothing | Needs::Restart) {
            return Ok(());
        }
        let what = || format!("`{}`", step.command().unwrap_or_else(|| step.text()));
        match self.observer.confirm() {
            Some(true) => Ok(()),
            answer => Err(WslError::Consent { what: what(), asked: answer.is_some() }),
        }
    }

    /// Takes a step, and notes it if it changes this PC.
    fn take_noted(&self, step: &WindowsStep, facts: &WindowsFacts) -> Result<(), WslError> {
        let Some(note) = step.note() else { return self.take(step, facts) };
        let describe = |entry: &mut Entry| {
            note.steps.into_iter().for_each(|step| entry.step(step));
            if let Some(why) = note.stays {
                entry.stays(why, note.by_hand);
            }
            Ok(())
        };
        noted(&mut self.journal.borrow_mut(), &note.what, describe, || self.take(step, facts))
    }

    fn take(&self, step: &WindowsStep, facts: &WindowsFacts) -> Result<(), WslError> {
        let arguments = step.arguments().unwrap_or_default();
        match step {
            WindowsStep::RestartWindows => Err(WslError::Restart),
            WindowsStep::WriteConfig(values) => {
                // It notes itself what it writes.
                let written = config::write(&facts.config, values, &mut self.journal.borrow_mut())?;
                self.observer.report(&Progress::ConfigWritten(&written));
                Ok(())
            }
            WindowsStep::PutProgram(_) => {
                self.exe.run_with_input(&arguments, &archive::archive_next_to(&self.yolo)?)
            }
            WindowsStep::InstallWsl => {
                let installed = self.exe.run(&arguments);
                // Some releases fail to say that a restart is due. The run after the restart then
                // finds WSL, or installs it again.
                self.restart.write()?;
                installed
            }
            _ => self.exe.run(&arguments),
        }
    }

    /// Lets commands at this prompt run in the distribution, compares the virtual machine with `.wslconfig`, and reports
    /// what to do next.
    fn finish(&self, distribution: &str) -> Result<(), WslError> {
        chosen::remember(&self.settings, distribution)?;
        let host = (self.fresh_host)();
        let config = host.wslconfig().map_err(WslError::Unknown)?;
        if let Some(vm) = host.wsl_vm_of(distribution).map_err(WslError::Unknown)? {
            let missing = differences(&config.document, host.windows_pc().ok().as_ref(), &vm);
            for one in &missing {
                self.observer.report(&Progress::NotInEffect(one));
            }
            if missing.is_empty() {
                self.observer.report(&Progress::InEffect(&vm));
            }
        }
        let command = WslExe::command_line(&["-d", distribution, "--cd", "~"]);
        self.observer.report(&Progress::Ready(&command));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! PCs whose `wsl.exe` is a stand-in that replays answers, in Italian and as UTF-16.

    use std::fs;
    use std::path::Path;

    use serde_json::json;
    use sha2::{Digest as _, Sha256};
    use yolo_base::Hint as _;

    use super::*;
    use crate::dirs::YoloDirs;

    const GIB: u64 = 1 << 30;
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// A PC with a stand-in for `wsl.exe`.
    struct Bench {
        folder: tempfile::TempDir,
        exe: WslExe,
        windows_started: u64,
    }

    /// Agrees to everything, or has nobody to ask.
    struct Quiet {
        yes: bool,
    }

    impl Observer for Quiet {
        fn report(&self, _: &Progress<'_>) {}

        fn confirm(&self) -> Option<bool> {
            self.yes.then_some(true)
        }
    }

    fn meminfo(memory: u64) -> String {
        format!(
            "8\nMemTotal:       {} kB\nSwapTotal:       {} kB\n",
            memory / 1024 * 97 / 100,
            3 * GIB / 1024
        )
    }

    /// What an Italian Windows answers once WSL and Ubuntu are there.
    fn italian() -> Vec<serde_json::Value> {
        vec![
            json!({"words": "--status", "utf16": true, "stdout": "Distribuzione predefinita: Ubuntu\nVersione predefinita: 2\n"}),
            json!({"words": "--version", "utf16": true,
            "stdout": "Versione WSL: 2.5.7.0\nVersione kernel: 6.6.87.1-1\nVersione di Windows: 10.0.26100.4061\n"}),
            json!({"words": "-l -v", "utf16": true,
            "stdout": "  NOME      STATO           VERSIONE\n* Ubuntu    In esecuzione   2\n"}),
            json!({"words": "-d Ubuntu -u root --exec /opt/yolo/yolo --version", "stdout": format!("yolo {VERSION}\n")}),
            json!({"words": "-d Ubuntu --cd ~ --exec /opt/yolo/yolo setup"}),
        ]
    }

    impl Bench {
        fn new(answers: Vec<serde_json::Value>) -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("profile")).unwrap();
            fs::write(folder.path().join("answers.json"), json!(answers).to_string()).unwrap();
            let test = std::env::current_exe().unwrap();
            let target = test.parent().and_then(Path::parent).unwrap();
            let name = format!("stand_in_wsl{}", std::env::consts::EXE_SUFFIX);
            let built = target.join("examples").join(&name);
            // `cargo test --lib` does not build examples, and would run a stale one.
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/stand_in_wsl.rs");
            let modified = |file: &Path| fs::metadata(file).and_then(|data| data.modified()).ok();
            assert!(
                modified(&built) >= modified(&source),
                "{} is missing or older than its source: run `cargo build --example stand_in_wsl` first",
                built.display()
            );
            // It replays the answers next to it.
            let copy = folder.path().join(&name);
            fs::hard_link(&built, &copy).or_else(|_| fs::copy(&built, &copy).map(|_| ())).unwrap();
            Self { folder, exe: WslExe::stand_in(copy), windows_started: 1000 }
        }

        /// A Windows PC of 16 GB that runs the stand-in.
        fn host(&self) -> Host {
            let known = json!({
                "version": 1, "os": "windows", "arch": "x86_64",
                "env": { "USERPROFILE": self.profile(), "SystemRoot": null, "TEMP": null, "TMP": null },
                "files": { "/proc/meminfo": null },
                "system": { "name": "Windows 11 (26100)", "kernel": "26100", "cores": 8, "memory_total": 16 * GIB },
                "registry": { r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\CurrentBuildNumber": "26100" },
            });
            let (known, _) = Host::from_value(known).unwrap();
            Host::of_this_machine(&yolo_checks::KnownPaths::default())
                .with_known(&known)
                .with_wsl_exe(self.exe.program(), std::time::Duration::from_secs(60))
        }

        fn profile(&self) -> PathBuf {
            self.folder.path().join("profile")
        }

        /// Puts a release next to the program.
        fn release(&self) -> PathBuf {
            let archive = archive::archive_name();
            fs::write(self.folder.path().join(&archive), "the archive").unwrap();
            let sums = format!("{}  {archive}\n", hex::encode(Sha256::digest("the archive")));
            fs::write(self.folder.path().join("SHA256SUMS"), sums).unwrap();
            self.folder.path().join("yolo.exe")
        }

        fn set_up(&self, yes: bool) -> Result<(), WslError> {
            self.run(yes, false)
        }

        fn run(&self, yes: bool, dry_run: bool) -> Result<(), WslError> {
            let file = self.folder.path().join("data/wsl-installed.json");
            Setup {
                fresh_host: &|| self.host(),
                exe: &self.exe,
                yolo: self.release(),
                restart: RestartNote { file, windows_started: self.windows_started },
                settings: self.folder.path().join("settings"),
                observer: &Quiet { yes },
                journal: Journal::of(&YoloDirs::under(self.folder.path()), "yolo setup --wsl").into(),
            }
            .run(&WslRequest { dry_run, ..WslRequest::default() })
        }

        fn config(&self, text: &str) {
            fs::write(self.profile().join(".wslconfig"), text).unwrap();
        }

        fn file(&self, name: &str) -> String {
            fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
        }

        /// The calls that changed something.
        fn changes(&self) -> Vec<String> {
            let questions = [
                "--status",
                "--version",
                "-l ",
                "-d Ubuntu -u root --exec /opt",
                "-d Ubuntu -u root --exec sh -c nproc",
            ];
            let log = self.file("calls.log");
            assert!(!log.contains("no answer"), "{log}");
            let asked = |call: &&str| questions.iter().any(|question| call.starts_with(question));
            log.lines().filter(|call| !asked(call)).map(str::to_owned).collect()
        }
    }

    #[test]
    fn a_healthy_italian_pc_only_runs_setup_inside() {
        let mut answers = italian();
        answers.push(json!({"words": "-l --running -q", "stdout": "Ubuntu\n"}));
        answers.push(json!({"words": "-d Ubuntu -u root --exec sh -c nproc", "stdout": meminfo(8 * GIB)}));
        let bench = Bench::new(answers);
        let text = "# mio\r\n[wsl2]\r\nmemory = 8GB # meta'\r\nswap=3GB\r\nprocessors=8\r\n";
        bench.config(text);
        bench.set_up(false).unwrap();
        assert_eq!(bench.changes(), ["-d Ubuntu --cd ~ --exec /opt/yolo/yolo setup"]);
        assert_eq!(bench.file("profile/.wslconfig"), text);
        assert_eq!(bench.file("settings/wsl.json"), r#"{"distribution":"Ubuntu"}"#);
    }

    #[test]
    fn a_bare_pc_is_set_up_across_a_restart() {
        let help = "Il sottosistema Windows per Linux non è installato. È possibile installarlo eseguendo 'wsl.exe --install'.\n";
        let mut answers = vec![
            json!({"words": "--status", "state": "", "utf16": true, "stdout": help, "code": 50}),
            json!({"words": "--install --no-distribution", "state": "", "then": "features"}),
            json!({"words": "--status", "state": "features", "utf16": true, "code": 1,
            "stdout": "Codice errore: Wsl/WSL_E_WSL_OPTIONAL_COMPONENT_REQUIRED\n"}),
            // After the restart: WSL without a distribution.
            json!({"words": "--status", "state": "restarted", "utf16": true, "stdout": "Versione predefinita: 1\n"}),
            json!({"words": "--set-default-version 2", "state": "restarted", "then": "two"}),
            json!({"words": "--status", "state": "two", "utf16": true, "stdout": "Versione predefinita: 2\n"}),
            json!({"words": "-l -v", "state": "restarted", "utf16": true, "code": -1, "stdout": "Nessuna distribuzione installata.\n"}),
            json!({"words": "-l -v", "state": "two", "utf16": true, "code": -1, "stdout": "Nessuna distribuzione installata.\n"}),
            json!({"words": "--install -d Ubuntu --no-launch", "state": "two", "then": "ubuntu"}),
            json!({"words": "-d Ubuntu -u root --exec /opt/yolo/yolo --version", "state": "ubuntu", "code": 127}),
            json!({"words": "-d Ubuntu -u root --exec sh -c set -e", "state": "ubuntu", "reads": true, "then": "ready"}),
            json!({"words": "-l --running -q", "utf16": true, "code": -1, "stdout": "Nessuna distribuzione in esecuzione.\n"}),
            json!({"words": "-d Ubuntu -u root --exec sh -c nproc", "state": "ready", "stdout": meminfo(8 * GIB)}),
        ];
        answers.extend(italian());
        let mut bench = Bench::new(answers);

        // It is installed, and nothing more can be done before the restart; nor twice.
        for _ in 0..2 {
            let stopped = bench.set_up(true).unwrap_err();
            assert!(matches!(stopped, WslError::Restart), "{stopped}");
            assert_eq!(bench.changes(), ["--install --no-distribution"]);
        }

        bench.windows_started = u64::MAX;
        fs::write(bench.folder.path().join("state"), "restarted").unwrap();
        bench.set_up(true).unwrap();
        assert_eq!(
            bench.changes()[1..],
            [
                "--set-default-version 2".to_owned(),
                "--install -d Ubuntu --no-launch".to_owned(),
                format!("-d Ubuntu -u root --exec sh -c {}", super::step::UNPACK),
                "-d Ubuntu --cd ~ --exec /opt/yolo/yolo setup".to_owned(),
            ]
        );
        assert_eq!(bench.file("stdin"), "the archive");
        assert_eq!(bench.file("profile/.wslconfig"), "[wsl2]\r\nmemory=8GB\r\nswap=2GB\r\nprocessors=8\r\n");
    }

    /// A PC whose WSL runs with less memory than `.wslconfig` asks for until it is restarted.
    fn starved(after: u64) -> Bench {
        let mut answers = vec![
            json!({"words": "-l --running -q", "state": "", "stdout": "Ubuntu\n"}),
            json!({"words": "-l --running -q", "state": "down", "code": -1}),
            json!({"words": "-d Ubuntu -u root --exec sh -c nproc", "state": "", "stdout": meminfo(256 << 20)}),
            json!({"words": "-d Ubuntu -u root --exec sh -c nproc", "state": "down", "stdout": meminfo(after)}),
            json!({"words": "--shutdown", "state": "", "then": "down"}),
        ];
        answers.extend(italian());
        let bench = Bench::new(answers);
        bench.config("[wsl2]\r\nmemory=8   # basta\r\nswap=3GB\r\nprocessors=8\r\n");
        bench
    }

    #[test]
    fn a_shutdown_needs_consent_and_applies_the_file() {
        let bench = starved(8 * GIB);
        let refused = bench.set_up(false).unwrap_err();
        assert!(
            matches!(&refused, WslError::Consent { what, asked: false } if what.contains("--shutdown")),
            "{refused}"
        );
        assert_eq!(bench.changes(), [""; 0]);
        // The file was written before the question, and stays.
        assert_eq!(
            bench.file("profile/.wslconfig"),
            "[wsl2]\r\nmemory=8GB   # basta\r\nswap=3GB\r\nprocessors=8\r\n"
        );
        bench.set_up(true).unwrap();
        assert_eq!(bench.changes(), ["--shutdown", "-d Ubuntu --cd ~ --exec /opt/yolo/yolo setup"]);
    }

    #[test]
    fn a_step_without_effect_is_not_repeated() {
        let mut answers = vec![
            json!({"words": "--status", "utf16": true, "stdout": "Distribuzione predefinita: Ubuntu\nVersione predefinita: 1\n"}),
            json!({"words": "--set-default-version 2"}),
            json!({"words": "-l --running -q", "code": -1}),
        ];
        answers.extend(italian());
        let stuck = Bench::new(answers).set_up(true).unwrap_err();
        assert!(
            matches!(&stuck, WslError::NoEffect { command, .. } if command == "wsl.exe --set-default-version 2"),
            "{stuck}"
        );
    }

    #[test]
    fn a_dry_run_changes_nothing() {
        let bench = starved(8 * GIB);
        let before = bench.file("profile/.wslconfig");
        bench.run(true, true).unwrap();
        assert_eq!((bench.changes(), bench.file("profile/.wslconfig")), (vec![], before));
    }

    #[test]
    fn a_failed_step_reports_its_code() {
        let mut answers = vec![
            json!({"words": "-d Ubuntu -u root --exec /opt/yolo/yolo --version", "code": 127}),
            json!({"words": "-d Ubuntu -u root --exec sh -c set -e", "utf16": true, "code": -1, "reads": true,
            "stdout": "Spazio su disco insufficiente.\nCodice errore: Wsl/Service/CreateInstance/0x80070070\n"}),
            json!({"words": "-l --running -q", "code": -1}),
        ];
        answers.extend(italian());
        let bench = Bench::new(answers);
        bench.config("[wsl2]\nmemory=8GB\nswap=3GB\nprocessors=8\n");
        let failed = bench.set_up(true).unwrap_err();
        assert!(failed.to_string().contains("0x80070070"), "{failed}");
        assert!(failed.hint().is_some_and(|hint| hint.contains("free some space")), "{failed}");
    }
}
