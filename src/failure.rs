// SPDX-License-Identifier: GPL-2.0

//! Why something could not be done: an errno for the caller, and the cause in words.

use core::fmt;

use kernel::{
    bindings,
    prelude::*, //
};

use crate::{
    protocol::{
        history::Transition,
        snapshot::Cause, //
    },
    rdma::errno, //
};

/// Why something could not be done.
#[derive(Clone, Copy)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) cause: Cause,
}

impl Failure {
    /// A command is for the module's own connections, and names one of others.
    pub(crate) const NOT_OWN: Self = Self::new(EPERM, "not a connection of the module");

    pub(crate) const fn new(error: Error, text: &'static str) -> Self {
        Self {
            error,
            cause: Cause { text, detail: None },
        }
    }

    /// Returns the event that it is for a connection, `established` or still being attempted.
    pub(crate) fn transition(&self, established: bool) -> Transition {
        match established {
            true => Transition::Lost,
            false if self.error == errno(bindings::ECONNREFUSED) => Transition::Refused,
            false => Transition::Failed,
        }
    }

    /// Makes a failure with the reason that the kernel or the peer gave.
    pub(crate) const fn with_detail(
        error: Error,
        text: &'static str,
        detail: &'static CStr,
    ) -> Self {
        Self {
            error,
            cause: Cause {
                text,
                detail: Some(detail),
            },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.cause, f)
    }
}
