// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The limits of this process that regions meet, for messages that name them. Used by region_file,
//! and by shm when memory is refused. Source: getrlimit(2).

/// Bytes of addresses that this process may map, where that is limited (`ulimit -v`, which counts
/// KiB). One system call.
pub fn addresses_bytes() -> Option<u64> {
    limit(libc::RLIMIT_AS)
}

/// Longest file that this process may make, where that is limited (`ulimit -f`, which counts KiB).
/// One system call.
pub fn file_bytes() -> Option<u64> {
    limit(libc::RLIMIT_FSIZE)
}

/// The two that are set, with their values and what to do: ` (...)`, or nothing.
pub fn in_words() -> String {
    describe(addresses_bytes(), file_bytes())
}

fn describe(addresses: Option<u64>, file: Option<u64>) -> String {
    let named = [("-v", addresses), ("-f", file)];
    let words: Vec<String> = named
        .into_iter()
        .filter_map(|(name, bytes)| Some(format!("`ulimit {name}` is {}", bytes? >> 10)))
        .collect();
    if words.is_empty() {
        return String::new();
    }
    format!(
        " ({} KiB here; raise it, best to unlimited)",
        words.join(" and ")
    )
}

fn limit(which: libc::__rlimit_resource_t) -> Option<u64> {
    let mut found = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the structure is ours and outlives the call.
    crate::check(unsafe { libc::getrlimit(which, &mut found) }).ok()?;
    (found.rlim_cur != libc::RLIM_INFINITY).then_some(found.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_limits_that_are_set_are_named_with_their_values() {
        assert_eq!(describe(None, None), "");
        let both = describe(Some(3 << 20), Some(1 << 20));
        assert!(
            both.contains("`ulimit -v` is 3072 and `ulimit -f` is 1024 KiB"),
            "{both}"
        );
        assert!(!describe(None, Some(1)).contains("-v"));
    }
}
