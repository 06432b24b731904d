//! The images with the most mistakes: labels on the left, detections on the right. Boxes are drawn by the browser over
//! one picture, so that they are sharp at any size. Wrong ones have other lines and a name.

use yolo_base::format::count;
use yolo_plan::report::{ValidationFacts, Verdict, WorstImage};

use super::{id_of, name_of};
use crate::html::esc;

/// With more mistakes than this on a picture, their names would cover it, and show only under the mouse.
const NAMED: usize = 8;

/// The section about a validation.
pub(crate) fn section(validation: &ValidationFacts, names: &[String]) -> String {
    if validation.worst.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<p>The {} with the most mistakes: missed labels, detections where nothing is labeled, and wrong classes, at a \
         confidence above 0.25. Often it is the label that is wrong. Solid boxes are right, dashed ones \
         are mistakes.</p>\n<div class=\"pairs\">",
        count(validation.worst.len(), "image")
    );
    let id = id_of("worst", &validation.title);
    for (index, image) in validation.worst.iter().enumerate() {
        html.push_str(&pair(&format!("{id}-{index}"), index + 1, image, names));
    }
    html.push_str("</div>\n");
    super::section(&id, "Worst images", &html)
}

/// What is wrong with an image, in words: `missed: 2 dog, 1 cat; wrong class: 1 dog`.
fn mistakes(image: &WorstImage, names: &[String]) -> String {
    let missed = image.labels.iter().filter(|label| !label.found).map(|label| label.class);
    let of = |wanted: Verdict| {
        image.detections.iter().filter(move |found| found.verdict == wanted).map(|found| found.class)
    };
    let parts = [
        ("missed", by_class(missed, names)),
        ("false", by_class(of(Verdict::Unfounded), names)),
        ("wrong class", by_class(of(Verdict::Confused), names)),
    ];
    let parts = parts.iter().filter(|(_, classes)| !classes.is_empty());
    parts.map(|(what, classes)| format!("{what}: {classes}")).collect::<Vec<_>>().join("; ")
}

/// How often each class occurs, in words.
fn by_class(classes: impl Iterator<Item = usize>, names: &[String]) -> String {
    let mut counts = std::collections::BTreeMap::new();
    classes.for_each(|class| *counts.entry(class).or_insert(0_usize) += 1);
    let words: Vec<String> =
        counts.into_iter().map(|(class, number)| format!("{number} {}", name_of(names, class))).collect();
    words.join(", ")
}

fn pair(id: &str, number: usize, image: &WorstImage, names: &[String]) -> String {
    let [width, height] = image.size;
    let file = image.path.rsplit(['/', '\\']).next().unwrap_or_default();
    let mistakes = mistakes(image, names);
    let picture = format!("pic-{id}");
    let named = |wrong: usize| wrong <= NAMED;
    let missed_are_named = named(image.missed);
    let labels: String = image
        .labels
        .iter()
        .map(|label| {
            let name = name_of(names, label.class);
            let class = if label.found { "right" } else { "wrong" };
            boxed(image, label.corners, class, &name, !label.found && missed_are_named)
        })
        .collect();
    let wrong_are_named = named(image.unfounded + image.confused);
    let detections: String = image
        .detections
        .iter()
        .map(|found| {
            let name = format!("{} {:.2}", name_of(names, found.class), found.confidence);
            let wrong = found.verdict != Verdict::Correct;
            boxed(
                image,
                found.corners,
                if wrong { "wrong" } else { "right" },
                &name,
                wrong && wrong_are_named,
            )
        })
        .collect();
    let alt = |what: &str, number: usize| esc(format!("{file} with {}", count(number, what)));
    format!(
        "<figure class=\"pair\"><figcaption><b>{number}. {}</b> {}<br><small>{}</small></figcaption><div>\
         <div><p>Labels ({})</p><svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\
         <image id=\"{picture}\" width=\"{width}\" height=\"{height}\" href=\"data:image/jpeg;base64,{}\"/>{labels}</svg></div>\
         <div><p>Detections ({})</p><svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\
         <use href=\"#{picture}\"/>{detections}</svg></div></div></figure>\n",
        esc(file),
        esc(mistakes),
        esc(&image.path),
        image.labels.len(),
        alt("label", image.labels.len()),
        esc(&image.jpeg),
        image.detections.len(),
        alt("detection", image.detections.len()),
    )
}

/// A box over the picture. Its name shows under the mouse, and stands at the box if it is `named`.
fn boxed(image: &WorstImage, corners: [f32; 4], class: &str, name: &str, named: bool) -> String {
    let [width, height] = image.size.map(|side| side as f32);
    let [left, top, right, bottom] =
        [corners[0] * width, corners[1] * height, corners[2] * width, corners[3] * height];
    let shape = format!(
        "x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"",
        (right - left).max(0.0),
        (bottom - top).max(0.0)
    );
    let mut svg = format!(
        "<g class=\"{class}\"><title>{}</title><rect class=\"under\" {shape}/><rect {shape}/>",
        esc(name)
    );
    if named {
        // Above the box, or below its upper side where there is no room; and within the picture.
        let size = width / 26.0;
        let x = left.min(width - name.chars().count() as f32 * size * 0.6).max(1.0);
        let y = if top >= 1.3 * size { top - 0.3 * size } else { top + 1.2 * size };
        svg.push_str(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size:.1}\">{}</text>",
            esc(name)
        ));
    }
    svg + "</g>"
}
