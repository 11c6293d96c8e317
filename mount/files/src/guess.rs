// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Guesses the keys in the part of a folder that is not listed yet, from the keys that are. So
//! several pages can be asked for at once. [`crate::tiling`] uses it. A wrong guess costs requests,
//! but never loses names.
//!
//! [`Guess::value`] turns keys into numbers in the same order, and [`Guess::key`] turns numbers
//! into keys. Names are read as numbers, by the digits that most names have in common:
//! `f0000017.jpg` has the value 17. Folders of a walk are counted.

use std::sync::Arc;

/// Values stay below this, so that sums do not overflow.
const VALUE_LIMIT: u128 = 1 << 100;

/// How keys become numbers.
#[derive(Debug, Clone)]
pub enum Guess {
    /// Keys that end in digits of one alphabet, before a common end.
    Names(Names),
    /// Keys below folders that are known.
    Folders(Folders),
}

/// `BEGIN` digits `END`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    begin: String,
    end: String,
    /// In order of their bytes.
    digits: &'static [u8],
    /// How many digits a value has; longer names are cut, shorter ones have lowest digits behind.
    length: usize,
    /// All names had this many.
    is_exact: bool,
}

/// The folders of a walk, in order, and where in each one the pages end.
#[derive(Debug, Clone)]
pub struct Folders {
    /// Whole prefixes.
    pub folders: Arc<Vec<String>>,
    /// Below a folder: the last key of the last page.
    pub end: String,
}

const ALPHABETS: [&[u8]; 4] = [
    b"0123456789",
    b"0123456789ABCDEF",
    b"0123456789abcdef",
    b"-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz",
];

impl Names {
    /// From keys in order; of a page, say. Nothing if they have no digits in common.
    pub fn of(keys: &[&str]) -> Option<Self> {
        let (first, last) = (keys.first()?, keys.last()?);
        if keys.len() < 2 || !keys.iter().all(|key| key.is_ascii()) {
            return None;
        }
        let common = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let mut begin = common(first.as_bytes(), last.as_bytes());
        let mut end = keys.iter().fold(first.len(), |end, key| {
            let pairs = first.bytes().rev().zip(key.bytes().rev());
            end.min(pairs.take_while(|(a, b)| a == b).count())
        });
        let shortest = keys.iter().map(|key| key.len()).min()?;
        end = end.min(shortest.saturating_sub(begin + 1));
        // What ends all names begins with a mark, as `.jpg`; digits belong to the number.
        let tail = &first[first.len() - end..];
        let end = tail.find(|letter: char| !letter.is_ascii_alphanumeric());
        let end = end.map_or("", |at| &tail[at..]).to_owned();
        let digits = *ALPHABETS.iter().find(|digits| {
            let mut middles = keys
                .iter()
                .map(|key| &key.as_bytes()[begin..key.len() - end.len()]);
            middles.all(|middle| middle.iter().all(|letter| digits.contains(letter)))
        })?;
        while begin > 0 && digits.contains(&first.as_bytes()[begin - 1]) {
            begin -= 1;
        }
        let lengths = keys.iter().map(|key| key.len() - end.len() - begin);
        let (shortest, longest) = (lengths.clone().min()?, lengths.max()?);
        let mut most = 0;
        while (digits.len() as u128).pow(most as u32 + 1) < VALUE_LIMIT {
            most += 1;
        }
        Some(Self {
            begin: first[..begin].to_owned(),
            end,
            digits,
            length: longest.min(most),
            is_exact: shortest == longest && longest <= most,
        })
    }

    /// The value of a key, if it is of this kind.
    fn value(&self, key: &str) -> Option<u128> {
        let rest = key.strip_prefix(&self.begin)?.as_bytes();
        let mut value = 0u128;
        for at in 0..self.length {
            let digit = rest
                .get(at)
                .filter(|_| at < rest.len() - self.end.len().min(rest.len()));
            let digit = match digit {
                Some(letter) => self.digits.iter().position(|digit| digit == letter)?,
                None => 0,
            };
            value = value * self.digits.len() as u128 + digit as u128;
        }
        Some(value)
    }

    /// The key of a value, unless that is too large.
    fn key(&self, mut value: u128) -> Option<String> {
        let base = self.digits.len() as u128;
        let mut letters = vec![0; self.length];
        for letter in letters.iter_mut().rev() {
            *letter = self.digits[(value % base) as usize];
            value /= base;
        }
        let end = if self.is_exact { &*self.end } else { "" };
        let middle = String::from_utf8(letters).ok()?;
        (value == 0).then(|| format!("{}{middle}{end}", self.begin))
    }
}

