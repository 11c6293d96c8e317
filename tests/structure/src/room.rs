// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where `unsafe`, atomics and libc may live, and that each `unsafe` says why it is sound. Reads
//! the tokens of [`crate::tree`], in which comments and strings cannot be taken for code and macro
//! bodies are included.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::Finding;
use crate::tree::{RustFile, file_is_excused};

/// A crate that may hold something the others may not.
#[derive(Debug)]
pub struct Room {
    /// The crate's folder, as `crates/ring`.
    pub folder: &'static str,
    /// Why it cannot do without.
    pub reason: &'static str,
}

// Preloaded libraries, each with `unsafe` and libc.
const HEAP: Room = Room {
    folder: "crates/heap",
    reason: "takes the place of malloc, which is C's; stands alone, since nothing it uses may \
        allocate",
};
const YIELD: Room = Room {
    folder: "crates/yield",
    reason: "takes the place of sched_yield, which is C's; stands alone",
};
const ENDS: Room = Room {
    folder: "crates/ends",
    reason: "takes the place of wait and kill, which are C's; stands alone",
};

/// The only crates with `unsafe` code.
pub const UNSAFE: [Room; 12] = [
    Room {
        folder: "crates/fabric-sys",
        reason: "C structures, and reading through the pointers in them",
    },
    Room {
        folder: "crates/provider",
        reason: "the C interface itself",
    },
    Room {
        folder: "crates/memory",
        reason: "mappings and user buffers, wrapped so that the rest need no `unsafe`",
    },
    Room {
        folder: "crates/ring",
        reason: "shared memory that other processes write",
    },
    Room {
        folder: "crates/collectives",
        reason: "a segment that other ranks write, and arithmetic on unaligned buffers",
    },
    Room {
        folder: "crates/os",
        reason: "system calls",
    },
    HEAP,
    YIELD,
    ENDS,
    Room {
        folder: "crates/intercept",
        reason: "stands before MPI's functions, which are C's, on the program's buffers",
    },
    Room {
        folder: "tools/mpi",
        reason: "an MPI library is bound when the program runs",
    },
    Room {
        folder: "tools/soak",
        reason: "libfabric is bound at run time; fork, devices, priorities have no safe call",
    },
];

/// The only crates that name libc.
pub const LIBC: [Room; 8] = [
    Room {
        folder: "crates/os",
        reason: "the only caller of the system",
    },
    Room {
        folder: "crates/fabric-sys",
        reason: "C types",
    },
    Room {
        folder: "crates/provider",
        reason: "C types, and calloc for what libfabric frees",
    },
    HEAP,
    YIELD,
    ENDS,
    Room {
        folder: "tools/mpi",
        reason: "dlopen and C types",
    },
    Room {
        folder: "tools/soak",
        reason: "dlopen and C types, fork(2), network devices",
    },
];

/// The only crate with atomics among those that run inside the user's job.
const ATOMICS: &str = "crates/ring";
/// Stands alone, so that it cannot ask it; and free(3) must not take a lock.
const ATOMICS_IN_EVERY_FREE: &str = "crates/heap";
/// The only file outside of them: remote atomics are carried out there, on the user's own memory.
const ATOMICS_ON_USER_MEMORY: &str = "crates/memory/src/atomic.rs";
/// Flags between the ranks of a communicator, which need none of the queues of crates/ring.
const ATOMICS_OF_COLLECTIVES: &str = "crates/collectives/src/sync.rs";
/// One number, asked by every look for messages that finds none, which must not take a lock.
const ATOMIC_OF_CALLS_UNDER_WAY: &str = "crates/intercept/src/shared_count.rs";

/// How far above an `unsafe` its reason may begin, in lines: a list of several obligations fits.
const REASON_LINES: usize = 16;

/// One `unsafe` in the code.
#[derive(Debug, PartialEq, Eq)]
pub struct Unsafe {
    /// Counted from 1.
    pub line: usize,
    /// Whether it stands for a promise kept here (a block, an impl, an attribute), and not for one
    /// asked of the caller (a function, a function type, a trait).
    pub needs_reason: bool,
}

/// All findings about rooms.
pub fn check(files: &[RustFile]) -> Vec<Finding> {
    files.iter().flat_map(check_file).collect()
}

