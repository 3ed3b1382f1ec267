// SPDX-License-Identifier: GPL-2.0

//! Fuzzes the parser of Private Data (RFC 8797, section 5.2), with any octets, and with a message
//! in the middle of them.

#![no_main]
#![allow(dead_code, reason = "the module uses all of it, each fuzzer some")]

include!("../root.rs");

use checks::{
    offer,
    private_data::{
        check,
        check_embedded,
        check_offer,
        check_raw,
        check_size, //
    }, //
};

fn fuzz(octets: &[u8]) {
    check(octets);

    let Some((&[r, send_size, receive_size, at], others)) = octets.split_first_chunk() else {
        return;
    };
    let r = r & 1 != 0;
    let (before, after) = others.split_at(others.len().min(at.into()));
    let offer = offer(send_size, receive_size, r);
    check_offer(offer);
    check_embedded(before, offer, after);
    check_raw(others, r);
    check_size(u32::from_be_bytes([0, send_size, receive_size, at]));
}
