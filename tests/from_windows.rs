//! Commands typed at a Windows prompt, with a `wsl.exe` that runs the Linux program or replays recorded answers. On
//! Linux, `yolo_in_windows` stands for `yolo.exe`. Under Wine it is `yolo.exe` itself; there, training runs in Linux through
//! `linux_side`, if YOLO_TEST_LINUX has what that program prints. `.ci/windows` does not start it yet.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it skips"
)]

#[path = "support/user.rs"]
mod user;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use user::{Finished, User};

/// A Windows PC with a stand-in for `wsl.exe`.
struct Pc {
    user: User,
}

/// An example that is built beside this test.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples").join(name);
    let path = path.with_extension(std::env::consts::EXE_EXTENSION);
    assert!(path.exists(), "{} is missing: run `cargo build --examples`", path.display());
    path
}

impl Pc {
    /// A PC whose `wsl.exe` gives these answers.
    fn answering(answers: &[Value]) -> Self {
        let pc = Self { user: User::new() };
        std::fs::create_dir_all(pc.answers()).unwrap();
        std::fs::write(pc.answers().join("answers.json"), json!(answers).to_string()).unwrap();
        std::fs::create_dir_all(pc.work()).unwrap();
        pc
    }

    fn answers(&self) -> PathBuf {
        self.user.path().join("answers")
    }

    /// The working folder.
    fn work(&self) -> PathBuf {
        self.user.path().join("Zoë Müller 数据")
    }

