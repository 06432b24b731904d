//! Which environment variables the program in WSL gets. WSL passes those that the variable `WSLENV` names, and
//! translates the paths in those that have the flag `/p` there.

use std::collections::BTreeMap;

use yolo_base::env::{WSLENV, YOLO_DRIVE_C, YOLO_FROM_WINDOWS};
use yolo_base::windows_paths::{Form, with_backslashes};
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
    let mut paths = BTreeMap::new();
    for (name, value) in own {
        if name.eq_ignore_ascii_case(WSLENV) {
            before = value;
            continue;
        }
        if is_passed_by_yolo(&name) && !value.is_empty() {
            let is_path = Form::at_prompt(&value).is_some_and(|form| form.is_absolute());
            entries.push(format!("{name}{}", if is_path { "/p" } else { "" }));
            if is_path {
                paths.insert(name, value);
            }
        }
    }
    // What the user lets WSL pass keeps the user's flags.
    let listed: Vec<&str> = listed_in(&before).map(|(name, _)| name).collect();
    let is_new = |entry: &str| {
        let name = entry.split('/').next().unwrap_or_default();
        !listed.iter().any(|listed| listed.eq_ignore_ascii_case(name))
    };
    entries.retain(|entry| is_new(entry));
    paths.retain(|name, _| is_new(name));
    // WSL reads only the separators of Windows at the beginning of a share.
    let shares = paths.iter().filter_map(|(name, value)| Some((name.clone(), with_backslashes(value)?)));
    let mut variables: Vec<(String, String)> = shares.collect();
    variables.push((YOLO_FROM_WINDOWS.to_owned(), Marker { paths, ..marker.clone() }.encode()));
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

    fn set(own: &[(&str, &str)]) -> Vec<(String, String)> {
        let marker = Marker {
            yolo: "1".to_owned(),
            distribution: "Ubuntu".to_owned(),
            folder: r"C:\".to_owned(),
            paths: BTreeMap::new(),
        };
        let own = own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        variables(own, &['C', 'Z'], &marker)
    }

    fn wslenv(own: &[(&str, &str)]) -> String {
        let set = set(own);
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

    #[test]
    fn paths_that_wsl_translates_are_in_the_marker_as_windows_has_them() {
        let set = set(&[
            ("WSLENV", "YOLO_TRAINER/p"),
            ("YOLO_HOME", r"E:\yolo"),
            ("YOLO_MIRROR", "//nas/mirror"),
            ("YOLO_TRAINER", r"E:\t"),
            ("NO_COLOR", "1"),
        ]);
        let value = |wanted: &str| &set.iter().find(|(name, _)| name == wanted).unwrap().1;
        assert_eq!(value("YOLO_MIRROR"), r"\\nas\mirror");
        let marker: Marker = serde_json::from_str(value("YOLO_FROM_WINDOWS")).unwrap();
        let paths: Vec<(&str, &str)> =
            marker.paths.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(paths, [("YOLO_HOME", r"E:\yolo"), ("YOLO_MIRROR", "//nas/mirror")]);
    }
}
