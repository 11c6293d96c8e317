// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The page: sections of figures, tables and facts in one HTML file. It loads nothing from outside,
//! so it can be mailed.
//!
//! Called by compare. Script and style are embedded. The page's own content security policy allows
//! these two by their digests, and nothing else. So text from outside could not run even if it got
//! into the page unescaped.

use super::axis::{self, figure as figures};
use super::draw::{self, Form};
use super::figure::{Figure, Point, Role, Series, Shape};
use super::html::escaped;
use super::table::{Cell, Table, Tone};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;

const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = concat!(include_str!("figure.css"), include_str!("page.css"));

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Its title.
    pub title: String,
    /// A sentence below the title.
    pub lead: String,
    /// Its parts, each with a place in the list of contents.
    pub sections: Vec<Section>,
}

/// A part of a page.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Unique on its page: letters, digits and `-`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What is in it.
    pub blocks: Vec<Block>,
}

/// What a section is made of.
#[derive(Clone, Debug)]
pub enum Block {
    /// Text.
    Paragraph(String),
    /// A few figures that say it all.
    Tiles(Vec<Tile>),
    /// Figures beside each other where there is room.
    Figures(Vec<Figure>),
    /// A table.
    Table(Table),
    /// Names and values.
    Facts(Vec<(String, String)>),
    /// Lines in a fixed-width font, as command lines.
    Lines(Vec<String>),
    /// Blocks behind a headline that opens by a click.
    Folded(String, Vec<Block>),
}

/// One figure in large type.
#[derive(Clone, Debug, Default)]
pub struct Tile {
    /// What it is.
    pub name: String,
    /// The figure.
    pub value: String,
    /// Its spread, its target.
    pub note: String,
    /// Whether it is good.
    pub tone: Tone,
}

impl Page {
    /// The whole file.
    pub fn html(&self) -> String {
        let title = escaped(&self.title);
        let mut text = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src \
             '{}'; style-src '{}'; img-src data: blob:; \
             base-uri 'none'; form-action 'none'\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta \
             name=\"color-scheme\" content=\"light dark\">\
             <title>{title}</title><style>{STYLE}</style></head>\n<body>\n<a class=\"skip\" \
             href=\"#content\">Skip to the content</a>\n\
             <header><h1>{title}</h1><p>{}</p><button type=\"button\" id=\"theme\" hidden>Theme: \
             system</button></header>\n",
            digest(SCRIPT),
            digest(STYLE),
            escaped(&self.lead)
        );
        text.push_str("<nav aria-label=\"Contents\"><ul>");
        for section in &self.sections {
            let _ = write!(
                text,
                "<li><a href=\"#{}\">{}</a></li>",
                section.id,
                escaped(&section.title)
            );
        }
        text.push_str("</ul></nav>\n<main id=\"content\">\n");
        for section in &self.sections {
            let _ = writeln!(
                text,
                "<section id=\"{0}\" aria-labelledby=\"{0}-title\"><h2 id=\"{0}-title\">{1}</h2>",
                section.id,
                escaped(&section.title)
            );
            blocks(&mut text, &section.blocks);
            text.push_str("</section>\n");
        }
        let _ = write!(text, "</main>\n<script>{SCRIPT}</script>\n</body></html>\n");
        text
    }
}

