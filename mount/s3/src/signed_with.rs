// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Says of each answer with which credentials its request was signed. An answer can come long after
//! other credentials were found, and the SDK judges answers when it has no request any more.
//! [`crate::credentials`] reads it, [`mod@crate::connect`] puts this into the client.

use std::hash::{BuildHasher, RandomState};

use aws_sdk_s3::config::interceptors::{
    BeforeDeserializationInterceptorContextMut, BeforeTransmitInterceptorContextRef,
};
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_s3::error::BoxError;
use aws_smithy_types::config_bag::{Storable, StoreReplace};

/// What tells credentials from others, and does not give them away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(u64);

impl Storable for Mark {
    type Storer = StoreReplace<Self>;
}

/// Makes marks. Clones make the same ones.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    hasher: RandomState,
}

impl Marks {
    /// Of a key's name and a session token.
    pub fn of(&self, access_key: &str, token: Option<&str>) -> Mark {
        Mark(self.hasher.hash_one((access_key, token)))
    }
}

/// Puts the mark of a request's credentials to its answer.
#[derive(Debug)]
pub struct SignedWith {
    marks: Marks,
}

impl SignedWith {
    /// With these marks.
    pub fn new(marks: Marks) -> Self {
        Self { marks }
    }
}

/// The name of the key in the header Authorization, where there is one: what stands before date,
/// region, service and `aws4_request`. Other stores than AWS have names with slashes. Signatures
/// for all regions name none.
fn access_key(authorization: &str) -> Option<&str> {
    let (_, rest) = authorization.split_once("Credential=")?;
    let (credential, _) = rest.split_once(',')?;
    let is_for_all_regions = authorization.starts_with("AWS4-ECDSA");
    let behind = if is_for_all_regions { 3 } else { 4 };
    credential.rsplitn(behind + 1, '/').nth(behind)
}

impl Intercept for SignedWith {
    fn name(&self) -> &'static str {
        "SignedWith"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let headers = context.request().headers();
        if let Some(key) = headers.get("authorization").and_then(access_key) {
            let mark = self.marks.of(key, headers.get("x-amz-security-token"));
            config.interceptor_state().store_put(mark);
        }
        Ok(())
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(mark) = config.load::<Mark>() {
            context.response_mut().add_extension(*mark);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_read_from_the_header() {
        let header = "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/s3/aws4_request, \
                      SignedHeaders=host, Signature=0";
        assert_eq!(access_key(header), Some("AKID"));
        assert_eq!(access_key("Bearer x"), None);
        let of_team = header.replace("AKID", "team/user");
        assert_eq!(access_key(&of_team), Some("team/user"));
        let for_all = header
            .replace("HMAC", "ECDSA-P256")
            .replace("/us-east-1", "");
        assert_eq!(access_key(&for_all), Some("AKID"));
    }

    #[test]
    fn credentials_with_another_token_have_another_mark() {
        let marks = Marks::default();
        assert_eq!(marks.of("a", Some("t")), marks.clone().of("a", Some("t")));
        assert_ne!(marks.of("a", Some("t")), marks.of("a", Some("u")));
        assert_ne!(marks.of("a", Some("t")), marks.of("a", None));
    }
}
