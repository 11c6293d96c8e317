// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads from an ELF file what decides how it is linked: needed libraries, search paths, exported
//! and missing symbols and their versions, marks.
//!
//! Called by `linkage.rs`, `family.rs` and the doctor; the parsing itself is the `object` crate's,
//! which reads only the parts it needs. Source: ELF gABI, chapter "Dynamic Linking"; ld.so(8).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use object::read::elf::{Dyn, ElfFile64, FileHeader, SectionTable};
use object::read::{Object, ObjectSection, ObjectSymbol, ReadCache, SectionIndex, StringTable};
use object::{Endianness, elf};

/// The dynamic section of one file. All lists are in file order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// DT_NEEDED: sonames of the libraries it asks for.
    pub needed: Vec<OsString>,
    /// DT_RPATH, split at colons; empty when DT_RUNPATH is present, as the loader then ignores it.
    pub rpath: Vec<OsString>,
    /// DT_RUNPATH, split at colons.
    pub runpath: Vec<OsString>,
    /// DT_SONAME.
    pub soname: Option<OsString>,
}

type Parsed<'data> = ElfFile64<'data, Endianness, &'data ReadCache<File>>;

fn with_elf<T>(
    path: &Path,
    work: impl FnOnce(&Parsed<'_>, &ReadCache<File>) -> Result<T, object::Error>,
) -> io::Result<T> {
    let cache = ReadCache::new(File::open(path)?);
    let bad = |error: object::Error| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{}: {error}", path.display()),
        )
    };
    let parsed = ElfFile64::<Endianness, _>::parse(&cache).map_err(bad)?;
    work(&parsed, &cache).map_err(bad)
}

/// The sections of an open file, and what is needed to read them.
struct Sections<'data> {
    table: SectionTable<'data, elf::FileHeader64<Endianness>, &'data ReadCache<File>>,
    endian: Endianness,
    cache: &'data ReadCache<File>,
}

impl<'data> Sections<'data> {
    /// The names that a section refers to by their offsets.
    fn strings(
        &self,
        link: SectionIndex,
    ) -> Result<StringTable<'data, &'data ReadCache<File>>, object::Error> {
        self.table.strings(self.endian, self.cache, link)
    }
}

fn with_sections<T>(
    path: &Path,
    work: impl FnOnce(&Sections<'_>) -> Result<T, object::Error>,
) -> io::Result<T> {
    with_elf(path, |parsed, cache| {
        let endian = parsed.endian();
        let table = parsed.elf_header().sections(endian, cache)?;
        work(&Sections {
            table,
            endian,
            cache,
        })
    })
}

/// Whether `path` starts with the ELF magic number. A file that cannot be read is not ELF.
#[must_use]
pub fn is_elf(path: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0_u8; 4];
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut magic))
        .is_ok()
        && magic == elf::ELFMAG
}

/// The dynamic section; the default, empty one for static programs.
///
/// # Errors
/// When the file cannot be read or is no 64-bit ELF file.
pub fn dynamic(path: &Path) -> io::Result<Dynamic> {
    with_sections(path, |sections| {
        let endian = sections.endian;
        let Some((entries, link)) = sections.table.dynamic(endian, sections.cache)? else {
            return Ok(Dynamic::default());
        };
        let strings = sections.strings(link)?;
        let mut found = Dynamic::default();
        for entry in entries {
            let tag = entry.d_tag(endian);
            if ![
                elf::DT_NEEDED,
                elf::DT_RPATH,
                elf::DT_RUNPATH,
                elf::DT_SONAME,
            ]
            .map(u64::from)
            .contains(&tag)
            {
                continue;
            }
            let bytes = entry
                .val32(endian)
                .and_then(|offset| strings.get(offset).ok());
            let Some(bytes) = bytes else { continue };
            let text = OsStr::from_bytes(bytes);
            match u32::try_from(tag) {
                Ok(elf::DT_NEEDED) => found.needed.push(text.to_owned()),
                Ok(elf::DT_RPATH) => found.rpath = split(text),
                Ok(elf::DT_RUNPATH) => found.runpath = split(text),
                _ => found.soname = Some(text.to_owned()),
            }
        }
        if !found.runpath.is_empty() {
            found.rpath.clear();
        }
        Ok(found)
    })
}

fn split(list: &OsStr) -> Vec<OsString> {
    let entries = list.as_bytes().split(|&byte| byte == b':');
    let named = entries.filter(|entry| !entry.is_empty());
    named
        .map(|entry| OsStr::from_bytes(entry).to_owned())
        .collect()
}

/// The names of all dynamic symbols that the file defines for others.
///
/// # Errors
/// As `dynamic`.
pub fn exported_symbols(path: &Path) -> io::Result<Vec<String>> {
    dynamic_symbols(path, |symbol| {
        symbol.is_definition() || (symbol.is_global() && !symbol.is_undefined())
    })
}

/// The names of all dynamic symbols that the file expects from others.
///
/// # Errors
/// As `dynamic`.
pub fn missing_symbols(path: &Path) -> io::Result<Vec<String>> {
    dynamic_symbols(path, |symbol| symbol.is_undefined())
}

type Symbol<'data, 'file> =
    object::read::elf::ElfSymbol64<'data, 'file, Endianness, &'data ReadCache<File>>;

