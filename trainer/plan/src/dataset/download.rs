//! What the `download:` of a data YAML says. A download that is code is described and never run.

use std::path::Path;

use serde_json::Value;

use super::clean::clean;
use crate::yaml;

/// The kinds of `download:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Download {
    /// No download.
    Nothing,
    /// Archives to unpack: `http`, `https` or `file` URLs, or paths on this machine.
    Archives(Vec<String>),
    /// A URL that cannot be downloaded, or no URL at all.
    Refused {
        /// Why it cannot be downloaded.
        why: String,
        /// What to write instead.
        hint: &'static str,
    },
    /// Code, which is never run.
    Code {
        /// "Python script", "shell command" or "script".
        kind: &'static str,
        /// What it would have done: "would have downloaded …".
        would: String,
    },
}

/// File extensions of archives, whether `yolo` can unpack them or not.
const ARCHIVES: [&str; 9] = [".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar"];

/// File extensions of scripts.
const SCRIPTS: [&str; 5] = [".sh", ".bash", ".py", ".bat", ".ps1"];

/// Programs that shell commands begin with.
const COMMANDS: [&str; 22] = [
    "bash", "sh", "curl", "wget", "python", "python3", "pip", "unzip", "tar", "mkdir", "cd", "rm", "mv",
    "cp", "ln", "touch", "echo", "export", "set", "gdown", "kaggle", "aws",
];

/// Reads `download:`. `folder` is the folder of the yaml.
pub(super) fn download(value: Option<&Value>, folder: &Path) -> Download {
    let refused =
        |why: String| Download::Refused { why, hint: "write a URL (https://…) or a list of URLs" };
    match value {
        None | Some(Value::Null) => Download::Nothing,
        Some(Value::String(text)) if text.trim().is_empty() => Download::Nothing,
        Some(Value::String(text)) => one_download(text.trim(), folder),
        Some(Value::Array(list)) => {
            let mut all = Vec::new();
            for one in list {
                match one.as_str().map(|text| one_download(text.trim(), folder)) {
                    Some(Download::Archives(addresses)) => all.extend(addresses),
                    Some(other @ (Download::Refused { .. } | Download::Code { .. })) => return other,
                    _ => return refused("download is a list with something other than URLs".to_owned()),
                }
            }
            if all.is_empty() {
                refused("download is an empty list".to_owned())
            } else {
                Download::Archives(all)
            }
        }
        Some(other) => {
            refused(format!("download is {}; it must be a URL or a list of URLs", yaml::show(other)))
        }
    }
}

fn one_download(text: &str, folder: &Path) -> Download {
    let ends_with = |ends: &[&str]| ends.iter().any(|end| text.to_ascii_lowercase().ends_with(end));
    let one_word = !text.contains(char::is_whitespace);
    let one_line = !text.contains('\n');
    let for_a_shell = [" -", "&&", "||", ";", "|", ">", "$"].iter().any(|part| text.contains(part));
    // A URL has only letters and digits before "://". Code has something else there.
    let scheme = text
        .split_once("://")
        .map(|(scheme, _)| scheme)
        .filter(|scheme| !scheme.is_empty() && scheme.chars().all(|letter| letter.is_ascii_alphanumeric()));
    let scheme = scheme.map(str::to_ascii_lowercase);
    match scheme.as_deref() {
        Some("http" | "https") if one_word => return Download::Archives(vec![text.to_owned()]),
        Some("file") if one_line => return Download::Archives(vec![text.to_owned()]),
        Some("http" | "https") if one_line && !for_a_shell => {
            return Download::Refused {
                why: "download is a URL with a space in it".to_owned(),
                hint: "write each space as %20, and several URLs as a list: [https://…, https://…]",
            };
        }
        Some(other) if one_line && !matches!(other, "http" | "https") => {
            return Download::Refused {
                why: format!("download is a URL of the unsupported kind {other}://"),
                hint: "use http:// or https://, or the path of an archive on this machine",
            };
        }
        _ => {}
    }
    let here = folder.join(text);
    if one_line && ends_with(&ARCHIVES) && (one_word || here.is_file()) {
        return Download::Archives(vec![clean(&here).display().to_string()]);
    }
    if one_word && ends_with(&SCRIPTS) {
        return Download::Code { kind: "script", would: format!("is {text}") };
    }
    let is_call = text.contains(['(', '=']);
    if one_word && !is_call {
        return Download::Refused {
            why: format!("download is {text:?}, which is neither a URL nor an archive"),
            hint: "write a URL (https://…) or the path of a zip, tar or tar.gz",
        };
    }
    let first = text.split_whitespace().next().unwrap_or_default();
    let is_command = COMMANDS.contains(&first) || first.starts_with("#!/bin/") || scheme.is_some();
    let kind = if is_command { "shell command" } else { "Python script" };
    Download::Code { kind, would: what_it_does(text) }
}