fn check_file(file: &RustFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for place in unsafes(file) {
        if !UNSAFE.iter().any(|room| room.folder == file.crate_folder()) {
            findings.push(Finding::at(
                &file.path,
                place.line,
                "`unsafe` outside its rooms; give one of them a safe function instead.",
            ));
        } else if place.needs_reason && !has_reason(&file.text, place.line) {
            findings.push(Finding::at(
                &file.path,
                place.line,
                "`unsafe` without a `// SAFETY:` reason directly above it.",
            ));
        }
    }
    if !file.is_shipped() {
        return findings;
    }
    let shipped = without_tests(file.tokens.clone());
    if let Some(line) = find_atomics(&shipped) {
        let in_job = file.path.starts_with("crates/")
            && file.crate_folder() != ATOMICS
            && file.crate_folder() != ATOMICS_IN_EVERY_FREE
            && file.path != ATOMICS_ON_USER_MEMORY
            && file.path != ATOMICS_OF_COLLECTIVES
            && file.path != ATOMIC_OF_CALLS_UNDER_WAY;
        let in_tool = !file.path.starts_with("crates/") && !file_is_excused(&file.text, "atomics");
        if in_job {
            findings.push(Finding::at(
                &file.path,
                line,
                "atomics live in crates/ring; ask it for the operation needed.",
            ));
        } else if in_tool {
            findings.push(Finding::at(
                &file.path,
                line,
                "atomics in a tool need a stated reason (structure: allow atomics).",
            ));
        }
    }
    if let Some(line) = find_path(&shipped, "libc")
        && !LIBC.iter().any(|room| room.folder == file.crate_folder())
    {
        findings.push(Finding::at(
            &file.path,
            line,
            "libc outside its rooms; crates/os is the caller of the system.",
        ));
    }
    findings
}

/// How many times `unsafe` stands in each crate that has any, keyed by folder.
pub fn count(files: &[RustFile]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for file in files {
        let count = unsafes(file).len();
        if count > 0 {
            *counts.entry(file.crate_folder().to_owned()).or_insert(0) += count;
        }
    }
    counts
}

/// Every `unsafe` of a file, macro bodies included, in order.
pub fn unsafes(file: &RustFile) -> Vec<Unsafe> {
    let mut found = Vec::new();
    collect_unsafes(file.tokens.clone(), &mut found);
    found
}

fn collect_unsafes(tokens: TokenStream, found: &mut Vec<Unsafe>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) if word == "unsafe" => {
                let needs_reason = match tokens.peek() {
                    Some(TokenTree::Group(group)) => group.delimiter() != Delimiter::Bracket,
                    Some(TokenTree::Ident(next)) => next == "impl",
                    _ => false,
                };
                found.push(Unsafe {
                    line: word.span().start().line,
                    needs_reason,
                });
            }
            TokenTree::Group(group) => collect_unsafes(group.stream(), found),
            _ => {}
        }
    }
}

/// The reason stands on the same line, or above in what belongs to the same statement: no blank
/// line between.
fn has_reason(text: &str, line: usize) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let above = lines[..line].iter().rev().take(REASON_LINES);
    above
        .take_while(|line| !line.trim().is_empty())
        .any(|line| line.contains("SAFETY:"))
}

/// The tokens without `#[cfg(test)]` modules: tests may count with atomics.
pub(crate) fn without_tests(tokens: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    let mut in_test_item = false;
    for token in tokens {
        if let TokenTree::Group(group) = &token {
            if group.delimiter() == Delimiter::Bracket
                && is_test_attribute(&group.stream().to_string())
            {
                in_test_item = true;
                continue;
            }
            if in_test_item && group.delimiter() == Delimiter::Brace {
                in_test_item = false;
                continue;
            }
        }
        if in_test_item && matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ';') {
            in_test_item = false;
        }
        if !in_test_item {
            kept.push(token);
        }
    }
    kept.into_iter().collect()
}

fn is_test_attribute(attribute: &str) -> bool {
    let attribute: String = attribute.split_whitespace().collect();
    attribute.starts_with("cfg(") && (attribute.contains("(test") || attribute.contains(",test"))
}