    /// `yolo.exe` with these arguments.
    fn command(&self, arguments: &[&str]) -> Command {
        #[cfg(windows)]
        let mut command = Command::new(env!("CARGO_BIN_EXE_yolo"));
        #[cfg(not(windows))]
        let mut command = Command::new(example("yolo_in_windows"));
        command
            .args(arguments)
            .current_dir(self.work())
            .env("YOLO_WSL", example("stand_in_wsl"))
            .env("STAND_IN_WSL", self.answers())
            .env("OMP_NUM_THREADS", "1")
            .env("YOLO_OFFLINE", "1")
            .env_remove("WSLENV")
            .env_remove("YOLO_MIRROR")
            .stdin(std::process::Stdio::null());
        if cfg!(windows) {
            command
                .env("LOCALAPPDATA", self.user.path().join("local"))
                .env("APPDATA", self.user.path().join("roaming"));
        } else {
            command.env("XDG_CONFIG_HOME", self.user.path().join("config"));
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        Finished::from(self.command(arguments).output().unwrap())
    }

    /// The calls of `wsl.exe`.
    fn calls(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.answers().join("calls.log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

/// What a distribution lists in five languages, as WSL's own localization words it, and whether as UTF-16.
const LISTS: [(&str, &str, bool); 6] = [
    (
        "de",
        "  NAME              STATUS          VERSION\n* docker-desktop    Wird ausgeführt 2\n  Ubuntu            Beendet         2\n",
        true,
    ),
    (
        "fr",
        "  NOM       ÉTAT            VERSION\n* Ubuntu    En cours d’exécution   2\n  Vieux     Arrêté          1\n",
        true,
    ),
    ("it", "  NOME      STATO           VERSIONE\n* Ubuntu    In esecuzione   2\n", false),
    ("es", "  NOMBRE    ESTADO          VERSIÓN\n* Ubuntu    En ejecución    2\n", true),
    ("ja", "  NAME      状態            バージョン\n* Ubuntu    実行中          2\n", true),
    ("zh", "  NAME      状态            版本\n* Ubuntu    正在运行        2\n", false),
];

fn list(text: &str, utf16: bool) -> Value {
    json!({ "words": "-l -v", "stdout": text, "utf16": utf16 })
}

fn italian() -> Value {
    list(LISTS[2].1, true)
}

#[test]
fn the_distribution_is_found_in_five_languages() {
    for (language, text, utf16) in LISTS {
        let run = json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo train", "code": 80 });
        let pc = Pc::answering(&[list(text, utf16), run]);
        let output = pc.run(&["train", "--data", "shapes"]);
        assert_eq!(output.code, Some(0), "{language}: {}", output.stderr);
        assert_eq!(
            pc.calls(),
            ["-l -v", "-d Ubuntu --exec /opt/yolo/yolo train --data shapes"],
            "{language}"
        );
    }
}

#[test]
fn arguments_arrive_as_they_were_typed_and_statuses_come_back() {
    for (answer, status) in [(80, 0), (81, 1), (82, 2), (90, 130)] {
        let run = json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo", "code": answer, "stdout": "said\n" });
        let pc = Pc::answering(&[italian(), run]);
        let typed = ["val", "--data", r"C:\my data\数.yaml", "--weights", "a\"b", "--name", "", "-q"];
        let output = pc.run(&typed);
        assert_eq!((output.code, output.stdout.as_str()), (Some(status), "said\n"), "{}", output.stderr);
        let words = typed.join(" ");
        assert_eq!(pc.calls()[1], format!("-d Ubuntu --exec /opt/yolo/yolo {words}"));
    }
}

#[test]
fn a_named_distribution_costs_one_call() {
    let run = json!({ "words": "-d Debian --exec /opt/yolo/yolo", "code": 80 });
    let pc = Pc::answering(&[run]);
    assert_eq!(pc.run(&["train", "--distribution", "Debian"]).code, Some(0));
    assert_eq!(pc.calls().len(), 1);
}

#[test]
fn invalid_options_are_refused_before_wsl_starts() {
    let pc = Pc::answering(&[]);
    let output = pc.run(&["train", "--epochs", "many"]);
    output.failed_with(2, &["--epochs", "many"]);
    assert!(pc.run(&["train", "--help"]).succeeded().stdout.contains("--distribution"));
    assert_eq!(pc.calls(), Vec::<String>::new());
}

#[test]
fn what_is_missing_is_named_with_the_one_command() {
    let none = "Für das Windows-Subsystem für Linux wurden keine Distributionen installiert.\n\
                Fehlercode: Wsl/WSL_E_DEFAULT_DISTRO_NOT_FOUND\n";
    let stub = "Le Sous-système Windows pour Linux n’est pas installé. Vous pouvez l’installer en exécutant « wsl.exe --install ».\n";
    let execvpe = "<3>WSL (9 - Relay) ERROR: CreateProcessCommon:735: execvpe(/opt/yolo/yolo) failed: No such file or directory\n";
    let failing = |words: &str, text: &str, utf16: bool, code: i32| json!({ "words": words, "stdout": text, "utf16": utf16, "code": code });
    for (answers, part) in [
        (vec![failing("-l -v", none, true, -1)], "has no Linux distribution"),
        (vec![failing("-l -v", none, false, -1)], "has no Linux distribution"),
        (vec![failing("-l -v", stub, true, 50)], "is not installed"),
        (
            vec![list(
                "  NAME              STATE           VERSION\n* docker-desktop    Running         2\n",
                true,
            )],
            "only docker-desktop",
        ),
        (
            vec![italian(), failing("-d Ubuntu --exec /opt/yolo/yolo", execvpe, false, 1)],
            "yolo is not installed in Ubuntu",
        ),
        (
            vec![
                italian(),
                json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo train", "code": 1 }),
                json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo --version", "stdout": "yolo 0.0.1\n" }),
            ],
            "version 0.0.1",
        ),
    ] {
        let pc = Pc::answering(&answers);
        pc.run(&["train"]).failed_with(1, &[part, "yolo setup --wsl"]);
    }
    let pc = Pc::answering(&[list(LISTS[1].1, true)]);
    let mut command = pc.command(&["train"]);
    let output = Finished::from(command.env("YOLO_WSL", pc.work().join("no wsl.exe")).output().unwrap());
    output.failed_with(1, &["is not installed", "yolo setup --wsl"]);
}

#[test]
fn trouble_of_wsl_is_explained_in_any_language() {
    for (text, utf16, part) in [
        (
            "请启用虚拟机平台 Windows 功能并确保在 BIOS 中启用虚拟化。\n错误代码: Wsl/Service/CreateInstance/CreateVm/HCS/0x80370102\n",
            true,
            "virtualization is off",
        ),
        (
            "ディスクの空き領域が不足しています。\nエラー コード: Wsl/Service/0x80070070\n",
            false,
            "Windows disk is full",
        ),
        (
            "Der Remoteprozeduraufruf ist fehlgeschlagen.\nFehlercode: Wsl/Service/0x800706be\n",
            true,
            "0x800706be",
        ),
    ] {
        let pc = Pc::answering(&[
            italian(),
            json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo", "stdout": text, "utf16": utf16, "code": -1 }),
        ]);
        pc.run(&["train"]).failed_with(1, &["cannot run yolo in Ubuntu", part]);
    }
}

#[test]
fn broken_answers_are_no_panic() {
    for (text, code) in [("", 0), ("\u{0}\u{1}\u{fffd}", 0), ("* 2", -1), ("NAME\n*\n  2\n", 1)] {
        let pc = Pc::answering(&[list(text, true), json!({ "words": "-l", "stdout": text, "code": code })]);
        pc.run(&["train"]).failed_with(1, &["yolo setup --wsl"]);
    }
    let pc = Pc::answering(&[json!({ "words": "-d", "stdout": "{\"schema\"", "code": 80 })]);
    let output = pc.run(&["doctor", "--distribution", "Ubuntu"]);
    assert!(output.stdout.contains("not checked: its answer is not a report"), "{}", output.stdout);
}

#[test]
fn the_end_of_the_distribution_says_how_to_resume() {
    for (code, part) in [(-1, "exit status 0xffffffff"), (1, "exit status 1"), (137, "SIGKILL")] {
        // The Linux status on Linux is one byte.
        let part = if cfg!(windows) || code != -1 { part } else { "exit status 255" };
        let pc = Pc::answering(&[
            italian(),
            json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo train", "code": code }),
            json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo --version", "stdout": format!("yolo {}\n", env!("CARGO_PKG_VERSION")) }),
        ]);
        pc.run(&["train"]).failed_with(1, &[part, "yolo train --resume"]);
        assert_eq!(pc.calls().len(), 3);
    }
}

#[test]
fn the_doctor_reports_both_sides() {
    let finding = |id: &str, status: &str, title: &str| {
        json!({
            "id": id, "area": id.split('.').next(), "status": status, "title": title, "cause": "why", "evidence": [],
            "remedy": { "text": "do this", "commands": ["sudo this"], "fixable": false, "changes": [], "undo": null },
            "detects": [], "link": "",
        })
    };
    let report = json!({
        "schema": 1,
        "findings": [finding("gpu.driver-missing", "error", "the driver is missing in Linux"), finding("disk.full", "ok", "room")],
        "checks": [{}, {}],
    });
    let answer = json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo doctor --json", "stdout": report.to_string(), "code": 81 });
    let pc = Pc::answering(&[italian(), answer.clone()]);
    let output = pc.run(&["doctor"]);
    assert_eq!(output.code, Some(1));
    for part in ["Inside WSL (Ubuntu)", "the driver is missing in Linux", "sudo this", "wsl.exe -d Ubuntu"] {
        assert!(output.stdout.contains(part), "`{part}` is not in:\n{}", output.stdout);
    }
    let pc = Pc::answering(&[italian(), answer]);
    let output: Value = serde_json::from_str(&pc.run(&["doctor", "--json"]).stdout).unwrap();
    assert_eq!(output["wsl"]["distribution"], "Ubuntu");
    assert_eq!(output["wsl"]["report"], report);
    let pc = Pc::answering(&[]);
    let output = pc.run(&["doctor"]);
    assert!(output.stdout.contains("not checked: WSL"), "{}", output.stdout);
}

#[test]
fn files_that_are_there_are_described_without_wsl() {
    let pc = Pc::answering(&[
        json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo weights", "code": 80 }),
        italian(),
    ]);
    std::fs::write(pc.work().join("no.pt"), "no weights").unwrap();
    assert_eq!(pc.run(&["weights", "no.pt"]).code, Some(1));
    assert_eq!(pc.calls(), Vec::<String>::new());
    assert_eq!(pc.run(&["weights", "~/best.pt"]).code, Some(0));
    assert_eq!(pc.calls().last().unwrap(), "-d Ubuntu --exec /opt/yolo/yolo weights ~/best.pt");
}

#[cfg(not(windows))]
#[test]
fn linux_has_no_distributions_to_choose() {
    User::new()
        .run("train --distribution Ubuntu")
        .failed_with(2, &["--distribution Ubuntu", "this is Linux"]);
}

/// A run in a Linux that has drives, through the stand-in.
mod runs {
    use super::*;

    /// What YOLO_TEST_LINUX says about the Linux side, or on Linux this build.
    struct LinuxSide {
        yolo: PathBuf,
        asks: Option<(String, String)>,
    }

    impl LinuxSide {
        fn find() -> Option<Self> {
            if cfg!(not(windows)) {
                return Some(Self { yolo: env!("CARGO_BIN_EXE_yolo").into(), asks: None });
            }
            // The Linux program, and what linux_side prints: its address and its word.
            let Ok(told) = std::env::var("YOLO_TEST_LINUX") else {
                println!("skipped: YOLO_TEST_LINUX does not name a Linux program");
                return None;
            };
            let mut words = told.split(' ').map(str::to_owned);
            let yolo = words.next().unwrap().into();
            Some(Self { yolo, asks: Some((words.next().unwrap(), words.next().unwrap())) })
        }
    }

    /// The Linux path of a path of this test.
    fn in_linux(path: &Path) -> String {
        let text = path.to_str().unwrap().replace('\\', "/");
        text.strip_prefix("Z:").or_else(|| text.strip_prefix("z:")).unwrap_or(&text).to_owned()
    }

    /// A PC on which commands run in a Linux whose drive Z: is everything.
    fn pc(terminal: bool) -> Option<Pc> {
        let linux = LinuxSide::find()?;
        let pc =
            Pc::answering(&[italian(), json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo", "runs": true })]);
        let settings = json!({
            "program": linux.yolo, "asks": linux.asks, "drives": { "Z": "/" }, "terminal": terminal,
            "variables": if cfg!(windows) { json!({}) } else { json!({ "YOLO_DRIVE_Z": "/" }) },
        });
        std::fs::write(pc.answers().join("linux.json"), settings.to_string()).unwrap();
        pc.user.write_data_set();
        Some(pc)
    }

    /// Tiny images, one rank, few steps.
    const TRAIN: [&str; 15] = [
        "train",
        "--cfg",
        "yolov5n",
        "--weights=",
        "--imgsz",
        "64",
        "--batch",
        "8",
        "--nbs",
        "8",
        "--device",
        "cpu",
        "--workers",
        "1",
        "--noplots",
    ];

    /// The path of the data set as Windows writes it.
    fn windows_path(path: &Path) -> String {
        format!("Z:{}", in_linux(path).replace('/', "\\"))
    }

    #[test]
    fn training_ends_with_best_pt_and_says_where_it_is_for_explorer() {
        let Some(pc) = pc(false) else { return };
        let yaml = windows_path(&pc.user.path().join("squares").join("squares.yaml"));
        let output = pc.run(&[&TRAIN[..], &["--epochs", "1", "--data", &yaml]].concat()).succeeded();
        let best = pc.work().join("runs/train/exp/weights/best.pt");
        assert!(best.is_file(), "{}\n{}", output.stdout, output.stderr);
        let said = windows_path(&best);
        assert!(output.stdout.contains(&said), "`{said}` is not in:\n{}", output.stdout);
        assert!(!output.stdout.contains("/Zoë"), "{}", output.stdout);
    }

    #[test]
    fn a_yaml_with_windows_paths_and_lists_is_read() {
        let Some(pc) = pc(false) else { return };
        let root = pc.user.path().join("squares");
        let images = std::fs::read_dir(root.join("images").join("train")).unwrap();
        let lines: Vec<String> = images.map(|image| windows_path(&image.unwrap().path())).collect();
        std::fs::write(root.join("list.txt"), lines.join("\r\n")).unwrap();
        let yaml =
            format!("path: {}\ntrain: list.txt\nval: images\\val\nnames: [red, blue]\n", windows_path(&root));
        std::fs::write(pc.work().join("my data.yaml"), yaml).unwrap();
        let output = pc.run(
            &[&TRAIN[..], &["--epochs", "1", "--data", r".\my data.yaml", "--project", r"my runs\a"]]
                .concat(),
        );
        output.succeeded();
        assert!(pc.work().join("my runs/a/exp/weights/best.pt").is_file());
    }

    #[test]
    fn paths_that_lead_nowhere_are_usage_errors() {
        let Some(pc) = pc(false) else { return };
        for (path, part) in [
            (r"Q:\x.yaml", "drive Q: is not mounted in WSL"),
            (r"\\wsl.localhost\Debian\home\x.yaml", "--distribution Debian"),
            (r"\\server\share\x.yaml", "on the network"),
            (r"Q:x.yaml", "the complete path"),
            ("Z:\\my data\" --epochs 3", "omit the last backslash"),
        ] {
            pc.run(&["val", "--weights", "x.pt", "--data", path]).failed_with(2, &[part]);
        }
        let missing = pc.run(&["val", "--weights", "yolov5n.pt", "--data", r"Z:\no such\data.yaml"]);
        missing.failed_with(1, &[r"Z:\no such\data.yaml"]);
    }

    #[cfg(windows)]
    mod interrupted {
        use super::*;
        use user::wait_for;

        /// Starts a long training, and returns when it has a checkpoint.
        fn start(pc: &Pc) -> std::process::Child {
            let yaml = windows_path(&pc.user.path().join("squares").join("squares.yaml"));
            let arguments = [&TRAIN[..], &["--epochs", "300", "--data", &yaml]].concat();
            use std::os::windows::process::CommandExt as _;
            let mut command = pc.command(&arguments);
            // A console of its own, in which Ctrl-C is pressed, without a window.
            command.creation_flags(0x0800_0000);
            let log = std::fs::File::create(pc.answers().join("output.txt")).unwrap();
            command.stdout(log.try_clone().unwrap()).stderr(log);
            let child = command.spawn().unwrap();
            let last = pc.work().join("runs/train/exp/weights/last.pt");
            wait_for("the first checkpoint", || last.exists().then_some(()));
            child
        }

        fn output(pc: &Pc) -> String {
            String::from_utf8_lossy(&std::fs::read(pc.answers().join("output.txt")).unwrap()).into_owned()
        }

        /// Resumes the run, and ends it by Ctrl-C.
        fn resumes(pc: &Pc, arguments: &[&str]) {
            let mut command = pc.command(&[&["train", "--resume"], arguments].concat());
            let log = std::fs::File::create(pc.answers().join("output.txt")).unwrap();
            command.stdout(log.try_clone().unwrap()).stderr(log);
            use std::os::windows::process::CommandExt as _;
            command.creation_flags(0x0800_0000);
            let mut child = command.spawn().unwrap();
            wait_for("a step of the resumed run", || output(pc).contains("resum").then_some(()));
            std::thread::sleep(std::time::Duration::from_secs(2));
            std::fs::write(pc.answers().join("ctrl-c"), "").unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(130), "{}", output(pc));
        }

        #[test]
        fn ctrl_c_saves_and_the_run_resumes_by_the_command_that_is_printed() {
            let Some(pc) = pc(true) else { return };
            let mut child = start(&pc);
            std::fs::write(pc.answers().join("ctrl-c"), "").unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(130), "{}", output(&pc));
            let said = output(&pc);
            assert!(said.contains("the run's state is saved"), "{said}");
            let (_, command) = said.split_once("yolo train --resume ").unwrap();
            let path = command.lines().next().unwrap().trim().trim_matches('"').to_owned();
            assert!(Path::new(&path).is_file(), "{path}\n{said}");
            resumes(&pc, &[&path]);
        }

        #[test]
        fn a_stopped_distribution_and_a_closed_window_are_explained() {
            for event in ["terminate", "close"] {
                let Some(pc) = pc(true) else { return };
                let mut child = start(&pc);
                std::fs::write(pc.answers().join(event), "").unwrap();
                assert_eq!(child.wait().unwrap().code(), Some(1), "{}", output(&pc));
                std::fs::remove_file(pc.answers().join(event)).unwrap();
                let said = output(&pc);
                assert_eq!(said.matches("error: ").count(), 1, "{said}");
                assert!(
                    said.contains("WSL ended before yolo did") && said.contains("`yolo train --resume`"),
                    "{said}"
                );
                resumes(&pc, &[]);
            }
        }
    }
}
