// SPDX-License-Identifier: GPL-2.0

//! What the module serves (RFC 5531, sections 9 and 12.1).

use proptest::prelude::*;

use super::cases;
use crate::wire::{
    program::{
        serve,
        Procedure, //
    },
    rpc::{
        Call,
        Status, //
    },
};

/// The program, as its callers know it.
const ECHO_PROGRAM: u32 = 536_905_623;

fn served(prog: u32, vers: u32, proc: u32) -> Result<Procedure, Status> {
    serve(&Call {
        xid: prog,
        prog,
        vers,
        proc,
    })
}

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

/// RFC 5531, section 9: every half of each word, the other half being 0 or that of the program.
#[test]
fn section_9_every_half_word() {
    for half in 0..=0xffff_u32 {
        let words = [half, half << 16];
        for word in words
            .into_iter()
            .chain(words.map(|word| word ^ ECHO_PROGRAM))
        {
            for (prog, vers, proc) in [
                (word, 1, 0),
                (word, 1, 1),
                (ECHO_PROGRAM, word, 0),
                (ECHO_PROGRAM, word, 1),
                (ECHO_PROGRAM, 1, word),
                (100_003, 4, word),
            ] {
                assert_eq!(served(prog, vers, proc), expected(prog, vers, proc));
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(20_000))]

    #[test]
    fn section_9_any_words(
        prog in prop_oneof![Just(ECHO_PROGRAM), any::<u32>()],
        vers in prop_oneof![0..=2_u32, any::<u32>()],
        proc in prop_oneof![0..=2_u32, any::<u32>()],
    ) {
        prop_assert_eq!(served(prog, vers, proc), expected(prog, vers, proc));
    }
}
