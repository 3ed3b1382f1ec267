// SPDX-License-Identifier: GPL-2.0

//! Fuzzes the parser of RPC messages (RFC 5531, section 9), and the choice of the procedure.

#![no_main]
#![allow(dead_code, reason = "the module uses all of it, each fuzzer some")]

include!("../root.rs");

use checks::{
    program,
    rpc::{
        check,
        check_call,
        check_reply, //
    }, //
};
use pure::wire::rpc_message::{
    parse_call,
    parse_reply, //
};

fn fuzz(octets: &[u8]) {
    check(octets);
    if let Ok((call, arguments)) = parse_call(octets) {
        check_call(call, arguments);
        program::check(call.prog, call.vers, call.proc);
        program::check_opaque(arguments);
    }
    if let Ok((reply, results)) = parse_reply(octets) {
        check_reply(reply, results);
    }
}
