//! The images with the most mistakes: labels on the left, detections on the right. Boxes are drawn by the browser over
//! one picture, so that they are sharp at any size. Each has a number, and a list below the picture says what it is: names
//! would cover each other, and what shows only under the mouse is missing on a phone and on paper.

use yolo_base::format::count;
use yolo_plan::report::{DetectionBox, LabelBox, ValidationFacts, Verdict, WorstImage};

use super::tags::{Area, places};
use super::{id_of, name_of};
use crate::html::esc;

/// Letters on a picture, as a part of its longer side.
const LETTERS: f32 = 1.0 / 38.0;

/// The section about a validation.
pub(crate) fn section(validation: &ValidationFacts, names: &[String]) -> String {
    if validation.worst.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<p>The {} with the most mistakes: missed labels, detections where nothing is labeled, and wrong classes, at a \
         confidence above 0.25. Often it is the label that is wrong. Solid boxes are right, dashed ones \
         are mistakes. The numbers of the boxes are those of the lists below them; where boxes are too close, some have \
         no number.</p>\n<div class=\"pairs\">",
        count(validation.worst.len(), "image")
    );
    let id = id_of("worst", &validation.title);
    for (index, image) in validation.worst.iter().enumerate() {
        html.push_str(&pair(&format!("{id}-{index}"), index + 1, image, names));
    }
    html.push_str("</div>\n");
    super::section(&id, "Worst images", &html)
}

/// A box on a picture. Its number is its place in the list.
struct Tagged {
    corners: [f32; 4],
    /// In which list it is: `missed`.
    what: &'static str,
    is_mistake: bool,
    class: String,
    /// What is known besides: `0.91, labeled cat`.
    more: Option<String>,
}

/// The labels, those that are missed first, each class together.
fn labels(image: &WorstImage, names: &[String]) -> Vec<Tagged> {
    let mut sorted: Vec<&LabelBox> = image.labels.iter().collect();
    sorted.sort_by_key(|label| (label.found, label.class));
    let tagged = |label: &LabelBox| Tagged {
        corners: label.corners,
        what: if label.found { "found" } else { "missed" },
        is_mistake: !label.found,
        class: name_of(names, label.class),
        more: None,
    };
    sorted.into_iter().map(tagged).collect()
}

/// The detections, mistakes first, each class together, and in it the most confident first.
fn detections(image: &WorstImage, names: &[String]) -> Vec<Tagged> {
    let rank = |found: &DetectionBox| match found.verdict {
        Verdict::Unfounded => 0,
        Verdict::Confused => 1,
        Verdict::Correct => 2,
    };
    let mut sorted: Vec<&DetectionBox> = image.detections.iter().collect();
    sorted.sort_by(|a, b| {
        (rank(a), a.class).cmp(&(rank(b), b.class)).then_with(|| b.confidence.total_cmp(&a.confidence))
    });
    let tagged = |found: &DetectionBox| {
        let confidence = format!("{:.2}", found.confidence);
        let (what, more) = match found.verdict {
            Verdict::Unfounded => ("false", Some(confidence)),
            Verdict::Confused => {
                let labeled = below(found, &image.labels).map(|label| name_of(names, label.class));
                let labeled = labeled.map(|name| format!(", labeled {name}"));
                ("wrong class", Some(confidence + &labeled.unwrap_or_default()))
            }
            Verdict::Correct => ("right", None),
        };
        let class = name_of(names, found.class);
        Tagged { corners: found.corners, what, is_mistake: found.verdict != Verdict::Correct, class, more }
    };
    sorted.into_iter().map(tagged).collect()
}

/// The label of another class that a detection overlaps most.
fn below<'a>(found: &DetectionBox, labels: &'a [LabelBox]) -> Option<&'a LabelBox> {
    let area = |[left, top, right, bottom]: Area| (right - left).max(0.0) * (bottom - top).max(0.0);
    let iou = |label: &LabelBox| {
        let (a, b) = (found.corners, label.corners);
        let both = area([a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])]);
        both / (area(a) + area(b) - both).max(f32::MIN_POSITIVE)
    };
    let others = labels.iter().filter(|label| label.class != found.class);
    others.max_by(|a, b| iou(a).total_cmp(&iou(b)))
}

