// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The promises of the disk cache: it returns the right bytes or none, whatever happened to its
//! files; its size is limited; and its contents are kept.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use weft_cache::{BLOCK_BYTES, ContentName, DiskCache, Found, Limit};

const BLOCK: usize = BLOCK_BYTES as usize;

fn name(key: &str, size_bytes: usize) -> ContentName {
    ContentName::new("http://store/bucket", key, "\"1\"", size_bytes as u64)
}

fn open(folder: &Path, limit: u64) -> DiskCache {
    DiskCache::open(folder, Limit::Bytes(limit), |_| ()).unwrap()
}

fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| random.u8(..)).collect()
}

fn whole(cache: &DiskCache, name: &ContentName) -> Vec<Found> {
    cache.read(name, 0..name.size_bytes)
}

/// The files below a folder that end so.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let below = fs::read_dir(folder.join("weft-cache-1")).unwrap();
    let files = below.flat_map(|below| fs::read_dir(below.unwrap().path()).unwrap());
    let paths = files.map(|file| file.unwrap().path());
    paths
        .filter(|path| path.extension().unwrap() == end)
        .collect()
}

#[test]
fn what_was_written_is_read_by_the_next_mount_and_by_another_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (name, content) = (name("k", 3 * BLOCK + 5), bytes(3 * BLOCK + 5, 1));
    let cache = open(folder.path(), 1 << 30);
    let other = open(folder.path(), 1 << 30);
    assert_eq!(whole(&cache, &name), [Found::Missing(0..name.size_bytes)]);
    cache.write(&name, 0, &content);
    for cache in [&cache, &other, &open(folder.path(), 1 << 30)] {
        assert_eq!(whole(cache, &name), [Found::Here(content.clone())]);
    }
    assert_eq!(fs::read(&files(folder.path(), "data")[0]).unwrap(), content);
    assert!(cache.whole(&name).is_some());
}

#[test]
fn blocks_that_are_missing_are_named_in_their_places() {
    let folder = tempfile::tempdir().unwrap();
    let (name, content) = (name("k", 5 * BLOCK + 1), bytes(5 * BLOCK + 1, 2));
    let cache = open(folder.path(), 1 << 30);
    cache.write(&name, BLOCK_BYTES, &content[BLOCK..2 * BLOCK]);
    cache.write(&name, 5 * BLOCK_BYTES, &content[5 * BLOCK..]);
    assert!(cache.whole(&name).is_none());
    let expected = [
        Found::Missing(0..BLOCK_BYTES),
        Found::Here(content[BLOCK..2 * BLOCK].to_vec()),
        Found::Missing(2 * BLOCK_BYTES..5 * BLOCK_BYTES),
        Found::Here(content[5 * BLOCK..].to_vec()),
    ];
    assert_eq!(whole(&cache, &name), expected);
}

#[test]
fn bits_turned_over_anywhere_in_the_files_never_show() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (name, content) = (name("k", 4 * BLOCK), bytes(4 * BLOCK, seed));
    for _ in 0..60 {
        let folder = tempfile::tempdir().unwrap();
        open(folder.path(), 1 << 30).write(&name, 0, &content);
        let end = if random.bool() { "data" } else { "index" };
        let path = &files(folder.path(), end)[0];
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        let at = random.u64(..file.metadata().unwrap().len());
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        byte[0] ^= 1 << random.u8(..8);
        file.write_all_at(&byte, at).unwrap();
        let cache = open(folder.path(), 1 << 30);
        let mut at = 0;
        for found in whole(&cache, &name) {
            match found {
                Found::Here(bytes) => {
                    assert_eq!(bytes, content[at..at + bytes.len()]);
                    at += bytes.len();
                }
                Found::Missing(range) => {
                    assert_eq!(range.start, at as u64);
                    cache.write(&name, range.start, &content[at..range.end as usize]);
                    at = range.end as usize;
                }
            }
        }
        assert_eq!(at, content.len());
        assert_eq!(
            whole(&cache, &name),
            [Found::Here(content.clone())],
            "mended"
        );
    }
}

