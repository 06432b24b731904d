//! Setting up PCs whose `wsl.exe` is a stand-in that replays answers, in Italian and as UTF-16.

use std::fs;

use serde_json::json;
use sha2::{Digest as _, Sha256};
use yolo_checks::wsl::sizing::Pc;

use super::*;
use crate::printer::Printer;

const GIB: u64 = 1 << 30;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A PC with a stand-in for `wsl.exe`.
struct Bench {
    folder: tempfile::TempDir,
    pc: WindowsPc,
}

fn meminfo(memory: u64) -> String {
    format!("8\nMemTotal:       {} kB\nSwapTotal:       {} kB\n", memory / 1024 * 97 / 100, 3 * GIB / 1024)
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
        let stand_in = target.join("examples").join(format!("stand_in_wsl{}", std::env::consts::EXE_SUFFIX));
        assert!(stand_in.is_file(), "build it first: cargo build --example stand_in_wsl");
        let pc = WindowsPc {
            wsl: WslExe::stand_in(stand_in, folder.path()),
            profile: folder.path().join("profile"),
            architecture: "x86_64".to_owned(),
            pc: Some(Pc {
                memory: 16 * GIB,
                processors: 8,
                windows_build: Some(26100),
                swap_disk_free: None,
            }),
            virtualization: Some(true),
            started: 1000,
            note: folder.path().join("data/wsl-installed.json"),
        };
        Self { folder, pc }
    }

    /// Puts a release beside the program.
    fn release(&self) -> PathBuf {
        let archive = program::archive_name();
        fs::write(self.folder.path().join(&archive), "the archive").unwrap();
        let sums = format!("{}  {archive}\n", hex::encode(Sha256::digest("the archive")));
        fs::write(self.folder.path().join("SHA256SUMS"), sums).unwrap();
        self.folder.path().join("yolo.exe")
    }

    fn set_up(&self, yes: bool) -> Result<(), WslError> {
        let printer = Printer::new(true);
        let talk = Talk { printer: &printer, yes, dry_run: false, json: false };
        set_up(&self.pc, &self.release(), &Wishes::default(), &talk)
    }

    fn config(&self, text: &str) {
        fs::write(self.pc.profile.join(".wslconfig"), text).unwrap();
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

    bench.pc.started = u64::MAX;
    fs::write(bench.folder.path().join("state"), "restarted").unwrap();
    bench.set_up(true).unwrap();
    assert_eq!(
        bench.changes()[1..],
        [
            "--set-default-version 2".to_owned(),
            "--install -d Ubuntu --no-launch".to_owned(),
            format!("-d Ubuntu -u root --exec sh -c {}", super::super::plan::UNPACK),
            "-d Ubuntu --cd ~ --exec /opt/yolo/yolo setup".to_owned(),
        ]
    );
    assert_eq!(bench.file("stdin"), "the archive");
    assert_eq!(bench.file("profile/.wslconfig"), "[wsl2]\r\nmemory=8GB\r\nswap=2GB\r\nprocessors=8\r\n");
}

/// A PC whose WSL runs with less than it should, and starts anew.
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
fn a_shutdown_is_asked_for_and_makes_the_file_count() {
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
fn a_step_without_effect_is_not_taken_twice() {
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
    let printer = Printer::new(true);
    let talk = Talk { printer: &printer, yes: true, dry_run: true, json: false };
    let before = bench.file("profile/.wslconfig");
    set_up(&bench.pc, &bench.release(), &Wishes::default(), &talk).unwrap();
    assert_eq!((bench.changes(), bench.file("profile/.wslconfig")), (vec![], before));
}

#[test]
fn a_failed_step_is_told_with_its_code() {
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
