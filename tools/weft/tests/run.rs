// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft run` as a user sees it, with a launcher that is only a shell script: exit codes, signals,
//! time limit, labels, reports, refusals.
//!
//! Needs no MPI. tests/mpi tests what the settings do inside real MPIs.

#[path = "run/any_bytes.rs"]
mod any_bytes;
#[path = "run/exit_code.rs"]
mod exit_code;
#[path = "run/failed_rank.rs"]
mod failed_rank;
#[path = "fake/launcher.rs"]
mod fake;
#[path = "run/left_sessions.rs"]
mod left_sessions;
#[path = "run/spec.rs"]
mod spec;

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fake::{Fake, signal, wait_for};

#[test]
fn arguments_and_standard_input_reach_the_program_untouched() {
    let fake = Fake::new();
    let output = fake.run_with_input(
        &["-n", "3"],
        "printf '%s|' \"$RANKS\" \"$@\"; cat",
        &["two words", "", "--quiet", "--", "$HOME"],
        "from stdin",
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "3|two words||--quiet|--|$HOME|from stdin"
    );
}

#[test]
fn standard_output_belongs_to_the_program_alone() {
    let output = Fake::new().run(&["-n", "2"], "echo data");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "data\n");
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(
        talk.starts_with("weft: 2 ranks") && talk.contains("Open MPI 5.0.11"),
        "{talk}"
    );
}

/// Starts a job that answers this signal with exit code 9, waits until it can, and sends it.
fn job_that_answers(fake: &Fake, name: &str) -> std::process::Output {
    let script = format!(
        "trap 'echo got {name}; exit 9' {name}; touch {}; while :; do sleep 0.02; done",
        fake.path("ready")
    );
    let child = fake.start(&["--quiet", "-n", "1"], &script);
    wait_for(&fake.path("ready"));
    signal(child.id(), name);
    child.wait_with_output().unwrap()
}

#[test]
fn signals_are_passed_on_to_the_launcher() {
    for (name, code) in [("USR1", 9), ("USR2", 9)] {
        let output = job_that_answers(&Fake::new(), name);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{name}: {output:?}");
        assert_eq!(said, format!("got {name}\n"));
    }
}

#[test]
fn an_end_that_the_user_asks_for_has_the_signals_code_whatever_the_launcher_answers() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let output = job_that_answers(&Fake::new(), name);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{name}: {output:?}");
        assert_eq!(said, format!("got {name}\n"));
    }
}

/// A job that ignores every signal, in the launcher and in a rank that left its process group.
fn stubborn(fake: &Fake) -> String {
    format!(
        "trap '' INT TERM HUP; setsid sh -c 'trap \"\" INT TERM HUP; echo $$ >{0}.new; mv {0}.new \
         {0};
        while :; do sleep 600; done' & while :; do sleep 600; done",
        fake.path("rank")
    )
}

fn assert_rank_is_gone(fake: &Fake) {
    let rank = std::fs::read_to_string(fake.path("rank")).unwrap();
    let state = std::fs::read_to_string(format!("/proc/{}/stat", rank.trim())).unwrap_or_default();
    let gone = state.is_empty() || state.contains(") Z ");
    assert!(gone, "the rank still runs: {state}");
}

fn assert_killed_after_grace(name: &str, code: i32) {
    let fake = Fake::new();
    let child = fake.start(&["-n", "1"], &stubborn(&fake));
    wait_for(&fake.path("rank"));
    signal(child.id(), name);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{name}: {output:?}");
    assert_rank_is_gone(&fake);
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    let words = format!("weft: the job was ended by SIG{name}");
    assert!(talk.contains(&words), "{talk}");
    assert!(
        talk.contains("was killed") && !talk.contains("warning"),
        "{talk}"
    );
}

#[test]
fn who_ignores_the_end_is_killed_after_the_grace_period() {
    std::thread::scope(|scope| {
        for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
            scope.spawn(move || assert_killed_after_grace(name, code));
        }
    });
}

/// A job that must have begun by its time limit does not run beside ranks that take every
/// processor.
static PROCESSORS: Mutex<()> = Mutex::new(());

