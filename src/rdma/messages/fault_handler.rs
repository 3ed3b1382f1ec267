// SPDX-License-Identifier: GPL-2.0

//! The failures of queue pairs.

use kernel::{
    prelude::*,
    sync::ArcBorrow, //
};

/// Why a queue pair has failed.
#[derive(Clone, Copy)]
pub(crate) enum QueuePairFault {
    /// A completion names this error.
    Error(&'static CStr),
    /// This end made the queue pair fail.
    GivenUp(&'static CStr),
    /// A Work Request was flushed, or could not be posted, because of something else.
    Consequence(&'static CStr),
}

/// Is told why a queue pair has failed.
pub(crate) trait FaultHandler: Send + Sync + 'static {
    /// The queue pair has failed, and nothing more can arrive. Called with the error, if a
    /// completion names one, and for each Receive that is flushed. Also called if this side has
    /// ended the connection. May sleep.
    fn queue_pair_failed(this: ArcBorrow<'_, Self>, fault: QueuePairFault);
}
