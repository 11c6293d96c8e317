// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One task's work on items: POSIX calls on one path after the other. An error is a sentence for
//! the user.
//!
//! Called by phase, between two readings of the clock; calls tree for names. For an item only its
//! path is allocated.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use weft_ranks::say;

use nix::sys::stat::{Mode, SFlag, mknod};
use weft_mpi::Buffer;

use crate::ior::file::DIRECT;
use crate::mdtest::test::Test;
use crate::mdtest::tree::{self, Kind, Layout, Order, Step};
use weft_ranks::refusal::Failed;

/// A task with what it needs for its items.
pub struct Worker<'a> {
    test: &'a Test,
    layout: Layout,
    buffer: RefCell<Buffer>,
    wrong_files: Cell<u64>,
}

/// Items of one task in one step.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// Whose items.
    pub owner: usize,
    /// Of which kind.
    pub kind: Kind,
    /// Which iteration's trees.
    pub iteration: u32,
}

fn failed(what: &str, path: &str, error: &io::Error, test: &Test) -> Failed {
    let hint = match error.raw_os_error() {
        // ENOSPC, EDQUOT: files, or their contents
        Some(28 | 122) => "; make room (or inodes), or choose a smaller -n, -I or -w",
        // ENOENT
        Some(2) => "; create it first (-C, with the same -n -I -z -b -u and -d)",
        // EEXIST
        Some(17) => {
            "; an earlier run left it: remove it (-r with that run's options, or by hand), or \
             choose another -d"
        }
        // EACCES, EROFS
        Some(13 | 30) => "; choose a place in -d that this user may write",
        // ENOTEMPTY
        Some(39) => "; an earlier run with other options left something in it: remove it by hand",
        // EMFILE, ENFILE
        Some(23 | 24) => "; raise the limit of open files",
        // EINVAL
        Some(22) if test.moves.direct => {
            "; with --posix.odirect the file system must allow it, and -w and -e must be multiples \
             of its blocks (4k is safe)"
        }
        _ => "",
    };
    Failed::new(format!("ERROR: cannot {what} {path}: {error}{hint}"))
}

/// One file among all.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// The task whose file it is.
    pub owner: usize,
    /// Its number among that task's.
    pub item: u64,
}

/// One of the content's words; which depends on the file and on its place.
fn word(signature: u64, file: Name, place: usize) -> u64 {
    let file = ((file.owner as u64) << 40) ^ file.item;
    signature
        .wrapping_add(file.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .wrapping_add(place as u64)
}

/// Fills a file's content.
pub fn fill(bytes: &mut [u8], signature: u64, file: Name) {
    for (place, chunk) in bytes.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&word(signature, file, place).to_le_bytes()[..chunk.len()]);
    }
}

/// Where a file's content differs first from what was filled in, in bytes.
pub fn first_difference(bytes: &[u8], signature: u64, file: Name) -> Option<usize> {
    bytes.chunks(8).enumerate().find_map(|(place, chunk)| {
        let expected = word(signature, file, place).to_le_bytes();
        let differs = chunk
            .iter()
            .zip(expected)
            .position(|(found, one)| *found != one);
        differs.map(|within| place * 8 + within)
    })
}

impl<'a> Worker<'a> {
    /// Takes the memory. Setup.
    pub fn new(test: &'a Test, layout: Layout) -> Self {
        let room = test.moves.write_bytes.max(test.moves.read_bytes).max(1);
        Self {
            test,
            layout,
            buffer: RefCell::new(Buffer::new(room)),
            wrong_files: Cell::new(0),
        }
    }

    /// How many files did not hold what was written, since the last call.
    pub fn take_wrong_files(&self) -> u64 {
        self.wrong_files.take()
    }

    /// Makes the folders of a task's tree, or removes them; answers how many.
    ///
    /// # Errors
    /// Path, reason and what may help; the same for all below.
    pub fn tree(&self, owner: usize, iteration: u32, makes: bool) -> Result<u64, Failed> {
        let base = tree::test_folder(self.test, owner, iteration);
        let tree = tree::tree_name(&self.test.sharing, owner);
        for number in 0..self.layout.folders {
            // Parents have lower numbers than their children.
            let folder = if makes {
                number
            } else {
                self.layout.folders - 1 - number
            };
            let path = format!("{base}/{}", self.layout.folder_path(folder, &tree));
            let done = if makes {
                fs::create_dir(&path)
            } else {
                fs::remove_dir(&path)
            };
            let what = if makes {
                "make the folder"
            } else {
                "remove the folder"
            };
            done.map_err(|error| failed(what, &path, &error, self.test))?;
        }
        Ok(self.layout.folders)
    }

