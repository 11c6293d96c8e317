// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Small networks in which every invariant is checked at every event, and the goals of the design
//! at a size that is fast to test.

use weft_netsim::options::Options;
use weft_netsim::scenario::{Report, run};
use weft_netsim::stream::{Fault, Stream};

fn read(words: &str) -> Result<Options, clap::Error> {
    Options::read(words.split_whitespace().map(Into::into))
}

fn simulate(words: &str) -> Report {
    let options = read(words).unwrap();
    println!("seed {}", options.seed);
    run(&options).unwrap()
}

#[test]
fn every_scenario_ends_with_all_messages_whole_and_every_invariant_kept() {
    for scenario in [
        "incast",
        "permutation",
        "allreduce",
        "alltoall",
        "spine-failure",
    ] {
        for seed in 1..4 {
            let report = simulate(&format!(
                "{scenario} --hosts 12 --bytes 150000 --alone --check --seed {seed}"
            ));
            assert_eq!(report.rows[0].unfinished, 0, "{scenario}, seed {seed}");
        }
    }
}

#[test]
fn links_that_lose_one_of_a_thousand_cost_little() {
    let clean = simulate("permutation --hosts 16 --bytes 1000000 --alone");
    let lossy = simulate("permutation --hosts 16 --bytes 1000000 --alone --check --loss 1000");
    assert!(lossy.rows[0].swallowed > 0 && lossy.rows[0].unfinished == 0);
    let (clean, lossy) = (clean.rows[0].max, lossy.rows[0].max);
    assert!(lossy < 1.5 * clean, "{lossy} against {clean}");
}

#[test]
fn messages_of_one_packet_and_of_none_too_many_arrive() {
    for bytes in [1, 3000, 40_000] {
        let report = simulate(&format!(
            "alltoall --hosts 10 --bytes {bytes} --alone --check"
        ));
        assert_eq!(report.rows[0].unfinished, 0, "{bytes} bytes");
    }
}

#[test]
fn a_run_is_repeated_exactly_by_its_seed() {
    let words = "permutation --hosts 16 --bytes 300000 --alone";
    let (first, second) = (simulate(words), simulate(words));
    assert_eq!(first.rows[0].slowdowns, second.rows[0].slowdowns);
    assert_eq!(first.rows[0].events, second.rows[0].events);
    let other = simulate(&format!("{words} --seed 2"));
    assert_ne!(first.rows[0].slowdowns, other.rows[0].slowdowns);
}

#[test]
fn the_last_flow_of_an_incast_is_at_most_15_percent_behind_the_ideal() {
    let report = simulate("incast --hosts 25 --bytes 400000 --alone");
    assert!(report.rows[0].max <= 1.15, "{}", report.rows[0].max);
    assert_eq!(report.rows[0].dropped, 0);
}

#[test]
fn an_incast_of_messages_that_ask_for_no_credit_recovers_from_its_drops() {
    let report = simulate("incast --hosts 65 --bytes 60000 --queue 256 --alone");
    let row = &report.rows[0];
    assert!(row.dropped > 0 && row.unfinished == 0, "{row:?}");
    assert!(row.max < 2.0, "{}", row.max);
}

/// Worst and 99th percentile of slowdown over 64 paths, and the worst over one.
fn middle(words: &str) -> (f64, f64, f64) {
    let many = simulate(&format!("{words} --alone"));
    let one = simulate(&format!("{words} --alone --paths 1"));
    let (many, one) = (&many.rows[0], &one.rows[0]);
    println!(
        "{words}: {:.2} {:.2}, one path {:.2}",
        many.p99, many.max, one.max
    );
    assert_eq!(many.unfinished + one.unfinished, 0, "{words}");
    (many.p99, many.max, one.max)
}

/// With 1024 hosts: docs/lab/2026-11-24-middle-sizes-on-a-thousand-hosts.md.
#[test]
fn middle_sizes_of_a_permutation_are_at_most_twice_the_ideal_and_better_than_over_one_path() {
    for bytes in [16 << 10, 64 << 10, 256 << 10] {
        let (p99, max, one_max) = middle(&format!("permutation --hosts 64 --bytes {bytes}"));
        assert!(p99 <= 1.9 && max <= 2.2, "{bytes} bytes: {p99}, {max}");
        assert!(max <= one_max, "{bytes} bytes: {max}, one path {one_max}");
    }
}

