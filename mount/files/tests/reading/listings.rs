// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of open folders: what a reader sees, and when the store is asked.

use super::*;

/// Reads a listing as `ls -l` does: some names, then what each of them is. Says how long the names
/// of one read were looked at, at most.
fn list_slowly(mount: &Mount, pause: Duration) -> (Vec<String>, Duration) {
    let handle = mount.files.folders.open(ROOT).unwrap();
    let (mut names, mut longest) = (Vec::<String>::new(), Duration::ZERO);
    loop {
        let (before, began) = (names.len(), Instant::now());
        let take = |index, entry: weft_files::FolderEntry| {
            if index < before + 500 {
                names.push(entry.name.to_string());
            }
            index < before + 500
        };
        let read = mount.files.folders.read(handle, before, true, take);
        mount.runtime.block_on(read).unwrap();
        if names.len() == before {
            break;
        }
        std::thread::sleep(pause);
        for name in &names[before..] {
            let (ino, _) = mount.walk(name).unwrap();
            let asked = mount.files.attributes(ino);
            mount.runtime.block_on(asked).unwrap();
        }
        longest = longest.max(began.elapsed());
    }
    mount.files.folders.close(handle);
    (names, longest)
}

/// On a machine so busy that one read takes longer than the time to live, names become too old
/// rightly: only then the law tries a longer time.
#[test]
fn names_of_a_listing_are_believed_while_it_is_read_and_a_time_to_live_longer() {
    for ttl in [1, 4, 16].map(Duration::from_secs) {
        let mount = Mount::new("", ttl);
        for number in 0..2500 {
            mount.store.plant(&format!("f{number:05}"), Vec::new());
        }
        let (names, longest) = list_slowly(&mount, ttl * 2 / 5);
        if longest >= ttl {
            continue;
        }
        assert_eq!(names.len(), 2500);
        let asked = |operation| mount.count(operation);
        // Three pages, and a few that were guessed.
        let (lists, heads) = (asked(Operation::List), asked(Operation::Head));
        assert!(lists <= 6 && heads == 0, "{lists} lists, {heads} heads");
        std::thread::sleep(ttl + ttl / 10);
        mount.walk("f00000").unwrap();
        assert!(
            asked(Operation::Head) + asked(Operation::List) > lists,
            "it is old by now"
        );
        return;
    }
    panic!("500 names took more than 16 s");
}

/// As tar does that unpacks thousands of files into one folder, for longer than the time to live.
#[test]
fn many_names_of_a_large_folder_cost_a_listing_of_it_and_not_a_request_each() {
    let ttl = Duration::from_secs(2);
    let mount = Mount::new("", ttl);
    for number in 0..2500 {
        mount.store.plant(&format!("f{number:05}"), Vec::new());
    }
    assert_eq!(mount.list(ROOT, false).len(), 2500);
    std::thread::sleep(ttl + ttl / 10);
    // What somebody else made meanwhile is found, too.
    mount.store.plant("g", Vec::new());
    let before = mount.count(Operation::List);
    for number in 0..300 {
        let missing = mount.walk(&format!("new{number:05}"));
        assert_eq!(missing, Err(Reason::NotFound));
    }
    assert_eq!(mount.walk("g").map(|(_, kind)| kind), Ok(Kind::File));
    let lists = mount.count(Operation::List) - before;
    assert!(lists <= 20, "{lists} lists for 300 names");
}

#[test]
fn listing_that_failed_goes_on_at_the_page_that_failed() {
    let mount = Mount::new("", LONG);
    for number in 0..2500 {
        mount.store.plant(&format!("f{number:05}"), Vec::new());
    }
    let fault = Failure::Unreachable;
    mount.store.faults().fail(Operation::List, 1, fault);
    let handle = mount.files.folders.open(ROOT).unwrap();
    let (mut names, mut failures) = (Vec::new(), 0);
    loop {
        let before = names.len();
        let take = |_, entry: weft_files::FolderEntry| {
            names.push(entry.name.to_string());
            true
        };
        let read = mount.files.folders.read(handle, before, false, take);
        match mount.runtime.block_on(read) {
            Ok(()) if names.len() == before => break,
            Ok(()) => {}
            Err(_) => failures += 1,
        }
    }
    // One that failed while it was read ahead is asked for again unseen.
    assert_eq!(names.len(), 2500);
    assert!(failures <= 1, "{failures} failures");
    assert!(names.is_sorted() && names.windows(2).all(|two| two[0] != two[1]));
}

