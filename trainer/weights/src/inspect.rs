//! What Python would import and call to open a `.pt` file. Unlike [`read`](crate::read), it follows a pickle past names
//! that are not on the allow-list, so that a hostile file can be described. Still nothing is imported or called.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _};
use std::path::Path;

use crate::error::{Problem, WeightsError};
use crate::pickle::{self, Followed};
use crate::reference::Reference;
use crate::sniff::{self, Kind, whole};
use crate::{legacy, zip};

/// The layout of a weights file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// PyTorch's since version 1.6: a zip archive with a pickle.
    Zip,
    /// PyTorch's before version 1.6: several pickles, then the tensors.
    Legacy,
    /// A TorchScript export: a zip archive with a program for PyTorch's interpreter.
    TorchScript,
    /// A pickle without PyTorch's layout.
    Pickle,
    /// Tensors after a header of JSON. Nothing in it can be executed.
    Safetensors,
}

/// What is known about a file without rebuilding its content.
#[derive(Debug)]
pub struct Inspection {
    /// The layout.
    pub format: Format,
    /// The pickle protocol; `None` if there is no pickle.
    pub protocol: Option<u8>,
    /// What the pickle names, in the order of its first appearance.
    pub references: Vec<Reference>,
    /// Why the pickle could not be followed to its end; what is behind that place is not among the references.
    pub problem: Option<Problem>,
}

/// Follows the pickle of a file.
///
/// # Errors
/// If the file cannot be read, or is none of the formats.
pub fn inspect(path: &Path) -> Result<Inspection, WeightsError> {
    inner(path).map_err(|problem| WeightsError::new(path, problem))
}

fn inner(path: &Path) -> Result<Inspection, Problem> {
    let opening = |source| Problem::Io { doing: "opened", source };
    let reading = |source| Problem::Io { doing: "read", source };
    let metadata = fs::metadata(path).map_err(opening)?;
    if !metadata.is_file() {
        return Err(Problem::NotAFile);
    }
    let mut file = File::open(path).map_err(opening)?;
    let without_pickle =
        |format| Inspection { format, protocol: None, references: Vec::new(), problem: None };
    Ok(match sniff::kind(&mut file, metadata.len()).map_err(reading)? {
        Kind::Zip => {
            file.rewind().map_err(reading)?;
            match zip::pickle(file, metadata.len()) {
                Ok(bytes) => of_pickles(Format::Zip, vec![pickle::follow(&bytes)]),
                Err(Problem::TorchScript) => without_pickle(Format::TorchScript),
                Err(problem) => return Err(problem),
            }
        }
        Kind::Legacy => of_pickles(Format::Legacy, legacy::follow(&whole(file).map_err(reading)?)),
        Kind::Safetensors => without_pickle(Format::Safetensors),
        Kind::Other(Problem::Code(_) | Problem::Foreign(sniff::BARE)) => {
            file.rewind().map_err(reading)?;
            let mut bytes = Vec::new();
            file.take(sniff::BARE_PICKLE).read_to_end(&mut bytes).map_err(reading)?;
            of_pickles(Format::Pickle, vec![pickle::follow(&bytes)])
        }
        Kind::Other(problem) => return Err(problem),
    })
}

/// The pickles of one file as one inspection.
fn of_pickles(format: Format, pickles: Vec<Followed>) -> Inspection {
    let mut all = Inspection { format, protocol: Some(0), references: Vec::new(), problem: None };
    for one in pickles {
        all.protocol = all.protocol.max(Some(one.protocol));
        all.references.extend(one.references);
        all.problem = all.problem.or(one.problem);
    }
    all
}
