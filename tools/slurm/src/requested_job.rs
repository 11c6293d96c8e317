// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The job to submit: a job file, and the options, which have precedence over it.
//!
//! Called by `submit.rs`. Nothing here asks Slurm.

use weft_job::JobFile;
use weft_job::job::Job;
use weft_job::mount::check_all;
use weft_job::time::TimeLimit;
use weft_job::whole::Whole;
use weft_launch::mpi_choice::MpiChoice;
use weft_launch::rank_arguments::Heap;

use crate::arguments::SubmitArguments;
use crate::fault::Fault;
use crate::partition;

/// What is to be submitted.
#[derive(Debug)]
pub struct RequestedJob {
    /// The job.
    pub job: Job,
    /// Options for the script that no field of a job stands for.
    pub options: Vec<String>,
    /// Options for `weft exec`.
    pub exec_options: Vec<String>,
    /// The MPI that was asked for.
    pub mpi: MpiChoice,
    /// The job file, for errors.
    file: Option<JobFile>,
}

impl RequestedJob {
    /// Nodes, where the job says how many.
    #[must_use]
    pub fn nodes(&self) -> Option<u64> {
        let ranks = self.job.ranks.zip(self.job.ranks_per_node);
        let of_ranks = ranks.map(|(ranks, each)| ranks.get().div_ceil(each.get()));
        self.job.nodes.map(u32::from).or(of_ranks).map(u64::from)
    }

    /// The time limit in seconds.
    #[must_use]
    pub fn seconds(&self) -> Option<u64> {
        self.job
            .time_limit
            .map(|limit| limit.seconds().ceil() as u64)
    }

    /// The fault with its place in the job file.
    #[must_use]
    pub fn named(&self, fault: weft_job::Fault) -> Fault {
        match &self.file {
            Some(file) => Fault::Usage(file.placed(fault).to_string()),
            None => fault.into(),
        }
    }
}

/// Reads the job file, if there is one, and puts the options over it. Goes to the folder of the
/// job, where relative paths begin.
///
/// # Errors
/// What is wrong with the file or the options.
pub fn of(arguments: &SubmitArguments) -> Result<RequestedJob, Fault> {
    let file = arguments.spec.as_deref().map(read).transpose()?;
    let mut job = match &file {
        Some(file) => file.job.clone(),
        None => Job::of(String::new()),
    };
    for note in file.iter().flat_map(|file| &file.notes) {
        crate::say(&format!("weft: note: {note}"));
    }
    if let Some((program, rest)) = arguments.program.split_first() {
        job.program = program.clone();
        job.arguments = rest.to_vec();
    }
    put_over(&mut job, arguments)?;
    check_counts(&job)?;
    enter(&mut job)?;
    let mpi = job.mpi.as_deref().unwrap_or("auto");
    let mpi = mpi
        .parse()
        .map_err(|why: String| Fault::Usage(format!("--mpi {why}")))?;
    Ok(RequestedJob {
        options: options(arguments),
        exec_options: exec_options(arguments),
        job,
        mpi,
        file,
    })
}

fn read(path: &std::path::Path) -> Result<JobFile, Fault> {
    JobFile::read(path).map_err(|unread| match unread {
        weft_job::Unread::File { path, source } => Fault::Slurm(format!(
            "--spec {} cannot be read: {source}",
            path.display()
        )),
        wrong => Fault::Usage(wrong.to_string()),
    })
}

/// Each field that an option names.
fn put_over(job: &mut Job, arguments: &SubmitArguments) -> Result<(), Fault> {
    job.ranks = arguments.ranks.and_then(Whole::new).or(job.ranks);
    job.ranks_per_node = arguments.ppn.and_then(Whole::new).or(job.ranks_per_node);
    if arguments.nodes.is_some() {
        job.nodes = arguments.nodes.and_then(Whole::new);
        job.hosts.clear();
    }
    job.retries = arguments.retries.and_then(Whole::new).or(job.retries);
    job.name = arguments.name.clone().or(job.name.take());
    job.transport = arguments.transport.clone().or(job.transport.take());
    job.shm_size = arguments.shm_size.or(job.shm_size);
    if !arguments.mounts.is_empty() {
        job.mounts.clone_from(&arguments.mounts);
        check_all(&job.mounts).map_err(|why| Fault::Usage(format!("--mount: {}", why.text())))?;
    }
    if let Some(folder) = &arguments.folder {
        job.folder = Some(folder.to_string_lossy().into_owned());
    }
    if let Some(time) = &arguments.time {
        job.time_limit = Some(time_limit(time)?);
    }
    if arguments.array.is_some() {
        job.array = None;
    }
    if arguments.dependency.is_some() {
        job.dependencies.clear();
    }
    if arguments.rank.mpi != MpiChoice::Auto {
        job.mpi = Some(arguments.rank.mpi.to_string());
    }
    for variable in &arguments.rank.variables {
        job.environment
            .insert(variable.name.clone(), variable.value.clone());
    }
    if job.name.is_none() {
        let program = std::path::Path::new(&job.program).file_name();
        job.name = program.map(|name| name.to_string_lossy().into_owned());
    }
    Ok(())
}

/// Slurm's way of writing a time, or that of job files.
fn time_limit(text: &str) -> Result<TimeLimit, Fault> {
    let has_unit = text.ends_with(|one: char| one.is_ascii_alphabetic());
    let read = if has_unit {
        text.parse::<TimeLimit>().ok()
    } else {
        let seconds = partition::seconds(text);
        seconds.and_then(|seconds| TimeLimit::of_seconds(seconds as f64))
    };
    read.ok_or_else(|| {
        Fault::Usage(format!(
            "--time {text}: it must be more than 0 and at most ten years, as sbatch writes it (30 \
             is 30 minutes, 1:30:00, 2-00:00:00) or with units (1h30m)"
        ))
    })
}

