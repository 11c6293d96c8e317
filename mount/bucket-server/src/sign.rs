// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks whether a request was signed with the right key, by Signature Version 4 in the header or
//! in the query. Source: "Authenticating Requests (AWS Signature Version 4)" in the Amazon S3 API
//! Reference.

use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use sha2::{Digest, Sha256};
use time::macros::format_description;
use time::{Duration, OffsetDateTime, PrimitiveDateTime};

use crate::error::{Code, Result, S3Error};
use crate::request::Call;

/// What is not encoded in a name or value of the query.
const IN_QUERY: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What is not encoded in a path.
const IN_PATH: AsciiSet = IN_QUERY.remove(b'/');

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// S3 takes clocks that are off by so much.
const SKEW: Duration = Duration::minutes(15);

/// The credentials that the server takes.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The name of the key.
    pub access_key: String,
    /// The key.
    pub secret_key: String,
    /// For temporary credentials: the token that must come along.
    pub session_token: Option<String>,
}

/// A signature that was found to be right, and what follows from it for the body.
#[derive(Clone, Debug)]
pub struct Signed {
    key: Vec<u8>,
    date: String,
    scope: String,
    /// That of the request; the chain of a streaming body begins with it.
    pub signature: String,
    /// `x-amz-content-sha256`: the digest of the body, or how the body is sent.
    pub payload: String,
}

/// What a request says about its signature.
struct Claim {
    access_key: String,
    scope: String,
    signed_headers: String,
    signature: String,
    date: String,
    /// Set where the signature stands in the query.
    expires_seconds: Option<u64>,
    payload: String,
}

/// Checks the signature of a request.
///
/// # Errors
/// `AccessDenied` for none, and S3's codes for a wrong key, date, token or signature.
pub fn verify(call: &Call, keys: &Keys, now: OffsetDateTime) -> Result<Signed> {
    let claim = if call.asks("X-Amz-Signature") {
        from_query(call)?
    } else {
        from_header(call)?
    };
    if claim.access_key != keys.access_key {
        let text = "The AWS Access Key Id you provided does not exist in our records.";
        return Err(S3Error::new(Code::InvalidAccessKeyId, text));
    }
    let token = call
        .header("x-amz-security-token")
        .or_else(|| call.header("x-amz-s3session-token"))
        .or_else(|| call.query("X-Amz-Security-Token"));
    if keys.session_token.is_some() && token != keys.session_token.as_deref() {
        let text = "The provided token is malformed or otherwise invalid.";
        return Err(S3Error::new(Code::InvalidToken, text));
    }
    check_date(&claim, now)?;
    let key = signing_key(&keys.secret_key, &claim.scope);
    let canonical = canonical_request(call, &claim);
    let to_sign = format!(
        "{ALGORITHM}\n{}\n{}\n{}",
        claim.date,
        claim.scope,
        hex_digest(canonical.as_bytes())
    );
    let expected = hex(&hmac(&key, to_sign.as_bytes()));
    if expected != claim.signature {
        let text = "The request signature we calculated does not match the signature you provided. \
            Check your key and signing method.";
        return Err(S3Error::new(Code::SignatureDoesNotMatch, text));
    }
    Ok(Signed {
        key,
        date: claim.date,
        scope: claim.scope,
        signature: claim.signature,
        payload: claim.payload,
    })
}

impl Signed {
    /// Whether a request says that it is signed.
    pub fn is_claimed(call: &Call) -> bool {
        call.asks("X-Amz-Signature") || call.header("authorization").is_some()
    }

    /// What a request without a signature says about its body.
    pub fn anonymous(call: &Call) -> Self {
        let payload = call.header("x-amz-content-sha256");
        Self {
            key: Vec::new(),
            date: String::new(),
            scope: String::new(),
            signature: String::new(),
            payload: payload.unwrap_or("UNSIGNED-PAYLOAD").to_owned(),
        }
    }

    /// The signature of one piece of a streaming body.
    pub fn chunk(&self, before: &str, digest: &str) -> String {
        let empty = hex_digest(b"");
        let text = format!(
            "{ALGORITHM}-PAYLOAD\n{}\n{}\n{before}\n{empty}\n{digest}",
            self.date, self.scope
        );
        hex(&hmac(&self.key, text.as_bytes()))
    }

