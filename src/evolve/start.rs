//! From what an evolution starts: the table of an earlier one, and the files of the first generations.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fs_err as fs;
use yolo_plan::PlanError;
use yolo_plan::evolve::{Genes, Table};
use yolo_plan::hyp::{HyperParameters, PRESETS};

/// The name of the table.
pub(crate) const TABLE: &str = "evolve.csv";
/// The largest table that is read; a generation has about 760 bytes.
const MAX_BYTES: u64 = 64 << 20;
/// Where YOLOv5 has its presets. `yolo` has them built in.
const PRESETS_OF_YOLOV5: &str = "data/hyps";

/// The table that an argument names: itself, or that of a folder.
pub(crate) fn table_in(argument: &Path) -> PathBuf {
    if argument.is_dir() { argument.join(TABLE) } else { argument.to_owned() }
}

/// The table that was written last in a folder of `project`.
///
/// # Errors
/// When there is none.
pub(crate) fn newest(project: &Path) -> Result<PathBuf, PlanError> {
    let folders = fs::read_dir(project).into_iter().flatten().filter_map(Result::ok);
    let tables = folders.map(|folder| folder.path().join(TABLE)).filter_map(|table| {
        let written = table.metadata().and_then(|metadata| metadata.modified()).ok()?;
        Some((written, table))
    });
    tables.max_by(|a: &(SystemTime, PathBuf), b| a.cmp(b)).map(|(_, table)| table).ok_or_else(|| {
        PlanError::new(format!(
            "there is no evolution to resume: no {TABLE} in a folder of {}",
            project.display()
        ))
        .with_hint("name the table: --resume-evolve FILE; or start a new evolution, without --resume")
    })
}

/// Reads the table of an earlier evolution. The second value is a warning.
///
/// # Errors
/// When it cannot be read, or not continued.
pub(crate) fn continued(table: &Path, genes: Genes) -> Result<(Table, Option<String>), PlanError> {
    let shown = table.display().to_string();
    let unreadable = |error: &dyn std::fmt::Display| {
        PlanError::new(format!("cannot read the evolution {shown}: {error}"))
            .with_hint("name the evolve.csv of an evolution, or its folder")
    };
    let size = std::fs::metadata(table).map_err(|error| unreadable(&error))?.len();
    if size > MAX_BYTES {
        return Err(unreadable(&format!(
            "it has {}, and the limit is {}",
            yolo_base::format::memory(size),
            yolo_base::format::memory(MAX_BYTES)
        )));
    }
    let bytes = std::fs::read(table).map_err(|error| unreadable(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable(&"it is not text"))?;
    Table::parse(&text, &shown, genes)
}

/// The hyperparameters of the YAML files in a folder, in the order of their names.
///
/// # Errors
/// When there are none, or one of them is wrong.
pub(crate) fn population(folder: &Path, genes: Genes) -> Result<Vec<Vec<f64>>, PlanError> {
    let of_file = |name: &str| HyperParameters::load(name).map(|hyp| genes.of_hyp(&hyp));
    if !folder.exists() && folder == Path::new(PRESETS_OF_YOLOV5) {
        // The last one is for the built-in data set, which YOLOv5 lacks.
        return PRESETS.iter().filter(|name| **name != "shapes").map(|name| of_file(name)).collect();
    }
    let shown = folder.display();
    let entries = fs::read_dir(folder).map_err(|error| {
        PlanError::new(format!("--evolve-population {shown} cannot be read: {error}")).with_hint(
            "name a folder with hyperparameter files, or give it no value for the built-in presets",
        )
    })?;
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    let mut files: Vec<PathBuf> =
        entries.filter_map(Result::ok).map(|entry| entry.path()).filter(is_yaml).collect();
    files.sort();
    if files.is_empty() {
        return Err(PlanError::new(format!("--evolve-population {shown} has no YAML files"))
            .with_hint("put files like the hyp.yaml of a run there, or omit the option"));
    }
    files.iter().map(|file| of_file(&file.to_string_lossy())).collect()
}

#[cfg(test)]
mod tests {
    use yolo_plan::evolve::{Generation, hyp_yaml};

    use super::*;

    #[test]
    fn the_newest_table_is_continued() {
        let project = tempfile::tempdir().unwrap();
        let message = newest(&project.path().join("gone")).unwrap_err().to_string();
        assert!(message.starts_with("there is no evolution to resume"), "{message}");
        for (name, age) in [("exp2", 0), ("exp10", 100)] {
            fs::create_dir(project.path().join(name)).unwrap();
            let file = fs::File::create(project.path().join(name).join(TABLE)).unwrap();
            file.file().set_modified(SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
        }
        fs::create_dir(project.path().join("empty")).unwrap();
        assert_eq!(newest(project.path()).unwrap(), project.path().join("exp2").join(TABLE));
    }

    #[test]
    fn a_table_is_named_by_itself_or_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(TABLE);
        assert_eq!((table_in(folder.path()), table_in(&file)), (file.clone(), file.clone()));
        let genes = Genes::new(true);
        let message = continued(&file, genes).unwrap_err().to_string();
        assert!(message.starts_with("cannot read the evolution "), "{message}");
        let mut table = Table::new(genes);
        table.push(Generation::failed(genes.of_hyp(&HyperParameters::low())));
        fs::write(&file, table.to_csv()).unwrap();
        assert_eq!(continued(&file, genes).unwrap(), (table, None));
        fs::write(&file, [0xff, 0xfe]).unwrap();
        assert!(continued(&file, genes).unwrap_err().to_string().ends_with("it is not text"));
    }

    #[test]
    fn a_population_is_a_folder_of_files() {
        let genes = Genes::new(false);
        let folder = tempfile::tempdir().unwrap();
        let message = population(folder.path(), genes).unwrap_err().to_string();
        assert!(message.ends_with("has no YAML files"), "{message}");
        let low = genes.of_hyp(&HyperParameters::low());
        let voc = genes.of_hyp(&HyperParameters::preset("voc").unwrap());
        fs::write(folder.path().join("b.yaml"), hyp_yaml(genes, &low)).unwrap();
        fs::write(folder.path().join("a.yml"), hyp_yaml(genes, &voc)).unwrap();
        fs::write(folder.path().join("README.md"), "").unwrap();
        assert_eq!(population(folder.path(), genes).unwrap(), [voc, low]);
        assert_eq!(population(Path::new("data/hyps"), genes).unwrap().len(), PRESETS.len() - 1);
        let gone = population(&folder.path().join("gone"), genes).unwrap_err().to_string();
        assert!(gone.starts_with("--evolve-population ") && gone.contains("cannot be read"), "{gone}");
    }
}
