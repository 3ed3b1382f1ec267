// SPDX-License-Identifier: GPL-2.0

//! The text of `call`: the outcome of the calls of the last command.

use core::fmt::{
    self,
    Display,
    Write, //
};

use super::{
    format::Or,
    snapshot::Cause, //
};
use crate::pure::wire::{
    header::{
        Body,
        Header, //
    },
    rpc_message::Status, //
};

/// The answer of a responder to a call, by the transport header (RFC 8166, section 4.2.4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Answer {
    Msg,
    Nomsg,
    ErrVers { low: u32, high: u32 },
    ErrChunk,
    ErrBadHeader,
    ErrInvalidOption,
}

impl Answer {
    /// Returns the answer in a message with this header, or [`None`] if the message is no answer.
    pub(crate) fn of(header: &Header<'_>) -> Option<Self> {
        Some(match header.body {
            Body::Msg(..) => Self::Msg,
            Body::Nomsg(..) => Self::Nomsg,
            Body::ErrVers { low, high, .. } => Self::ErrVers { low, high },
            Body::ErrChunk => Self::ErrChunk,
            Body::ErrBadHeader => Self::ErrBadHeader,
            Body::ErrInvalidOption => Self::ErrInvalidOption,
            Body::Optional { .. } => return None,
        })
    }
}

impl Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Msg => f.write_str("RDMA_MSG"),
            Self::Nomsg => f.write_str("RDMA_NOMSG"),
            Self::ErrVers { low, high } => write!(f, "ERR_VERS, {low} to {high}"),
            Self::ErrChunk => f.write_str("ERR_CHUNK"),
            Self::ErrBadHeader => f.write_str("BAD_HEADER"),
            Self::ErrInvalidOption => f.write_str("INVALID_OPTION"),
        }
    }
}

/// One call and its reply.
#[derive(Clone, Copy)]
pub(crate) struct CallOutcome {
    pub(crate) xid: u32,
    /// The version of RPC-over-RDMA of the call.
    pub(crate) version: u32,
    /// [`None`] without a reply.
    pub(crate) answer: Option<Answer>,
    /// The status of the RPC reply; [`None`] without a reply, or if it cannot be decoded.
    pub(crate) status: Option<Status>,
    /// The length of the results, in octets.
    pub(crate) results: usize,
}

/// The calls of one command.
#[derive(Clone, Copy)]
pub(crate) struct CommandOutcome {
    /// The number of calls that were sent.
    pub(crate) calls: u32,
    /// The number of these calls whose replies had results.
    pub(crate) replies: u32,
    /// The time from the first call to the end of the last one, in microseconds.
    pub(crate) us: i64,
    /// The first call that failed, or the call that ended last if none failed. [`None`] if that
    /// call was not sent.
    pub(crate) shown: Option<CallOutcome>,
    /// Why the first failed call failed.
    pub(crate) failure: Option<Cause>,
}

impl CommandOutcome {
    /// Creates an outcome without calls.
    pub(crate) const fn new() -> Self {
        Self {
            calls: 0,
            replies: 0,
            us: 0,
            shown: None,
            failure: None,
        }
    }

    /// Returns the number of calls with results per second, or [`None`] if no time has passed.
    fn per_second(&self) -> Option<u64> {
        let us = u64::try_from(self.us).ok().filter(|us| *us > 0)?;
        (u64::from(self.replies) * 1_000_000).checked_div(us)
    }
}

/// Writes the text of `call` for calls on the connection with the number `connection`.
pub(crate) fn outcome(
    connection: u64,
    outcome: &CommandOutcome,
    out: &mut dyn Write,
) -> fmt::Result {
    const NONE: &str = "none";

    let CommandOutcome {
        calls,
        replies,
        us,
        shown,
        failure,
    } = outcome;
    writeln!(out, "connection: {connection}")?;
    writeln!(out, "calls: {calls}")?;
    writeln!(out, "replies: {replies}")?;
    writeln!(out, "us: {us}")?;
    let per_second = Or(outcome.per_second(), "unknown");
    writeln!(out, "replies_per_second: {per_second}")?;
    writeln!(out, "failure: {}", Or(*failure, NONE))?;
    let Some(shown) = shown else {
        return Ok(());
    };
    writeln!(out, "xid: 0x{:08x}", shown.xid)?;
    writeln!(out, "rpc_version: {}", shown.version)?;
    writeln!(out, "transport: {}", Or(shown.answer, NONE))?;
    writeln!(out, "rpc: {}", Or(shown.status, NONE))?;
    writeln!(out, "results_length: {}", shown.results)
}
