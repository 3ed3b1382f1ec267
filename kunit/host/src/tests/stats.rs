// SPDX-License-Identifier: GPL-2.0

//! The whole file `stats`, octet for octet.

use crate::{
    cases::{
        difference,
        stats::{
            stats,
            LIMITS,
            TEXT, //
        }, //
    },
    pure::text::stats::Limits, //
};

#[test]
fn file() {
    assert_eq!(difference(&[TEXT], |out| stats().write(out)), None);
}

#[test]
fn limits() {
    for (limits, text) in LIMITS {
        let limits = limits
            .iter()
            .fold(Limits::default(), |all, &limit| all.with(limit, true));
        assert_eq!(difference(&[text], |out| limits.write(out)), None);
    }
}
