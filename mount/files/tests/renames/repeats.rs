// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of copies whose answers were lost: the client asks once more by itself, and the store
//! refuses that since it did the first. What counts as the copy then, and what as somebody else's.

use super::*;

const OLD: &str = "a long content";
/// As many bytes.
const OTHER: &str = "somebody else!";

fn two_files() -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    store.plant("p/a/x", OLD);
    store.plant("p/a/y", "another");
    store
}

#[test]
fn copy_that_the_client_asked_for_twice_is_the_copy_though_it_has_another_tag() {
    let _one = alone();
    for name in ["x", "y"] {
        let store = two_files();
        let mount = Mount::of(&store);
        store.faults().repeat_copy(&format!("p/b/{name}"));
        assert_eq!(mount.rename("a", "b"), Ok(()), "{:?}", told());
        assert_eq!(store.keys(), ["p/b/x", "p/b/y"]);
        assert_eq!(store.content("p/b/x").unwrap(), OLD);
    }
}

#[test]
fn copy_that_was_asked_for_twice_and_has_the_tag_of_its_source_is_not_read() {
    let _one = alone();
    let store = two_files();
    let mount = Mount::of(&store);
    store.faults().copies_keep_tags = true;
    store.faults().repeat_copy("p/b/x");
    let before = store.faults().got_bytes();
    assert_eq!(mount.rename("a", "b"), Ok(()), "{:?}", told());
    assert_eq!(store.keys(), ["p/b/x", "p/b/y"]);
    assert_eq!(store.faults().got_bytes(), before);
}

#[test]
fn object_at_the_new_name_of_a_copy_that_was_asked_for_twice_is_the_copy_by_its_content() {
    let _one = alone();
    for (body, is_same) in [(OTHER, false), (OLD, true)] {
        let store = two_files();
        let mount = Mount::of(&store);
        let writer = Arc::clone(&store);
        let write = async move { writer.plant("p/b/x", body) };
        store.faults().before_key(Operation::Copy, "p/b/x", write);
        store.faults().repeat_copy("p/b/x");
        let wanted = if is_same { Ok(()) } else { Err(Reason::Broken) };
        assert_eq!(mount.rename("a", "b"), wanted);
        assert_eq!(store.content("p/b/x").unwrap(), body);
        assert_eq!(store.content("p/a/x").is_none(), is_same);
        assert!(!has_records(&store));
    }
}

#[test]
fn what_somebody_wrote_over_a_copy_whose_answer_was_lost_is_not_the_copy() {
    let _one = alone();
    for (body, is_same) in [(OTHER, false), (OLD, true)] {
        let store = two_files();
        let mount = Mount::of(&store);
        mount.files.finish_renames(CALM_TIMES);
        // The first PUT is the record's; the second one says that the mount tries again.
        let writer = Arc::clone(&store);
        let write = async move { writer.plant("p/b/x", body) };
        store.faults().before(Operation::Put, 1, write);
        store.faults().lose_answer_key(Operation::Copy, "p/b/x");
        assert_eq!(mount.rename("a", "b"), Err(Reason::Broken));
        wait_for("nobody tries again", || !has_records(&store));
        assert_eq!(store.content("p/b/x").unwrap(), body);
        assert_eq!(store.content("p/a/x").is_none(), is_same);
        assert_eq!(store.content("p/b/y").unwrap(), "another");
        let line = "`p/a/x` was not moved to `p/b/x`: somebody else wrote the new name";
        assert_eq!(told().join("\n").contains(line), !is_same);
        told().clear();
    }
}

#[test]
fn file_that_may_replace_nothing_gets_no_name_that_somebody_may_have_taken() {
    let _one = alone();
    let at = |name| Name { parent: ROOT, name };
    let store = Arc::new(MemoryStore::new());
    store.plant("p/f", OLD);
    let mount = Mount::of(&store);
    let writer = Arc::clone(&store);
    // As two do who want one lock.
    let write = async move { writer.plant("p/g", OLD) };
    store.faults().before(Operation::Copy, 0, write);
    store.faults().repeat_copy("p/g");
    let renamed = mount.files.rename(at("f"), at("g"), false);
    let renamed = mount.runtime.block_on(renamed);
    assert_eq!(renamed.unwrap_err().reason, Reason::Exists);
    assert_eq!(store.keys(), ["p/f", "p/g"]);
}
