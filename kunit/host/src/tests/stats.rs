// SPDX-License-Identifier: GPL-2.0

//! The whole file `stats`, octet for octet.

use crate::cases::{
    difference,
    stats::{
        set_of,
        stats,
        LIMITS,
        TEXT, //
    }, //
};

#[test]
fn file() {
    assert_eq!(difference(&[TEXT], |out| stats().write(out)), None);
}

#[test]
fn limits() {
    for (limits, text) in LIMITS {
        let written = difference(&[text], |out| set_of(limits).write(out));
        assert_eq!(written, None);
    }
}
