// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The methods by which a receiver inside a host copies a long message, as `weft info` and `weft
//! top` name them.

/// One method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyMethod {
    /// Its name.
    pub name: &'static str,
    /// Who copies what.
    pub meaning: &'static str,
}

/// A row of the table, with its meaning as the constant's documentation, too.
macro_rules! method {
    ($constant:ident, $name:literal, $meaning:literal) => {
        #[doc = $meaning]
        pub const $constant: CopyMethod = CopyMethod {
            name: $name,
            meaning: $meaning,
        };
    };
}

method!(
    SINGLE_COPY,
    "single copy",
    "the receiver reads the sender's memory (Cross Memory Attach)"
);
method!(
    PIPELINED,
    "pipelined",
    "the sender fills chunks in the receiver's region while the receiver empties them"
);
method!(
    PIPELINED_NON_TEMPORAL,
    "pipelined, non-temporal",
    "the same, with stores that leave the sender's cache as it is"
);
method!(
    MAPPED,
    "mapped",
    "the receiver copies out of memory that the sender shares and the receiver has mapped"
);
method!(
    MAPPED_NON_TEMPORAL,
    "mapped, non-temporal",
    "the same, with stores that leave the receiver's cache as it is"
);
method!(
    COOPERATIVE,
    "cooperative",
    "the receiver reads the sender's memory while the sender writes the receiver's memory"
);

/// All methods. Endpoints publish them by their place here, from 1 on; 0 is not known
/// (docs/shm-layout.md, clause 9).
pub const ALL: [CopyMethod; 6] = [
    SINGLE_COPY,
    PIPELINED,
    PIPELINED_NON_TEMPORAL,
    MAPPED,
    MAPPED_NON_TEMPORAL,
    COOPERATIVE,
];

/// The method that is published by this number; `None` if nothing is known.
#[must_use]
pub fn numbered(number: u8) -> Option<&'static CopyMethod> {
    ALL.get(usize::from(number).checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_from_one_and_names_differ() {
        assert_eq!((numbered(0), numbered(7)), (None, None));
        assert_eq!(numbered(6).map(|method| method.name), Some("cooperative"));
        for (index, method) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|before| before.name != method.name));
        }
    }
}