#[test]
fn the_time_limit_holds_where_ranks_take_every_processor_and_ignore_all_signals() {
    let _all = PROCESSORS.lock().unwrap_or_else(PoisonError::into_inner);
    let fake = Fake::new();
    let script = format!(
        "trap '' INT TERM HUP; for i in $(seq 64); do setsid sh -c 'trap \"\" INT TERM HUP
        while :; do :; done' & done; touch {}; while :; do :; done",
        fake.path("rank")
    );
    let output = fake.run(&["-n", "1", "--timeout", "1"], &script);
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    let folder = fake.path("");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let words = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if String::from_utf8_lossy(&words)
            .contains(&format!("WEFT_MPI_PATH={}", folder.trim_end_matches('/')))
        {
            found.push(entry.path());
        }
    }
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn the_time_limit_ends_a_job_that_ignores_term_and_what_it_started() {
    let _share = PROCESSORS.lock().unwrap_or_else(PoisonError::into_inner);
    let fake = Fake::new();
    // The rank leaves the launcher's process group, as the ranks of real launchers do.
    let script = format!(
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > {}; sleep 600; sleep 600' & wait; \
         sleep 600",
        fake.path("rank")
    );
    let started = Instant::now();
    let output = fake.run(&["-n", "1", "--timeout", "2.5"], &script);
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    assert!(started.elapsed() < Duration::from_secs(100));
    assert!(String::from_utf8_lossy(&output.stderr).contains("after 2.5 seconds"));
    let rank = std::fs::read_to_string(fake.path("rank")).unwrap();
    let state = std::fs::read_to_string(format!("/proc/{}/stat", rank.trim())).unwrap_or_default();
    assert!(
        state.is_empty() || state.contains(") Z "),
        "the rank still runs: {state}"
    );
}

#[test]
fn labels_are_asked_for_in_the_launchers_own_way() {
    let fake = Fake::new();
    let output = fake.run(&["--quiet", "-n", "1", "--label"], "echo $OPTIONS");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("--output tag"),
        "{output:?}"
    );
    let plain = fake.run(&["--quiet", "-n", "1"], "echo $OPTIONS");
    assert!(
        !String::from_utf8_lossy(&plain.stdout).contains("tag"),
        "{plain:?}"
    );
}

#[test]
fn the_line_that_dry_run_prints_does_the_same_when_pasted() {
    let fake = Fake::new();
    let script = "printf '%s\\n' \"$1\" \"$RANKS\" \"$OMPI_MCA_btl\" \"$MINE\"";
    let options = [
        "--quiet",
        "-n",
        "2",
        "--transport",
        "native",
        "--env",
        "MINE=it's $HOME",
    ];
    let real = fake.run_with_input(&options, script, &["a b"], "");
    let printed = fake.run_with_input(
        &[options.as_slice(), &["--dry-run"]].concat(),
        script,
        &["a b"],
        "",
    );
    assert_eq!(printed.status.code(), Some(0), "{printed:?}");
    let pasted = std::process::Command::new("sh")
        .arg("-c")
        .arg(String::from_utf8(printed.stdout).unwrap())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&pasted.stdout),
        String::from_utf8_lossy(&real.stdout)
    );
    assert_eq!(
        String::from_utf8_lossy(&real.stdout),
        "a b\n2\nsm,self\nit's $HOME\n"
    );
}

#[test]
fn ranks_that_share_cores_get_the_rules_beside_the_provider_unless_collectives_are_spoken_of() {
    const RANKS: &str = "4096";
    let fake = Fake::new();
    fake.add_provider();
    let script = "printf '%s' \"$OMPI_MCA_coll_tuned_dynamic_rules_filename\"";
    let rules_of = |more: &[&str]| {
        let options = ["--quiet", "-n", RANKS, "--oversubscribe"];
        let output = fake.run(&[options.as_slice(), more].concat(), script);
        String::from_utf8(output.stdout).unwrap()
    };
    for (transport, file) in [
        ("weft", "openmpi-shared-cores.rules"),
        ("native", "openmpi-shared-cores-native.rules"),
    ] {
        let rules = fake.path(file);
        let with = |more: &[&str]| rules_of(&[&["--transport", transport], more].concat());
        assert_eq!(with(&[]), "", "they are not there");
        std::fs::write(&rules, "0\n").unwrap();
        assert_eq!(with(&[]), rules, "{transport:?}");
        assert_eq!(with(&["--env", "OMPI_MCA_coll_sm_priority=90"]), "");
        assert_eq!(with(&["--plain"]), "");
        std::fs::remove_file(&rules).unwrap();
    }
}

