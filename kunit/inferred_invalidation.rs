// SPDX-License-Identifier: GPL-2.0

//! Whether a server invalidates remotely (RFC 8797, section 4.1), concluded from the counters of
//! the kernel's client.

use kernel::prelude::*;

#[kunit_tests(rpcrdma_cm_inferred_invalidation)]
mod tests {
    use super::*;
    use crate::{
        pure::wire::inferred_invalidation::{
            Counters,
            Invalidations, //
        },
        rows::check, //
    };

    /// Counters of a transport: sends, receives, segments of Read, Write and Reply chunks, local
    /// invalidations, failed marshals.
    fn counters(steady: bool, counts: [u64; 7]) -> Counters {
        let [sends, receives, reads, writes, replies, local, failed] = counts;
        Counters {
            steady,
            sends,
            receives,
            read_segments: reads,
            write_segments: writes,
            reply_segments: replies,
            local_invalidations: local,
            failed_marshals: failed,
        }
    }

    /// Takes readings one after the other: the steadiness, the counters, and the conclusion.
    fn follow(
        mut invalidations: Invalidations,
        readings: &[(&str, bool, [u64; 7], Option<bool>)],
    ) -> Result {
        for &(row, steady, counts, expected) in readings {
            invalidations.learn(&counters(steady, counts));
            check(row, invalidations.used(), expected)?;
        }
        Ok(())
    }

    /// All counters are 100 when the connection is established. Each row adds to them.
    #[test]
    fn of_one_reading() -> Result {
        let first = [100; 7];
        for (row, steady, counts, expected) in [
            ("nothing", true, [0; 7], None),
            ("no chunks", true, [9, 9, 0, 0, 0, 0, 0], None),
            ("a Read chunk", true, [9, 9, 1, 0, 0, 0, 0], Some(true)),
            ("a Write chunk", true, [9, 9, 0, 1, 0, 0, 0], Some(true)),
            ("a Reply chunk", true, [9, 9, 0, 0, 1, 0, 0], Some(true)),
            ("all locally", true, [9, 9, 1, 2, 3, 6, 0], Some(false)),
            ("one of them", true, [9, 9, 1, 0, 3, 3, 0], Some(true)),
            ("while one is sent", false, [9, 9, 1, 0, 0, 0, 0], None),
            ("all, while one is sent", false, [9, 9, 1, 0, 0, 1, 0], None),
            ("while one is awaited", true, [9, 8, 1, 0, 0, 0, 0], None),
            ("one that failed", true, [9, 9, 1, 0, 0, 0, 1], None),
            // A call that is not answered yet may have up to 32 segments registered.
            ("many, one sent", false, [99, 99, 32, 0, 0, 0, 0], None),
            (
                "more, one sent",
                false,
                [99, 99, 33, 0, 0, 0, 0],
                Some(true),
            ),
            ("many, one awaited", true, [99, 98, 64, 0, 0, 0, 0], None),
            (
                "more, one awaited",
                true,
                [99, 98, 65, 0, 0, 0, 0],
                Some(true),
            ),
            ("many, one failed", true, [99, 99, 64, 0, 0, 0, 1], None),
            (
                "more, one failed",
                true,
                [99, 99, 65, 0, 0, 0, 1],
                Some(true),
            ),
            // Half of the segments of Write chunks may be for padding, and stay registered.
            ("with padding", true, [9, 9, 0, 4, 0, 2, 0], None),
            ("more than padding", true, [9, 9, 0, 5, 0, 2, 0], Some(true)),
            ("a retransmission", true, [9, 8, 2, 0, 0, 1, 0], None),
        ] {
            let mut invalidations = Invalidations::begin(counters(true, first));
            let mut now = first;
            for (now, count) in now.iter_mut().zip(counts) {
                *now += count;
            }
            invalidations.learn(&counters(steady, now));
            check(row, invalidations.used(), expected)?;
        }
        Ok(())
    }

