//! What the stage `speed` measures: each cell is one start of `yolo bench`.

use std::time::Duration;

use crate::scale::Scale;

/// One start of `yolo bench`: a model, a batch size, and which parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) model: &'static str,
    pub(super) batch: u32,
    pub(super) precision: &'static str,
    pub(super) parts: &'static [Part],
    pub(super) variant: Variant,
}

/// A part of `yolo bench`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Training,
    Synthetic,
    /// The loader alone, with as many threads as training has.
    Loader,
    Validation,
}

/// What is different from the defaults of `yolo bench`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    /// Nothing.
    Plain,
    /// Every image is decoded each time.
    FromFiles,
    /// All decoded images are kept in memory.
    FromMemory,
    /// libtorch uses its fastest algorithms. The difference from the others is what determinism costs.
    Nondeterministic,
}

/// What a measurement is of. The code that notes a measurement and the code that looks it up share this type, so their
/// names cannot differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Files,
    Memory,
    Synthetic,
    Loader,
    Validation,
}

impl Kind {
    /// Its name in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Files => "training from files",
            Self::Memory => "training from memory",
            Self::Synthetic => "training on synthetic data",
            Self::Loader => "loader alone",
            Self::Validation => "validation",
        }
    }

    /// Whether it is training.
    pub(super) fn is_training(self) -> bool {
        matches!(self, Self::Files | Self::Memory | Self::Synthetic)
    }
}

impl Part {
    fn option(self) -> &'static str {
        match self {
            Self::Training => "--training",
            Self::Synthetic => "--synthetic",
            // With fewer threads it would take most of the time, and nothing is compared with them.
            Self::Loader => "--loader most",
            Self::Validation => "--validation",
        }
    }
}

impl Variant {
    fn option(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::FromFiles => " --cache none",
            Self::FromMemory => " --cache ram",
            Self::Nondeterministic => " --nondeterministic",
        }
    }

    /// What the report says of it.
    pub(super) fn remark(self) -> &'static str {
        match self {
            Self::Plain | Self::FromFiles => "",
            Self::FromMemory => ", --cache ram",
            Self::Nondeterministic => ", nondeterministic",
        }
    }
}

impl Cell {
    /// The options that choose parts, precision and variant.
    pub(super) fn options(&self) -> String {
        let parts: Vec<&str> = self.parts.iter().map(|part| part.option()).collect();
        format!("{} --precision {}{}", parts.join(" "), self.precision, self.variant.option())
    }

    /// What a part of it measures.
    pub(super) fn kind(&self, part: Part) -> Kind {
        match part {
            Part::Training if self.variant == Variant::FromMemory => Kind::Memory,
            Part::Training => Kind::Files,
            Part::Synthetic => Kind::Synthetic,
            Part::Loader => Kind::Loader,
            Part::Validation => Kind::Validation,
        }
    }

    /// How long it takes at most: the start of the program, and for each part a warm-up and a pass for the phases besides
    /// what is measured.
    pub(super) fn expected_time(&self, seconds: u32) -> Duration {
        Duration::from_secs((10 + 2 * self.parts.len() as u32 * seconds).into())
    }
}

/// Seconds for each part.
pub(super) fn seconds(scale: &Scale) -> u32 {
    scale.of(if scale.full { 8 } else { 4 }, 1)
}

/// A measurement from files, as all are that say nothing else.
pub(super) const fn cell(
    model: &'static str,
    batch: u32,
    precision: &'static str,
    parts: &'static [Part],
) -> Cell {
    Cell { model, batch, precision, parts, variant: Variant::FromFiles }
}

const fn nondeterministic(model: &'static str, batch: u32, precision: &'static str) -> Cell {
    Cell { model, batch, precision, parts: &[Part::Synthetic], variant: Variant::Nondeterministic }
}

/// The batch with which models and precisions are compared.
pub(super) const COMPARED: u32 = 64;

