// SPDX-License-Identifier: GPL-2.0

//! What the probes of probes.c report, in safe terms.

use core::{
    mem::MaybeUninit,
    net::SocketAddr,
    ptr,
    slice, //
};

use kernel::{
    error::to_result,
    ffi::c_void,
    prelude::*,
    sync::Arc, //
};

use super::{
    Observations,
    NFS_RDMA_PORT, //
};
use crate::{
    bindings,
    protocol::{
        invalidation::Counters,
        negotiation::InUse,
        private_data::{
            parse,
            Parsed,
            PrivateData, //
        },
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
pub(super) enum EventKind {
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
    /// This end disconnects, because it wants to or as the peer has.
    Disconnect,
    Disconnected,
    DeviceRemoved,
    /// It was found: what was exchanged is not known but, of the kernel's client, what it sent.
    Existing,
    /// The id is about to go.
    Destroyed,
}

/// Tells ids apart; not to be followed, as nothing keeps the id.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct IdKey(usize);

impl IdKey {
    /// Reads what the kernel's client counts of the id's transport; any context.
    ///
    /// # Safety
    ///
    /// The probes must not have reported the end of the id, and must be unable to finish that
    /// report during the call, which must be in a critical section of a spin lock.
    pub(super) unsafe fn count(self) -> Option<Counters> {
        let mut counters = MaybeUninit::uninit();
        let id = ptr::with_exposed_provenance(self.0);
        // SAFETY: As long as there are probes, which the function checks, the id stays until its
        // end has been reported.
        if !unsafe { bindings::rpcrdma_cm_count(counters.as_mut_ptr(), id) } {
            return None;
        }
        // SAFETY: The function has set them.
        Some(Counters::from(unsafe { counters.assume_init_ref() }))
    }
}

impl From<&bindings::rpcrdma_cm_counters> for Counters {
    fn from(counters: &bindings::rpcrdma_cm_counters) -> Self {
        Self {
            steady: counters.steady,
            sends: counters.sends,
            receives: counters.receives,
            read_segments: counters.read_segments,
            write_segments: counters.write_segments,
            reply_segments: counters.reply_segments,
            local_invalidations: counters.local_invalidations,
            failed_marshals: counters.failed_marshals,
        }
    }
}

/// One event of an id, of which nothing has been copied yet.
pub(super) struct Event<'a> {
    raw: &'a bindings::rpcrdma_cm_event,
    pub(super) id: IdKey,
    pub(super) user: User,
    pub(super) kind: EventKind,
}

impl<'a> Event<'a> {
    /// # Safety
    ///
    /// `raw` must be reported at present, and so hold what it points to.
    unsafe fn new(raw: &'a bindings::rpcrdma_cm_event) -> Self {
        let kind = match raw.kind {
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_REQUEST => EventKind::Request {
                refused: raw.result != 0,
            },
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_ACCEPT => EventKind::Accept,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_CONNECT => EventKind::Connect,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_RESPONSE => EventKind::Response,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_ESTABLISHED => EventKind::Established,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_REJECTED => EventKind::Rejected,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_FAILED => EventKind::Failed,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_DISCONNECT => EventKind::Disconnect,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_DISCONNECTED => EventKind::Disconnected,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_DEVICE_REMOVED => EventKind::DeviceRemoved,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_EXISTING => EventKind::Existing,
            _ => EventKind::Destroyed,
        };
        Self {
            raw,
            id: IdKey(raw.id.expose_provenance()),
            user: match raw.user {
                bindings::rpcrdma_cm_user_RPCRDMA_CM_XPRTRDMA => User::Client,
                bindings::rpcrdma_cm_user_RPCRDMA_CM_SVCRDMA => User::Server,
                _ => User::Program,
            },
            kind,
        }
    }

    /// Returns what the event brought: the private data of one side.
    pub(super) fn private_data(&self) -> &'a [u8] {
        if self.raw.private_data.is_null() {
            return &[];
        }
        // SAFETY: By the requirement of `new`, so many octets are there as long as `raw` is.
        unsafe { slice::from_raw_parts(self.raw.private_data.cast(), self.raw.len.into()) }
    }

    /// Whether the event tells that the connection is one of RPC-over-RDMA: by its owner, by what
    /// it brought or, as far as it tells of a peer at all, by the server's port.
    pub(super) fn is_rpc_over_rdma(&self) -> bool {
        let server = match self.kind {
            EventKind::Request { .. } => self.raw.local_port,
            EventKind::Connect => self.raw.remote_port,
            EventKind::Existing if self.is_at_nfs_port() => NFS_RDMA_PORT,
            EventKind::Existing => self.raw.remote_port,
            _ => 0,
        };
        self.user != User::Program
            || server == NFS_RDMA_PORT
            || parse(self.private_data()) != Parsed::Absent
    }

    /// Whether the local port is that of servers of NFS over RDMA; of an id that was found.
    pub(super) fn is_at_nfs_port(&self) -> bool {
        self.raw.local_port == NFS_RDMA_PORT
    }

    /// Returns the program that did it, where that is known.
    pub(super) fn program(&self) -> Option<Process> {
        (self.raw.pid != 0).then_some(Process {
            pid: self.raw.pid,
            command: self.raw.comm,
        })
    }

    /// Returns all that is known by then; [`None`] for what is no connection.
    pub(super) fn describe(&self) -> Option<Observation> {
        let mut observation = MaybeUninit::uninit();
        // SAFETY: The event is being reported, by the requirement of `new`.
        if !unsafe { bindings::rpcrdma_cm_describe(observation.as_mut_ptr(), self.raw) } {
            return None;
        }
        // SAFETY: The function has set it.
        Some(Observation::new(self, unsafe {
            observation.assume_init_ref()
        }))
    }
}

