// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The job to submit: a job file, and the options, which have precedence over it.
//!
//! Called by `submit.rs`. Nothing here asks Slurm.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use weft_job::JobFile;
use weft_job::job::Job;
use weft_job::mount::check_all;
use weft_job::time::TimeLimit;
use weft_job::whole::Whole;
use weft_launch::mpi_choice::MpiChoice;

use crate::arguments::SubmitArguments;
use crate::fault::Fault;
use crate::partition;

/// What is to be submitted.
#[derive(Debug)]
pub struct RequestedJob {
    /// The job, but for the words that its ranks run.
    pub job: Job,
    /// The program and its arguments; never empty.
    pub program: Vec<OsString>,
    /// Variables of the ranks.
    pub variables: BTreeMap<String, OsString>,
    /// Options for the script that no field of a job stands for.
    pub options: Vec<String>,
    /// Options for `weft exec`.
    pub exec_options: Vec<String>,
    /// The MPI that was asked for.
    pub mpi: MpiChoice,
    /// The same as an option, if it was.
    pub mpi_option: Option<OsString>,
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
    let program = program(&job, arguments);
    put_over(&mut job, arguments)?;
    check_counts(&job)?;
    if let Some(folder) = folder(&job, arguments) {
        job.folder = Some(enter(&folder)?);
    }
    job.name = job.name.or_else(|| name_of(&program[0]));
    let mpi = match &arguments.rank.mpi {
        MpiChoice::Auto => file.as_ref().map(mpi_of).transpose()?.flatten(),
        given => Some(given.clone()),
    };
    Ok(RequestedJob {
        program,
        variables: variables(&job, arguments),
        options: options(arguments),
        exec_options: exec_options(arguments)?,
        job,
        mpi_option: mpi.as_ref().map(MpiChoice::to_word),
        mpi: mpi.unwrap_or(MpiChoice::Auto),
        file,
    })
}

/// The program with its arguments: of the options, else of the job file.
fn program(job: &Job, arguments: &SubmitArguments) -> Vec<OsString> {
    if !arguments.program.is_empty() {
        return arguments.program.clone();
    }
    let words = std::iter::once(&job.program).chain(&job.arguments);
    words.map(OsString::from).collect()
}

/// Those of the job file, and over them those of the options.
fn variables(job: &Job, arguments: &SubmitArguments) -> BTreeMap<String, OsString> {
    let of_file = job.environment.iter();
    let of_file = of_file.map(|(name, value)| (name.clone(), value.into()));
    let given = arguments.rank.variables.iter();
    of_file
        .chain(given.map(|one| (one.name.clone(), one.value.clone())))
        .collect()
}

/// Where the job runs, if somebody says.
fn folder(job: &Job, arguments: &SubmitArguments) -> Option<PathBuf> {
    let of_file = || job.folder.as_ref().map(PathBuf::from);
    arguments.folder.clone().or_else(of_file)
}

/// The MPI that the job file names.
fn mpi_of(file: &JobFile) -> Result<Option<MpiChoice>, Fault> {
    let named = file.job.mpi.as_ref().map(|mpi| mpi.parse()).transpose();
    named.map_err(|why: String| Fault::Usage(file.fault("mpi", why).to_string()))
}

