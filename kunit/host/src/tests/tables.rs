// SPDX-License-Identifier: GPL-2.0

//! Whole files of `connections` and `listeners`, octet for octet.

use crate::{
    cases::{
        difference,
        tables::{
            connections,
            listeners,
            states,
            CONNECTIONS,
            LISTENERS,
            NO_CONNECTIONS,
            NO_LISTENERS,
            STATES, //
        }, //
    },
    protocol::tables::ConnectionColumns, //
};

#[test]
fn connections_files() {
    let no_connections = |out: &mut dyn std::fmt::Write| ConnectionColumns::new().header(out);
    assert_eq!(difference(&[NO_CONNECTIONS], no_connections), None);
    assert_eq!(difference(&[CONNECTIONS], connections), None);
}

#[test]
fn every_origin_role_and_state() {
    assert_eq!(difference(&[STATES], states), None);
}

#[test]
fn listeners_files() {
    assert_eq!(
        difference(&[NO_LISTENERS], |out| listeners(false, out)),
        None
    );
    assert_eq!(difference(&[LISTENERS], |out| listeners(true, out)), None);
}
