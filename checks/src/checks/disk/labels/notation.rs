//! Lines of labels that have the right numbers in another notation: with commas between them, with the decimal commas of
//! a region, or with the name of a class in the place of its number.

use serde_json::Value;

use super::rewrite::{self, Line};
use crate::finding::Finding;

/// How a line that is no label is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notation {
    /// `0,0.5,0.5,0.1,0.1`, or with semicolons.
    Separated,
    /// `0 0,5 0,5 0,1 0,1`.
    DecimalCommas,
    /// `None 0.5 0.5 0.1 0.1`, of a converter that has no number for the class.
    NoClass,
    /// `cat 0.5 0.5 0.1 0.1`: the number and the name of a class of the data set.
    Named(usize, String),
    /// Anything else.
    Other,
}

/// The notation of a line that is no label.
pub(super) fn of(line: &str, names: &[String]) -> Notation {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_fraction = |word: &&str| word.parse().is_ok_and(|number: f64| (0.0..=1.0).contains(&number));
    let is_decimal = |word: &&str| {
        word.split_once(',').is_some_and(|(whole, rest)| {
            matches!(whole, "0" | "1") && !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    if let [class, numbers @ ..] = words.as_slice()
        && numbers.len() == 4
        && class.parse::<usize>().is_ok()
        && numbers.iter().all(|word| is_decimal(word) || is_fraction(word))
        && numbers.iter().any(is_decimal)
    {
        return Notation::DecimalCommas;
    }
    // Names may have spaces.
    if let Some(at) = words.len().checked_sub(4).filter(|at| *at > 0)
        && words[at..].iter().all(is_fraction)
    {
        let first = words[..at].join(" ").trim_matches('"').to_owned();
        if first == "None" || first == "null" || first == "nan" {
            return Notation::NoClass;
        }
        if let Some(class) = names.iter().position(|name| name.eq_ignore_ascii_case(&first)) {
            return Notation::Named(class, names[class].clone());
        }
    }
    let parts: Vec<&str> = line.split([',', ';', ' ', '\t']).filter(|part| !part.is_empty()).collect();
    let are_numbers = parts.iter().all(|part| part.parse::<f64>().is_ok());
    if line.matches([',', ';']).count() >= 4 && parts.len() == 5 && are_numbers {
        return Notation::Separated;
    }
    Notation::Other
}

/// The finding with what this notation needs; `label` is one of the files.
pub(super) fn explained(finding: Finding, label: &str, notation: &Notation) -> Finding {
    match notation {
        Notation::Separated => rewrite::all(
            finding.because("the numbers of a label are separated by spaces; these lines have commas or semicolons, as CSV files do"),
            label,
            "replace the commas and semicolons by spaces",
            "with-commas",
            Line::Sed("s/[,;]+/ /g"),
        ),
        Notation::DecimalCommas => rewrite::all(
            finding.because(
                "the numbers have decimal commas, but a label needs points: the program that wrote them follows the region of \
                 its system (in Windows intl.cpl, Additional settings, Decimal symbol)",
            ),
            label,
            "replace the decimal commas by points",
            "with-decimal-commas",
            Line::Sed("s/([0-9]),([0-9])/\\1.\\2/g"),
        ),
        Notation::NoClass => finding
            .because("the converter had no number for the class of these boxes")
            .remedy(
                "convert the annotations again: Ultralytics' convert_coco needs `cls91to80=False` for classes of your own, \
                 because the default maps them by COCO's table, which also shifts the other classes",
            ),
        Notation::Named(class, name) => finding
            .because("a label begins with the number of its class, not with its name")
            .remedy(format!(
                "write the number of the class instead of its name, in the order of `names`: {class} for {name}; most annotation \
                 programs do so when they export in YOLO format"
            )),
        Notation::Other => finding,
    }
}

/// The names of the classes in the order of their numbers; empty if the YAML file has no usable ones.
pub(super) fn names(value: Option<&Value>) -> Vec<String> {
    let all: Option<Vec<String>> = match value {
        Some(Value::Array(names)) => names.iter().map(|name| Some(name.as_str()?.to_owned())).collect(),
        Some(Value::Object(names)) => {
            (0..names.len()).map(|at| Some(names.get(&at.to_string())?.as_str()?.to_owned())).collect()
        }
        _ => None,
    };
    all.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn notations_are_told_apart() {
        let names = ["cat".to_owned(), "traffic light".to_owned()];
        for (line, notation) in [
            ("0,0.29,0.18,0.06,0.12", Notation::Separated),
            ("0; 0.29; 0.18; 0.06; 0.12", Notation::Separated),
            ("0 0,548982 0,5123 0,1 0,2", Notation::DecimalCommas),
            ("3 0,548982 0,5123 1 0,2", Notation::DecimalCommas),
            ("None 0.5 0.5 0.1 0.1", Notation::NoClass),
            ("Cat 0.5 0.5 0.1 0.1", Notation::Named(0, "cat".to_owned())),
            ("traffic light 0.5 0.5 0.1 0.1", Notation::Named(1, "traffic light".to_owned())),
            ("dog 0.5 0.5 0.1 0.1", Notation::Other),
            ("0 0.5 0.5 0.1", Notation::Other),
            ("0 100,200 300,400 1,2 3,4", Notation::Other),
        ] {
            assert_eq!(of(line, &names), notation, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "([0-9]|,|;|\\.| |None|cat|\\PC){0,20}") {
            let _ = of(&line, &["cat".to_owned()]);
        }
    }
}
