//! What holds for every mutation of an evolution: bounds, digits, that something changes, and that equal random numbers
//! give equal generations.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use yolo_plan::event::Metrics;
use yolo_plan::evolve::{Draw, Generation, Genes, Table, hyp_yaml, mutate, round};
use yolo_plan::hyp::{HyperParameters, PRESETS};

/// Numbers that follow from a seed (Numerical Recipes' generator), as the trainer's are in another crate.
struct Numbers(u64);

impl Draw for Numbers {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

fn generation(map: f64, values: Vec<f64>) -> Generation {
    let metrics = Metrics { precision: map, recall: map, map50: map, map50_95: map };
    Generation { metrics, losses: [0.1; 3], values }
}

/// A table whose rows have any values between the bounds.
fn tables() -> impl Strategy<Value = Table> {
    let row = |genes: Genes| {
        let values: Vec<_> = genes.all().iter().map(|gene| gene.low..=gene.high).collect();
        (0.0..1.0, values)
    };
    any::<bool>().prop_flat_map(move |anchors| {
        let genes = Genes::new(anchors);
        proptest::collection::vec(row(genes), 1..9).prop_map(move |rows| {
            let mut table = Table::new(genes);
            for (fitness, values) in rows {
                table.push(generation(fitness, values.into_iter().map(round).collect()));
            }
            table
        })
    })
}

proptest! {
    #[test]
    fn a_mutation_keeps_the_bounds_and_changes_something(table in tables(), seed: u64) {
        let child = mutate(&table, &mut Numbers(seed)).unwrap();
        prop_assert!(child.parent < table.rows().len());
        prop_assert!(table.rows().iter().all(|row| row.values != child.values));
        for ((gene, value), before) in table.genes().all().iter().zip(&child.values).zip(&table.rows()[child.parent].values) {
            prop_assert!((gene.low..=gene.high).contains(value), "{} is {value}", gene.key);
            prop_assert_eq!(round(*value), *value, "{} has too many digits", gene.key);
            prop_assert!(gene.gain > 0.0 || value == before, "{} must not change", gene.key);
        }
    }

    #[test]
    fn equal_random_numbers_give_equal_generations(table in tables(), seed: u64) {
        let child = || mutate(&table, &mut Numbers(seed));
        prop_assert_eq!(child(), child());
    }

    #[test]
    fn a_table_that_was_written_is_the_same_table(table in tables()) {
        let csv = table.to_csv();
        let (read, warning) = Table::parse(&csv, "evolve.csv", table.genes()).unwrap();
        prop_assert_eq!(warning, None);
        prop_assert_eq!(read.to_csv(), csv);
        for (read, row) in read.rows().iter().zip(table.rows()) {
            prop_assert_eq!(&read.values, &row.values);
        }
    }

    #[test]
    fn any_text_is_a_table_or_a_message(text: String) {
        let _ = Table::parse(&text, "evolve.csv", Genes::new(true)).map_err(|error| error.to_string());
    }

    #[test]
    fn any_beginning_of_a_file_is_a_table_or_a_message(table in tables(), part in 0.0..1.0_f64) {
        let csv = table.to_csv();
        let header = csv.lines().next().unwrap().len() + 1;
        let end = header + ((csv.len() - header) as f64 * part) as usize;
        let (read, _) = Table::parse(&csv[..end], "evolve.csv", table.genes()).unwrap();
        // Never a row that was not written.
        prop_assert!(csv.starts_with(&read.to_csv()));
    }
}

#[test]
fn every_mutation_can_be_trained() {
    let genes = Genes::new(true);
    let folder = tempfile::tempdir().unwrap();
    for preset in PRESETS {
        let mut table = Table::new(genes);
        table.push(generation(0.5, genes.of_hyp(&HyperParameters::preset(preset).unwrap())));
        for seed in 0..20 {
            let child = mutate(&table, &mut Numbers(seed)).unwrap();
            let file = folder.path().join("hyp.yaml");
            std::fs::write(&file, hyp_yaml(genes, &child.values)).unwrap();
            let read = HyperParameters::load(file.to_str().unwrap()).unwrap();
            assert_eq!(genes.of_hyp(&read), child.values, "{preset}, seed {seed}");
        }
    }
}

#[test]
fn only_the_five_best_are_mutated_and_better_ones_more_often() {
    let genes = Genes::new(false);
    let mut table = Table::new(genes);
    for fitness in [0.1, 0.8, 0.2, 0.4, 0.0, 0.3, 0.05] {
        table.push(generation(fitness, genes.of_hyp(&HyperParameters::low())));
    }
    let mut times = [0; 7];
    for seed in 0..2000_u64 {
        times[mutate(&table, &mut Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))).unwrap().parent] += 1;
    }
    assert_eq!((times[4], times[6]), (0, 0), "{times:?}");
    assert!(
        times[1] > times[3] && times[3] > times[5] && times[5] > times[2] && times[2] > times[0],
        "{times:?}"
    );
    // 0.8 of 1.8.
    assert!((800..980).contains(&times[1]), "{times:?}");
}

#[test]
fn a_value_beyond_its_bounds_comes_back() {
    let genes = Genes::new(false);
    let mut table = Table::new(genes);
    table.push(generation(0.5, genes.of_hyp(&HyperParameters { degrees: 90.0, ..HyperParameters::low() })));
    let child = mutate(&table, &mut Numbers(0)).unwrap();
    let degrees = genes.all().iter().position(|gene| gene.key == "degrees").unwrap();
    assert!(child.values[degrees] <= 45.0);
}

#[test]
fn a_table_without_rows_has_no_parent() {
    assert_eq!(mutate(&Table::new(Genes::new(true)), &mut Numbers(0)), None);
}
