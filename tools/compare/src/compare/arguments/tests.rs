// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the command line: which defaults are filled in, and which arguments are refused.

use super::*;

fn parsed(words: &[&str]) -> Settings {
    parse(words.iter().map(OsString::from).collect()).expect("good usage")
}

#[test]
fn quick_is_short_and_keeps_what_was_said() {
    let quick = parsed(&["--quick"]);
    assert_eq!(
        (
            quick.rounds(),
            quick.benchmarks.len(),
            quick.transports.len()
        ),
        (3, 2, 2)
    );
    let said = parsed(&[
        "--quick",
        "-r",
        "5",
        "--transport",
        "tcp",
        "--benchmarks",
        "barrier,osu_bcast",
    ]);
    assert_eq!(
        (said.rounds(), said.transports),
        (5, vec!["tcp".to_owned()])
    );
    assert_eq!(said.benchmarks, ["barrier", "bcast"]);
}

#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    for (words, range) in [
        (["-n", "1"], "2 to 4096"),
        (["-r", "100000"], "1 to 1000"),
        (["-r", "0"], "-r 0: must be 1 to 1000"),
        (["--repeat-scale", "-1"], "above 0"),
        (["--repeat-scale", "0"], "--repeat-scale 0: must be above 0"),
        (["--size-time", "0"], "at most 3600"),
        (["--timeout", "0"], "at least 1"),
        (["--transport", "mpich/"], "MPI/TRANSPORT"),
        (["--transport", "weft+fast"], "plain"),
        (["--baseline", "nobody"], "native, best or MPI/TRANSPORT"),
    ] {
        let spelled = format!("{}={}", words[0], words[1]);
        let spelled = if words[0].starts_with("--") {
            vec![spelled]
        } else {
            words.map(str::to_owned).to_vec()
        };
        let error = parse(spelled.into_iter().map(OsString::from).collect()).unwrap_err();
        assert!(
            error.to_string().contains(range) && error.use_stderr(),
            "{words:?}: {error}"
        );
    }
}

#[test]
fn another_build_must_be_named_and_be_there() {
    let with = parsed(&["--before", "/proc/self/exe"]);
    assert_eq!(with.transports, ["weft", "weft+before"]);
    assert_eq!(with.benchmarks, ["latency", "bw", "mbw_mr"]);
    for (words, part) in [
        (
            &["--transport", "weft+before"][..],
            "--before FILE must name",
        ),
        (&["--before", "/nowhere/weft"], "no such file"),
        (
            &["--before", "/proc/self/exe", "--transport", "tcp+before"],
            "carries weft alone",
        ),
        (
            &["--before", "/proc/self/exe", "--calibrate"],
            "--calibrate",
        ),
    ] {
        let words = words.iter().map(OsString::from).collect();
        let said = parse(words).expect_err("refused").to_string();
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn calibration_compares_the_native_transport_with_itself() {
    let said = parsed(&["--calibrate"]);
    assert_eq!(said.transports, ["native", "native+again"]);
    assert_eq!((said.rounds(), said.benchmarks.len()), (10, 2));
    assert!(parse(vec!["--calibrate".into(), "--transport=weft".into()]).is_err());
}

#[test]
fn this_machine_is_the_only_place_unless_others_are_named() {
    assert_eq!(parsed(&[]).hosts, [""]);
    assert_eq!(
        parsed(&["--hosts", "local", "--hosts", "a,b"]).hosts,
        ["", "a,b"]
    );
    assert_eq!(
        parsed(&["--baseline", "openmpi/native"]).baseline(true),
        "openmpi/native".parse().expect("a configuration")
    );
}

#[test]
fn testbed_is_a_place_of_its_own_with_tcp_beside_weft() {
    let said = parsed(&["--testbed", "direct", "--testbed=paths=2,hosts=4"]);
    let places: Vec<String> = said.places().iter().map(ToString::to_string).collect();
    assert_eq!(
        places,
        [
            " on testbed direct,mtu=9000",
            " on testbed paths=2,rate=500mbit,mtu=9000,hosts=4"
        ]
    );
    assert_eq!(said.places()[1].hosts, "a0,b1,a2,b3");
    assert_eq!(said.mpi, ["openmpi", "mpich", "intel"]);
    assert!(said.transports.contains(&"mpich/native".to_owned()));
    assert_eq!(said.baseline(true), Baseline::Best);
    let both = parsed(&["--hosts", "local", "--testbed", "direct"]);
    assert_eq!(both.places().len(), 2);
    for (words, part) in [
        (&["--testbed", "mtu=9"][..], "from 1280 to 65535"),
        (
            &["--testbed", "direct", "--testbed", "direct,mtu=9000"],
            "is given twice",
        ),
    ] {
        let words = words.iter().map(OsString::from).collect();
        let error = parse(words).expect_err("refused");
        assert!(error.to_string().contains(part) && error.use_stderr());
    }
}

#[test]
fn longer_runs_give_a_size_more_time_unless_it_is_said() {
    assert_eq!(parsed(&[]).size_seconds(), 0.1);
    assert_eq!(parsed(&["--repeat-scale", "5"]).size_seconds(), 5.0);
    let said = parsed(&["--repeat-scale", "5", "--size-time", "0.5"]);
    assert_eq!(said.size_seconds(), 0.5);
}

#[test]
fn unknown_benchmark_is_refused_with_the_list() {
    let error = parse(vec!["--benchmarks".into(), "lat".into()])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("lat") && error.contains("latency, "),
        "{error}"
    );
}