/// The line of the first atomic type or of the module that holds them.
fn find_atomics(tokens: &TokenStream) -> Option<usize> {
    find_word(tokens.clone(), &|word, _| {
        let Some(kind) = word.strip_prefix("Atomic") else {
            return false;
        };
        let widths = ["8", "16", "32", "64", "size"];
        let numeric = kind
            .strip_prefix(['U', 'I'])
            .is_some_and(|width| widths.contains(&width));
        numeric || kind == "Bool" || kind == "Ptr"
    })
}

/// The line of the first path that begins with `name`.
fn find_path(tokens: &TokenStream, name: &str) -> Option<usize> {
    find_word(tokens.clone(), &|word, next_is_colon| {
        word == name && next_is_colon
    })
}

fn find_word(tokens: TokenStream, wanted: &dyn Fn(&str, bool) -> bool) -> Option<usize> {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) => {
                let next = tokens.peek();
                let colon = matches!(next, Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
                if wanted(&word.to_string(), colon) {
                    return Some(word.span().start().line);
                }
            }
            TokenTree::Group(group) => {
                if let Some(line) = find_word(group.stream(), wanted) {
                    return Some(line);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<Finding> {
        check(&[RustFile::parse(path, text).unwrap()])
    }

    #[test]
    fn unsafe_outside_its_rooms_is_found_even_in_a_macro() {
        assert_eq!(
            findings("crates/matching/src/a.rs", "fn f() { unsafe { g() } }").len(),
            1
        );
        assert_eq!(
            findings(
                "crates/shm/tests/a.rs",
                "macro_rules! m { () => { unsafe { g() } } }"
            )
            .len(),
            1
        );
        assert_eq!(
            findings(
                "crates/matching/src/a.rs",
                "// unsafe\nconst A: &str = \"unsafe { }\";"
            ),
            []
        );
    }

    #[test]
    fn unsafe_block_needs_its_reason_and_unsafe_function_does_not() {
        let path = "crates/ring/src/a.rs";
        assert_eq!(findings(path, "fn f() {\n    unsafe { g() }\n}").len(), 1);
        assert_eq!(
            findings(
                path,
                "fn f() {\n    // SAFETY: g asks nothing.\n    unsafe { g() }\n}"
            ),
            []
        );
        assert_eq!(
            findings(path, "unsafe fn f() {}\ntype F = unsafe extern \"C\" fn();"),
            []
        );
        assert_eq!(findings(path, "unsafe impl Send for X {}").len(), 1);
    }

    #[test]
    fn reason_does_not_reach_over_a_blank_line() {
        let text =
            "fn f() {\n    // SAFETY: g asks nothing.\n    let a = 1;\n\n    unsafe { g() }\n}";
        assert_eq!(findings("crates/ring/src/a.rs", text).len(), 1);
    }

    #[test]
    fn atomics_live_in_ring_and_in_tests() {
        let text = "use std::sync::{Mutex, atomic::{AtomicU64, Ordering}};";
        assert_eq!(findings("crates/shm/src/a.rs", text).len(), 1);
        assert_eq!(findings("crates/ring/src/a.rs", text), []);
        assert_eq!(findings("crates/shm/tests/a.rs", text), []);
        assert_eq!(
            findings(
                "crates/shm/src/a.rs",
                &format!("#[cfg(test)]\nmod tests {{ {text} }}")
            ),
            []
        );
        assert_eq!(
            findings("crates/endpoint/src/a.rs", "use crate::atomic::AtomicOp;"),
            []
        );
    }

    #[test]
    fn atomics_in_a_tool_need_a_reason() {
        let text = "use std::sync::atomic::AtomicBool;";
        assert_eq!(findings("tools/launch/src/a.rs", text).len(), 1);
        let excused =
            format!("// structure: allow atomics because a signal handler sets it\n{text}");
        assert_eq!(findings("tools/launch/src/a.rs", &excused), []);
    }

    #[test]
    fn libc_lives_in_its_rooms() {
        assert_eq!(
            findings("crates/shm/src/a.rs", "fn f() { libc::getpid(); }").len(),
            1
        );
        assert_eq!(
            findings("crates/os/src/a.rs", "fn f() { libc::getpid(); }"),
            []
        );
    }
}
