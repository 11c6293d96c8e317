// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Modes, owners, times, extended attributes, links: what the store keeps of them, what a later
//! mount shows, and two mounts at once. docs/mount-names.md specifies the object.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use tokio::runtime::Runtime;
use weft_files::{
    Attributes, BucketFiles, Change, Entry, Fault, FolderEntry, Given, Kind, Making, Mode, Name,
    Presence, Publish, Reason, Settings, Special, Writes,
};
use weft_store::memory::{MemoryStore, Operation};

const ROOT: u64 = 1;
const WRITE: Mode = Mode {
    process: 7,
    ..Mode::WRITES
};
const OBJECT: &str = ".weft-attributes";

struct Mount {
    runtime: Runtime,
    store: Arc<MemoryStore>,
    files: BucketFiles,
}

fn at(name: &str) -> Name<'_> {
    Name { parent: ROOT, name }
}

fn mode(mode: u16) -> Change {
    Change {
        given: Given {
            mode: Some(mode),
            ..Given::default()
        },
        ..Change::default()
    }
}

impl Mount {
    fn of(store: &Arc<MemoryStore>, ttl: Duration) -> Self {
        let runtime = Runtime::new().unwrap();
        let settings = Settings {
            prefix: String::new(),
            ttl,
            cache_bytes: 64 << 20,
            writes: Writes::temporary(Publish::Close).unwrap(),
        };
        let handle = runtime.handle().clone();
        let files = BucketFiles::new(Arc::clone(store) as _, handle, settings, |_| {});
        Self {
            runtime,
            store: Arc::clone(store),
            files,
        }
    }

    fn new() -> Self {
        Self::of(&Arc::new(MemoryStore::new()), Duration::from_secs(60))
    }

    /// Another mount of the same store.
    fn next(&self) -> Self {
        Self::of(&self.store, Duration::from_secs(60))
    }

    fn find(&self, parent: u64, name: &str) -> Result<Attributes, Fault> {
        let found = self.runtime.block_on(self.files.lookup(parent, name));
        found.map(|entry: Entry| entry.attributes)
    }

    fn see(&self, name: &str) -> Attributes {
        self.find(ROOT, name).unwrap()
    }

    fn write(&self, name: &str, content: &str) -> u64 {
        let files = &self.files.open_files;
        let done = async {
            let (entry, opened) = files.create(at(name), WRITE, &Making::FILE).await?;
            let content = Bytes::copy_from_slice(content.as_bytes());
            files.write(opened.handle, 0, content).await?;
            files.publish(opened.handle).await?;
            files.close(opened.handle).await?;
            Ok::<u64, Fault>(entry.attributes.ino)
        };
        self.runtime.block_on(done).unwrap()
    }

    fn change(&self, ino: u64, change: &Change) {
        let changed = self.files.attribute_calls.change(ino, change);
        self.runtime.block_on(changed).unwrap();
    }

    fn link(&self, name: &str, target: &str) {
        self.link_at(at(name), target);
    }

    fn link_at(&self, name: Name<'_>, target: &str) {
        let special = Special::Symlink(target.to_owned());
        let making = Making {
            kind: Kind::Symlink,
            ..Making::FILE
        };
        let calls = &self.files.attribute_calls;
        let made = calls.make_special(name, special, &making);
        self.runtime.block_on(made).unwrap();
    }

    /// How many HEADs and GETs the store answered.
    fn asked(&self) -> (u64, u64) {
        let faults = self.store.faults();
        (faults.count(Operation::Head), faults.count(Operation::Get))
    }

    fn sync(&self) {
        let synced = self.files.attribute_calls.sync_all();
        self.runtime.block_on(synced).unwrap();
    }

    fn list(&self, folder: u64) -> Vec<FolderEntry> {
        let handle = self.files.folders.open(folder).unwrap();
        let mut found = Vec::new();
        let take = |_, entry: FolderEntry| {
            found.push(entry);
            true
        };
        let mut index = 0;
        let read = self.files.folders.read(handle, index, true, take);
        self.runtime.block_on(read).unwrap();
        while index < found.len() {
            index = found.len();
            let take = |_, entry: FolderEntry| {
                found.push(entry);
                true
            };
            let read = self.files.folders.read(handle, index, true, take);
            self.runtime.block_on(read).unwrap();
        }
        self.files.folders.close(handle);
        found
    }
}

