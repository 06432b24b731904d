//! WSL is not ready, or ends too early: what is missing is named with the one command, in every language of Windows and
//! both encodings of `wsl.exe`.

use serde_json::{Value, json};

use super::languages::LANGUAGES;
use super::pc::{Pc, list, listing};
use super::user::Finished;

/// An answer that fails.
fn failing(words: &str, text: &str, utf16: bool, code: i32) -> Value {
    json!({ "words": words, "stdout": text, "utf16": utf16, "code": code })
}

#[test]
fn a_missing_distribution_is_understood_in_five_languages_and_both_encodings() {
    for language in LANGUAGES {
        for utf16 in [true, false] {
            let pc = Pc::answering(&[failing("-l -v", language.no_distribution, utf16, -1)]);
            let output = pc.run(&["train"]);
            assert!(
                output.stderr.contains("has no Linux distribution"),
                "{}: {}",
                language.name,
                output.stderr
            );
            output.failed_with(1, &["`yolo setup --wsl`"]);
            assert_eq!(pc.calls(), ["-l -v"]);
        }
    }
}

#[test]
fn a_virtual_machine_that_cannot_start_is_understood_in_five_languages_and_both_encodings() {
    for language in LANGUAGES {
        for utf16 in [true, false] {
            let code = format!(
                "{}Wsl/Service/CreateInstance/CreateVm/HCS/HCS_E_HYPERV_NOT_INSTALLED\n",
                language.code
            );
            let text = format!("{}{code}", language.no_virtual_machine);
            let pc = Pc::answering(&[list(), failing("-d Ubuntu --exec /opt/yolo/yolo", &text, utf16, -1)]);
            pc.run(&["train"]).failed_with(
                1,
                &["cannot run yolo in Ubuntu", "Virtual Machine Platform", "firmware", "`yolo setup --wsl`"],
            );
        }
    }
}

#[test]
fn what_is_missing_is_named_with_the_one_command() {
    let stub = "Le Sous-système Windows pour Linux n’est pas installé. Vous pouvez l’installer en exécutant « wsl.exe --install ».\n";
    let execvpe = "<3>WSL (9 - Relay) ERROR: CreateProcessCommon:735: execvpe(/opt/yolo/yolo) failed: No such file or directory\n";
    for (answers, part) in [
        (vec![failing("-l -v", stub, true, 50)], "is not installed"),
        (
            vec![listing(
                "  NAME              STATE           VERSION\n* docker-desktop    Running         2\n",
                true,
            )],
            "only docker-desktop",
        ),
        (
            vec![list(), failing("-d Ubuntu --exec /opt/yolo/yolo", execvpe, false, 1)],
            "yolo is not installed in Ubuntu",
        ),
        (
            vec![
                list(),
                json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo train", "code": 1 }),
                json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo --version", "stdout": "yolo 0.0.1\n" }),
            ],
            "version 0.0.1",
        ),
    ] {
        let pc = Pc::answering(&answers);
        pc.run(&["train"]).failed_with(1, &[part, "yolo setup --wsl"]);
    }
    let pc = Pc::answering(&[list()]);
    let mut command = pc.command(&["train"]);
    let output = Finished::from(command.env("YOLO_WSL", pc.work().join("no wsl.exe")).output().unwrap());
    output.failed_with(1, &["is not installed", "yolo setup --wsl"]);
}

#[test]
fn trouble_of_wsl_is_explained_in_any_language() {
    for (text, utf16, part) in [
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
            list(),
            json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo", "stdout": text, "utf16": utf16, "code": -1 }),
        ]);
        pc.run(&["train"]).failed_with(1, &["cannot run yolo in Ubuntu", part]);
    }
}

#[test]
fn why_wsl_does_not_start_is_a_finding_with_its_remedy() {
    for language in LANGUAGES {
        for utf16 in [true, false] {
            let text = format!(
                "… 'D:\\wsl\\ext4.vhdx' … WSL2 …\n{}Wsl/Service/CreateInstance/MountVhd/HCS/ERROR_PATH_NOT_FOUND\n",
                language.code
            );
            let pc = Pc::answering(&[list(), failing("-d Ubuntu --exec /opt/yolo/yolo", &text, utf16, -1)]);
            let parts =
                [r"Ubuntu cannot start: its disk (D:\wsl\ext4.vhdx) does not exist", "[wsl.disk-missing]"];
            pc.run(&["train"]).failed_with(
                1,
                &["cannot run yolo in Ubuntu", parts[0], parts[1], "--explain wsl.disk-missing"],
            );
            let output = pc.run(&["doctor", "--distribution", "Ubuntu"]);
            for part in parts {
                assert!(output.stdout.contains(part), "{}: {}", language.name, output.stdout);
            }
        }
    }
    // A recording for others has what wsl.exe wrote.
    let text = "Error code: Wsl/Service/CreateInstance/CreateVm/HCS/HCS_E_CONNECTION_TIMEOUT\n";
    let pc = Pc::answering(&[list(), failing("-d Ubuntu --exec /opt/yolo/yolo", text, true, -1)]);
    let file = pc.work().join("pc.json");
    pc.run(&["doctor", "--record", &file.to_string_lossy()]);
    let recording: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let heard = &recording["commands"]["wsl.exe -d Ubuntu --exec /opt/yolo/yolo"]["stdout"];
    assert!(heard.as_str().unwrap().contains("HCS_E_CONNECTION_TIMEOUT"), "{heard}");
}

