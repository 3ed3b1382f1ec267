// SPDX-License-Identifier: GPL-2.0

//! Bindings of the kernel's RDMA interfaces and of the module's own C code.
//!
//! May not be used outside of [`crate::rdma`], [`crate::trace`] and [`crate::observer`], except for
//! [`log_clock`].

// Which of these a generated file needs depends on the kernel's configuration.
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
        completion,
        scatterlist,
        sockaddr,
        work_struct,
        workqueue_struct, //
    },
    ffi, //
};

/// Types that are only ever pointed to.
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
    // In some configurations the kernel crate's has members that are not FFI-safe.
    net,
}

type bool_ = bool;

include!(env!("RPCRDMA_CM_BINDINGS"));

/// Returns the time as the messages of the kernel's log have it, in nanoseconds; any context.
pub(crate) fn log_clock() -> u64 {
    // SAFETY: The function takes nothing, and may be called in any context.
    unsafe { shim_log_clock() }
}
