// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The script has the right lines for a job, and a shell reads it with the intended meaning.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::process::Command;

use super::*;
use crate::file::JobFile;
use crate::job::Job;

fn job(text: &str) -> Job {
    let text = format!("version: 1\nprogram: ./solve\n{text}");
    JobFile::from_text("job.yaml", &text).unwrap().job
}

fn srun() -> Start {
    Start::Srun { pmi: "pmix".into() }
}

fn script(job: &Job, start: Start) -> Result<String, Fault> {
    let words = Words::of(job);
    super::text(&Script {
        weft: OsStr::new("/opt/weft/bin/weft"),
        ..words.script(job, start)
    })
}

/// What the ranks of a job file run.
struct Words {
    program: Vec<OsString>,
    variables: BTreeMap<String, OsString>,
}

impl Words {
    fn of(job: &Job) -> Self {
        let program = std::iter::once(&job.program).chain(&job.arguments);
        let variables = job.environment.iter();
        let variables = variables.map(|(name, value)| (name.clone(), value.into()));
        Self {
            program: program.map(Into::into).collect(),
            variables: variables.collect(),
        }
    }

    fn script<'a>(&'a self, job: &'a Job, start: Start) -> Script<'a> {
        Script {
            job,
            program: &self.program,
            variables: &self.variables,
            mpi: job.mpi.as_ref().map(Into::into),
            start,
            weft: OsStr::new("weft"),
            options: &[],
            label: false,
            exec_options: &[],
        }
    }
}

fn directives(text: &str) -> Vec<&str> {
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("#SBATCH "));
    lines.collect()
}

#[test]
fn each_field_is_an_option_of_sbatch() {
    let job = job(
        "name: run.1\nranks: 8\nranks_per_node: 4\nfolder: /data/a b\ntime_limit: 90s\n\
         array: {size: 5, at_once: 2}\ndependencies:\n- {job: 12}\n- {job: 7_1, when: ended}\n\
         - {job: 9, when: failed}\n- {job: 8, when: started}\n",
    );
    let text = script(&job, srun()).unwrap();
    assert_eq!(
        directives(&text),
        [
            "--job-name=run.1",
            "--nodes=2",
            "--ntasks=8",
            "--ntasks-per-node=4",
            "--chdir='/data/a b'",
            "--time=0:02:00",
            "--array=0-4%2",
            "--dependency=afterok:12,afterany:7_1,afternotok:9,after:8",
            "--no-requeue",
        ]
    );
}

#[test]
fn options_of_the_user_come_last_so_that_they_win() {
    let job = job("nodes: 2\nhosts: [a, b]\nretries: 2\n");
    let words = Words::of(&job);
    let script = Script {
        options: &["--gres=gpu:1".into(), "--comment=it's new".into()],
        label: true,
        exec_options: &["--heap=private".into()],
        ..words.script(&job, srun())
    };
    let text = super::text(&script).unwrap();
    assert_eq!(
        directives(&text)[3..],
        [
            "--requeue",
            "--open-mode=append",
            "--gres=gpu:1",
            r"'--comment=it'\''s new'"
        ]
    );
    assert!(text.contains("--heap=private -- ./solve"), "{text}");
    assert!(text.contains("scontrol requeue"), "{text}");
    assert!(text.contains("--export=ALL --label weft exec"), "{text}");
}

#[test]
fn the_ranks_start_by_the_one_line_that_the_start_stands_for() {
    let job = job("ranks: 4\nmpi: openmpi\narguments: [a b]\nenvironment: {OMP_NUM_THREADS: 2}\n");
    let exec = "/opt/weft/bin/weft exec --world \"$SLURM_NTASKS\" --mpi openmpi -- ./solve 'a b'";
    for (start, before) in [
        (srun(), "srun --mpi=pmix --export=ALL".to_owned()),
        (
            Start::OpenMpi("/mpi/bin/mpirun".into()),
            format!("/mpi/bin/mpirun -n \"$SLURM_NTASKS\" -x {KEY} -x OMP_NUM_THREADS"),
        ),
        (
            Start::Hydra("/mpi/bin/mpiexec".into()),
            "/mpi/bin/mpiexec -bootstrap slurm -n \"$SLURM_NTASKS\"".to_owned(),
        ),
    ] {
        let text = script(&job, start).unwrap();
        let last = text.lines().last().unwrap();
        assert_eq!(last, format!("{before} {exec}"));
        assert!(text.contains("env --only-key"), "{text}");
    }
    let text = script(&job, Start::Inside).unwrap();
    assert!(text.ends_with("weft run --slurm --mpi openmpi -- ./solve 'a b'\n"));
    assert!(!text.contains("key"), "weft run makes it: {text}");
}

