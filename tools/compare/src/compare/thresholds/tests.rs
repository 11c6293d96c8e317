// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules are crossed when they should be, and unclear files are refused.

use super::*;
use crate::compare::record::tests::filled;

fn rules(text: &str) -> Result<Thresholds, Error> {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("limits.json");
    std::fs::write(&path, text).expect("written");
    read(&path)
}

fn outcome(rule: &str, previous: Option<&Record>) -> Outcome {
    let record = filled();
    let thresholds = rules(&format!("{{\"thresholds\":[{rule}]}}")).expect("good rule");
    let mut outcomes = check(&thresholds, &Analysis::of(&record), previous).expect("checked");
    outcomes.remove(0)
}

#[test]
fn ratio_beyond_its_limit_is_named_with_amount_and_confidence() {
    let crossed = outcome(
        r#"{"benchmark":"latency","against":"native","at_most":0.4}"#,
        None,
    );
    assert_eq!((crossed.checked, crossed.crossed.len()), (2, 2));
    assert_eq!(
        crossed.crossed[0],
        "mpich over weft: latency, 2 ranks, 8 bytes: 0.50 times native (0.50 to 0.50 with 98.4 % \
         confidence), allowed is at most 0.4: 25 % beyond"
    );
    assert!(
        outcome(
            r#"{"benchmark":"latency","against":"own","at_most":0.6}"#,
            None
        )
        .crossed
        .is_empty()
    );
    assert_eq!(
        outcome(
            r#"{"benchmark":"bw","against":"best","at_least":2,"to_bytes":8}"#,
            None
        )
        .crossed
        .len(),
        1
    );
    assert_eq!(
        outcome(
            r#"{"benchmark":"bw","against":"openmpi/native","at_least":1.4}"#,
            None
        )
        .crossed
        .len(),
        0
    );
}

#[test]
fn figure_that_only_may_be_beyond_crosses_when_asked_for_by_value() {
    let rule = |judge| {
        format!(r#"{{"benchmark":"latency","to_bytes":8,"at_most":0.29,"judge":"{judge}"}}"#)
    };
    assert_eq!(outcome(&rule("surely"), None).crossed.len(), 0);
    assert_eq!(outcome(&rule("value"), None).crossed.len(), 1);
}

#[test]
fn earlier_comparison_is_a_yardstick() {
    let mut faster = filled();
    for row in faster.turns.iter_mut().flat_map(|turn| &mut turn.rows) {
        row.median /= 4.0;
    }
    let rule = r#"{"benchmark":"latency","against":"previous","at_most":1.1}"#;
    assert_eq!(outcome(rule, Some(&faster)).crossed.len(), 2);
    assert_eq!(outcome(rule, Some(&filled())).crossed.len(), 0);
    let record = filled();
    let thresholds = rules(&format!("{{\"thresholds\":[{rule}]}}")).expect("good rule");
    let reason = check(&thresholds, &Analysis::of(&record), None).expect_err("no yardstick");
    assert!(reason.to_string().contains("--previous"), "{reason}");
}

#[test]
fn rule_without_figures_does_not_pass() {
    let crossed = outcome(r#"{"benchmark":"latency","mpi":"intel","at_most":1}"#, None);
    assert!(
        crossed.crossed[0].contains("nothing was measured"),
        "{crossed:?}"
    );
}

#[test]
fn unclear_files_are_refused() {
    for (text, words) in [
        ("{", "EOF"),
        (r#"{"thresholds":[]}"#, "no threshold"),
        (
            r#"{"thresholds":[{"benchmark":"bw"}]}"#,
            "at_most or at_least",
        ),
        (
            r#"{"thresholds":[{"benchmark":"bw","at_most":-1}]}"#,
            "above 0",
        ),
        (
            r#"{"thresholds":[{"benchmark":"bw","at_most":1,"against":"me"}]}"#,
            "native, best, previous",
        ),
        (
            r#"{"thresholds":[{"benchmark":"bw","atmost":1}]}"#,
            "atmost",
        ),
    ] {
        let reason = rules(text).expect_err(text);
        assert!(
            reason.to_string().contains("limits.json") && reason.to_string().contains(words),
            "{reason}"
        );
    }
}
