//! Which programs can open a weights file, and what they need. The rule for `torch.load(weights_only=True)` is the allow-list
//! of PyTorch 2.11 as far as our own reader knows its names (`torch.serialization.get_default_safe_globals`).

use std::collections::BTreeMap;

use serde::Serialize;
use torch_checkpoint::{Format, Inspection, Problem, WeightsError, WeightsFile};

/// A program and whether it can open the file.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Opener {
    /// The program.
    pub(crate) program: &'static str,
    /// Whether it opens the file.
    pub(crate) opens: bool,
    /// What it needs, or why it does not.
    pub(crate) note: Option<String>,
}

/// The newest pickle protocol that PyTorch 2.11 reads with `weights_only=True`.
const SAFE_PROTOCOL: u8 = 3;

/// Where a name that a pickle uses is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Tensors and plain values: `weights_only=True` allows it.
    Plain,
    /// The standard library of Python, or a class of PyTorch.
    PyTorch,
    NumPy,
    /// The repository of YOLOv5, whose folder must be in the path of Python.
    Repository,
    /// The package `yolov5`.
    Package,
    /// Not on our allow-list.
    Unknown,
}

fn origin(name: &str, allowed: bool) -> Origin {
    if !allowed {
        return Origin::Unknown;
    }
    match name.split('.').next().unwrap_or_default() {
        "numpy" => Origin::NumPy,
        "models" | "utils" => Origin::Repository,
        "yolov5" => Origin::Package,
        "torch" if name.starts_with("torch.nn.modules.") => Origin::PyTorch,
        "torch" | "_codecs" => Origin::Plain,
        "collections" if name == "collections.OrderedDict" => Origin::Plain,
        "builtins" | "__builtin__" if matches!(last(name), "set" | "bytearray" | "complex") => Origin::Plain,
        _ => Origin::PyTorch,
    }
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}

fn opens(program: &'static str, note: Option<&str>) -> Opener {
    Opener { program, opens: true, note: note.map(str::to_owned) }
}

fn not(program: &'static str, why: &str) -> Opener {
    Opener { program, opens: false, note: Some(why.to_owned()) }
}

/// The programs that the description of an ONNX file lists.
pub(super) fn of_onnx(
    opsets: &BTreeMap<String, i64>,
    metadata: &BTreeMap<String, String>,
    suppresses: bool,
) -> Vec<Opener> {
    let is_own = |domain: &str| matches!(domain, "" | "ai.onnx");
    // As https://github.com/onnx/onnx defines them; `ai.onnx.contrib` is an extension of ONNX Runtime.
    let is_of_onnx =
        |domain: &str| matches!(domain, "ai.onnx.ml" | "ai.onnx.training" | "ai.onnx.preview.training");
    let own = opsets.iter().find(|(domain, _)| is_own(domain)).map(|(_, version)| format!("opset {version}"));
    let foreign = opsets.keys().any(|domain| !is_own(domain) && !is_of_onnx(domain));
    let needed: Vec<String> =
        own.into_iter().chain(foreign.then(|| "operations that are not ONNX's own".to_owned())).collect();
    let needed = (!needed.is_empty()).then(|| format!("if they know {}", yolo_base::format::list(&needed)));
    let yolov5 = "YOLOv5 (detect.py and val.py)";
    let is_of_yolov5 = ["names", "stride"].iter().all(|key| metadata.contains_key(*key));
    vec![
        not("yolo", "it is an ONNX export; `yolo` needs the .pt checkpoint that it was made from"),
        opens("ONNX Runtime and others for ONNX", needed.as_deref()),
        not("PyTorch (torch.load)", "it is an ONNX file"),
        match (suppresses, is_of_yolov5) {
            (true, _) => not(yolov5, "it returns detections, and these scripts suppress boxes themselves"),
            (false, true) => opens(yolov5, Some("with ONNX Runtime")),
            (false, false) => opens(yolov5, Some("with ONNX Runtime, if yolo or YOLOv5 exported it")),
        },
    ]
}

