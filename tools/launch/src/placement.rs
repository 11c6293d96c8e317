// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How many ranks each host gets: a pure decision from the hosts' slots, `-n` and `--ppn`.
//!
//! Called by `lib.rs` with the list of `hosts.rs`; what it decides is told to each MPI by
//! `several_hosts.rs`.

use crate::fault::Fault;
use crate::hosts::Host;

/// A host with the ranks that it gets: at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The host's name.
    pub host: String,
    /// Ranks on it.
    pub ranks: u32,
}

/// Shares out the ranks, in the order of the hosts, which is the order of the ranks too. Hosts that
/// get none are left out.
///
/// `--ppn` fills each host with that many; without it the slots count; without slots the ranks are
/// spread evenly.
///
/// # Errors
/// `Fault::Usage` when the hosts do not hold `ranks`, or when nothing says how many to start.
pub fn place(hosts: &[Host], ranks: Option<u32>, ppn: Option<u32>) -> Result<Vec<Share>, Fault> {
    if ranks == Some(0) || ppn == Some(0) {
        return Err(Fault::Usage(
            "-n 0 or --ppn 0: a job has at least 1 rank".into(),
        ));
    }
    let known: Vec<u32> = hosts.iter().filter_map(|host| host.slots).collect();
    let capacity: Vec<u32> = match (ppn, ranks) {
        (Some(ppn), _) => vec![ppn; hosts.len()],
        (None, _) if known.len() == hosts.len() => known,
        (None, _) if !known.is_empty() => return Err(partly_known(hosts)),
        (None, Some(ranks)) => evenly(ranks, hosts.len()),
        (None, None) => {
            return Err(Fault::Usage(
                "the number of ranks is missing: give -n N (in all) or --ppn N (on each host), or \
                 give the hosts slots, as in --hosts a:4,b:4"
                    .into(),
            ));
        }
    };
    let sum: u64 = capacity.iter().map(|&one| u64::from(one)).sum();
    let wanted = ranks.map_or(sum, u64::from);
    if wanted > sum {
        return Err(Fault::Usage(format!(
            "-n {wanted} is more than {} hold{}, {sum} in all; {}",
            if hosts.len() == 1 {
                "the host".to_owned()
            } else {
                format!("the {} hosts", hosts.len())
            },
            if hosts.len() == 1 { "s" } else { "" },
            if ppn.is_some() {
                "raise --ppn or name more hosts"
            } else {
                "raise their slots, say --ppn, or name more hosts"
            }
        )));
    }
    let shares = fill(hosts, &capacity, wanted);
    check_limits(hosts, &shares)?;
    Ok(shares)
}

fn partly_known(hosts: &[Host]) -> Fault {
    let bare: Vec<&str> = hosts
        .iter()
        .filter(|host| host.slots.is_none())
        .map(|host| host.name.as_str())
        .collect();
    Fault::Usage(format!(
        "some hosts have a number of slots and {} none; give each one, or say --ppn N",
        bare.join(", ")
    ))
}

/// Differs by one at most; the first hosts get the larger part.
fn evenly(ranks: u32, hosts: usize) -> Vec<u32> {
    let count = u32::try_from(hosts).unwrap_or(u32::MAX).max(1);
    (0..count)
        .map(|index| ranks / count + u32::from(index < ranks % count))
        .collect()
}

fn fill(hosts: &[Host], capacity: &[u32], wanted: u64) -> Vec<Share> {
    let mut left = wanted;
    let mut shares = Vec::new();
    for (host, &most) in hosts.iter().zip(capacity) {
        let ranks = u32::try_from(left.min(u64::from(most))).unwrap_or(most);
        left -= u64::from(ranks);
        if ranks > 0 {
            shares.push(Share {
                host: host.name.clone(),
                ranks,
            });
        }
    }
    shares
}

fn check_limits(hosts: &[Host], shares: &[Share]) -> Result<(), Fault> {
    for share in shares {
        let most = hosts
            .iter()
            .find(|host| host.name == share.host)
            .and_then(|host| host.most);
        if let Some(most) = most.filter(|&most| share.ranks > most) {
            return Err(Fault::Usage(format!(
                "host {} would get {} ranks, more than its max_slots={most}",
                share.host, share.ranks
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::from_list;

    fn placed(
        list: &str,
        ranks: Option<u32>,
        ppn: Option<u32>,
    ) -> Result<Vec<(String, u32)>, String> {
        place(&from_list(list).unwrap(), ranks, ppn)
            .map(|shares| {
                shares
                    .into_iter()
                    .map(|share| (share.host, share.ranks))
                    .collect()
            })
            .map_err(|fault| fault.to_string())
    }

    fn shares(list: &[(&str, u32)]) -> Vec<(String, u32)> {
        list.iter()
            .map(|&(name, ranks)| (name.to_owned(), ranks))
            .collect()
    }

    #[test]
    fn ppn_fills_each_host_in_turn() {
        assert_eq!(
            placed("a,b", None, Some(2)).unwrap(),
            shares(&[("a", 2), ("b", 2)])
        );
        assert_eq!(
            placed("a,b,c", Some(3), Some(2)).unwrap(),
            shares(&[("a", 2), ("b", 1)])
        );
        assert_eq!(
            placed("a:1,b:1", None, Some(2)).unwrap(),
            shares(&[("a", 2), ("b", 2)])
        );
    }

    #[test]
    fn slots_count_without_ppn() {
        assert_eq!(
            placed("a:3,b:1", None, None).unwrap(),
            shares(&[("a", 3), ("b", 1)])
        );
        assert_eq!(
            placed("a:3,b:1", Some(2), None).unwrap(),
            shares(&[("a", 2)])
        );
    }

    #[test]
    fn without_either_the_ranks_are_spread_evenly() {
        assert_eq!(
            placed("a,b,c", Some(5), None).unwrap(),
            shares(&[("a", 2), ("b", 2), ("c", 1)])
        );
        assert_eq!(placed("a,b", Some(1), None).unwrap(), shares(&[("a", 1)]));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_numbers() {
        assert!(
            placed("a:1,b:1", Some(3), None)
                .unwrap_err()
                .contains("2 in all")
        );
        assert!(
            placed("a,b", Some(5), Some(2))
                .unwrap_err()
                .contains("4 in all")
        );
        assert!(placed("a,b", None, None).unwrap_err().contains("--ppn"));
        assert!(
            placed("a:2,b,c", Some(3), None)
                .unwrap_err()
                .contains("b, c")
        );
        assert!(placed("a,b", Some(0), None).is_err() && placed("a", None, Some(0)).is_err());
    }

    #[test]
    fn a_limit_holds_against_ppn() {
        let hosts = [Host {
            name: "a".into(),
            slots: Some(1),
            most: Some(2),
        }];
        assert!(place(&hosts, None, Some(2)).is_ok());
        assert!(
            place(&hosts, None, Some(3))
                .unwrap_err()
                .to_string()
                .contains("max_slots=2")
        );
    }
}