#[test]
fn without_weft_the_launcher_starts_the_program_itself() {
    let job = job("ranks: 4\ntransport: native\n");
    let text = script(&job, srun()).unwrap();
    assert!(
        text.ends_with("\nsrun --mpi=pmix --export=ALL ./solve\n"),
        "{text}"
    );
}

#[test]
fn variables_stand_in_the_script_and_those_of_an_mpi_also_before_the_program() {
    let job = job("environment: {A: 'x $y', OMPI_MCA_a: 1}\n");
    let text = script(&job, srun()).unwrap();
    assert!(
        text.contains("\nexport A='x $y'\nexport OMPI_MCA_a=1\n"),
        "{text}"
    );
    assert!(
        text.contains("exec --env OMPI_MCA_a=1 -- ./solve"),
        "{text}"
    );
}

#[test]
fn words_that_are_no_text_reach_the_ranks_byte_for_byte() {
    let odd = |text: &str| OsString::from_vec([text.as_bytes(), b"\xe9"].concat());
    let job = job("");
    let words = Words {
        program: vec![odd("./caf"), odd("it's ")],
        variables: BTreeMap::from([("FI_X".to_owned(), odd("x"))]),
    };
    let script = Script {
        mpi: Some(odd("/m")),
        weft: &odd("./weft"),
        ..words.script(&job, srun())
    };
    let text = super::text(&script).unwrap();
    assert!(
        text.is_ascii() && text.contains(r"$'./weft\351' env --only-key"),
        "{text}"
    );
    // The shell puts E in the place of the byte.
    let launcher = "srun() { printf '%s|' \"$@\" \"$FI_X\" | LC_ALL=C tr '\\351' E; }";
    let (code, said, _) = run(&text, launcher, "0");
    let words = "./weftE|exec|--mpi|/mE|--env|FI_X=xE|--|./cafE|it's E|xE|";
    assert!(code == Some(0) && said.ends_with(words), "{code:?} {said}");
    let own = Script {
        start: Start::Hydra(odd("/mpiexec").into()),
        ..script
    };
    let text = super::text(&own).unwrap();
    assert!(text.contains(r"$'/mpiexec\351' -bootstrap slurm"), "{text}");
}

