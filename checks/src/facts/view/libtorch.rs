//! The libtorch that a run would use: its version, and the CUDA version it was built for. Three files
//! contain them: `build-version` of PyTorch's zip files, `version.py` of a Python package, and the
//! stamp of `yolo setup`.

use serde_json::Value;

use crate::facts::answer::{Fact, Unknown};
use crate::facts::host::Host;
use crate::facts::view::version::Version;
use crate::libtorch_builds::{self, Build};

/// A libtorch on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Libtorch {
    /// The folder that holds `lib`.
    pub root: String,
    /// Such as 2.11.0.
    pub version: Option<Version>,
    /// What it was built for.
    pub variant: Variant,
    /// The names in its `lib`; a recording may contain the version without them.
    pub libraries: Fact<Vec<String>>,
}

/// What a libtorch was built for.
#[derive(Debug, Clone, PartialEq)]
pub enum Variant {
    /// The CPU only.
    Cpu,
    /// CUDA, with its version if known.
    Cuda(Option<(u32, u32)>),
}

impl Libtorch {
    /// The entry in the table of PyTorch's builds, if there is one.
    pub fn build(&self) -> Option<&'static Build> {
        match self.variant {
            Variant::Cuda(Some(cuda)) => libtorch_builds::of_cuda(cuda),
            _ => None,
        }
    }
}

impl Host {
    /// The libtorch of a run; `None` if none is installed yet.
    pub fn libtorch(&self) -> Fact<Option<Libtorch>> {
        let places = self.places()?;
        if places.libtorch_named.is_some() && !self.passes_libtorch()? {
            return Ok(None);
        }
        places.libtorch.map(|root| self.libtorch_at(&root)).transpose()
    }

    /// The value of the user's variable LIBTORCH; `None` if it is not set, or is the link that setup
    /// keeps in a checkout, which cargo sets for every program that it starts.
    pub fn named_libtorch(&self) -> Fact<Option<String>> {
        if !self.passes_libtorch()? {
            return Ok(None);
        }
        let of_places = self.places().ok().and_then(|places| places.libtorch_named);
        let named = match of_places {
            Some(root) => Some(root),
            None => self.env(yolo_base::env::LIBTORCH)?,
        };
        let named = named.map(|root| root.trim_end_matches(['/', '\\']).to_owned());
        Ok(named.filter(|root| !root.is_empty() && !root.ends_with("/.libtorch")))
    }

    /// Whether a run gets LIBTORCH: one in WSL does not get that of Windows, unless the user lets WSL pass it.
    fn passes_libtorch(&self) -> Fact<bool> {
        Ok(!self.is_windows().unwrap_or(false) || self.env_of_run(yolo_base::env::LIBTORCH)?.is_some())
    }

    /// The libtorch in this folder.
    pub fn libtorch_at(&self, root: &str) -> Fact<Libtorch> {
        let root = root.to_owned();
        let libraries = match self.folder(&format!("{root}/lib")) {
            Ok(None) => return Err(Unknown(format!("{root} has no `lib` folder"))),
            Ok(Some(names)) => Ok(names),
            Err(why) => Err(why),
        };
        let version = self.version_of(&root);
        let variant = match (&libraries, &version) {
            (Ok(names), _) if !has_cuda(names) => Variant::Cpu,
            (Ok(names), _) => {
                Variant::Cuda(version.as_deref().and_then(cuda_of).or_else(|| cuda_of_libraries(names)))
            }
            (Err(_), Some(version)) if version.contains("+cpu") => Variant::Cpu,
            (Err(_), Some(version)) if version.contains("+cu") => Variant::Cuda(cuda_of(version)),
            (Err(why), _) => return Err(why.clone()),
        };
        Ok(Libtorch { root, version: version.as_deref().and_then(Version::find), variant, libraries })
    }

    /// `2.11.0+cu130`, from the first file that contains it.
    fn version_of(&self, root: &str) -> Option<String> {
        if let Ok(Some(text)) = self.text(&format!("{root}/build-version")) {
            return Some(text.trim().to_owned());
        }
        if let Ok(Some(text)) = self.text(&format!("{root}/version.py")) {
            return of_python(&text);
        }
        if let Ok(Some(stamp)) = self.text(&format!("{root}/yolo-setup.json")) {
            let stamp: Value = serde_json::from_str(&stamp).ok()?;
            return Some(format!("{}+{}", stamp["version"].as_str()?, stamp["variant"].as_str()?));
        }
        of_folder(root)
    }
}

