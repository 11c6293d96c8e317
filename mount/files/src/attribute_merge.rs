// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The attributes of one name that two mounts changed at the same time, field by field: what one
//! mount changed stays, and so does what only the other one changed. [`crate::known_attributes`]
//! calls this.

use std::collections::BTreeMap;

use crate::attribute_object::Attribute;

/// What was done here, beyond what fields say.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    /// The name was made anew: all but the content's time was changed, even if it is as before.
    pub is_whole: bool,
    /// A time was set for the content, be it the one that was there before.
    pub sets_time: bool,
}

/// What was changed here from `base` to `here`, and by another mount from `base` to `there`.
pub fn merged(base: &Attribute, here: Attribute, there: &Attribute, how: &How) -> Attribute {
    let is_whole = how.is_whole;
    // A time holds for one content. That none holds any more for one mount says nothing of the
    // content for which the other one set it; of two that were set the later one holds.
    // A file that was made anew here may get the old one's content and time again, from the mount
    // that has it: as with an archive that is unpacked twice. Only when that was tells them apart.
    let is_made_here = is_whole && here.modified.is_none();
    let is_another =
        there.modified != base.modified || (is_made_here && there.changed != base.changed);
    let is_set_there = there.modified.is_some() && is_another;
    let is_later = here.modified.is_none() || there.changed > here.changed;
    let is_as_before = here.modified == base.modified && !how.sets_time;
    let keeps_modified = is_as_before || (is_set_there && is_later);
    Attribute {
        special: field(&base.special, here.special, &there.special, is_whole),
        mode: field(&base.mode, here.mode, &there.mode, is_whole),
        uid: field(&base.uid, here.uid, &there.uid, is_whole),
        gid: field(&base.gid, here.gid, &there.gid, is_whole),
        modified: if keeps_modified {
            there.modified.clone()
        } else {
            here.modified
        },
        accessed: field(&base.accessed, here.accessed, &there.accessed, is_whole),
        changed: here.changed.max(there.changed),
        xattrs: xattrs(&base.xattrs, here.xattrs, &there.xattrs, is_whole),
    }
}

fn field<T: Clone + PartialEq>(base: &T, here: T, there: &T, is_whole: bool) -> T {
    if here == *base && !is_whole {
        there.clone()
    } else {
        here
    }
}

type Values = BTreeMap<String, String>;

fn xattrs(base: &Values, mut here: Values, there: &Values, is_whole: bool) -> Values {
    let mut all = Values::new();
    let names: Vec<String> = here.keys().chain(there.keys()).cloned().collect();
    for name in names {
        let own = here.remove(&name);
        let value = field(&base.get(&name), own.as_ref(), &there.get(&name), is_whole).cloned();
        if let Some(value) = value {
            all.entry(name).or_insert(value);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::attribute_object::{Modified, Time};

    const WHOLE: How = How {
        is_whole: true,
        sets_time: false,
    };

    fn time(seconds: u64, etag: &str) -> Option<Modified> {
        Some(Modified {
            at: Time::of(UNIX_EPOCH + Duration::from_secs(seconds)),
            etag: etag.to_owned(),
        })
    }

    fn with_mode(mode: u16) -> Attribute {
        Attribute {
            mode: Some(mode),
            modified: time(1, "old"),
            ..Attribute::default()
        }
    }

    #[test]
    fn each_field_is_that_of_the_mount_that_changed_it() {
        let (base, here) = (with_mode(0o644), with_mode(0o600));
        let there = Attribute {
            uid: Some(7),
            ..base.clone()
        };
        let both = merged(&base, here.clone(), &there, &How::default());
        assert_eq!((both.mode, both.uid), (Some(0o600), Some(7)));
        let there = with_mode(0o640);
        let both = [&base, &here].map(|here| merged(&base, here.clone(), &there, &How::default()));
        assert_eq!(both.map(|one| one.mode), [Some(0o640), Some(0o600)]);
        // A file that was made anew has this mode though the one before it had it, too.
        let both = merged(&base, base.clone(), &there, &WHOLE);
        assert_eq!(both.mode, base.mode);
    }

    #[test]
    fn time_that_another_mount_set_for_a_new_content_stays_if_the_old_one_went_here() {
        let base = with_mode(0o644);
        let here = Attribute {
            modified: None,
            ..base.clone()
        };
        let there = Attribute {
            modified: time(2, "new"),
            ..base.clone()
        };
        for how in [How::default(), WHOLE] {
            let both = merged(&base, here.clone(), &there, &how);
            assert_eq!(both.modified, there.modified);
            let later = Attribute {
                changed: Some(Time::of(UNIX_EPOCH)),
                ..here.clone()
            };
            let both = merged(&base, there.clone(), &later, &how);
            assert_eq!(both.modified, there.modified);
            assert_eq!(merged(&base, here.clone(), &base, &how).modified, None);
        }
    }

    #[test]
    fn time_set_elsewhere_for_a_file_made_anew_here_stays_if_it_is_the_old_one_s() {
        let stored = |changed| Attribute {
            modified: time(1, "as before"),
            changed: Some(Time::of(UNIX_EPOCH + Duration::from_secs(changed))),
            ..Attribute::default()
        };
        let (base, here) = (stored(5), Attribute::default());
        // The mount that has the new file set its time before this one wrote what it is to say.
        let both = merged(&base, here.clone(), &stored(6), &WHOLE);
        assert_eq!(both.modified, base.modified);
        // It did not yet: this is the time of the old one.
        assert_eq!(merged(&base, here, &base, &WHOLE).modified, None);
    }

    #[test]
    fn extended_attributes_are_merged_name_by_name() {
        let with = |pairs: &[(&str, &str)]| Attribute {
            xattrs: pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..Attribute::default()
        };
        let base = with(&[("a", "1"), ("b", "1"), ("c", "1")]);
        let here = with(&[("a", "2"), ("b", "1"), ("d", "2")]);
        let there = with(&[("a", "1"), ("c", "1"), ("e", "3")]);
        let both = merged(&base, here, &there, &How::default());
        assert_eq!(both, with(&[("a", "2"), ("d", "2"), ("e", "3")]));
    }
}
