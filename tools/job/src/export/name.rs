// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes a job's name so that the other system accepts it.

use super::exported::Notes;
use crate::job::Job;

/// What a system takes as a name: always letters, digits and `-`, at most `most` of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Capital letters and `_` too.
    pub has_capitals: bool,
    pub most: usize,
}

/// The job's name, or its program's, with `-` for what the rules do not allow. A changed name is
/// noted.
pub(super) fn name_of(job: &Job, rules: Rules, notes: &mut Notes<'_>) -> String {
    let program = job.program.rsplit('/').next().unwrap_or_default();
    let given = job.name.as_deref();
    let name = fitted(given.unwrap_or(program), rules);
    match given {
        Some(given) if given != name => {
            notes.add("name", format!("{given} is no name there; it is {name}"));
        }
        Some(_) => {}
        None => notes.add("name", format!("none is given; it is {name}")),
    }
    name
}

fn fitted(text: &str, rules: Rules) -> String {
    let fit = |one: char| match one {
        'A'..='Z' if !rules.has_capitals => one.to_ascii_lowercase(),
        '_' if rules.has_capitals => one,
        _ if one.is_ascii_alphanumeric() => one,
        _ => '-',
    };
    let fitted: String = text.chars().map(fit).take(rules.most).collect();
    // Kubernetes wants a letter first, and no dash at an end.
    let fitted = fitted.trim_matches(['-', '_']);
    let begins_well = fitted.starts_with(|one: char| one.is_ascii_alphabetic());
    if begins_well || (rules.has_capitals && !fitted.is_empty()) {
        return fitted.to_owned();
    }
    let whole = format!("job-{fitted}");
    let cut = &whole[..whole.len().min(rules.most)];
    cut.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_fits_the_rules() {
        let (batch, pods) = (
            Rules {
                has_capitals: true,
                most: 128,
            },
            Rules {
                has_capitals: false,
                most: 8,
            },
        );
        for (text, rules, name) in [
            ("My_job.v2", batch, "My_job-v2"),
            ("9", batch, "9"),
            ("é", batch, "job"),
            ("My_job.v2", pods, "my-job-v"),
            ("7abcdefghij", pods, "job-7abc"),
            ("--", pods, "job"),
            ("abcdefg-h", pods, "abcdefg"),
        ] {
            assert_eq!(fitted(text, rules), name);
        }
    }
}
