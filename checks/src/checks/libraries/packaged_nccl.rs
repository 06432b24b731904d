//! Whether the NCCL next to Python's `torch` is the one that it needs. The packages nvidia-nccl-cu12 and
//! nvidia-nccl-cu13 put their library in the same file, so the one that was installed last stays, whichever
//! of them `torch` needs; pip does not notice it.

use super::LIBTORCH;
use crate::facts::{Host, Variant, Version};
use crate::finding::Finding;
use crate::foreign_library::{NCCL, OF_LIBTORCH};
use crate::shell_quote::quote;

/// Where the packages put the library, below the folder of packages.
const FILE: &str = "nvidia/nccl/lib/libnccl.so.2";
/// What the names of the packages have in common.
const NAME: &str = "nvidia-nccl-cu";

/// An installed package that brings NCCL.
struct Package {
    /// Such as nvidia-nccl-cu13.
    name: String,
    version: Version,
}

/// The NCCL of Python's packages, if it is older than the one that libtorch was built with.
pub(super) fn overwritten(host: &Host) -> Option<Finding> {
    let found = host.library(NCCL).ok()?.into_iter().next()?;
    let folder = found.path.strip_suffix(FILE)?.trim_end_matches('/').to_owned();
    let libtorch = host.libtorch().ok()??;
    let is_ours = libtorch
        .version
        .as_ref()
        .is_none_or(|version| version.to_string() == LIBTORCH.map(|number| number.to_string()).join("."));
    let Variant::Cuda(cuda) = libtorch.variant else { return None };
    let packages = packages(host, &folder);
    let of_name = found.version.as_deref().and_then(Version::find);
    let version = of_name.or_else(|| version_of_file(host, &folder, &found.path, &packages))?;
    if !is_ours || !version.is_below(&OF_LIBTORCH) {
        return None;
    }
    let is_beside = libtorch.root.starts_with(&folder);
    let needed = needed_by_torch(host, &folder).filter(|_| is_beside);
    if needed.as_ref().is_some_and(|needed| !version.is_older_than(&needed.version)) {
        return None;
    }
    // The packages of another environment, such as one of TensorFlow.
    if !is_beside {
        let title =
            format!("libnccl.so.2 {version} is loaded from {}, not from libtorch's folder", found.path);
        let finding = Finding::new("libraries.foreign-nccl", title);
        return Some(
            finding.seen(format!("libtorch is in {}", libtorch.root)).command("unset LD_LIBRARY_PATH"),
        );
    }
    let (name, wanted) = match needed {
        Some(needed) => (needed.name, needed.version.to_string()),
        None => {
            let major = cuda.map_or(13, |(major, _)| major);
            (format!("{NAME}{major}"), OF_LIBTORCH.map(|number| number.to_string()).join("."))
        }
    };
    Some(finding(host, &folder, &packages, &version, &name, &wanted).seen(found.path))
}

fn finding(
    host: &Host,
    folder: &str,
    packages: &[Package],
    version: &Version,
    name: &str,
    wanted: &str,
) -> Finding {
    let other = packages.iter().find(|package| package.name != name && package.version == *version);
    let of = other.map_or(String::new(), |package| format!(" of {}", package.name));
    let title = format!("libtorch needs NCCL {wanted} of {name}, but finds {version}{of} in its place");
    let finding = Finding::new("libraries.foreign-nccl", title);
    let finding = match other {
        Some(other) => finding.because(format!(
            "the Python packages {} and {name} write the same file, and the one that was installed last stays; libtorch does \
             not load with an older NCCL (\"undefined symbol: nccl…\")",
            other.name
        )),
        None => finding,
    };
    let pip = pip(host, folder);
    let removed = other.map(|other| format!("{pip} uninstall {}", other.name));
    removed
        .into_iter()
        .fold(finding, Finding::command)
        .command(format!("{pip} install --force-reinstall --no-deps {name}=={wanted}"))
        .remedy(match other {
            Some(_) => "remove the other package and install the right one again, because its file was overwritten; or unset \
                        LIBTORCH, and yolo uses a libtorch of its own",
            None => "install the version that torch needs; or unset LIBTORCH, and yolo uses a libtorch of its own",
        })
}

/// The pip of the environment with this folder of packages, `…/lib/python3.12/site-packages`.
fn pip(host: &Host, folder: &str) -> String {
    let split = folder.split_once("/lib/python").or_else(|| folder.split_once("/lib64/python"));
    let Some((root, _)) = split else { return "pip".to_owned() };
    let exists = |name: &str| host.exists(&format!("{root}/bin/{name}")) == Ok(true);
    match (exists("pip"), exists("python")) {
        (true, _) => quote(&format!("{root}/bin/pip")),
        // uv makes environments without pip.
        (false, true) => format!("VIRTUAL_ENV={} uv pip", quote(root)),
        (false, false) => "pip".to_owned(),
    }
}

