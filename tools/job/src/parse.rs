// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads a file's text as a tree of values with their places. JSON is read as YAML, since all JSON
//! is YAML (YAML 1.2.2, 1.3).
//!
//! Called by `file.rs`, `import.rs` and `write.rs`. Everything that makes YAML dangerous or
//! surprising is refused: aliases (with them a short file can expand to a huge one), tags, merge
//! keys, duplicate names, and more than one document. The tree is never deeper than [`DEPTH_MOST`].

use std::borrow::Cow;
use std::fmt::Write;

use granit_parser::{Event, Parser, ScalarStyle, Span};

use crate::fault::Fault;
use crate::node::{Entry, Node, Place, Scalar, Value, shortened};

/// The longest file that is read: a job file has some hundred bytes. Chosen.
pub const BYTES_MOST: usize = 1 << 20;

/// How deep lists and maps may lie in each other: AWS Batch needs 8. Chosen.
pub const DEPTH_MOST: usize = 32;

/// The most names of a map: each is compared with those before it. Chosen.
const NAMES_MOST: usize = 4096;

/// Reads a text.
///
/// # Errors
/// What is not YAML or JSON, or is of the YAML that is refused; too long, too deep, empty.
pub fn parse(text: &str) -> Result<Node, Fault> {
    if text.len() > BYTES_MOST {
        let long = text.len();
        return Err(Fault::new(format!(
            "the file has {long} bytes; a job file has at most {BYTES_MOST}"
        )));
    }
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: DEPTH_MOST,
        block_nesting_limit: DEPTH_MOST,
    };
    let mut tree = Tree::default();
    let text = escaped(text);
    for event in Parser::new_from_str_with_options(&text, options) {
        let (event, span) = event.map_err(|error| {
            let place = place_of(error.marker().line(), error.marker().col());
            let what = shortened(&error.info());
            Fault::new(format!("this is neither YAML nor JSON: {what}")).at(place)
        })?;
        tree.take(event, span)?;
    }
    tree.root.ok_or_else(|| {
        Fault::new("the file is empty; a job file begins with `version: 1` and names a `program`")
    })
}

/// JSON with escapes in the place of those characters that JSON's texts may hold as they are and
/// YAML's may not (YAML 1.2.2, 5.1), or that YAML takes for the end of a line. JSON has them
/// nowhere else.
fn escaped(text: &str) -> Cow<'_, str> {
    let is_odd = |one: char| {
        let is_space = matches!(one, '\t' | '\n' | '\r');
        let is_break = matches!(one, '\u{2028}' | '\u{2029}');
        let is_no_text = matches!(one, '\u{feff}' | '\u{fffe}' | '\u{ffff}');
        (one.is_control() && !is_space) || is_break || is_no_text
    };
    if !text.trim_start().starts_with('{') || !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut whole = String::with_capacity(text.len());
    for one in text.chars() {
        if is_odd(one) {
            let _ = write!(whole, "\\u{:04x}", u32::from(one));
        } else {
            whole.push(one);
        }
    }
    Cow::Owned(whole)
}

fn place_of(line: usize, column: usize) -> Place {
    Place {
        line: line.max(1),
        column: column + 1,
    }
}

/// A list or map that has begun and not ended.
enum Open {
    List(Place, Vec<Node>),
    Map(Place, Vec<Entry>, Option<(String, Place)>),
}

#[derive(Default)]
struct Tree {
    open: Vec<Open>,
    root: Option<Node>,
    documents: u32,
}