    /// The signature of a streaming body's trailers.
    pub fn trailer(&self, before: &str, lines: &str) -> String {
        let digest = hex_digest(lines.as_bytes());
        let text = format!(
            "{ALGORITHM}-TRAILER\n{}\n{}\n{before}\n{digest}",
            self.date, self.scope
        );
        hex(&hmac(&self.key, text.as_bytes()))
    }
}

fn malformed(what: &str) -> S3Error {
    let text = format!("The authorization header is malformed; {what}.");
    S3Error::new(Code::AuthorizationHeaderMalformed, text)
}

fn from_header(call: &Call) -> Result<Claim> {
    let Some(header) = call.header("authorization") else {
        return Err(S3Error::new(Code::AccessDenied, "Access Denied."));
    };
    let fields = header
        .strip_prefix(ALGORITHM)
        .ok_or_else(|| malformed("only AWS4-HMAC-SHA256 is known"))?;
    let field = |name: &str| {
        let found = fields.split(',').find_map(|field| {
            let (known, value) = field.trim().split_once('=')?;
            (known == name).then(|| value.to_owned())
        });
        found.ok_or_else(|| malformed(&format!("it lacks {name}")))
    };
    let (access_key, scope) = split_credential(&field("Credential")?)?;
    let date = call
        .header("x-amz-date")
        .ok_or_else(|| S3Error::new(Code::AccessDenied, "AWS authentication requires a date."))?;
    let payload = call.header("x-amz-content-sha256");
    Ok(Claim {
        access_key,
        scope,
        signed_headers: field("SignedHeaders")?,
        signature: field("Signature")?,
        date: date.to_owned(),
        expires_seconds: None,
        payload: payload.unwrap_or("UNSIGNED-PAYLOAD").to_owned(),
    })
}

fn from_query(call: &Call) -> Result<Claim> {
    let field = |name: &str| {
        let found = call.query(name).map(str::to_owned);
        found.ok_or_else(|| malformed(&format!("the query lacks {name}")))
    };
    let (access_key, scope) = split_credential(&field("X-Amz-Credential")?)?;
    let expires = field("X-Amz-Expires")?;
    Ok(Claim {
        access_key,
        scope,
        signed_headers: field("X-Amz-SignedHeaders")?,
        signature: field("X-Amz-Signature")?,
        date: field("X-Amz-Date")?,
        expires_seconds: Some(
            expires
                .parse()
                .map_err(|_| malformed("X-Amz-Expires is no number"))?,
        ),
        payload: "UNSIGNED-PAYLOAD".to_owned(),
    })
}

fn split_credential(credential: &str) -> Result<(String, String)> {
    let (access_key, scope) = credential
        .split_once('/')
        .ok_or_else(|| malformed("the credential has no scope"))?;
    let is_scope = scope.split('/').count() == 4 && scope.ends_with("/aws4_request");
    if !is_scope {
        return Err(malformed(
            "the scope is not DATE/REGION/SERVICE/aws4_request",
        ));
    }
    Ok((access_key.to_owned(), scope.to_owned()))
}

fn check_date(claim: &Claim, now: OffsetDateTime) -> Result<()> {
    let format = format_description!("[year][month][day]T[hour][minute][second]Z");
    let signed_at = PrimitiveDateTime::parse(&claim.date, &format)
        .map_err(|_| malformed("the date is not YYYYMMDDTHHMMSSZ"))?
        .assume_utc();
    if !claim.scope.starts_with(&claim.date[..8]) {
        return Err(malformed("the scope is of another day than the date"));
    }
    if let Some(seconds) = claim.expires_seconds {
        if now > signed_at + Duration::seconds(seconds.min(604_800) as i64) {
            return Err(S3Error::new(Code::AccessDenied, "Request has expired"));
        }
        return Ok(());
    }
    if (now - signed_at).abs() > SKEW {
        let text = "The difference between the request time and the current time is too large.";
        return Err(S3Error::new(Code::RequestTimeTooSkewed, text));
    }
    Ok(())
}

