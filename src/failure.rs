// SPDX-License-Identifier: GPL-2.0

//! Failures: an errno for the caller, and the cause in words.

use core::fmt;

use kernel::{
    bindings,
    prelude::*, //
};

use crate::{
    base::errno::errno,
    pure::text::{
        history::Transition,
        snapshot::{
            Cause,
            Detail, //
        }, //
    }, //
};

/// Why a command failed, or a connection was lost or not established.
#[derive(Clone, Copy)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) cause: Cause,
}

impl Failure {
    /// The failure of a command that names a connection of others.
    pub(crate) const NOT_OWN: Self = Self::new(EPERM, "not a connection of the module");

    /// The failure of a command whose address the kernel refuses, by `EINVAL`.
    pub(crate) const REFUSED_ADDRESS: Self = Self::new(
        EINVAL,
        "the kernel refuses the address; a link-local one needs a zone",
    );

    /// The failure of a connection whose device was removed.
    pub(crate) const DEVICE_REMOVED: Self = Self::new(ENODEV, "the device was removed");

    pub(crate) const fn new(error: Error, text: &'static str) -> Self {
        Self {
            error,
            cause: Cause { text, detail: None },
        }
    }

    /// Returns the event with which `history` shows this failure. `established` says whether the
    /// connection was established.
    pub(crate) fn transition(&self, established: bool) -> Transition {
        if established {
            Transition::Lost
        } else if self.error == errno(bindings::ECONNREFUSED) {
            Transition::Refused
        } else {
            Transition::Failed
        }
    }

    /// Creates the failure of a call to connect that has returned `error`.
    pub(crate) fn connect_failed(error: Error) -> Self {
        if error == errno(bindings::ECONNREFUSED) {
            return Self::new(error, "the peer's host refused the connection");
        }
        Self::new(error, "the connection was not established")
    }

    /// Creates the failure of a connection that was lost.
    pub(crate) fn lost(text: &'static str) -> Self {
        Self::new(errno(bindings::ECONNRESET), text)
    }

    /// Creates the failure of a connection that its peer has disconnected.
    pub(crate) fn disconnected() -> Self {
        Self::lost("disconnected by the peer")
    }

    /// Creates the failure of a connection whose queue pair has failed.
    pub(crate) fn queue_pair_failed(reason: &'static CStr) -> Self {
        Self::with_detail(errno(bindings::ECONNRESET), "the queue pair failed", reason)
    }

    /// Creates the failure of a connection of whose loss only a consequence is known.
    pub(crate) fn unknown_cause(consequence: &'static CStr) -> Self {
        Self::with_detail(errno(bindings::ECONNRESET), "unknown cause", consequence)
    }

    /// Creates the failure of an iWARP connection that the device has closed although its peer had
    /// not disconnected.
    pub(crate) fn closed_by_device() -> Self {
        Self::unknown_cause(c"the device closed the connection")
    }

    /// Creates a failure with the reason that the kernel or the peer gave.
    pub(crate) const fn with_detail(
        error: Error,
        text: &'static str,
        detail: &'static CStr,
    ) -> Self {
        Self {
            error,
            cause: Cause {
                text,
                detail: Some(Detail::Reason(detail)),
            },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.cause, f)
    }
}