/// A mount with a folder of 900 files of 5 bytes of which a reader got the first 300 names, with
/// the nodes of the others made ahead: the folder's handle, and the numbers of all.
fn made_ahead() -> (Mount, u64, Vec<u64>) {
    let mount = Mount::new("", LONG);
    for number in 0..900 {
        mount.store.plant(&format!("f{number:03}"), "12345");
    }
    let (handle, mut numbers) = (mount.files.folders.open(ROOT).unwrap(), Vec::new());
    let take = |_, entry: weft_files::FolderEntry| {
        numbers.push(entry.ino);
        true
    };
    let read = mount.files.folders.read(handle, 0, false, take);
    mount.runtime.block_on(read).unwrap();
    let known = |ino| mount.runtime.block_on(mount.files.attributes(ino)).is_ok();
    assert_eq!(numbers.len(), 900);
    assert!(!known(numbers[0]) && !known(numbers[899]));
    let take = |index, _| index < 300;
    let read = mount.files.folders.read(handle, 0, true, take);
    mount.runtime.block_on(read).unwrap();
    await_that(|| known(numbers[899]));
    (mount, handle, numbers)
}

#[test]
fn names_that_were_made_ahead_show_what_was_changed_since() {
    let (mount, handle, numbers) = made_ahead();
    let mode = Mode {
        writes: true,
        truncates: true,
        ..Mode::default()
    };
    let opened = mount.files.open_files.open(numbers[500], mode);
    let opened = mount.runtime.block_on(opened).unwrap();
    let (parent, name) = (ROOT, "f600");
    let unlinked = mount.files.unlink(weft_files::Name { parent, name });
    mount.runtime.block_on(unlinked).unwrap();
    let mut shown = Vec::new();
    let take = |_, entry: weft_files::FolderEntry| {
        let size = entry.entry.map(|entry| entry.attributes.size_bytes);
        shown.push((entry.ino, size));
        true
    };
    let read = mount.files.folders.read(handle, 300, true, take);
    mount.runtime.block_on(read).unwrap();
    assert_eq!(shown.len(), 599);
    let places = (300..900).filter(|place| *place != 600);
    for (place, (ino, size)) in places.zip(&shown) {
        assert_eq!(*ino, numbers[place], "{place}");
        assert_eq!(*size, Some(if place == 500 { 0 } else { 5 }), "{place}");
    }
    let closed = mount.files.open_files.close(opened.handle);
    mount.runtime.block_on(closed).unwrap();
    mount.files.folders.close(handle);
}

#[test]
fn names_that_were_made_ahead_and_not_told_are_forgotten() {
    for is_closed in [true, false] {
        let (mount, handle, numbers) = made_ahead();
        let known = |ino| mount.runtime.block_on(mount.files.attributes(ino)).is_ok();
        if is_closed {
            mount.files.folders.close(handle);
        } else {
            // A reader who wants no attributes any more.
            let read = mount.files.folders.read(handle, 300, false, |_, _| false);
            mount.runtime.block_on(read).unwrap();
        }
        await_that(|| numbers[300..].iter().all(|ino| !known(*ino)));
        assert!(numbers[..300].iter().all(|ino| known(*ino)));
        for ino in &numbers[..300] {
            mount.files.forget(*ino, 1);
            assert!(!known(*ino));
        }
    }
}

#[test]
fn what_was_to_be_made_ready_for_a_reader_who_went_back_is_not() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let mount = Mount::on(runtime.build().unwrap(), "", LONG);
    for number in 0..3500 {
        mount.store.plant(&format!("f{number:05}"), "");
    }
    let folders = &mount.files.folders;
    let handle = folders.open(ROOT).unwrap();
    // One thread does it all: what a read leaves to be done waits until this waits.
    let read = async |from: usize, count: usize| {
        let take = |index, _| index < from + count;
        folders.read(handle, from, false, take).await.unwrap();
    };
    let others = async || {
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
    };
    mount.runtime.block_on(async {
        for from in [0, 1000, 2000] {
            others().await;
            read(from, 1000).await;
        }
        read(0, 10).await;
        others().await;
        let before = mount.count(Operation::List);
        read(10, 10).await;
        others().await;
        assert_eq!(mount.count(Operation::List), before, "it began anew");
    });
}

#[test]
fn listing_with_attributes_asks_once_for_a_thousand_names_and_for_no_object() {
    let mount = Mount::new("", LONG);
    for number in 0..2500 {
        mount
            .store
            .plant(&format!("d/f{number:05}"), vec![0; number]);
    }
    let folder = mount.walk("d").unwrap().0;
    let before = mount.count(Operation::List);
    let names = mount.list(folder, true);
    assert_eq!(names.len(), 2500);
    for name in &names {
        mount
            .runtime
            .block_on(mount.files.lookup(folder, name))
            .unwrap();
    }
    assert_eq!(mount.list(folder, false).len(), 2500);
    let asked = mount.count(Operation::List) - before;
    assert!((3..=5).contains(&asked), "{asked} listings for three pages");
    assert_eq!(mount.count(Operation::Head), 0);
}
