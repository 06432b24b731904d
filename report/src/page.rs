//! The page: its head, its style, and its sections in the order in which a reader asks: how good, with which
//! settings, on which data, where it errs, what it cost, and how to do it again.

use crate::html::esc;
use crate::run_files::RunFiles;
use crate::sections::{confusion, curves, data, results, settings, speed, summary, worst};

/// The style of all pages.
const STYLE: &str = include_str!("style.css");

/// The report of a run as a complete HTML page.
pub fn page(run: &RunFiles) -> String {
    let mut body = summary::section(run);
    body.push_str(&settings::section(run));
    if let Some(report) = &run.report {
        body.push_str(&data::section(report));
    }
    body.push_str(&curves::section(run));
    if let Some(report) = &run.report {
        for validation in &report.validations {
            body.push_str(&results::section(validation, &report.names));
            body.push_str(&confusion::section(validation, &report.names));
            body.push_str(&worst::section(validation, &report.names));
        }
        body.push_str(&speed::section(report));
    }
    body.push_str(&summary::repeat(run));
    whole(&run.name(), &body)
}

/// A page with this title and these sections. Its contents are the headings of the sections.
pub(crate) fn whole(title: &str, body: &str) -> String {
    let mut contents = String::new();
    for part in body.split("<section id=\"").skip(1) {
        let id = part.split('"').next().unwrap_or_default();
        let heading =
            part.split("<h2>").nth(1).and_then(|rest| rest.split("</h2>").next()).unwrap_or_default();
        contents.push_str(&format!("<li><a href=\"#{id}\">{heading}</a></li>"));
    }
    let title = esc(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>{title}</h1><nav aria-label=\"Contents\"><ul>{contents}</ul></nav></header>\n\
         <main>\n{body}</main>\n</body>\n</html>\n"
    )
}
