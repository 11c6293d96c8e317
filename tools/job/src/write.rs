// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes a job as the text of a job file. Reading this text gives the same job.
//!
//! Called by `import` and `export`. Serde turns the job into JSON, which keeps the order of the
//! fields; this module writes the same as readable YAML.

use std::fmt::Write;

use crate::fault::Fault;
use crate::job::Job;
use crate::node::{Node, Scalar, Value};
use crate::parse::parse;

/// The text of a job file.
///
/// # Errors
/// When the job is longer than a job file may be.
pub fn to_yaml(job: &Job) -> Result<String, Fault> {
    let json = serde_json::to_string(job).map_err(|error| Fault::new(error.to_string()))?;
    json_as_yaml(&json)
}

/// The same as YAML.
///
/// # Errors
/// When it is longer than a job file may be.
pub(crate) fn json_as_yaml(json: &str) -> Result<String, Fault> {
    let mut text = String::new();
    block(&mut text, &parse(json)?, 0);
    Ok(text)
}

/// A list or map of the document, each element on a line of its own.
fn block(text: &mut String, node: &Node, indent: usize) {
    match &node.value {
        Value::Map(entries) => {
            for entry in entries {
                let name = word(&entry.name);
                let _ = write!(text, "{:indent$}{name}:", "");
                value(text, &entry.node, indent);
            }
        }
        Value::List(nodes) => {
            for node in nodes {
                let _ = write!(text, "{:indent$}-", "");
                if matches!(node.value, Value::Map(_)) {
                    // The first field stands behind the dash, the others below it.
                    let mut inner = String::new();
                    block(&mut inner, node, indent + 2);
                    text.push_str(&inner[indent + 1..]);
                } else {
                    value(text, node, indent);
                }
            }
        }
        Value::Scalar(_) => {}
    }
}

/// What stands behind `name:` or `-`, and the end of the line.
fn value(text: &mut String, node: &Node, indent: usize) {
    match &node.value {
        Value::Scalar(Scalar {
            text: one,
            is_plain,
        }) => {
            let written = if *is_plain { one.clone() } else { word(one) };
            let _ = writeln!(text, " {written}");
        }
        Value::List(nodes) if nodes.is_empty() => text.push_str(" []\n"),
        Value::Map(entries) if entries.is_empty() => text.push_str(" {}\n"),
        _ => {
            text.push('\n');
            block(text, node, indent + 2);
        }
    }
}

/// Words that other readers of YAML take for something else than a text.
const TAKEN: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

/// A text as YAML: without quotes where no reader can take it for anything else.
fn word(text: &str) -> String {
    let begins_well = text.starts_with(|one: char| one.is_ascii_alphabetic() || one == '/')
        || text.starts_with("./");
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "_-./".contains(one);
    let is_taken = TAKEN.contains(&text.to_ascii_lowercase().as_str());
    if begins_well && !is_taken && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for one in text.chars() {
        match one {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            ' '..='~' => quoted.push(one),
            _ if one.is_alphanumeric() => quoted.push(one),
            _ => {
                let _ = write!(quoted, "\\U{:08x}", u32::from(one));
            }
        }
    }
    quoted.push('"');
    quoted
}
