// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One opened MPI library: opens candidates until one is an MPI, finds out its binary interface and
//! looks symbols up.
//!
//! Called by session, which passes the candidates that locate found; calls abi to recognise the
//! interface. The library is never closed, because MPI libraries leave threads and exit handlers
//! behind. Source: dlopen(3).

use crate::abi;
use crate::error::{Error, Problem, Result};
use crate::locate::Candidate;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use weft_mpi_abi::{Abi, LONGEST_STRING_BYTES};

/// An MPI library in this process.
pub struct Library {
    handle: NonNull<c_void>,
    path: PathBuf,
    abi: Abi,
    version: String,
}

impl Library {
    /// Opens the first candidate that can be opened. Setup; runs the library's constructors.
    ///
    /// # Errors
    /// `NoLibrary` with the loader's reason for each candidate; `Unusable` when the first that
    /// opens is not an MPI this crate knows (it stays in the process, so trying another one after
    /// it would mix two MPIs).
    pub fn open(candidates: &[Candidate]) -> Result<Self> {
        let mut tried = String::new();
        for candidate in candidates {
            match open_one(&candidate.path) {
                Ok(handle) => return Self::recognise(handle, &candidate.path),
                Err(reason) => {
                    tried.push_str(&format!(
                        "  {} ({}): {reason}\n",
                        candidate.path.display(),
                        candidate.why
                    ));
                }
            }
        }
        Err(Problem::NoLibrary { tried }.into())
    }

    fn recognise(handle: NonNull<c_void>, asked: &Path) -> Result<Self> {
        let mut library = Self {
            handle,
            path: asked.to_owned(),
            abi: Abi::Mpich,
            version: String::new(),
        };
        // SAFETY: this is the standard's signature of that function.
        let version: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int =
            unsafe { library.function(c"MPI_Get_library_version") }?;
        library.path = path_of(version as *const c_void).unwrap_or(library.path);
        // SAFETY: the standard allows this call before MPI_Init, and read_string gives it the room
        // it asks for.
        library.version = read_string(|text, length| unsafe { version(text, length) });
        if let Some(reason) = other_interface(&library.path) {
            let path = library.path.display().to_string();
            return Err(Problem::Unusable { path, reason }.into());
        }
        let objects = library.address(c"ompi_mpi_comm_world").is_some();
        library.abi =
            abi::recognise(objects, &library.version).map_err(|reason| Problem::Unusable {
                path: library.path.display().to_string(),
                reason: reason.to_string(),
            })?;
        Ok(library)
    }

    /// The binary interface.
    pub fn abi(&self) -> Abi {
        self.abi
    }

    /// The file, as the loader found it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What `MPI_Get_library_version` says, on one line and without how the library was configured.
    pub fn version(&self) -> String {
        one_line(&self.version)
    }

    /// Address of a symbol; `None` when the library has none of that name. Setup.
    pub(crate) fn address(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle came from dlopen and is never closed; the name is a C string.
        NonNull::new(unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) })
    }

    /// A function, as the pointer type `F`: the one that a program linked to this library calls,
    /// which is a preloaded library's where one stands before it.
    ///
    /// # Safety
    /// `F` must be an `extern "C"` function pointer with the signature of the function of that
    /// name.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &CStr) -> Result<F> {
        const {
            assert!(
                size_of::<F>() == size_of::<*const c_void>(),
                "only for function pointers"
            )
        };
        let own = self.address(name).ok_or_else(|| self.lacks(name))?;
        // SAFETY: the name is a C string; dlsym looks through what is loaded.
        let first = NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) });
        let address = first.unwrap_or(own);
        // SAFETY: F is a function pointer of pointer size (asserted above), its signature is the
        // caller's promise.
        Ok(unsafe { std::mem::transmute_copy::<NonNull<c_void>, F>(&address) })
    }

    /// The first of two functions with the same signature that there is: the standard's name, then
    /// the one it had before.
    ///
    /// # Safety
    /// As [`Library::function`], for both names.
    pub(crate) unsafe fn function_or<F: Copy>(&self, name: &CStr, earlier: &CStr) -> Result<F> {
        let found = if self.address(name).is_none() && self.address(earlier).is_some() {
            earlier
        } else {
            name
        };
        // SAFETY: the caller's promise.
        unsafe { self.function(found) }
    }

    #[cold]
    fn lacks(&self, name: &CStr) -> Error {
        let reason = format!(
            "it has no function {} (the version is {})",
            name.to_string_lossy(),
            self.version()
        );
        Problem::Unusable {
            path: self.path.display().to_string(),
            reason,
        }
        .into()
    }
}

/// Why a file cannot be used although it calls itself one of the known MPIs: its name says that it
/// has another interface.
fn other_interface(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy();
    if name.starts_with("libmpi_abi.") {
        return Some(
            "it has the standard interface of MPI 5; name the same MPI's libmpi.so.12".to_owned(),
        );
    }
    let wide = name.contains("ilp64");
    wide.then(|| "its integers are 64 bits wide; name the same MPI's libmpi.so.12".to_owned())
}

