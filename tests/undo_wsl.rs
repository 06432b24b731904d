//! `yolo undo` of what `yolo setup --wsl` has changed in Windows and in WSL, with a stand-in for `wsl.exe`. On Linux, the
//! change is a recorded one; under Wine, `yolo setup --wsl` makes it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use user::{Finished, User};

/// How the Linux program is removed from the distribution, and nothing else.
const REMOVE: &str = "-d Ubuntu -u root --exec sh -c set -e; rm -rf /opt/yolo /opt/.yolo-new /opt/.yolo-old;";

/// A PC with a stand-in for `wsl.exe`, and a home for `yolo`.
struct Pc {
    user: User,
}

impl Pc {
    fn new(answers: &[Value]) -> Self {
        let pc = Self { user: User::new() };
        std::fs::create_dir_all(pc.folder("answers")).unwrap();
        std::fs::create_dir_all(pc.folder("profile")).unwrap();
        pc.answers(answers);
        pc
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.user.path().join(name)
    }

    fn answers(&self, answers: &[Value]) {
        std::fs::write(self.folder("answers").join("answers.json"), json!(answers).to_string()).unwrap();
    }

    fn run(&self, words: &str) -> Finished {
        let test = std::env::current_exe().unwrap();
        let stand_in = test.ancestors().nth(2).unwrap().join("examples").join("stand_in_wsl");
        let mut command = self.user.command(words);
        command
            .env("YOLO_WSL", stand_in.with_extension(std::env::consts::EXE_EXTENSION))
            .env("STAND_IN_WSL", self.folder("answers"))
            .env("USERPROFILE", self.folder("profile"))
            .env("YOLO_HOME", self.folder("yolo home"));
        Finished::from(command.stdin(Stdio::null()).output().unwrap())
    }

    /// Notes that the program was put into Ubuntu, as `yolo setup --wsl` does.
    fn note_program(&self) {
        let folder = self.folder("yolo home").join("config/backups/1");
        std::fs::create_dir_all(&folder).unwrap();
        let record = json!({
            "version": 1, "number": 1, "at": 1_790_000_000, "command": "yolo setup --wsl",
            "what": "installed yolo in the WSL distribution Ubuntu", "state": "made",
            "steps": [{ "kind": "linux-program", "distribution": "Ubuntu" }],
        });
        std::fs::write(folder.join("record.json"), record.to_string()).unwrap();
    }

    /// The calls of `wsl.exe` that remove something.
    fn removals(&self) -> usize {
        let log = std::fs::read_to_string(self.folder("answers").join("calls.log")).unwrap_or_default();
        log.lines().filter(|call| call.starts_with(REMOVE)).count()
    }
}

#[test]
fn the_linux_program_is_removed_once_and_nothing_else() {
    let pc = Pc::new(&[json!({ "words": "-d Ubuntu -u root --exec sh -c set -e; rm -rf /opt/yolo" })]);
    pc.note_program();
    let plan = pc.run("undo last --dry-run").succeeded().stdout;
    assert!(plan.contains("remove /opt/yolo from the distribution Ubuntu, and nothing else"), "{plan}");
    assert_eq!(pc.removals(), 0);
    let output = pc.run("undo last --yes").succeeded();
    let said = format!("{}{}", output.stdout, output.stderr);
    assert!(said.contains("removed /opt/yolo from the distribution Ubuntu"), "{said}");
    assert_eq!(pc.removals(), 1);
    pc.run("undo 1 --yes").failed_with(1, &["change 1 was not undone: it has already been undone"]);
    assert_eq!(pc.removals(), 1);
}

#[test]
fn a_distribution_that_is_gone_needs_no_removal() {
    let answer = "Il n'existe aucune distribution avec le nom fourni.\nCode d'erreur : Wsl/Service/WSL_E_DISTRO_NOT_FOUND\n";
    let pc = Pc::new(&[json!({ "words": "-d Ubuntu", "stdout": answer, "utf16": true, "code": -1 })]);
    pc.note_program();
    let output = pc.run("undo last --yes").succeeded();
    let said = format!("{}{}", output.stdout, output.stderr);
    assert!(said.contains("nothing to remove: the distribution Ubuntu is gone"), "{said}");
}

#[test]
fn a_wsl_that_fails_leaves_the_change_to_be_undone() {
    let answer = "Speicherplatz.\nFehlercode: Wsl/Service/CreateInstance/0x80070070\n";
    let pc = Pc::new(&[json!({ "words": "-d Ubuntu", "stdout": answer, "utf16": true, "code": -1 })]);
    pc.note_program();
    pc.run("undo last --yes").failed_with(
        1,
        &["change 1 was not undone", "wsl.exe -d Ubuntu -u root", "0x80070070", "free some space"],
    );
    pc.answers(&[json!({ "words": "-d Ubuntu" })]);
    pc.run("undo last --yes").succeeded();
    assert_eq!(pc.removals(), 2);
}

