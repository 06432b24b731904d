//! Pieces of HTML. Whatever comes from a user, such as names of classes and paths, goes through [`esc`].

use std::borrow::Cow;
use std::fmt::Display;

/// Text as HTML, between tags or in a quoted attribute. Control characters, which HTML forbids, become a
/// replacement character.
pub(crate) fn esc(text: impl Display) -> String {
    let mut escaped = String::new();
    for letter in text.to_string().chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(letter),
            _ if letter.is_control() => escaped.push('\u{fffd}'),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    /// Text, aligned to the left.
    Text(String),
    /// A number, aligned to the right.
    Number(String),
    /// HTML that was made here.
    Html(String),
}

impl Cell {
    pub(crate) fn text(text: impl Display) -> Self {
        Self::Text(text.to_string())
    }

    pub(crate) fn number(number: impl Display) -> Self {
        Self::Number(number.to_string())
    }
}

/// A table with these headings. The first cell of a row is its heading. Headings of columns of numbers, which begin
/// with `#`, are aligned like these. It scrolls by itself where the page is too narrow.
pub(crate) fn table(caption: &str, headings: &[&str], rows: &[Vec<Cell>]) -> String {
    let mut html = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table><caption>{0}</caption><thead><tr>",
        esc(caption)
    );
    for heading in headings {
        match heading.strip_prefix('#') {
            Some(heading) => html.push_str(&format!("<th scope=\"col\" class=\"n\">{}</th>", esc(heading))),
            None => html.push_str(&format!("<th scope=\"col\">{}</th>", esc(heading))),
        }
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            let (class, content): (&str, Cow<'_, str>) = match cell {
                Cell::Text(text) => ("", esc(text).into()),
                Cell::Number(text) => (" class=\"n\"", esc(text).into()),
                Cell::Html(html) => ("", html.as_str().into()),
            };
            match index {
                0 => html.push_str(&format!("<th scope=\"row\"{class}>{content}</th>")),
                _ => html.push_str(&format!("<td{class}>{content}</td>")),
            }
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>\n");
    html
}

/// Something that is shown when the reader opens it.
pub(crate) fn details(summary: &str, content: &str) -> String {
    format!("<details><summary>{}</summary>\n{content}</details>\n", esc(summary))
}

/// A bar as long as this part of its cell. The number stands beside it.
pub(crate) fn bar(part: f64, text: &str) -> String {
    let percent = (100.0 * part).clamp(0.0, 100.0);
    format!(
        "<span class=\"nb\"><span class=\"bar\" aria-hidden=\"true\"><i style=\"width:{percent:.1}%\"></i></span>{}</span>",
        esc(text)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        assert_eq!(
            esc("<script>\"a\" & 'b'</script>\u{0}"),
            "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/script&gt;\u{fffd}"
        );
    }
}
