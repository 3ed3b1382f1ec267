// SPDX-License-Identifier: GPL-2.0

//! `call`, the whole file, octet for octet; and the answers that it names.

use kernel::prelude::*;

#[kunit_tests(rpcrdma_cm_outcome)]
mod tests {
    use super::*;
    use crate::{
        cases::{
            difference,
            outcome::outcomes, //
        },
        octets::{
            Octets,
            X, //
        },
        pure::{
            text::outcome::{
                outcome,
                Answer, //
            },
            wire::{
                discarded::Fault,
                header::{
                    chunks::ChunkLists,
                    direction::Direction,
                    parse,
                    Body,
                    Header,
                    Version, //
                }, //
            }, //
        },
        rows::{
            check,
            check_display, //
        }, //
    };

    #[test]
    fn file() -> Result {
        for (shown, text) in outcomes() {
            let found = difference(&[text], |out| outcome(7, &shown, out));
            check(text, found, None)?;
        }
        Ok(())
    }

    /// RFC 8166, sections 4.1.2, 4.3.1 and 4.5: messages that a receiver discards because of their
    /// headers. With fewer than 28 octets they have no XID that can be trusted.
    #[test]
    fn section_4_5_headers() -> Result {
        for (words, len, text) in [
            ("", 0, "a message of 0 octets"),
            ("X", 1, "a message of 1 octet"),
            ("X 1 1 0 / 0 0 0", 27, "a message of 27 octets"),
            (
                "X 4d 1 0 / 0 0 0",
                28,
                "a message in version 77 of RPC-over-RDMA",
            ),
            (
                "X 1 1 0 / 2 0 0",
                28,
                "a malformed header (Read list at octet 16: illegal value 2)",
            ),
            (
                "X 1 1 0 / 0 0 0",
                28,
                "a malformed header (Payload stream at octet 28: truncated)",
            ),
        ] {
            let message = Octets::new(words)?;
            let octets = message.octets.get(..len).ok_or(EINVAL)?;
            let error = parse(octets).err().ok_or(EINVAL)?;
            check(text, error.xid(), Some(X).filter(|_| len >= 28))?;
            check_display(text, Fault::from(error), text)?;
        }
        Ok(())
    }

    /// RFC 8166, sections 4.2.1, 4.3.1, 4.3.3 and 4.5: messages with valid headers that are no
    /// reply to the call.
    #[test]
    fn section_4_5_discarded() -> Result {
        for (fault, text) in [
            (
                Fault::OtherVersion {
                    version: 2,
                    called: 1,
                },
                "a message in version 2, to a call in version 1",
            ),
            (
                Fault::Xid(0xabc),
                "a message with XID 0x00000abc, which no call has",
            ),
            (Fault::Call, "a call"),
            (Fault::Type, "a message that is neither a call nor a reply"),
            (Fault::ReadList, "a reply with a Read list"),
            (
                Fault::ReplyChunk,
                "a reply with a Reply chunk, where none was offered",
            ),
            (
                Fault::OtherReplyChunk,
                "a reply with another Reply chunk than the offered one",
            ),
        ] {
            check_display(text, fault, text)?;
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
