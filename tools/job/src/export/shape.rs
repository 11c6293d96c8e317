// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How many nodes and ranks a job has, from those of its fields that say so.

use std::collections::BTreeMap;

use crate::job::Job;

/// Nodes and ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// At least 1.
    pub nodes: u32,
    /// Ranks on the fullest node, at least 1. A job that does not say has one on each.
    pub ranks_per_node: u32,
}

impl Shape {
    pub(super) fn of(job: &Job) -> Self {
        let ranks = job.ranks.map(|ranks| ranks.get());
        let each = job.ranks_per_node.map(|each| each.get());
        let slots = slots_of(&job.hosts);
        let listed = u32::try_from(slots.len()).ok().filter(|&count| count > 0);
        let needed = ranks.zip(each).map(|(ranks, each)| ranks.div_ceil(each));
        let nodes = job.nodes.map(|nodes| nodes.get());
        let nodes = nodes.or(listed).or(needed).unwrap_or(1);
        let most_slots = slots.values().copied().max();
        let spread = ranks.map(|ranks| ranks.div_ceil(nodes));
        let ranks_per_node = each.or(spread).or(most_slots).unwrap_or(1);
        Self {
            nodes,
            ranks_per_node,
        }
    }
}

/// Each host once, with the sum of the ranks that its entries name; one where they name none.
fn slots_of(hosts: &[String]) -> BTreeMap<&str, u32> {
    let mut slots = BTreeMap::new();
    for host in hosts {
        let (name, count) = host.split_once(':').unwrap_or((host, "1"));
        let count: u32 = count.parse().unwrap_or(1);
        let sum: &mut u32 = slots.entry(name).or_insert(0);
        *sum = sum.saturating_add(count.max(1));
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::JobFile;

    #[test]
    fn nodes_and_ranks_come_from_whichever_fields_say_so() {
        for (fields, nodes, ranks_per_node) in [
            ("", 1, 1),
            ("ranks: 8", 1, 8),
            ("nodes: 3", 3, 1),
            ("ranks: 7\nnodes: 2", 2, 4),
            ("ranks: 9\nranks_per_node: 4", 3, 4),
            ("ranks_per_node: 4", 1, 4),
            ("hosts: [a, b]\nranks: 8", 2, 4),
            ("hosts: ['a:4', 'b:2', 'a:1']", 2, 5),
        ] {
            let text = format!("version: 1\nprogram: x\n{fields}\n");
            let shape = Shape::of(&JobFile::from_text("job", &text).unwrap().job);
            let found = (shape.nodes, shape.ranks_per_node);
            assert_eq!(found, (nodes, ranks_per_node), "{fields}");
        }
    }
}
