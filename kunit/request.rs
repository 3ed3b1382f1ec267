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
                CalledProcedure, //
            },
            program::Program,
            rpc_message::Call, //
        },
        rows::check, //
    };

    fn echo(size: u32) -> CallRequest {
        CallRequest {
            procedure: CalledProcedure::Echo { size },
            ..CallRequest::null(Program::ECHO)
        }
    }

    /// The procedure of each call, and the lengths of its arguments and of its longest reply in
    /// octets. A reply with SUCCESS has 24 octets before its results, one with PROG_MISMATCH 32 in
    /// all (RFC 5531, sections 9 and 10.1).
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
            ("BIND", CallRequest::BIND, [0x2000_8797, 1, 2], 0, 32),
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
            "some of BIND",
            CallRequest::BIND.has_results(1, [first].into_iter()),
            false,
        )
    }
}
