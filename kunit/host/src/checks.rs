// SPDX-License-Identifier: GPL-2.0

//! Properties that hold for any octets. The tests of this crate and the fuzzers of `kunit/fuzz`
//! check them.

use std::fmt;

// Test crates include this file with `#[path]`, so that the files below need paths of their own.
#[path = "checks/control.rs"]
pub(crate) mod control;
#[path = "checks/control_oracle.rs"]
pub(crate) mod control_oracle;
#[path = "checks/header.rs"]
pub(crate) mod header;
#[path = "checks/header_oracle.rs"]
pub(crate) mod header_oracle;
#[path = "checks/oracle.rs"]
pub(crate) mod oracle;
#[path = "checks/private_data.rs"]
pub(crate) mod private_data;
#[path = "checks/program.rs"]
pub(crate) mod program;
#[path = "checks/rpc.rs"]
pub(crate) mod rpc;

use crate::pure::wire::{
    private_data::{
        Offer,
        Size, //
    },
    xdr::NoRoom, //
};

/// An offer with the values of the Size fields (RFC 8797, section 4.2).
pub(crate) fn offer(send_size: u8, receive_size: u8, remote_invalidation: bool) -> Offer {
    Offer {
        send_size: Size::from_encoded(send_size),
        receive_size: Size::from_encoded(receive_size),
        remote_invalidation,
    }
}

/// Returns the octets that `build` writes. Calls it with an empty buffer first, to learn the
/// length.
pub(crate) fn built(build: impl Fn(&mut [u8]) -> Result<usize, NoRoom>) -> Vec<u8> {
    let NoRoom { needed } = build(&mut []).unwrap_err();
    let mut octets = vec![0; needed];
    assert_eq!(build(&mut octets), Ok(needed));
    octets
}

/// Returns the text of a value, and checks that it is one line of limited length.
pub(crate) fn shown(what: impl fmt::Display) -> String {
    let shown = what.to_string();
    assert!(shown.len() <= 64 * 4 + 128, "{shown}");
    assert!(
        shown.bytes().all(|octet| matches!(octet, b' '..=b'~')),
        "{shown}"
    );
    shown
}
