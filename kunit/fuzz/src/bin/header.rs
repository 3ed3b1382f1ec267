// SPDX-License-Identifier: GPL-2.0

//! Fuzzes the parser of transport headers, with any octets (RFC 8166, section 4; the draft, section
//! 4).

#![no_main]
#![allow(dead_code, reason = "the module uses all of it, each fuzzer some")]

include!("../root.rs");

use checks::header::{
    check,
    check_answers, //
};

fn fuzz(octets: &[u8]) {
    check(octets);
    check_answers(octets);
}
