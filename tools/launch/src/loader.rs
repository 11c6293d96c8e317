// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the dynamic loader would find a library: RPATH, LD_LIBRARY_PATH, RUNPATH, the cache, the
//! standard folders.
//!
//! Called by `linkage.rs`, which walks the needed libraries. Source: ld.so(8) for the order;
//! glibc's `dl-cache.h` for the cache's format.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::elf::Dynamic;

/// What of this machine the search depends on.
#[derive(Debug, Clone, Default)]
pub struct Loader {
    library_path: Vec<PathBuf>,
    cache: HashMap<OsString, PathBuf>,
}

impl Loader {
    /// The loader of this machine, with `library_path` as LD_LIBRARY_PATH.
    #[must_use]
    pub fn of_this_machine(library_path: Option<&OsStr>) -> Self {
        let cache = std::fs::read("/etc/ld.so.cache")
            .map(|bytes| parse_cache(&bytes))
            .unwrap_or_default();
        Self {
            cache,
            ..Self::with_library_path(library_path)
        }
    }

    /// A loader without a cache.
    #[must_use]
    pub fn with_library_path(library_path: Option<&OsStr>) -> Self {
        let folders = library_path.map(|list| {
            std::env::split_paths(list)
                .filter(|folder| !folder.as_os_str().is_empty())
                .collect()
        });
        Self {
            library_path: folders.unwrap_or_default(),
            cache: HashMap::new(),
        }
    }

    /// The file that `soname` resolves to when the file at `origin` with the dynamic section
    /// `facts` asks for it.
    ///
    /// `inherited` is the RPATH of the files that loaded `origin`, which counts only while `origin`
    /// has no RUNPATH.
    #[must_use]
    pub fn resolve(
        &self,
        soname: &OsStr,
        origin: &Path,
        facts: &Dynamic,
        inherited: &[PathBuf],
    ) -> Option<PathBuf> {
        if soname.as_bytes().contains(&b'/') {
            let path = expand(soname, origin);
            return path.exists().then_some(path);
        }
        let old: Vec<PathBuf> = if facts.runpath.is_empty() {
            facts
                .rpath
                .iter()
                .map(|entry| expand(entry, origin))
                .chain(inherited.iter().cloned())
                .collect()
        } else {
            Vec::new()
        };
        let new: Vec<PathBuf> = facts
            .runpath
            .iter()
            .map(|entry| expand(entry, origin))
            .collect();
        let named = old
            .iter()
            .chain(&self.library_path)
            .chain(&new)
            .map(|folder| folder.join(soname));
        let standard = standard_folders()
            .into_iter()
            .map(|folder| folder.join(soname));
        named
            .chain(self.cache.get(soname).cloned())
            .chain(standard)
            .find(|path| path.exists())
    }

    /// The file that the cache or the standard folders give for `soname`.
    #[must_use]
    pub fn system_library(&self, soname: &str) -> Option<PathBuf> {
        let standard = standard_folders()
            .into_iter()
            .map(|folder| folder.join(soname));
        self.cache
            .get(OsStr::new(soname))
            .cloned()
            .into_iter()
            .chain(standard)
            .find(|path| path.exists())
    }
}

/// Folders that hold this machine's libraries; Debian's multiarch name comes before lib64.
#[must_use]
pub fn standard_folders() -> Vec<PathBuf> {
    let multiarch = format!("{}-linux-gnu", std::env::consts::ARCH);
    ["/lib", "/usr/lib"]
        .iter()
        .map(|root| Path::new(root).join(&multiarch))
        .chain(
            ["/lib64", "/usr/lib64", "/lib", "/usr/lib"]
                .iter()
                .map(PathBuf::from),
        )
        .collect()
}

/// Replaces $ORIGIN and $LIB in one entry of a search path.
pub(crate) fn expand(entry: &OsStr, origin: &Path) -> PathBuf {
    let folder = origin.parent().unwrap_or(Path::new("/"));
    let folder = folder.as_os_str().as_bytes();
    let lib = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    let lib = if Path::new("/usr").join(&lib).exists() {
        lib
    } else {
        "lib64".to_owned()
    };
    let mut text = entry.as_bytes().to_vec();
    for (name, value) in [
        ("${ORIGIN}", folder),
        ("$ORIGIN", folder),
        ("${LIB}", lib.as_bytes()),
        ("$LIB", lib.as_bytes()),
    ] {
        text = replaced(&text, name.as_bytes(), value);
    }
    PathBuf::from(OsString::from_vec(text))
}

/// The text with `value` in the place of each `name`.
fn replaced(text: &[u8], name: &[u8], value: &[u8]) -> Vec<u8> {
    let (mut made, mut done) = (Vec::new(), 0);
    for at in memchr::memmem::find_iter(text, name) {
        made.extend_from_slice(&text[done..at]);
        made.extend_from_slice(value);
        done = at + name.len();
    }
    made.extend_from_slice(&text[done..]);
    made
}

const CACHE_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// Size of `struct cache_file_new`: magic, two counts, flags and padding, extension offset, three
/// reserved words. Specified by glibc.
const CACHE_HEADER_BYTES: usize = 48;
/// Size of `struct file_entry_new`: flags, key, value, OS version, hardware capabilities. Specified
/// by glibc.
const CACHE_ENTRY_BYTES: usize = 24;
/// The kinds of library of this machine in the entry's flags (FLAG_ELF_LIBC6 with the 64-bit ABI of
/// the processor). Specified by glibc.
const CACHE_FLAGS_64_BIT: [u32; 3] = [0x0303, 0x0a03, 0x1003];