/// All programs that the description lists, in a fixed order.
pub(super) fn of_file(
    inspection: &Inspection,
    content: Option<&WeightsFile>,
    refusal: Option<&WeightsError>,
) -> Vec<Opener> {
    let describes_its_model = content.is_some_and(|file| file.yaml.is_some());
    let yolo = match refusal {
        None if describes_its_model => opens("yolo", None),
        None => opens("yolo", Some("for training with --cfg, because it does not describe its model")),
        Some(error) => not("yolo", &format!("it {}", error.problem())),
    };
    match inspection.format {
        Format::Safetensors => vec![
            yolo,
            match refusal.map(WeightsError::problem) {
                Some(Problem::Safetensors(_)) => not("libraries for safetensors", "it is damaged"),
                _ => opens("libraries for safetensors", None),
            },
            not("PyTorch (torch.load)", "it is a safetensors file; use safetensors.torch.load_file"),
            not("YOLOv5", &format!("it has no pickled model{}", remedy(content))),
        ],
        Format::TorchScript => vec![
            yolo,
            opens(
                "PyTorch (torch.jit.load)",
                Some("it runs the program in the file, without access to Python"),
            ),
            opens("YOLOv5 (detect.py and val.py)", Some("if yolo or YOLOv5 exported it")),
        ],
        Format::Zip | Format::Legacy | Format::Pickle => {
            let origins: Vec<Origin> =
                inspection.references.iter().map(|one| origin(&one.name, one.allowed)).collect();
            let has = |origin| origins.contains(&origin);
            let strange = has(Origin::Unknown) || inspection.problem.is_some();
            let is_layout = inspection.format != Format::Pickle;
            let only_plain = origins.iter().all(|origin| *origin == Origin::Plain);
            let safe = "PyTorch (torch.load, weights_only=True)";
            let protocol = inspection.protocol.unwrap_or_default();
            let safe = match (is_layout, strange, only_plain) {
                (false, ..) => not(safe, "it is a bare pickle"),
                (true, true, _) => not(safe, "it names what PyTorch does not allow"),
                (true, false, false) => not(safe, "it has classes that weights_only=True does not allow"),
                (true, false, true) if protocol > SAFE_PROTOCOL => not(
                    safe,
                    &format!(
                        "it has pickle protocol {protocol}, and weights_only=True reads up to {SAFE_PROTOCOL}"
                    ),
                ),
                (true, false, true) => opens(safe, None),
            };
            let all = "Python (torch.load, weights_only=False)";
            let all = match (strange, needs(&origins)) {
                (true, _) => not(all, "do not try: it executes what is listed below"),
                (false, None) => opens(all, None),
                (false, Some(packages)) => opens(all, Some(&format!("with {packages}"))),
            };
            let is_module =
                content.is_some_and(|file| file.holds_module("model") || file.holds_module("ema"));
            let yolov5 = match (strange, is_module) {
                (true, _) => not("YOLOv5", "do not try: it executes what is listed below"),
                (false, true) => opens("YOLOv5", has(Origin::Package).then_some("as the package `yolov5`")),
                (false, false) => not(
                    "YOLOv5",
                    &format!("it has a state dict instead of a pickled model{}", remedy(content)),
                ),
            };
            vec![yolo, safe, all, yolov5]
        }
    }
}

/// What to do about a file that YOLOv5 cannot open, if it says what its model is.
fn remedy(content: Option<&WeightsFile>) -> &'static str {
    match content.is_some_and(|file| file.yaml.is_some()) {
        true => "; `yolo export --format yolov5` writes one",
        false => "",
    }
}

/// The packages that Python needs besides PyTorch.
fn needs(origins: &[Origin]) -> Option<String> {
    let names: Vec<&str> = [
        (Origin::NumPy, "NumPy"),
        (Origin::Repository, "the repository of YOLOv5"),
        (Origin::Package, "the package `yolov5`"),
    ]
    .into_iter()
    .filter(|(origin, _)| origins.contains(origin))
    .map(|(_, name)| name)
    .collect();
    (!names.is_empty()).then(|| yolo_base::format::list(&names))
}
