//! Which environment variables the program in WSL gets. WSL passes those that the variable `WSLENV` names, and
//! translates the paths in those that have the flag `/p` there.

use yolo_base::env::{WSLENV, YOLO_DRIVE_C, YOLO_FROM_WINDOWS};
use yolo_base::windows_paths::Form;
use yolo_base::wsl_variables::{entries as listed_in, is_passed_by_yolo};

use super::marker::Marker;

/// The variables to set for `wsl.exe`. `own` are those of this process.
pub(super) fn variables(
    own: impl Iterator<Item = (String, String)>,
    drives: &[char],
    marker: &Marker,
) -> Vec<(String, String)> {
    let mut before = String::new();
    let mut entries = Vec::new();
    for (name, value) in own {
        if name.eq_ignore_ascii_case(WSLENV) {
            before = value;
            continue;
        }
        if is_passed_by_yolo(&name) && !value.is_empty() {
            let is_path = Form::of(&value).is_some_and(|form| form.is_absolute());
            entries.push(format!("{name}{}", if is_path { "/p" } else { "" }));
        }
    }
    // What the user lets WSL pass keeps the user's flags.
    let listed: Vec<&str> = listed_in(&before).map(|(name, _)| name).collect();
    let is_new = |entry: &String| {
        let name = entry.split('/').next().unwrap_or_default();
        !listed.iter().any(|listed| listed.eq_ignore_ascii_case(name))
    };
    entries.retain(is_new);
    let mut variables = vec![(YOLO_FROM_WINDOWS.to_owned(), marker.encode())];
    entries.push(YOLO_FROM_WINDOWS.to_owned());
    for letter in drives {
        let name = format!("{}{letter}", YOLO_DRIVE_C.trim_end_matches('C'));
        entries.push(format!("{name}/p"));
        variables.push((name, format!("{letter}:\\")));
    }
    let all = std::iter::once(before.trim_end_matches(':').to_owned()).filter(|before| !before.is_empty());
    variables.push((WSLENV.to_owned(), all.chain(entries).collect::<Vec<_>>().join(":")));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wslenv(own: &[(&str, &str)]) -> String {
        let marker =
            Marker { yolo: "1".to_owned(), distribution: "Ubuntu".to_owned(), folder: r"C:\".to_owned() };
        let own = own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let set = variables(own, &['C', 'Z'], &marker);
        assert!(set.contains(&("YOLO_DRIVE_Z".to_owned(), r"Z:\".to_owned())));
        let value = |wanted: &str| set.iter().find(|(name, _)| name == wanted).unwrap().1.clone();
        assert!(value("YOLO_FROM_WINDOWS").contains("Ubuntu"));
        value("WSLENV")
    }

    const OURS: &str = "YOLO_FROM_WINDOWS:YOLO_DRIVE_C/p:YOLO_DRIVE_Z/p";

    #[test]
    fn variables_of_yolo_and_proxies_are_passed_with_paths_translated() {
        let own = [
            ("Path", r"C:\Windows"),
            ("YOLO_HOME", r"D:\yolo"),
            ("YOLO_MIRROR", "https://mirror.example/yolo"),
            ("YOLO_TRAINER", "/opt/yolo/yolo-trainer"),
            ("YOLO_WSL", r"C:\wsl.exe"),
            ("YOLO_OFFLINE", ""),
            ("https_proxy", "http://proxy:3128"),
            ("NCCL_DEBUG", "INFO"),
            ("LIBTORCH", r"C:\libtorch"),
        ];
        assert_eq!(
            wslenv(&own),
            format!("YOLO_HOME/p:YOLO_MIRROR:YOLO_TRAINER:https_proxy:NCCL_DEBUG:{OURS}")
        );
    }

    #[test]
    fn what_the_user_lets_pass_keeps_its_flags() {
        let own = [("WSLENV", "FOO/up:YOLO_HOME/u:"), ("YOLO_HOME", r"D:\yolo"), ("FOO", "x")];
        assert_eq!(wslenv(&own), format!("FOO/up:YOLO_HOME/u:{OURS}"));
        assert_eq!(wslenv(&[]), OURS);
    }
}