#[test]
fn files_as_the_options_have_them_leave_no_object() {
    let mount = Mount::new();
    mount.write("f", "content");
    mount.sync();
    assert_eq!(mount.store.keys(), ["f"]);
}

#[test]
fn what_was_changed_is_shown_by_the_next_mount_and_listings_ask_for_one_object() {
    let mount = Mount::new();
    let ino = mount.write("f", "content");
    let past = UNIX_EPOCH + Duration::from_nanos(981_173_106_123_456_789);
    let change = Change {
        given: Given {
            mode: Some(0o4750),
            uid: Some(7),
            gid: Some(8),
        },
        accessed: None,
        modified: Some(past),
    };
    mount.change(ino, &change);
    mount.link("l", "f");
    mount.sync();
    assert_eq!(mount.store.keys(), [OBJECT, "f"], "a link is no object");
    let next = mount.next();
    let before = mount.asked();
    let listed = next.list(ROOT);
    let names: Vec<&str> = listed.iter().map(|entry| &*entry.name).collect();
    assert_eq!(names, ["f", "l"]);
    let shown = &listed[0].entry.as_ref().unwrap().attributes;
    assert_eq!(
        (shown.mode, shown.uid, shown.gid),
        (Some(0o4750), Some(7), Some(8))
    );
    assert_eq!(shown.modified, past);
    assert!(shown.changed > past);
    assert_eq!(listed[1].kind, Kind::Symlink);
    let ino = next.see("l").ino;
    assert_eq!(next.files.attribute_calls.link_target(ino).unwrap(), "f");
    let after = mount.asked();
    assert_eq!(after, (before.0, before.1 + 1));
}

#[test]
fn time_that_was_set_goes_when_the_content_changes_and_mode_and_owner_stay() {
    let mount = Mount::new();
    let ino = mount.write("f", "content");
    let change = Change {
        modified: Some(UNIX_EPOCH),
        ..mode(0o600)
    };
    mount.change(ino, &change);
    mount.sync();
    mount.store.plant("f", "theirs");
    let shown = mount.next().see("f");
    assert_eq!(shown.mode, Some(0o600));
    assert_ne!(shown.modified, UNIX_EPOCH);
}

#[test]
fn time_that_was_set_before_close_is_that_of_what_is_published() {
    let mount = Mount::new();
    let files = &mount.files.open_files;
    let created = files.create(at("f"), WRITE, &Making::FILE);
    let (entry, opened) = mount.runtime.block_on(created).unwrap();
    let written = files.write(opened.handle, 0, Bytes::from_static(b"x"));
    mount.runtime.block_on(written).unwrap();
    let past = Change {
        modified: Some(UNIX_EPOCH),
        ..Change::default()
    };
    mount.change(entry.attributes.ino, &past);
    mount.runtime.block_on(files.close(opened.handle)).unwrap();
    mount.sync();
    assert_eq!(mount.next().see("f").modified, UNIX_EPOCH);
}

#[test]
fn two_mounts_that_change_a_folder_at_once_lose_nothing() {
    let one = Mount::new();
    for name in ["a", "b", "c"] {
        one.store.plant(name, name);
    }
    let two = one.next();
    let (a, b) = (one.see("a").ino, two.see("b").ino);
    one.change(a, &mode(0o600));
    two.change(b, &mode(0o640));
    one.sync();
    two.sync();
    let (a, c) = (one.see("a").ino, two.see("c").ino);
    one.change(a, &mode(0o400));
    two.change(c, &mode(0o444));
    two.sync();
    one.sync();
    let three = one.next();
    let modes = ["a", "b", "c"].map(|name| three.see(name).mode);
    assert_eq!(modes, [Some(0o400), Some(0o640), Some(0o444)]);
}

