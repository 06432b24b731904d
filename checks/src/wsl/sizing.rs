//! The values of `.wslconfig` that suit a PC and a training, each with its reason. WSL's own defaults
//! (half of the memory, all CPUs) are a fair start. A proposal differs from them where the training
//! needs more, never takes the share of Windows, and keeps a value of the user's that is good enough.

use yolo_base::format;

use crate::intent::Intent;
use crate::wsl::config::{Document, size};

const GIB: u64 = 1 << 30;
/// The least and the most that Windows keeps, in bytes; between them it keeps a quarter of the PC.
const WINDOWS_SHARE: (u64, u64) = (4 * GIB, 16 * GIB);
/// What Linux itself needs, with the page cache that keeps a disk usable.
pub(crate) const LINUX: u64 = 2 * GIB;
/// What a rank needs before it holds an image: libtorch, the CUDA libraries and the CUDA context.
const RANK: u64 = 3 * GIB;
/// What the loader of a rank holds whatever the size of its images is.
const LOADER: u64 = GIB;
/// What it holds at 640 pixels for each image of a batch: the batches that are ready or on their way to the GPU. This and the
/// next grow with the area of an image.
const IMAGE_AT_640: u64 = 10 << 20;
/// What each of its threads holds: the images of a mosaic and its canvas. With the defaults, all are 2 GiB.
const WORKER_AT_640: u64 = 108 << 20;
/// Above this fraction of the PC's memory, Windows starts to swap while WSL runs.
const TOO_MUCH: f64 = 0.9;
/// The first build of Windows 11 22H2, which mirrored networking needs.
pub const MIRRORED_NEEDS_BUILD: u32 = 22621;

/// The Windows PC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pc {
    /// Bytes, as Windows sees them.
    pub memory: u64,
    /// Logical CPUs.
    pub processors: u32,
    /// The build of Windows, such as 22631.
    pub windows_build: Option<u32>,
    /// Free bytes of the disk that holds the swap file.
    pub swap_disk_free: Option<u64>,
}

/// What a training needs of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Training {
    /// Ranks on this machine.
    pub ranks: u32,
    /// Machines that take part.
    pub machines: u32,
    /// Image size in pixels.
    pub image_size: u32,
    /// Loader threads per rank.
    pub workers: u32,
    /// Images in a batch of a rank.
    pub batch: u32,
    /// Bytes of images that are kept in memory between epochs.
    pub cached_images: u64,
}

impl Default for Training {
    /// One rank with the defaults of `yolo train`.
    fn default() -> Self {
        Self { ranks: 1, machines: 1, image_size: 640, workers: 8, batch: 16, cached_images: 0 }
    }
}

impl Training {
    /// What a planned run needs, with the defaults of `yolo train` for what it leaves open.
    pub fn of(intent: &Intent) -> Self {
        let default = Self::default();
        let number = |value: Option<usize>, default: u32| {
            value.and_then(|value| u32::try_from(value).ok()).unwrap_or(default)
        };
        Self {
            ranks: number(Some(intent.ranks_here()), default.ranks),
            machines: number(intent.nnodes, default.machines),
            image_size: number(intent.image_size, default.image_size),
            workers: number(intent.workers, default.workers),
            batch: number(intent.images_a_rank(), default.batch),
            ..default
        }
    }

    /// An estimate of the bytes that it needs on this machine, Linux included.
    pub fn memory(&self) -> u64 {
        let area = (f64::from(self.image_size) / 640.0).powi(2);
        let at_640 = u64::from(self.batch) * IMAGE_AT_640 + u64::from(self.workers) * WORKER_AT_640;
        let images = LOADER + (at_640 as f64 * area.clamp(0.25, 16.0)) as u64;
        let ranks = u64::from(self.ranks).saturating_mul(RANK.saturating_add(images));
        ranks.saturating_add(LINUX).saturating_add(self.cached_images)
    }

