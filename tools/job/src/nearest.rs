// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds the known name that is nearest to a misspelled one. Called wherever names are read.

use crate::node::shortened;

/// How alike two names must be for one to be taken for the other, of 1 (Jaro and Winkler's
/// measure). Chosen: `rank_per_node` and `ranks_per_node` have 0.98, `ram` and `ranks` 0.80.
const ALIKE: f64 = 0.82;

/// The nearest of the known names; upper and lower case count as the same.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer than any name: not worth the time.
    if name.len() > 200 {
        return None;
    }
    let lower = name.to_ascii_lowercase().replace('-', "_");
    let likeness = |one: &str| strsim::jaro_winkler(&one.to_ascii_lowercase(), &lower);
    known
        .into_iter()
        .map(|one| (one, likeness(one)))
        .filter(|&(_, alike)| alike >= ALIKE)
        .max_by(|one, other| one.1.total_cmp(&other.1))
        .map(|(one, _)| one)
}

/// The answer to a name that is not known: the nearest one, or all.
pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let advice = match nearest(name, known.iter().copied()) {
        Some(one) => format!("did you mean `{one}`?"),
        None => format!("there are {}", known.join(", ")),
    };
    format!("`{}` is not a {what}; {advice}", shortened(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_another_word() {
        let known = ["ranks", "ranks_per_node", "shm_size"];
        for (word, meant) in [
            ("rank", Some("ranks")),
            ("rank_per_node", Some("ranks_per_node")),
            ("ranksPerNode", Some("ranks_per_node")),
            ("shm-size", Some("shm_size")),
            ("ram", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
        assert_eq!(nearest(&"r".repeat(100_000), known), None);
    }
}
