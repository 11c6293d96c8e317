// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The mappings of this process, each by an address in it. Linux 6.11 and later answer for one
//! address at a time; before, all of /proc/self/maps must be read, which takes forty times as long
//! in a rank. Asked by eligible. Sources: proc_pid_maps(5), PROCMAP_QUERY in linux/fs.h.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

use crate::spans::Span;

const MAPS: &str = "/proc/self/maps";

/// What the kernel is asked, and answers: struct procmap_query.
#[repr(C)]
#[derive(Default)]
struct Query {
    size_bytes: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    rights: u64,
    page_bytes: u64,
    offset_bytes: u64,
    inode: u64,
    device: [u32; 2],
    name_bytes: u32,
    build_id_bytes: u32,
    name_address: u64,
    build_id_address: u64,
}

/// PROCMAP_QUERY: `_IOWR('f', 17, struct procmap_query)`.
const PROCMAP_QUERY: libc::Ioctl = libc::_IOWR::<Query>(b'f' as u32, 17);

/// The rights, as the kernel answers them.
const READABLE: u64 = 1;
const WRITABLE: u64 = 2;
const EXECUTABLE: u64 = 4;
const SHARED: u64 = 8;

/// Longest name that the kernel is asked for. Chosen: those of memory, with at most 80 bytes that
/// the program chose, and of our file, are shorter.
const NAME_BYTES: usize = 128;

/// What kind of memory a mapping holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Plain private memory that malloc(3) or mmap(2) gave, or static data.
    Plain,
    /// Our file, mapped for writing.
    Ours,
    Other,
}

impl Kind {
    fn of(rights: u64, inode: u64, name: &str, file_inode: u64) -> Self {
        // Go's runtime calls the system by itself, and so do others that name their memory.
        let is_strange = name.contains("stack") || name.contains("Go:");
        let is_named_plain =
            name.is_empty() || name == "[heap]" || (name.starts_with("[anon:") && !is_strange);
        const PRIVATE: u64 = READABLE | WRITABLE;
        const COMMON: u64 = PRIVATE | SHARED;
        match rights {
            PRIVATE if inode == 0 && is_named_plain => Self::Plain,
            COMMON if inode == file_inode && name.contains("weft-heap") => Self::Ours,
            _ => Self::Other,
        }
    }
}

/// A mapping of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    pub span: Span,
    pub kind: Kind,
}

impl Mapping {
    /// That of a line of /proc/PID/maps.
    fn parse(line: &str, file_inode: u64) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let span = Span {
            start: number(start)?,
            end: number(end)?,
        };
        let rights = words.next()?.bytes().map(|letter| match letter {
            b'r' => READABLE,
            b'w' => WRITABLE,
            b'x' => EXECUTABLE,
            b's' => SHARED,
            _ => 0,
        });
        let inode = words.nth(2)?.parse().ok()?;
        let name = words.next().unwrap_or_default().trim();
        Some(Self {
            span,
            kind: Kind::of(rights.sum(), inode, name, file_inode),
        })
    }
}

/// Where the mappings are looked up.
#[derive(Debug)]
pub enum Mappings {
    /// The kernel answers for an address.
    Asked(File),
    /// What /proc/self/maps said.
    Read(String),
}

impl Mappings {
    /// Those of this process, of which the one at an address is looked up soon.
    ///
    /// # Errors
    /// Those of open(2) and read(2).
    pub fn of_self(address: usize) -> io::Result<Self> {
        let file = File::open(MAPS)?;
        match query(&file, address, 0) {
            Ok(_) => Ok(Self::Asked(file)),
            Err(_) => read(file),
        }
    }

    /// The mapping that holds an address; our file has that number.
    pub fn at(&self, address: usize, file_inode: u64) -> Option<Mapping> {
        match self {
            Self::Asked(file) => query(file, address, file_inode).ok().flatten(),
            Self::Read(text) => text
                .lines()
                .filter_map(|line| Mapping::parse(line, file_inode))
                .find(|mapping| mapping.span.start <= address && address < mapping.span.end),
        }
    }
}

/// All of them; names of files need not be UTF-8.
fn read(mut file: File) -> io::Result<Mappings> {
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(Mappings::Read(String::from_utf8_lossy(&text).into_owned()))
}

/// What the kernel says of an address; `None` if nothing is mapped there.
fn query(file: &File, address: usize, file_inode: u64) -> io::Result<Option<Mapping>> {
    let mut name = [0_u8; NAME_BYTES];
    let mut query = Query {
        size_bytes: size_of::<Query>() as u64,
        address: address as u64,
        name_bytes: NAME_BYTES as u32,
        name_address: name.as_mut_ptr() as u64,
        ..Query::default()
    };
    // SAFETY: both places are ours to write, and as long as is said.
    let asked = unsafe { libc::ioctl(file.as_raw_fd(), PROCMAP_QUERY, &raw mut query) };
    if asked != 0 {
        let error = io::Error::last_os_error();
        let is_empty = error.raw_os_error() == Some(libc::ENOENT);
        return if is_empty { Ok(None) } else { Err(error) };
    }
    let length_bytes = (query.name_bytes as usize).min(NAME_BYTES);
    let name = name[..length_bytes].split(|&byte| byte == 0).next();
    let name = String::from_utf8_lossy(name.unwrap_or_default());
    Ok(Some(Mapping {
        span: Span {
            start: query.start as usize,
            end: query.end as usize,
        },
        kind: Kind::of(query.rights, query.inode, &name, file_inode),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_of_each_mapping_what_its_text_says() {
        let asked = Mappings::of_self(0).expect("/proc");
        if matches!(asked, Mappings::Read(_)) {
            return println!("skip: this kernel has no PROCMAP_QUERY");
        }
        let own = vec![1_u8; 1 << 20];
        let text = read(File::open(MAPS).expect("/proc")).expect("/proc");
        let Mappings::Read(lines) = &text else {
            unreachable!("it was read");
        };
        // Other tests map and unmap meanwhile: most are as they were, and ours is.
        let starts = lines.lines().filter_map(|line| Mapping::parse(line, 1));
        let starts: Vec<usize> = starts.map(|mapping| mapping.span.start).collect();
        let is_alike = |&&at: &&usize| asked.at(at, 1) == text.at(at, 1);
        let alike = starts.iter().filter(is_alike).count();
        assert!(alike * 2 > starts.len(), "{alike} of {}", starts.len());
        let at = own.as_ptr() as usize + (1 << 19);
        assert_eq!(asked.at(at, 1).map(|found| found.kind), Some(Kind::Plain));
        assert_eq!(text.at(at, 1).map(|found| found.kind), Some(Kind::Plain));
    }

    #[test]
    fn nothing_is_mapped_at_the_first_page() {
        assert_eq!(Mappings::of_self(0).expect("/proc").at(0, 1), None);
    }
}
