// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables that sort when a column's head is clicked, or by a key.
//!
//! Called by page. page.js sorts; without it the table keeps its order.

use super::html::escaped;
use std::fmt::Write;

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its title; also what a screen reader announces.
    pub caption: String,
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// As many cells each as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// How a cell is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// As any other.
    #[default]
    Plain,
    /// A target met.
    Good,
    /// A target missed.
    Bad,
    /// Not sure either way.
    Unsure,
}

impl Tone {
    /// Class in page.css.
    pub fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Unsure => "unsure",
        }
    }
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// What is shown.
    pub text: String,
    /// What it is sorted by; cells without one are sorted by their text, after those with one.
    pub value: Option<f64>,
    /// How it is meant.
    pub tone: Tone,
}

impl Cell {
    /// A cell of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A cell that shows a number in some form.
    pub fn number(text: impl Into<String>, value: f64) -> Self {
        Self {
            text: text.into(),
            value: value.is_finite().then_some(value),
            tone: Tone::Plain,
        }
    }

    /// The same in another tone.
    #[must_use]
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }
}

impl Table {
    /// The HTML, in a frame that scrolls sideways by itself where the screen is narrow.
    pub fn html(&self) -> String {
        let caption = escaped(&self.caption);
        let mut text = format!(
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\"><table \
             class=\"sortable\"><caption>{caption}</caption><thead><tr>"
        );
        for (place, column) in self.columns.iter().enumerate() {
            let kind = if self.is_numeric(place) {
                " class=\"number\""
            } else {
                ""
            };
            let _ = write!(
                text,
                "<th scope=\"col\"{kind}><button type=\"button\">{}</button></th>",
                escaped(column)
            );
        }
        text.push_str("</tr></thead><tbody>");
        for row in &self.rows {
            text.push_str("<tr>");
            for (place, cell) in row.iter().enumerate() {
                text.push_str(&self.cell(place, cell));
            }
            text.push_str("</tr>");
        }
        text + "</tbody></table></div>\n"
    }

    fn cell(&self, place: usize, cell: &Cell) -> String {
        let mut classes = String::new();
        if self.is_numeric(place) {
            classes.push_str("number ");
        }
        classes.push_str(cell.tone.class());
        let class = match classes.trim() {
            "" => String::new(),
            classes => format!(" class=\"{classes}\""),
        };
        let value = cell
            .value
            .map_or(String::new(), |value| format!(" data-v=\"{value}\""));
        let (open, close) = if place == 0 {
            ("th scope=\"row\"", "th")
        } else {
            ("td", "td")
        };
        format!("<{open}{class}{value}>{}</{close}>", escaped(&cell.text))
    }

    fn is_numeric(&self, place: usize) -> bool {
        self.rows
            .iter()
            .any(|row| row.get(place).is_some_and(|cell| cell.value.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_carry_what_they_are_sorted_by_and_nothing_breaks_out() {
        let table = Table {
            caption: "A <caption>".into(),
            columns: vec!["who".into(), "us".into()],
            rows: vec![
                vec![
                    Cell::text("<script>alert(1)</script>"),
                    Cell::number("1,234", 1234.0).toned(Tone::Good),
                ],
                vec![Cell::text("b"), Cell::text("-")],
            ],
        };
        let text = table.html();
        assert!(
            text.contains("<td class=\"number good\" data-v=\"1234\">1,234</td>"),
            "{text}"
        );
        assert!(text.contains("<th scope=\"row\">&lt;script&gt;") && !text.contains("<script"));
        assert_eq!(
            (
                text.matches("<button").count(),
                text.matches("<tr>").count()
            ),
            (2, 3)
        );
    }
}