#[test]
fn middle_sizes_of_an_all_to_all_are_at_most_half_behind_the_ideal() {
    for bytes in [16 << 10, 64 << 10] {
        let (p99, max, one_max) = middle(&format!("alltoall --hosts 32 --bytes {bytes}"));
        assert!(p99 <= 1.5 && max <= 1.5, "{bytes} bytes: {p99}, {max}");
        assert!(max <= one_max, "{bytes} bytes: {max}, one path {one_max}");
    }
}

#[test]
fn an_incast_of_64_kib_from_127_hosts_takes_at_most_twice_the_ideal() {
    let (_, max, _) = middle("incast --hosts 128 --bytes 65536");
    assert!(max <= 2.0, "{max}");
}

/// Who lose a packet together do not send it again together, and nobody sleeps for long when the
/// others are done: docs/lab/2026-11-27-incasts-between-hosts-that-know-each-other.md.
#[test]
fn an_incast_between_hosts_that_have_met_takes_at_most_twice_the_ideal() {
    for seed in 1..4 {
        let words = "incast --met --hosts 256 --bytes 65536 --queue 64 --alone";
        let report = simulate(&format!("{words} --seed {seed}"));
        let row = &report.rows[0];
        assert!(row.dropped > 0 && row.unfinished == 0, "{row:?}");
        assert!(row.max <= 2.0, "{}, seed {seed}", row.max);
    }
}

#[test]
fn hosts_that_have_met_keep_every_invariant_and_their_greetings_do_not_count() {
    for scenario in ["incast", "permutation", "allreduce", "alltoall"] {
        let words = format!("{scenario} --hosts 12 --bytes 30000 --alone --check");
        let (strangers, met) = (simulate(&words), simulate(&format!("{words} --met")));
        let (strangers, met) = (&strangers.rows[0], &met.rows[0]);
        assert_eq!(met.unfinished, 0, "{scenario}");
        // At first contact packets are short.
        assert!(met.packets < strangers.packets, "{met:?}, {strangers:?}");
    }
}

#[test]
fn a_broken_spine_costs_less_than_a_millisecond() {
    let report = simulate("spine-failure --hosts 32 --bytes 1000000 --alone");
    let cost = report.failure_cost_us.unwrap();
    assert!(cost < 1000.0, "{cost} us");
    assert!(report.rows[0].swallowed > 0, "the failure must be felt");
    assert_eq!(report.rows[0].unfinished, 0);
}

#[test]
fn many_paths_are_faster_than_one_and_one_than_the_baseline_in_a_permutation() {
    let report = simulate("permutation --hosts 32 --bytes 1000000");
    let [many, one, baseline] = &report.rows[..] else {
        panic!("three variants")
    };
    assert!(
        many.max < one.max && one.max < baseline.max,
        "{} {} {}",
        many.max,
        one.max,
        baseline.max
    );
}

#[test]
fn in_a_permutation_99_of_100_messages_are_at_most_30_percent_behind_the_ideal() {
    let report = simulate("permutation --hosts 64 --bytes 2000000 --alone");
    assert!(report.rows[0].p99 <= 1.3, "{}", report.rows[0].p99);
    assert_eq!(report.rows[0].dropped, 0);
}

#[test]
fn bad_options_are_told_with_their_limits() {
    let refused =
        |words: &str| weft_netsim::run(words.split_whitespace().map(Into::into).collect());
    assert_eq!(refused("incast --hosts 1"), weft_netsim::EXIT_USAGE);
    assert_eq!(refused("incast --paths 65"), weft_netsim::EXIT_USAGE);
    assert_eq!(refused("blackhole --hosts 3"), weft_netsim::EXIT_USAGE);
    assert_eq!(refused("nonsense"), weft_netsim::EXIT_USAGE);
    assert_eq!(refused("spine-failure --hosts 2"), weft_netsim::EXIT_FAILED);
    assert_eq!(
        refused("incast --hosts 3 --plot /nowhere/at/all.svg"),
        weft_netsim::EXIT_FAILED
    );
    for (words, sentence) in [
        ("incast --mtu 100", "a whole number from 1280 to 9000 bytes"),
        ("incast --paths 300", "a whole number from 1 to 64"),
        ("incast --hosts many", "a whole number from 2 to 4096"),
        ("incast --seed -1", "a whole number from 0 to"),
        ("incast --queue 1", "a whole number from 16 to 1048576 KiB"),
        ("blackhole --rate 10", "--rate has no effect on a stream"),
        ("slow-path --loss 5", "--loss has no effect on a stream"),
        ("blackhole --hosts 3", "between 2 hosts"),
    ] {
        let told = read(words).unwrap_err().to_string();
        assert!(told.contains(sentence), "{words}: {told}");
    }
    assert!(read("blackhole --hosts 2 --bytes 1000").is_ok());
}

