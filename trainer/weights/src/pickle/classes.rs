//! The allow-list: the classes and functions that a pickle may reference. None of them is ever called.
//! The list decides which objects become inert data. Any other name is an error, so that a file that
//! wants to call a function (`posix.system`) is not mistaken for a model.

use super::dtype::{
    is_numpy_scalar, is_quantization_scheme, is_unsupported_dtype, torch_dtype, unsupported_tensor,
};

/// How a reference is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// A dict, such as OrderedDict.
    Dict,
    /// A list or a set.
    List,
    /// A class with arguments, rebuilt later.
    Inert,
}

/// The family of a name, or `None` if it is not on the list.
pub(super) fn family(module: &str, name: &str) -> Option<Family> {
    // A dotted name reaches through a module into others (`models.yolo` and `os.system`).
    if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    match (module, name) {
        ("collections", "OrderedDict" | "defaultdict") | ("builtins" | "__builtin__", "dict") => {
            Some(Family::Dict)
        }
        ("builtins" | "__builtin__", "set" | "frozenset" | "list") => Some(Family::List),
        _ => is_inert(module, name).then_some(Family::Inert),
    }
}

fn is_inert(module: &str, name: &str) -> bool {
    match module {
        // Types as values, and bytes.
        "builtins" | "__builtin__" => {
            matches!(
                name,
                "int"
                    | "float"
                    | "bool"
                    | "str"
                    | "bytes"
                    | "bytearray"
                    | "complex"
                    | "tuple"
                    | "object"
                    | "slice"
            )
        }
        "_codecs" => name == "encode",
        "argparse" => name == "Namespace",
        "datetime" => matches!(name, "date" | "datetime" | "time" | "timedelta" | "timezone"),
        "pathlib" | "pathlib._local" => name.ends_with("Path"),
        "torch" => {
            name.ends_with("Storage")
                || torch_dtype(name).is_some()
                || is_unsupported_dtype(name)
                || is_quantization_scheme(name)
                || matches!(name, "Size" | "device" | "Tensor")
        }
        "torch.storage" => name.ends_with("Storage"),
        "torch._utils" => {
            matches!(
                name,
                "_rebuild_tensor"
                    | "_rebuild_tensor_v2"
                    | "_rebuild_tensor_v3"
                    | "_rebuild_parameter"
                    | "_rebuild_parameter_with_state"
            ) || unsupported_tensor(name).is_some()
        }
        "torch.nn.parameter" => matches!(name, "Parameter" | "Buffer"),
        "torch.serialization" => name == "_get_layout",
        "numpy" => matches!(name, "ndarray" | "dtype") || is_numpy_scalar(name),
        "numpy.core.multiarray" | "numpy._core.multiarray" => matches!(name, "_reconstruct" | "scalar"),
        "numpy.core.numeric" | "numpy._core.numeric" => name == "_frombuffer",
        "numpy.dtypes" => name.ends_with("DType"),
        _ => is_module(module, name),
    }
}

/// Whether a name is a class of PyTorch or YOLOv5 from which networks are composed.
pub(super) fn is_module(module: &str, name: &str) -> bool {
    // The package `yolov5` has the repository's modules under its own name.
    let is_yolov5 = matches!(
        module.strip_prefix("yolov5.").unwrap_or(module),
        "models.yolo" | "models.common" | "models.experimental" | "utils.activations"
    );
    (is_yolov5 || module.starts_with("torch.nn.modules."))
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !module.contains(char::is_whitespace)
}

/// Whether a name is in a module that attacks use. For bytes that may not be a pickle at all.
pub(crate) fn is_notorious(class: &str) -> bool {
    const MODULES: [&str; 22] = [
        "posix",
        "nt",
        "os",
        "sys",
        "subprocess",
        "builtins",
        "__builtin__",
        "shutil",
        "socket",
        "importlib",
        "runpy",
        "ctypes",
        "pty",
        "platform",
        "commands",
        "code",
        "timeit",
        "operator",
        "functools",
        "pickle",
        "webbrowser",
        "asyncio",
    ];
    class.split('.').next().is_some_and(|module| MODULES.contains(&module))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_yolov5_checkpoints_are_allowed() {
        for (module, name) in [
            ("models.yolo", "DetectionModel"),
            ("models.common", "C3"),
            ("yolov5.models.yolo", "DetectionModel"),
            ("torch.nn.modules.conv", "Conv2d"),
            ("torch", "HalfStorage"),
            ("torch", "float16"),
            ("numpy", "float64"),
            ("pathlib", "PosixPath"),
        ] {
            assert_eq!(family(module, name), Some(Family::Inert), "{module}.{name}");
        }
    }

    #[test]
    fn functions_and_detours_are_rejected() {
        for (module, name) in [
            ("posix", "system"),
            ("builtins", "eval"),
            ("builtins", "getattr"),
            ("models.yolo", "os.system"),
            ("models.yolo", "parse_model"),
            ("yolov5.models.yolo", "parse_model"),
            ("yolov5.utils.general", "Path"),
            ("torch", "load"),
            ("torch.nn.modules", "os"),
            ("torch.nn.modules.module", "warnings"),
            ("numpy", "load"),
            ("", "system"),
        ] {
            assert_eq!(family(module, name), None, "{module}.{name}");
        }
    }
}
