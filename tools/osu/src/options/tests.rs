// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the command line: what OSU's users and their scripts write, and what must be refused.

use super::*;
use crate::catalogue::{CATALOGUE, find};

fn parsed(name: &str, line: &str) -> Result<Settings, Refusal> {
    parse(
        find(name).expect("listed"),
        line.split_whitespace().map(OsString::from).collect(),
    )
}

fn good(name: &str, line: &str) -> Settings {
    match parsed(name, line) {
        Ok(settings) => settings,
        Err(refusal) => panic!("{name} {line}: {refusal:?}"),
    }
}

fn bad(name: &str, line: &str) -> String {
    match parsed(name, line) {
        Err(Refusal::BadUsage(text)) => text,
        other => panic!("{name} {line}: {other:?}"),
    }
}

#[test]
fn defaults_are_osus() {
    let settings = good("latency", "");
    assert_eq!(
        (settings.min_bytes, settings.max_bytes, settings.window),
        (1, 4 << 20, 64)
    );
    assert_eq!(
        settings.repeats(find("latency").expect("listed"), 8192),
        (10_000, 100)
    );
    assert_eq!(
        settings.repeats(find("latency").expect("listed"), 8193),
        (1000, 10)
    );
    assert_eq!(settings.sizes(find("latency").expect("listed")).len(), 23);
    assert_eq!(good("allreduce", "").min_bytes, 4);
    assert_eq!(good("alltoall", "").max_bytes, 1 << 20);
    assert_eq!(
        good("barrier", "").sizes(find("barrier").expect("listed")),
        [0]
    );
}

#[test]
fn line_of_reframe_is_understood() {
    let settings = good("latency", "-m 8 -x 10 -i 1000 -c D D");
    assert_eq!((settings.min_bytes, settings.max_bytes), (1, 8));
    assert_eq!(
        (
            settings.repeats.iterations,
            settings.repeats.warmup,
            settings.shown.validate
        ),
        (Some(1000), Some(10), true)
    );
    assert!(
        settings.warnings[0].contains("host memory"),
        "{:?}",
        settings.warnings
    );
    assert!(good("bw", "-m 4194304 H H").warnings.is_empty());
}

#[test]
fn long_options_say_the_same_as_short_ones() {
    let line = "--message-size 8:64 --iterations 5 --warmup 2 --validation --window-size 16 \
                --tail-lat=50,99 --buffer-num multiple --validation-warmup 3 --mem-limit 1000 \
                --type mpi_int";
    let short = "-m 8:64 -i 5 -x 2 -c -W 16 -z50,99 -b multiple -u 3 -M 1000 -T mpi_int";
    assert_eq!(
        format!("{:?}", good("bw", line)),
        format!("{:?}", good("bw", short))
    );
}

#[test]
fn sizes_are_max_or_min_or_both() {
    let range = |line| {
        let settings = good("latency", line);
        (settings.min_bytes, settings.max_bytes)
    };
    assert_eq!(range("-m 64"), (1, 64));
    assert_eq!(range("-m 64:"), (64, 4 << 20));
    assert_eq!(range("-m :64"), (1, 64));
    assert_eq!(range("-m 0:4"), (0, 4));
    assert_eq!(
        good("latency", "-m 0:4").sizes(find("latency").expect("listed")),
        [0, 1, 2, 4]
    );
    assert_eq!(
        good("latency", "-m 3:13").sizes(find("latency").expect("listed")),
        [3, 6, 12]
    );
}

#[test]
fn bare_tail_option_takes_no_word_of_its_neighbours() {
    let settings = good("latency", "-z H H");
    let written = |settings: &Settings| {
        let tails = settings.shown.tails.iter();
        tails.map(ToString::to_string).collect::<Vec<_>>().join(",")
    };
    assert_eq!(written(&settings), "50,90,99");
    assert_eq!(written(&good("latency", "--tail-lat -c")), "50,90,99");
    assert_eq!(written(&good("latency", "-z99,p50")), "50,99");
    assert_eq!(written(&good("latency", "-z99.9,50,99")), "50,99,99.9");
}

#[test]
fn older_format_starts_latency_at_zero_bytes() {
    assert_eq!(good("latency", "--osu-format 5").min_bytes, 0);
    assert_eq!(good("bw", "--osu-format 5").min_bytes, 1);
}

#[test]
fn root_is_a_rank_or_rotates() {
    assert_eq!(good("bcast", "-k 2").root, Root::Fixed(2));
    assert_eq!(good("bcast", "-k fixed:3").root, Root::Fixed(3));
    assert_eq!(good("bcast", "-k rotate").root, Root::Rotate);
}