/// Reads the part of ld.so.cache that glibc 2.2 and later use. What does not parse is left out: the
/// standard folders still apply.
fn parse_cache(bytes: &[u8]) -> HashMap<OsString, PathBuf> {
    let Some(start) = memchr::memmem::find(bytes, CACHE_MAGIC) else {
        return HashMap::new();
    };
    let cache = &bytes[start..];
    let word = |at: usize| {
        cache
            .get(at..at + 4)
            .and_then(|four| four.try_into().ok())
            .map(u32::from_le_bytes)
    };
    let text = |at: u32| {
        let tail = cache.get(at as usize..)?;
        let end = memchr::memchr(0, tail)?;
        Some(OsStr::from_bytes(&tail[..end]))
    };
    let count = word(CACHE_MAGIC.len()).unwrap_or(0) as usize;
    let mut found = HashMap::new();
    for index in 0..count {
        let at = CACHE_HEADER_BYTES + index * CACHE_ENTRY_BYTES;
        let (Some(flags), Some(key), Some(value)) = (word(at), word(at + 4), word(at + 8)) else {
            break;
        };
        if !CACHE_FLAGS_64_BIT.contains(&flags) {
            continue;
        }
        if let (Some(name), Some(path)) = (text(key), text(value)) {
            found
                .entry(name.to_owned())
                .or_insert_with(|| PathBuf::from(path));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache_with(entries: &[(u32, &str, &str)]) -> Vec<u8> {
        let mut strings = Vec::new();
        let strings_at = CACHE_HEADER_BYTES + entries.len() * CACHE_ENTRY_BYTES;
        let mut table = Vec::new();
        for (flags, name, path) in entries {
            let mut place = |text: &str| {
                let at = u32::try_from(strings_at + strings.len()).unwrap();
                strings.extend_from_slice(text.as_bytes());
                strings.push(0);
                at
            };
            let (name_at, path_at) = (place(name), place(path));
            for word in [*flags, name_at, path_at, 0, 0, 0] {
                table.extend_from_slice(&word.to_le_bytes());
            }
        }
        let mut bytes = CACHE_MAGIC.to_vec();
        bytes.extend_from_slice(&u32::try_from(entries.len()).unwrap().to_le_bytes());
        bytes.resize(CACHE_HEADER_BYTES, 0);
        bytes.extend(table);
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn cache_gives_the_first_64_bit_entry_of_a_name() {
        let bytes = cache_with(&[
            (0x0003, "libm.so.6", "/lib32/libm.so.6"),
            (0x0303, "libm.so.6", "/a/libm.so.6"),
            (0x0303, "libm.so.6", "/b"),
        ]);
        let name = OsStr::new("libm.so.6");
        assert_eq!(parse_cache(&bytes)[name], Path::new("/a/libm.so.6"));
        let mut behind_old_format = b"ld.so-1.7.0 and its table....".to_vec();
        behind_old_format.extend(bytes);
        assert_eq!(parse_cache(&behind_old_format).len(), 1);
    }

    #[test]
    fn a_truncated_cache_gives_what_is_whole() {
        let bytes = cache_with(&[(0x0303, "liba.so", "/a"), (0x0303, "libb.so", "/b")]);
        for length in 0..bytes.len() {
            assert!(parse_cache(&bytes[..length]).len() <= 2);
        }
    }

    #[test]
    fn rpath_wins_over_library_path_and_runpath_loses_to_it() {
        let folder = tempfile::tempdir().unwrap();
        // The bytes of a folder need not be UTF-8.
        let folder = folder.path().join(OsStr::from_bytes(b"caf\xe9"));
        let (one, two) = (folder.join("one"), folder.join("two"));
        for place in [&one, &two] {
            std::fs::create_dir_all(place).unwrap();
            std::fs::write(place.join("libx.so"), "").unwrap();
        }
        let origin = folder.join("program");
        let libx = OsStr::new("libx.so");
        let loader = Loader::with_library_path(Some(two.as_os_str()));
        let old = Dynamic {
            rpath: vec!["$ORIGIN/one".into()],
            ..Dynamic::default()
        };
        assert_eq!(
            loader.resolve(libx, &origin, &old, &[]).unwrap(),
            one.join("libx.so")
        );
        let new = Dynamic {
            runpath: vec!["${ORIGIN}/one".into()],
            ..Dynamic::default()
        };
        assert_eq!(
            loader.resolve(libx, &origin, &new, &[]).unwrap(),
            two.join("libx.so")
        );
        let none = Loader::with_library_path(None);
        assert_eq!(
            none.resolve(
                libx,
                &origin,
                &Dynamic::default(),
                std::slice::from_ref(&one)
            )
            .unwrap(),
            one.join("libx.so")
        );
        assert_eq!(
            none.resolve(libx, &origin, &new, &[two]).unwrap(),
            one.join("libx.so")
        );
        assert_eq!(none.resolve(libx, &origin, &Dynamic::default(), &[]), None);
    }
}