/// The version in the name of a folder of `yolo setup`: `2.11.0-cu130`.
fn of_folder(root: &str) -> Option<String> {
    let (version, variant) = root.rsplit(['/', '\\']).next()?.split_once('-')?;
    let is_variant = variant == "cpu" || cuda_of(&format!("+{variant}")).is_some();
    (is_variant && Version::find(version).is_some_and(|found| found.to_string() == version))
        .then(|| format!("{version}+{variant}"))
}

fn has_cuda(names: &[String]) -> bool {
    names.iter().any(|name| name.starts_with("libtorch_cuda.") || name == "torch_cuda.dll")
}

/// `__version__ = '2.11.0+cu130'`, or without the part after `+` as on the package index; then
/// `cuda: Optional[str] = '13.0'` has the rest.
fn of_python(text: &str) -> Option<String> {
    let value = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name) && line.contains('='))?;
        Some(line.rsplit_once('=')?.1.trim().trim_matches(['\'', '"']).to_owned())
    };
    let version = value("__version__")?;
    if version.contains('+') {
        return Some(version);
    }
    let cuda =
        value("cuda").filter(|cuda| cuda != "None").map(|cuda| format!("+cu{}", cuda.replace('.', "")));
    Some(version + &cuda.unwrap_or_default())
}

/// `2.11.0+cu130` was built for CUDA 13.0.
fn cuda_of(version: &str) -> Option<(u32, u32)> {
    let (_, variant) = version.split_once("+cu")?;
    let digits: String = variant.chars().take_while(char::is_ascii_digit).collect();
    let (major, minor) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// `libcudart.so.13` or `libcudart-9335f6a2.so.12.6.77` are next to the library.
fn cuda_of_libraries(names: &[String]) -> Option<(u32, u32)> {
    let version = names.iter().find_map(|name| {
        let rest = name.strip_prefix("libcudart")?;
        rest.split_once(".so.").map(|(_, version)| version.to_owned())
    })?;
    let version = Version::find(&version)?;
    // The soname of CUDA 12 and 13 contains only the major version; any minor would be a guess.
    version.to_string().contains('.').then(|| (version.major(), version.minor()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn libtorch(files: Value, names: &[&str]) -> Libtorch {
        let recording = json!({ "version": 1, "places": { "libtorch": "/t" }, "files": files,
            "folders": { "/t": ["lib", "build-version", "version.py"], "/t/lib": names } });
        Host::from_value(recording).unwrap().0.libtorch().unwrap().unwrap()
    }

    #[test]
    fn the_build_of_a_zip_file_is_read() {
        let found = libtorch(json!({ "/t/build-version": "2.11.0+cu126\n" }), &["libtorch_cuda.so"]);
        assert_eq!(found.version.as_ref().unwrap().to_string(), "2.11.0");
        assert_eq!(found.variant, Variant::Cuda(Some((12, 6))));
    }

    #[test]
    fn the_build_of_a_python_package_is_read() {
        let text = "__version__ = '2.11.0'\ndebug = False\ncuda: Optional[str] = '13.0'\n";
        let found =
            libtorch(json!({ "/t/build-version": null, "/t/version.py": text }), &["libtorch_cuda.so"]);
        assert_eq!(found.variant, Variant::Cuda(Some((13, 0))));
    }

    #[test]
    fn a_libtorch_without_cuda_libraries_is_for_the_cpu() {
        assert_eq!(
            libtorch(json!({ "/t/build-version": "2.11.0+cu126" }), &["libtorch_cpu.so"]).variant,
            Variant::Cpu
        );
    }

    #[test]
    fn the_version_suffices_if_the_libraries_are_not_listed() {
        let found = |recording: Value| Host::from_value(recording).unwrap().0.libtorch().map(Option::unwrap);
        let libtorch = |version: &str| {
            found(
                json!({ "version": 1, "places": { "libtorch": "/t" }, "files": { "/t/build-version": version } }),
            )
        };
        assert_eq!(libtorch("2.11.0+cu126\n").unwrap().variant, Variant::Cuda(Some((12, 6))));
        assert_eq!(libtorch("2.11.0+cpu").unwrap().variant, Variant::Cpu);
        assert!(libtorch("2.11.0").is_err());
        let named =
            found(json!({ "version": 1, "places": { "libtorch": "/d/libtorch/2.11.0-cu130" } })).unwrap();
        assert_eq!(named.variant, Variant::Cuda(Some((13, 0))));
        assert!(found(json!({ "version": 1, "places": { "libtorch": "/opt/my-cuda" } })).is_err());
    }

    proptest! {
        #[test]
        fn any_words_are_a_version_or_none(text in "\\PC*") {
            let _ = (cuda_of(&text), of_python(&text), of_folder(&text), cuda_of_libraries(&[format!("libcudart{text}")]));
        }
    }
}
