//! The command that sets a value in /etc/wsl.conf and keeps the rest of the file. WSL ignores a second section of the same
//! name, a section that begins in the middle of a line, and a key behind another of the same name.

use crate::facts::{Family, Host};

pub(super) const PATH: &str = "/etc/wsl.conf";

/// The command. A file in an encoding that `sed` does not read, or a value that cannot stand in quotation marks, is for the
/// user's editor. On NixOS, which generates the file, it is the form that becomes an option of its configuration.
pub(super) fn set(host: &Host, section: &str, key: &str, value: &str) -> String {
    let is_generated = host.family() == Some(Family::NixOs);
    let bytes = host.file(PATH).ok().flatten().filter(|_| !is_generated).unwrap_or_default();
    let Some(text) = std::str::from_utf8(&bytes).ok().filter(|text| !text.contains('\0')) else {
        return format!("sudo nano {PATH}");
    };
    if value.contains(['\'', '\n']) {
        return format!("sudo nano {PATH}");
    }
    let text = text.trim_start_matches('\u{feff}');
    let end = if text.contains("\r\n") { "\\r" } else { "" };
    // A byte order mark stands before the first section; a comment is none.
    let header = format!("^[^[#;=]*\\[\\s*{section}\\s*\\]");
    // `sed` ends its expression at a slash, and reads `&` and backslashes.
    let escaped = value.replace('\\', "\\\\").replace('/', "\\/").replace('&', "\\&");
    match settings_of(text, section) {
        Some(settings) if settings.iter().any(|name| name.eq_ignore_ascii_case(key)) => {
            format!("sudo sed -i '/{header}/I,/^\\s*\\[/s/^\\s*{key}\\s*=.*/{key}={escaped}{end}/I' {PATH}")
        }
        Some(_) => format!("sudo sed -i 's/{header}.*/&\\n{key}={escaped}{end}/I' {PATH}"),
        None => {
            // A last line without an end would take the section's name.
            let begin = if text.is_empty() || text.ends_with('\n') { "" } else { "\\n" };
            let value = value.replace('\\', "\\\\").replace('%', "%%");
            format!("printf '{begin}[{section}]{end}\\n{key}={value}{end}\\n' | sudo tee -a {PATH}")
        }
    }
}

/// The keys of a section; `None` if the file has no such section.
fn settings_of<'a>(text: &'a str, section: &str) -> Option<Vec<&'a str>> {
    let mut lines = text.lines().map(str::trim);
    let name = |line: &str| line.strip_prefix('[')?.split_once(']').map(|(name, _)| name.trim().to_owned());
    lines.find(|line| name(line).is_some_and(|name| name.eq_ignore_ascii_case(section)))?;
    let own = lines.take_while(|line| !line.starts_with('['));
    Some(own.filter_map(|line| Some(line.split_once('=')?.0.trim())).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::wsl::config::{ConfigFile, Document};

    fn host(text: Option<&str>) -> Host {
        Host::from_value(json!({ "version": 1, "os": "linux", "files": { PATH: text } })).unwrap().0
    }

    /// The file after the command; `None` if it needs an editor.
    fn after(text: &str, section: &str, key: &str, value: &str) -> Option<String> {
        let command = set(&host(Some(text)), section, key, value);
        if command.contains("nano") {
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("wsl.conf-{}-{number}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let command = command.replace("sudo ", "").replace(PATH, path.to_str().unwrap());
        let ended = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
        assert!(ended.status.success(), "{command}: {}", String::from_utf8_lossy(&ended.stderr));
        let written = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        Some(written)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_rest_of_the_file_is_kept() {
        for (before, expected) in [
            ("", "[user]\ndefault=mara\n"),
            ("[boot]\nsystemd=true\n", "[boot]\nsystemd=true\n[user]\ndefault=mara\n"),
            ("[boot]\nsystemd=true", "[boot]\nsystemd=true\n[user]\ndefault=mara\n"),
            ("[boot]\r\nsystemd=true\r\n", "[boot]\r\nsystemd=true\r\n[user]\r\ndefault=mara\r\n"),
            ("[user]\n[boot]\n", "[user]\ndefault=mara\n[boot]\n"),
            ("[ user ]\n", "[ user ]\ndefault=mara\n"),
            (" [User] # x\n", " [User] # x\ndefault=mara\n"),
            ("\u{feff}[user]\r\n", "\u{feff}[user]\r\ndefault=mara\r\n"),
            ("# [user]\n[user]\n", "# [user]\n[user]\ndefault=mara\n"),
            ("[user]\ndefault = rave\n[x]\ndefault=1\n", "[user]\ndefault=mara\n[x]\ndefault=1\n"),
            ("[x]\ndefault=1\n[user]\r\nDefault=rave\r\n", "[x]\ndefault=1\n[user]\r\ndefault=mara\r\n"),
        ] {
            assert_eq!(after(before, "user", "default", "mara").as_deref(), Some(expected), "{before:?}");
        }
        let options = r#""uid=1000,case=dir&\ /x,metadata""#;
        for before in ["", "[automount]\n", "[automount]\noptions=1\n"] {
            let expected = format!("[automount]\noptions={options}\n");
            assert_eq!(after(before, "automount", "options", options), Some(expected), "{before:?}");
        }
    }

    #[test]
    fn what_sed_does_not_read_is_for_an_editor() {
        let utf16 = json!({ "version": 1, "os": "linux", "files": { PATH: { "base64": "//5bAHUA" } } });
        for host in [Host::from_value(utf16).unwrap().0, host(Some("[\0u\0"))] {
            assert_eq!(set(&host, "user", "default", "mara"), "sudo nano /etc/wsl.conf");
        }
        assert_eq!(set(&host(None), "automount", "options", "it's"), "sudo nano /etc/wsl.conf");
        assert!(set(&host(None), "user", "default", "mara").starts_with("printf '[user]"));
    }

    #[test]
    fn nixos_gets_what_becomes_an_option() {
        let files = json!({ "/etc/os-release": "ID=nixos\n", PATH: "[user]\ndefault=rave\n" });
        let host = Host::from_value(json!({ "version": 1, "os": "linux", "files": files })).unwrap().0;
        let command = set(&host, "user", "default", "mara");
        assert_eq!(command, r"printf '[user]\ndefault=mara\n' | sudo tee -a /etc/wsl.conf");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        #[cfg(target_os = "linux")]
        fn wsl_reads_the_value_afterwards(
            lines in proptest::collection::vec("(\\[user\\]|\\[boot\\]|default ?= ?[a-z]{1,3}|systemd=true|#x|)", 0..6),
            crlf: bool,
        ) {
            let text = lines.join(if crlf { "\r\n" } else { "\n" });
            let before = Document::parse(ConfigFile::WslConf, text.as_bytes());
            let written = after(&text, "user", "default", "mara").unwrap();
            let document = Document::parse(ConfigFile::WslConf, written.as_bytes());
            // A second section of the same name was there before.
            if lines.iter().filter(|line| *line == "[user]").count() < 2 {
                prop_assert_eq!(document.value("user", "default"), Some("mara"), "{}", written);
                prop_assert_eq!(document.value("boot", "systemd"), before.value("boot", "systemd"));
            }
        }
    }
}