/// With `--distribution`, the changes inside the distribution are meant.
#[cfg(windows)]
#[test]
fn the_changes_inside_a_distribution_are_listed_there() {
    let pc = Pc::new(&[
        json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo undo", "stdout": "said\n", "code": 80 }),
    ]);
    pc.note_program();
    assert_eq!(pc.run("undo --distribution Ubuntu").succeeded().stdout, "said\n");
    assert!(pc.run("undo").succeeded().stdout.contains("installed yolo in the WSL distribution Ubuntu"));
}

/// The whole way: `yolo setup --wsl` writes `.wslconfig` and copies the program, and `yolo undo` undoes both.
#[cfg(windows)]
#[test]
fn what_setup_has_changed_is_undone() {
    use sha2::Digest as _;

    let version = env!("CARGO_PKG_VERSION");
    let pc = Pc::new(&[
        json!({ "words": "--status", "utf16": true, "stdout": "Standarddistribution: Ubuntu\nStandardversion: 2\n" }),
        json!({ "words": "--version", "utf16": true, "stdout": "WSL-Version: 2.5.7.0\nKernelversion: 6.6.87.1-1\n" }),
        json!({ "words": "-l -v", "utf16": true, "stdout": "  NAME      STATE           VERSION\n* Ubuntu    Stopped         2\n" }),
        json!({ "words": "-l --running -q", "utf16": true, "code": -1, "stdout": "Es werden keine Distributionen ausgeführt.\n" }),
        json!({ "words": "-d Ubuntu -u root --exec /opt/yolo/yolo --version", "state": "", "code": 127 }),
        json!({ "words": "-d Ubuntu -u root --exec /opt/yolo/yolo --version", "stdout": format!("yolo {version}\n") }),
        json!({ "words": "-d Ubuntu -u root --exec sh -c set -e; mkdir", "reads": true, "then": "installed" }),
        json!({ "words": "-d Ubuntu -u root --exec sh -c nproc", "stdout": "2\nMemTotal: 1 kB\nSwapTotal: 0 kB\n" }),
        json!({ "words": "-d Ubuntu --cd ~ --exec /opt/yolo/yolo setup" }),
        json!({ "words": "-d Ubuntu -u root --exec sh -c set -e; rm -rf /opt/yolo" }),
    ]);
    // A release: the Linux archive is next to yolo.exe.
    let release = pc.folder("release");
    std::fs::create_dir_all(&release).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_yolo"), release.join("yolo.exe")).unwrap();
    let archive = format!("yolo-{version}-x86_64-unknown-linux-gnu.tar.gz");
    std::fs::write(release.join(&archive), "archive").unwrap();
    let sum = hex(&sha2::Sha256::digest("archive"));
    std::fs::write(release.join("SHA256SUMS"), format!("{sum}  {archive}\n")).unwrap();
    let config = pc.folder("profile").join(".wslconfig");
    let before = "# mine\r\n[wsl2]\r\nmemory = 8   # GB!\r\n";
    std::fs::write(&config, before).unwrap();

    let test = std::env::current_exe().unwrap();
    let mut command = std::process::Command::new(release.join("yolo.exe"));
    command
        .args(["setup", "--wsl", "--yes"])
        .current_dir(pc.user.path())
        .env("YOLO_WSL", test.ancestors().nth(2).unwrap().join("examples").join("stand_in_wsl.exe"))
        .env("STAND_IN_WSL", pc.folder("answers"))
        .env("USERPROFILE", pc.folder("profile"))
        .env("YOLO_HOME", pc.folder("yolo home"))
        .stdin(Stdio::null());
    Finished::from(command.output().unwrap()).succeeded();
    assert_eq!(std::fs::read_to_string(pc.folder("answers").join("stdin")).unwrap(), "archive");
    assert_ne!(std::fs::read_to_string(&config).unwrap(), before);

    let report: Value = serde_json::from_str(&pc.run("undo --json").succeeded().stdout).unwrap();
    let changes = report["changes"].as_array().unwrap();
    let possible: Vec<&str> = changes
        .iter()
        .filter(|one| one["undo"] == "possible")
        .map(|one| one["what"].as_str().unwrap())
        .collect();
    assert_eq!(possible.len(), 2, "{report:#}");
    let numbers: Vec<String> = changes.iter().map(|one| one["number"].to_string()).collect();
    pc.run(&format!("undo {} --yes", numbers.join(" "))).succeeded();
    assert_eq!(std::fs::read_to_string(&config).unwrap(), before);
    assert_eq!(std::fs::read_dir(pc.folder("profile")).unwrap().count(), 1, "the copy is removed, too");
    assert_eq!(pc.removals(), 1);
}

#[cfg(windows)]
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