fn dynamic_symbols(
    path: &Path,
    wanted: impl Fn(&Symbol<'_, '_>) -> bool,
) -> io::Result<Vec<String>> {
    with_elf(path, |parsed, _| {
        parsed
            .dynamic_symbols()
            .filter(|symbol| wanted(symbol))
            .map(|symbol| symbol.name().map(str::to_owned))
            .filter(|name| !matches!(name, Ok(text) if text.is_empty()))
            .collect()
    })
}

/// The versions of a library's symbols that the file asks for (.gnu.version_r), by the library's
/// soname.
///
/// # Errors
/// As `dynamic`.
pub fn versions_needed(path: &Path, soname: &str) -> io::Result<Vec<String>> {
    with_sections(path, |sections| {
        let endian = sections.endian;
        let mut found = Vec::new();
        let needed = sections.table.gnu_verneed(endian, sections.cache)?;
        let Some((mut libraries, link)) = needed else {
            return Ok(found);
        };
        let strings = sections.strings(link)?;
        while let Some((library, mut versions)) = libraries.next()? {
            if library.file(endian, strings)? != soname.as_bytes() {
                continue;
            }
            while let Some(version) = versions.next()? {
                found.push(String::from_utf8_lossy(version.name(endian, strings)?).into_owned());
            }
        }
        Ok(found)
    })
}

/// The versions that the file gives to its symbols (.gnu.version_d).
///
/// # Errors
/// As `dynamic`.
pub fn versions_defined(path: &Path) -> io::Result<Vec<String>> {
    with_sections(path, |sections| {
        let endian = sections.endian;
        let mut found = Vec::new();
        let defined = sections.table.gnu_verdef(endian, sections.cache)?;
        let Some((mut versions, link)) = defined else {
            return Ok(found);
        };
        let strings = sections.strings(link)?;
        while let Some((_, mut names)) = versions.next()? {
            if let Some(name) = names.next()? {
                found.push(String::from_utf8_lossy(name.name(endian, strings)?).into_owned());
            }
        }
        Ok(found)
    })
}

/// The kind of machine that the file is for (e_machine).
///
/// # Errors
/// As `dynamic`.
pub fn machine(path: &Path) -> io::Result<u16> {
    with_elf(path, |parsed, _| {
        Ok(parsed.elf_header().e_machine(parsed.endian()))
    })
}

/// Whether the read-only data of the file contains `text`.
///
/// # Errors
/// As `dynamic`.
pub fn constants_contain(path: &Path, text: &str) -> io::Result<bool> {
    with_elf(path, |parsed, _| {
        let Some(section) = parsed.section_by_name(".rodata") else {
            return Ok(false);
        };
        Ok(memchr::memmem::find(section.data()?, text.as_bytes()).is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled::cc;

    #[test]
    fn needed_paths_and_symbols_are_read_back_as_linked() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().to_str().unwrap();
        let library = cc(
            folder.path(),
            "libmpi.so.40",
            "int MPI_Init(void){return 0;} static int hidden(void){return 1;} int \
             call(void){return hidden();}",
            &["-shared", "-fPIC", "-Wl,-soname,libmpi.so.40"],
        );
        let source = "extern int MPI_Init(void); const char mark[] = \"WEFT_MARK_FOR_TEST\"; int \
            main(void){return MPI_Init();}";
        let search = format!("-Wl,--enable-new-dtags,-rpath,{here}:/elsewhere");
        let program = cc(
            folder.path(),
            "program",
            source,
            &[library.to_str().unwrap(), &search],
        );

        let facts = dynamic(&program).unwrap();
        assert!(facts.needed.contains(&"libmpi.so.40".into()), "{facts:?}");
        assert_eq!(facts.runpath, [here, "/elsewhere"]);
        assert!(facts.rpath.is_empty());
        assert_eq!(
            dynamic(&library).unwrap().soname.as_deref(),
            Some(OsStr::new("libmpi.so.40"))
        );

        let exported = exported_symbols(&library).unwrap();
        assert!(
            exported.contains(&"MPI_Init".to_owned()) && !exported.contains(&"hidden".to_owned()),
            "{exported:?}"
        );
        assert!(
            missing_symbols(&program)
                .unwrap()
                .contains(&"MPI_Init".to_owned())
        );
        assert!(constants_contain(&program, "WEFT_MARK_FOR_TEST").unwrap());
        assert!(!constants_contain(&program, "WEFT_MARK_THAT_IS_ABSENT").unwrap());
    }

    #[test]
    fn old_rpath_is_told_apart_from_runpath() {
        let folder = tempfile::tempdir().unwrap();
        let program = cc(
            folder.path(),
            "old",
            "int main(void){return 0;}",
            &["-Wl,--disable-new-dtags,-rpath,/old/way"],
        );
        let facts = dynamic(&program).unwrap();
        assert_eq!(facts.rpath, ["/old/way"]);
        assert!(facts.runpath.is_empty());
    }

    #[test]
    fn a_file_that_is_no_elf_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        assert!(!is_elf(&script));
        assert!(is_elf(&std::env::current_exe().unwrap()));
        assert!(dynamic(&script).unwrap_err().to_string().contains("script"));
        assert!(!is_elf(folder.path()));
    }
}
