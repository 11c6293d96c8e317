// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a partition allows. A job that can never start there is refused before it is queued,
//! because Slurm itself would let it wait for ever (slurm.conf(5), EnforcePartLimits=NO).
//!
//! Called by `submit.rs`. Source: scontrol(1), `show partition --oneliner`.

use crate::command;
use crate::fault::Fault;
use crate::fields::Fields;

/// One partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    name: String,
    is_default: bool,
    is_up: bool,
    /// `None` where there is no limit.
    most_seconds: Option<u64>,
    default_seconds: Option<u64>,
    most_nodes: Option<u64>,
    nodes: u64,
}

/// What a job asks of a partition.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// Its name; the default one if none is named.
    pub name: Option<&'a str>,
    /// Nodes, where the job says how many.
    pub nodes: Option<u64>,
    /// Time in seconds, where the job says how long.
    pub seconds: Option<u64>,
}

/// Asks Slurm for all partitions.
///
/// # Errors
/// `Fault::Slurm` where the controller does not answer.
pub fn all() -> Result<Vec<Partition>, Fault> {
    let answer = command::ask("scontrol", &["show", "partition", "--oneliner"])?;
    Ok(read(&answer.or_fail("scontrol show partition")?))
}

fn read(text: &str) -> Vec<Partition> {
    text.lines().filter_map(read_line).collect()
}

fn read_line(line: &str) -> Option<Partition> {
    let fields = Fields::of(line);
    Some(Partition {
        name: fields.get("PartitionName")?.to_owned(),
        is_default: fields.get("Default") == Some("YES"),
        is_up: fields.get("State") == Some("UP"),
        most_seconds: fields.get("MaxTime").and_then(seconds),
        default_seconds: fields.get("DefaultTime").and_then(seconds),
        most_nodes: fields.get("MaxNodes").and_then(|text| text.parse().ok()),
        nodes: fields.get("TotalNodes")?.parse().ok()?,
    })
}

/// Slurm's times: `[days-]hours:minutes:seconds`, `minutes:seconds`, `minutes`, `days-hours`;
/// `None` for words such as UNLIMITED.
#[must_use]
pub fn seconds(text: &str) -> Option<u64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (Some(days.parse::<u64>().ok()?), rest),
        None => (None, text),
    };
    let parts: Vec<u64> = rest
        .split(':')
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match (days.is_some(), &parts[..]) {
        (_, &[hours, minutes, seconds]) => (hours, minutes, seconds),
        (true, &[hours, minutes]) => (hours, minutes, 0),
        (true, &[hours]) => (hours, 0, 0),
        (false, &[minutes, seconds]) => (0, minutes, seconds),
        (false, &[minutes]) => (0, minutes, 0),
        _ => return None,
    };
    let hours = days.unwrap_or(0).checked_mul(24)?.checked_add(hours)?;
    let minutes = hours.checked_mul(60)?.checked_add(minutes)?;
    minutes.checked_mul(60)?.checked_add(seconds)
}

/// A number of seconds as Slurm writes it.
fn in_slurms_words(seconds: u64) -> String {
    let (minutes, rest) = (seconds / 60, seconds % 60);
    format!("{}:{:02}:{rest:02}", minutes / 60, minutes % 60)
}