impl Folders {
    /// Pages end where `last` does in its folder.
    pub fn of(folders: &Arc<Vec<String>>, last: &str) -> Option<Self> {
        let at = folders.partition_point(|folder| &**folder <= last);
        let folder = folders.get(at.checked_sub(1)?)?;
        Some(Self {
            folders: Arc::clone(folders),
            end: last.strip_prefix(&**folder)?.to_owned(),
        })
    }

    /// How many folders end at or before this key, by the place where pages end.
    fn value(&self, key: &str) -> Option<u128> {
        let behind = self.folders.partition_point(|folder| &**folder <= key);
        let Some(at) = behind.checked_sub(1) else {
            return Some(0);
        };
        let rest = key.strip_prefix(&*self.folders[at]);
        let has_passed = rest.is_none_or(|rest| *rest >= *self.end);
        Some(at as u128 + u128::from(has_passed))
    }

    fn key(&self, value: u128) -> Option<String> {
        let at = usize::try_from(value).ok()?.checked_sub(1)?;
        let folder = self.folders.get(at)?;
        Some(format!("{folder}{}", self.end))
    }
}

impl Guess {
    /// The number of a key: greater for greater keys.
    pub fn value(&self, key: &str) -> Option<u128> {
        match self {
            Self::Names(names) => names.value(key),
            Self::Folders(folders) => folders.value(key),
        }
    }

    /// The key of a number.
    pub fn key(&self, value: u128) -> Option<String> {
        match self {
            Self::Names(names) => names.key(value),
            Self::Folders(folders) => folders.key(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(keys: &[&str]) -> Guess {
        Guess::Names(Names::of(keys).unwrap())
    }

    #[test]
    fn numbered_names_go_on_with_all_their_digits() {
        let guess = names(&["d/f0000000", "d/f0000001", "d/f0000999"]);
        assert_eq!(guess.value("d/f0000999"), Some(999));
        assert_eq!(guess.key(1999).unwrap(), "d/f0001999");
        assert_eq!(guess.key(9_999_999).unwrap(), "d/f9999999");
        assert_eq!(guess.key(10_000_000), None);
        assert_eq!(guess.value("d/g1"), None);
    }

    #[test]
    fn common_end_is_kept_and_digits_stay_digits() {
        let guess = names(&["img-008.jpg", "img-018.jpg", "img-998.jpg"]);
        assert_eq!(guess.value("img-018.jpg"), Some(18));
        assert_eq!(guess.key(1000), None);
        assert_eq!(guess.key(28).unwrap(), "img-028.jpg");
    }

    #[test]
    fn hashes_and_words_have_values_in_their_order() {
        for keys in [
            &["0a17", "0b", "3f", "ff01"][..],
            &["A", "Bc", "C-d", "x_y.z", "zz"],
            &["k1", "k10", "k100", "k11"],
        ] {
            let guess = names(keys);
            let values: Vec<_> = keys.iter().map(|key| guess.value(key).unwrap()).collect();
            assert!(values.is_sorted(), "{keys:?}: {values:?}");
            let key = guess.key(values[1]).unwrap();
            assert!(*keys[0] < *key && *key <= *keys[2], "{key}");
        }
    }

    #[test]
    fn names_without_anything_in_common_have_no_guess() {
        assert_eq!(Names::of(&["ä", "ö"]), None);
        assert_eq!(Names::of(&["a b", "c(d"]), None);
        assert_eq!(Names::of(&["a"]), None);
    }

    #[test]
    fn folders_of_a_walk_are_counted() {
        let folders = Arc::new(["a/", "b/", "c/"].map(str::to_owned).to_vec());
        let guess = Guess::Folders(Folders {
            folders,
            end: "f99".to_owned(),
        });
        assert_eq!(guess.value("a"), Some(0));
        assert_eq!(guess.value("a/f98"), Some(0));
        assert_eq!(guess.value("a/f99"), Some(1));
        assert_eq!(guess.value("b/f99"), Some(2));
        assert_eq!(guess.key(2).unwrap(), "b/f99");
        assert_eq!((guess.key(0), guess.key(4)), (None, None));
    }
}
