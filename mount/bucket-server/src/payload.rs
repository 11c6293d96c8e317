// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receives the body of a request in each way that S3 allows, and checks every digest that came
//! with it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use md5::Md5;
use sha2::{Digest, Sha256};

use crate::checksum::{ALGORITHMS, Algorithm, Hasher, Sum};
use crate::chunked::Decoder;
use crate::content::Content;
use crate::error::{Code, Result, S3Error};
use crate::request::Call;
use crate::sign::{Signed, hex};

/// S3 takes no more in one request.
const BODY_BYTES: u64 = 5 << 30;

/// Chosen: smaller bodies are copied out of the connection's buffers.
const COMPACT_BYTES: u64 = 256 << 10;

/// A body that has arrived and is as its sender meant it.
#[derive(Clone, Debug)]
pub struct Received {
    /// The bytes.
    pub content: Content,
    /// What the tag is made of: MD5, unless the server was told to do without.
    pub md5: Option<Vec<u8>>,
    /// The checksum that came along, or the one that S3 makes where none did.
    pub sum: Sum,
    /// Whether the sum came along.
    pub is_announced: bool,
}

impl Received {
    /// The bytes in one buffer, for documents.
    pub fn bytes(&self) -> Vec<u8> {
        let mut all = Vec::new();
        self.content
            .each_chunk(|chunk| all.extend_from_slice(chunk));
        all
    }
}

/// How bytes are digested while they arrive.
struct Digests {
    sha256: Option<Sha256>,
    md5: Option<Md5>,
    sum: Hasher,
}

impl Digests {
    fn update(&mut self, bytes: &[u8]) {
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(bytes);
        }
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        self.sum.update(bytes);
    }
}

/// What came along with a body to check it by.
struct Announced {
    algorithm: Option<Algorithm>,
    value: Option<String>,
}

/// Receives a body. `default` is the checksum that is made where none came along; with `etag_md5`
/// the MD5 is made even if nobody sent one.
///
/// # Errors
/// `IncompleteBody`, `BadDigest`, `XAmzContentSHA256Mismatch`, `SignatureDoesNotMatch`, and
/// `EntityTooLarge`.
pub async fn receive(
    body: Incoming,
    call: &Call,
    signed: &Signed,
    default: Algorithm,
    etag_md5: bool,
) -> Result<Received> {
    let announced = announced(call);
    let payload = signed.payload.as_str();
    let is_digest = payload.len() == 64 && !payload.contains('-');
    let content_md5 = call.header("content-md5");
    let digests = Digests {
        sha256: is_digest.then(Sha256::new),
        md5: (etag_md5 || content_md5.is_some()).then(Md5::new),
        sum: Hasher::new(announced.algorithm.unwrap_or(default)),
    };
    let (content, digests, trailers) = read(body, signed, digests).await?;
    check_length(call, &content)?;
    if let Some(sha256) = digests.sha256
        && hex(&sha256.finalize()) != payload
    {
        let text = "The provided 'x-amz-content-sha256' header does not match what was computed.";
        return Err(S3Error::new(Code::XAmzContentSHA256Mismatch, text));
    }
    let md5 = digests.md5.map(|md5| md5.finalize().to_vec());
    if let (Some(wanted), Some(md5)) = (content_md5, &md5)
        && STANDARD.decode(wanted).ok().as_ref() != Some(md5)
    {
        let text = "The Content-MD5 you specified did not match what we received.";
        return Err(S3Error::new(Code::BadDigest, text));
    }
    let sum = digests.sum.finish();
    let header = sum.algorithm.header();
    let trailer = trailers.iter().find(|(name, _)| *name == header);
    let wanted = announced.value.or(trailer.map(|(_, value)| value.clone()));
    if wanted.as_ref().is_some_and(|wanted| *wanted != sum.text()) {
        let name = sum.algorithm.name();
        let text = format!("The {name} you specified did not match the calculated checksum.");
        return Err(S3Error::new(Code::BadDigest, text));
    }
    let content = if content.length() <= COMPACT_BYTES {
        content.compact()
    } else {
        content
    };
    Ok(Received {
        content,
        md5,
        sum,
        is_announced: wanted.is_some(),
    })
}

fn announced(call: &Call) -> Announced {
    let in_header = ALGORITHMS.into_iter().find_map(|algorithm| {
        let value = call.header(&algorithm.header())?;
        Some((algorithm, value.to_owned()))
    });
    if let Some((algorithm, value)) = in_header {
        return Announced {
            algorithm: Some(algorithm),
            value: Some(value),
        };
    }
    let trailer = call.header("x-amz-trailer").unwrap_or("");
    let in_trailer = ALGORITHMS
        .into_iter()
        .find(|algorithm| trailer.eq_ignore_ascii_case(&algorithm.header()));
    let by_name = call
        .header("x-amz-sdk-checksum-algorithm")
        .and_then(Algorithm::named);
    Announced {
        algorithm: in_trailer.or(by_name),
        value: None,
    }
}

type Read = (Content, Digests, Vec<(String, String)>);

async fn read(mut body: Incoming, signed: &Signed, mut digests: Digests) -> Result<Read> {
    let is_chunked = signed.payload.starts_with("STREAMING-");
    let is_signed = signed
        .payload
        .starts_with("STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
    let mut decoder = is_chunked.then(|| Decoder::new(signed, is_signed));
    let mut content = Content::default();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| incomplete())?;
        let Ok(bytes) = frame.into_data() else {
            continue;
        };
        let pieces: Vec<Bytes> = match &mut decoder {
            Some(decoder) => decoder.push(bytes)?,
            None => vec![bytes],
        };
        for piece in pieces {
            digests.update(&piece);
            content.push(piece);
        }
        if content.length() > BODY_BYTES {
            let text = "Your proposed upload exceeds the maximum allowed size";
            return Err(S3Error::new(Code::EntityTooLarge, text));
        }
    }
    let trailers = match decoder {
        Some(decoder) => decoder.finish()?,
        None => Vec::new(),
    };
    Ok((content, digests, trailers))
}

fn check_length(call: &Call, content: &Content) -> Result<()> {
    match call.header("x-amz-decoded-content-length") {
        Some(length) if length.parse() != Ok(content.length()) => Err(incomplete()),
        _ => Ok(()),
    }
}

fn incomplete() -> S3Error {
    let text = "You did not provide the number of bytes specified by the Content-Length HTTP \
        header.";
    S3Error::new(Code::IncompleteBody, text)
}
