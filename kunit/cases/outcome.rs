// SPDX-License-Identifier: GPL-2.0

//! `call`.

use crate::pure::{
    text::{
        outcome::{
            Answer,
            CallOutcome,
            CommandOutcome, //
        },
        snapshot::{
            Cause,
            Detail, //
        }, //
    },
    wire::{
        discarded::Fault,
        rpc_message::Status, //
    }, //
};

/// Each outcome, and the file.
pub(crate) fn outcomes() -> [(CommandOutcome, &'static str); 5] {
    let one = CallOutcome {
        xid: 0x0070_000a,
        version: 1,
        answer: Some(Answer::Msg),
        status: Some(Status::Success),
        results: 4,
    };
    let failure = |text, detail| Some(Cause { text, detail });
    [
        (
            CommandOutcome {
                failure: failure("not connected", None),
                ..CommandOutcome::new()
            },
            "\
connection: 7
calls: 0
replies: 0
us: 0
replies_per_second: unknown
failure: not connected
",
        ),
        (
            CommandOutcome {
                calls: 64,
                replies: 64,
                us: 12_800,
                shown: Some(one),
                failure: None,
            },
            "\
connection: 7
calls: 64
replies: 64
us: 12800
replies_per_second: 5000
failure: none
xid: 0x0070000a
rpc_version: 1
transport: RDMA_MSG
rpc: SUCCESS
results_length: 4
",
        ),
        (
            CommandOutcome {
                calls: 2,
                replies: 1,
                us: 1,
                shown: Some(CallOutcome {
                    xid: u32::MAX,
                    version: 2,
                    answer: Some(Answer::Nomsg),
                    status: Some(Status::ProgMismatch { low: 1, high: 3 }),
                    results: 1_048_576,
                }),
                failure: failure(
                    "the responder answered",
                    Some(Detail::Reason(c"PROG_MISMATCH")),
                ),
            },
            "\
connection: 7
calls: 2
replies: 1
us: 1
replies_per_second: 1000000
failure: the responder answered: PROG_MISMATCH
xid: 0xffffffff
rpc_version: 2
transport: RDMA_NOMSG
rpc: PROG_MISMATCH, 1 to 3
results_length: 1048576
",
        ),
        (
            CommandOutcome {
                calls: 1,
                replies: 0,
                us: 5_000_000,
                shown: Some(CallOutcome {
                    answer: None,
                    status: None,
                    results: 0,
                    ..one
                }),
                failure: failure("no reply in time", None),
            },
            "\
connection: 7
calls: 1
replies: 0
us: 5000000
replies_per_second: 0
failure: no reply in time
xid: 0x0070000a
rpc_version: 1
transport: none
rpc: none
results_length: 0
",
        ),
        (
            CommandOutcome {
                failure: failure(
                    "the server answered with",
                    Some(Detail::Message(Fault::Short(0))),
                ),
                ..CommandOutcome::new()
            },
            "\
connection: 7
calls: 0
replies: 0
us: 0
replies_per_second: unknown
failure: the server answered with a message of 0 octets
",
        ),
    ]
}
