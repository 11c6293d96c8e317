// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who is to serve the job's collectives, as `weft run` has asked. Read when the loader loads this
//! library, since a program may change its environment later, and not on all ranks alike. Asked by
//! agreement.

use std::env;
use std::sync::OnceLock;

/// The variable that says who is to serve, `auto` or `weft`, and behind a colon how many ranks have
/// this library: all of the job's.
const ASKED: &str = "WEFT_COLLECTIVES";

/// What the launcher asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Also where the MPI would be as quick.
    pub always: bool,
    /// How many ranks have this library.
    pub ranks: usize,
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
        *AT_START.get_or_init(|| Self::of(&env::var(ASKED).ok()?))
    }

    fn of(text: &str) -> Option<Self> {
        let (who, ranks) = text.split_once(':')?;
        Some(Self {
            always: match who {
                "weft" => true,
                "auto" => false,
                _ => return None,
            },
            ranks: ranks.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_to_serve_and_how_many_ranks_there_are_is_read() {
        let asked = |always, ranks| Some(Asked { always, ranks });
        assert_eq!(Asked::of("auto:4"), asked(false, 4));
        assert_eq!(Asked::of("weft:512"), asked(true, 512));
        for text in ["", "4", "mpi:4", "auto:", "auto:-1"] {
            assert_eq!(Asked::of(text), None, "{text}");
        }
    }
}