#[test]
fn reports_of_the_ranks_become_a_line_and_a_record() {
    let fake = Fake::new();
    fake.add_provider();
    let script = format!(
        "echo $FI_WEFT_REPORT > {0}.new; mv {0}.new {0}; while ! [ -e {1} ]; do sleep 0.02; done",
        fake.path("name"),
        fake.path("go")
    );
    let json = fake.path("record.json");
    let child = fake.start(
        &["-n", "2", "--transport", "weft", "--json", &json],
        &script,
    );
    wait_for(&fake.path("name"));
    let name = std::fs::read_to_string(fake.path("name")).unwrap();
    for pid in [11, 12] {
        let short = r#""inline":{"messages":1000,"bytes":10}"#;
        let long = r#""single_copy":{"messages":5,"bytes":5242880}"#;
        fake::report(
            name.trim(),
            &format!(r#"{{"weft":"0.1.0","pid":{pid},"sent":{{{short},{long}}},"errors":0}}"#),
        );
    }
    std::fs::write(fake.path("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(
        talk.contains(
            "weft: 2 ranks, 2,010 messages through Weft (inline 2,000, single copy 10), 10.0 MiB\n"
        ),
        "{talk}"
    );
    assert!(!talk.contains("warning"), "{talk}");
    let record: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(
        (&record["exit_code"], &record["weft"], &record["ranks"]),
        (&0.into(), &"full".into(), &2.into())
    );
    assert_eq!(record["summary"]["sent"]["inline"]["messages"], 2000);
    assert_eq!(record["environment"]["FI_PROVIDER"], "weft");
}

#[test]
fn weft_that_was_not_used_is_said_and_fails_where_it_is_required() {
    let fake = Fake::new();
    fake.add_provider();
    let output = fake.run(&["--quiet", "-n", "2", "--transport", "weft"], "true");
    assert_eq!(output.status.code(), Some(0));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("Weft was NOT used"),
        "{output:?}"
    );
    let required = fake.run(
        &[
            "--quiet",
            "-n",
            "2",
            "--transport",
            "weft",
            "--require-weft",
        ],
        "true",
    );
    assert_eq!(required.status.code(), Some(3));
    assert!(
        String::from_utf8_lossy(&required.stderr).contains("Weft was NOT used"),
        "{required:?}"
    );
    let failed = fake.run(
        &[
            "--quiet",
            "-n",
            "2",
            "--transport",
            "weft",
            "--require-weft",
        ],
        "exit 4",
    );
    assert_eq!(failed.status.code(), Some(4));
}

#[test]
fn refusals_say_what_is_wrong_and_have_their_codes() {
    let fake = Fake::new();
    std::fs::write(fake.path("plain"), "").unwrap();
    let plain = fake.path("plain");
    let cases: [(&[&str], i32, &str); 15] = [
        (&["-n", "1000000", "--", "true"], 2, "--oversubscribe"),
        (&["--timeot", "5", "true"], 2, "did you mean --timeout?"),
        (
            &["--map-by", "socket", "true"],
            2,
            "--map-by socket: weft run",
        ),
        (
            &["--wdir", "/no/such/folder", "true"],
            2,
            "--wdir /no/such/folder",
        ),
        (
            &["-x", "WEFT_IS_NOT_SET", "true"],
            2,
            "WEFT_IS_NOT_SET=VALUE",
        ),
        (&["-n", "0", "--", "true"], 2, "at least 1 rank"),
        (&["-n", "4", "--ppn", "2", "--", "true"], 2, "2 machines"),
        (&["--transport", "pigeon", "--", "true"], 2, "pigeon"),
        (&["--timeout", "0", "--", "true"], 2, "--timeout 0"),
        (&[], 2, "PROGRAM"),
        (&["--", "/no/such/program"], 127, "was not found"),
        (&["--", &plain], 126, "no execute permission"),
        (&["--", "/bin/sh"], 1, "not linked to any libmpi"),
        (
            &["--mpi", "openmpi", "--transport", "weft", "--", "/bin/true"],
            1,
            "WEFT_PROVIDER_DIR",
        ),
        (
            &[
                "--mpi",
                "openmpi",
                "--transport",
                "native",
                "--iface",
                "eth7",
                "--",
                "/bin/true",
            ],
            2,
            "--iface eth7 is for traffic between hosts",
        ),
    ];
    for (words, code, text) in cases {
        let output = fake.weft(words);
        let talk = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {talk}");
        assert!(talk.contains(text), "{words:?}: {talk}");
        assert!(output.stdout.is_empty(), "{words:?}");
    }
}

#[test]
fn options_of_other_launchers_reach_the_job() {
    let fake = Fake::new();
    let folder = fake.path("bin");
    let options = [
        "--quiet", "-np", "3", "-x", "A=1", "-genv", "B", "2", "-wdir", &folder,
    ];
    let output = fake.run(&options, "echo $RANKS $A $B $PWD");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said, format!("3 1 2 {folder}\n"), "{output:?}");
}

