//! Whether the OpenMP runtime or the compiler's support library that variables put first is too old for libtorch. Their
//! names have no version; the versions of symbols that they have are compared with those that libtorch needs.

use yolo_base::env::LD_LIBRARY_PATH;

use super::left_out::{without, without_preloaded};
use crate::facts::{Host, Version, Via};
use crate::finding::Finding;
use crate::foreign_library;
use crate::status::Status;

/// A library, what it is, the kind of its versions, and the newest that any libtorch 2.11 needs if it cannot be read.
const LIBRARIES: [(&str, &str, &str, Option<&str>); 2] = [
    ("libgomp.so.1", "OpenMP runtime (libgomp)", "GOMP", Some("4.0")),
    ("libgcc_s.so.1", "support library of the compiler (libgcc)", "GCC", None),
];

pub(super) fn finding(host: &Host) -> Option<Finding> {
    LIBRARIES.iter().find_map(|(name, what, kind, least)| {
        let (variable, path) = put_first(host, name)?;
        let said = said(host, &path, kind);
        let (own, needed) = match said {
            Some(needed) => (None, needed),
            None => {
                let own = own_version(host, &path, kind)?;
                let needed = needed(host, kind).or_else(|| Version::find((*least)?))?;
                own.is_older_than(&needed).then_some((Some(own), needed))?
            }
        };
        let title = format!("{variable} puts an old {what} first, which lacks {kind}_{needed}: {path}");
        // That the loader takes it is certain if it has said so.
        let status = if own.is_none() { Status::Error } else { Status::Warning };
        let mut finding = Finding::new("libraries.old-runtime", title).status(status).because(format!(
            "the loader takes the library that it finds first, and libtorch or a library beside it needs {kind}_{needed}; it fails with \
             `{name}: version `{kind}_{needed}' not found`"
        ));
        if let Some(own) = own {
            finding = finding.seen(format!("the newest symbols in it are of {kind}_{own}"));
        }
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        Some(finding.command(if variable == LD_LIBRARY_PATH {
            without(host, folder)
        } else {
            without_preloaded(host, &path)
        }))
    })
}

/// The path of this library, if a variable makes the loader find it first, and that variable.
fn put_first(host: &Host, name: &str) -> Option<(&'static str, String)> {
    let stem = name.strip_suffix(".1").unwrap_or(name);
    if let Some((path, _)) = foreign_library::preloaded(host, stem) {
        return Some(("LD_PRELOAD", path));
    }
    let first = host.library(name).ok().and_then(|found| found.into_iter().next());
    let libtorch = host.places().ok().and_then(|places| places.libtorch);
    let is_own = |path: &str| {
        libtorch
            .as_ref()
            .is_some_and(|root| path.strip_prefix(root.as_str()).is_some_and(|rest| rest.starts_with('/')))
    };
    match first {
        Some(first) => {
            let is_of_variable = first.via == Some(Via::LdLibraryPath) && !is_own(&first.path);
            is_of_variable.then_some((LD_LIBRARY_PATH, first.path))
        }
        // A recording may only have what the loader said.
        None => {
            let folders = host.env(LD_LIBRARY_PATH).ok().flatten()?;
            let paths = folders.split(':').map(|folder| format!("{}/{name}", folder.trim_end_matches('/')));
            let complaint = |path: &String| {
                let commands = host.recorded_commands();
                commands.iter().any(|(_, output)| output.all_text().contains(&format!("{path}: version `")))
            };
            paths.into_iter().find(complaint).map(|path| (LD_LIBRARY_PATH, path))
        }
    }
}

/// What the loader said that this file lacks: `/opt/gcc/lib64/libgomp.so.1: version `GOMP_5.0' not found (required by …)`.
fn said(host: &Host, path: &str, kind: &str) -> Option<Version> {
    let start = format!("{path}: version `{kind}_");
    host.recorded_commands().iter().find_map(|(_, output)| {
        let text = output.all_text();
        let (version, _) = text.split_once(&start)?.1.split_once("\' not found")?;
        Version::find(version)
    })
}

/// The newest symbols that a file has: of its own table, or of the words that a recorded program printed about it.
fn own_version(host: &Host, path: &str, kind: &str) -> Option<Version> {
    let of_file = host.binary(path).ok().flatten().and_then(|binary| binary.has(kind));
    of_file.or_else(|| of_words(host, path, kind))
}

fn of_words(host: &Host, path: &str, kind: &str) -> Option<Version> {
    let commands = host.recorded_commands();
    let about_it = commands.iter().filter(|(line, _)| line.split([' ', '\'']).any(|word| word == path));
    let texts: Vec<String> = about_it.map(|(_, output)| output.text()).collect();
    let start = format!("{kind}_");
    let words = texts
        .iter()
        .flat_map(|text| text.split(|letter: char| letter.is_whitespace() || "@()".contains(letter)));
    let versions = words.filter_map(|word| Version::find(word.strip_prefix(&start)?));
    versions.reduce(|newest, version| if newest.is_older_than(&version) { version } else { newest })
}

/// The newest version that libtorch, the trainer, and for libgcc also the C++ library need.
fn needed(host: &Host, kind: &str) -> Option<Version> {
    let places = host.places().ok()?;
    let of_libtorch = places.libtorch.into_iter().flat_map(|root| {
        ["libtorch_cpu.so", "libtorch_cuda.so", "libc10.so"].map(|name| format!("{root}/lib/{name}"))
    });
    let of_system = host.library("libstdc++.so.6").ok().and_then(|found| found.into_iter().next());
    let files = of_libtorch.chain(places.trainer).chain(of_system.map(|library| library.path));
    let versions = files.filter_map(|file| host.binary(&file).ok()??.needs(kind));
    versions.reduce(|newest, version| if newest.is_older_than(&version) { version } else { newest })
}
