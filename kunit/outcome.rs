// SPDX-License-Identifier: GPL-2.0

//! `call`, the whole file, octet for octet; and the answers that it names.

use kernel::prelude::*;

#[kunit_tests(rpcrdma_cm_outcome)]
mod tests {
    use super::*;
    use crate::{
        cases::{
            difference,
            outcome::{
                outcomes,
                RESULTS, //
            }, //
        },
        pure::{
            text::outcome::{
                outcome,
                Answer, //
            },
            wire::header::{
                chunks::ChunkLists,
                direction::Direction,
                Body,
                Header,
                Version, //
            }, //
        },
        rows::{
            check,
            check_display, //
        }, //
    };

    #[test]
    fn file() -> Result {
        for (shown, results, text) in outcomes() {
            let results = RESULTS.get(..results).unwrap_or_default();
            let found = difference(&[text], |out| outcome(7, &shown, results, out));
            check(text, found, None)?;
        }
        Ok(())
    }

    /// RFC 8166, sections 4.2.4 and 4.5; the draft, section 4.2.
    #[test]
    fn answers() -> Result {
        let lists = ChunkLists::EMPTY;
        for (body, text) in [
            (Body::Msg(Version::One, lists), "RDMA_MSG"),
            (
                Body::Nomsg(Version::Two(Direction::Reply), lists),
                "RDMA_NOMSG",
            ),
            (
                Body::ErrVers {
                    vers: 2,
                    low: 1,
                    high: 3,
                },
                "ERR_VERS, 1 to 3",
            ),
            (Body::ErrChunk, "ERR_CHUNK"),
            (Body::ErrBadHeader, "BAD_HEADER"),
            (Body::ErrInvalidOption, "INVALID_OPTION"),
        ] {
            let header = Header {
                xid: 1,
                credit: 1,
                body,
            };
            let answer = Answer::of(&header).ok_or(EINVAL)?;
            check_display(text, answer, text)?;
        }
        let option = Header {
            xid: 1,
            credit: 1,
            body: Body::Optional {
                direction: Direction::Reply,
                opttype: 1,
                optinfo: &[],
            },
        };
        check("an option", Answer::of(&option), None)
    }
}