/// What the boxes are, in words: `missed: dog 1–2; found: cat 3`, as a list of HTML.
fn list(boxes: &[Tagged]) -> String {
    let mut html = String::new();
    let mut number = 1;
    for list in boxes.chunk_by(|a, b| a.what == b.what) {
        let mut classes = Vec::new();
        for class in list.chunk_by(|a, b| a.class == b.class) {
            let numbers = numbers(number, class);
            number += class.len();
            classes.push(format!("{} {}", esc(&class[0].class), esc(numbers)));
        }
        html.push_str(&format!("<li><b>{}:</b> {}</li>", list[0].what, classes.join("; ")));
    }
    if html.is_empty() { "<li>none</li>".to_owned() } else { html }
}

/// The numbers of the boxes of a class, with what is known of each.
fn numbers(first: usize, boxes: &[Tagged]) -> String {
    let last = first + boxes.len() - 1;
    match boxes.iter().all(|one| one.more.is_none()) {
        true if last == first => first.to_string(),
        true => format!("{first}–{last}"),
        false => {
            let each = boxes.iter().zip(first..).map(|(one, number)| match &one.more {
                Some(more) => format!("{number}\u{a0}({more})"),
                None => number.to_string(),
            });
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

/// What is wrong with an image, in words: `missed: 2 dog, 1 cat; wrong class: 1 dog`.
fn mistakes(boxes: &[&[Tagged]]) -> String {
    let mistakes = boxes.iter().flat_map(|boxes| boxes.iter()).filter(|one| one.is_mistake);
    let mistakes: Vec<&Tagged> = mistakes.collect();
    let lists = mistakes.chunk_by(|a, b| a.what == b.what).map(|list| {
        let classes = list.chunk_by(|a, b| a.class == b.class);
        let words: Vec<String> = classes.map(|class| format!("{} {}", class.len(), class[0].class)).collect();
        format!("{}: {}", list[0].what, words.join(", "))
    });
    lists.collect::<Vec<_>>().join("; ")
}

fn pair(id: &str, number: usize, image: &WorstImage, names: &[String]) -> String {
    let [width, height] = image.size;
    let file = image.path.rsplit(['/', '\\']).next().unwrap_or_default();
    let picture = format!("pic-{id}");
    let (labels, detections) = (labels(image, names), detections(image, names));
    let shown = |title: &str, what: &str, boxes: &[Tagged], under: &str| {
        format!(
            "<div><p>{title} ({})</p><svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">{under}{}</svg>\
             <ul>{}</ul></div>",
            boxes.len(),
            esc(format!("{file} with {}", count(boxes.len(), what))),
            drawn(image.size, boxes),
            list(boxes)
        )
    };
    let jpeg = format!(
        "<image id=\"{picture}\" width=\"{width}\" height=\"{height}\" href=\"data:image/jpeg;base64,{}\"/>",
        esc(&image.jpeg)
    );
    format!(
        "<figure class=\"pair\"><figcaption><b>{number}. {}</b> {}<br><small>{}</small></figcaption><div>{}{}</div></figure>\n",
        esc(file),
        esc(mistakes(&[&labels, &detections])),
        esc(&image.path),
        shown("Labels", "label", &labels, &jpeg),
        shown("Detections", "detection", &detections, &format!("<use href=\"#{picture}\"/>")),
    )
}

/// The boxes over the picture, and then their numbers over all boxes. Mistakes are drawn last.
fn drawn(size: [usize; 2], boxes: &[Tagged]) -> String {
    let [width, height] = size.map(|side| side as f32);
    let letters = width.max(height) * LETTERS;
    let areas: Vec<Area> = boxes
        .iter()
        .map(|one| {
            let [left, top, right, bottom] = one.corners;
            [left * width, top * height, right * width, bottom * height]
        })
        .collect();
    let mut svg = String::new();
    for (index, (one, [left, top, right, bottom])) in boxes.iter().zip(&areas).enumerate().rev() {
        let shape = format!(
            "x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"",
            (right - left).max(0.0),
            (bottom - top).max(0.0)
        );
        let more = one.more.as_ref().map_or_else(String::new, |more| format!(" ({more})"));
        svg.push_str(&format!(
            "<g class=\"{}\"><title>{}</title><rect class=\"under\" {shape}/><rect {shape}/></g>",
            if one.is_mistake { "wrong" } else { "right" },
            esc(format!("{}: {} {}{more}", one.what, one.class, index + 1))
        ));
    }
    svg.push_str(&format!("<g font-size=\"{letters:.1}\">"));
    for (index, place) in places(&areas, [width, height], letters).into_iter().enumerate() {
        if let Some([left, _, right, bottom]) = place {
            svg.push_str(&format!(
                "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                (left + right) / 2.0,
                bottom - 0.15 * letters,
                index + 1
            ));
        }
    }
    svg + "</g>"
}
