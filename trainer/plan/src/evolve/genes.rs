//! The hyperparameters that an evolution searches, in the order of the columns of `evolve.csv`, with the bounds and the
//! strength of their mutation. The order and the bounds are those of YOLOv5 7.0, observed in its output: it was started
//! with a table of values far above and far below, and its next generation had the bounds. Which ones never change was
//! observed over 60 generations.

use serde_json::{Map, Value};
use yolo_base::percent_g::percent_g;

use crate::hyp::HyperParameters;

/// A hyperparameter of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gene {
    /// The name, as in `hyp.yaml`.
    pub key: &'static str,
    /// The smallest value of a mutation.
    pub low: f64,
    /// The largest value of a mutation.
    pub high: f64,
    /// How strongly it mutates; 0 is never.
    pub gain: f64,
}

const fn gene(key: &'static str, gain: f64, low: f64, high: f64) -> Gene {
    Gene { key, low, high, gain }
}

/// The last one is searched only if anchors may change.
const ANCHORS: &str = "anchors";
/// The anchors per level with which the search starts if the hyperparameters have none, as in YOLOv5.
const FIRST_ANCHORS: f64 = 3.0;

static GENES: [Gene; 29] = [
    gene("lr0", 1.0, 1e-5, 0.1),
    gene("lrf", 1.0, 0.01, 1.0),
    gene("momentum", 0.3, 0.6, 0.98),
    gene("weight_decay", 1.0, 0.0, 0.001),
    gene("warmup_epochs", 1.0, 0.0, 5.0),
    gene("warmup_momentum", 1.0, 0.0, 0.95),
    gene("warmup_bias_lr", 1.0, 0.0, 0.2),
    gene("box", 1.0, 0.02, 0.2),
    gene("cls", 1.0, 0.2, 4.0),
    gene("cls_pw", 1.0, 0.5, 2.0),
    gene("obj", 1.0, 0.2, 4.0),
    gene("obj_pw", 1.0, 0.5, 2.0),
    gene("iou_t", 0.0, 0.1, 0.7),
    gene("anchor_t", 1.0, 2.0, 8.0),
    gene("fl_gamma", 0.0, 0.0, 2.0),
    gene("hsv_h", 1.0, 0.0, 0.1),
    gene("hsv_s", 1.0, 0.0, 0.9),
    gene("hsv_v", 1.0, 0.0, 0.9),
    gene("degrees", 1.0, 0.0, 45.0),
    gene("translate", 1.0, 0.0, 0.9),
    gene("scale", 1.0, 0.0, 0.9),
    gene("shear", 1.0, 0.0, 10.0),
    gene("perspective", 0.0, 0.0, 0.001),
    gene("flipud", 1.0, 0.0, 1.0),
    gene("fliplr", 0.0, 0.0, 1.0),
    gene("mosaic", 1.0, 0.0, 1.0),
    gene("mixup", 1.0, 0.0, 1.0),
    gene("copy_paste", 1.0, 0.0, 1.0),
    gene(ANCHORS, 2.0, 2.0, 10.0),
];

/// The hyperparameters of one search. Values are in the order of [`Self::all`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Genes {
    genes: &'static [Gene],
}

impl Genes {
    /// The genes of a search, with the number of anchors per level if `anchors` may change.
    pub fn new(anchors: bool) -> Self {
        let count = GENES.len() - usize::from(!anchors);
        Self { genes: &GENES[..count] }
    }

    /// The genes in the order of the columns.
    pub fn all(self) -> &'static [Gene] {
        self.genes
    }

    /// The values of these hyperparameters, with as many digits as `evolve.csv` has.
    pub fn of_hyp(self, hyp: &HyperParameters) -> Vec<f64> {
        let fields = serde_json::to_value(hyp).unwrap_or_default();
        let value = |gene: &Gene| fields.get(gene.key).and_then(Value::as_f64).unwrap_or(FIRST_ANCHORS);
        self.genes.iter().map(|gene| significant(value(gene))).collect()
    }

    /// A warning if the search keeps the anchors of the model although these hyperparameters have a number of them.
    pub fn ignored_anchors(self, hyp: &HyperParameters) -> Option<&'static str> {
        let searched = self.genes.iter().any(|gene| gene.key == ANCHORS);
        (hyp.anchors.is_some() && !searched).then_some(
            "anchors of the hyperparameters has no effect with --evolve and --noautoanchor, which keeps the anchors of the \
             model, as in YOLOv5; to search it, omit --noautoanchor",
        )
    }

    /// Keys and values, for a file of hyperparameters.
    pub fn named(self, values: &[f64]) -> Map<String, Value> {
        self.genes
            .iter()
            .zip(values)
            .map(|(gene, value)| (gene.key.to_owned(), Value::from(*value)))
            .collect()
    }
}

/// A mutated value as it is trained and written: five digits after the point, as in YOLOv5, and five significant ones,
/// which is what the table can hold. So the table has what was trained.
pub fn round(value: f64) -> f64 {
    significant((value * 1e5).round_ties_even() / 1e5)
}

/// A value as it comes back from the table.
fn significant(value: f64) -> f64 {
    percent_g(value, 5).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_genes_are_the_hyperparameters_in_their_order() {
        let fields = serde_json::to_value(HyperParameters { anchors: Some(3.0), ..HyperParameters::low() });
        let keys: Vec<String> = fields.unwrap().as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, Genes::new(true).all().iter().map(|gene| gene.key).collect::<Vec<_>>());
        assert!(!Genes::new(false).all().iter().any(|gene| gene.key == "anchors"));
    }

    #[test]
    fn what_was_trained_is_what_the_table_says() {
        for value in [2.814_932_1, 0.000_123_456, 12.345_678, 0.1, 44.999_999] {
            let rounded = round(value);
            assert_eq!(percent_g(rounded, 5).parse::<f64>().unwrap(), rounded);
        }
        assert_eq!((round(0.000_123_456), round(12.345_678)), (0.00012, 12.346));
    }

    #[test]
    fn bounds_have_few_digits_so_that_rounding_keeps_them() {
        for gene in Genes::new(true).all() {
            assert_eq!((round(gene.low), round(gene.high)), (gene.low, gene.high), "{}", gene.key);
        }
    }

    #[test]
    fn anchors_that_are_not_searched_have_no_effect() {
        let of_file = HyperParameters { anchors: Some(4.0), ..HyperParameters::low() };
        assert!(
            Genes::new(false)
                .ignored_anchors(&of_file)
                .unwrap()
                .starts_with("anchors of the hyperparameters")
        );
        assert_eq!(Genes::new(false).ignored_anchors(&HyperParameters::low()), None);
        assert_eq!(Genes::new(true).ignored_anchors(&of_file), None);
        assert_eq!(Genes::new(true).of_hyp(&of_file).last(), Some(&4.0));
    }

    #[test]
    fn a_search_without_anchors_in_the_file_starts_with_three() {
        let values = Genes::new(true).of_hyp(&HyperParameters::low());
        assert_eq!(values.last(), Some(&3.0));
        let named = Genes::new(true).named(&values);
        assert_eq!((named["lr0"].as_f64(), named["anchors"].as_f64()), (Some(0.01), Some(3.0)));
    }
}
