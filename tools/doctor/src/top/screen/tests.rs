// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a report looks like in windows of all sizes.

use super::*;
use crate::top::place::Place;

#[test]
fn numbers_are_short() {
    let all = [0.0, 7.0, 999.0, 1000.0, 12_345.0, 999_999.0, 3.2e9].map(short);
    assert_eq!(all, ["0", "7", "999", "1.0k", "12.3k", "1.0M", "3.2G"]);
    assert_eq!(
        [1, 65_536, 1 << 20, 1 << 34].map(binary),
        ["1", "64K", "1M", "16G"]
    );
}

#[test]
fn a_remote_beyond_this_host_is_shown_with_its_round_trip_window_and_paths() {
    let flow = network::Flow {
        address: "10.0.0.2:7".parse().unwrap(),
        srtt_ns: 85_200,
        cwnd_bytes: 524_288,
        in_flight_bytes: 65_536,
        good_paths: 30,
        paths: 32,
        datagram_bytes: 8972,
        sent_bytes: 0,
        retransmitted: 0,
        heard_ns: 0,
        sent_bytes_per_s: 1.2e8,
        retransmitted_per_s: 3.0,
    };
    let cells = flow_cells(&flow, Some(3)).join(" ");
    let words: Vec<&str> = cells.split_whitespace().collect();
    assert_eq!(words.join(" "), "> 3 10.0.0.2:7 srd 120M");
    let told = "srd to 10.0.0.2:7: rtt 86 us, cwnd 512K, in flight 64K, paths 30/32, \
                datagrams 8972, again 3/s";
    assert_eq!(flow_note(&flow), told);
    assert_eq!([0, 1, 12_000_000].map(time), ["-", "1 us", "12 ms"]);
}

/// Ranks on one host, each of which sends to the next.
fn ring(count: u32) -> Report {
    let address = |rank: u32| format!("10.20.30.40:{}", 40_000 + rank % count);
    let flow = Traffic {
        messages_per_s: 1200.0,
        bytes_per_s: 3.4e6,
        messages: 9,
        bytes: 9,
    };
    let endpoint = |rank: u32| EndpointRow {
        address: address(rank).parse().unwrap(),
        pid: 5000 + rank,
        place: Place {
            command: "a-long-name-of-a-program".to_owned(),
            rank: Some(rank),
            job: Some("36dac8fe".to_owned()),
        },
        sleeps: false,
        silent_s: 0.0,
        sent: [("inline", flow)].into(),
        received: flow,
        waiting: 0,
        moving: 0,
        offered: 0,
        wide_lanes: 0,
        lost: 0,
        choices: Vec::new(),
        remotes: vec![RemoteRow {
            address: address(rank + 1).parse().unwrap(),
            pid: 5001 + rank,
            route: "shm",
            sent: Some(flow),
            received: None,
        }],
        network: None,
        collectives: Default::default(),
    };
    Report {
        interval_s: 1.0,
        endpoints: (0..count).map(endpoint).collect(),
        refused: Vec::new(),
        mounts: Vec::new(),
    }
}

fn shown(report: &Report, columns: usize, rows: usize) -> String {
    View::new(Order::Messages, false).text(report, Room { columns, rows })
}

#[test]
fn a_narrow_window_keeps_ranks_and_rates() {
    let report = ring(2);
    for columns in [200, 120, 100, 80, 60, 40] {
        let text = shown(&report, columns, 50);
        for line in text.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
        assert!(text.contains(" RANK") || text.contains("RANK "), "{text}");
        for words in ["OUT/s", "IN B/s", "1.2k", "3.4M", "> 1"] {
            assert!(text.contains(words), "{columns}: no {words} in\n{text}");
        }
    }
    assert!(shown(&report, 80, 50).contains("10.20.30.40:40001"));
    let wide = shown(&report, 200, 50);
    for words in [
        "a-long-name-",
        "36dac8fe",
        "5000",
        "polling",
        "inline 1.2k/s",
    ] {
        assert!(wide.contains(words), "{wide}");
    }
}

#[test]
fn a_low_window_shows_every_endpoint_before_any_remote_and_says_what_is_missing() {
    let report = ring(8);
    let all = shown(&report, 100, 40);
    assert!(all.contains("> 7") && !all.contains("window"), "{all}");
    let low = shown(&report, 100, 12);
    assert!(
        !low.contains("> 7") && low.contains("a higher window"),
        "{low}"
    );
    assert_eq!(low.matches("polling").count(), 8);
    let lowest = shown(&report, 100, 7);
    assert!(lowest.contains("4 of 8 shown"), "{lowest}");
    for (text, rows) in [(low, 15), (lowest, 7), (shown(&ring(300), 100, 24), 24)] {
        assert!(text.lines().count() <= rows, "{text}");
    }
}

#[test]
fn an_empty_machine_says_so() {
    let text = View::plain(Order::Messages).text(&Report::default(), Room::ENDLESS);
    assert!(
        text.contains("0 endpoints") && text.contains("no endpoint of this user"),
        "{text}"
    );
}