    /// Makes the folder that holds the trees, or removes it.
    ///
    /// # Errors
    /// As [`Worker::tree`].
    pub fn test_folder(&self, task: usize, iteration: u32, makes: bool) -> Result<(), Failed> {
        let path = tree::test_folder(self.test, task, iteration);
        let (done, what) = if makes {
            (fs::create_dir_all(&path), "make the folder")
        } else {
            (fs::remove_dir(&path), "remove the folder")
        };
        done.map_err(|error| failed(what, &path, &error, self.test))
    }

    /// Does one step with those items of a batch that have these places in an order, until
    /// `goes_on` says no, which is asked before each; answers how many.
    ///
    /// # Errors
    /// As [`Worker::tree`].
    pub fn work(
        &self,
        batch: Batch,
        step: Step,
        order: &Order,
        places: Range<u64>,
        goes_on: impl Fn() -> bool,
    ) -> Result<u64, Failed> {
        let base = tree::test_folder(self.test, batch.owner, batch.iteration);
        let tree = tree::tree_name(&self.test.sharing, batch.owner);
        let (mut path, mut folder_length, mut at) = (String::new(), 0, None);
        let mut done = 0;
        let items = places.end;
        for item in places.map(|before| order.item(before)) {
            if !goes_on() {
                break;
            }
            let folder = self.layout.folder_of(item);
            if at != Some(folder) {
                path = format!("{base}/{}/", self.layout.folder_path(folder, &tree));
                (folder_length, at) = (path.len(), Some(folder));
            }
            path.truncate(folder_length);
            path += &tree::item_name(batch.kind, batch.owner, item);
            let name = Name {
                owner: batch.owner,
                item,
            };
            match (step, batch.kind) {
                (Step::Rename, _) => self.rename(&path, batch, item, items)?,
                (_, Kind::Folder) => self.one_folder(&path, step)?,
                (_, Kind::File) => self.one_file(&path, step, name)?,
            }
            done += 1;
        }
        Ok(done)
    }

    fn one_folder(&self, path: &str, step: Step) -> Result<(), Failed> {
        let (done, what) = match step {
            Step::Create => (fs::create_dir(path), "make the directory"),
            Step::Stat => (fs::symlink_metadata(path).map(drop), "stat"),
            Step::Remove => (fs::remove_dir(path), "remove the directory"),
            Step::Read | Step::Rename => return Ok(()),
        };
        done.map_err(|error| failed(what, path, &error, self.test))
    }

    fn one_file(&self, path: &str, step: Step, file: Name) -> Result<(), Failed> {
        let (done, what) = match step {
            Step::Create => (self.create(path, file), "make the file"),
            Step::Stat => (fs::symlink_metadata(path).map(drop), "stat"),
            Step::Read => (self.read(path, file, self.test.moves.verify_read), "read"),
            Step::Remove => (fs::remove_file(path), "remove the file"),
            Step::Rename => return Ok(()),
        };
        done.map_err(|error| failed(what, path, &error, self.test))
    }

    fn create(&self, path: &str, file: Name) -> io::Result<()> {
        let moves = self.test.moves;
        if moves.by_mknod {
            mknod(path, SFlag::S_IFREG, Mode::from_bits_truncate(0o664), 0)?;
            if moves.write_bytes == 0 && !moves.sync_file {
                return Ok(());
            }
        }
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create(true)
            .truncate(!self.test.sharing.same_files)
            .mode(0o664);
        if moves.direct {
            options.custom_flags(DIRECT);
        }
        let mut target = options.open(path)?;
        if moves.write_bytes > 0 {
            let mut buffer = self.buffer.borrow_mut();
            let bytes = &mut buffer.bytes()[..moves.write_bytes];
            fill(bytes, moves.signature, file);
            target.write_all(bytes)?;
        }
        if moves.sync_file {
            target.sync_all()?;
        }
        close(target)?;
        if moves.verify_write {
            self.read(path, file, true)?;
        }
        Ok(())
    }

