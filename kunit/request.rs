// SPDX-License-Identifier: GPL-2.0

//! Calls to be made: RFC 5531, section 9; RFC 4506, section 4.10.

use kernel::prelude::*;

#[kunit_tests(rpcrdma_cm_request)]
mod tests {
    use super::*;
    use crate::{
        pure::wire::{
            call_request::{
                CallRequest,
                CalledProcedure,
                Hex, //
            },
            program::Program,
            rpc_message::{
                Call,
                Credentials, //
            }, //
        },
        rows::check, //
    };

    const NONE: Credentials = Credentials::None;

    /// One call.
    fn request(procedure: CalledProcedure<'_>) -> CallRequest<'_> {
        CallRequest {
            procedure,
            ..CallRequest::null(Program::NFS)
        }
    }

    fn echo(size: u32) -> CallRequest<'static> {
        request(CalledProcedure::Echo { size })
    }

    fn any(digits: &str, credentials: Credentials, results: u32) -> CallRequest<'_> {
        request(CalledProcedure::Any {
            program: Program {
                number: 100_227,
                version: 3,
            },
            procedure: 21,
            credentials,
            arguments: Hex::parse(digits.as_bytes()).unwrap_or(Hex::EMPTY),
            results,
        })
    }

    #[test]
    fn hex() -> Result {
        for (digits, octets) in [
            ("", Some(&[][..])),
            ("00", Some(&[0])),
            (
                "0123456789abcdef",
                Some(b"\x01\x23\x45\x67\x89\xab\xcd\xef"),
            ),
            ("ABCDEFff", Some(b"\xab\xcd\xef\xff")),
            ("0", None),
            ("000", None),
            ("0g", None),
            ("/0", None),
            (":0", None),
            ("@0", None),
            ("`0", None),
            ("0x00", None),
            ("-1", None),
        ] {
            let hex = Hex::parse(digits.as_bytes());
            check(digits, hex.map(Hex::len), octets.map(<[u8]>::len))?;
            let (Some(hex), Some(octets)) = (hex, octets) else {
                continue;
            };
            for at in 0..=octets.len() + 1 {
                let rest = octets.get(at..).unwrap_or_default();
                check(digits, hex.octets(at).eq(rest.iter().copied()), true)?;
            }
        }
        Ok(())
    }

    /// The procedure of each call, and the lengths of its arguments and of its longest reply in
    /// octets. A reply with SUCCESS has 24 octets before its results if the verifier has no body,
    /// one with PROG_MISMATCH 32 in all (RFC 5531, sections 9 and 10.1), and each 400 more with
    /// AUTH_SYS (section 8.2 and appendix A).
    #[test]
    fn section_9_call() -> Result {
        for (row, request, [prog, vers, proc], arguments, longest) in [
            (
                "NULL",
                CallRequest::null(Program::NFS),
                [100_003, 4, 0],
                0,
                32,
            ),
            ("ECHO of none", echo(0), [0x2000_8797, 1, 1], 4, 32),
            ("ECHO of 1", echo(1), [0x2000_8797, 1, 1], 8, 32),
            ("ECHO of 4", echo(4), [0x2000_8797, 1, 1], 8, 32),
            (
                "ECHO of 1 MiB",
                echo(1_048_576),
                [0x2000_8797, 1, 1],
                1_048_580,
                1_048_604,
            ),
            (
                "another",
                any("0011223344", NONE, 100),
                [100_227, 3, 21],
                5,
                124,
            ),
            (
                "another, with AUTH_SYS",
                any("", Credentials::Unix, 0),
                [100_227, 3, 21],
                0,
                432,
            ),
            (
                "without arguments",
                CallRequest::any(Program::ECHO, 2),
                [0x2000_8797, 1, 2],
                0,
                32,
            ),
        ] {
            let call = Call {
                xid: 5,
                prog,
                vers,
                proc,
            };
            check(row, request.call(5), call)?;
            check(row, request.arguments(), arguments)?;
            check(row, request.longest_reply(), longest)?;
        }
        Ok(())
    }

    /// The arguments, in one piece and in two, and the comparison with the results.
    #[test]
    fn arguments() -> Result {
        let any = any("0102030405060708", NONE, 0);
        for at in [0, 4, 8] {
            let mut octets = [0xee; 12];
            let (before, behind) = octets.split_at_mut(at);
            any.fill(1, 0, before);
            any.fill(1, at, behind);
            check(at, octets, [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0])?;
        }
        let mut octets = [0xee; 4];
        CallRequest::null(Program::NFS).fill(1, 0, &mut octets);
        check("NULL", octets, [0; 4])?;

        // The argument of ECHO: a count, as many octets, and zeros up to a multiple of four.
        let mut sent = [0xee; 12];
        echo(6).fill(9, 0, &mut sent);
        check(
            "ECHO",
            (&sent[..4], &sent[10..]),
            (&[0, 0, 0, 6][..], &[0, 0][..]),
        )?;
        let (first, second) = sent.split_at(8);
        check(
            "the same",
            echo(6).has_results(9, [&sent[..]].into_iter()),
            true,
        )?;
        check(
            "in two",
            echo(6).has_results(9, [first, second].into_iter()),
            true,
        )?;
        check("less", echo(6).has_results(9, [first].into_iter()), false)?;
        check(
            "more",
            echo(2).has_results(9, [&sent[..]].into_iter()),
            false,
        )?;
        check(
            "of another",
            echo(6).has_results(8, [&sent[..]].into_iter()),
            false,
        )?;

        let null = CallRequest::null(Program::NFS);
        check("none of NULL", null.has_results(1, [].into_iter()), true)?;
        check(
            "some of NULL",
            null.has_results(1, [first].into_iter()),
            false,
        )?;
        check(
            "any of another",
            any.has_results(1, [first].into_iter()),
            true,
        )
    }
}
