// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The list of benchmarks, by name and as `weft bench` shows it.
//!
//! Called by weft-bench and weft-compare. The entries are in [`list`].

mod list;

use crate::description::{Description, Family};
pub use list::CATALOGUE;
use weft_mpi::Form;

/// Finds a benchmark by its name, with or without OSU's `osu_` in front. OSU once put `persistent`
/// first.
pub fn find(name: &str) -> Option<&'static Description> {
    let name = name.strip_prefix("osu_").unwrap_or(name);
    let turned = name
        .strip_prefix("persistent_")
        .map(|rest| format!("{rest}_persistent"));
    let name = turned.as_deref().unwrap_or(name);
    CATALOGUE
        .iter()
        .find(|description| description.name == name)
}

/// Commands of `weft bench` that are no entries of the catalogue.
const COMMANDS: [&str; 8] = [
    "compare", "ior", "mdtest", "app", "figures", "mount", "ft", "is",
];

/// All names that may stand behind `weft bench`.
pub fn names() -> impl Iterator<Item = &'static str> {
    let benchmarks = CATALOGUE.iter().map(|description| description.name);
    benchmarks.chain(COMMANDS)
}

/// How alike two names must be for one to be suggested, of 1 (Jaro and Winkler's measure). Chosen:
/// `latancy` and `latency` have 0.93, `gather` and `scatter` 0.75.
const ALIKE: f64 = 0.85;

/// A line that says that there is no such benchmark, and which name is nearest.
pub fn unknown(name: &str) -> String {
    let bare = name.strip_prefix("osu_").unwrap_or(name);
    let likeness = |known: &str| strsim::jaro_winkler(known, bare);
    let nearest = names()
        .filter(|known| likeness(known) >= ALIKE)
        .max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    let suggestion = nearest.map_or_else(
        || "`weft bench` lists them".to_owned(),
        |known| format!("did you mean {known}?"),
    );
    format!("weft bench: no benchmark is called '{name}'; {suggestion}")
}

/// Whether a benchmark stands below a heading.
type Belongs = fn(&Description) -> bool;

/// The headings of the overview, each with what stands below it.
const SORTS: [(&str, Belongs); 7] = [
    ("Point to point", |description| {
        description.is_point_to_point()
    }),
    ("Collectives", |description| {
        is_of(description, Form::Blocking, false)
    }),
    ("Non-blocking collectives", |description| {
        is_of(description, Form::Nonblocking, false)
    }),
    ("Persistent collectives", |description| {
        is_of(description, Form::Persistent, false)
    }),
    ("Neighbourhood collectives", |description| {
        is_of(description, Form::Blocking, true) || is_of(description, Form::Nonblocking, true)
    }),
    ("One-sided", |description| description.one_sided().is_some()),
    ("Start", |description| {
        matches!(description.family, Family::Startup(_))
    }),
];

fn is_of(description: &Description, form: Form, between_neighbours: bool) -> bool {
    description.collective().is_some_and(|(which, own)| {
        own == form && which.is_between_neighbours() == between_neighbours
    })
}

/// What `weft bench --help` prints.
pub fn overview() -> String {
    let mut text = String::from(
        "Usage:\n\
         \x20 weft run -n N -- weft bench BENCHMARK[,...] [OPTIONS]  the MPI of the job\n\
         \x20 weft run -n N -- weft bench ior [OPTIONS]              files, as IOR does\n\
         \x20 weft run -n N -- weft bench mdtest [OPTIONS]           many files, as mdtest does\n\
         \x20 weft run -n N -- weft bench ft|is [OPTIONS]            two NAS benchmarks\n\
         \x20 weft bench compare [OPTIONS]                           MPIs and transports in turns\n\
         \x20 weft bench app PROGRAM [OPTIONS]                       whole programs in turns\n\
         \x20 weft bench figures --out DIR                           published figures, here\n\
         \x20 weft bench mount --server COMMAND --peer NAME=COMMAND  programs that mount buckets\n",
    );
    for (heading, belongs) in SORTS {
        text.push_str(&format!("\n{heading}:\n"));
        for description in CATALOGUE.iter().filter(|description| belongs(description)) {
            let (name, headline) = (description.name, description.headline());
            text.push_str(&format!("  {name:<26}{headline}\n"));
        }
    }
    text.push_str("\n`weft bench BENCHMARK --help` lists the options.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Loops;
    use weft_mpi::Datatype;

    #[test]
    fn every_name_is_found_with_and_without_its_prefix() {
        for description in CATALOGUE {
            assert!(std::ptr::eq(
                find(description.name).expect("listed"),
                description
            ));
            assert!(std::ptr::eq(
                find(&format!("osu_{}", description.name)).expect("listed"),
                description
            ));
            assert!(overview().contains(description.title));
        }
        assert!(find("latencies").is_none());
    }

    #[test]
    fn defaults_are_those_of_osu() {
        let of = |name| find(name).expect("listed");
        assert_eq!(of("latency").loops.small, (10_000, 100));
        assert_eq!(
            of("bw").loops,
            Loops {
                small: (100, 10),
                large: (20, 2)
            }
        );
        assert_eq!(of("alltoall").max_bytes, 1 << 20);
        assert_eq!(of("mbw_mr").max_bytes, 4 << 20);
        assert_eq!(of("allreduce").default_kind(), Datatype::Int);
        assert_eq!(of("fop_latency").default_kind(), Datatype::Long);
        assert_eq!(of("put_bw").loops, of("bw").loops);
    }

    #[test]
    fn whole_set_of_osu_is_there() {
        let count = |belongs: Belongs| {
            CATALOGUE
                .iter()
                .filter(|description| belongs(description))
                .count()
        };
        let counts: Vec<usize> = SORTS.iter().map(|(_, belongs)| count(*belongs)).collect();
        assert_eq!(counts, [10, 15, 15, 14, 10, 9, 2]);
        assert_eq!(counts.iter().sum::<usize>(), CATALOGUE.len());
    }

    #[test]
    fn messages_of_all_ranks_are_counted() {
        let of = |name: &str| find(name).expect("listed").messages(64, 4);
        assert_eq!(
            ["latency", "multi_lat", "bw", "bibw", "mbw_mr", "alltoall"].map(of),
            [2, 8, 64, 128, 256, 1]
        );
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = CATALOGUE
            .iter()
            .map(|description| description.name)
            .collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CATALOGUE.len());
    }

    #[test]
    fn earlier_names_of_persistent_benchmarks_are_known() {
        let found = find("osu_persistent_latency").expect("listed");
        assert_eq!(found.name, "latency_persistent");
    }
}
