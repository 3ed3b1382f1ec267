// SPDX-License-Identifier: GPL-2.0

//! Compiles the C code that the parser is compared with, with the flags of a kernel that clang
//! builds.

use std::{
    env,
    process::Command, //
};

fn main() {
    let object = env::var("OUT_DIR").expect("no OUT_DIR") + "/checks.o";
    let status = Command::new("clang")
        .args([
            "-O2",
            "-Wall",
            "-Werror",
            "-c",
            "src/checks.c",
            "-o",
            &object,
        ])
        .status()
        .expect("no clang");
    assert!(status.success(), "clang: {status}");
    println!("cargo:rustc-link-arg-benches={object}");
    println!("cargo:rerun-if-changed=src/checks.c");
}
