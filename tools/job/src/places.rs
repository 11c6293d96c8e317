// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The places of a job's fields in their file, for errors that are found after reading.
//!
//! Made by `file.rs` for job files and by `convert` for the files of other systems.

use crate::node::{Node, Place, Value, shortened};

/// Where the fields of a job stand in the file.
#[derive(Debug, Default)]
pub(crate) struct Places(Vec<(String, Place)>);

impl Places {
    /// Those of a job file.
    pub(crate) fn of(root: &Node) -> Self {
        let mut places = Self::default();
        places.walk(String::new(), root);
        places
    }

    fn walk(&mut self, field: String, node: &Node) {
        match &node.value {
            Value::Scalar(_) => {}
            Value::List(nodes) => {
                for (index, node) in nodes.iter().enumerate() {
                    self.walk(format!("{field}[{index}]"), node);
                }
            }
            Value::Map(entries) => {
                let dot = if field.is_empty() { "" } else { "." };
                for entry in entries {
                    let inner = format!("{field}{dot}{}", shortened(&entry.name));
                    self.walk(inner, &entry.node);
                }
            }
        }
        self.add(field, node.place);
    }

    /// Says where a field stands.
    pub(crate) fn add(&mut self, field: impl Into<String>, place: Place) {
        self.0.push((field.into(), place));
    }

    /// The place of a field, or of what it lies in.
    pub(crate) fn find(&self, field: &str) -> Option<Place> {
        let mut field = field;
        loop {
            if let Some((_, place)) = self.0.iter().find(|(known, _)| known == field) {
                return Some(*place);
            }
            field = &field[..field.rfind(['.', '['])?];
        }
    }
}