    fn read(&self, path: &str, file: Name, verifies: bool) -> io::Result<()> {
        let moves = self.test.moves;
        let mut options = OpenOptions::new();
        options.read(true);
        if moves.direct {
            options.custom_flags(DIRECT);
        }
        let mut source = options.open(path)?;
        let mut buffer = self.buffer.borrow_mut();
        let wanted = if moves.read_bytes > 0 {
            moves.read_bytes
        } else if verifies {
            moves.write_bytes
        } else {
            0
        };
        let bytes = &mut buffer.bytes()[..wanted];
        source.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::other(format!(
                "it is shorter than the {wanted} bytes to be read; create it with -w {wanted} or \
                 more, or read less (-e)"
            )),
            _ => error,
        })?;
        if verifies && let Some(at) = first_difference(bytes, moves.signature, file) {
            self.wrong_files.set(self.wrong_files.get() + 1);
            say!(
                "weft bench mdtest: WARNING: {path} differs from what was written, first at byte \
                 {at}"
            );
        }
        close(source)
    }

    /// Each directory takes the name of the one before, and the first, which stood aside meanwhile,
    /// that of the last: all names are as before.
    fn rename(&self, path: &str, batch: Batch, item: u64, items: u64) -> Result<(), Failed> {
        let tree = tree::tree_name(&self.test.sharing, batch.owner);
        let base = tree::test_folder(self.test, batch.owner, batch.iteration);
        let place = |item| {
            let folder = self.layout.folder_path(self.layout.folder_of(item), &tree);
            format!(
                "{base}/{folder}/{}",
                tree::item_name(batch.kind, batch.owner, item)
            )
        };
        let mut aside = place(0);
        // Writing to a String cannot fail.
        let _ = write!(aside, "-XX");
        let move_to = |from: &str, to: &str| {
            fs::rename(Path::new(from), Path::new(to))
                .map_err(|error| failed("rename the directory", from, &error, self.test))
        };
        match item {
            0 => move_to(path, &aside)?,
            _ => move_to(path, &place(item - 1))?,
        }
        if item + 1 == items {
            move_to(&aside, &place(items - 1))?;
        }
        Ok(())
    }
}

/// Closes a file and hears what the system says about it, which dropping it does not.
fn close(file: File) -> io::Result<()> {
    nix::unistd::close(file).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_depends_on_file_and_place_and_a_wrong_byte_is_found_where_it_is() {
        let name = |owner, item| Name { owner, item };
        let mut bytes = [0; 29];
        fill(&mut bytes, 5, name(3, 7));
        assert_eq!(first_difference(&bytes, 5, name(3, 7)), None);
        assert!(first_difference(&bytes, 5, name(3, 8)).is_some());
        assert!(first_difference(&bytes, 5, name(4, 7)).is_some());
        assert!(first_difference(&bytes, 6, name(3, 7)).is_some());
        bytes[27] ^= 1;
        assert_eq!(first_difference(&bytes, 5, name(3, 7)), Some(27));
    }

    #[test]
    fn renaming_all_leaves_the_names_as_they_were() {
        let room = tempfile::tempdir().unwrap();
        let mut test = Test {
            roots: vec![room.path().display().to_string()],
            ..Test::default()
        };
        test.shape.items = 6;
        test.shape.depth = 1;
        let layout = Layout::of(&test.shape).unwrap();
        let worker = Worker::new(&test, layout);
        let batch = Batch {
            owner: 0,
            kind: Kind::Folder,
            iteration: 0,
        };
        worker.test_folder(0, 0, true).unwrap();
        worker.tree(0, 0, true).unwrap();
        for step in [Step::Create, Step::Rename, Step::Stat, Step::Remove] {
            assert_eq!(
                worker
                    .work(batch, step, &Order::InTurn, 0..6, || true)
                    .unwrap(),
                6
            );
        }
        worker.tree(0, 0, false).unwrap();
        worker.test_folder(0, 0, false).unwrap();
        assert_eq!(fs::read_dir(room.path()).unwrap().count(), 0);
    }
}
