// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of programs that walk through a tree.

use super::*;

#[test]
fn walk_over_a_tree_lists_it_flat_and_shows_what_listings_show() {
    let mount = Mount::new("p/", LONG);
    for folder in 0..300 {
        for key in ["a", "deep/er/b", "c", "deep-c", "bad//key"] {
            mount.store.plant(&format!("p/t/{folder:03}/{key}"), "x");
        }
        mount.store.plant(&format!("p/t/{folder:03}/empty/"), "");
    }
    let before = mount.count(Operation::List);
    let mut files = Vec::new();
    let mut folders = vec![("t".to_owned(), mount.walk("t").unwrap().0)];
    while let Some((path, ino)) = folders.pop() {
        let names = mount.list(ino, true);
        for name in names.into_iter().rev() {
            let path = format!("{path}/{name}");
            match mount.walk(&path).unwrap() {
                (ino, Kind::Folder) => folders.push((path, ino)),
                _ => files.push(path),
            }
        }
    }
    files.sort();
    let expected = (0..300).flat_map(|folder| {
        ["a", "c", "deep-c", "deep/er/b"].map(|key| format!("t/{folder:03}/{key}"))
    });
    assert!(files.iter().cloned().eq(expected), "{} files", files.len());
    let asked = mount.count(Operation::List) - before;
    assert!(asked <= 8, "{asked} listings of 1,500 keys");
}

/// A mount with 16 folders of 1,000 files in `t`, which was listed: the numbers of the folders.
fn sixteen_folders() -> (Mount, Vec<u64>) {
    let mount = Mount::new("", LONG);
    for number in 0..16_000 {
        let (folder, file) = (number / 1000, number % 1000);
        mount.store.plant(&format!("t/{folder:02}/f{file:03}"), "");
    }
    let names = mount.list(mount.walk("t").unwrap().0, true);
    assert_eq!(names.len(), 16);
    let folders = names.iter().map(|name| mount.walk(&format!("t/{name}")));
    let folders = folders.map(|found| found.unwrap().0).collect();
    (mount, folders)
}

#[test]
fn walk_asks_for_each_page_of_its_folders_once() {
    let (mount, folders) = sixteen_folders();
    for folder in folders {
        assert_eq!(mount.list(folder, true).len(), 1000);
    }
    let asked = mount.count(Operation::List);
    assert!(asked <= 20, "{asked} listings of 18 pages");
}

#[test]
fn reader_of_the_first_folder_alone_pays_for_one_page_more() {
    let (mount, folders) = sixteen_folders();
    let before = mount.count(Operation::List);
    for _ in 0..3 {
        assert_eq!(mount.list(folders[0], true).len(), 1000);
    }
    // Whatever is still under way was counted when it was asked for; let it be asked for.
    await_that(|| mount.count(Operation::List) - before >= 2);
    assert_eq!(mount.count(Operation::List) - before, 2);
}

/// Reads folders of 1,000 files to their ends; the places of those whose readers met an error.
fn read_all(mount: &Mount, folders: &[u64]) -> Vec<usize> {
    let mut failed = Vec::new();
    for (place, folder) in folders.iter().enumerate() {
        let handle = mount.files.folders.open(*folder).unwrap();
        let mut count = 0;
        let mut read = || {
            let take = |_, _| {
                count += 1;
                true
            };
            let read = mount.files.folders.read(handle, 0, true, take);
            mount.runtime.block_on(read)
        };
        while read().is_err() {
            failed.push(place);
            assert!(failed.len() < 10, "{failed:?}");
        }
        assert_eq!(count, 1000);
        mount.files.folders.close(handle);
    }
    failed
}

#[test]
fn page_of_a_walk_that_failed_is_asked_for_again_by_who_needs_it() {
    // The first folder by itself, and what follows it.
    for (prefix, place) in [("t/00/", 0), ("t/", 1)] {
        let (mount, folders) = sixteen_folders();
        let fault = Failure::Denied;
        let list = Operation::List;
        mount.store.faults().fail_key(list, prefix, fault);
        let failed = read_all(&mount, &folders);
        // What failed before anybody wanted it is asked for again unseen.
        let is_unseen = failed.is_empty() && place > 0;
        assert!(is_unseen || failed == [place], "{prefix}: {failed:?}");
    }
}

#[test]
fn store_that_lists_from_the_beginning_only_is_listed_page_by_page() {
    let mount = Mount::new("", LONG);
    mount.store.faults().forget_middles();
    for number in 0..7_500 {
        mount.store.plant(&format!("d/f{number:05}"), "");
    }
    for folder in 0..3 {
        mount.store.plant(&format!("t/{folder}/f"), "");
    }
    let names = mount.list(mount.walk("d").unwrap().0, true);
    assert!(
        names
            .iter()
            .cloned()
            .eq((0..7_500).map(|number| format!("f{number:05}")))
    );
    assert_eq!(
        mount.list(mount.walk("t").unwrap().0, true),
        ["0", "1", "2"]
    );
    for folder in 0..3 {
        let ino = mount.walk(&format!("t/{folder}")).unwrap().0;
        assert_eq!(mount.list(ino, true), ["f"]);
    }
}

#[test]
fn folders_that_are_opened_in_no_order_are_listed_by_themselves() {
    let mount = Mount::new("", LONG);
    for folder in 0..20 {
        mount.store.plant(&format!("t/{folder:02}/f"), "x");
    }
    mount.list(mount.walk("t").unwrap().0, true);
    for folder in [7, 3, 19, 0, 1, 12, 2] {
        let ino = mount.walk(&format!("t/{folder:02}")).unwrap().0;
        assert_eq!(mount.list(ino, true), ["f"]);
    }
}
