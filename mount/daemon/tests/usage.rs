// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wrong usage, which needs no FUSE and no store. That this test needs the program makes
//! `cargo test` build it; the suites in `tests/` use it too, and so nothing is built again.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn weft_mount(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weft-mount"))
        .args(arguments)
        .output()
        .expect("the program starts")
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_is_wrong() {
    for (arguments, words) in [
        (&[][..], "Usage"),
        (&["data", "/mnt", "--no-such-option"], "--no-such-option"),
        (&["A B", "/mnt"], "not the name of a bucket"),
    ] {
        let output = weft_mount(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn log_that_cannot_be_written_is_named_before_anything_is_mounted() {
    let folder = "/no/such/folder";
    let output = weft_mount(&["data", "/mnt", "--log-directory", folder]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for words in ["/no/such/folder/weft-mount.log", "--log-directory"] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn own_folders_in_the_folder_to_mount_on_are_refused_and_nothing_is_made_there() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-folders");
    let inner = folder.join("inner");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&inner).unwrap();
    let link = folder.with_file_name("own-folders-link");
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(&inner, &link).unwrap();
    for (option, own) in [
        ("--log-directory", &folder),
        ("--log-directory", &inner),
        ("--log-directory", &link),
        ("--cache", &inner),
        ("--stage", &folder.join("not/there")),
        ("--stage", &folder.join("../missing/../own-folders/stage")),
    ] {
        let (over, own) = (folder.to_str().unwrap(), own.to_str().unwrap());
        let output = weft_mount(&["data", over, option, own]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        for words in [option, own, "would hide it"] {
            assert!(said.contains(words), "{said}");
        }
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    assert_eq!(fs::read_dir(&inner).unwrap().count(), 0);
}

#[test]
fn folder_to_mount_on_in_a_cache_or_stage_is_refused() {
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mounted-inside");
    let _ = fs::remove_dir_all(&own);
    let over = own.join("m");
    fs::create_dir_all(&over).unwrap();
    for option in ["--cache", "--stage"] {
        let (over, own) = (over.to_str().unwrap(), own.to_str().unwrap());
        let output = weft_mount(&["data", over, option, own]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        for words in [option, own, "would read itself"] {
            assert!(said.contains(words), "{said}");
        }
    }
    assert_eq!(fs::read_dir(&own).unwrap().count(), 1);
}
