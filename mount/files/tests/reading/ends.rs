// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of a listing's end, where the names stand of which the store has nothing.

use super::*;
use weft_files::{FolderEntry, Making, Name, Special};

const LINK: &str = r#"{"version":1,"names":{"zlink":{"special":{"symlink":"a"}}}}"#;

/// A reader of the root.
struct Reader<'a> {
    mount: &'a Mount,
    handle: u64,
    with_attributes: bool,
    names: Vec<String>,
    kinds: Vec<Kind>,
    /// Where it goes on: behind the last name that it got.
    next: usize,
}

impl<'a> Reader<'a> {
    fn new(mount: &'a Mount, with_attributes: bool) -> Self {
        Self {
            mount,
            handle: mount.files.folders.open(ROOT).unwrap(),
            with_attributes,
            names: Vec::new(),
            kinds: Vec::new(),
            next: 0,
        }
    }

    /// At most `limit` names more; how many there were.
    fn read(&mut self, limit: usize) -> Result<usize, Reason> {
        let (before, next) = (self.names.len(), self.next);
        let take = |index, entry: FolderEntry| {
            let has_room = self.names.len() < before + limit;
            if has_room {
                self.next = index + 1;
                self.names.push(entry.name.to_string());
                self.kinds.push(entry.kind);
            }
            has_room
        };
        let folders = &self.mount.files.folders;
        let read = folders.read(self.handle, next, self.with_attributes, take);
        let read = self.mount.runtime.block_on(read);
        read.map_err(|fault| fault.reason)?;
        Ok(self.names.len() - before)
    }

    /// All that are left; how often the reader was told of an error.
    fn read_rest(&mut self) -> usize {
        let mut failures = 0;
        loop {
            match self.read(250) {
                Ok(0) => break,
                Ok(_) => {}
                Err(_) => failures += 1,
            }
            assert!(failures < 10);
        }
        self.mount.files.folders.close(self.handle);
        failures
    }
}

fn mount_of(count: usize) -> Mount {
    let mount = Mount::new("", LONG);
    for number in 0..count {
        mount.store.plant(&format!("f{number:05}"), "");
    }
    mount
}

fn name(name: &str) -> Name<'_> {
    Name { parent: ROOT, name }
}

#[test]
fn names_of_attributes_that_could_not_be_read_at_first_are_not_left_out() {
    for (count, with_attributes) in [(1500, false), (1500, true), (900, false), (900, true)] {
        let mount = mount_of(count);
        mount.store.plant(".weft-attributes", LINK);
        let fault = Failure::Unreachable;
        mount.store.faults().fail(Operation::Get, 0, fault);
        let mut reader = Reader::new(&mount, with_attributes);
        reader.read_rest();
        assert_eq!(reader.names.len(), count + 1);
        assert_eq!(reader.names[count], "zlink");
    }
}

#[test]
fn attributes_that_cannot_be_read_are_an_error_before_the_listing_ends() {
    let mount = mount_of(1500);
    mount.store.plant(".weft-attributes", LINK);
    for skipped in 0..100 {
        let fault = Failure::Denied;
        mount.store.faults().fail(Operation::Get, skipped, fault);
    }
    let mut reader = Reader::new(&mount, false);
    let failed = (0..100).find_map(|_| match reader.read(250) {
        Ok(0) => Some(Ok(())),
        Ok(_) => None,
        Err(reason) => Some(Err(reason)),
    });
    assert_eq!(failed, Some(Err(Reason::Denied)));
    mount.store.faults().clear();
    reader.read_rest();
    assert_eq!(reader.names.len(), 1501);
}

/// Makes a file that is not published yet; its handle.
fn create(mount: &Mount, called: &str) -> u64 {
    let files = &mount.files.open_files;
    let created = files.create(name(called), Mode::WRITES, &Making::FILE);
    mount.runtime.block_on(created).unwrap().1.handle
}

#[test]
fn own_names_at_the_end_are_those_of_when_the_reader_comes_there() {
    for with_attributes in [false, true] {
        let mount = mount_of(1500);
        create(&mount, "zold");
        let mut reader = Reader::new(&mount, with_attributes);
        reader.read(500).unwrap();
        // So that the second page is here, and what is made ready behind the reader is.
        await_that(|| mount.count(Operation::List) >= 2);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(reader.read(500).unwrap(), 500);
        std::thread::sleep(Duration::from_millis(20));
        let removed = mount.files.unlink(name("zold"));
        mount.runtime.block_on(removed).unwrap();
        create(&mount, "znew");
        reader.read_rest();
        assert_eq!(reader.names[1499..], ["f01499", "znew"]);
    }
}

#[test]
fn names_that_went_after_their_page_came_are_not_told() {
    for with_attributes in [false, true] {
        let mount = mount_of(600);
        mount.store.plant("folder/", "");
        let mut reader = Reader::new(&mount, with_attributes);
        assert_eq!(reader.read(250).unwrap(), 250);
        // The next reply has none of its names any more, and the rest is not left out.
        for number in 250..550 {
            let number = format!("f{number:05}");
            let removed = mount.files.unlink(name(&number));
            mount.runtime.block_on(removed).unwrap();
        }
        let removed = mount.files.remove_folder(name("folder"));
        mount.runtime.block_on(removed).unwrap();
        reader.read_rest();
        let left = (0..250).chain(550..600);
        let left: Vec<_> = left.map(|number| format!("f{number:05}")).collect();
        assert_eq!(reader.names, left);
    }
}