#[test]
fn names_that_go_or_move_take_their_attributes_with_them() {
    let mount = Mount::new();
    for name in ["f", "g"] {
        let ino = mount.write(name, name);
        mount.change(ino, &mode(0o600));
    }
    mount.link("l", "f");
    let rename = |old, new| {
        let renamed = mount.files.rename(at(old), at(new), true);
        mount.runtime.block_on(renamed).unwrap();
    };
    rename("f", "f2");
    rename("l", "l2");
    mount.runtime.block_on(mount.files.unlink(at("g"))).unwrap();
    mount.write("g", "anew");
    mount.sync();
    let next = mount.next();
    assert_eq!(next.see("f2").mode, Some(0o600));
    assert_eq!(next.see("g").mode, None);
    assert_eq!(next.see("l2").kind, Kind::Symlink);
    for gone in ["f", "l"] {
        let fault = next.find(ROOT, gone).unwrap_err();
        assert_eq!(fault.reason, Reason::NotFound);
    }
    let unlink = |name| next.runtime.block_on(next.files.unlink(at(name))).unwrap();
    for name in ["f2", "g", "l2"] {
        unlink(name);
    }
    next.sync();
    assert_eq!(
        next.store.keys(),
        [""; 0],
        "nothing is left of a folder that is empty"
    );
}

/// As a copy of what was uploaded in parts does.
#[test]
fn times_in_a_renamed_folder_stay_where_copies_have_other_entity_tags() {
    let store = Arc::new(MemoryStore::new());
    for key in ["d/", "d/f", "d/below/g", "d/below/h"] {
        store.plant(key, key);
    }
    for ttl in [Duration::ZERO, Duration::from_secs(60)] {
        let mount = Mount::of(&store, ttl);
        let past = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let find = |mount: &Mount, folder: &str| {
            let d = mount.find(ROOT, folder).unwrap().ino;
            let below = mount.find(d, "below").unwrap().ino;
            [(d, "f"), (below, "g"), (below, "h")]
                .map(|(folder, name)| mount.find(folder, name).unwrap())
        };
        let [f, g, _] = find(&mount, "d");
        for (ino, seconds) in [(f.ino, 1), (g.ino, 2)] {
            let change = Change {
                modified: Some(past(seconds)),
                ..Change::default()
            };
            mount.change(ino, &change);
        }
        let rename = |old, new| {
            let renamed = mount.files.rename(at(old), at(new), true);
            mount.runtime.block_on(renamed).unwrap();
        };
        rename("d", "e");
        for mount in [&mount, &mount.next()] {
            let [f, g, h] = find(mount, "e").map(|attributes| attributes.modified);
            assert_eq!((f, g), (past(1), past(2)), "{ttl:?}");
            assert!(h > past(3));
        }
        rename("e", "d");
    }
}

#[test]
fn folder_with_links_only_is_there_and_not_empty_until_they_are_gone() {
    let mount = Mount::new();
    let made = mount.files.make_folder(at("d"), &Making::FOLDER);
    let folder = mount.runtime.block_on(made).unwrap().attributes.ino;
    let new = Name {
        parent: folder,
        name: "pipe",
    };
    let making = Making {
        kind: Kind::Fifo,
        ..Making::FILE
    };
    let calls = &mount.files.attribute_calls;
    let made = calls.make_special(new, Special::Fifo, &making);
    mount.runtime.block_on(made).unwrap();
    mount.sync();
    assert_eq!(mount.store.keys(), ["d/", "d/.weft-attributes"]);
    let next = mount.next();
    let folder = next.see("d").ino;
    assert_eq!(next.find(folder, "pipe").unwrap().kind, Kind::Fifo);
    let removed = next.runtime.block_on(next.files.remove_folder(at("d")));
    assert_eq!(removed.unwrap_err().reason, Reason::NotEmpty);
    let new = Name {
        parent: folder,
        name: "pipe",
    };
    next.runtime.block_on(next.files.unlink(new)).unwrap();
    next.runtime
        .block_on(next.files.remove_folder(at("d")))
        .unwrap();
    next.sync();
    assert_eq!(next.store.keys(), [""; 0]);
}

