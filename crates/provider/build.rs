// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Link options of libweft_fi.so.
//!
//! Rust's standard library keeps destructors of threads that must not outlive the code they point
//! to, and libfabric closes its providers at exit: `nodelete` keeps the library mapped. `now` turns
//! a missing symbol into a refusal to load.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,now");
}
