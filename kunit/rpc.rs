// SPDX-License-Identifier: GPL-2.0

//! RPC messages (RFC 5531), in the notation of [`crate::octets`].

use kernel::prelude::*;

#[kunit_tests(rpcrdma_cm_rpc)]
mod tests {
    use super::*;
    use crate::{
        octets::{
            check_built,
            Octets,
            X, //
        },
        pure::wire::rpc_message::{
            is_reply,
            parse_call,
            parse_reply,
            xid,
            Call,
            Reply,
            RpcError,
            Status,
            CALL_HEAD_MAX,
            REPLY_HEAD_MAX, //
        },
        rows::{
            check,
            check_display, //
        }, //
    };

    /// The hash of no octets by MurmurHash3_x86_32 is the finalizer of the seed. These are the
    /// values of the reference implementation.
    #[test]
    fn section_9_xid() -> Result {
        for (number, expected) in [(0, 0), (1, 0x514e_28b7), (u32::MAX, 0x81f1_6f39)] {
            check(number, xid(number), expected)?;
        }
        Ok(())
    }

    /// RFC 5531, section 9: `call_body`; section 10.1: AUTH_NONE.
    #[test]
    fn section_9_call() -> Result {
        const MAX: u32 = u32::MAX;

        for (words, prog, vers, proc) in [
            ("X 0 2 186a3 3 0 / 0 0 / 0 0 |", 100_003, 3, 0),
            ("X 0 2 186a3 4 0 / 0 0 / 0 0 | 1 2", 100_003, 4, 0),
            (
                "X 0 2 ffffffff ffffffff ffffffff / 0 0 / 0 0 | 1",
                MAX,
                MAX,
                MAX,
            ),
        ] {
            let octets = Octets::new(words)?;
            let (head, arguments) = octets.all().split_at(octets.head);
            let call = Call {
                xid: X,
                prog,
                vers,
                proc,
            };
            check(words, parse_call(octets.all()), Ok((call, arguments)))?;
            check(words, call.len(), head.len())?;
            check_built(words, head, |buffer| call.build(buffer))?;
        }
        Ok(())
    }

    /// RFC 5531, section 8.2: `opaque_auth`. The responder knows AUTH_NONE and AUTH_SYS.
    #[test]
    fn section_8_2_authentication() -> Result {
        for words in [
            // AUTH_SYS: stamp, machinename, uid, gid, gids.
            "X 0 2 186a3 3 7 / 1 18 0 4 61626364 0 0 0 / 0 0 | 8",
            "X 0 2 186a3 3 7 / 1 20 1 5 61626364 65000000 2 3 1 4 / 0 5 1020304 5000000 | 8",
            "X 0 2 186a3 3 7 / 0 0 / 0 4 0 | 8",
        ] {
            let octets = Octets::new(words)?;
            let call = Call {
                xid: X,
                prog: 100_003,
                vers: 3,
                proc: 7,
            };
            let parsed = parse_call(octets.all());
            check(words, parsed, Ok((call, &[0, 0, 0, 8][..])))?;
        }

        let bad_credentials = Status::AuthError(1);
        let bad_verifier = Status::AuthError(3);
        let mismatch = Status::RpcMismatch { low: 2, high: 2 };
        // "opaque body<400>"
        for (words, status) in [
            // RPCSEC_GSS (RFC 2203), and a flavor that is not assigned.
            ("X 0 2 186a3 3 0 / 6 1 1000000 / 0 0", bad_credentials),
            ("X 0 2 186a3 3 7 / ffffffff 0 / 0 0 | 8", bad_credentials),
            // RFC 5531, appendix A: authsys_parms without its end, with more behind it, with a name
            // of 256 octets, and with 17 gids.
            ("X 0 2 186a3 3 7 / 1 0 / 0 0 | 8", bad_credentials),
            (
                "X 0 2 186a3 3 7 / 1 18 0 0 0 0 0 0 / 0 0 | 8",
                bad_credentials,
            ),
            (
                "X 0 2 186a3 3 7 / 1 14 0 100 0 0 0 / 0 0 | 8",
                bad_credentials,
            ),
            (
                "X 0 2 186a3 3 7 / 1 58 0 0 0 0 11 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 / 0 0 | 8",
                bad_credentials,
            ),
            // RFC 5531, appendix A: with AUTH_SYS, the verifier is AUTH_NONE.
            (
                "X 0 2 186a3 3 7 / 1 14 0 0 0 0 0 / 1 14 0 0 0 0 0 | 8",
                bad_verifier,
            ),
            ("X 0 2 186a3 3 7 / 1 191", bad_credentials),
            ("X 0 2 186a3 3 7 / 1 ffffffff", bad_credentials),
            ("X 0 2 186a3 3 7 / 0 0 / 0 191", bad_verifier),
            // Section 9: "rpcvers MUST be equal to 2".
            ("X 0 3", mismatch),
            ("X 0 1 186a3 3 0 / 0 0 / 0 0", mismatch),
        ] {
            let octets = Octets::new(words)?;
            let error = RpcError::Refused(Reply { xid: X, status });
            check(words, parse_call(octets.all()), Err(error))?;
        }

        let mut longest = [0; 40 + 400];
        let words = "X 0 2 186a3 3 7 / 0 190";
        longest[..32].copy_from_slice(Octets::new(words)?.all());
        let rest = parse_call(&longest).map(|(_, rest)| rest.len());
        check("400", rest, Ok(0))?;
        check("399", parse_call(&longest[..439]), Err(RpcError::Truncated))
    }

