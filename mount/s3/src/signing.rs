// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chooses whether the signature of a request covers each byte of its body, or only the body's
//! checksum. The second saves a SHA-256 of everything that is written.
//! docs/adr/0023-unsigned-bodies.md says where it is equally safe. [`mod@crate::connect`] puts this
//! into the client.

use std::net::{Ipv4Addr, Ipv6Addr};

use aws_runtime::auth::PayloadSigningOverride;
use aws_sdk_s3::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_s3::error::BoxError;

/// The checksum that this crate asks for; its header is signed like every other.
const CHECKSUM: &str = "x-amz-checksum-crc64nvme";

/// Has bodies with a checksum go unsigned where nobody stands between this host and the store.
#[derive(Debug)]
pub struct UnsignedBodies;

impl Intercept for UnsignedBodies {
    fn name(&self) -> &'static str {
        "UnsignedBodies"
    }

    // The checksum is there by now, and the address is the one that is really asked.
    fn read_before_signing(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request();
        let is_checked = request.headers().get(CHECKSUM).is_some();
        let is_whole = request.body().bytes().is_some();
        if is_checked && is_whole && is_private(request.uri()) {
            let unsigned = PayloadSigningOverride::unsigned_payload();
            config.interceptor_state().store_put(unsigned);
        }
        Ok(())
    }
}

/// Whether nobody on the way can change what is sent to this address: TLS sees to it, or it never
/// leaves the host.
fn is_private(uri: &str) -> bool {
    if uri.starts_with("https://") {
        return true;
    }
    let Some(rest) = uri.strip_prefix("http://") else {
        return false;
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    if authority.contains('@') {
        return false; // a name before the host; nobody needs it here
    }
    if let Some(bracketed) = authority.strip_prefix('[') {
        let address = bracketed.split(']').next().unwrap_or_default();
        return address
            .parse()
            .is_ok_and(|address: Ipv6Addr| address.is_loopback());
    }
    let host = authority.split(':').next().unwrap_or_default();
    // A name may stand for any host.
    host.parse()
        .is_ok_and(|address: Ipv4Addr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tls_and_addresses_of_this_host_are_private() {
        for uri in [
            "https://bucket.s3.amazonaws.com/a",
            "https://10.0.0.1:9000",
            "http://127.0.0.1:9000/bucket/a?partNumber=1",
            "http://127.8.0.1",
            "http://[::1]:9000/",
        ] {
            assert!(is_private(uri), "{uri}");
        }
        for uri in [
            "http://10.0.0.1:9000/a",
            "http://store/127.0.0.1",
            "http://127.0.0.1@store/",
            "http://127.0.0.1:80@store/",
            "http://127.0.0.1.example/",
            "http://localhost:9000/",
            "http://[2001:db8::1]/",
            "http://store/?x=https://a",
            "ftp://127.0.0.1/",
            "",
        ] {
            assert!(!is_private(uri), "{uri}");
        }
    }
}