#[test]
fn the_plot_of_a_stream_has_a_curve_per_number_of_paths_and_an_earlier_file_is_replaced() {
    let path = std::env::temp_dir().join(format!("weft-netsim-stream-{}.svg", std::process::id()));
    std::fs::write(&path, "x".repeat(1 << 20)).unwrap();
    let words = format!("blackhole --json --plot {}", path.display());
    let code = weft_netsim::run(words.split_whitespace().map(Into::into).collect());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(code, weft_netsim::EXIT_OK);
    assert!(text.starts_with("<svg") && text.len() < 1 << 20);
    for name in ["weft, 64 paths", "weft, 1 path", "MB/s"] {
        assert!(text.contains(name), "{name}");
    }
}

#[test]
fn the_plot_is_an_svg_with_a_curve_per_variant() {
    let report = simulate("permutation --hosts 8 --bytes 100000");
    let path = std::env::temp_dir().join(format!("weft-netsim-{}.svg", std::process::id()));
    weft_netsim::plot::draw(&path, &report).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(text.starts_with("<svg"));
    for row in &report.rows {
        assert!(text.contains(&row.variant), "{}", row.variant);
    }
}

#[test]
fn a_path_that_swallows_everything_pauses_a_stream_for_less_than_5_ms() {
    for seed in 1..6 {
        let stream = Stream {
            seed,
            fault: Fault::Hole,
            fault_ns: 300_000_000,
            ..Stream::default()
        };
        let seen = stream.run();
        println!("seed {seed}: {} us, {:?} ms", seen.pause_us, seen.back_ms);
        assert!(seen.pause_us < 5000.0, "{} us, seed {seed}", seen.pause_us);
        assert!(
            seen.back_ms.is_some_and(|ms| ms <= 100.0),
            "{:?}",
            seen.back_ms
        );
        let healed = seen.healed_use_ms;
        assert!(
            healed.is_some_and(|ms| ms <= 500.0),
            "{healed:?}, seed {seed}"
        );
    }
}

/// MB/s of a stream under a fault that begins after 200 ms.
fn during(seed: u64, fault: Fault) -> f64 {
    let stream = Stream {
        seed,
        fault,
        fault_ns: 200_000_000,
        ..Stream::default()
    };
    stream.run().during_mb_s
}

#[test]
fn a_slow_path_leaves_a_stream_nine_tenths_of_what_the_others_give() {
    for seed in 1..4 {
        let (all, slow) = (during(seed, Fault::None), during(seed, Fault::Slow));
        println!("seed {seed}: {slow} of {all} MB/s");
        assert!(
            slow >= 0.9 * 0.75 * all,
            "{slow} of {all} MB/s, seed {seed}"
        );
    }
}

#[test]
fn one_packet_of_a_hundred_lost_on_every_path_leaves_a_stream_four_fifths() {
    for seed in 1..4 {
        let (all, lossy) = (during(seed, Fault::None), during(seed, Fault::Loss(10_000)));
        println!("seed {seed}: {lossy} of {all} MB/s");
        assert!(lossy >= 0.8 * all, "{lossy} of {all} MB/s, seed {seed}");
    }
}

#[test]
fn hosts_that_are_away_half_of_the_time_keep_half_of_the_throughput_that_is_left() {
    for seed in 1..4 {
        let stream = Stream {
            seed,
            away_every_ns: 8_000_000,
            away_most_ns: 8_000_000,
            ..Stream::default()
        };
        let seen = stream.run();
        println!("seed {seed}: {} MB/s, {:?}", seen.during_mb_s, seen.sender);
        // Both are there for a fourth of the time, and four paths of 62.5 MB/s are to be filled.
        assert!(
            seen.during_mb_s >= 0.5 * 0.25 * 250.0,
            "{} MB/s, seed {seed}",
            seen.during_mb_s
        );
    }
}
