// SPDX-License-Identifier: GPL-2.0

//! The whole file `call`, octet for octet.

use crate::{
    cases::{
        difference,
        outcome::outcomes, //
    },
    pure::text::outcome::outcome, //
};

#[test]
fn file() {
    for (shown, text) in outcomes() {
        let found = difference(&[text], |out| outcome(7, &shown, out));
        assert_eq!(found, None);
    }
}
