// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random job files and random texts: a job that is written is the job that is read, and no text
//! makes a reader panic. A failure prints the case; `PROPTEST_RNG_SEED=N` repeats a seed.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use weft_job::job::{Array, Dependency, Job, Mount, When};
use weft_job::size::ShmSize;
use weft_job::time::TimeLimit;
use weft_job::whole::Whole;
use weft_job::{JobFile, write};

/// Any text without NUL, and those that YAML might take for something else.
fn text() -> impl Strategy<Value = String> {
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

fn whole<const LEAST: u32, const MOST: u32>() -> impl Strategy<Value = Whole<LEAST, MOST>> {
    (LEAST..=MOST).prop_map(|number| Whole::new(number).unwrap())
}

fn environment() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map("[^\0=]{1,8}", text(), 0..4)
}

fn mounts() -> impl Strategy<Value = Vec<Mount>> {
    let mount = ("[a-z][a-z0-9.-]{1,20}[a-z0-9]", text(), any::<bool>());
    vec(mount, 0..3).prop_map(|list| {
        let one = |(index, (bucket, prefix, read_only)): (usize, (String, String, bool))| Mount {
            source: format!("s3://{bucket}/{prefix}"),
            target: format!("/mnt/{index}"),
            read_only,
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
    size.prop_map(|(number, unit, is_wish)| {
        let wish = if is_wish { "try:" } else { "" };
        format!("{wish}{number}{unit}").parse().unwrap()
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
    fn jobs()(
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
        Job {
            ranks_per_node, hosts, shm_size, mounts, time_limit, retries, array, dependencies,
            ..words
        }
    }
}

proptest! {
    // A failure prints its case; no file is left in the tree.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_job_that_is_written_is_the_job_that_is_read(job in jobs()) {
        let yaml = write::to_yaml(&job).unwrap();
        let file = JobFile::from_text("job.yaml", &yaml);
        let file = file.map_err(|fault| TestCaseError::fail(format!("{fault}\n{yaml}")))?;
        prop_assert_eq!(&file.job, &job, "{}", yaml);
        let json = serde_json::to_string(&job).unwrap();
        let file = JobFile::from_text("job.json", &json);
        let file = file.map_err(|fault| TestCaseError::fail(format!("{fault}\n{json}")))?;
        prop_assert_eq!(&file.job, &job, "{}", json);
    }

    #[test]
    fn no_text_makes_the_reader_panic_and_a_refusal_is_one_line(text in any::<String>()) {
        if let Err(fault) = JobFile::from_text("job.yaml", &text) {
            prop_assert!(!fault.to_string().contains(char::is_control));
        }
    }

    /// Cut, doubled or with other characters in the middle.
    #[test]
    fn no_changed_job_file_makes_the_reader_panic(
        job in jobs(), at in any::<proptest::sample::Index>(), put in text(), cut in 0_usize..9,
    ) {
        let yaml = write::to_yaml(&job).unwrap();
        let mut letters: Vec<char> = yaml.chars().collect();
        let at = at.index(letters.len());
        let end = (at + cut).min(letters.len());
        letters.splice(at..end, put.chars());
        let changed: String = letters.into_iter().collect();
        if let Err(fault) = JobFile::from_text("job.yaml", &changed) {
            let said = fault.to_string();
            let is_line = !said.contains(char::is_control);
            prop_assert!(said.starts_with("job.yaml") && is_line, "{}", said);
        }
    }
}
