// SPDX-License-Identifier: GPL-2.0

//! What the probes of probes.c tell, in safe terms.

use core::{
    net::SocketAddr,
    ptr, //
};

use kernel::{
    error::to_result,
    ffi::c_void,
    prelude::*,
    sync::Arc, //
};

use super::Observations;
use crate::{
    bindings,
    protocol::{
        negotiation::InUse,
        private_data::PrivateData,
        snapshot::Process, //
    },
    rdma::{
        address::RawAddress,
        device::{
            DeviceName,
            Transport, //
        }, //
    }, //
};

/// Who has an id.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum User {
    /// The kernel's RPC-over-RDMA client, xprtrdma.
    Client,
    /// The kernel's RPC-over-RDMA server, svcrdma.
    Server,
    /// A program, of whatever protocol.
    Program,
}

/// What happened to an id.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Happening {
    /// A peer's request was given to a server, which has refused it at once, or not.
    Request {
        refused: bool,
    },
    /// The server accepts the request; or a program, as client, the answer to its own.
    Accept,
    /// A client asks for a connection.
    Connect,
    /// A program has the answer.
    Response,
    /// The connection is there; a client of the kernel has the answer with this.
    Established,
    /// The peer refused the connection.
    Rejected,
    /// There was no connection to be had.
    Failed,
    Disconnected,
    /// It was found: what was exchanged is not known but, of the kernel's client, what it sent.
    Existing {
        /// Whether it is not established yet.
        connecting: bool,
        /// Whether the kernel does not let its client's transport be read.
        opaque: bool,
    },
}

/// Tells ids apart; not to be followed, as nothing keeps the id.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct IdKey(usize);

/// One thing that happened to an id, with what is known of the id by then.
pub(super) struct Seen {
    pub(super) id: IdKey,
    pub(super) user: User,
    pub(super) happening: Happening,
    pub(super) device: Option<(DeviceName, Transport)>,
    pub(super) local: Option<SocketAddr>,
    pub(super) remote: Option<SocketAddr>,
    /// What the happening brought: the private data of one side.
    pub(super) private_data: PrivateData,
    pub(super) program: Option<Process>,
    /// Which of its transport's connections this is, as far as known.
    pub(super) generation: Option<u32>,
    pub(super) in_use: InUse,
}

impl Seen {
    /// Returns [`None`] for the end of an id.
    fn new(seen: &bindings::rpcrdma_cm_seen) -> Option<Self> {
        let happening = match seen.happening {
            bindings::rpcrdma_cm_happening_RPCRDMA_CM_REQUEST => Happening::Request {
                refused: seen.result != 0,
            },
            bindings::rpcrdma_cm_happening_RPCRDMA_CM_ACCEPT => Happening::Accept,
            bindings::rpcrdma_cm_happening_RPCRDMA_CM_CONNECT => Happening::Connect,
            bindings::rpcrdma_cm_happening_RPCRDMA_CM_RESPONSE => Happening::Response,
            bindings::rpcrdma_cm_happening_RPCRDMA_CM_ESTABLISHED => Happening::Established,
            bindings::rpcrdma_cm_happening_RPCRDMA_CM_REJECTED => Happening::Rejected,
            bindings::rpcrdma_cm_happening_RPCRDMA_CM_FAILED => Happening::Failed,
            bindings::rpcrdma_cm_happening_RPCRDMA_CM_DISCONNECTED => Happening::Disconnected,
            bindings::rpcrdma_cm_happening_RPCRDMA_CM_EXISTING => Happening::Existing {
                connecting: seen.connecting,
                opaque: seen.opaque,
            },
            _ => return None,
        };
        // SAFETY: The address has room for both families, and is zeroed where none was copied.
        let local = unsafe { RawAddress::read(ptr::from_ref(&seen.local).cast()) };
        // SAFETY: As above.
        let remote = unsafe { RawAddress::read(ptr::from_ref(&seen.remote).cast()) };
        let device = Transport::from_raw(seen.transport)
            .map(|transport| (DeviceName::from_octets(seen.device), transport));
        let octets = seen.private_data.get(..seen.len.into()).unwrap_or_default();
        let known = |value| Some(value).filter(|&value| value != 0);

        Some(Self {
            id: IdKey(seen.id.addr()),
            user: match seen.user {
                bindings::rpcrdma_cm_user_RPCRDMA_CM_XPRTRDMA => User::Client,
                bindings::rpcrdma_cm_user_RPCRDMA_CM_SVCRDMA => User::Server,
                _ => User::Program,
            },
            happening,
            device,
            local,
            remote,
            private_data: PrivateData::truncated(octets),
            program: (seen.pid != 0).then_some(Process {
                pid: seen.pid,
                command: seen.comm,
            }),
            generation: known(seen.generation),
            in_use: InUse {
                inline_send: known(seen.inline_send),
                inline_receive: known(seen.inline_receive),
                remote_invalidation: (seen.send_with_invalidate >= 0)
                    .then_some(seen.send_with_invalidate != 0),
            },
        })
    }
}

/// The probes; they are there as long as this is.
pub(super) struct Probes {
    _observations: Arc<Observations>,
}

impl Probes {
    /// Begins to tell `observations` what happens; process context.
    ///
    /// Fails with `EOPNOTSUPP` or `ENOENT` where the kernel has not what it takes, with `EBUSY`
    /// where there are probes already, and for want of memory.
    pub(super) fn new(observations: Arc<Observations>) -> Result<Self> {
        let data = Arc::as_ptr(&observations).cast_mut().cast();
        // SAFETY: The function takes such data, which stays until the probes are gone.
        to_result(unsafe { bindings::rpcrdma_cm_probes_register(Some(seen), data) })?;
        Ok(Self {
            _observations: observations,
        })
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        // SAFETY: They were registered, and this is not called by one of them.
        unsafe { bindings::rpcrdma_cm_probes_unregister() };
    }
}

/// Tells `observations` of the ids that there are already; process context.
pub(super) fn tell_existing(observations: &Observations) {
    let data = ptr::from_ref(observations).cast_mut().cast();
    // SAFETY: The function takes such data, and uses it only before it returns.
    unsafe { bindings::rpcrdma_cm_tell_existing(Some(seen), data) };
}

/// # Safety
///
/// `data` must point to [`Observations`], and `seen` be valid, during the call.
unsafe extern "C" fn seen(data: *mut c_void, seen: *const bindings::rpcrdma_cm_seen) {
    // SAFETY: By the function's requirement; `Observations` may be shared between threads.
    let observations = unsafe { &*data.cast::<Observations>() };
    // SAFETY: By the function's requirement.
    let seen = unsafe { &*seen };

    match Seen::new(seen) {
        Some(seen) => observations.seen(&seen),
        None => observations.destroyed(IdKey(seen.id.addr())),
    }
}
