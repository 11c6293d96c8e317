// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The control path, `/-/...`: changes faults, reads counters and makes many objects at once, while
//! the server runs. Requests to it are neither signed nor delayed nor counted. Everything is JSON.
//!
//! | request | what it does |
//! |---|---|
//! | `GET /-/faults` | returns the settings |
//! | `POST /-/faults {"first_byte_ms": 30}` | changes the named settings |
//! | `DELETE /-/faults` | restores the settings of the start |
//! | `GET /-/counters` | returns the counters |
//! | `DELETE /-/counters` | sets them to zero |
//! | `POST /-/objects {...}` | makes synthetic objects: see [`Fill`] |
//! | `GET /-/state` | how many buckets, objects, uploads, and bytes there are |

use std::sync::Arc;

use hyper::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::{Answer, with_text};
use crate::content::Content;
use crate::error::{Code, Result, S3Error};
use crate::object::{Object, now};
use crate::state::State;

/// Below this path no bucket is meant: names of buckets begin with a letter or digit.
pub const PATH: &str = "/-/";

/// A request to the control path.
#[derive(Debug)]
pub struct Command<'a> {
    /// What is to be done.
    pub method: &'a Method,
    /// Without [`PATH`].
    pub path: &'a str,
    /// JSON, or nothing.
    pub body: &'a [u8],
}

/// Synthetic objects to be made: `count` of them below one prefix, named by number.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fill {
    /// The bucket; it is made where there is none.
    pub bucket: String,
    /// What the keys begin with. Where `count` is 1 it is the whole key.
    pub prefix: String,
    /// How many.
    #[serde(default = "one")]
    pub count: u64,
    /// How many bytes each has.
    pub size: u64,
    /// Where in the pattern they begin.
    #[serde(default)]
    pub seed: u64,
}

fn one() -> u64 {
    1
}

/// Carries out a command.
pub fn carry_out(state: &State, command: &Command<'_>) -> Answer {
    let (status, value) = match answer(state, command) {
        Ok(value) => (StatusCode::OK, value),
        Err(error) => {
            let status = StatusCode::from_u16(error.code.status());
            let value = json!({"error": error.message});
            (status.unwrap_or(StatusCode::BAD_REQUEST), value)
        }
    };
    with_text(status, "application/json", format!("{value}\n"))
}

fn answer(state: &State, command: &Command<'_>) -> Result<Value> {
    let method = command.method;
    match command.path {
        "faults" if method == Method::GET => Ok(value(&state.faults.settings())),
        "faults" if method == Method::POST => {
            Ok(value(&state.faults.change(&read(command.body)?)?))
        }
        "faults" if method == Method::DELETE => {
            Ok(value(&state.faults.change(&value(&state.options.faults))?))
        }
        "counters" if method == Method::GET => {
            Ok(value(&state.counters.counts(state.total.sent_bytes())))
        }
        "counters" if method == Method::DELETE => {
            state.counters.clear(state.total.sent_bytes());
            Ok(json!({}))
        }
        "objects" if method == Method::POST => fill(state, &read(command.body)?),
        "state" if method == Method::GET => Ok(describe(state)),
        path => {
            let text = format!("there is no {method} {PATH}{path}");
            Err(S3Error::new(Code::InvalidArgument, text))
        }
    }
}

fn value(what: &impl Serialize) -> Value {
    serde_json::to_value(what).unwrap_or_default()
}

fn read<T: for<'a> Deserialize<'a>>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|error| S3Error::new(Code::InvalidArgument, error.to_string()))
}

/// Makes synthetic objects.
///
/// # Errors
/// None yet; the caller treats it as the others.
fn fill(state: &State, fill: &Fill) -> Result<Value> {
    let modified = now();
    let mut store = state.store();
    store.make_bucket(&fill.bucket);
    let bucket = store.bucket_mut(&fill.bucket)?;
    for index in 0..fill.count {
        let key = if fill.count == 1 {
            fill.prefix.clone()
        } else {
            format!("{}{index:07}", fill.prefix)
        };
        let object = Object {
            content: Content::from_seed(fill.seed.wrapping_add(index), fill.size),
            etag: state.etag(None),
            modified,
            headers: Default::default(),
            sum: None,
            parts: Vec::new(),
        };
        bucket.objects.insert(key, Arc::new(object));
    }
    Ok(json!({"made": fill.count}))
}

fn describe(state: &State) -> Value {
    let store = state.store();
    let mut buckets = serde_json::Map::new();
    for (name, bucket) in store.buckets() {
        let bytes: u64 = bucket
            .objects
            .values()
            .map(|object| object.content.length())
            .sum();
        let described = json!({
            "objects": bucket.objects.len(),
            "uploads": bucket.uploads.len(),
            "bytes": bytes,
        });
        buckets.insert(name.clone(), described);
    }
    Value::Object(buckets)
}