/// Characters of a version line worth keeping (chosen).
const VERSION_LINE_LIMIT: usize = 160;

/// MPICH's version has a line for each of its facts; from "MPICH CC:" or "MPICH configure:" on they
/// describe the build.
fn one_line(version: &str) -> String {
    let is_about_the_build = |line: &&str| {
        [" configure:", " CC:"]
            .iter()
            .any(|fact| line.contains(fact))
    };
    let facts = version.lines().take_while(|line| !is_about_the_build(line));
    let words: Vec<&str> = facts.flat_map(str::split_whitespace).collect();
    words.join(" ").chars().take(VERSION_LINE_LIMIT).collect()
}

/// Calls an MPI function that fills a string, and returns the string without its zero and
/// surrounding white space.
pub(crate) fn read_string(fill: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> String {
    let mut text = vec![0u8; LONGEST_STRING_BYTES + 1];
    let mut length: c_int = 0;
    if fill(text.as_mut_ptr().cast(), &mut length) != 0 {
        return String::new();
    }
    let known = text
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(LONGEST_STRING_BYTES);
    String::from_utf8_lossy(&text[..known]).trim().to_owned()
}

fn open_one(path: &Path) -> std::result::Result<NonNull<c_void>, String> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| "its name holds a zero byte".to_owned())?;
    // RTLD_GLOBAL: the plug-ins of Open MPI 4 resolve their symbols against the library that loaded
    // them. SAFETY: the name is a C string; running an MPI library's constructors is what the
    // caller asks for.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    NonNull::new(handle).ok_or_else(|| {
        // SAFETY: dlerror returns null or a C string that stays valid until this thread's next dl
        // call.
        let text = unsafe { libc::dlerror() };
        if text.is_null() {
            return "the loader gave no reason".to_owned();
        }
        // SAFETY: not null, checked above; copied before any other dl call.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    })
}

/// The file an address was loaded from.
fn path_of(address: *const c_void) -> Option<PathBuf> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr accepts any address and writes only the structure.
    if unsafe { libc::dladdr(address, found.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: zeroed is a valid Dl_info, and dladdr succeeded.
    let found = unsafe { found.assume_init() };
    if found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dli_fname is the loader's own C string for a library that is never closed.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    std::fs::canonicalize(std::ffi::OsStr::from_bytes(name.to_bytes())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(path: &str) -> Candidate {
        Candidate {
            path: path.into(),
            why: "a test".into(),
        }
    }

    fn refusal(candidates: &[Candidate]) -> String {
        match Library::open(candidates) {
            Ok(library) => panic!("{} must not open", library.path().display()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_failed_candidate_is_reported_with_its_reason() {
        let text = refusal(&[
            candidate("/nonexistent/libmpi.so.1"),
            candidate("/nonexistent/libmpi.so.2"),
        ]);
        assert!(
            text.contains("/nonexistent/libmpi.so.1 (a test):"),
            "{text}"
        );
        assert!(
            text.contains("/nonexistent/libmpi.so.2 (a test):"),
            "{text}"
        );
    }

    #[test]
    fn library_that_is_no_mpi_is_named_with_what_it_lacks() {
        let text = refusal(&[candidate("libc.so.6")]);
        assert!(
            text.contains("libc.so.6") && text.contains("MPI_Get_library_version"),
            "{text}"
        );
    }

    #[test]
    fn library_with_another_interface_is_refused_by_its_name() {
        for name in ["libmpi_abi.so.1.0", "libmpi_ilp64.so.4.1"] {
            let reason = other_interface(Path::new("/opt/lib").join(name).as_path());
            assert!(reason.expect("refused").contains("libmpi.so.12"), "{name}");
        }
        assert_eq!(
            other_interface(Path::new("/opt/lib/libmpi.so.12.0.0")),
            None
        );
    }

    #[test]
    fn version_is_one_line_without_the_build() {
        let mpich = "MPICH Version:      4.0.2\nMPICH Device:\tch4:ucx\nMPICH \
            configure:\t--prefix=/usr\nMPICH CC:\tgcc\n";
        assert_eq!(
            one_line(mpich),
            "MPICH Version: 4.0.2 MPICH Device: ch4:ucx"
        );
        assert_eq!(
            one_line("Open MPI v5.0.11, package: x"),
            "Open MPI v5.0.11, package: x"
        );
    }

    #[test]
    fn string_ends_at_its_zero() {
        let text = read_string(|target, length| {
            for (index, byte) in b"MPICH 5\n\0junk".iter().enumerate() {
                // SAFETY: read_string gives room for thousands of bytes.
                unsafe { target.cast::<u8>().add(index).write(*byte) };
            }
            // SAFETY: read_string passes a valid pointer.
            unsafe { length.write(8) };
            0
        });
        assert_eq!(text, "MPICH 5");
    }
}
