// SPDX-License-Identifier: GPL-2.0

//! The tracepoints `rpcrdma_cm:*`, which trace.h defines.

use kernel::prelude::*;

use crate::{
    base::address::RawAddress,
    bindings,
    pure::{
        text::exchange::{
            Exchange,
            ParsedPrivateData, //
        },
        wire::{
            negotiation::Role,
            private_data::{
                Parsed,
                PrivateData,
                Rejection, //
            }, //
        }, //
    }, //
};

/// The values that `show_outcome` of trace.h names.
#[repr(u8)]
enum ParseOutcome {
    Absent = 0,
    Present = 1,
    Version = 2,
    Truncated = 3,
}

/// Traces that this side sent `message` as its private data; any context.
pub(crate) fn message_sent(id: u64, role: Role, message: &PrivateData) {
    let octets = message.octets();

    // SAFETY: `octets` is valid during the call, which copies it.
    unsafe {
        bindings::trace_rpcrdma_cm_sent(id, role == Role::Server, octets.as_ptr(), message.len())
    };
}

/// Traces the result of parsing the private data of the peer; any context.
pub(crate) fn message_parsed(id: u64, role: Role, received: &ParsedPrivateData) {
    let (outcome, offset, version) = match received.parsed {
        Parsed::Absent => (ParseOutcome::Absent, 0, 0),
        Parsed::Present(found) => (ParseOutcome::Present, found.offset, found.version),
        Parsed::Rejected { offset, reason } => match reason {
            Rejection::Version(version) => (ParseOutcome::Version, offset, version),
            Rejection::Truncated { .. } => (ParseOutcome::Truncated, offset, 0),
        },
    };
    let offer = received.offer();

    // SAFETY: No requirement: the function takes integers only.
    unsafe {
        bindings::trace_rpcrdma_cm_parsed(
            id,
            role == Role::Server,
            outcome as u8,
            received.len,
            u8::try_from(offset).unwrap_or(u8::MAX),
            version,
            offer.send_size.octets(),
            offer.receive_size.octets(),
            offer.remote_invalidation,
        )
    };
}

/// Traces the result of combining both offers, if that and both addresses are known, and returns
/// whether they are; any context.
pub(crate) fn connection_negotiated(
    id: u64,
    role: Role,
    generation: u32,
    exchange: &Exchange,
) -> bool {
    let (Some(negotiated), Some(local), Some(remote)) =
        (exchange.negotiated(role), exchange.local, exchange.remote)
    else {
        return false;
    };
    let local = RawAddress::from(local);
    let remote = RawAddress::from(remote);

    // SAFETY: Both addresses are valid during the call, and as large as their families require.
    unsafe {
        bindings::trace_rpcrdma_cm_negotiated(
            id,
            role == Role::Server,
            generation,
            local.as_ptr(),
            remote.as_ptr(),
            negotiated.client_to_server_threshold,
            negotiated.server_to_client_threshold,
            negotiated.remote_invalidation,
        )
    };
    true
}

/// Traces the end of an established connection; any context. `error` is [`None`] if it was closed
/// on request.
pub(crate) fn connection_closed(id: u64, role: Role, generation: u32, error: Option<Error>) {
    // SAFETY: No requirement: the function takes integers only.
    unsafe {
        bindings::trace_rpcrdma_cm_closed(
            id,
            role == Role::Server,
            generation,
            error.map_or(0, Error::to_errno),
        )
    };
}