#[test]
fn refusals_name_the_option_the_value_and_what_is_allowed() {
    for (name, line, words) in [
        ("latency", "-m 64:8", ["64:8", "above the largest"]),
        ("latency", "-m 1k", ["'1k'", "MIN:MAX"]),
        ("latency", "-m 6:12 -T mpi_int", ["6 bytes", "MPI_INT"]),
        ("latency", "-i 0", ["-i 0", "at least 1"]),
        ("latency", "-z99.9999", ["99.9999", "three decimals"]),
        ("latency", "-z0,50", ["0,50", "between 1 and 100"]),
        ("latency", "-z1,2,3,4,5,6", ["1,2,3,4,5,6", "up to 5"]),
        ("latency", "-T mpi_byte", ["mpi_byte", "mpi_double"]),
        ("latency", "-d cuda", ["-d cuda", "host memory"]),
        ("latency", "-t 4", ["-t 4", "one thread"]),
        ("latency_mt", "-t 0", ["-t 0", "1 to 128"]),
        ("latency_mt", "-t 2:", ["-t 2:", "1 to 128"]),
        ("latency_mp", "-t 129", ["-t 129", "child processes"]),
        ("ibcast", "-t 2:4", ["-t 2:4", "MPI_Test"]),
        ("latency", "-w create", ["-w", "one-sided"]),
        ("bw", "-s fence", ["-s", "one-sided"]),
        ("put_bibw", "-s flush", ["MPI_Win_flush", "pscw or fence"]),
        ("put_bw", "-s flash", ["flash", "flush_local"]),
        ("alltoall", "-N cart:1:1", ["-N", "neighbourhood"]),
        ("neighbor_alltoall", "-N graph:x", ["graph:x", "cart:1:1"]),
        ("cas_latency", "-T mpi_float", ["mpi_float", "mpi_long"]),
        ("fop_latency", "-T mpi_char", ["mpi_char", "mpi_int"]),
        ("latency", "-G tty", ["-G", "compare"]),
        ("latency", "-D cont", ["-D", "-T"]),
        ("allreduce", "-l", ["-l", "MPI_IN_PLACE"]),
        ("latency", "-I", ["-I", "MPI_Init"]),
        ("bw", "-f", ["-f", "-z"]),
        ("allreduce", "-T mpi_char", ["mpi_char", "mpi_int"]),
        ("bcast", "-k first", ["-k first", "rotate"]),
        (
            "latency",
            "--repeat-scale 0",
            ["--repeat-scale 0", "above 0"],
        ),
        ("latency", "--size-time 0", ["--size-time 0", "3600"]),
        ("latency", "--size-time soon", ["soon", "--size-time"]),
        ("latency", "--osu-format 6x", ["6x", "--osu-format"]),
        ("latency", "--frobnicate", ["--frobnicate", "Usage"]),
    ] {
        let text = bad(name, line);
        assert!(
            words.iter().all(|word| text.contains(word)),
            "{name} {line}: {text}"
        );
    }
}

#[test]
fn help_and_version_are_answers_and_not_errors() {
    for (line, word) in [("-h", "--message-size"), ("-v", "v7.5")] {
        match parsed("latency", line) {
            Err(Refusal::Answer(text)) => assert!(text.contains(word), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn scale_shortens_the_defaults_but_not_what_was_said() {
    let latency = find("latency").expect("listed");
    assert_eq!(
        good("latency", "--repeat-scale 0.1").repeats(latency, 1),
        (1000, 100)
    );
    assert_eq!(
        good("latency", "--repeat-scale 0.0001").repeats(latency, 1 << 20),
        (1, 10)
    );
    assert_eq!(
        good("latency", "--repeat-scale 0.1 -i 7 -x 0").repeats(latency, 1),
        (7, 0)
    );
}

#[test]
fn every_benchmark_takes_the_common_options() {
    for description in CATALOGUE {
        let settings = good(
            description.name,
            "-m 8:64 -i 3 -x 1 -c -u 2 -z50 --json H H",
        );
        assert_eq!(
            (settings.shown.style, settings.repeats.validation_warmup),
            (Style::Json, 2)
        );
    }
}

#[test]
fn meaning_of_t_depends_on_the_benchmark() {
    let helpers = |line| {
        let counts = good("latency_mt", line).special.helpers;
        (counts.senders, counts.receivers)
    };
    assert_eq!(helpers(""), (1, 2));
    assert_eq!(helpers("-t 4"), (1, 4));
    assert_eq!(helpers("-t 4:6"), (4, 6));
    assert_eq!(good("ialltoall", "-t 100").special.test_calls, 100);
    assert_eq!(good("ialltoall", "").special.test_calls, 0);
    good("bw", "-t 1");
}

#[test]
fn window_and_synchronisation_are_spelled_as_in_osu() {
    let special = good("put_latency", "-w CREATE -s flush_local").special;
    assert_eq!(special.origin, weft_mpi::Origin::Create);
    let title = special.synchronisation.map(|chosen| chosen.title());
    assert_eq!(title, Some("MPI_Win_flush_local"));
    for name in ["pscw", "fence", "lock", "flush", "flush_local", "lock_all"] {
        good("get_bw", &format!("-s {name}"));
    }
    let default = good("get_bw", "").special;
    assert_eq!(default.origin, weft_mpi::Origin::Allocate);
}

#[test]
fn several_types_run_one_after_the_other() {
    use Datatype::{Char, Double, Float, Int, Long};
    assert_eq!(good("latency", "-T mpi_int,mpi_char").kinds, [Int, Char]);
    let all = good("latency", "-T all");
    assert_eq!(all.kinds, [Char, Int, Float, Double, Long]);
    assert_eq!(all.min_bytes, 8);
    assert_eq!(good("reduce", "-T all").kinds, [Int, Float, Double, Long]);
    assert_eq!(good("cas_latency", "-T all").kinds, [Int, Long]);
}

#[test]
fn single_accesses_have_one_size_which_is_that_of_the_type() {
    let fetch = find("fop_latency").expect("listed");
    assert_eq!(good("fop_latency", "").sizes(fetch), [8]);
    assert_eq!(good("fop_latency", "-T mpi_int -m 64").sizes(fetch), [4]);
}
