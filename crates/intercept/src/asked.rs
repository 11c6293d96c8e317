// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who is to serve the job's collectives, as `weft run` has asked. Read when the loader loads this
//! library, since a program may change its environment later, and not on all ranks alike. Asked by
//! agreement.

use std::env;
use std::sync::OnceLock;

/// The variable that says who is to serve, `auto` or `weft`, and behind a colon how many ranks have
/// this library: all of the job's.
const ASKED: &str = "WEFT_COLLECTIVES";

/// For tests: takes so many ranks in a row for those of one cache domain, on any machine.
const DOMAIN_RANKS: &str = "WEFT_COLLECTIVES_DOMAIN_RANKS";

/// What the launcher asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Also where the MPI would be as quick.
    pub always: bool,
    /// How many ranks have this library.
    pub ranks: usize,
    /// How many ranks in a row share a cache, if the machine is not to be asked.
    pub domain_ranks: Option<usize>,
}

static AT_START: OnceLock<Option<Asked>> = OnceLock::new();

#[used]
// SAFETY: the section holds addresses of functions that the loader calls.
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    Asked::at_start();
}

impl Asked {
    /// What was asked when the process began; `None` if nothing was.
    pub fn at_start() -> Option<Self> {
        *AT_START.get_or_init(|| {
            let domain_ranks = env::var(DOMAIN_RANKS).unwrap_or_default();
            Self::of(&env::var(ASKED).ok()?, &domain_ranks)
        })
    }

    fn of(text: &str, domain_ranks: &str) -> Option<Self> {
        let (who, ranks) = text.split_once(':')?;
        Some(Self {
            always: match who {
                "weft" => true,
                "auto" => false,
                _ => return None,
            },
            ranks: ranks.parse().ok()?,
            domain_ranks: domain_ranks.parse().ok().filter(|&ranks| ranks > 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_to_serve_and_how_many_ranks_there_are_is_read() {
        let asked = |always, ranks, domain_ranks| {
            Some(Asked {
                always,
                ranks,
                domain_ranks,
            })
        };
        assert_eq!(Asked::of("auto:4", ""), asked(false, 4, None));
        assert_eq!(Asked::of("weft:512", "0"), asked(true, 512, None));
        assert_eq!(Asked::of("weft:8", "3"), asked(true, 8, Some(3)));
        for text in ["", "4", "mpi:4", "auto:", "auto:-1"] {
            assert_eq!(Asked::of(text, ""), None, "{text}");
        }
    }
}
