//! The formats of `yolo export`: their names on the command line, those of their files, and what is said about the
//! formats of YOLOv5's `export.py` that `yolo` does not write.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::PlanError;

/// A format of `yolo export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportFormat {
    /// A traced network, which `torch.jit.load` opens.
    TorchScript,
    /// A graph of operations for other runtimes.
    Onnx,
    /// A state dict, which `torch.load` opens with `weights_only=True`.
    Torch,
    /// A checkpoint with Python objects, which YOLOv5's own scripts open.
    Yolov5,
    /// A state dict, with names, strides and model description as metadata.
    Safetensors,
}

/// Formats of YOLOv5 that are made from ONNX, or from a TensorFlow model that is made from it, with the program to use.
/// `export.py` calls TensorRT's format `engine`; people call it by the name of the program.
const NOT_WRITTEN: [(&str, &str); 10] = [
    ("openvino", "OpenVINO's `ovc`"),
    ("engine", "TensorRT's `trtexec --onnx=…`"),
    ("tensorrt", "TensorRT's `trtexec --onnx=…`"),
    ("coreml", "coremltools"),
    ("saved_model", "onnx2tf"),
    ("pb", "onnx2tf"),
    ("tflite", "onnx2tf"),
    ("edgetpu", "onnx2tf and Coral's edgetpu_compiler"),
    ("tfjs", "onnx2tf and tensorflowjs_converter"),
    ("paddle", "x2paddle"),
];

impl ExportFormat {
    /// All formats, in the order in which they are written.
    pub const ALL: [Self; 5] = [Self::TorchScript, Self::Onnx, Self::Torch, Self::Yolov5, Self::Safetensors];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::TorchScript => "torchscript",
            Self::Onnx => "onnx",
            Self::Torch => "torch",
            Self::Yolov5 => "yolov5",
            Self::Safetensors => "safetensors",
        }
    }

    /// Whether the file has the operations of the network, and not only its tensors.
    pub fn has_operations(self) -> bool {
        matches!(self, Self::TorchScript | Self::Onnx)
    }

    /// The name of its file for weights of this name: `best.torchscript` for `best.pt`.
    pub fn file_name(self, weights: &Path) -> PathBuf {
        let stem = weights.file_stem().unwrap_or_default().to_string_lossy();
        PathBuf::from(match self {
            Self::TorchScript => format!("{stem}.torchscript"),
            Self::Onnx => format!("{stem}.onnx"),
            Self::Torch => format!("{stem}_state_dict.pt"),
            Self::Yolov5 => format!("{stem}_yolov5.pt"),
            Self::Safetensors => format!("{stem}.safetensors"),
        })
    }

    /// The format of this name, in upper or lower case.
    pub(super) fn parse(name: &str) -> Result<Self, PlanError> {
        let name = &name.to_ascii_lowercase();
        if let Some(format) = Self::ALL.into_iter().find(|format| format.name() == name) {
            return Ok(format);
        }
        let list = yolo_base::format::list(&Self::ALL.map(|format| format.name().to_owned()));
        match NOT_WRITTEN.iter().find(|(other, _)| other == name) {
            Some((_, program)) => Err(PlanError::usage(format!("yolo does not write the format {name}"))
                .with_hint(if name == "coreml" {
                    format!("use --format torchscript, and then {program}")
                } else {
                    format!("use --format onnx, and then {program}")
                })),
            None => Err(PlanError::usage(format!("yolo does not know the format {name}"))
                .with_hint(format!("choose from {list}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_upper_or_lower_case() {
        for (name, format) in [("ONNX", ExportFormat::Onnx), ("TorchScript", ExportFormat::TorchScript)] {
            assert_eq!(ExportFormat::parse(name).unwrap(), format, "{name}");
        }
        for (name, why) in
            [("TensorRT", "does not write the format tensorrt"), ("caffe", "does not know the format caffe")]
        {
            assert!(ExportFormat::parse(name).unwrap_err().to_string().contains(why), "{name}");
        }
    }
}
