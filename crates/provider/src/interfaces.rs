// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which of this machine's network interfaces are used, and which of them together: what FI_WEFT_IFACE names, or what
//! Weft chooses. Read by parameters, asked by address and routes. Source: srd-protocol 17.

use std::net::IpAddr;

use weft_os::alike::{self, Kind};
use weft_os::interface::{self, InterfaceAddress};

/// The most that are used together.
pub const MOST: usize = 1 + weft_endpoint::srd::FURTHER_ADDRESSES;

/// What the user named, in that order: of each interface its addresses, IPv4 first. Empty if nothing was named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    named: Vec<Vec<IpAddr>>,
}

impl Interfaces {
    /// From a list of names or addresses with commas between; the first is the one that endpoints are known by.
    ///
    /// # Errors
    /// A sentence that says what is wrong, and what this machine has.
    pub fn parse(text: &str, parameter: &str) -> Result<Self, String> {
        let all = interface::addresses().unwrap_or_default();
        let mut named: Vec<Vec<IpAddr>> = Vec::new();
        for word in text.split(',').map(str::trim) {
            let found = addresses_of(word, &all);
            if found.is_empty() {
                let known: Vec<String> = all
                    .iter()
                    .map(|entry| format!("{} ({})", entry.name, entry.address))
                    .collect();
                return Err(format!(
                    "{parameter} is \"{text}\", but this machine has {}: name some of them, with commas between, or unset {parameter}",
                    known.join(", ")
                ));
            }
            if !named.contains(&found) {
                named.push(found);
            }
        }
        if named.len() > MOST {
            return Err(format!(
                "{parameter} is \"{text}\", which are {} interfaces, but at most {MOST} are used together: leave some out",
                named.len()
            ));
        }
        Ok(Self { named })
    }

    /// Whether the user named any.
    pub fn are_named(&self) -> bool {
        !self.named.is_empty()
    }

    /// The address to use of those that were named: the first that is wanted.
    pub fn first(&self, wanted: impl Fn(&IpAddr) -> bool) -> Option<IpAddr> {
        self.named.iter().flatten().copied().find(wanted)
    }

    /// The addresses of one family that may be used together, where the first of them is known. Setup.
    fn of_family(&self, first: IpAddr) -> Vec<IpAddr> {
        if self.are_named() {
            let alike = |address: &&IpAddr| address.is_ipv4() == first.is_ipv4();
            let one = |addresses: &Vec<IpAddr>| addresses.iter().find(alike).copied();
            return self.named.iter().filter_map(one).collect();
        }
        let all = interface::addresses().unwrap_or_default();
        let others = alike::others(first, &all, MOST - 1, Kind::of).into_iter();
        let used = others.filter(|other| other.passed_over.is_none());
        std::iter::once(first)
            .chain(used.map(|other| other.interface.address))
            .collect()
    }

    /// The same of both families, whose first addresses are these. Setup.
    pub fn together(&self, firsts: [IpAddr; 2]) -> Vec<IpAddr> {
        let used = firsts.iter().filter(|first| !first.is_loopback());
        used.flat_map(|first| self.of_family(*first)).collect()
    }
}

fn addresses_of(word: &str, all: &[InterfaceAddress]) -> Vec<IpAddr> {
    let asked: Option<IpAddr> = word.parse().ok();
    let mut fitting: Vec<IpAddr> = all
        .iter()
        .filter(|entry| entry.name == word || Some(entry.address) == asked)
        .map(|entry| entry.address)
        .collect();
    fitting.sort_by_key(|address| !address.is_ipv4());
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Interfaces, String> {
        Interfaces::parse(text, "FI_WEFT_IFACE")
    }

    #[test]
    fn interfaces_are_found_by_name_and_by_address_and_else_refused() {
        let here: IpAddr = "127.0.0.1".parse().expect("address");
        let one = parse("127.0.0.1").expect("loopback");
        assert_eq!(one.first(IpAddr::is_ipv4), Some(here));
        assert_eq!(one.first(IpAddr::is_ipv6), None);
        assert_eq!(parse("127.0.0.1, 127.0.0.1").expect("twice"), one);
        for text in [
            "weft-no-such-if0",
            "127.0.0.1,weft-no-such-if0",
            "127.0.0.1,",
            "",
        ] {
            let why = parse(text).expect_err("refused");
            assert!(
                why.contains("FI_WEFT_IFACE") && why.contains("127.0.0.1") && why.contains(text),
                "{why}"
            );
        }
    }

    #[test]
    fn those_that_are_named_are_used_together_in_their_order_and_by_family() {
        let address = |text: &str| text.parse::<IpAddr>().expect("address");
        let named = [
            &["10.0.1.1", "10.9.1.1", "fd01::1"][..],
            &["fd02::1"],
            &["10.0.0.1"],
        ];
        let named = named.map(|list| list.iter().map(|text| address(text)).collect());
        let interfaces = Interfaces {
            named: named.to_vec(),
        };
        let together = interfaces.together([address("10.0.1.1"), address("fd01::1")]);
        let expected = ["10.0.1.1", "10.0.0.1", "fd01::1", "fd02::1"].map(address);
        assert_eq!(together, expected);
    }
}
