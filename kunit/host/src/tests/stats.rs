// SPDX-License-Identifier: GPL-2.0

//! The whole file `stats`, octet for octet.

use crate::cases::{
    difference,
    stats::{
        stats,
        TEXT, //
    }, //
};

#[test]
fn file() {
    assert_eq!(difference(&[TEXT], |out| stats().write(out)), None);
}