fn check_counts(job: &Job) -> Result<(), Fault> {
    if let (Some(ranks), Some(nodes)) = (job.ranks, job.nodes) {
        let each = job.ranks_per_node.map(u32::from);
        let most = each.map(|each| u64::from(each) * u64::from(nodes.get()));
        if ranks.get() < nodes.get() {
            return Err(Fault::Usage(format!(
                "-n {ranks} with --nodes {nodes}: some nodes would have no rank; ask for {ranks} \
                 nodes at most"
            )));
        }
        if let Some(most) = most.filter(|&most| u64::from(ranks.get()) > most) {
            return Err(Fault::Usage(format!(
                "-n {ranks} with --nodes {nodes} and --ppn {}: they hold {most} ranks; leave one \
                 of the three out",
                each.unwrap_or(0)
            )));
        }
    }
    Ok(())
}

/// Goes where the job runs.
fn enter(job: &mut Job) -> Result<(), Fault> {
    let Some(folder) = &mut job.folder else {
        return Ok(());
    };
    let wrong = |error: std::io::Error| Fault::Usage(format!("--wdir {folder}: {error}"));
    let path = std::path::absolute(&*folder).map_err(wrong)?;
    std::env::set_current_dir(&path).map_err(wrong)?;
    *folder = path.to_string_lossy().into_owned();
    Ok(())
}

/// What sbatch has an option for and a job no field; the user's own come last.
fn options(arguments: &SubmitArguments) -> Vec<String> {
    let named = [
        ("partition", &arguments.partition),
        ("array", &arguments.array),
        ("dependency", &arguments.dependency),
        ("output", &arguments.output),
    ];
    let own = named.into_iter().filter_map(|(name, value)| {
        let value = value.as_ref()?;
        Some(format!("--{name}={value}"))
    });
    own.chain(arguments.sbatch.iter().cloned()).collect()
}

fn exec_options(arguments: &SubmitArguments) -> Vec<String> {
    let heap = match arguments.rank.heap {
        Heap::Auto => None,
        Heap::Private => Some("--heap=private"),
        Heap::Shared => Some("--heap=shared"),
    };
    let plain = arguments.rank.plain.then_some("--plain");
    heap.into_iter().chain(plain).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass_through;

    fn requested(words: &[&str]) -> Result<RequestedJob, Fault> {
        of(&pass_through::parse(words.iter().map(Into::into).collect()).unwrap())
    }

    #[test]
    fn options_win_over_the_job_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.yaml");
        let text = "version: 1\nprogram: ./a\narguments: [x]\nranks: 4\nranks_per_node: 2\n\
                    time_limit: 90\narray: {size: 3}\nshm_size: 1g\nenvironment: {A: 1, B: 2}\n";
        std::fs::write(&path, text).unwrap();
        let spec = path.to_str().unwrap();
        let from_file = requested(&["--spec", spec]).unwrap();
        assert_eq!(
            (from_file.nodes(), from_file.seconds()),
            (Some(2), Some(90))
        );
        assert_eq!(from_file.job.name.as_deref(), Some("a"));
        let words = [
            "--spec",
            spec,
            "-n",
            "8",
            "-t",
            "1:00:00",
            "-a",
            "0-9%2",
            "--env",
            "B=3",
            "--mpi",
            "mpich",
            "--heap",
            "private",
            "--shm-size",
            "try:2g",
            "--qos=high",
            "--",
            "./b",
        ];
        let over = requested(&words).unwrap();
        assert_eq!((over.nodes(), over.seconds()), (Some(4), Some(3600)));
        assert_eq!(over.options, ["--array=0-9%2", "--qos=high"]);
        assert_eq!(over.exec_options, ["--heap=private"]);
        let size = |requested: &RequestedJob| requested.job.shm_size.unwrap().to_string();
        assert_eq!(
            (size(&from_file), size(&over)),
            ("1g".into(), "try:2g".into())
        );
        assert_eq!(over.job.environment["A"], "1");
        assert_eq!(over.job.environment["B"], "3");
        assert_eq!(
            (over.job.mpi.as_deref(), &over.mpi),
            (Some("mpich"), &MpiChoice::Mpich)
        );
        assert!(over.job.arguments.is_empty() && over.job.array.is_none());
    }

    #[test]
    fn counts_and_times_that_cannot_be_are_refused_with_value_and_remedy() {
        for (words, said) in [
            (&["-n", "2", "-N", "4", "a"][..], "ask for 2 nodes at most"),
            (
                &["-n", "9", "-N", "2", "--ppn", "4", "a"],
                "they hold 8 ranks",
            ),
            (&["-t", "0", "a"], "--time 0: it must be more than 0"),
            (&["-t", "soon", "a"], "--time soon"),
            (&["-t", "1:2:3:4", "a"], "--time 1:2:3:4"),
            (&["-D", "/no/such/folder", "a"], "--wdir /no/such/folder"),
            (
                &["--spec", "/no/such/file"],
                "--spec /no/such/file cannot be read",
            ),
        ] {
            let text = requested(words).unwrap_err().to_string();
            assert!(text.contains(said), "{text}");
        }
    }

    #[test]
    fn times_of_sbatch_and_of_job_files_are_read() {
        for (text, seconds) in [
            ("30", 1800),
            ("1:30", 90),
            ("2-0", 172_800),
            ("1h30m", 5400),
        ] {
            assert_eq!(
                time_limit(text).unwrap().seconds() as u64,
                seconds,
                "{text}"
            );
        }
    }
}
