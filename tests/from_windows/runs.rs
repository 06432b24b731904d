//! Runs in a Linux that has drives, through the stand-in: what Windows paths mean there, and how messages name files.

use serde_json::json;

use super::pc::{Pc, in_linux, windows_path};
use super::user::Finished;

/// Tiny images, one rank, few steps.
pub(crate) const TRAIN: [&str; 15] = [
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

#[test]
fn training_ends_with_best_pt_and_says_where_it_is_for_explorer() {
    let Some(pc) = Pc::with_linux(false) else { return };
    let output = pc.run(&[&TRAIN[..], &["--epochs", "1", "--data", &pc.data_set()]].concat()).succeeded();
    let best = pc.work().join("runs/train/exp/weights/best.pt");
    assert!(best.is_file(), "{}\n{}", output.stdout, output.stderr);
    let said = windows_path(&best);
    assert!(output.stdout.contains(&said), "`{said}` is not in:\n{}", output.stdout);
    assert!(!output.stdout.contains("/Zoë"), "{}", output.stdout);
}

#[test]
fn a_yaml_with_windows_paths_and_lists_is_read() {
    let Some(pc) = Pc::with_linux(false) else { return };
    let root = pc.user.path().join("squares");
    let images = std::fs::read_dir(root.join("images").join("train")).unwrap();
    let lines: Vec<String> = images.map(|image| windows_path(&image.unwrap().path())).collect();
    // As the `>` of Windows PowerShell saves it.
    let text = ["\u{feff}", &lines.join("\r\n")].concat();
    std::fs::write(root.join("list.txt"), text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>())
        .unwrap();
    let yaml =
        format!("path: {}\ntrain: list.txt\nval: images\\val\nnames: [red, blue]\n", windows_path(&root));
    std::fs::write(pc.work().join("my data.yaml"), yaml).unwrap();
    let output = pc.run(
        &[&TRAIN[..], &["--epochs", "1", "--data", r".\my data.yaml", "--project", r"my runs\a"]].concat(),
    );
    output.succeeded();
    assert!(pc.work().join("my runs/a/exp/weights/best.pt").is_file());
}

#[test]
fn results_in_a_named_folder_of_the_distribution_are_said_for_explorer() {
    let Some(pc) = Pc::with_linux_variables(&json!({ "YOLO_DRIVE_Z": "" })) else { return };
    if cfg!(windows) {
        return;
    }
    // A folder that is neither below the home folder nor on a drive.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let name = folder.path().file_name().unwrap().to_str().unwrap();
    let project = format!(r"\\wsl.localhost\Ubuntu\var\tmp\{name}");
    let data = in_linux(&pc.user.path().join("squares").join("squares.yaml"));
    let output = pc
        .run(&[&TRAIN[..], &["--epochs", "1", "--data", &data, "--project", &project]].concat())
        .succeeded();
    let said = format!(r"{project}\exp\weights\best.pt");
    assert!(output.stdout.contains(&said), "`{said}` is not in:\n{}", output.stdout);
}

#[test]
fn paths_that_lead_nowhere_are_usage_errors() {
    let Some(pc) = Pc::with_linux(false) else { return };
    for (path, part) in [
        (r"Q:\x.yaml", "drive Q: is not mounted in WSL"),
        (
            r"Q:\x.yaml",
            "`wsl.exe -d Ubuntu -u root --exec sh -c \"mkdir -p /mnt/q && mount -t drvfs Q: /mnt/q\"`",
        ),
        ("//nas/s/x.yaml", r"\\nas\s is on the network"),
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

#[test]
fn paths_in_the_distribution_are_those_of_linux() {
    let Some(pc) = Pc::with_linux(false) else { return };
    for server in [r"\\wsl.localhost", r"\\wsl$", r"\\?\UNC\wsl.localhost", "//wsl.localhost"] {
        let folder = in_linux(pc.user.path()).replace('/', "\\");
        let yaml = format!(r"{server}\Ubuntu{folder}\squares\squares.yaml");
        pc.run(&[&TRAIN[..], &["--epochs", "1", "--data", &yaml]].concat()).succeeded();
        assert!(pc.work().join("runs/train/exp/weights/best.pt").is_file());
        std::fs::remove_dir_all(pc.work().join("runs")).unwrap();
    }
}

#[test]
fn the_environment_reaches_linux_as_wslenv_says() {
    let Some(pc) = Pc::with_shell() else { return };
    // The stand-in runs `sh val --data x`.
    std::fs::write(pc.work().join("val"), "env >seen; exit 80\n").unwrap();
    let home = windows_path(&pc.user.path().join("my home"));
    let mut command = pc.command(&["val", "--data", "x"]);
    command
        .env("WSLENV", "MINE/u:")
        .env("MINE", "kept")
        .env("YOLO_HOME", &home)
        .env("https_proxy", "http://proxy:3128")
        .env("NO_COLOR", "1")
        .env("SSL_CERT_FILE", windows_path(&pc.user.path().join("ca.pem")))
        .env("OTHER_SECRET", "stays");
    Finished::from(command.output().unwrap()).succeeded();
    let seen = std::fs::read_to_string(pc.work().join("seen")).unwrap();
    let value = |name: &str| {
        let mut lines = seen.lines().filter_map(|line| line.split_once('='));
        lines.find(|(other, _)| *other == name).map(|(_, value)| value.to_owned())
    };
    for (name, wanted) in [
        ("MINE", "kept"),
        ("https_proxy", "http://proxy:3128"),
        ("NO_COLOR", "1"),
        ("YOLO_OFFLINE", "1"),
        ("OMP_NUM_THREADS", "1"),
        ("WSL_DISTRO_NAME", "Ubuntu"),
    ] {
        assert_eq!(value(name).as_deref(), Some(wanted), "{name} in:\n{seen}");
    }
    // Paths are those of Linux, from which both sides reach the file.
    for (name, end) in [("YOLO_HOME", "/my home"), ("SSL_CERT_FILE", "/ca.pem"), ("YOLO_DRIVE_Z", "/")] {
        let value = value(name).unwrap_or_else(|| panic!("{name} is not in:\n{seen}"));
        assert!(value.starts_with('/') && value.ends_with(end), "{name}={value}");
    }
    let marker: serde_json::Value = serde_json::from_str(&value("YOLO_FROM_WINDOWS").unwrap()).unwrap();
    assert_eq!(marker["distribution"], "Ubuntu");
    assert!(marker["folder"].as_str().unwrap().ends_with("Zoë Müller 数据"), "{marker}");
    if cfg!(windows) {
        assert_eq!(value("OTHER_SECRET"), None, "only what WSLENV names is passed");
    }
}

#[test]
fn a_variable_with_a_path_that_wsl_does_not_see_is_refused() {
    let Some(pc) = Pc::with_linux(false) else { return };
    for (name, value, why) in [
        ("YOLO_HOME", r"Q:\yolo home", "drive Q: is not mounted in WSL"),
        ("YOLO_MIRROR", r"\\nas\mirror", r"\\nas\mirror is on the network"),
    ] {
        let mut command = pc.command(&["train", "--data", "shapes"]);
        Finished::from(command.env(name, value).output().unwrap()).failed_with(
            1,
            &[&format!("the variable {name} is {value}, and "), why, &format!("`set {name}=`")],
        );
    }
}

#[test]
fn a_variable_that_is_not_needed_is_left_out_with_a_warning() {
    let Some(pc) = Pc::with_linux(false) else { return };
    let mut command = pc.command(&["weights", "none.pt"]);
    let why = r"warning: the variable SSL_CERT_FILE is //nas/s/ca.pem, and \\nas\s is on the network";
    Finished::from(command.env("SSL_CERT_FILE", "//nas/s/ca.pem").output().unwrap())
        .failed_with(1, &[why, "none.pt"]);
}

#[test]
fn a_data_yaml_with_a_path_that_wsl_does_not_see_says_why() {
    let Some(pc) = Pc::with_linux(false) else { return };
    for (lines, why) in [
        ("path: Q:\\set\ntrain: a\nval: b\n", r"path is Q:\set, and drive Q: is not mounted in WSL"),
        ("path: \\\\nas\\set\ntrain: a\nval: b\n", r"\\nas\set is on the network"),
        ("train: Q:\\a\nval: Q:\\b\n", r"it names Q:\a, and drive Q: is not mounted in WSL"),
    ] {
        std::fs::write(pc.work().join("x.yaml"), format!("{lines}names: [a]\n")).unwrap();
        pc.run(&[&TRAIN[..], &["--data", "x.yaml"]].concat()).failed_with(1, &[why]);
    }
}

#[test]
fn a_copy_for_linux_is_not_put_on_a_windows_drive() {
    let Some(pc) = Pc::with_linux(false) else { return };
    let home = windows_path(&pc.user.path().join("my home"));
    let mut command = pc.command(&[&TRAIN[..], &["--data", &pc.data_set(), "--data-to-linux"]].concat());
    Finished::from(command.env("YOLO_HOME", &home).output().unwrap()).failed_with(
        1,
        &[&home, "is on a Windows drive and as slow", "let YOLO_HOME name a folder of Linux"],
    );
}

#[test]
fn the_files_of_root_as_the_default_user_are_those_of_explorer() {
    // Without the drive that has everything.
    let home = json!({ "HOME": "/root", "USER": "root", "YOLO_DRIVE_Z": "" });
    let Some(pc) = Pc::with_linux_variables(&home) else { return };
    pc.run(&["weights", r"~\no such\best.pt"])
        .failed_with(1, &[r"\\wsl.localhost\Ubuntu\root\no such\best.pt"]);
}