fn canonical_request(call: &Call, claim: &Claim) -> String {
    let path: Vec<u8> = percent_decode_str(&call.path).collect();
    let path = percent_encode(&path, &IN_PATH).to_string();
    let encode = |text: &str| percent_encode(text.as_bytes(), &IN_QUERY).to_string();
    let mut query: Vec<(String, String)> = call
        .query
        .iter()
        .filter(|(name, _)| name != "X-Amz-Signature")
        .map(|(name, value)| (encode(name), encode(value)))
        .collect();
    query.sort();
    let query: Vec<String> = query
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let mut headers = String::new();
    for name in claim.signed_headers.split(';') {
        let values: Vec<String> = call
            .headers
            .get_all(name)
            .iter()
            .map(|value| {
                let text = String::from_utf8_lossy(value.as_bytes());
                text.split_whitespace().collect::<Vec<_>>().join(" ")
            })
            .collect();
        headers.push_str(&format!("{name}:{}\n", values.join(",")));
    }
    format!(
        "{}\n{path}\n{}\n{headers}\n{}\n{}",
        call.method,
        query.join("&"),
        claim.signed_headers,
        claim.payload
    )
}

fn signing_key(secret: &str, scope: &str) -> Vec<u8> {
    scope
        .split('/')
        .fold(format!("AWS4{secret}").into_bytes(), |key, part| {
            hmac(&key, part.as_bytes())
        })
}

fn hmac(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(bytes);
    mac.finalize().into_bytes().to_vec()
}

/// SHA-256 in hexadecimal digits.
pub fn hex_digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
impl Signed {
    /// As [`verify`] gives it for a scope, a date and a signature, for tests of bodies.
    pub fn for_test(secret: &str, scope: &str, date: &str, signature: &str) -> Self {
        Self {
            key: signing_key(secret, scope),
            date: date.to_owned(),
            scope: scope.to_owned(),
            signature: signature.to_owned(),
            payload: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example "GET Object" of the API reference, "Signature Calculations for the Authorization
    /// Header", with its keys.
    fn example() -> (Call, Keys) {
        let request = hyper::Request::builder()
            .uri("/test.txt")
            .header("host", "examplebucket.s3.amazonaws.com")
            .header("range", "bytes=0-9")
            .header("x-amz-content-sha256", hex_digest(b""))
            .header("x-amz-date", "20130524T000000Z")
            .header(
                "authorization",
                "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/\
                aws4_request,SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature=\
                f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            )
            .body(())
            .unwrap();
        let keys = Keys {
            access_key: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: None,
        };
        (Call::read(request.into_parts().0).unwrap(), keys)
    }

    fn code(call: &Call, keys: &Keys, now: OffsetDateTime) -> Option<Code> {
        verify(call, keys, now).err().map(|error| error.code)
    }

    #[test]
    fn published_example_is_accepted_and_nothing_near_it() {
        let (call, keys) = example();
        let then = time::macros::datetime!(2013-05-24 00:10:00 UTC);
        assert_eq!(code(&call, &keys, then), None);
        let later = then + Duration::minutes(6);
        assert_eq!(code(&call, &keys, later), Some(Code::RequestTimeTooSkewed));
        let mut other = call.clone();
        other.headers.insert("range", "bytes=0-8".parse().unwrap());
        let mismatch = Some(Code::SignatureDoesNotMatch);
        assert_eq!(code(&other, &keys, then), mismatch);
        let mut wrong = keys.clone();
        wrong.secret_key.push('x');
        assert_eq!(code(&call, &wrong, then), mismatch);
        wrong.access_key.push('x');
        assert_eq!(code(&call, &wrong, then), Some(Code::InvalidAccessKeyId));
        let mut bare = call.clone();
        bare.headers.remove("authorization");
        assert_eq!(code(&bare, &keys, then), Some(Code::AccessDenied));
    }

    #[test]
    fn session_token_must_come_along() {
        let (call, mut keys) = example();
        keys.session_token = Some("token".to_owned());
        let then = time::macros::datetime!(2013-05-24 00:00:00 UTC);
        assert_eq!(code(&call, &keys, then), Some(Code::InvalidToken));
    }
}