#[test]
fn a_misspelled_benchmark_is_named_once_before_any_rank_starts() {
    let fake = Fake::new();
    let (launcher, weft) = (fake.path("bin/mpiexec"), env!("CARGO_BIN_EXE_weft"));
    let options = ["--mpi", &launcher, "--transport", "native", "-n", "8", "--"];
    let output = fake.weft(&[options.as_slice(), &[weft, "bench", "latancy"]].concat());
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{talk}");
    let line = "weft bench: no benchmark is called 'latancy'; did you mean latency?\n";
    assert_eq!(talk, line);
}

/// Runs `weft`, and nobody reads its standard output, or what it says besides. Its exit code as a
/// shell says it, and what could be read.
fn unread(fake: &Fake, words: &[&str], reads_output: bool) -> (i32, String) {
    let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
    // Before it begins: what it writes finds nobody.
    drop(reader);
    let unread = Stdio::from(std::os::fd::OwnedFd::from(writer));
    let (output, talk) = if reads_output {
        (Stdio::piped(), unread)
    } else {
        (unread, Stdio::piped())
    };
    let ended = std::process::Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(words)
        .env("WEFT_MPI_PATH", fake.path(""))
        .stdout(output)
        .stderr(talk)
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .unwrap();
    let signal = ended.status.signal().map(|signal| 128 + signal);
    let said = String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap();
    (ended.status.code().or(signal).unwrap(), said)
}

#[test]
fn a_prefix_without_a_launcher_is_named() {
    let fake = Fake::new();
    let (words, prefixes) = (
        ["run", "--", "/bin/true"],
        fake.path("") + ":/no/such/prefix",
    );
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(words)
        .env("WEFT_MPI_PATH", prefixes)
        .output()
        .unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    let note = "WEFT_MPI_PATH names /no/such/prefix, which has no bin/mpiexec";
    assert_eq!(talk.matches(note).count(), 1, "{talk}");
}

#[test]
fn a_reader_that_goes_away_ends_every_tool_quietly() {
    let fake = Fake::new();
    let tools: [&[&str]; 3] = [
        &["info"],
        &["bench", "--help"],
        &["sim", "incast", "--hosts", "8"],
    ];
    let job = ["run", "--mpi", "openmpi", "--transport", "native", "--"];
    let dry = [&["run", "--dry-run"], &job[1..], &["/bin/true"]].concat();
    for words in tools.into_iter().chain([&*dry]) {
        assert_eq!(
            unread(&fake, words, false),
            (141, String::new()),
            "{words:?}"
        );
    }
    // Nobody hears what weft run says either, and the job ends as it would.
    let ends = [&job[..], &["/bin/sh", "-c", "exit 7"]].concat();
    assert_eq!(unread(&fake, &ends, true), (7, String::new()));
}

#[test]
fn a_record_that_cannot_be_written_is_refused_before_the_job_starts() {
    let fake = Fake::new();
    let output = fake.run(
        &["-n", "1", "--json", "/no/such/folder/record.json"],
        &format!("touch {}", fake.path("ran")),
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("/no/such/folder/record.json"),
        "{output:?}"
    );
    assert!(!std::path::Path::new(&fake.path("ran")).exists());
}