impl Tree {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Fault> {
        let place = place_of(span.start.line(), span.start.col());
        let refuse = |text: &str| Err(Fault::new(text).at(place));
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return refuse(
                        "a second document begins; a job file holds one, so remove the `---`",
                    );
                }
            }
            Event::Alias(_) => {
                return refuse("aliases (`*name`) are not taken; write the value out");
            }
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, _, Some(_))
            | Event::MappingStart(_, _, Some(_)) => {
                return refuse("tags (`!name`) are not taken; write the value without one");
            }
            Event::Scalar(text, style, ..) => {
                if text.contains('\0') {
                    return refuse("the text holds the character NUL, which no process can get");
                }
                let value = Value::Scalar(Scalar {
                    is_plain: style == ScalarStyle::Plain,
                    text: text.into_owned(),
                });
                return self.add(Node { place, value });
            }
            Event::SequenceStart(..) => self.begin(Open::List(place, Vec::new()))?,
            Event::MappingStart(..) => self.begin(Open::Map(place, Vec::new(), None))?,
            Event::SequenceEnd | Event::MappingEnd => return self.end(),
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, open: Open) -> Result<(), Fault> {
        if self.open.len() < DEPTH_MOST {
            self.open.push(open);
            return Ok(());
        }
        let (Open::List(place, _) | Open::Map(place, ..)) = open;
        let text =
            format!("lists and maps lie more than {DEPTH_MOST} deep here; a job file needs 3");
        Err(Fault::new(text).at(place))
    }

    fn end(&mut self) -> Result<(), Fault> {
        let (place, value) = match self.open.pop() {
            Some(Open::List(place, nodes)) => (place, Value::List(nodes)),
            Some(Open::Map(place, entries, _)) => (place, Value::Map(entries)),
            None => return Ok(()),
        };
        self.add(Node { place, value })
    }

    /// Adds a value to the innermost list or map; in a map it is a name or what is named.
    fn add(&mut self, node: Node) -> Result<(), Fault> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List(_, nodes)) => nodes.push(node),
            Some(Open::Map(_, entries, pending @ None)) => {
                let name = name_of(node.value).map_err(|fault| fault.at(node.place))?;
                if let Some(first) = entries.iter().find(|entry| entry.name == name) {
                    let (name, line) = (shortened(&name), first.place.line);
                    let text = format!("`{name}` is given twice, first in line {line}; remove one");
                    return Err(Fault::new(text).at(node.place));
                }
                if entries.len() == NAMES_MOST {
                    let text = format!("more than {NAMES_MOST} names are in one map");
                    return Err(Fault::new(text).at(node.place));
                }
                *pending = Some((name, node.place));
            }
            Some(Open::Map(_, entries, pending)) => {
                entries.extend(
                    pending
                        .take()
                        .map(|(name, place)| Entry { name, place, node }),
                );
            }
        }
        Ok(())
    }
}

fn name_of(value: Value) -> Result<String, Fault> {
    match value {
        Value::Scalar(scalar) if scalar.is_plain && scalar.text == "<<" => Err(Fault::new(
            "merge keys (`<<`) are not taken; write the fields out",
        )),
        Value::Scalar(scalar) if !scalar.is_null() => Ok(scalar.text),
        _ => Err(Fault::new("a field's name must be a text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_and_json_of_the_same_give_the_same_values() {
        let yaml = "a: 1 # one\nb: [x, 'y']\nc:\n  d: \"\\u00e9\"\n";
        let json = "{\"a\":1,\t\"b\":[\"x\",\"y\"],\n\t\"c\":{\"d\":\"\\u00e9\"}}";
        let texts = |node: &Node| {
            let list = node.get("b").unwrap();
            let Value::List(list) = &list.value else {
                panic!("{list:?}")
            };
            let mut words: Vec<String> = list.iter().map(Node::in_words).collect();
            words.push(node.get("a").unwrap().in_words());
            words.push(node.get("c").unwrap().get("d").unwrap().in_words());
            words
        };
        let (yaml, json) = (parse(yaml).unwrap(), parse(json).unwrap());
        assert_eq!(texts(&yaml), ["`x`", "`y`", "`1`", "`é`"]);
        assert_eq!(texts(&yaml), texts(&json));
        let place = Place { line: 4, column: 6 };
        assert_eq!(yaml.get("c").unwrap().get("d").unwrap().place, place);
    }

    #[test]
    fn what_yaml_has_and_a_job_file_has_not_is_refused_with_its_line() {
        for (text, line, words) in [
            ("a: &x 1\nb: *x\n", 2, "aliases"),
            ("a: !!int 1\n", 1, "tags"),
            ("a: 1\n<<: {b: 2}\n", 2, "merge keys"),
            ("a: 1\nb: 2\na: 3\n", 3, "first in line 1"),
            ("a: 1\n---\nb: 2\n", 2, "second document"),
            ("[1, 2]: 3\n", 1, "must be a text"),
            ("a: 1\nb: \"x\\0y\"\n", 2, "NUL"),
            ("a: [1,\n", 1, "neither YAML nor JSON"),
            ("a: 'x\n", 2, "neither YAML nor JSON"),
        ] {
            let said = parse(text).unwrap_err().to_string();
            let place = format!("line {line}");
            assert!(
                said.contains(words) && said.contains(&place),
                "{text:?}: {said}"
            );
            assert!(!said.contains('\n'), "{said}");
        }
        for text in ["", "# nothing\n", "\n\n"] {
            assert!(
                parse(text).unwrap_err().to_string().contains("empty"),
                "{text:?}"
            );
        }
    }

    #[test]
    fn what_is_too_long_or_too_deep_is_refused() {
        let deep = |count: usize| "[".repeat(count) + &"]".repeat(count);
        assert!(parse(&deep(DEPTH_MOST)).is_ok());
        assert!(parse(&deep(DEPTH_MOST + 1)).is_err());
        assert!(parse(&deep(100_000)).is_err());
        let block: String = (0..100).map(|depth| " ".repeat(depth) + "a:\n").collect();
        assert!(parse(&block).is_err());
        let long = " ".repeat(BYTES_MOST + 1);
        assert!(
            parse(&long)
                .unwrap_err()
                .to_string()
                .contains("1048577 bytes")
        );
    }
}
