// SPDX-License-Identifier: GPL-2.0

//! Keeps the programs runnable with glibc 2.34.
//!
//! The standard library refers weakly to these functions of glibc 2.39, and does without them. But
//! the linker then records that version, and an older glibc refuses the program. A static program
//! is no way out: it could not open rdma-core's libraries.

fn main() {
    for function in ["pidfd_getpid", "pidfd_spawnp"] {
        println!("cargo:rustc-link-arg-bins=-Wl,--defsym={function}=0");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
