//! The file of shell variables: `env.sh` among yolo's settings, to be sourced by a shell of the
//! Bourne family. A program cannot change the shell that started it, and a person's own start-up
//! files are not ours to edit. Lines that somebody else wrote into the file stay.

use std::path::PathBuf;

use crate::places::Places;

const HEAD: &str = "# Written by `yolo doctor --fix`. Source it: . env.sh\n";

/// Where it is.
pub(super) fn file(places: &Places) -> PathBuf {
    places.config().join("env.sh")
}

/// The file with one variable set or unset; what it said of this variable before is replaced.
pub(super) fn with(text: &str, name: &str, value: Option<&str>) -> String {
    let of_it = |line: &&str| {
        let line = line.trim_start();
        let export = line.strip_prefix("export ").and_then(|rest| rest.split('=').next());
        export == Some(name) || line.strip_prefix("unset ").map(str::trim) == Some(name)
    };
    let mut new = String::new();
    if text.is_empty() {
        new.push_str(HEAD);
    }
    text.lines().filter(|line| !of_it(line)).for_each(|line| {
        new.push_str(line);
        new.push('\n');
    });
    match value {
        // `$` keeps its meaning, so that a value can begin with what the variable held before.
        Some(value) => {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('`', "\\`");
            new.push_str(&format!("export {name}=\"{value}\"\n"));
        }
        None => new.push_str(&format!("unset {name}\n")),
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_set_once_and_the_rest_stays() {
        let first = with("", "NCCL_SOCKET_IFNAME", Some("eth0"));
        let second = with(&format!("{first}alias ll='ls -l'\n"), "CUDA_VISIBLE_DEVICES", None);
        let third = with(&second, "NCCL_SOCKET_IFNAME", Some("eth1"));
        assert_eq!(
            third,
            format!(
                "{HEAD}alias ll='ls -l'\nunset CUDA_VISIBLE_DEVICES\nexport NCCL_SOCKET_IFNAME=\"eth1\"\n"
            )
        );
    }

    #[test]
    #[cfg(unix)]
    fn a_shell_reads_back_what_was_meant() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("env.sh");
        let text = with("", "A", Some(r#"a "quoted" `word` \ here"#));
        std::fs::write(&file, with(&text, "B", Some("/usr/lib/wsl/lib${B:+:$B}"))).unwrap();
        let shell = std::process::Command::new("sh")
            .args(["-c", ". \"$0\"; printf '%s|%s' \"$A\" \"$B\""])
            .arg(&file)
            .env("B", "/before")
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(shell.stdout).unwrap(),
            r#"a "quoted" `word` \ here|/usr/lib/wsl/lib:/before"#
        );
    }
}