/// One thing that happened to an id, with what is known of the id by then.
pub(super) struct Observation {
    pub(super) id: IdKey,
    pub(super) user: User,
    pub(super) kind: EventKind,
    /// Of what was found: whether it is not established yet.
    pub(super) connecting: bool,
    /// Of what was found: whether the kernel does not let its transport be read.
    pub(super) opaque: bool,
    pub(super) device: Option<(DeviceName, Transport)>,
    pub(super) local: Option<SocketAddr>,
    pub(super) remote: Option<SocketAddr>,
    /// What the event brought, or what a client that was found had sent.
    pub(super) private_data: PrivateData,
    pub(super) program: Option<Process>,
    /// Which of its transport's connections this is, as far as known.
    pub(super) generation: Option<u32>,
    pub(super) in_use: InUse,
    /// The counters of a client's transport.
    pub(super) counters: Option<Counters>,
}

impl Observation {
    fn new(event: &Event<'_>, observation: &bindings::rpcrdma_cm_observation) -> Self {
        // SAFETY: The address has room for both families, and is zeroed where none was copied.
        let local = unsafe { RawAddress::read(ptr::from_ref(&observation.local).cast()) };
        // SAFETY: As above.
        let remote = unsafe { RawAddress::read(ptr::from_ref(&observation.remote).cast()) };
        let device = Transport::from_raw(observation.transport)
            .map(|transport| (DeviceName::from_octets(observation.device), transport));
        let octets = match event.kind {
            EventKind::Existing => observation
                .message
                .get(..observation.message_len.into())
                .unwrap_or_default(),
            _ => event.private_data(),
        };
        let known = |value| Some(value).filter(|&value| value != 0);

        Self {
            id: event.id,
            user: event.user,
            kind: event.kind,
            connecting: observation.connecting,
            opaque: observation.opaque,
            device,
            local,
            remote,
            private_data: PrivateData::truncated(octets),
            program: event.program(),
            generation: known(observation.generation),
            in_use: InUse {
                inline_send: known(observation.inline_send),
                inline_receive: known(observation.inline_receive),
                remote_invalidation: (observation.send_with_invalidate >= 0)
                    .then_some(observation.send_with_invalidate != 0),
                ..InUse::default()
            },
            counters: observation
                .counted
                .then(|| Counters::from(&observation.counters)),
        }
    }
}

/// The probes; they are there as long as this is.
pub(super) struct Probes {
    _observations: Arc<Observations>,
}

impl Probes {
    /// Begins to report events to `observations`; process context.
    ///
    /// Fails with `EOPNOTSUPP` or `ENOENT` where the kernel has not what it takes, with `EBUSY`
    /// where there are probes already, and for want of memory.
    pub(super) fn new(observations: Arc<Observations>) -> Result<Self> {
        let data = Arc::as_ptr(&observations).cast_mut().cast();
        // SAFETY: The function takes such data, which stays until the probes are gone.
        to_result(unsafe { bindings::rpcrdma_cm_probes_register(Some(event), data) })?;
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
    unsafe { bindings::rpcrdma_cm_tell_existing(Some(event), data) };
}

/// # Safety
///
/// `data` must point to [`Observations`], and `event` be reported by this call.
unsafe extern "C" fn event(data: *mut c_void, event: *const bindings::rpcrdma_cm_event) {
    // SAFETY: By the function's requirement; `Observations` may be shared between threads.
    let observations = unsafe { &*data.cast::<Observations>() };
    // SAFETY: By the function's requirement.
    let event = unsafe { &*event };
    // SAFETY: As above.
    observations.event(&unsafe { Event::new(event) });
}
