// SPDX-License-Identifier: GPL-2.0

//! What the module serves (RFC 5531, sections 9 and 12.1).

use crate::wire::{
    program::{
        is_opaque,
        serve,
        Procedure, //
    },
    rpc::{
        Call,
        Status, //
    },
};

/// The program, as its callers know it.
pub(crate) const ECHO_PROGRAM: u32 = 536_905_623;

/// One rule after the other: `accept_stat` says the first that is broken.
fn expected(prog: u32, vers: u32, proc: u32) -> Result<Procedure, Status> {
    if proc == 0 {
        return Ok(Procedure::Null);
    }
    if prog != ECHO_PROGRAM {
        return Err(Status::ProgUnavail);
    }
    if vers != 1 {
        return Err(Status::ProgMismatch { low: 1, high: 1 });
    }
    if proc != 1 {
        return Err(Status::ProcUnavail);
    }
    Ok(Procedure::Echo)
}

/// RFC 5531, section 9: a call of any program, version and procedure.
pub(crate) fn check(prog: u32, vers: u32, proc: u32) {
    let served = serve(&Call {
        xid: prog,
        prog,
        vers,
        proc,
    });
    assert_eq!(served, expected(prog, vers, proc), "{prog} {vers} {proc}");
}

/// RFC 4506, section 4.10: of arguments, that they are an `opaque<>` and nothing else.
pub(crate) fn check_opaque(arguments: &[u8]) {
    let Some((&count, rest)) = arguments.split_first_chunk() else {
        return;
    };
    let count = u32::from_be_bytes(count);
    let units = u64::from(count).div_ceil(4);
    assert_eq!(
        is_opaque(count, arguments.len()),
        4 * units == rest.len() as u64,
        "{count} in {}",
        arguments.len()
    );
}