    /// RFC 5531, section 9: `msg_type` alone decides.
    #[test]
    fn section_9_is_reply() -> Result {
        for (octets, expected) in [
            (&[0, 0, 0, 9, 0, 0, 0, 1][..], true),
            (&[0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0], true),
            (&[0, 0, 0, 9, 0, 0, 0, 0], false),
            (&[0, 0, 0, 9, 0, 0, 0, 2], false),
            (&[0, 0, 0, 9, 1, 0, 0, 1], false),
            (&[0, 0, 0, 9, 0, 0, 0], false),
            (&[], false),
        ] {
            check(octets.len(), is_reply(octets), expected)?;
        }
        Ok(())
    }

    /// RFC 5531, section 9: `accepted_reply` and `rejected_reply`.
    #[test]
    fn section_9_reply() -> Result {
        for (words, status, shown) in [
            ("X 1 0 / 0 0 / 0 | 5", Status::Success, "SUCCESS"),
            ("X 1 0 / 0 0 / 1", Status::ProgUnavail, "PROG_UNAVAIL"),
            (
                "X 1 0 / 0 0 / 2 3 4",
                Status::ProgMismatch { low: 3, high: 4 },
                "PROG_MISMATCH, 3 to 4",
            ),
            ("X 1 0 / 0 0 / 3", Status::ProcUnavail, "PROC_UNAVAIL"),
            ("X 1 0 / 0 0 / 4", Status::GarbageArgs, "GARBAGE_ARGS"),
            ("X 1 0 / 0 0 / 5", Status::SystemErr, "SYSTEM_ERR"),
            (
                "X 1 1 / 0 2 3",
                Status::RpcMismatch { low: 2, high: 3 },
                "RPC_MISMATCH, 2 to 3",
            ),
            ("X 1 1 / 1 5", Status::AuthError(5), "AUTH_ERROR 5"),
        ] {
            let octets = Octets::new(words)?;
            let (head, results) = octets.all().split_at(octets.head);
            let reply = Reply { xid: X, status };
            check(words, parse_reply(octets.all()), Ok((reply, results)))?;
            check_built(words, head, |buffer| reply.build(buffer))?;
            check_display(words, status, shown)?;
        }

        let octets = Octets::new("X 1 0 / 6 3 1020300 / 0")?;
        let status = Status::Success;
        let reply = Reply { xid: X, status };
        check("verifier", parse_reply(octets.all()), Ok((reply, &[][..])))?;

        // Five words, the longest verifier (section 8.2), and the three words of PROG_MISMATCH.
        check("longest reply", REPLY_HEAD_MAX, 4 * 5 + 400 + 4 * 3)?;
        // Six words, and the longest credentials and verifier.
        check("longest call", CALL_HEAD_MAX, 4 * 6 + 2 * (4 * 2 + 400))
    }

    /// RFC 5531, section 9: octets that are no call and no reply.
    #[test]
    fn section_9_values() -> Result {
        for words in ["X 1", "X 2 2", "X ffffffff"] {
            let octets = Octets::new(words)?;
            check(words, parse_call(octets.all()), Err(RpcError::Illegal))?;
        }
        for words in [
            "X 0 0 / 0 0 / 0",
            "X 2 0 / 0 0 / 0",
            "X 1 2 / 0 0 / 0",
            "X 1 0 / 0 0 / 6",
            "X 1 0 / 6 4 0 / 6",
            "X 1 0 / 6 191 0 / 0",
            "X 1 1 / 2",
        ] {
            let octets = Octets::new(words)?;
            check(words, parse_reply(octets.all()), Err(RpcError::Illegal))?;
        }
        Ok(())
    }

    /// RFC 5531, section 9: a header that is cut at any octet is not valid.
    #[test]
    fn section_9_every_truncation() -> Result {
        let words = "X 0 2 186a3 3 7 / 1 14 0 0 0 0 0 / 0 5 1020304 5000000";
        let octets = Octets::new(words)?;
        for length in 0..octets.len {
            let parsed = parse_call(&octets.all()[..length]);
            check(length, parsed, Err(RpcError::Truncated))?;
        }
        for words in [
            "X 1 0 / 6 3 1020300 / 2 3 4",
            "X 1 1 / 0 2 2",
            "X 1 1 / 1 1",
        ] {
            let octets = Octets::new(words)?;
            for length in 0..octets.len {
                let parsed = parse_reply(&octets.all()[..length]);
                check(words, parsed, Err(RpcError::Truncated))?;
            }
        }
        Ok(())
    }
}
