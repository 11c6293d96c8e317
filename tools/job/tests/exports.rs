// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft import` reads what `weft export` wrote, and gets the same job, in all fields that both
//! know. Random jobs; a failure prints the case, and `PROPTEST_RNG_SEED=N` repeats a seed.

#[path = "jobs/random.rs"]
mod jobs;

use clap::Parser;
use proptest::prelude::*;
use weft_job::export::{Arguments, Exported};
use weft_job::import;
use weft_job::job::{Job, Mount};
use weft_job::size::ShmSize;
use weft_job::time::TimeLimit;
use weft_job::whole::Whole;
use weft_job::{Fault, JobFile, write};

use jobs::{jobs, whole};

fn file_of(job: &Job) -> JobFile {
    JobFile::from_text("job.yaml", &write::to_yaml(job).unwrap()).unwrap()
}

fn exported(words: &[&str], file: &JobFile) -> Result<Exported, Fault> {
    Arguments::try_parse_from(words)
        .unwrap()
        .target
        .text_of(file)
}

fn imported(text: &str, program: Vec<String>) -> Result<JobFile, Fault> {
    let arguments = import::Arguments {
        file: "back".into(),
        output: None,
        parameters: Vec::new(),
        queue: None,
        program,
    };
    import::read(&arguments, "back", text)
}

/// How many nodes AWS Batch is asked for.
fn nodes_of(job: &Job) -> u32 {
    let (ranks, each) = (
        job.ranks.map(Whole::get),
        job.ranks_per_node.map(Whole::get),
    );
    let needed = ranks.zip(each).map(|(ranks, each)| ranks.div_ceil(each));
    job.nodes.map(Whole::get).or(needed).unwrap_or(1)
}

/// What AWS Batch knows of a job without hosts, names aside.
fn known_to_batch(job: &Job) -> Job {
    let nodes = nodes_of(job);
    let mut kept = Job {
        name: None,
        nodes: Whole::new(nodes).filter(|_| nodes > 1),
        shm_size: job.shm_size.and_then(in_mib),
        time_limit: job.time_limit.and_then(in_seconds),
        retries: job.retries.filter(|retries| retries.get() > 0),
        array: None,
        dependencies: Vec::new(),
        ..job.clone()
    };
    if nodes == 1 {
        kept.environment
            .retain(|name, _| !name.starts_with("AWS_BATCH"));
    }
    kept
}

fn in_mib(size: ShmSize) -> Option<ShmSize> {
    ShmSize::of_mib(size.bytes().div_ceil(1 << 20))
}

fn in_seconds(limit: TimeLimit) -> Option<TimeLimit> {
    TimeLimit::of_seconds(limit.seconds().ceil().max(60.0))
}

fn mount_known_to_cluster(mount: &Mount) -> Mount {
    let rest = mount.source.trim_start_matches("s3://");
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let path = format!("{bucket}/{}", prefix.trim_matches('/'));
    let path = path.trim_end_matches('/');
    Mount {
        source: format!("s3://{path}"),
        target: format!("/mnt/{path}"),
        read_only: mount.read_only,
        shared_writes: false,
    }
}

prop_compose! {
    /// Jobs whose counts agree, without hosts: the other systems name their own.
    fn jobs_without_hosts()(
        job in jobs(),
        nodes in proptest::option::of(whole::<1, 64>()),
        ranks_per_node in proptest::option::of(whole::<1, 64>()),
        has_ranks in any::<bool>(),
    ) -> Job {
        let count = nodes.map_or(1, Whole::get) * ranks_per_node.map_or(1, Whole::get);
        let ranks = has_ranks.then(|| Whole::new(count).unwrap());
        let nodes = nodes.and_then(|nodes| Whole::new(nodes.get()));
        let ranks_per_node = ranks_per_node.and_then(|each| Whole::new(each.get()));
        Job { hosts: Vec::new(), nodes, ranks, ranks_per_node, ..job }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_definition_of_batch_is_read_as_the_job_that_it_was_made_of(job in jobs_without_hosts()) {
        let file = file_of(&job);
        let mut words = vec!["batch", "job.yaml", "--image", "i"];
        if !job.mounts.is_empty() {
            let refusal = exported(&words, &file).unwrap_err().to_string();
            prop_assert!(refusal.contains("--privileged makes it so"), "{}", refusal);
            words.push("--privileged");
        }
        let exported = match exported(&words, &file) {
            Ok(exported) => exported,
            Err(fault) => {
                // The one thing that a definition cannot say.
                prop_assert!(fault.to_string().contains("has Ref::"), "{}", fault);
                return Ok(());
            }
        };
        let back = imported(&exported.text, Vec::new());
        let failed = |fault| TestCaseError::fail(format!("{fault}\n{}", exported.text));
        let back = back.map_err(failed)?;
        let mut wanted = known_to_batch(&job);
        wanted.name = back.job.name.clone();
        prop_assert_eq!(&back.job, &wanted, "{}", exported.text);
        let own = job.name.filter(|name| !name.contains('.'));
        if let Some(name) = own.filter(|name| name == name.trim_matches(['-', '_'])) {
            prop_assert_eq!(back.job.name, Some(name));
        }
    }

    #[test]
    fn a_cluster_is_read_as_what_it_was_made_of(job in jobs_without_hosts()) {
        let words = ["parallelcluster", "job.yaml", "--instance-type", "t", "--subnet", "s"];
        let exported = exported(&words, &file_of(&job)).unwrap();
        let program = [vec![job.program.clone()], job.arguments.clone()].concat();
        let back = imported(&exported.text, program);
        let mounts: Vec<Mount> = job.mounts.iter().map(mount_known_to_cluster).collect();
        let wanted = Job {
            arguments: job.arguments.clone(),
            nodes: Whole::new(nodes_of(&job)),
            mounts,
            ..Job::of(job.program.clone())
        };
        // A prefix such as `a/../b` cannot be the name of a folder, wherever it stands.
        let is_possible = JobFile::from_text("wanted", &write::to_yaml(&wanted).unwrap()).is_ok();
        match back {
            Ok(back) => prop_assert_eq!(&back.job, &wanted, "{}", exported.text),
            Err(fault) => prop_assert!(!is_possible, "{}\n{}", fault, exported.text),
        }
    }

    /// Nothing panics, and each note and refusal is one line.
    #[test]
    fn every_job_is_exported_or_refused_in_one_line(job in jobs()) {
        let file = file_of(&job);
        for words in [
            &["batch", "j", "--image", "i", "--efa"][..],
            &["batch-submit", "j", "--job-queue", "q"],
            &["parallelcluster", "j", "--instance-type", "t", "--subnet", "s", "--efa"],
            &["trainjob", "j", "--image", "i", "--memory", "64g"],
            &["mpijob", "j", "--image", "i", "--cpus", "4"],
            &["slurm-shm", "j", "--slurm", "26.05"],
            &["slurm-shm", "j", "--slurm", "22.05"],
        ] {
            match exported(words, &file) {
                Ok(exported) => {
                    let lines = exported.notes.iter().map(ToString::to_string);
                    prop_assert!(lines.into_iter().all(|line| !line.contains(char::is_control)));
                    prop_assert!(exported.text.ends_with('\n'));
                }
                Err(fault) => prop_assert!(!fault.to_string().contains(char::is_control)),
            }
        }
    }
}