/// The installed packages that bring NCCL.
fn packages(host: &Host, folder: &str) -> Vec<Package> {
    let Ok(Some(names)) = host.folder(folder) else {
        // A recording may have the list of packages instead.
        let lists = host.recorded_outputs("pip").into_iter().map(|(_, output)| output.text());
        return lists.flat_map(|text| text.lines().filter_map(of_line).collect::<Vec<_>>()).collect();
    };
    names
        .iter()
        .filter_map(|name| {
            let (name, version) = name.strip_suffix(".dist-info")?.split_once('-')?;
            let name = name.replace('_', "-");
            let version = Version::find(version).filter(|_| name.starts_with(NAME))?;
            Some(Package { name, version })
        })
        .collect()
}

/// `nvidia-nccl-cu13         2.28.9`
fn of_line(line: &str) -> Option<Package> {
    let mut words = line.split_whitespace();
    let name = words.next().filter(|word| word.starts_with(NAME))?;
    Some(Package { name: name.to_owned(), version: Version::find(words.next()?)? })
}

/// The version of the package whose record has the size of the file that is there.
fn version_of_file(host: &Host, folder: &str, path: &str, packages: &[Package]) -> Option<Version> {
    if let [only] = packages {
        return Some(only.version.clone());
    }
    let size = host.stat(path).ok()??.size?;
    let is_of = |package: &&Package| {
        let name = package.name.replace('-', "_");
        let record = host.text(&format!("{folder}/{name}-{}.dist-info/RECORD", package.version));
        record.ok().flatten().and_then(|text| size_in(&text)) == Some(size)
    };
    let mut owners = packages.iter().filter(is_of);
    let first = owners.next()?;
    owners.next().is_none().then(|| first.version.clone())
}

/// `nvidia/nccl/lib/libnccl.so.2,sha256=…,290000000`
fn size_in(record: &str) -> Option<u64> {
    let line = record.lines().find(|line| line.starts_with(FILE))?;
    line.rsplit(',').next()?.trim().parse().ok()
}

/// What the description of `torch` asks for: `Requires-Dist: nvidia-nccl-cu13==2.28.9; platform_system == "Linux"`.
fn needed_by_torch(host: &Host, folder: &str) -> Option<Package> {
    let names = host.folder(folder).ok()??;
    let torch = names.iter().find(|name| name.starts_with("torch-") && name.ends_with(".dist-info"))?;
    required(&host.text(&format!("{folder}/{torch}/METADATA")).ok()??)
}

fn required(text: &str) -> Option<Package> {
    let (name, version) = requirements(text).find(|(name, _)| name.starts_with(NAME))?;
    Some(Package { name, version: Version::find(&version)? })
}

/// The packages that the description of a package asks for in exactly one version.
fn requirements(text: &str) -> impl Iterator<Item = (String, String)> {
    text.lines().filter_map(|line| {
        let wanted = line.strip_prefix("Requires-Dist: ")?.split(';').next()?;
        let (name, version) = wanted.split_once("==")?;
        Some((
            name.trim().trim_end_matches('(').trim().to_owned(),
            version.trim().trim_end_matches(')').to_owned(),
        ))
    })
}

/// The packages that the `torch` in this folder of packages asks for in exactly one version.
pub(super) fn pinned_by_torch(host: &Host, folder: &str) -> Vec<(String, String)> {
    let names = host.folder(folder).ok().flatten().unwrap_or_default();
    let torch = names.iter().find(|name| name.starts_with("torch-") && name.ends_with(".dist-info"));
    let text = torch.and_then(|torch| host.text(&format!("{folder}/{torch}/METADATA")).ok().flatten());
    requirements(&text.unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn descriptions_of_packages_are_read() {
        let text = "Name: torch\nRequires-Dist: filelock\n\
            Requires-Dist: nvidia-nccl-cu13==2.28.9; platform_system == \"Linux\"\n";
        let needed = required(text).unwrap();
        assert_eq!(
            (needed.name.as_str(), needed.version.to_string().as_str()),
            ("nvidia-nccl-cu13", "2.28.9")
        );
        assert_eq!(size_in("a,sha256=b,1\nnvidia/nccl/lib/libnccl.so.2,sha256=c,42\n"), Some(42));
        assert!(of_line("nvidia-cudnn-cu13        9.19.0.56").is_none());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(Requires-Dist: nvidia-nccl-cu|==|;|,|nvidia/nccl/lib/libnccl.so.2|[0-9.]{1,9}|\\PC){0,12}") {
            let _ = (required(&text), size_in(&text), of_line(&text));
        }
    }
}
