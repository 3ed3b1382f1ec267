// SPDX-License-Identifier: GPL-2.0

//! The grammar of `call`.

use kernel::prelude::*;

#[kunit_tests(rpcrdma_cm_control_call)]
mod tests {
    use super::*;
    use crate::{
        control::tests::{
            check_refusal,
            NFS, //
        },
        pure::{
            text::grammar::{
                parse_call,
                CallCommand, //
            },
            wire::{
                call_request::{
                    CallRequest,
                    CalledProcedure, //
                },
                program::Program, //
            }, //
        },
        rows::check, //
    };

    #[test]
    fn call() -> Result {
        const NULL: CallRequest = CallRequest::null(NFS);
        const ECHO: CallRequest = CallRequest {
            procedure: CalledProcedure::Echo { size: 1024 },
            ..NULL
        };

        let null = |number, version| CallRequest::null(Program { number, version });
        let echo = |size| CallRequest {
            procedure: CalledProcedure::Echo { size },
            ..NULL
        };
        for (line, connection, request) in [
            ("connection 1 null", 1, NULL),
            (" connection\t0  null \n", 0, NULL),
            ("connection 18446744073709551615 null", u64::MAX, NULL),
            ("connection 1 null program=0", 1, null(0, 4)),
            ("connection 1 null program=4294967295", 1, null(u32::MAX, 4)),
            ("connection 1 null version=0", 1, null(100_003, 0)),
            (
                "connection 1 null version=4294967295",
                1,
                null(100_003, u32::MAX),
            ),
            ("connection 1 null chunks=0", 1, NULL),
            (
                "connection 1 null chunks=1 version=3 program=2",
                1,
                CallRequest {
                    chunks: true,
                    ..null(2, 3)
                },
            ),
            (
                "connection 1 null count=1000000 jobs=64",
                1,
                CallRequest {
                    count: 1_000_000,
                    jobs: 64,
                    ..NULL
                },
            ),
            ("connection 7 echo", 7, ECHO),
            ("\tconnection 7 \techo\t\n", 7, ECHO),
            ("connection 7 echo size=0", 7, echo(0)),
            ("connection 7 echo size=1", 7, echo(1)),
            ("connection 7 echo size=1048576", 7, echo(1_048_576)),
            ("connection 7 echo count=1 jobs=1 chunks=0", 7, ECHO),
            (
                "connection 7 echo count=3 chunks=1 size=5 jobs=2",
                7,
                CallRequest {
                    count: 3,
                    jobs: 2,
                    chunks: true,
                    ..echo(5)
                },
            ),
        ] {
            let call = CallCommand {
                connection,
                request,
            };
            check(line, parse_call(line.as_bytes()), Ok(call))?;
        }
        Ok(())
    }

    #[test]
    fn call_refused() -> Result {
        const CONNECTION: &str = "expected connection ID";
        const ID: &str = "expected a decimal ID";
        const WHAT: &str = "expected null or echo";
        const UNKNOWN: &str = "unknown key";
        const TWICE: &str = "given twice";
        const WORD: &str = "not 0 to 4294967295";
        const SIZE: &str = "not 0 to 1048576 octets";
        const COUNT: &str = "not 1 to 1000000 calls";
        const JOBS: &str = "not 1 to 64 calls at a time";
        const FLAG: &str = "not 0 or 1";

        for (line, word, reason) in [
            ("1 null", "1", CONNECTION),
            ("listener 1 null", "listener", CONNECTION),
            ("null connection 1", "null", CONNECTION),
            ("192.0.2.1:1 null", "192.0.2.1:1", CONNECTION),
            ("connection null", "null", ID),
            ("connection -1 null", "-1", ID),
            (
                "connection 18446744073709551616 echo",
                "18446744073709551616",
                ID,
            ),
            ("connection 1 all", "all", WHAT),
            ("connection 1 rpc", "rpc", WHAT),
            ("connection 1 Null", "Null", WHAT),
            ("connection 1 size=1", "size=1", WHAT),
            ("connection 1 null\n\n", "null\\x0a", WHAT),
            ("connection 1 null echo", "echo", "not key=value"),
            ("connection 1 echo 5", "5", "not key=value"),
            ("connection 1 echo size=", "size=", "no value"),
            // Keys that this call does not have.
            ("connection 1 null size=1", "size=1", UNKNOWN),
            ("connection 1 null null=1", "null=1", UNKNOWN),
            ("connection 1 null rpcvers=1", "rpcvers=1", UNKNOWN),
            ("connection 1 null credits=1", "credits=1", UNKNOWN),
            ("connection 1 echo program=1", "program=1", UNKNOWN),
            ("connection 1 echo version=1", "version=1", UNKNOWN),
            ("connection 1 echo send=1024", "send=1024", UNKNOWN),
            ("connection 1 echo timeout_ms=1", "timeout_ms=1", UNKNOWN),
            // Values that are out of range.
            (
                "connection 1 null program=4294967296",
                "program=4294967296",
                WORD,
            ),
            (
                "connection 1 null version=4294967296",
                "version=4294967296",
                WORD,
            ),
            ("connection 1 null version=x", "version=x", WORD),
            ("connection 1 null chunks=2", "chunks=2", FLAG),
            ("connection 1 echo chunks=yes", "chunks=yes", FLAG),
            ("connection 1 echo size=1048577", "size=1048577", SIZE),
            ("connection 1 echo size=4294967296", "size=4294967296", SIZE),
            ("connection 1 echo size=-1", "size=-1", SIZE),
            ("connection 1 echo size=1k", "size=1k", SIZE),
            ("connection 1 echo count=0", "count=0", COUNT),
            ("connection 1 echo count=1000001", "count=1000001", COUNT),
            (
                "connection 1 echo count=4294967297",
                "count=4294967297",
                COUNT,
            ),
            ("connection 1 null count=0", "count=0", COUNT),
            ("connection 1 null jobs=0", "jobs=0", JOBS),
            ("connection 1 echo jobs=65", "jobs=65", JOBS),
            // Words that are given twice.
            ("connection 1 echo jobs=1 jobs=2", "jobs=2", TWICE),
            ("connection 1 null program=1 program=1", "program=1", TWICE),
            ("connection 1 null version=1 version=2", "version=2", TWICE),
            ("connection 1 null chunks=0 chunks=1", "chunks=1", TWICE),
            ("connection 1 echo size=1 size=2", "size=2", TWICE),
            ("connection 1 echo count=1 count=2", "count=2", TWICE),
            ("connection 1 echo chunks=0 chunks=0", "chunks=0", TWICE),
            // The first word that does not fit is the one to name.
            ("connection x all", "x", ID),
            ("connection 1 echo size=x count=x", "size=x", SIZE),
            // There is no word to name.
            ("", "", CONNECTION),
            ("\n", "", CONNECTION),
            ("connection", "", ID),
            ("connection 1 \n", "", WHAT),
        ] {
            check_refusal(line, parse_call(line.as_bytes()), word, reason)?;
        }
        Ok(())
    }
}
