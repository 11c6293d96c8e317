// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random job files and random texts. A job that is written and read again is the same job, and no
//! text makes a reader panic. A failure prints the case; `PROPTEST_RNG_SEED=N` repeats a seed.

#[path = "jobs/random.rs"]
mod jobs;

use proptest::prelude::*;
use weft_job::{JobFile, write};

use jobs::{jobs, text};

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