    /// After calls that could not be sent, the evidence begins again at the next quiet moment.
    #[test]
    fn of_failed_marshals() -> Result {
        follow(
            Invalidations::begin(counters(true, [0; 7])),
            &[
                ("some failed", true, [8, 8, 9, 0, 0, 0, 3], None),
                ("nothing else", true, [9, 9, 9, 0, 0, 0, 3], None),
                ("another while busy", false, [10, 9, 11, 0, 0, 0, 4], None),
                ("now it is quiet", true, [10, 10, 11, 0, 0, 0, 4], None),
                ("one remotely", true, [11, 11, 12, 0, 0, 0, 4], Some(true)),
            ],
        )
    }

    /// A failed call may hide that the server invalidated a segment, so "no" is not said
    /// afterwards.
    #[test]
    fn of_a_failed_marshal_and_one_remotely() -> Result {
        follow(
            Invalidations::begin(counters(true, [0; 7])),
            &[
                ("5 of 10 remotely", true, [5, 5, 10, 0, 0, 5, 1], None),
                ("one locally", true, [6, 6, 11, 0, 0, 6, 1], None),
                ("one remotely", true, [7, 7, 12, 0, 0, 6, 1], Some(true)),
            ],
        )
    }

    /// Calls that were lost with an earlier connection are not under way on this one.
    #[test]
    fn after_lost_calls() -> Result {
        // The client locks a transport that it connects, so the counters do not seem steady.
        let first = [100, 97, 50, 0, 0, 50, 0];
        let mut invalidations = Invalidations::begin(counters(false, first));
        invalidations.learn(&counters(true, [101, 98, 51, 0, 0, 51, 0]));
        check("no", invalidations.used(), Some(false))?;
        invalidations.learn(&counters(true, [102, 99, 52, 0, 0, 51, 0]));
        check("yes", invalidations.used(), Some(true))
    }

    /// While a call is being sent, the counters are no beginning: an invalidation may have been
    /// counted whose segment was not.
    #[test]
    fn of_an_unsteady_beginning() -> Result {
        follow(
            Invalidations::default(),
            &[
                ("a call", false, [500, 500, 1000, 0, 0, 1070, 0], None),
                ("quiet", true, [570, 570, 1100, 0, 0, 1100, 0], None),
                ("one", true, [571, 571, 1101, 0, 0, 1101, 0], Some(false)),
            ],
        )
    }

    /// If the counters at the beginning are not known, only a quiet moment can be followed by a
    /// "no".
    #[test]
    fn of_several_readings() -> Result {
        follow(
            Invalidations::default(),
            &[
                ("calls under way", true, [9, 8, 4, 0, 0, 0, 0], None),
                ("one being sent", false, [9, 9, 5, 0, 0, 1, 0], None),
                ("quiet", true, [9, 9, 5, 0, 0, 1, 0], None),
                ("one locally", true, [10, 10, 6, 0, 0, 2, 0], Some(false)),
                ("busy", false, [12, 10, 9, 0, 0, 2, 0], Some(false)),
                ("one remotely", true, [12, 12, 9, 0, 0, 4, 0], Some(true)),
                (
                    "the others not",
                    true,
                    [19, 19, 19, 0, 0, 15, 0],
                    Some(true),
                ),
            ],
        )
    }

    /// The client counts a reply to a callback as a call, to which there is no reply. So the
    /// connection never seems quiet again.
    #[test]
    fn after_a_callback() -> Result {
        follow(
            Invalidations::default(),
            &[
                ("the first reading", true, [9, 8, 100, 0, 0, 100, 0], None),
                ("all locally", true, [99, 98, 200, 0, 0, 200, 0], None),
                ("32 remotely", true, [199, 198, 300, 0, 0, 268, 0], None),
                ("64 remotely", true, [299, 298, 364, 0, 0, 300, 0], None),
                ("65", true, [300, 299, 365, 0, 0, 300, 0], Some(true)),
            ],
        )
    }
}
