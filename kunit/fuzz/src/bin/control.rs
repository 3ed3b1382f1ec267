// SPDX-License-Identifier: GPL-2.0

//! Fuzzes lines of the control files, each in a write of its own, and all of them in one write.

#![no_main]
#![allow(dead_code, reason = "the module uses all of it, each fuzzer some")]

include!("../root.rs");

use checks::control::check;

fn fuzz(octets: &[u8]) {
    let mut lines = octets.split_inclusive(|octet| *octet == b'\n');
    let first = lines.next().unwrap_or_default();
    check(first);
    lines.clone().for_each(check);
    // Several lines in one write are refused.
    if lines.next().is_some() {
        check(octets);
    }
}