#[test]
fn no_value_of_an_option_becomes_a_line_of_the_script() {
    let value = "a\necho INJECTED";
    let mut job = job("");
    let refusal = |job: &Job, options: &[String]| {
        let words = Words::of(job);
        let script = Script {
            options,
            ..words.script(job, srun())
        };
        super::text(&script).unwrap_err().to_string()
    };
    for option in ["--comment=", "--partition=", "--x"] {
        let text = refusal(&job, &[format!("{option}{value}")]);
        let shown = format!(r#""'{option}a\necho INJECTED'" has a control character"#);
        assert!(text.starts_with(&shown), "{text}");
    }
    job.folder = Some(value.to_owned());
    assert!(refusal(&job, &[]).starts_with(r#""--chdir='a\necho"#));
    job.name = Some(value.to_owned());
    assert!(refusal(&job, &[]).starts_with(r#""--job-name='a\necho"#));
}

#[test]
fn a_dev_shm_of_its_own_is_given_by_weft_exec() {
    let job = job("shm_size: try:4g\n");
    for start in [srun(), Start::Inside] {
        let text = script(&job, start).unwrap();
        assert!(text.contains(" --shm-size try:4g -- ./solve"), "{text}");
    }
}

#[test]
fn what_no_script_can_do_is_refused_with_its_field() {
    for (fields, begin, said) in [
        ("hosts: ['a:2', b]\n", "hosts: ", "a:2"),
        (
            "transport: native\nshm_size: 4g\n",
            "shm_size: ",
            "transport: weft",
        ),
        ("transport: tcp\n", "transport: ", "weft or native"),
        (
            "transport: native\nmounts: [{source: 's3://bucket', target: /b}]\n",
            "mounts: ",
            "s3://bucket",
        ),
        (
            "environment: {FI_WEFT_JOB_KEY: ab}\n",
            "environment: ",
            "FI_WEFT_JOB_KEY_FILE",
        ),
        ("environment: {'a;b': c}\n", "environment: ", "`a;b`"),
    ] {
        let said_all = script(&job(fields), srun()).unwrap_err().to_string();
        assert!(
            said_all.starts_with(begin) && said_all.contains(said),
            "{said_all}"
        );
    }
}

/// Runs the script as Slurm would, with stand-ins for its commands and for weft; answers its exit
/// code, its output and its record.
fn run(text: &str, stand_in: &str, restarts: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let text = text.replace("/opt/weft/bin/weft", "weft");
    let stand_ins = "weft() { echo 'export FI_WEFT_JOB_KEY=k'; }; sleep() { :; }\n";
    let output = Command::new("bash")
        .arg("-c")
        .arg(format!("{stand_ins}{stand_in}\n{text}"))
        .envs([("WEFT_JOBS_DIR", folder.path().as_os_str())])
        .envs([
            ("SLURM_CLUSTER_NAME", "c"),
            ("SLURM_JOB_ID", "12"),
            ("SLURM_NTASKS", "4"),
            ("SLURM_JOB_NODELIST", "n1"),
            ("SLURM_RESTART_COUNT", restarts),
        ])
        .env_remove("SLURM_ARRAY_JOB_ID")
        .env_remove("SLURM_ARRAY_TASK_ID")
        .output()
        .unwrap();
    let record = std::fs::read_to_string(folder.path().join("c/12/task-0")).unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), said, record)
}

#[test]
fn a_shell_runs_it_with_a_key_and_leaves_the_record() {
    let text = script(&job("ranks: 4\narguments: [\"it's\"]\n"), srun()).unwrap();
    let stand_in = "srun() { echo \"$FI_WEFT_JOB_KEY\" \"$@\"; return 3; }";
    let (code, said, record) = run(&text, stand_in, "0");
    assert_eq!(code, Some(3));
    assert_eq!(
        said,
        "k --mpi=pmix --export=ALL weft exec --world 4 -- ./solve it's\n"
    );
    let names: Vec<&str> = record
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    assert_eq!(
        names.join(" "),
        "version restarts array nodes node_count output began ended exit_code"
    );
    assert!(record.starts_with("version=1\n") && record.ends_with("exit_code=3\n"));
}

#[test]
fn a_job_that_failed_is_queued_again_as_often_as_it_may_and_not_after_a_signal() {
    let text = script(&job("ranks: 4\nretries: 2\n"), srun()).unwrap();
    let scontrol = "scontrol() { echo asked \"$@\"; }\n";
    let fails = format!("{scontrol}srun() {{ return 3; }}");
    let (code, said, _) = run(&text, &fails, "1");
    assert_eq!((code, said.as_str()), (Some(3), "asked requeue 12\n"));
    let (code, said, _) = run(&text, &fails, "2");
    assert_eq!((code, said.as_str()), (Some(3), ""));
    let succeeds = format!("{scontrol}srun() {{ return 0; }}");
    assert_eq!(run(&text, &succeeds, "0").1, "");
    let ended = format!("{scontrol}srun() {{ kill -TERM $$; return 143; }}");
    let (code, said, record) = run(&text, &ended, "0");
    assert_eq!((code, said.as_str()), (Some(143), ""));
    assert!(
        record.contains("signal=TERM\n") && record.ends_with("exit_code=143\n"),
        "{record}"
    );
}