#[test]
fn broken_answers_are_no_panic() {
    for (text, code) in [("", 0), ("\u{0}\u{1}\u{fffd}", 0), ("* 2", -1), ("NAME\n*\n  2\n", 1)] {
        let pc =
            Pc::answering(&[listing(text, true), json!({ "words": "-l", "stdout": text, "code": code })]);
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
            list(),
            json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo train", "code": code }),
            json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo --version", "stdout": format!("yolo {}\n", env!("CARGO_PKG_VERSION")) }),
        ]);
        pc.run(&["train"]).failed_with(1, &[part, "yolo train --resume"]);
        assert_eq!(pc.calls().len(), 3);
    }
}

/// A PC on which the Linux program ends so, and is there.
fn ending_with(code: i32, version: &str) -> Pc {
    Pc::answering(&[
        list(),
        json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo train", "code": code }),
        json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo --version", "stdout": format!("yolo {version}\n") }),
    ])
}

#[test]
fn ctrl_c_before_yolo_handles_it_is_no_error() {
    // As a shell gives the signal, and its number alone.
    for code in [130, 2] {
        let output = ending_with(code, env!("CARGO_PKG_VERSION")).run(&["train"]);
        assert_eq!((output.code, output.stderr.as_str()), (Some(130), ""), "{code}");
    }
    // Another version answers with statuses of its own.
    ending_with(2, "0.0.1").run(&["train"]).failed_with(1, &["version 0.0.1"]);
}

#[test]
fn a_defect_of_the_linux_program_is_no_end_of_the_distribution() {
    let output = ending_with(101, env!("CARGO_PKG_VERSION")).run(&["train"]);
    assert!(!output.stderr.contains("--resume"), "{}", output.stderr);
    output.failed_with(1, &["yolo in Ubuntu failed", "please report this"]);
}

#[test]
fn words_that_nobody_knows_are_shown() {
    let pc = Pc::answering(&[failing("-l -v", "Etwas Unbekanntes ist passiert.\n", true, -1)]);
    let output = pc.run(&["train"]);
    assert!(!output.stderr.contains("has no Linux distribution"), "{}", output.stderr);
    output.failed_with(1, &["Etwas Unbekanntes ist passiert.", "`yolo doctor`"]);
}

#[test]
fn a_code_of_several_causes_is_explained_by_its_finding_alone() {
    let text = "Zugriff verweigert\nFehlercode: Wsl/Service/CreateInstance/E_ACCESSDENIED\n";
    let pc = Pc::answering(&[list(), failing("-d Ubuntu --exec /opt/yolo/yolo", text, true, -1)]);
    let output = pc.run(&["train"]);
    assert!(!output.stderr.contains("administrator rights are required"), "{}", output.stderr);
    output.failed_with(1, &["cannot run yolo in Ubuntu", "E_ACCESSDENIED", "--explain wsl."]);
}

/// The progress of a run stands in the line in which its distribution is stopped.
#[cfg(not(windows))]
#[test]
fn an_error_begins_a_line_of_its_own() {
    let pc = Pc::answering(&[
        list(),
        json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo train", "stdout": "epoch 21 of 5000", "code": -1 }),
        json!({ "words": "-d Ubuntu --exec /opt/yolo/yolo --version", "stdout": format!("yolo {}\n", env!("CARGO_PKG_VERSION")) }),
    ]);
    let typed = pc.command(&["train"]);
    let mut command = std::process::Command::new("script");
    command.args(["-qefc", &format!("exec {} train", typed.get_program().to_str().unwrap()), "/dev/null"]);
    command.current_dir(pc.work()).stdin(std::process::Stdio::null());
    for (name, value) in typed.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = Finished::from(command.output().unwrap());
    let screen = output.stdout.replace("\u{1b}[1m", "").replace("\u{1b}[31m", "");
    assert!(screen.contains("epoch 21 of 5000\r\nerror:"), "{screen:?}");
}

#[test]
fn a_distribution_that_does_not_exist_is_said() {
    // Where the registry does not know, WSL does.
    for language in LANGUAGES {
        let text = format!("…\n{}Wsl/Service/WSL_E_DISTRO_NOT_FOUND\n", language.code);
        let pc = Pc::answering(&[failing("-d Debian --exec /opt/yolo/yolo", &text, true, -1)]);
        pc.run(&["train", "--distribution", "Debian"])
            .failed_with(1, &["WSL has no distribution Debian", "`yolo setup --wsl --distribution Debian`"]);
    }
}

#[test]
fn helpers_of_other_programs_are_refused() {
    for name in ["docker-desktop", "Docker-Desktop-Data", "rancher-desktop", "podman-machine-default"] {
        let pc = Pc::answering(&[list()]);
        pc.run(&["train", "--distribution", name]).failed_with(
            1,
            &[&format!("{name} belongs to another program"), "omit --distribution", "`yolo setup --wsl`"],
        );
        assert_eq!(pc.calls(), Vec::<String>::new());
    }
}