/// What code would have done: the URLs in it and the beginnings of its other lines.
fn what_it_does(text: &str) -> String {
    let is_import = |line: &str| ["import ", "from "].iter().any(|start| line.starts_with(start));
    let is_work = |line: &&str| {
        let says_something = !line.is_empty() && !line.starts_with('#') && !line.starts_with("\"\"\"");
        says_something && (line.contains(';') || !is_import(line))
    };
    let lines: Vec<&str> = text.lines().map(str::trim).filter(is_work).collect();
    let quoted = |line: &str, longest: usize| match line.char_indices().nth(longest) {
        Some((end, _)) => format!("`{}…`", &line[..end]),
        None => format!("`{line}`"),
    };
    let has_address = |line: &&&str| line.contains("http://") || line.contains("https://");
    let addresses: Vec<&str> = lines
        .iter()
        .flat_map(|line| {
            line.split(|c: char| {
                c.is_whitespace() || matches!(c, '\'' | '"' | '(' | ')' | '[' | ']' | ',' | '`')
            })
        })
        .filter(|word| word.starts_with("http://") || word.starts_with("https://"))
        .take(6)
        .collect();
    if lines.len() < 2 {
        let line = quoted(lines.first().unwrap_or(&text.trim()), 200);
        return match addresses.as_slice() {
            [] => format!("would have run {line}"),
            addresses => format!("would have downloaded {} by {line}", addresses.join(", ")),
        };
    }
    let others: Vec<&&str> = lines.iter().filter(|line| !has_address(line)).collect();
    let mut parts = Vec::new();
    if !addresses.is_empty() {
        parts.push(format!("downloaded {}", addresses.join(", ")));
    }
    if !others.is_empty() {
        let shown: Vec<String> = others.iter().take(3).map(|line| quoted(line, 80)).collect();
        let more = match others.len().saturating_sub(3) {
            0 => String::new(),
            more => format!(" and {more} more lines"),
        };
        parts.push(format!("run {}{more}", shown.join(", ")));
    }
    format!("would have {}", parts.join(", and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Download {
        download(Some(&value), Path::new("/yamls"))
    }

    #[test]
    fn urls_and_code_are_distinguished() {
        assert_eq!(read(json!("https://h/a.zip")), Download::Archives(vec!["https://h/a.zip".into()]));
        assert_eq!(read(json!(["https://h/a.zip", "http://h/b.tar.gz"])), {
            Download::Archives(vec!["https://h/a.zip".into(), "http://h/b.tar.gz".into()])
        });
        assert_eq!(read(json!("")), Download::Nothing);
        for command in ["bash data/get.sh", "curl -L https://h/a.zip -o a.zip"] {
            let Download::Code { kind, .. } = read(json!(command)) else { panic!("code") };
            assert_eq!(kind, "shell command");
        }
        for script in [
            "import os\nos.system('curl https://h/a.zip')",
            "from os import system; system('https://h/a.zip')",
        ] {
            let Download::Code { kind, would } = read(json!(script)) else { panic!("code") };
            assert!(kind == "Python script" && would.contains("https://h/a.zip"), "{would}");
        }
        let Download::Code { kind, would } = read(json!("https://h/a.zip && rm -rf /")) else {
            panic!("code")
        };
        assert_eq!(
            (kind, would.as_str()),
            ("shell command", "would have downloaded https://h/a.zip by `https://h/a.zip && rm -rf /`")
        );
        let lines = "mkdir -p ds\ncurl -L http://h/a.zip | tar xz\nrm -rf /";
        let Download::Code { kind, would } = read(json!(lines)) else { panic!("code") };
        assert_eq!(kind, "shell command");
        assert_eq!(would, "would have downloaded http://h/a.zip, and run `mkdir -p ds`, `rm -rf /`");
        let python = "import os\n\nurls = ['https://h/a.zip']\ndownload(urls)\nos.system('touch x')";
        let Download::Code { kind, would } = read(json!(python)) else { panic!("code") };
        assert_eq!(kind, "Python script");
        assert_eq!(
            would,
            "would have downloaded https://h/a.zip, and run `download(urls)`, `os.system('touch x')`"
        );
        let Download::Code { kind, would } = read(json!("scripts/get.sh")) else { panic!("code") };
        assert_eq!((kind, would.as_str()), ("script", "is scripts/get.sh"));
    }

    #[cfg(unix)]
    #[test]
    fn an_archive_on_this_machine_is_accepted() {
        let archives = |text: &str| match read(json!(text)) {
            Download::Archives(list) => list.join(" "),
            other => panic!("{other:?}"),
        };
        assert_eq!(archives("file:///sets/ds.zip"), "file:///sets/ds.zip");
        assert_eq!(archives("/sets/ds.tar.gz"), "/sets/ds.tar.gz");
        assert_eq!(archives("../sets/ds.ZIP"), "/sets/ds.ZIP");
    }

    #[test]
    fn rejected_downloads_say_why() {
        let why = |value: Value| match read(value) {
            Download::Refused { why, .. } => why,
            other => panic!("{other:?}"),
        };
        let ftp = why(json!("ftp://joe:secret@h/x.zip"));
        assert!(ftp.contains("ftp://") && !ftp.contains("secret"), "{ftp}");
        assert!(why(json!("https://h/my ds.zip")).contains("a space"));
        assert!(why(json!("roboflow")).contains("neither a URL nor an archive"));
        assert!(why(json!(7)).contains('7'));
        assert!(why(json!([7])).contains("other than URLs"));
        assert!(why(json!([])).contains("empty"));
    }
}
