// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ranges of nodes and services: from one name and a count to the names that follow it.
//!
//! Used by av for fi_av_insertsvc and fi_av_insertsym. A node that is an IPv4 address counts
//! upwards as a number; any other node counts at its last digits, keeping their width (node08,
//! node09, node10). Source: fi_av(3).

use std::ffi::{CStr, CString, c_char};
use std::net::{Ipv4Addr, SocketAddr};

use crate::address::{Lookup, resolve};

/// A range of nodes times a range of services.
#[derive(Debug)]
pub struct Range {
    nodes: Vec<CString>,
    services: Vec<CString>,
}

impl Range {
    /// Expands both names. `None` if a name cannot be counted up to the number that the call asks
    /// for.
    ///
    /// # Safety
    /// Both names must be C strings.
    pub unsafe fn new(
        node: *const c_char,
        node_count: usize,
        service: *const c_char,
        service_count: usize,
    ) -> Option<Self> {
        // SAFETY: the contract.
        let (node, service) = unsafe { (CStr::from_ptr(node), CStr::from_ptr(service)) };
        Some(Self {
            nodes: expand(node.to_str().ok()?, node_count, node_at)?,
            services: expand(service.to_str().ok()?, service_count, name_at)?,
        })
    }

    /// The addresses, service by service within node by node; `None` for those that do not resolve.
    pub fn addresses(&self, flags: u64) -> impl Iterator<Item = Option<SocketAddr>> {
        let lookup = Lookup::with_flags(libc::AF_UNSPEC, flags);
        let pairs = self
            .nodes
            .iter()
            .flat_map(|node| self.services.iter().map(move |service| (node, service)));
        pairs.map(move |(node, service)| resolve(Some(node), Some(service), lookup))
    }
}

fn expand(first: &str, count: usize, at: fn(&str, u64) -> Option<String>) -> Option<Vec<CString>> {
    if count == 1 {
        return Some(vec![CString::new(first).ok()?]);
    }
    (0..count as u64)
        .map(|step| CString::new(at(first, step)?).ok())
        .collect()
}

fn node_at(first: &str, step: u64) -> Option<String> {
    match first.parse::<Ipv4Addr>() {
        Ok(address) => {
            let number = u32::from(address).checked_add(u32::try_from(step).ok()?)?;
            Some(Ipv4Addr::from(number).to_string())
        }
        Err(_) => name_at(first, step),
    }
}

fn name_at(first: &str, step: u64) -> Option<String> {
    let stem = first.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let digits = &first[stem.len()..];
    let number = digits.parse::<u64>().ok()?.checked_add(step)?;
    Some(format!("{stem}{number:0width$}", width = digits.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_at_their_last_digits_and_addresses_as_numbers() {
        assert_eq!(name_at("node08", 2).as_deref(), Some("node10"));
        assert_eq!(name_at("7471", 529).as_deref(), Some("8000"));
        assert_eq!(name_at("rack2-node9", 1).as_deref(), Some("rack2-node10"));
        assert_eq!(name_at("localhost", 1), None);
        assert_eq!(node_at("10.0.0.255", 1).as_deref(), Some("10.0.1.0"));
        assert_eq!(node_at("255.255.255.255", 1), None);
    }

    #[test]
    fn a_range_is_services_within_nodes() {
        // SAFETY: both are C strings.
        let range = unsafe { Range::new(c"127.0.0.1".as_ptr(), 2, c"7000".as_ptr(), 2) }
            .expect("countable");
        let found: Vec<String> = range
            .addresses(0)
            .flatten()
            .map(|address| address.to_string())
            .collect();
        assert_eq!(
            found,
            [
                "127.0.0.1:7000",
                "127.0.0.1:7001",
                "127.0.0.2:7000",
                "127.0.0.2:7001"
            ]
        );
    }
}
