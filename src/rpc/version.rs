// SPDX-License-Identifier: GPL-2.0

//! The version of RPC-over-RDMA that a connection uses, and the responders that are known to speak
//! version 1 only.

use core::net::SocketAddr;

use kernel::{
    new_mutex,
    prelude::*,
    sync::Mutex,
    time::{
        Instant,
        Monotonic, //
    }, //
};

/// The present knowledge of the version of RPC-over-RDMA on a connection.
#[derive(Clone, Copy)]
pub(super) enum UsedVersion {
    /// No version has been agreed upon.
    Unknown,
    /// The client has sent its first message of version 2, and the peer has not answered in that
    /// version. If the endpoint fails meanwhile, the client connects again, for version 1
    /// (draft-cel-nfsv4-rpcrdma-version-two-01, section 5.2).
    Tried,
    /// The version that has been agreed upon: that of the call that was answered last.
    Known(u32),
}

impl UsedVersion {
    /// Returns the version that has been agreed upon.
    pub(super) fn known(self) -> Option<u32> {
        match self {
            Self::Known(version) => Some(version),
            Self::Unknown | Self::Tried => None,
        }
    }

    /// Ends the trial of version 2, if one is under way. Returns whether one was.
    pub(super) fn end_trial(&mut self) -> bool {
        let tried = matches!(self, Self::Tried);
        if tried {
            *self = Self::Unknown;
        }
        tried
    }
}

/// Responders that did not answer in version 2 of RPC-over-RDMA, so that the next connection to one
/// of them begins with version 1 (draft-cel-nfsv4-rpcrdma-version-two-01, section 5.2).
#[pin_data]
pub(crate) struct VersionCache {
    /// The responders, each with the time at which it was added, the latest last.
    #[pin]
    responders: Mutex<KVec<(SocketAddr, Instant<Monotonic>)>>,
}

impl VersionCache {
    /// The largest number of responders that are remembered.
    const MAX: usize = 64;

    /// How long a responder is remembered, in milliseconds. Limited, because the responder may be
    /// upgraded to version 2.
    const MAX_AGE_MS: i64 = 600_000;

    /// Creates an empty cache; process context. All memory is allocated here, so that `add` needs
    /// none and cannot fail.
    pub(crate) fn new() -> Result<impl PinInit<Self>> {
        let responders = KVec::with_capacity(Self::MAX, GFP_KERNEL)?;
        Ok(pin_init!(Self {
            responders <- new_mutex!(responders, "VersionCache::responders"),
        }))
    }

    /// Remembers `responder`; process context, as the functions below.
    pub(crate) fn add(&self, responder: SocketAddr) {
        let mut responders = self.responders.lock();
        responders.retain(|(other, _)| *other != responder);
        if responders.len() >= Self::MAX {
            let _ = responders.remove(0);
        }
        // Cannot fail: `new` reserved the capacity.
        let _ = responders.push_within_capacity((responder, Instant::now()));
    }

    /// Forgets `responder`, which has answered in version 2.
    pub(crate) fn remove(&self, responder: SocketAddr) {
        self.responders
            .lock()
            .retain(|(other, _)| *other != responder);
    }

    /// Whether `responder` is remembered.
    pub(crate) fn contains(&self, responder: SocketAddr) -> bool {
        self.responders.lock().iter().any(|(other, since)| {
            *other == responder && since.elapsed().as_millis() < Self::MAX_AGE_MS
        })
    }
}
