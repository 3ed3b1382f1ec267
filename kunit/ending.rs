// SPDX-License-Identifier: GPL-2.0

//! The first cause of the end of a connection, by the order of the evidence.

use kernel::prelude::*;

#[kunit_tests(rpcrdma_cm_ending)]
mod tests {
    use super::*;
    use crate::{
        pure::wire::ending::{
            Ending,
            Evidence, //
        },
        rows::check, //
    };

    const ROCE: bool = false;
    const IWARP: bool = true;

    /// Each row is the end of a connection, as the drivers and the CM report it.
    #[test]
    fn first_cause() -> Result {
        use Evidence::*;

        const UNKNOWN: Ending = Ending::Unknown { peer: false };
        const OPEN: Ending = Ending::Unknown { peer: true };

        let rows: &[(&str, bool, &[Evidence], Ending)] = &[
            ("nothing", ROCE, &[], Ending::None),
            ("DREQ", ROCE, &[Disconnected], Ending::Peer),
            (
                "DREQ, and the owner answers",
                ROCE,
                &[Disconnected, Disconnect, Consequence],
                Ending::Peer,
            ),
            (
                "FIN: siw flushes before the CM reports",
                IWARP,
                &[Consequence, Disconnected],
                Ending::Peer,
            ),
            (
                "FIN: the owner disconnects because of the flush",
                IWARP,
                &[Consequence, Disconnect, Disconnected],
                UNKNOWN,
            ),
            (
                "the owner disconnects",
                ROCE,
                &[Disconnect, Consequence, Disconnected],
                Ending::ThisEnd,
            ),
            (
                "an error, and both ends disconnect",
                ROCE,
                &[Error, Consequence, Disconnect, Disconnected],
                Ending::Error,
            ),
            (
                "an event of the queue pair after the flush",
                ROCE,
                &[Consequence, Error],
                Ending::Error,
            ),
            (
                "an error after the flush and the disconnect",
                IWARP,
                &[Consequence, Disconnect, Error],
                Ending::Error,
            ),
            (
                "DREQ, while an operation fails",
                ROCE,
                &[Disconnected, Error],
                Ending::Peer,
            ),
            (
                "the device is removed",
                ROCE,
                &[Gone, Disconnect],
                Ending::Gone,
            ),
            (
                "the device flushes, and is removed",
                ROCE,
                &[Consequence, Gone],
                Ending::Gone,
            ),
            (
                "a flush before a DREQ",
                ROCE,
                &[Consequence, Disconnected],
                UNKNOWN,
            ),
            (
                "REJ: the CM makes the queue pair fail before it reports that",
                ROCE,
                &[Consequence, Rejected],
                Ending::Peer,
            ),
            (
                "an operation takes too long",
                IWARP,
                &[GivenUp, Consequence, Disconnected],
                Ending::ThisEnd,
            ),
            (
                "FIN: a call cannot be answered",
                IWARP,
                &[Consequence, GivenUp, Disconnected],
                Ending::Peer,
            ),
            ("flushes alone", IWARP, &[Consequence, Consequence], OPEN),
        ];
        for &(row, iwarp, evidence, expected) in rows {
            let ending = evidence
                .iter()
                .fold(Ending::None, |ending, &one| ending.learn(one, iwarp));
            check(row, ending, expected)?;
            let known = expected != Ending::None && expected != UNKNOWN;
            check(row, ending.is_known(), known && expected != OPEN)?;
        }
        Ok(())
    }
}
