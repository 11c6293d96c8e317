// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One request from arrival to answer. It is counted, delayed, made to fail if a test asks for it,
//! checked for its signature, and carried out.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Method, Request};

use crate::answer::{self, Hangup, Served, add};
use crate::calls;
use crate::calls::date::in_header;
use crate::checksum::Algorithm;
use crate::control;
use crate::error::{Code, Result, S3Error};
use crate::fault::Draw;
use crate::operation::Operation;
use crate::payload::{self, Received};
use crate::request::Call;
use crate::sign::{self, Signed};
use crate::state::State;
use crate::wire::ResetFlag;

/// Answers one request.
///
/// # Errors
/// [`Hangup`] where the connection is to be reset instead.
pub async fn serve(state: Arc<State>, reset: ResetFlag, request: Request<Incoming>) -> Served {
    let (parts, body) = request.into_parts();
    if let Some(path) = parts.uri.path().strip_prefix(control::PATH) {
        let body = body.collect().await.map_err(|_| Hangup)?.to_bytes();
        let command = control::Command {
            method: &parts.method,
            path,
            body: &body,
        };
        return Ok(control::carry_out(&state, &command));
    }
    let is_head = parts.method == Method::HEAD;
    let resource = parts.uri.path().to_owned();
    let request_id = format!("{:016X}", state.number());
    let served = match Call::read(parts) {
        Ok(call) => serve_call(&state, &reset, &call, body).await,
        Err(error) => Ok(Err(error)),
    };
    let mut answer = match served? {
        Ok(answer) => answer,
        Err(error) => {
            state.counters.refused(error.code.name());
            answer::refusal(&error, &resource, &request_id, is_head)
        }
    };
    add(&mut answer, "x-amz-request-id", &request_id);
    add(&mut answer, "date", &in_header(state.now()));
    add(&mut answer, "x-amz-id-2", &request_id);
    add(&mut answer, "server", "weft-bucket-server");
    Ok(answer)
}

async fn serve_call(
    state: &State,
    reset: &ResetFlag,
    call: &Call,
    body: Incoming,
) -> std::result::Result<Result<answer::Answer>, Hangup> {
    let operation = Operation::of(call);
    let name = operation.map_or_else(|| "Unknown".to_owned(), Operation::name);
    let _at_work = state.counters.begin(name);
    let Some(operation) = operation else {
        let text = format!(
            "{} {} is no call that this server knows.",
            call.method, call.path
        );
        return Ok(Err(S3Error::new(Code::NotImplemented, text)));
    };
    let faults = state.faults.settings();
    let draw = state.faults.draw(operation);
    if draw.reset || faults.gone {
        state.counters.refused("Reset".to_owned());
        reset.set();
        return Err(Hangup);
    }
    let received = admit(state, operation, call, body, &draw).await;
    tokio::time::sleep(Duration::from_millis(faults.first_byte_ms)).await;
    let done = received.and_then(|body| calls::carry_out(state, operation, call, body, &draw));
    if draw.unheard {
        reset.set();
        return Err(Hangup);
    }
    Ok(done)
}

/// Whether the request may be carried out; its body comes back.
async fn admit(
    state: &State,
    operation: Operation,
    call: &Call,
    body: Incoming,
    draw: &Draw,
) -> Result<Received> {
    let signed = if state.options.anonymous && !Signed::is_claimed(call) {
        Signed::anonymous(call)
    } else {
        sign::verify(call, &state.options.keys, state.now())?
    };
    let faults = state.faults.settings();
    let token = call.header("x-amz-security-token");
    if faults.expired || token.is_some_and(|token| token == faults.expired_token) {
        let text = "The provided token has expired.";
        return Err(S3Error::new(Code::ExpiredToken, text));
    }
    if draw.slow_down {
        return Err(S3Error::new(
            Code::SlowDown,
            "Please reduce your request rate.",
        ));
    }
    if draw.bad_request {
        return Err(S3Error::new(Code::InvalidRequest, "The request is bad."));
    }
    let default = part_algorithm(state, operation, call).unwrap_or(Algorithm::Crc64Nvme);
    let etag_md5 =
        state.options.etag_md5 && matches!(operation, Operation::PutObject | Operation::UploadPart);
    let received = payload::receive(body, call, &signed, default, etag_md5).await?;
    state.counters.written(received.content.length());
    Ok(received)
}

/// The checksum that the parts of an upload have.
fn part_algorithm(state: &State, operation: Operation, call: &Call) -> Option<Algorithm> {
    if operation != Operation::UploadPart {
        return None;
    }
    let mut store = state.store();
    let bucket = store.bucket_mut(&call.bucket).ok()?;
    let upload = bucket.upload_mut(&call.key, call.query("uploadId")?).ok()?;
    upload.algorithm
}
