// SPDX-License-Identifier: GPL-2.0

//! The states of a connection.

use core::mem;

use kernel::sync::Arc;

use super::attempt::Attempt;
use crate::{
    pure::text::snapshot::State,
    rpc::endpoint::Endpoint, //
};

/// The state of a connection, with what exists in that state.
pub(super) enum ConnectionState {
    /// The peer's address, or the route to it, is being resolved. [`None`] until there is an id,
    /// and again after an id failed to resolve the address: then another id tries.
    Resolving(Option<Attempt>),
    /// A client waits for REP, a server for RTU.
    Connecting(Attempt),
    Established(Attempt),
    /// Lost; the client is going to connect again. The endpoint has ended, and is kept for its
    /// counters.
    Reconnecting(Option<Arc<Endpoint>>),
    /// Ended; the connection is removed when its ids have been destroyed. The endpoint has ended,
    /// and is kept for its counters.
    Closing(Option<Arc<Endpoint>>),
}

impl ConnectionState {
    /// Returns the state as `info` names it.
    pub(super) fn name(&self) -> State {
        match self {
            Self::Resolving(_) => State::Resolving,
            Self::Connecting(_) => State::Connecting,
            Self::Established(_) => State::Established,
            Self::Reconnecting(_) => State::Reconnecting,
            Self::Closing(_) => State::Closing,
        }
    }

    /// Whether an attempt is under way: neither established nor ended.
    pub(super) fn is_attempting(&self) -> bool {
        matches!(self, Self::Resolving(_) | Self::Connecting(_))
    }

    /// Returns the current attempt, whether it is under way or established.
    pub(super) fn attempt_mut(&mut self) -> Option<&mut Attempt> {
        match self {
            Self::Resolving(attempt) => attempt.as_mut(),
            Self::Connecting(attempt) | Self::Established(attempt) => Some(attempt),
            Self::Reconnecting(_) | Self::Closing(_) => None,
        }
    }

    /// Takes the current attempt out. The caller then enters another state.
    pub(super) fn take_attempt(&mut self) -> Option<Attempt> {
        self.attempt_mut()?;
        match mem::replace(self, Self::Resolving(None)) {
            Self::Resolving(attempt) => attempt,
            Self::Connecting(attempt) | Self::Established(attempt) => Some(attempt),
            Self::Reconnecting(_) | Self::Closing(_) => None,
        }
    }

    /// Returns the endpoint of the latest attempt.
    pub(super) fn endpoint(&self) -> Option<&Arc<Endpoint>> {
        match self {
            Self::Resolving(attempt) => attempt.as_ref().map(|attempt| &attempt.endpoint),
            Self::Connecting(attempt) | Self::Established(attempt) => Some(&attempt.endpoint),
            Self::Reconnecting(endpoint) | Self::Closing(endpoint) => endpoint.as_ref(),
        }
    }
}
