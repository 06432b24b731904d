//! An evolution for people: a line before and after each generation, and the result.

use std::path::Path;

use yolo_base::format::{count, duration};
use yolo_plan::evolve::Table;

/// Before a generation is trained: its number and where it is from. Generations count from 1 here.
pub(crate) fn generation_begins(number: usize, all: usize, parent: Option<usize>) -> String {
    let from = match parent {
        Some(parent) => format!("a mutation of generation {}", parent + 1),
        None => "hyperparameters as given".to_owned(),
    };
    format!("\ngeneration {} of {all}: {from}", number + 1)
}

/// After the last generation of the table: its fitness, the best so far, and the time left in seconds.
pub(crate) fn generation_ends(table: &Table, all: usize, left: Option<f64>) -> String {
    let number = table.rows().len();
    let fitness = |row: usize| table.rows()[row].fitness();
    let own = fitness(number - 1);
    let best = match table.best() {
        Some(best) if fitness(best) == 0.0 => "no generation has found anything yet".to_owned(),
        Some(best) if best + 1 == number => "the best so far".to_owned(),
        Some(best) => format!("the best is {:.4} of generation {}", fitness(best), best + 1),
        None => String::new(),
    };
    let left = left.map(|seconds| format!("; about {} left", duration(seconds))).unwrap_or_default();
    format!("generation {number} of {all}: fitness {own:.4}, {best}{left}")
}

/// The result on stdout: the best generation, the files, and the option that trains with it.
pub(crate) fn evolution_result(table: &Table, files: &[(&str, &Path)], hyp: &Path) -> Option<String> {
    let best = table.best()?;
    let row = &table.rows()[best];
    let metrics = &row.metrics;
    let mut text = format!(
        "best of {}: generation {}, fitness {:.4} (mAP50 {:.3}, mAP50-95 {:.3})\n",
        count(table.rows().len(), "generation"),
        best + 1,
        row.fitness(),
        metrics.map50,
        metrics.map50_95
    );
    for (what, path) in files {
        text.push_str(&format!("{what}: {}\n", path.display()));
    }
    text.push_str(&format!("to train with the best, add to your command\n  --hyp {}", hyp.display()));
    Some(text)
}

#[cfg(test)]
mod tests {
    use yolo_plan::event::Metrics;
    use yolo_plan::evolve::{Generation, Genes};
    use yolo_plan::hyp::HyperParameters;

    use super::*;

    fn table(fitness: &[f64]) -> Table {
        let genes = Genes::new(false);
        let mut table = Table::new(genes);
        for &map in fitness {
            let metrics = Metrics { precision: 0.5, recall: 0.5, map50: map, map50_95: map };
            let values = genes.of_hyp(&HyperParameters::low());
            table.push(Generation { metrics, losses: [0.0; 3], values });
        }
        table
    }

    #[test]
    fn generations_count_from_one() {
        assert_eq!(generation_begins(0, 3, None), "\ngeneration 1 of 3: hyperparameters as given");
        assert_eq!(generation_begins(2, 3, Some(0)), "\ngeneration 3 of 3: a mutation of generation 1");
        assert_eq!(
            generation_ends(&table(&[0.1]), 3, Some(90.0)),
            "generation 1 of 3: fitness 0.1000, the best so far; about 1 min 30 s left"
        );
        assert_eq!(
            generation_ends(&table(&[0.0, 0.0]), 2, None),
            "generation 2 of 2: fitness 0.0000, no generation has found anything yet"
        );
        assert_eq!(
            generation_ends(&table(&[0.2, 0.1]), 2, None),
            "generation 2 of 2: fitness 0.1000, the best is 0.2000 of generation 1"
        );
    }

    #[test]
    fn the_result_says_how_to_train_with_it() {
        let hyp = Path::new("runs/evolve/exp/hyp_evolve.yaml");
        let text = evolution_result(&table(&[0.1, 0.2]), &[("hyperparameters", hyp)], hyp).unwrap();
        assert_eq!(
            text,
            "best of 2 generations: generation 2, fitness 0.2000 (mAP50 0.200, mAP50-95 0.200)\n\
             hyperparameters: runs/evolve/exp/hyp_evolve.yaml\n\
             to train with the best, add to your command\n  --hyp runs/evolve/exp/hyp_evolve.yaml"
        );
        assert_eq!(evolution_result(&table(&[]), &[], hyp), None);
    }
}
