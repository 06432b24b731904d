//! The confusion matrix: the most frequent mistakes as sentences, and the whole matrix as a table with numbers, whose
//! headings stay in sight while it scrolls, so that 80 classes can be read.

use yolo_plan::report::ValidationFacts;

use super::{id_of, name_of};
use crate::html::{Cell, esc, table};

/// The most frequent mistakes that are listed.
const LISTED: usize = 15;

/// A share that is not 0, in percent.
fn percent(share: f64) -> String {
    if share <= 0.005 { "<1".to_owned() } else { format!("{:.0}", 100.0 * share) }
}

/// The section about a validation.
pub(crate) fn section(validation: &ValidationFacts, names: &[String]) -> String {
    let classes = names.len();
    let side = classes + 1;
    if validation.confusion.len() != side * side || validation.confusion.iter().all(|count| *count == 0) {
        return String::new();
    }
    let count = |predicted: usize, truth: usize| validation.confusion[predicted * side + truth];
    let total = |truth: usize| (0..side).map(|predicted| count(predicted, truth)).sum::<u64>();
    let name = |class: usize| if class == classes { "background".to_owned() } else { name_of(names, class) };

    let mut mistakes: Vec<(u64, usize, usize)> = (0..side)
        .flat_map(|predicted| (0..side).map(move |truth| (predicted, truth)))
        .filter(|(predicted, truth)| predicted != truth)
        .map(|(predicted, truth)| (count(predicted, truth), predicted, truth))
        .filter(|(count, ..)| *count > 0)
        .collect();
    mistakes.sort_by_key(|&(count, predicted, truth)| (std::cmp::Reverse(count), predicted, truth));
    let rows: Vec<Vec<Cell>> = mistakes
        .iter()
        .take(LISTED)
        .map(|&(count, predicted, truth)| {
            let what = match (predicted == classes, truth == classes) {
                (true, _) => format!("{} missed", name(truth)),
                (_, true) => format!("{} found where nothing is labeled", name(predicted)),
                _ => format!("{} taken for {}", name(truth), name(predicted)),
            };
            let share = percent(count as f64 / total(truth).max(1) as f64);
            let of = if truth == classes { "of the false detections" } else { "of its labels" };
            vec![Cell::text(what), Cell::number(count), Cell::text(format!("{share} % {of}"))]
        })
        .collect();
    let mut html = String::new();
    if rows.is_empty() {
        html.push_str("<p>There are no mistakes.</p>\n");
    } else {
        html.push_str(&table("Most frequent mistakes", &["Mistake", "#Times", "Share"], &rows));
    }
    html.push_str(
        "<p>Each column is a labeled class, each row what was detected there with a confidence above 0.25 and an IoU above \
         0.45. Numbers are percent of the column; empty cells are 0.</p>\n\
         <div class=\"scroll matrix\" tabindex=\"0\" role=\"region\" aria-label=\"Confusion matrix\">\
         <table><caption>Confusion matrix</caption><thead><tr><th scope=\"col\">detected ↓ labeled →</th>",
    );
    for truth in 0..side {
        html.push_str(&format!("<th scope=\"col\"><span>{}</span></th>", esc(name(truth))));
    }
    html.push_str("</tr></thead><tbody>");
    for predicted in 0..side {
        html.push_str(&format!("<tr><th scope=\"row\">{}</th>", esc(name(predicted))));
        for truth in 0..side {
            let times = count(predicted, truth);
            if times == 0 {
                html.push_str("<td></td>");
                continue;
            }
            let share = times as f64 / total(truth).max(1) as f64;
            let text = esc(percent(share));
            let shade = (share * 9.0).ceil().clamp(1.0, 9.0);
            let diagonal = if predicted == truth { " d" } else { "" };
            html.push_str(&format!("<td class=\"h{shade}{diagonal}\" title=\"{times}\">{text}</td>"));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>\n");
    super::section(&id_of("confusion", &validation.title), "Confusion matrix", &html)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mistake_among_many_labels_is_not_called_none() {
        assert_eq!([0.001, 0.005, 0.006, 0.126, 1.0].map(percent), ["<1", "<1", "1", "13", "100"]);
    }
}