/// The time limit, in seconds, that the job will have; `None` where it has none.
///
/// # Errors
/// `Fault::Usage` for a partition that does not exist or is down, and for more nodes or time than
/// it ever gives.
pub fn check(partitions: &[Partition], request: &Request<'_>) -> Result<Option<u64>, Fault> {
    let wrong = |text: String| Err(Fault::Usage(text));
    let names = || {
        let names: Vec<&str> = partitions.iter().map(|one| one.name.as_str()).collect();
        names.join(", ")
    };
    let found = match request.name {
        // Slurm takes the first of several that has room.
        Some(name) if name.contains(',') => return Ok(request.seconds),
        Some(name) => partitions.iter().find(|one| one.name == name),
        None => partitions.iter().find(|one| one.is_default),
    };
    let Some(one) = found else {
        return match request.name {
            Some(name) => wrong(format!(
                "--partition {name}: this cluster has no such partition; it has {}",
                names()
            )),
            None => wrong(format!(
                "this cluster has no default partition; name one with --partition: {}",
                names()
            )),
        };
    };
    let name = &one.name;
    if !one.is_up {
        return wrong(format!(
            "--partition {name}: it takes no jobs now (sinfo -p {name}); the cluster has {}",
            names()
        ));
    }
    let most_nodes = one.most_nodes.unwrap_or(one.nodes).min(one.nodes);
    if let Some(nodes) = request.nodes.filter(|&nodes| nodes > most_nodes) {
        return wrong(format!(
            "--nodes {nodes}: partition {name} gives a job {most_nodes} at most; ask for fewer, or \
             name another partition: {}",
            names()
        ));
    }
    if let (Some(seconds), Some(most)) = (request.seconds, one.most_seconds)
        && seconds > most
    {
        return wrong(format!(
            "--time {}: partition {name} gives a job {} at most; ask for less, or name another \
             partition: {}",
            in_slurms_words(seconds),
            in_slurms_words(most),
            names()
        ));
    }
    Ok(request.seconds.or(one.default_seconds).or(one.most_seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "\
PartitionName=p AllowGroups=ALL Default=YES DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=00:05:00 \
 Nodes=n[1-2] State=UP TotalCPUs=4 TotalNodes=2
PartitionName=long Default=NO DefaultTime=01:00:00 MaxNodes=8 MaxTime=7-00:00:00 State=UP \
 TotalNodes=90
PartitionName=old Default=NO MaxTime=UNLIMITED MaxNodes=1 State=DOWN TotalNodes=1
";

    #[test]
    fn the_limit_is_the_jobs_else_the_partitions() {
        let all = read(TWO);
        assert_eq!(all.len(), 3);
        let limit = |name, seconds| {
            let request = Request {
                name,
                seconds,
                nodes: Some(2),
            };
            check(&all, &request).unwrap()
        };
        assert_eq!(limit(None, None), Some(300));
        assert_eq!(limit(Some("long"), None), Some(3600));
        assert_eq!(limit(Some("long"), Some(60)), Some(60));
        assert_eq!(limit(Some("p,long"), Some(60)), Some(60));
    }

    #[test]
    fn what_a_partition_never_gives_is_refused_with_value_and_limit() {
        let all = read(TWO);
        for (name, nodes, seconds, said) in [
            (
                Some("q"),
                1,
                1,
                "--partition q: this cluster has no such partition; it has p, long",
            ),
            (Some("old"), 1, 1, "takes no jobs now"),
            (None, 3, 1, "--nodes 3: partition p gives a job 2 at most"),
            (Some("long"), 9, 1, "gives a job 8 at most"),
            (
                None,
                1,
                301,
                "--time 0:05:01: partition p gives a job 0:05:00 at most",
            ),
        ] {
            let request = Request {
                name,
                nodes: Some(nodes),
                seconds: Some(seconds),
            };
            let text = check(&all, &request).unwrap_err().to_string();
            assert!(text.contains(said), "{text}");
        }
        let text = check(&all[1..], &Request::default())
            .unwrap_err()
            .to_string();
        assert!(text.contains("no default partition"), "{text}");
    }

    #[test]
    fn slurms_times_are_read() {
        for (text, wanted) in [
            ("90", Some(5400)),
            ("1:30", Some(90)),
            ("1:00:00", Some(3600)),
            ("1-0", Some(86400)),
            ("1-2:03", Some(93780)),
            ("7-00:00:00", Some(604_800)),
            ("UNLIMITED", None),
            ("1:2:3:4", None),
            ("", None),
            ("99999999999999999-0", None),
        ] {
            assert_eq!(seconds(text), wanted, "{text}");
        }
    }
}