#[test]
fn reader_waits_for_the_next_page_if_all_names_of_one_went() {
    for with_attributes in [false, true] {
        let mount = mount_of(1010);
        let mut reader = Reader::new(&mount, with_attributes);
        assert_eq!(reader.read(990).unwrap(), 990);
        for number in 990..1000 {
            let number = format!("f{number:05}");
            let removed = mount.files.unlink(name(&number));
            mount.runtime.block_on(removed).unwrap();
        }
        reader.read_rest();
        assert_eq!(reader.names.len(), 1000);
        assert_eq!(reader.names[989..991], ["f00989", "f01000"]);
    }
}

#[test]
fn file_that_is_published_while_the_last_page_is_read_is_not_left_out() {
    for with_attributes in [false, true] {
        let mount = mount_of(900);
        let files = &mount.files.open_files;
        let handle = create(&mount, "new");
        let mut reader = Reader::new(&mount, with_attributes);
        assert_eq!(reader.read(500).unwrap(), 500);
        mount.runtime.block_on(files.close(handle)).unwrap();
        assert_eq!(mount.count(Operation::Put), 1);
        reader.read_rest();
        assert_eq!(reader.names.len(), 901);
        assert_eq!(reader.names[899..], ["f00899", "new"]);
    }
}

/// What a reader does between its first names and the rest.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// It comes by the names that were made anew while nothing of them is published.
    On,
    /// They are published before.
    Published,
    /// They are published afterwards.
    OnThenPublished,
    /// The same, and the reader comes by them once more.
    Back,
}

/// Removes two files, and makes a file and a link of their names; the file's handle.
fn make_anew(mount: &Mount) -> u64 {
    for called in ["f00500", "f00600"] {
        let removed = mount.files.unlink(name(called));
        mount.runtime.block_on(removed).unwrap();
    }
    let (calls, link) = (&mount.files.attribute_calls, Special::Symlink("q".into()));
    let linked = calls.make_special(name("f00600"), link, &Making::FILE);
    mount.runtime.block_on(linked).unwrap();
    create(mount, "f00500")
}

fn test_made_anew(count: usize, with_attributes: bool, way: Way) {
    let mount = mount_of(count);
    let mut reader = Reader::new(&mount, with_attributes);
    assert_eq!(reader.read(250).unwrap(), 250);
    let handle = make_anew(&mount);
    let close = || {
        let closed = mount.files.open_files.close(handle);
        mount.runtime.block_on(closed).unwrap();
    };
    if way == Way::Published {
        close();
    }
    let back = reader.next;
    reader.read(450).unwrap();
    if matches!(way, Way::OnThenPublished | Way::Back) {
        close();
    }
    if way == Way::Back {
        reader.names.truncate(250);
        reader.kinds.truncate(250);
        reader.next = back;
    }
    reader.read_rest();
    let of = format!("{way:?}, {count} names, attributes: {with_attributes}");
    let mut told: Vec<_> = reader.names.iter().zip(&reader.kinds).collect();
    told.sort_by_key(|(name, _)| *name);
    assert_eq!(told.len(), count, "{of}");
    for (number, (name, kind)) in told.into_iter().enumerate() {
        assert_eq!(*name, format!("f{number:05}"), "{of}");
        let is_link = number == 600;
        assert_eq!(*kind == Kind::Symlink, is_link, "{of}: {name}");
    }
}

/// The last page comes with the first names, or after the names were made anew.
#[test]
fn names_that_were_made_anew_are_told_once_and_as_what_they_are() {
    for way in [Way::On, Way::Published, Way::OnThenPublished, Way::Back] {
        for (count, with_attributes) in [(900, false), (900, true), (2300, false), (2300, true)] {
            test_made_anew(count, with_attributes, way);
        }
    }
}

#[test]
fn names_of_a_known_listing_that_were_made_anew_are_told_as_what_they_are() {
    for with_attributes in [false, true] {
        let mount = mount_of(900);
        assert_eq!(mount.list(ROOT, false).len(), 900);
        let before = mount.count(Operation::List);
        let mut reader = Reader::new(&mount, with_attributes);
        assert_eq!(reader.read(250).unwrap(), 250);
        make_anew(&mount);
        reader.read_rest();
        assert_eq!(mount.count(Operation::List), before, "all was known");
        assert_eq!(reader.names.len(), 900);
        assert!(reader.names.is_sorted());
        assert_eq!(reader.kinds[500], Kind::File);
        assert_eq!(reader.kinds[600], Kind::Symlink);
    }
}

#[test]
fn name_that_went_is_not_told_again_though_others_list_the_folder_meanwhile() {
    for ttl in [Duration::ZERO, LONG] {
        for with_attributes in [false, true] {
            let mount = Mount::new("", ttl);
            for number in 0..600 {
                mount.store.plant(&format!("f{number:05}"), "");
            }
            let mut reader = Reader::new(&mount, with_attributes);
            assert_eq!(reader.read(250).unwrap(), 250);
            let removed = mount.files.unlink(name("f00400"));
            mount.runtime.block_on(removed).unwrap();
            // Where what is known does not suffice, the names are listed anew.
            let began = Instant::now();
            await_that(|| began.elapsed() > Duration::from_millis(1));
            let mut other = Reader::new(&mount, false);
            other.read_rest();
            assert_eq!(other.names.len(), 599);
            reader.read_rest();
            assert_eq!(reader.names.len(), 599);
            assert!(!reader.names.contains(&"f00400".to_owned()));
        }
    }
}