    /// The ranks as the subject of this verb: `one rank at 640 pixels needs`.
    fn ranks_that(&self, verb: &str) -> String {
        match self.ranks {
            1 => format!("one rank at {} pixels {verb}s", self.image_size),
            ranks => format!("{ranks} ranks at {} pixels {verb}", self.image_size),
        }
    }
}

/// A value of `[wsl2]`, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The key.
    pub key: &'static str,
    /// The proposed value.
    pub value: String,
    /// The value in effect now, as written in the file.
    pub now: Option<String>,
    /// The reason, without a period.
    pub why: String,
}

impl Proposal {
    /// Whether the file has to change for it.
    pub fn changes(&self) -> bool {
        self.now.as_ref() != Some(&self.value)
    }
}

/// What is proposed for a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proposals {
    /// The values, including those that are already right.
    pub values: Vec<Proposal>,
    /// What no value can achieve.
    pub warnings: Vec<String>,
}

/// Memory, swap, processors and, for several machines, the networking mode.
pub fn propose(pc: &Pc, training: &Training, file: &Document) -> Proposals {
    let mut proposals = Proposals::default();
    let memory = memory(pc, training, file, &mut proposals);
    swap(pc, training, memory, file, &mut proposals);
    processors(pc, training, file, &mut proposals);
    if training.machines > 1 {
        networking(pc, file, &mut proposals);
    }
    proposals
}

/// What WSL can have of a PC: all but the share of Windows, in whole gigabytes, and never less than
/// WSL takes by default.
fn most(pc: &Pc) -> u64 {
    let share = (pc.memory / 4).clamp(WINDOWS_SHARE.0, WINDOWS_SHARE.1).min(pc.memory / 2);
    let most = pc.memory - share;
    if most < GIB { most } else { most / GIB * GIB }
}

fn memory(pc: &Pc, training: &Training, file: &Document, proposals: &mut Proposals) -> u64 {
    let need = training.memory();
    let most = most(pc);
    let now = file.value("wsl2", "memory").map(str::to_owned);
    let given = now.as_deref().and_then(size::parse).filter(|&bytes| bytes > 0);
    let pc_memory = format::memory(pc.memory);
    if need > most {
        proposals.warnings.push(format!(
            "{} about {}, but WSL can have only {} of this PC's {pc_memory}: use fewer ranks or workers, or \
             smaller images",
            training.ranks_that("need"),
            format::memory(need),
            format::memory(most)
        ));
    }
    let target = need.div_ceil(GIB).saturating_mul(GIB).max(pc.memory / 2 / GIB * GIB).min(most);
    let serves =
        given.is_some_and(|given| given >= need.min(most) && (given as f64) <= TOO_MUCH * pc.memory as f64);
    if let (true, Some(now), Some(given)) = (serves, &now, given) {
        let why = format!("it is enough: {} about {}", training.ranks_that("need"), format::memory(need));
        proposals.values.push(Proposal { key: "memory", value: now.clone(), now: Some(now.clone()), why });
        return given;
    }
    let why = match given {
        Some(given) if given as f64 > TOO_MUCH * pc.memory as f64 => format!(
            "{} of {pc_memory} would leave Windows too little, and it would swap while WSL runs; this leaves it {}",
            format::memory(given),
            format::memory(pc.memory - target)
        ),
        _ if need > most => format!(
            "{} about {}; this leaves {} for Windows",
            training.ranks_that("need"),
            format::memory(need),
            format::memory(pc.memory - target)
        ),
        _ if target <= pc.memory / 2 => format!(
            "half of this PC's {pc_memory}, as by default; {} about {}",
            training.ranks_that("need"),
            format::memory(need)
        ),
        _ => format!(
            "{} about {}, more than the default of half of this PC's {pc_memory}; this leaves {} for Windows",
            training.ranks_that("need"),
            format::memory(need),
            format::memory(pc.memory - target)
        ),
    };
    proposals.values.push(Proposal { key: "memory", value: size::format(target), now, why });
    target
}

