// SPDX-License-Identifier: GPL-2.0

//! The functions of trace.c, and two of the kernel.

use kernel::{
    bindings::sockaddr,
    ffi::c_int, //
};

unsafe extern "C" {
    pub(crate) fn trace_rpcrdma_cm_sent(id: u64, server: bool, octets: *const u8, len: u8);
    pub(crate) fn trace_rpcrdma_cm_parsed(
        id: u64,
        server: bool,
        outcome: u8,
        len: u8,
        offset: u8,
        version: u8,
        send_size: u32,
        receive_size: u32,
        remote_invalidation: bool,
    );
    pub(crate) fn trace_rpcrdma_cm_negotiated(
        id: u64,
        server: bool,
        generation: u32,
        local: *const sockaddr,
        remote: *const sockaddr,
        client_to_server: u32,
        server_to_client: u32,
        remote_invalidation: bool,
    );
    pub(crate) fn trace_rpcrdma_cm_closed(id: u64, server: bool, generation: u32, error: c_int);
}

/// Returns the time on the clock of the kernel's log, in nanoseconds; any context.
pub(crate) fn log_clock() -> u64 {
    // SAFETY: No requirement: the function may be called in any context.
    unsafe { kernel::bindings::local_clock() }
}

/// Returns a random number; any context.
pub(crate) fn random() -> u32 {
    // SAFETY: No requirement: the function may be called in any context.
    unsafe { kernel::bindings::get_random_u32() }
}
