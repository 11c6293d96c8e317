// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A map of another system's file. Its fields are taken one by one; those that were not taken are
//! listed.

use std::cell::RefCell;

use crate::fault::Fault;
use crate::imported::Note;
use crate::nearest::nearest;
use crate::node::{Entry, Node, Place, Value, shortened};
use crate::whole::Whole;

/// The fields of such a map: those that are read, and those that are known and have no meaning in a
/// job file, each with the reason.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub read: &'static [&'static str],
    pub left_out: &'static [(&'static str, &'static str)],
}

/// What was left out so far.
#[derive(Debug, Default)]
pub(crate) struct Notes(RefCell<Vec<Note>>);

impl Notes {
    pub(crate) fn add(&self, place: Place, field: &str, text: impl Into<String>) {
        self.0.borrow_mut().push(Note {
            place,
            field: field.to_owned(),
            text: text.into(),
        });
    }

    /// In the order of the file.
    pub(crate) fn in_order(self) -> Vec<Note> {
        let mut notes = self.0.into_inner();
        notes.sort_by_key(|note| (note.place.line, note.place.column));
        notes
    }
}

/// A map and the way to it.
#[derive(Debug, Clone)]
pub(crate) struct Object<'a> {
    pub node: &'a Node,
    /// As `nodeProperties.nodeRangeProperties[0]`; empty for the whole file.
    pub path: String,
    entries: &'a [Entry],
    pub notes: &'a Notes,
}

impl<'a> Object<'a> {
    /// Lists the fields that have no meaning here.
    ///
    /// # Errors
    /// What is no map; a field whose name is a slip of a known one.
    pub(crate) fn open(
        node: &'a Node,
        path: &str,
        known: Known,
        notes: &'a Notes,
    ) -> Result<Self, Fault> {
        let entries = node
            .entries()
            .ok_or_else(|| wrong(node, path, "a map of fields"))?;
        let object = Self {
            node,
            path: path.to_owned(),
            entries,
            notes,
        };
        for entry in entries.iter().filter(|entry| !is_null(&entry.node)) {
            object.judge(entry, known)?;
        }
        Ok(object)
    }

    fn judge(&self, entry: &Entry, known: Known) -> Result<(), Fault> {
        let name = entry.name.as_str();
        if known.read.contains(&name) {
            return Ok(());
        }
        let field = self.field(&shortened(name));
        let left_out = known.left_out.iter().find(|(known, _)| *known == name);
        if let Some((_, reason)) = left_out {
            self.notes.add(entry.place, &field, *reason);
            return Ok(());
        }
        let names = known.left_out.iter().map(|(name, _)| *name);
        if let Some(meant) = nearest(name, known.read.iter().copied().chain(names)) {
            let text = format!("this field is not known; did you mean `{meant}`?");
            return Err(Fault::new(text).at(entry.place).within(&field));
        }
        let text = "this field is not known, and was left out";
        self.notes.add(entry.place, &field, text);
        Ok(())
    }

    /// The way to a field of this map.
    pub(crate) fn field(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// The value of a field, if there is one: null is none.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Node> {
        let entry = self.entries.iter().find(|entry| entry.name == name);
        entry.map(|entry| &entry.node).filter(|node| !is_null(node))
    }

    /// A field that is a map.
    pub(crate) fn object(&self, name: &str, known: Known) -> Result<Option<Self>, Fault> {
        let open = |node| Self::open(node, &self.field(name), known, self.notes);
        self.get(name).map(open).transpose()
    }

    /// A field that is a list of maps; none is an empty list.
    pub(crate) fn objects(&self, name: &str, known: Known) -> Result<Vec<Self>, Fault> {
        let nodes = self.list(name)?.iter().enumerate();
        let open = |(index, node)| {
            let path = format!("{}[{index}]", self.field(name));
            Self::open(node, &path, known, self.notes)
        };
        nodes.map(open).collect()
    }

    /// A field that is a list; none is an empty one.
    pub(crate) fn list(&self, name: &str) -> Result<&'a [Node], Fault> {
        match self.get(name) {
            None => Ok(&[]),
            Some(node) => match &node.value {
                Value::List(nodes) => Ok(nodes),
                _ => Err(wrong(node, &self.field(name), "a list")),
            },
        }
    }

    /// A field that is a text or a number, as it is written.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, Fault> {
        let text = |node| text_of(node, &self.field(name));
        self.get(name).map(text).transpose()
    }

    /// A field that is a whole number within bounds, which are those of what it becomes.
    pub(crate) fn whole<const LEAST: u32, const MOST: u32>(
        &self,
        name: &str,
    ) -> Result<Option<Whole<LEAST, MOST>>, Fault> {
        let Some(node) = self.get(name) else {
            return Ok(None);
        };
        let field = self.field(name);
        match text_of(node, &field)?.parse().ok().and_then(Whole::new) {
            Some(number) => Ok(Some(number)),
            None => {
                let wanted = format!("a whole number from {LEAST} to {MOST}");
                Err(wrong(node, &field, &wanted))
            }
        }
    }

    /// A field that is true or false; none is false.
    pub(crate) fn truth(&self, name: &str) -> Result<bool, Fault> {
        match self.get(name).map(|node| (node, &node.value)) {
            None => Ok(false),
            Some((node, Value::Scalar(scalar))) => scalar
                .truth()
                .ok_or_else(|| wrong(node, &self.field(name), "true or false")),
            Some((node, _)) => Err(wrong(node, &self.field(name), "true or false")),
        }
    }

    /// This map is wrong.
    pub(crate) fn fault(&self, text: impl Into<String>) -> Fault {
        Fault::new(text).at(self.node.place).within(&self.path)
    }
}

fn is_null(node: &Node) -> bool {
    matches!(&node.value, Value::Scalar(scalar) if scalar.is_null())
}

/// The text of a scalar.
pub(crate) fn text_of<'a>(node: &'a Node, field: &str) -> Result<&'a str, Fault> {
    match &node.value {
        Value::Scalar(scalar) if !scalar.is_null() => Ok(&scalar.text),
        _ => Err(wrong(node, field, "a text")),
    }
}

fn wrong(node: &Node, field: &str, wanted: &str) -> Fault {
    Fault::instead(node, wanted).within(field)
}