fn swap(pc: &Pc, training: &Training, memory: u64, file: &Document, proposals: &mut Proposals) {
    let need = training.memory();
    let missing = need.saturating_sub(memory).div_ceil(GIB) * GIB;
    // WSL's own rule: a quarter of its memory, rounded up to whole gigabytes.
    let default = (memory / 4).div_ceil(GIB) * GIB;
    let room = pc.swap_disk_free.map_or(u64::MAX, |free| free / 2 / GIB * GIB);
    let target = default.max(missing).min(room);
    let now = file.value("wsl2", "swap").map(str::to_owned);
    let given = now.as_deref().and_then(size::parse);
    // Less than the default is the user's choice, as long as the memory alone is enough.
    let serves = given.is_some_and(|given| {
        (given == 0 || given >= 1 << 20)
            && given >= missing.min(room)
            && pc.swap_disk_free.is_none_or(|free| given < free)
    });
    let (value, why) = match (&now, given) {
        (Some(now), Some(_)) if serves => (now.clone(), "it is enough".to_owned()),
        (_, Some(given)) if pc.swap_disk_free.is_some_and(|free| given >= free) => (
            size::format(target),
            format!(
                "{} does not fit on the disk, which has {} free",
                format::memory(given),
                format::memory(room.saturating_mul(2))
            ),
        ),
        _ if missing > 0 => (
            size::format(target),
            format!(
                "the memory is about {} too small, and the rest goes to the disk",
                format::memory(missing)
            ),
        ),
        _ => (size::format(target), "a quarter of WSL's memory, as by default".to_owned()),
    };
    proposals.values.push(Proposal { key: "swap", value, now, why });
}

fn processors(pc: &Pc, training: &Training, file: &Document, proposals: &mut Proposals) {
    let useful = training.ranks.saturating_mul(training.workers.saturating_add(1)).min(pc.processors);
    let now = file.value("wsl2", "processors").map(str::to_owned);
    let given = now.as_deref().and_then(|value| value.parse::<u32>().ok()).filter(|&count| count > 0);
    let (value, why) = match (&now, given) {
        (Some(now), Some(given)) if (useful..=pc.processors).contains(&given) => {
            (now.clone(), format!("it is enough: {} {useful}", training.ranks_that("use")))
        }
        (_, Some(given)) if given < useful => (
            pc.processors.to_string(),
            format!("{given} would slow down image loading: {} {useful}", training.ranks_that("use")),
        ),
        _ => {
            (pc.processors.to_string(), "all CPUs of this PC, as by default; Windows shares them".to_owned())
        }
    };
    proposals.values.push(Proposal { key: "processors", value, now, why });
}

fn networking(pc: &Pc, file: &Document, proposals: &mut Proposals) {
    let now = file.value("wsl2", "networkingMode").map(str::to_owned);
    let is = |mode: &str| now.as_deref().is_some_and(|now| now.eq_ignore_ascii_case(mode));
    if let (true, Some(now)) = (is("mirrored") || is("bridged"), &now) {
        let why = "it is right: other machines can reach this one".to_owned();
        proposals.values.push(Proposal {
            key: "networkingMode",
            value: now.clone(),
            now: Some(now.clone()),
            why,
        });
    } else if pc.windows_build.is_some_and(|build| build < MIRRORED_NEEDS_BUILD) {
        proposals.warnings.push(format!(
            "other machines cannot reach WSL on this PC: mirrored networking needs Windows 11 22H2 (build \
            {MIRRORED_NEEDS_BUILD}) or later, and this is build {}",
            pc.windows_build.unwrap_or_default()
        ));
    } else {
        let why = "the ranks of other machines must reach this one, and by default WSL has a private address"
            .to_owned();
        proposals.values.push(Proposal { key: "networkingMode", value: "mirrored".to_owned(), now, why });
    }
}