#[test]
fn attributes_that_another_mount_removed_before_are_gone_without_a_fault() {
    let mount = Mount::new();
    let ino = mount.write("f", "f");
    mount.change(ino, &mode(0o600));
    mount.sync();
    let next = mount.next();
    let removed = next.files.unlink(at("f"));
    next.runtime.block_on(removed).unwrap();
    next.sync();
    assert_eq!(mount.store.keys(), [""; 0]);
    mount.store.plant("f", "f");
    let removed = mount.files.unlink(at("f"));
    mount.runtime.block_on(removed).unwrap();
    mount.sync();
}

#[test]
fn link_stays_in_a_folder_below_which_this_mount_emptied_another() {
    let mount = Mount::new();
    mount.store.plant("runs/2024/out", "x");
    let runs = mount.see("runs").ino;
    let parent = mount.find(runs, "2024").unwrap().ino;
    let name = Name {
        parent,
        name: "out",
    };
    mount.runtime.block_on(mount.files.unlink(name)).unwrap();
    let latest = Name {
        parent: runs,
        name: "latest",
    };
    mount.link_at(latest, "2024");
    mount.sync();
    assert_eq!(mount.store.keys(), ["runs/.weft-attributes"]);
}

#[test]
fn extended_attributes_are_kept_and_refused_as_setxattr_says() {
    let mount = Mount::new();
    let ino = mount.write("f", "x");
    let calls = &mount.files.attribute_calls;
    let set = |value: &[u8], presence| {
        let set = calls.set_xattr(ino, "user.a", value, presence);
        mount.runtime.block_on(set).map_err(|fault| fault.reason)
    };
    assert_eq!(set(b"1", Presence::Old), Err(Reason::NoAttribute));
    assert_eq!(set(b"\0\xff", Presence::New), Ok(()));
    assert_eq!(set(b"2", Presence::New), Err(Reason::Exists));
    assert_eq!(set(&vec![0; 65_537], Presence::Any), Err(Reason::TooMuch));
    mount.sync();
    let next = mount.next();
    let (ino, calls) = (next.see("f").ino, &next.files.attribute_calls);
    let value = next.runtime.block_on(calls.xattr(ino, "user.a")).unwrap();
    assert_eq!(value, b"\0\xff");
    next.runtime
        .block_on(calls.remove_xattr(ino, "user.a"))
        .unwrap();
    let gone = next.runtime.block_on(calls.xattr(ino, "user.a"));
    assert_eq!(gone.unwrap_err().reason, Reason::NoAttribute);
}

#[test]
fn object_of_another_version_is_left_alone_and_changes_are_refused() {
    let mount = Mount::new();
    for other in [&br#"{"version":2,"names":{}}"#[..], b"no json", b""] {
        mount.store.plant(OBJECT, Bytes::copy_from_slice(other));
        mount.store.plant("f", "content");
        let next = mount.next();
        let ino = next.see("f").ino;
        let change = mode(0o600);
        let changed = next.files.attribute_calls.change(ino, &change);
        let refused = next.runtime.block_on(changed).unwrap_err();
        assert_eq!(refused.reason, Reason::Broken);
        next.runtime.block_on(next.files.unlink(at("f"))).unwrap();
        next.sync();
        assert_eq!(next.store.content(OBJECT).unwrap(), other);
    }
}

#[test]
fn changes_behind_a_store_that_is_away_are_written_once_it_is_back() {
    let mount = Mount::new();
    let ino = mount.write("f", "x");
    mount.store.faults().away_after(0, false);
    mount.change(ino, &mode(0o600));
    let synced = mount
        .runtime
        .block_on(mount.files.attribute_calls.sync(ino));
    assert_eq!(synced.unwrap_err().reason, Reason::Broken);
    assert_eq!(mount.see("f").mode, Some(0o600), "this mount shows it");
    mount.store.faults().clear();
    mount.sync();
    assert_eq!(mount.next().see("f").mode, Some(0o600));
}
