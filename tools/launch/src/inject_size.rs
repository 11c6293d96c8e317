// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long the messages may be that MPICH and Intel MPI inject, where no rank has another one on
//! its host.
//!
//! Both wait for the delivery of what is longer than an inject, so that MPI_Send takes a round trip
//! between hosts. Inside a host longer injects cost a copy more, so jobs with several ranks on a
//! host keep the provider's default (docs/adr/0020). Called by `job.rs` and `ranks.rs`.

use weft_facts::parameter::INJECT_SIZE;

use crate::environment::Environment;
use crate::family::Family;
use crate::rank_arguments::RankArguments;
use crate::transport::Transport;

/// What is set. Measured: with 64 KiB a message of that length takes 0.8 to 1.0 of the time, but a
/// stream of them under MPICH had 0.66 of the rate; up to 32 KiB streams keep theirs
/// (docs/adr/0020).
const SINGLE_RANK_BYTES: u32 = 32 << 10;

/// Sets it for the ranks of a job of which each host has `most` at most, unless the user has set it
/// or wants a plain job.
pub(crate) fn add(
    ranks: &mut Environment,
    family: Family,
    transport: &Transport,
    most: u32,
    rank: &RankArguments,
) {
    let waits_for_delivery = matches!(family, Family::Mpich | Family::Intel);
    let is_ours = *transport == Transport::Weft && !rank.plain;
    if waits_for_delivery && is_ours && most == 1 && !rank.says(|name| name == INJECT_SIZE.variable)
    {
        ranks.set(INJECT_SIZE.variable, SINGLE_RANK_BYTES.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank_arguments::Variable;

    fn set(family: Family, transport: &Transport, most: u32, rank: &RankArguments) -> bool {
        let mut ranks = Environment::default();
        add(&mut ranks, family, transport, most, rank);
        ranks.value(INJECT_SIZE.variable).is_some()
    }

    #[test]
    fn only_single_ranks_of_mpis_that_wait_for_delivery_inject_more() {
        let rank = RankArguments::without_preloads();
        let weft = Transport::Weft;
        for (family, most, expected) in [
            (Family::Mpich, 1, true),
            (Family::Intel, 1, true),
            (Family::Mpich, 2, false),
            (Family::OpenMpi, 1, false),
        ] {
            assert_eq!(set(family, &weft, most, &rank), expected, "{family} {most}");
        }
        assert!(!set(Family::Mpich, &Transport::Tcp, 1, &rank));
    }

    #[test]
    fn what_the_user_set_counts_and_a_plain_job_is_plain() {
        let mut rank = RankArguments::without_preloads();
        rank.variables = vec![Variable {
            name: "FI_WEFT_INJECT_SIZE".to_owned(),
            value: "4096".into(),
        }];
        assert!(!set(Family::Mpich, &Transport::Weft, 1, &rank));
        rank = RankArguments::without_preloads();
        rank.plain = true;
        assert!(!set(Family::Mpich, &Transport::Weft, 1, &rank));
    }
}
