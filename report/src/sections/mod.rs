//! The sections of a report. Each is a function from facts to HTML, and empty if there are no facts for it.

pub(crate) mod confusion;
pub(crate) mod curves;
pub(crate) mod data;
pub(crate) mod results;
pub(crate) mod settings;
pub(crate) mod speed;
pub(crate) mod summary;
mod tags;
pub(crate) mod worst;

use crate::html::esc;

/// A section. The identifier is unique on the page.
pub(crate) fn section(id: &str, heading: &str, content: &str) -> String {
    format!("<section id=\"{}\">\n<h2>{}</h2>\n{content}</section>\n", esc(id), esc(heading))
}

/// The name of a class.
pub(crate) fn name_of(names: &[String], class: usize) -> String {
    names.get(class).cloned().unwrap_or_else(|| format!("class {class}"))
}

/// An identifier made of a title, so that several validations do not share one.
pub(crate) fn id_of(kind: &str, title: &str) -> String {
    let letters = title.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' });
    format!("{kind}-{}", letters.collect::<String>())
}
