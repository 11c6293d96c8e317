// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which hosts' mounts of a job fetch together, and where each of them listens
//! (docs/job-cache.md). The list goes to each `weft-mount` on its command line; the key by which
//! they know each other is in the environment alone.
//!
//! `plan.rs` makes the list of a job of `weft run --hosts`, `member.rs` reads Slurm's.

use serde::{Deserialize, Serialize};

/// Chosen: below the ports that Linux gives to whoever asks for any (32768 on), and above those of
/// most services.
const FIRST_PORT: u64 = 20_000;
/// Chosen: up to 32,000, with those that [`Nodes::options`] adds.
const PORTS: u64 = 11_700;
/// Chosen: two names of one machine, and two buckets of one host, have different ports, as far as
/// there are no more of them than this.
const APART: usize = 16;
/// Chosen: hosts of a job; more in a list of Slurm's are not believed.
const HOSTS: usize = 65_536;

/// The hosts of a job, as one of them sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nodes {
    hosts: Vec<String>,
    own: usize,
    first_port: u16,
}

impl Nodes {
    /// These hosts, seen from `own`; nothing where that is none of them, or they are fewer than
    /// two. `seed` is the same on each host of the job and another for the next job.
    pub(crate) fn new(hosts: Vec<String>, own: &str, seed: u64) -> Option<Self> {
        let own = hosts.iter().position(|host| host == own)?;
        let first_port = u16::try_from(FIRST_PORT + seed % PORTS).ok()?;
        (hosts.len() > 1).then_some(Self {
            hosts,
            own,
            first_port,
        })
    }

    /// The same job, seen from another host.
    pub(crate) fn seen_from(self, host: &str) -> Option<Self> {
        let seed = u64::from(self.first_port) - FIRST_PORT;
        Self::new(self.hosts, host, seed)
    }

    /// The nodes of a step of Slurm, as its variables say (srun(1), "OUTPUT ENVIRONMENT
    /// VARIABLES").
    pub(crate) fn of_slurm(get: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let hosts = hosts_of(&get("SLURM_STEP_NODELIST")?)?;
        let number = |name| get(name)?.parse::<u64>().ok();
        let (job, step) = (number("SLURM_JOB_ID")?, number("SLURM_STEP_ID")?);
        // Neighbouring jobs and steps are at once on one host.
        let seed = job.wrapping_mul(7919).wrapping_add(step.wrapping_mul(257));
        Self::new(hosts, &get("SLURMD_NODENAME")?, seed)
    }

    /// What `weft-mount` is told for the bucket with this number.
    pub(crate) fn options(&self, bucket: usize) -> [String; 2] {
        let port =
            |node: usize| usize::from(self.first_port) + node % APART * APART + bucket % APART;
        let hosts = self.hosts.iter().enumerate();
        let nodes: Vec<String> = hosts
            .map(|(node, host)| format!("{host}:{}", port(node)))
            .collect();
        [
            format!("--job-nodes={}", nodes.join(",")),
            format!("--job-node={}", self.own),
        ]
    }
}

/// The hosts of a list as Slurm writes it: `n[1-3,07-09],login` (scontrol(1), "show hostlist").
fn hosts_of(list: &str) -> Option<Vec<String>> {
    let mut hosts = Vec::new();
    let mut rest = list;
    while !rest.is_empty() {
        let mut depth = 0;
        let is_end = |letter: char| {
            depth += i32::from(letter == '[') - i32::from(letter == ']');
            letter == ',' && depth == 0
        };
        let end = rest.find(is_end).unwrap_or(rest.len());
        expand(&rest[..end], &mut hosts)?;
        rest = rest[end..].strip_prefix(',').unwrap_or_default();
    }
    Some(hosts)
}

/// One word of such a list; `None` for what is none.
fn expand(word: &str, hosts: &mut Vec<String>) -> Option<()> {
    let Some((before, rest)) = word.split_once('[') else {
        hosts.push(word.to_owned());
        return (hosts.len() <= HOSTS && !word.is_empty()).then_some(());
    };
    let (ranges, behind) = rest.split_once(']')?;
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let width = first.len();
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if first > last || (last - first) as usize >= HOSTS {
            return None;
        }
        for number in first..=last {
            expand(&format!("{before}{number:0width$}{behind}"), hosts)?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_slurm_are_expanded_and_what_is_none_is_refused() {
        for (list, hosts) in [
            ("a", vec!["a"]),
            ("n[1-3],m", vec!["n1", "n2", "n3", "m"]),
            ("n[08-10,2]", vec!["n08", "n09", "n10", "n2"]),
            ("r[1-2]n[5,7]", vec!["r1n5", "r1n7", "r2n5", "r2n7"]),
        ] {
            assert_eq!(hosts_of(list).unwrap(), hosts, "{list}");
        }
        for wrong in ["n[1-", "n[3-1]", "n[a-b]", "n[1-4000000000]", "a,,b", "n[]"] {
            assert_eq!(hosts_of(wrong), None, "{wrong}");
        }
        let many = "n[1-60000]m[1-60000]";
        assert_eq!(hosts_of(many), None, "more than can be");
    }

    #[test]
    fn hosts_of_a_job_agree_on_places_and_ports() {
        let slurm = |own: &'static str| {
            Nodes::of_slurm(move |name| {
                let value = match name {
                    "SLURM_STEP_NODELIST" => "n[1-3]",
                    "SLURM_JOB_ID" => "4242",
                    "SLURM_STEP_ID" => "1",
                    "SLURMD_NODENAME" => own,
                    _ => return None,
                };
                Some(value.to_owned())
            })
        };
        let (one, two) = (slurm("n1").unwrap(), slurm("n2").unwrap());
        assert_eq!(one.options(0)[0], two.options(0)[0]);
        assert_eq!(
            (&*one.options(0)[1], &*two.options(0)[1]),
            ("--job-node=0", "--job-node=1")
        );
        assert_ne!(one.options(0)[0], one.options(1)[0], "two buckets");
        assert_eq!(one.clone().seen_from("n2"), Some(two));
        assert_eq!(one.seen_from("m"), None);
        assert_eq!(slurm("login"), None);
        assert_eq!(Nodes::new(vec!["a".to_owned()], "a", 1), None, "alone");
    }
}
