// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which of this machine's network interfaces are used, and which of them together: what
//! FI_WEFT_IFACE names, or what Weft chooses. Read by parameters, asked by address and routes.
//! Source: srd-protocol 17.

use std::fmt;
use std::net::IpAddr;

use weft_facts::limit::INTERFACES;
use weft_os::interface::{self, InterfaceAddress};
use weft_os::similar_interfaces::{self, Kind};

/// Why a list of interfaces cannot be used, in words to follow "but".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// This machine lacks one of them; these are the interfaces that it has.
    NotHere(String),
    /// There are this many, which is too many.
    TooMany(usize),
}

impl fmt::Display for Unusable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHere(known) => write!(
                formatter,
                "this machine has {known}: name some of them, separated by commas"
            ),
            Self::TooMany(count) => write!(
                formatter,
                "at most {INTERFACES} interfaces are used together, not {count}: leave some out"
            ),
        }
    }
}

/// The interfaces that the user named, in that order: the addresses of each, IPv4 first. Empty if
/// the user named none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    named: Vec<Vec<IpAddr>>,
}

impl Interfaces {
    /// Reads a list of names or addresses, separated by commas. Endpoints get the address of the
    /// first one.
    ///
    /// # Errors
    /// What is wrong with the list.
    pub fn parse(text: &str) -> Result<Self, Unusable> {
        let all = interface::addresses().unwrap_or_default();
        let mut named: Vec<Vec<IpAddr>> = Vec::new();
        for word in text.split(',').map(str::trim) {
            let found = addresses_of(word, &all);
            if found.is_empty() {
                let known: Vec<String> = all
                    .iter()
                    .map(|entry| format!("{} ({})", entry.name, entry.address))
                    .collect();
                return Err(Unusable::NotHere(known.join(", ")));
            }
            if !named.contains(&found) {
                named.push(found);
            }
        }
        if named.len() > INTERFACES {
            return Err(Unusable::TooMany(named.len()));
        }
        Ok(Self { named })
    }

    /// Whether the user named any.
    pub fn are_named(&self) -> bool {
        !self.named.is_empty()
    }

    /// The first of the named addresses for which `wanted` is true.
    pub fn first(&self, wanted: impl Fn(&IpAddr) -> bool) -> Option<IpAddr> {
        self.named.iter().flatten().copied().find(wanted)
    }

    /// The addresses of one family that may be used together, where the first of them is known.
    /// Setup.
    fn of_family(&self, first: IpAddr) -> Vec<IpAddr> {
        if self.are_named() {
            let alike = |address: &&IpAddr| address.is_ipv4() == first.is_ipv4();
            let one = |addresses: &Vec<IpAddr>| addresses.iter().find(alike).copied();
            return self.named.iter().filter_map(one).collect();
        }
        let all = interface::addresses().unwrap_or_default();
        let others = similar_interfaces::others(first, &all, INTERFACES - 1, Kind::of).into_iter();
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

    #[test]
    fn interfaces_are_found_by_name_and_by_address_and_else_refused() {
        let here: IpAddr = "127.0.0.1".parse().expect("address");
        let one = Interfaces::parse("127.0.0.1").expect("loopback");
        assert_eq!(one.first(IpAddr::is_ipv4), Some(here));
        assert_eq!(one.first(IpAddr::is_ipv6), None);
        assert_eq!(
            Interfaces::parse("127.0.0.1, 127.0.0.1").expect("twice"),
            one
        );
        for text in [
            "weft-no-such-if0",
            "127.0.0.1,weft-no-such-if0",
            "127.0.0.1,",
            "",
        ] {
            let why = Interfaces::parse(text).expect_err("refused").to_string();
            assert!(
                why.contains("this machine has") && why.contains("127.0.0.1"),
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
