//! The sources of libtorch, in the order in which they are tried: the user's mirror, the user's package
//! index through pip or uv, and PyTorch's site. Each one returns the wheels of a variant and where they
//! are.

use std::fs;

use yolo_base::env::YOLO_MIRROR;

use super::package_tool::WheelLocation;
use super::variant::Variant;
use super::wheel::{METADATA, Wheel, requirements};
use super::{index, pinned_wheels, pip, uv};
use crate::fetch::{Archive, Client, FetchError, Meter, Progress, ProgressEvent, Refusal, RefusalKind};

/// A wheel and its location.
#[derive(Clone)]
pub(super) struct FoundWheel {
    pub(super) wheel: Wheel,
    pub(super) located: WheelLocation,
    /// Whether the user named the server or folder, which is then trusted even if no hash is known.
    pub(super) named_by_user: bool,
}

/// A source of wheels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// `YOLO_MIRROR`.
    Mirror(String),
    /// The package index that pip is configured for.
    Pip,
    /// The package index that uv is configured for.
    Uv,
    /// PyTorch's site.
    PyTorch,
}

impl Source {
    /// All sources that may have a variant, the best first.
    pub(super) fn of(variant: Variant, mirror: Option<String>) -> Vec<Self> {
        let mirror = mirror.map(Self::Mirror).into_iter();
        match variant {
            // Package indexes have one build only, the one for CUDA 13.0.
            Variant::Cpu | Variant::Cu130 => mirror.chain([Self::Pip, Self::Uv, Self::PyTorch]).collect(),
            Variant::Cu126 | Variant::Cu128 => mirror.chain([Self::PyTorch]).collect(),
        }
    }

    /// The name for messages.
    pub(super) fn shown(&self) -> &'static str {
        match self {
            Self::Mirror(_) => YOLO_MIRROR,
            Self::Pip => "the package index (pip)",
            Self::Uv => "the package index (uv)",
            Self::PyTorch => "PyTorch's package index",
        }
    }

    /// Asks for all wheels of the variant.
    pub(super) fn ask(
        &self,
        client: &Client,
        variant: Variant,
        progress: &dyn Progress,
    ) -> Result<Vec<FoundWheel>, Refusal> {
        let pinned = match variant {
            Variant::Cpu => Some(pinned_wheels::CPU.map(Wheel::from).to_vec()),
            Variant::Cu130 => Some(pinned_wheels::CU130.map(Wheel::from).to_vec()),
            Variant::Cu126 | Variant::Cu128 => None,
        };
        if let (Self::Mirror(_) | Self::Pip | Self::Uv, Some(wheels)) = (self, &pinned) {
            return self.ask_pinned(client, wheels.clone(), progress);
        }
        self.check_online(client)?;
        let ask = Ask { client, variant, progress };
        match self {
            Self::Mirror(mirror) => ask.with_others(|wheel| Ok(ask.mirror(mirror, wheel)?)),
            Self::PyTorch => ask.with_others(|wheel| ask.pytorch(wheel)),
            Self::Pip | Self::Uv => Err("package indexes do not have this variant".to_owned().into()),
        }
    }

    /// Asks for wheels whose file names are known.
    pub(super) fn ask_pinned(
        &self,
        client: &Client,
        wheels: Vec<Wheel>,
        progress: &dyn Progress,
    ) -> Result<Vec<FoundWheel>, Refusal> {
        self.check_online(client)?;
        let located = match self {
            Self::Mirror(mirror) => wheels
                .iter()
                .map(|wheel| index::on_mirror(client, mirror, wheel, progress))
                .collect::<Result<_, FetchError>>()?,
            Self::Pip => pip::ask_pip(&wheels)?,
            Self::Uv => uv::ask_uv(&wheels)?,
            Self::PyTorch => return Err("PyTorch's site is asked for whole variants".to_owned().into()),
        };
        let named_by_user = matches!(self, Self::Mirror(_));
        let pairs = wheels.into_iter().zip(located);
        Ok(pairs.map(|(wheel, located)| FoundWheel { wheel, located, named_by_user }).collect())
    }

    fn check_online(&self, client: &Client) -> Result<(), Refusal> {
        if client.is_offline() && !matches!(self, Self::Mirror(mirror) if is_folder(mirror)) {
            return Err(Refusal { why: "yolo is offline".to_owned(), kind: RefusalKind::Offline });
        }
        Ok(())
    }
}

fn is_folder(mirror: &str) -> bool {
    !mirror.contains("://") || mirror.starts_with("file:")
}

struct Ask<'a> {
    client: &'a Client,
    variant: Variant,
    progress: &'a dyn Progress,
}

impl Ask<'_> {
    fn mirror(&self, mirror: &str, wheel: Wheel) -> Result<FoundWheel, FetchError> {
        let located = index::on_mirror(self.client, mirror, &wheel, self.progress)?;
        Ok(FoundWheel { wheel, located, named_by_user: true })
    }

    /// PyTorch's site, which also has NVIDIA's packages; for those that it lacks, the user's index.
    fn pytorch(&self, wheel: Wheel) -> Result<FoundWheel, Refusal> {
        let located = match index::ask_pytorch(self.client, self.variant, &wheel, self.progress) {
            Ok(located) => located,
            Err(error) if wheel.is_torch() => return Err(error.into()),
            Err(error) => {
                let one = std::slice::from_ref(&wheel);
                let asked = pip::ask_pip(one).map_err(|refusal| format!("{error}; {}", refusal.why))?;
                asked.into_iter().next().ok_or(error)?
            }
        };
        Ok(FoundWheel { wheel, located, named_by_user: false })
    }

    /// PyTorch's build of the variant and the wheels that its METADATA requires.
    fn with_others(
        &self,
        find: impl Fn(Wheel) -> Result<FoundWheel, Refusal>,
    ) -> Result<Vec<FoundWheel>, Refusal> {
        let torch = find(Wheel::of_pytorch(self.variant))?;
        if !torch.wheel.names_others() {
            return Ok(vec![torch]);
        }
        let others = requirements(&self.metadata(&torch)?);
        if others.is_empty() {
            return Err(format!("{} requires no CUDA libraries", torch.wheel.shown()).into());
        }
        let mut found = vec![torch];
        for other in others {
            found.push(find(other)?);
        }
        Ok(found)
    }

    fn metadata(&self, torch: &FoundWheel) -> Result<String, FetchError> {
        let folder = tempfile::tempdir().map_err(|source| FetchError::Disk {
            action: "create a temporary folder in",
            path: std::env::temp_dir(),
            source,
        })?;
        let archive = Archive::open(self.client, &torch.located.address)?;
        let (meter, patterns) = (Meter::new(self.progress), [torch.wheel.metadata_pattern()]);
        match archive.select(&patterns, &meter) {
            Ok(selection) => archive.fetch_members(&selection, folder.path(), &meter).map(|_| ())?,
            Err(FetchError::NoRanges { url }) => {
                let text = format!("{url} does not support byte ranges and is downloaded twice");
                self.progress.event(ProgressEvent::Note { text: &text });
                archive.stream(&patterns, folder.path(), &meter).map(|_| ())?;
            }
            Err(error) => return Err(error),
        }
        let path = folder.path().join(METADATA);
        fs::read_to_string(&path).map_err(|source| FetchError::Disk { action: "read", path, source })
    }
}
