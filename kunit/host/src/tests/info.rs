// SPDX-License-Identifier: GPL-2.0

//! Whole files of `info`, octet for octet.

use crate::{
    cases::{
        difference,
        info::{
            each_combination,
            CASES, //
        }, //
    },
    pure::text::info::info, //
};

#[test]
fn files() {
    for case in CASES {
        let snapshot = case.snapshot();
        let differs = difference(case.text, |out| info(&snapshot, out));
        assert_eq!(differs, None, "{}", case.name);
    }
}

#[test]
fn every_origin_role_state_and_private_data() {
    let mut count = 0;
    let result: Result<(), String> = each_combination(|snapshot, pieces| {
        count += 1;
        match difference(pieces, |out| info(snapshot, out)) {
            None => Ok(()),
            Some(rest) => Err(format!("{pieces:?}, differs from {rest:?} on")),
        }
    });
    assert_eq!(result, Ok(()));
    assert_eq!(count, 3 * 2 * 6 * 6);
}