/// What a content security policy names a script or a style by. Source: W3C, Content Security
/// Policy Level 3, 6.7.2.
fn digest(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

fn blocks(text: &mut String, blocks: &[Block]) {
    for block in blocks {
        self::block(text, block);
    }
}

fn block(text: &mut String, block: &Block) {
    match block {
        Block::Paragraph(words) => {
            let _ = writeln!(text, "<p>{}</p>", escaped(words));
        }
        Block::Tiles(list) => tiles(text, list),
        Block::Figures(list) => {
            text.push_str("<div class=\"figures\">\n");
            for figure in list {
                text.push_str(&figure_html(figure));
            }
            text.push_str("</div>\n");
        }
        Block::Table(table) => text.push_str(&table.html()),
        Block::Facts(list) => {
            text.push_str("<dl>");
            for (name, value) in list {
                let _ = write!(
                    text,
                    "<dt>{}</dt><dd>{}</dd>",
                    escaped(name),
                    escaped(value)
                );
            }
            text.push_str("</dl>\n");
        }
        Block::Lines(lines) => {
            let _ = writeln!(
                text,
                "<pre tabindex=\"0\">{}</pre>",
                escaped(&lines.join("\n"))
            );
        }
        Block::Folded(title, inner) => {
            let _ = write!(text, "<details><summary>{}</summary>", escaped(title));
            blocks(text, inner);
            text.push_str("</details>\n");
        }
    }
}

fn tiles(text: &mut String, list: &[Tile]) {
    text.push_str("<ul class=\"tiles\">");
    for tile in list {
        let _ = write!(
            text,
            "<li class=\"{}\"><span>{}</span><strong>{}</strong><small>{}</small></li>",
            tile.tone.class(),
            escaped(&tile.name),
            escaped(&tile.value),
            escaped(&tile.note)
        );
    }
    text.push_str("</ul>\n");
}

fn figure_html(figure: &Figure) -> String {
    let id = &figure.id;
    let mut text = format!(
        "<figure id=\"{id}\"><figcaption><h3>{}</h3>",
        escaped(&figure.title)
    );
    if !figure.note.is_empty() {
        let _ = write!(text, "<p>{}</p>", escaped(&figure.note));
    }
    text.push_str("</figcaption>");
    text.push_str(&draw::svg(figure, Form::Wide));
    text.push_str(&draw::svg(figure, Form::Narrow));
    let title = escaped(&figure.title);
    let _ = write!(
        text,
        "<p class=\"tools\" hidden><button type=\"button\" data-save=\"svg\" aria-label=\"Save \
         {title} as SVG\">SVG</button>\
         <button type=\"button\" data-save=\"png\" aria-label=\"Save {title} as \
         PNG\">PNG</button></p>"
    );
    let _ = write!(
        text,
        "<details><summary>Figures as a table</summary>{}</details>",
        figures_table(figure).html()
    );
    if !figure.commands.is_empty() {
        let _ = write!(
            text,
            "<details><summary>Measure it again</summary><pre tabindex=\"0\">{}</pre></details>",
            escaped(&figure.commands.join("\n"))
        );
    }
    if !figure.source.is_empty() {
        let _ = write!(text, "<p class=\"source\">{}</p>", escaped(&figure.source));
    }
    text + "</figure>\n"
}

/// All points of a figure as a table: for those who cannot see it, and for those who want the
/// numbers.
pub fn figures_table(figure: &Figure) -> Table {
    let ratio = figure.ratio.iter().flat_map(|ratio| &ratio.series);
    let series: Vec<&Series> = figure
        .series
        .iter()
        .chain(ratio)
        .filter(|series| series.role != Role::Faint)
        .collect();
    let caption = format!("{}: figures", figure.title);
    match figure.shape {
        Shape::Bars => Table {
            caption,
            columns: vec![String::new(), figure.x.text()],
            rows: series
                .iter()
                .filter_map(|series| {
                    Some(vec![
                        Cell::text(&series.name),
                        spread(series.points.first()?),
                    ])
                })
                .collect(),
        },
        Shape::Curves => Table {
            caption,
            columns: std::iter::once(figure.x.text())
                .chain(series_names(figure))
                .collect(),
            rows: rows(&series, figure.x.scale),
        },
    }
}

/// A row for each place on the horizontal axis, a cell for each series.
fn rows(series: &[&Series], scale: axis::Scale) -> Vec<Vec<Cell>> {
    // Keyed by the bits: sizes and counts are exact, and not negative, so their order is that of
    // the numbers.
    let mut by_place: BTreeMap<u64, Vec<Cell>> = BTreeMap::new();
    for (column, one) in series.iter().enumerate() {
        for point in one.points.iter().filter(|point| point.is_sound()) {
            let row = by_place.entry((point.x + 0.0).to_bits());
            row.or_insert_with(|| vec![Cell::text("-"); series.len()])[column] = spread(point);
        }
    }
    let row = |(bits, cells): (u64, Vec<Cell>)| {
        let x = f64::from_bits(bits);
        let place = match scale {
            axis::Scale::Bytes => (x as u64).to_string(),
            _ => axis::number(x),
        };
        std::iter::once(Cell::number(place, x))
            .chain(cells)
            .collect()
    };
    by_place.into_iter().map(row).collect()
}

fn spread(point: &Point) -> Cell {
    let text = if point.low == point.high {
        figures(point.y)
    } else {
        format!(
            "{} ({}\u{2013}{})",
            figures(point.y),
            figures(point.low),
            figures(point.high)
        )
    };
    Cell::number(text, point.y)
}

/// Heads of the columns: the curves, then the ratios.
fn series_names(figure: &Figure) -> Vec<String> {
    let curves = figure
        .series
        .iter()
        .filter(|series| series.role != Role::Faint)
        .map(|series| format!("{} ({})", series.name, figure.y.unit));
    let ratios = figure.ratio.iter().flat_map(|ratio| {
        ratio
            .series
            .iter()
            .filter(|series| series.role != Role::Faint)
            .map(|series| series.name.clone())
    });
    curves.chain(ratios).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Scale;
    use crate::figure::Axis;

    const NASTY: &str = "</script><img src=x onerror=alert(1)>\"'&";

    fn figure() -> Figure {
        Figure {
            id: "one".into(),
            title: NASTY.into(),
            note: NASTY.into(),
            x: Axis::new(NASTY, NASTY, Scale::Bytes),
            y: Axis::new(NASTY, NASTY, Scale::Logarithmic),
            series: vec![
                Series {
                    name: NASTY.into(),
                    role: Role::Ours,
                    points: vec![Point::plain(0.0, 1.0), Point::plain(8.0, 2.0)],
                },
                Series {
                    name: "peer".into(),
                    role: Role::Peer,
                    points: vec![Point::plain(8.0, 4.0)],
                },
            ],
            source: NASTY.into(),
            commands: vec![NASTY.into()],
            ..Figure::default()
        }
    }

    #[test]
    fn text_from_outside_cannot_become_mark_up_anywhere() {
        let page = Page {
            title: NASTY.into(),
            lead: NASTY.into(),
            sections: vec![Section {
                id: "all".into(),
                title: NASTY.into(),
                blocks: vec![
                    Block::Paragraph(NASTY.into()),
                    Block::Tiles(vec![Tile {
                        name: NASTY.into(),
                        value: NASTY.into(),
                        note: NASTY.into(),
                        tone: Tone::Bad,
                    }]),
                    Block::Figures(vec![figure()]),
                    Block::Facts(vec![(NASTY.into(), NASTY.into())]),
                    Block::Folded(NASTY.into(), vec![Block::Lines(vec![NASTY.into()])]),
                ],
            }],
        };
        let text = page.html();
        assert!(!text.contains("<img") && text.matches("</script>").count() == 1);
        let without_script = text.replace(SCRIPT, "");
        for outside in ["http:", "https:", "src=\"", "style=\"", "url("] {
            assert!(!without_script.contains(outside), "{outside}");
        }
    }

    #[test]
    fn policy_names_script_and_style_by_their_digests() {
        // printf abc | sha256sum
        assert_eq!(
            digest("abc"),
            "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="
        );
        let text = Page::default().html();
        assert!(text.contains(&digest(SCRIPT)) && text.contains(&digest(STYLE)));
        assert!(
            !SCRIPT.contains("</") && !STYLE.contains("</"),
            "would end its element early"
        );
    }

    #[test]
    fn table_below_a_figure_holds_every_point() {
        let table = figures_table(&figure());
        assert_eq!(table.columns.len(), 3);
        assert_eq!(table.rows.len(), 2);
        let texts: Vec<&str> = table
            .rows
            .iter()
            .flatten()
            .map(|cell| cell.text.as_str())
            .collect();
        assert_eq!(texts, ["0", "1.00", "-", "8", "2.00", "4.00"]);
    }
}