/// The loader, with which all models and precisions are compared.
pub(super) const LOADER: Cell = cell("yolov5n", COMPARED, "fp32", &[Part::Loader]);

/// The models and precisions whose training is compared with the loader and the network alone, on a GPU.
pub(super) const MODELS: [(&str, &str); 6] = [
    ("yolov5n", "fp16"),
    ("yolov5s", "fp16"),
    ("yolov5m", "fp16"),
    ("yolov5n", "fp32"),
    ("yolov5s", "fp32"),
    ("yolov5m", "fp32"),
];

/// The two cells of such a comparison: every image decoded each time with the network alone, and all images in memory.
pub(super) const fn comparison(model: &'static str, batch: u32, precision: &'static str) -> [Cell; 2] {
    let files = cell(model, batch, precision, &[Part::Training, Part::Synthetic]);
    [files, Cell { parts: &[Part::Training], variant: Variant::FromMemory, ..files }]
}

/// What determinism costs.
pub(super) const FASTEST: [Cell; 2] =
    [nondeterministic("yolov5n", COMPARED, "fp16"), nondeterministic("yolov5s", COMPARED, "fp16")];

/// A batch that must fit into the memory of every GPU.
pub(super) const SMALLEST: u32 = 16;

/// What is measured if time remains.
pub(super) const EXTRA: [Cell; 1] =
    [cell("yolov5n", SMALLEST, "fp32", &[Part::Training, Part::Synthetic, Part::Validation])];

/// What `--full` adds.
pub(super) const FULL: [Cell; 6] = [
    cell("yolov5n", 128, "fp32", &[Part::Training, Part::Synthetic, Part::Validation]),
    cell("yolov5s", 16, "fp32", &[Part::Training, Part::Synthetic, Part::Validation]),
    cell("yolov5s", 128, "fp32", &[Part::Training, Part::Synthetic]),
    cell("yolov5m", 16, "fp32", &[Part::Training, Part::Synthetic, Part::Validation]),
    cell("yolov5m", 128, "fp32", &[Part::Training, Part::Synthetic]),
    cell("yolov5l", 64, "fp32", &[Part::Training, Part::Synthetic]),
];

/// In a rehearsal: every part once. `yolo` refuses fp16 on the CPU.
pub(super) const REHEARSAL: [Cell; 2] = [
    cell("yolov5n", 4, "fp32", &[Part::Training, Part::Synthetic, Part::Loader, Part::Validation]),
    nondeterministic("yolov5n", 4, "bf16"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;

    /// How long all takes that must be measured.
    fn required(seconds: u32) -> Duration {
        let compared = MODELS.iter().flat_map(|&(model, precision)| comparison(model, COMPARED, precision));
        let all = std::iter::once(LOADER).chain(compared).chain(FASTEST);
        all.map(|cell| cell.expected_time(seconds)).sum()
    }

    #[test]
    fn there_is_time_for_all_that_must_be_measured() {
        let (plain, full) = (required(4), required(8));
        assert!(plain <= Stage::Speed.limit(false), "{plain:?}");
        assert!(full <= Stage::Speed.limit(true), "{full:?}");
        // `docs/gpu.md` names these limits, of which a few seconds pass before the stage begins.
        assert!(plain < Duration::from_secs(480 - 10), "{plain:?}");
        assert!(full < Duration::from_secs(590 - 10), "{full:?}");
    }

    #[test]
    fn the_loader_is_measured_with_the_threads_of_training_only() {
        assert_eq!(LOADER.options(), "--loader most --precision fp32 --cache none");
        let [files, memory] = comparison("yolov5n", 64, "fp16");
        assert_eq!(files.options(), "--training --synthetic --precision fp16 --cache none");
        assert_eq!(memory.options(), "--training --precision fp16 --cache ram");
        assert_eq!((files.kind(Part::Training), memory.kind(Part::Training)), (Kind::Files, Kind::Memory));
    }
}
