// SPDX-License-Identifier: GPL-2.0

//! The choice of the procedure (RFC 5531, sections 9 and 12.1), and the arguments of ECHO.

use proptest::prelude::*;

use super::cases;
use crate::checks::program::{
    check,
    check_fill,
    CALLBACK_PROGRAM,
    ECHO_PROGRAM, //
};

/// RFC 5531, section 9: every half of each word, the other half being 0 or that of the program.
#[test]
fn section_9_every_half_word() {
    for half in 0..=0xffff_u32 {
        let words = [half, half << 16];
        for word in words
            .into_iter()
            .chain(words.map(|word| word ^ ECHO_PROGRAM))
            .chain(words.map(|word| word ^ CALLBACK_PROGRAM))
        {
            for (prog, vers, proc) in [
                (word, 1, 0),
                (word, 1, 1),
                (ECHO_PROGRAM, word, 0),
                (ECHO_PROGRAM, word, 1),
                (ECHO_PROGRAM, 1, word),
                (CALLBACK_PROGRAM, word, 1),
                (CALLBACK_PROGRAM, 1, word),
                (100_003, 4, word),
                (100_003, word, 0),
            ] {
                check(prog, vers, proc);
            }
        }
    }
}

/// RFC 4506, section 4.10: the arguments of ECHO, of every length up to some words.
#[test]
fn section_4_10_every_length() {
    for size in 0..=100 {
        for seed in [0, 1, 0x1234_5678, u32::MAX] {
            check_fill(size, seed);
        }
    }
}

proptest! {
    #![proptest_config(cases(20_000))]

    #[test]
    fn section_9_any_words(
        prog in prop_oneof![
            Just(ECHO_PROGRAM),
            Just(CALLBACK_PROGRAM),
            Just(100_003),
            any::<u32>(),
        ],
        vers in prop_oneof![0..=5_u32, any::<u32>()],
        proc in prop_oneof![0..=2_u32, any::<u32>()],
    ) {
        check(prog, vers, proc);
    }
}
