// SPDX-License-Identifier: GPL-2.0

//! The choice of the procedure (RFC 5531, sections 9 and 12.1), and the arguments of ECHO.

use crate::pure::wire::{
    program::{
        fill_opaque,
        is_opaque,
        serve,
        ServedProcedure, //
    },
    rpc_message::{
        Call,
        Status, //
    }, //
};

/// The number of the module's program, written in decimal.
pub(crate) const ECHO_PROGRAM: u32 = 536_905_623;

/// The number of the program of NFS's callbacks, written in decimal.
pub(crate) const CALLBACK_PROGRAM: u32 = 1_073_741_824;

/// Returns the expected result: `accept_stat` names the first rule that the call breaks.
fn expected(prog: u32, vers: u32, proc: u32) -> Result<ServedProcedure, Status> {
    let versions: &[u32] = match prog {
        ECHO_PROGRAM | CALLBACK_PROGRAM => &[1],
        100_003 => &[3, 4],
        _ => return Err(Status::ProgUnavail),
    };
    if !versions.contains(&vers) {
        let (low, high) = (versions[0], versions[versions.len() - 1]);
        return Err(Status::ProgMismatch { low, high });
    }
    match (prog, proc) {
        (_, 0) => Ok(ServedProcedure::Null),
        (ECHO_PROGRAM, 1) => Ok(ServedProcedure::Echo),
        (ECHO_PROGRAM, 2) => Ok(ServedProcedure::Bind),
        _ => Err(Status::ProcUnavail),
    }
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

/// RFC 4506, section 4.10: whether arguments are one `opaque<>` and nothing else.
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

/// RFC 4506, section 4.10: the arguments for a call of ECHO, in one piece and in two.
pub(crate) fn check_fill(size: u32, seed: u32) {
    let filled = |at: usize, len: usize, seed: u32| {
        let mut octets = vec![0xee; len];
        fill_opaque(size, seed, at, &mut octets);
        octets
    };
    let end = 4 + size as usize;
    let len = end.next_multiple_of(4) + 8;
    let all = filled(0, len, seed);

    assert_eq!(all[..4], size.to_be_bytes());
    assert!(all[end..].iter().all(|&octet| octet == 0), "{size}");
    for at in (0..=len).step_by(4) {
        let pieces = [filled(0, at, seed), filled(at, len - at, seed)];
        assert_eq!(pieces.concat(), all, "{size} in two at {at}");
    }

    // No whole word of data occurs twice, nor at the same place with another seed.
    let data: Vec<_> = all[4..end].chunks_exact(4).collect();
    let other = filled(0, len, seed.wrapping_add(1));
    for (at, word) in data.iter().enumerate() {
        assert!(!data[..at].contains(word), "{size}: {word:02x?} twice");
        assert_ne!(**word, other[4 * at + 4..4 * at + 8], "{size}");
    }
}
