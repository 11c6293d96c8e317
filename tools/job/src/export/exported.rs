// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The result of an export: the text, and the fields that are not in it.
//!
//! Made by the files of the targets; shown by `export.rs`.

use serde_json::Value;

use crate::fault::Fault;
use crate::file::JobFile;
use crate::write::json_as_yaml;

/// A job as the text of another system.
#[derive(Debug)]
pub struct Exported {
    /// JSON or YAML.
    pub text: String,
    /// The fields that have no meaning there, or that have become something else.
    pub notes: Vec<Fault>,
}

/// What is left out so far.
#[derive(Debug)]
pub(super) struct Notes<'a> {
    file: &'a JobFile,
    notes: Vec<Fault>,
}

impl<'a> Notes<'a> {
    pub(super) fn of(file: &'a JobFile) -> Self {
        let notes = Vec::new();
        Self { file, notes }
    }

    pub(super) fn add(&mut self, field: &str, text: impl Into<String>) {
        self.notes.push(self.file.fault(field, text));
    }

    /// For each of these fields that the job has.
    pub(super) fn add_present(&mut self, fields: &[(&str, bool, &str)]) {
        for (field, _, text) in fields.iter().filter(|(_, is_present, _)| *is_present) {
            self.add(field, *text);
        }
    }

    pub(super) fn with_json(self, value: Value) -> Result<Exported, Fault> {
        let value = without_nulls(value);
        let text = serde_json::to_string_pretty(&value);
        let text = text.map_err(|error| Fault::new(error.to_string()))?;
        Ok(Exported {
            text: text + "\n",
            notes: self.notes,
        })
    }

    /// Several documents of one stream.
    pub(super) fn with_yaml(self, documents: Vec<Value>) -> Result<Exported, Fault> {
        let mut texts = Vec::new();
        for value in documents {
            let json = without_nulls(value).to_string();
            texts.push(json_as_yaml(&json).map_err(|fault| fault.in_file(self.file.name()))?);
        }
        Ok(self.with_text(texts.join("---\n")))
    }

    pub(super) fn with_text(self, text: String) -> Exported {
        Exported {
            text,
            notes: self.notes,
        }
    }
}

/// Fields that are null are not written.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, one)| (name, without_nulls(one))).collect())
        }
        Value::Array(values) => Value::Array(values.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// Names and values, as AWS and Kubernetes list them; null for none.
pub(super) fn variables<'a>(pairs: impl Iterator<Item = (&'a str, String)>) -> Value {
    let list: Vec<Value> = pairs
        .map(|(name, value)| serde_json::json!({ "name": name, "value": value }))
        .collect();
    if list.is_empty() {
        Value::Null
    } else {
        Value::Array(list)
    }
}