#[test]
fn files_that_were_cut_or_are_of_another_content_count_as_missing() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (name("k", 2 * BLOCK), name("l", 2 * BLOCK));
    let content = bytes(2 * BLOCK, 3);
    for end in ["data", "index"] {
        let cache = open(folder.path(), 1 << 30);
        cache.write(&one, 0, &content);
        let path = files(folder.path(), end).remove(0);
        fs::OpenOptions::new()
            .write(true)
            .open(path)
            .unwrap()
            .set_len(66)
            .unwrap();
        let cache = open(folder.path(), 1 << 30);
        assert_eq!(whole(&cache, &one), [Found::Missing(0..one.size_bytes)]);
    }
    let cache = open(folder.path(), 1 << 30);
    cache.write(&one, 0, &content);
    for end in ["data", "index"] {
        let from = files(folder.path(), end).remove(0);
        let below = folder.path().join("weft-cache-1").join(&other.text()[..2]);
        fs::create_dir_all(&below).unwrap();
        fs::copy(from, below.join(format!("{}.{end}", other.text()))).unwrap();
    }
    assert_eq!(whole(&cache, &other), [Found::Missing(0..other.size_bytes)]);
}

#[test]
fn files_that_another_process_is_making_are_left_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let (name, content) = (name("k", 2 * BLOCK), bytes(2 * BLOCK, 5));
    let cache = open(folder.path(), 1 << 30);
    cache.write(&name, 0, &content[..BLOCK]);
    // As before its head is written.
    let index = &files(folder.path(), "index")[0];
    let head = fs::read(index).unwrap();
    let making = fs::File::options().write(true).open(index).unwrap();
    making.set_len(0).unwrap();
    let other = open(folder.path(), 1 << 30);
    assert_eq!(whole(&other, &name), [Found::Missing(0..name.size_bytes)]);
    making.write_all_at(&head, 0).unwrap();
    let (here, missing) = (content[..BLOCK].to_vec(), BLOCK_BYTES..2 * BLOCK_BYTES);
    for cache in [&cache, &other] {
        let found = [Found::Here(here.clone()), Found::Missing(missing.clone())];
        assert_eq!(whole(cache, &name), found);
    }
}

#[test]
fn cache_stays_within_its_bound_and_what_was_used_last_stays() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 32 * BLOCK_BYTES;
    let cache = open(folder.path(), limit);
    let content = bytes(2 * BLOCK, 4);
    let names: Vec<_> = (0..60)
        .map(|number| name(&number.to_string(), 2 * BLOCK))
        .collect();
    for name in &names {
        cache.write(name, 0, &content);
        // The first one is read all the time, and stays for that.
        assert_eq!(whole(&cache, &names[0]), [Found::Here(content.clone())]);
        let on_disk: u64 = ["data", "index"]
            .iter()
            .flat_map(|end| files(folder.path(), end))
            .map(|path| std::os::unix::fs::MetadataExt::blocks(&fs::metadata(path).unwrap()) * 512)
            .sum();
        assert!(on_disk <= limit + 3 * BLOCK_BYTES, "{on_disk} of {limit}");
    }
    for name in &names[52..] {
        assert_eq!(whole(&cache, name), [Found::Here(content.clone())]);
    }
    for name in &names[1..40] {
        assert_eq!(whole(&cache, name), [Found::Missing(0..2 * BLOCK_BYTES)]);
    }
    assert!(cache.taken_bytes() <= limit);
    let smaller = open(folder.path(), 8 * BLOCK_BYTES);
    assert!(smaller.taken_bytes() <= 8 * BLOCK_BYTES);
}

#[test]
fn folder_in_which_others_may_write_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), 1 << 30));
    let own = folder.path().join("weft-cache-1");
    fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = DiskCache::open(folder.path(), Limit::OfDisk, |_| ())
        .err()
        .unwrap();
    assert!(refused.to_string().contains("mode 777"), "{refused}");
}
