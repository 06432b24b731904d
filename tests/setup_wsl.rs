//! `yolo setup --wsl` as a user of Windows runs it, with a `wsl.exe` that replays the output of an
//! Italian Windows, in UTF-16. It runs under Wine; on Linux the command is rejected.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/user.rs"]
mod user;

use user::User;

#[cfg(not(windows))]
#[test]
fn a_machine_that_is_neither_windows_nor_wsl_is_rejected() {
    let user = User::new();
    user.run("setup --wsl").failed_with(1, &["`--wsl` works only on Windows", "without `--wsl`"]);
}

#[test]
fn invalid_training_options_are_usage_errors() {
    let output = User::new().run("setup --wsl -- --imgsz large");
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("--imgsz"), "{}", output.stderr);
}

#[cfg(windows)]
mod windows {
    use super::user::{Finished, User};
    use serde_json::json;

    /// The Windows user's folder, with a space and an accent in its name.
    fn profile(user: &User) -> std::path::PathBuf {
        let profile = user.path().join("Zoë Müller");
        std::fs::create_dir_all(&profile).unwrap();
        profile
    }

    /// Runs `yolo` on a PC whose `wsl.exe` replays these answers.
    fn run(user: &User, answers: &[serde_json::Value], words: &str) -> Finished {
        let folder = profile(user).join("answers");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("answers.json"), json!(answers).to_string()).unwrap();
        // Not from CARGO_BIN_EXE_yolo, which has no drive under Wine: `yolo` runs on another drive.
        let test = std::env::current_exe().unwrap();
        let stand_in = test.ancestors().nth(2).unwrap().join("examples").join("stand_in_wsl.exe");
        let mut command = user.command(words);
        command
            .env("YOLO_WSL", stand_in)
            .env("STAND_IN_WSL", &folder)
            .env("USERPROFILE", profile(user))
            .env("YOLO_HOME", profile(user).join("yolo home"));
        Finished::from(command.stdin(std::process::Stdio::null()).output().unwrap())
    }

    fn italian() -> Vec<serde_json::Value> {
        vec![
            json!({"words": "--status", "utf16": true, "stdout": "Distribuzione predefinita: Ubuntu\nVersione predefinita: 2\n"}),
            json!({"words": "--version", "utf16": true, "stdout": "Versione WSL: 2.5.7.0\nVersione kernel: 6.6.87.1-1\n"}),
            json!({"words": "-l -v", "utf16": true, "stdout": "  NOME      STATO        VERSIONE\n* Ubuntu    Arrestato    2\n"}),
            json!({"words": "-l --running -q", "utf16": true, "code": -1, "stdout": "Nessuna distribuzione in esecuzione.\n"}),
            json!({"words": "-d Ubuntu -u root --exec /opt/yolo/yolo --version",
                "stdout": format!("yolo {}\n", env!("CARGO_PKG_VERSION"))}),
            json!({"words": "-d Ubuntu -u root --exec sh -c nproc", "stdout": "2\nMemTotal: 1 kB\nSwapTotal: 0 kB\n"}),
            json!({"words": "-d Ubuntu --cd ~ --exec /opt/yolo/yolo setup"}),
        ]
    }

    #[test]
    fn a_pc_is_set_up_and_its_file_keeps_everything_else() {
        let user = User::new();
        let before = "# città\r\n[wsl2]\r\nmemory = 8   # GB!\r\n\r\n[experimental]\r\nsparseVhd=true\r\n";
        std::fs::write(profile(&user).join(".wslconfig"), before).unwrap();
        let output = run(&user, &italian(), "setup --wsl").succeeded();
        assert!(output.stdout.contains("wsl.exe -d Ubuntu"), "{}", output.stdout);
        assert!(output.stderr.contains("`memory=8` means 8 bytes"), "{}", output.stderr);
        let after = std::fs::read_to_string(profile(&user).join(".wslconfig")).unwrap();
        assert!(
            after.starts_with("# città\r\n[wsl2]\r\nmemory = ") && after.contains("B   # GB!\r\n"),
            "{after}"
        );
        assert!(after.ends_with("\r\n\r\n[experimental]\r\nsparseVhd=true\r\n"), "{after}");
        assert_eq!(std::fs::read_to_string(profile(&user).join(".wslconfig.before-yolo")).unwrap(), before);
        // The second time there is nothing to write.
        run(&user, &italian(), "setup --wsl").succeeded();
        assert!(!profile(&user).join(".wslconfig.before-yolo-2").exists());
    }

    #[test]
    fn a_dry_run_prints_json() {
        let user = User::new();
        let output = run(&user, &italian(), "setup --wsl --dry-run --json").succeeded();
        let plan: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        let ids: Vec<_> = plan["steps"].as_array().unwrap().iter().map(|step| step["id"].clone()).collect();
        assert_eq!(ids, ["write-config", "setup-inside"]);
        assert!(!profile(&user).join(".wslconfig").exists());
    }

    #[test]
    fn a_pc_without_wsl_is_not_changed_without_consent() {
        let user = User::new();
        let help = "Il sottosistema Windows per Linux non è installato.\n";
        let answers = [json!({"words": "--status", "utf16": true, "stdout": help, "code": 50})];
        let output = run(&user, &answers, "setup --wsl");
        output.failed_with(1, &["wsl.exe --install --no-distribution", "needs your confirmation", "--yes"]);
    }

    #[test]
    fn the_linux_program_must_be_next_to_this_one() {
        let user = User::new();
        let mut answers = italian();
        answers.insert(0, json!({"words": "-d Ubuntu -u root --exec /opt/yolo/yolo --version", "code": 127}));
        run(&user, &answers, "setup --wsl")
            .failed_with(1, &["x86_64-unknown-linux-gnu.tar.gz", "unpack the whole release"]);
    }
}
