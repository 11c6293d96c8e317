// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of a listing's end, where the names stand of which the store has nothing.

use super::*;
use weft_files::{FolderEntry, Making, Name};

const LINK: &str = r#"{"version":1,"names":{"zlink":{"special":{"symlink":"a"}}}}"#;

/// A reader of the root.
struct Reader<'a> {
    mount: &'a Mount,
    handle: u64,
    with_attributes: bool,
    names: Vec<String>,
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
    let writes = Mode {
        writes: true,
        ..Mode::default()
    };
    let files = &mount.files.open_files;
    let created = files.create(name(called), writes, &Making::FILE);
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
