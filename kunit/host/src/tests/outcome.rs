// SPDX-License-Identifier: GPL-2.0

//! The whole file `call`, octet for octet.

use crate::{
    cases::{
        difference,
        outcome::{
            outcomes,
            RESULTS, //
        }, //
    },
    pure::text::outcome::outcome, //
};

#[test]
fn file() {
    for (shown, results, text) in outcomes() {
        let results = &RESULTS[..results];
        let found = difference(&[text], |out| outcome(7, &shown, results, out));
        assert_eq!(found, None);
    }
}

/// The file is bounded: of longer results it has the first 4096 octets.
#[test]
fn bounded() {
    for (length, shown) in [(0, 0), (1, 1), (4095, 4095), (4096, 4096), (5000, 4096)] {
        let (done, ..) = outcomes()[1];
        let mut text = String::new();
        outcome(u64::MAX, &done, &vec![0xab; length], &mut text).unwrap();
        assert_eq!(text.matches("ab").count(), shown, "{length}");
        assert!(text.len() < 512 + 2 * 4096);
    }
}
