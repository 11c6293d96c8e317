// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the launcher and the system say of the ranks of this node. Looked at once, when a transport
//! is opened.

use weft_os::cpu;

/// Looks for the next piece or chunk of a message that is under way. Chosen: about the time in
/// which a piece is copied; coming back through the application takes as long, and the piece is
/// there before.
const PATIENT_LOOKS: u32 = 64;

/// Ranks of a node up to which lanes have their pages from first contact on. Chosen: 32 MiB in all,
/// at two lanes each.
const FEW_RANKS: u32 = 8;

/// The ranks of this node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// Whether they need more processors than there are.
    pub(crate) shares_cores: bool,
    /// Whether they are known to be so few that lanes may have their pages before they need them.
    pub(crate) has_few_ranks: bool,
}

impl Node {
    /// Asks the environment and the system. Set-up.
    pub(crate) fn look() -> Self {
        let ranks = cpu::ranks_of_node();
        let shares_cores = cpu::ranks_share_cores();
        Self {
            shares_cores,
            has_few_ranks: !shares_cores && ranks.is_some_and(|ranks| ranks <= FEW_RANKS),
        }
    }

    /// How often to look for the rest of a message whose first part is here, before the application
    /// gets its turn.
    #[inline(always)]
    pub(crate) fn patience(self) -> u32 {
        if self.shares_cores { 0 } else { PATIENT_LOOKS }
    }
}
