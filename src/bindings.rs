// SPDX-License-Identifier: GPL-2.0

//! Bindings of the kernel's RDMA interfaces and of the module's own C code.
//!
//! Only [`crate::base`], [`crate::rdma`], [`crate::trace`] and [`crate::observer`] may use it,
//! except for [`log_clock`], [`flush_events`] and [`random`].

// The generated code breaks some of these rules, depending on the kernel's configuration.
#![allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unsafe_op_in_unsafe_fn
)]

use kernel::{
    bindings::{
        module,
        scatterlist,
        sockaddr,
        work_struct,
        workqueue_struct, //
    },
    ffi, //
};

/// Declares C types that Rust code uses by pointers only.
macro_rules! opaque {
    ($($name:ident),* $(,)?) => {
        $(
            #[repr(C)]
            pub struct $name([u8; 0]);
        )*
    };
}

opaque! {
    ib_cq,
    ib_device,
    ib_event,
    ib_mr,
    ib_pd,
    ib_qp,
    ib_rwq_ind_table,
    ib_srq,
    ib_udata,
    ib_xrcd,
    rpcrdma_cm_holds,
    rpcrdma_cm_watched_id,
    // Not the type of the kernel crate: in some configurations its members are not FFI-safe.
    net,
}

type bool_ = bool;

include!(env!("RPCRDMA_CM_BINDINGS"));

/// Returns the time on the clock of the kernel's log, in nanoseconds; any context.
pub(crate) fn log_clock() -> u64 {
    // SAFETY: No requirement: the function may be called in any context.
    unsafe { shim_log_clock() }
}

/// Waits until all events that probes have noted so far have been reported; process context, may
/// sleep. Must not be called in a report.
pub(crate) fn flush_events() {
    // SAFETY: The function requires process context outside of a report. Its only caller is an
    // operation on a file of debugfs, which is such a context.
    unsafe { rpcrdma_cm_events_flush() };
}

/// Returns a random number; any context.
pub(crate) fn random() -> u32 {
    // SAFETY: No requirement: the function may be called in any context.
    unsafe { kernel::bindings::get_random_u32() }
}
