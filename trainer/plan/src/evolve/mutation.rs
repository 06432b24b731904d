//! How the hyperparameters of a generation follow from the table: a parent is drawn among the best rows, and mutated.
//! Probability and standard deviation are YOLOv5's (spec §12); that one strength is drawn per generation was observed
//! in its output. How many rows count as the best, and that a row is never repeated, is ours.

use super::genes::{Gene, Genes, round};
use super::table::Table;

/// The rows among which a parent is drawn.
const PARENTS: usize = 5;
/// The probability with which a hyperparameter is mutated.
const PROBABILITY: f64 = 0.8;
/// The standard deviation of a factor at full strength.
const SIGMA: f64 = 0.2;
/// A factor is at least and at most this, so that a value keeps its sign and its magnitude.
const FACTOR: [f64; 2] = [0.3, 3.0];

/// Where the random numbers come from: `yolo_data::random::Random`, whose crate depends on this one.
pub trait Draw {
    /// A number in `[0, 1)`.
    fn unit(&mut self) -> f64;
    /// A number from the standard normal distribution.
    fn normal(&mut self) -> f64;
}

/// The hyperparameters of a generation.
#[derive(Debug, Clone, PartialEq)]
pub struct Child {
    /// The row of the table that was mutated, from 0.
    pub parent: usize,
    /// The values, in the order of the genes.
    pub values: Vec<f64>,
}

/// Draws a parent and mutates it; `None` if the table has no rows.
///
/// Invariant: the values are within the bounds, and differ from those of every row.
pub fn mutate(table: &Table, random: &mut dyn Draw) -> Option<Child> {
    let parent = parent(table, random)?;
    let values = &table.rows().get(parent)?.values;
    // Ends, because at least the momentum has a positive lower bound and 38,000 values.
    loop {
        let child = mutated(table.genes(), values, random);
        if table.rows().iter().all(|row| row.values != child) {
            return Some(Child { parent, values: child });
        }
    }
}

/// One of the best rows, with a probability in proportion to its fitness; each equally if all are 0.
fn parent(table: &Table, random: &mut dyn Draw) -> Option<usize> {
    let fitness = |row: usize| table.rows()[row].fitness();
    let mut rows: Vec<usize> = (0..table.rows().len()).collect();
    // The sort is stable: of equal rows, the first ones stay in front.
    rows.sort_by(|&a, &b| fitness(b).total_cmp(&fitness(a)));
    rows.truncate(PARENTS);
    let sum: f64 = rows.iter().map(|&row| fitness(row)).sum();
    let weight = |row: usize| if sum > 0.0 { fitness(row) / sum } else { 1.0 / rows.len() as f64 };
    let mut left = random.unit();
    for &row in &rows {
        left -= weight(row);
        if left < 0.0 {
            return Some(row);
        }
    }
    rows.first().copied()
}

fn mutated(genes: Genes, values: &[f64], random: &mut dyn Draw) -> Vec<f64> {
    // Some generations stay near their parent, others go far.
    let strength = random.unit() * SIGMA;
    let mut mutated = |(gene, value): (&Gene, &f64)| {
        // Always drawn, so that a gene does not depend on those before it.
        let (chance, normal) = (random.unit(), random.normal());
        let factor = if chance < PROBABILITY { 1.0 + gene.gain * strength * normal } else { 1.0 };
        round((value * factor.clamp(FACTOR[0], FACTOR[1])).clamp(gene.low, gene.high))
    };
    genes.all().iter().zip(values).map(&mut mutated).collect()
}
