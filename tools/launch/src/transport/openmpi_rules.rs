// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The files of rules for Open MPI's collectives where ranks share cores, and who wants them.
//!
//! Called by `job.rs` and `ranks.rs`; `openmpi.rs` names the file to the ranks.

use std::path::PathBuf;

use super::Transport;
use crate::provider;
use crate::rank_arguments::RankArguments;

/// The file of rules by which collectives take as few turns of the ranks as they can; it lies
/// beside the provider. Over other transports than Weft fewer sizes gain by them, so there is a
/// file for those.
fn file_name(transport: &Transport) -> &'static str {
    match transport {
        Transport::Weft => "openmpi-shared-cores.rules",
        _ => "openmpi-shared-cores-native.rules",
    }
}

/// Variables that say something about collectives begin so.
const ABOUT_COLLECTIVES: &str = "OMPI_MCA_coll";

/// The rules for collectives of ranks that share cores: if they are beside the provider, and the
/// user neither wants a plain job nor has said how collectives are to go.
#[must_use]
pub fn wanted(rank: &RankArguments, transport: &Transport) -> Option<PathBuf> {
    if rank.plain || rank.says(|name| name.starts_with(ABOUT_COLLECTIVES)) {
        return None;
    }
    let folder = provider::find_for_this_process().ok()?;
    let rules = folder.join(file_name(transport));
    rules.is_file().then_some(rules)
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_name_only_what_they_announce() {
        check_rules(include_str!("../../openmpi-shared-cores.rules"));
        check_rules(include_str!("../../openmpi-shared-cores-native.rules"));
    }

    fn check_rules(text: &str) {
        let words = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or_default())
            .flat_map(str::split_whitespace);
        let mut numbers = words.map(|word| word.parse::<u32>().expect("a number"));
        let mut next = || numbers.next().expect("the file ends too early");
        let mut collectives = Vec::new();
        for _ in 0..next() {
            collectives.push(next());
            let mut ranks = 2;
            for _ in 0..next() {
                let more = next();
                assert!(more > ranks, "communicator sizes rise, from three on");
                ranks = more;
                for place in 0..next() {
                    let [bytes, algorithm, fan_out, segment_bytes] = [(); 4].map(|()| next());
                    assert_eq!(place == 0, bytes == 0, "sizes begin with 0");
                    assert!(algorithm <= 2 && fan_out == 0 && segment_bytes == 0);
                }
            }
        }
        assert_eq!(collectives, [2, 6, 7], "allreduce, barrier, bcast");
        assert_eq!(numbers.next(), None, "nothing follows the last rule");
    }
}
