// SPDX-License-Identifier: GPL-2.0

//! Transport headers of any octets, of both versions (RFC 8166, section 4; the draft, section 4).

#![no_main]
#![allow(dead_code, reason = "the module uses all of it, each fuzzer some")]

#[path = "../../../host/src/checks.rs"]
mod checks;
#[path = "../../../../src/debugfs/control.rs"]
mod control;
#[path = "../entry.rs"]
mod entry;
#[path = "../../../../src/wire.rs"]
mod wire;

use checks::header::{
    check,
    check_answers, //
};

fn fuzz(octets: &[u8]) {
    check(octets);
    check_answers(octets);
}
