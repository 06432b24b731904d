//! `hyp_evolve.yaml`: the best hyperparameters so far, as a file for `--hyp`, with the comments that YOLOv5 puts before
//! them.

use yolo_base::percent_g::percent_g;

use super::genes::Genes;
use super::table::Table;

/// The file; `None` if the table has no rows. As in YOLOv5, the generations in its comments count from 0.
pub fn best_hyp_yaml(table: &Table) -> Option<String> {
    let best = table.best()?;
    let row = &table.rows()[best];
    let csv = table.to_csv();
    let results = row.results();
    let names = csv.lines().next().unwrap_or_default().split(',').take(results.len()).map(str::trim);
    let names: Vec<String> = names.map(|name| format!("{name:>21}")).collect();
    let numbers: Vec<String> = results.iter().map(|value| format!("{:>21}", percent_g(*value, 5))).collect();
    Some(format!(
        "# YOLOv5 Hyperparameter Evolution Results\n# Best generation: {best}\n# Last generation: {}\n# {}\n# {}\n\n{}",
        table.rows().len() - 1,
        names.join(","),
        numbers.join(","),
        hyp_yaml(table.genes(), &row.values)
    ))
}

/// The hyperparameters of a generation as a YAML file.
pub fn hyp_yaml(genes: Genes, values: &[f64]) -> String {
    // Without an exponent: Python's YAML reads 1e-5 as text.
    let line = |(gene, value): (&super::Gene, &f64)| match value.fract() {
        0.0 => format!("{}: {value:.1}\n", gene.key),
        _ => format!("{}: {value}\n", gene.key),
    };
    genes.all().iter().zip(values).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Generation;
    use super::*;
    use crate::event::Metrics;
    use crate::hyp::HyperParameters;

    #[test]
    fn the_file_is_the_one_of_yolov5() {
        let genes = Genes::new(false);
        let mut table = Table::new(genes);
        assert_eq!(best_hyp_yaml(&table), None);
        let mut values = genes.of_hyp(&HyperParameters::low());
        table.push(Generation::failed(values.clone()));
        values[0] = 1e-5;
        let metrics = Metrics { precision: 0.003_333_3, recall: 1.0, map50: 0.037_905, map50_95: 0.011_371 };
        table.push(Generation { metrics, losses: [0.100_38, 0.003_728_1, 0.0], values });
        let text = best_hyp_yaml(&table).unwrap();
        let expected = "\
# YOLOv5 Hyperparameter Evolution Results
# Best generation: 1
# Last generation: 1
#     metrics/precision,       metrics/recall,      metrics/mAP_0.5, metrics/mAP_0.5:0.95,         val/box_loss,         \
                        val/obj_loss,         val/cls_loss
#             0.0033333,                    1,             0.037905,             0.011371,              0.10038,            \
                        0.0037281,                    0

lr0: 0.00001
lrf: 0.01
momentum: 0.937
";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("\nfl_gamma: 0.0\n") && text.ends_with("\ncopy_paste: 0.0\n"), "{text}");
    }

    #[test]
    fn the_file_is_one_for_hyp() {
        let genes = Genes::new(true);
        let mut table = Table::new(genes);
        table.push(Generation::failed(genes.of_hyp(&HyperParameters::low())));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hyp_evolve.yaml");
        std::fs::write(&path, best_hyp_yaml(&table).unwrap()).unwrap();
        let read = HyperParameters::load(path.to_str().unwrap()).unwrap();
        assert_eq!(read, HyperParameters { anchors: Some(3.0), ..HyperParameters::low() });
    }
}
