// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The JSON schema of job files: docs/job-file.schema.json is generated from the types.
//!
//! Tests only. `WEFT_RECORD=1 cargo test -p weft-job schema` writes the file anew.

use std::borrow::Cow;
use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::job::Job;
use crate::size::ShmSize;
use crate::time::TimeLimit;
use crate::whole::Whole;

/// A text that may be written as a number or as a truth value.
pub(crate) struct Text;

impl JsonSchema for Text {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

impl<const LEAST: u32, const MOST: u32> JsonSchema for Whole<LEAST, MOST> {
    fn schema_name() -> Cow<'static, str> {
        format!("WholeFrom{LEAST}To{MOST}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": LEAST, "maximum": MOST })
    }
}

impl JsonSchema for ShmSize {
    fn schema_name() -> Cow<'static, str> {
        "ShmSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^(try:)?[0-9]+[kKmMgGtT][iI]?[bB]?$" })
    }
}

impl JsonSchema for TimeLimit {
    fn schema_name() -> Cow<'static, str> {
        "TimeLimit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "number", "exclusiveMinimum": 0, "maximum": 315_360_000 },
            {
                "type": "string",
                "minLength": 2,
                "pattern": "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$",
            },
        ] })
    }
}

fn made() -> String {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let schema = generator.into_root_schema_for::<Job>();
    serde_json::to_string_pretty(&schema).unwrap() + "\n"
}

#[test]
fn the_schema_that_is_shipped_is_what_the_types_make() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/job-file.schema.json");
    if std::env::var_os("WEFT_RECORD").is_some() {
        std::fs::write(&path, made()).unwrap();
    }
    let shipped = std::fs::read_to_string(&path).unwrap();
    assert!(
        shipped == made(),
        "docs/job-file.schema.json is out of date; WEFT_RECORD=1 cargo test -p weft-job schema"
    );
}

/// The reader and the schema know the same fields, and require the same.
#[test]
fn the_document_names_each_field_of_the_schema() {
    let schema: serde_json::Value = serde_json::from_str(&made()).unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/job-file.md");
    let page = std::fs::read_to_string(page).unwrap();
    let fields = schema["properties"].as_object().unwrap();
    assert_eq!(fields.len(), 18);
    for field in fields.keys() {
        assert!(page.contains(&format!("\n| `{field}` |")), "{field}");
    }
    assert_eq!(
        schema["required"],
        serde_json::json!(["version", "program"])
    );
    assert_eq!(schema["additionalProperties"], false);
}
