// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random jobs, for the laws of job files and of exports.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use weft_job::job::{Array, Dependency, Job, Mount, When};
use weft_job::size::ShmSize;
use weft_job::time::TimeLimit;
use weft_job::whole::Whole;

/// Any text without NUL, and those that YAML might take for something else.
pub fn text() -> impl Strategy<Value = String> {
    let odd = [
        "no",
        "~",
        "null",
        "true",
        "0x1f",
        "1e3",
        ".5",
        "-",
        "- a",
        "a: b",
        "#",
        "a #b",
        "<<",
        "*a",
        "&a",
        "!a",
        "|",
        ">",
        "%",
        "@",
        "`",
        "'",
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        "?",
        ": ",
        "\n",
        "\t",
        "\r",
        " a ",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "\u{1}",
        "\u{7f}",
        "é",
        "😀",
        "=",
        "1:30",
        "2001-01-01",
        "---",
        "...",
        "Ref::x",
    ];
    prop_oneof![
        "[^\0]{0,20}",
        "[ -~]{0,20}",
        vec(proptest::sample::select(odd.to_vec()), 1..4).prop_map(|parts| parts.concat()),
    ]
}

fn filled() -> impl Strategy<Value = String> {
    text().prop_filter("must not be empty", |text| !text.is_empty())
}

/// Any number within the bounds.
pub fn whole<const LEAST: u32, const MOST: u32>() -> impl Strategy<Value = Whole<LEAST, MOST>> {
    (LEAST..=MOST).prop_map(|number| Whole::new(number).unwrap())
}

fn environment() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map("[^\0=]{1,8}", text(), 0..4)
}

fn mounts() -> impl Strategy<Value = Vec<Mount>> {
    let mount = ("[a-z][a-z0-9.-]{1,20}[a-z0-9]", text(), 0..3_u8);
    vec(mount, 0..3).prop_map(|list| {
        let one = |(index, (bucket, prefix, kind)): (usize, (String, String, u8))| Mount {
            source: format!("s3://{bucket}/{prefix}"),
            target: format!("/mnt/{index}"),
            read_only: kind == 1,
            shared_writes: kind == 2,
        };
        list.into_iter().enumerate().map(one).collect()
    })
}

fn dependencies() -> impl Strategy<Value = Vec<Dependency>> {
    let when = proptest::sample::select(vec![
        When::Succeeded,
        When::Started,
        When::Ended,
        When::Failed,
    ]);
    let one = ("[0-9]{1,9}(_[0-9]{1,3})?", when);
    vec(one.prop_map(|(job, when)| Dependency { job, when }), 0..3)
}

fn shm_size() -> impl Strategy<Value = ShmSize> {
    let size = (
        1_u64..1 << 20,
        proptest::sample::select(vec!["k", "m", "g"]),
        any::<bool>(),
    );
    size.prop_map(|(number, unit, is_best_effort)| {
        let prefix = if is_best_effort { "try:" } else { "" };
        format!("{prefix}{number}{unit}").parse().unwrap()
    })
}

fn time_limit() -> impl Strategy<Value = TimeLimit> {
    let whole = (1_u32..315_360_000).prop_map(f64::from);
    prop_oneof![whole, 0.001..1e8].prop_map(|seconds| TimeLimit::of_seconds(seconds).unwrap())
}

prop_compose! {
    fn words()(
        name in option::of("[A-Za-z0-9][A-Za-z0-9._-]{0,127}"),
        program in filled(),
        arguments in vec(text(), 0..5),
        folder in option::of(filled()),
        mpi in option::of(filled()),
        transport in option::of(filled()),
        environment in environment(),
    ) -> Job {
        Job { name, arguments, folder, mpi, transport, environment, ..Job::of(program) }
    }
}

prop_compose! {
    /// Any job without counts that could disagree.
    pub fn jobs()(
        words in words(),
        ranks_per_node in option::of(whole()),
        hosts in vec("[a-z][a-z0-9.-]{0,8}(:[1-9])?", 0..4),
        shm_size in option::of(shm_size()),
        mounts in mounts(),
        time_limit in option::of(time_limit()),
        retries in option::of(whole()),
        size in option::of(whole::<1, 10_000>()),
        dependencies in dependencies(),
    ) -> Job {
        let array = size.map(|size| Array { size, at_once: Some(size) });
        let is_shared = mounts.iter().any(|mount| mount.shared_writes);
        Job {
            version: Whole::new(1 + u32::from(is_shared)).unwrap(),
            ranks_per_node, hosts, shm_size, mounts, time_limit, retries, array, dependencies,
            ..words
        }
    }
}