/// The name in lists of jobs, of the letters that a job file allows for one.
fn name_of(program: &OsStr) -> Option<String> {
    let name = Path::new(program).file_name()?.to_string_lossy();
    let is_good = |one: char| one.is_ascii_alphanumeric() || "._-".contains(one);
    let letters = name.chars().map(|one| if is_good(one) { one } else { '_' });
    let begun = letters.skip_while(|one| !one.is_ascii_alphanumeric());
    let name: String = begun.take(128).collect();
    Some(name).filter(|name| !name.is_empty())
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
    if let Some(time) = &arguments.time {
        job.time_limit = Some(time_limit(time)?);
    }
    if arguments.array.is_some() {
        job.array = None;
    }
    if arguments.dependency.is_some() {
        job.dependencies.clear();
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

/// Goes where the job runs; answers the absolute path, as it stands in the script.
fn enter(folder: &Path) -> Result<String, Fault> {
    let wrong =
        |error: std::io::Error| Fault::Usage(format!("--wdir {}: {error}", folder.display()));
    let path = std::path::absolute(folder).map_err(wrong)?;
    let text = as_text(&path)?.to_owned();
    std::env::set_current_dir(&path).map_err(wrong)?;
    Ok(text)
}

/// The path for `#SBATCH --chdir`, where sbatch reads no escapes.
fn as_text(path: &Path) -> Result<&str, Fault> {
    path.to_str().ok_or_else(|| {
        Fault::Usage(format!(
            "--wdir {path:?}: the path is not UTF-8, and a batch script can name no such folder; \
             leave --wdir out and run weft submit in that folder, where the job then runs, or name \
             a link to it (ln -s)"
        ))
    })
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

fn exec_options(arguments: &SubmitArguments) -> Result<Vec<String>, Fault> {
    let words = arguments.rank.words().into_iter();
    let text = |word: OsString| {
        word.into_string().map_err(|word| {
            Fault::Usage(format!(
                "{word:?} is not UTF-8, and a batch script can name no such file; name a link to it"
            ))
        })
    };
    words.map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass_through;
    use std::os::unix::ffi::OsStringExt;

    fn requested(words: &[&str]) -> Result<RequestedJob, Fault> {
        of(&pass_through::parse(words.iter().map(Into::into).collect()).unwrap())
    }

    #[test]
    fn what_is_said_of_the_ranks_goes_on() {
        let words = [
            "--yield=pause",
            "--collectives=mpi",
            "--libfabric=/f/libfabric.so.1",
        ];
        let job = requested(&[&["-n", "2"], &words[..], &["./a"]].concat()).unwrap();
        assert_eq!(job.exec_options, words);
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
        assert_eq!(from_file.program, ["./a", "x"]);
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
        assert_eq!(over.variables["A"], "1");
        assert_eq!(over.variables["B"], "3");
        assert_eq!(over.mpi, MpiChoice::Mpich);
        assert_eq!(over.mpi_option.unwrap(), "mpich");
        assert!(over.program == ["./b"] && over.job.array.is_none());
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
    fn what_ranks_run_need_not_be_text_and_a_folder_must() {
        let folder = tempfile::tempdir().unwrap();
        let odd = |text: &str| OsString::from_vec([text.as_bytes(), b"caf\xe9"].concat());
        let words = ["--env", "K=", "--mpi", "/m/", "--", "./", "-x"].map(|word| match word {
            "K=" | "/m/" | "./" | "-x" => odd(word),
            option => option.into(),
        });
        let found = of(&pass_through::parse(words.to_vec()).unwrap()).unwrap();
        assert_eq!(found.program, [odd("./"), odd("-x")]);
        assert_eq!(found.variables["K"], odd(""));
        assert_eq!(found.mpi_option, Some(odd("/m/")));
        let place = folder.path().join(odd(""));
        std::fs::create_dir(&place).unwrap();
        let words = ["--wdir".into(), place.into_os_string(), "a".into()];
        let text = of(&pass_through::parse(words.to_vec()).unwrap())
            .unwrap_err()
            .to_string();
        assert!(
            text.contains(r#"caf\xE9": the path is not UTF-8"#),
            "{text}"
        );
        assert!(text.contains("ln -s"), "{text}");
    }

    #[test]
    fn the_mpi_of_a_job_file_counts_where_no_option_names_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.yaml");
        std::fs::write(&path, "version: 1\nprogram: ./a\nmpi: impi\n").unwrap();
        let spec = path.to_str().unwrap();
        let over = requested(&["--spec", spec, "--mpi", "mpich"]).unwrap();
        assert_eq!(over.mpi, MpiChoice::Mpich);
        let text = requested(&["--spec", spec]).unwrap_err().to_string();
        let place = format!("{spec}, line 3, column 6: mpi: `impi` is none of");
        assert!(text.starts_with(&place), "{text}");
    }

    #[test]
    fn a_job_without_a_name_has_one_of_letters_that_no_reader_of_a_script_minds() {
        for (program, name) in [
            (&b"/bin/solve-1.2_x"[..], Some("solve-1.2_x")),
            (b"./a\necho INJECTED", Some("a_echo_INJECTED")),
            (b"./it's caf\xe9", Some("it_s_caf_")),
            (b"./_a", Some("a")),
            ("./é".as_bytes(), None),
        ] {
            let program = OsString::from_vec(program.to_vec());
            assert_eq!(name_of(&program).as_deref(), name, "{program:?}");
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
