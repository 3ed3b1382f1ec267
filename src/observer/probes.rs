// SPDX-License-Identifier: GPL-2.0

//! A safe interface to the probes of probes.c.

use core::{
    mem::MaybeUninit,
    net::SocketAddr,
    ptr, //
};

use kernel::{
    error::to_result,
    ffi::c_void,
    pr_warn_once,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};

use super::{
    Observations,
    NFS_RDMA_PORT, //
};
use crate::{
    base::{
        address::RawAddress,
        errno::errno, //
    },
    bindings,
    failure::Failure,
    pure::{
        text::{
            exchange::ShownDevice,
            snapshot::Process,
            stats::{
                Limit,
                Limits, //
            }, //
        },
        wire::{
            ending::Evidence,
            inferred_invalidation::Counters,
            meaning::{
                Event,
                Step,
                User, //
            },
            negotiation::{
                InUse,
                Role, //
            },
            private_data::{
                parse,
                Parsed,
                PrivateData, //
            }, //
        }, //
    },
    rdma::verbs::device::{
        DeviceName,
        Transport, //
    }, //
    shown_device,
};

/// The user of a program, as a uid of the initial user namespace.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Uid(u32);

impl Uid {
    pub(super) const ROOT: Self = Self(0);
}

/// The owners whose events are kept together. No owner takes the room of those of another class.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Class {
    /// The kernel's NFS.
    Nfs,
    /// The programs of root.
    Root,
    /// The programs of all other users.
    Users,
}

impl Class {
    /// Returns the class of `user`. Of a program, `uid` is its user.
    pub(super) fn of(user: User, uid: Uid) -> Self {
        match user {
            User::Client | User::Server => Self::Nfs,
            User::Program if uid == Uid::ROOT => Self::Root,
            User::Program => Self::Users,
        }
    }
}

/// The kind of an event of an id.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum EventKind {
    /// The handler of a server was called with a REQ. `refused`: the handler has refused it.
    Request {
        refused: bool,
    },
    /// The owner calls rdma_accept: a server sends REP, or a program as client sends RTU. Of a
    /// program: the call has succeeded.
    Accept,
    /// A client sends REQ. Of a program: it has been sent.
    Connect,
    /// A program as client has received REP.
    Response,
    /// The connection is established. A client of the kernel gets the content of REP with this.
    Established,
    /// The peer rejected the connection (REJ).
    Rejected,
    /// The connection was not established for another reason.
    Failed,
    /// The kernel's client called rdma_connect, which failed.
    ConnectFailed(Error),
    /// The owner calls rdma_disconnect, first or in response to the peer.
    Disconnect,
    /// The CM says that the connection has ended. `noted`: if the peer ended it,
    /// [`Self::PeerClosed`] has been reported before.
    Disconnected {
        noted: bool,
    },
    DeviceRemoved,
    AddressChanged,
    /// The iWARP device says that the peer has disconnected.
    PeerClosed,
    /// The iWARP device has closed the connection.
    Closed,
    /// A work request of the kernel's NFS failed or was flushed.
    Completion(bindings::ib_wc_status),
    /// The device reports an error of a queue pair of the kernel's NFS.
    QueuePair(bindings::ib_event_type),
    /// The kernel's NFS hears that the device is being removed.
    Removal,
    /// The search found the id. The private data is not known, except what the kernel's client
    /// sent.
    Existing,
    /// The id is about to be destroyed.
    Destroyed,
    /// So many events of ids of that user were lost.
    Lost(u32),
}

impl EventKind {
    /// Takes an event of probes.h; [`None`] if its kind is unknown.
    fn from_raw(event: &bindings::rpcrdma_cm_event) -> Option<Self> {
        Some(match event.kind {
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_REQUEST => Self::Request {
                refused: event.result != 0,
            },
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_ACCEPT => Self::Accept,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_CONNECT => Self::Connect,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_RESPONSE => Self::Response,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_ESTABLISHED => Self::Established,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_REJECTED => Self::Rejected,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_FAILED => Self::Failed,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_CONNECT_FAILED => {
                Self::ConnectFailed(to_result(event.result).err().unwrap_or(EIO))
            }
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_DISCONNECT => Self::Disconnect,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_DISCONNECTED => Self::Disconnected {
                noted: event.result != 0,
            },
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_DEVICE_REMOVED => Self::DeviceRemoved,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_ADDRESS_CHANGED => Self::AddressChanged,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_PEER_CLOSED => Self::PeerClosed,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_CLOSED => Self::Closed,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_COMPLETION => {
                Self::Completion(u32::try_from(event.result).ok()?)
            }
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_QP_EVENT => {
                Self::QueuePair(u32::try_from(event.result).ok()?)
            }
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_REMOVAL => Self::Removal,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_EXISTING => Self::Existing,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_DESTROYED => Self::Destroyed,
            bindings::rpcrdma_cm_event_kind_RPCRDMA_CM_LOST => {
                Self::Lost(u32::try_from(event.result).unwrap_or(u32::MAX))
            }
            _ => return None,
        })
    }

    /// Returns the failure of an attempt to connect that this event reports, if it reports one.
    pub(super) fn failure(self) -> Option<Failure> {
        match self {
            Self::Rejected => Some(Failure::new(
                errno(kernel::bindings::ECONNREFUSED),
                "the peer rejected the connection",
            )),
            Self::Failed => Some(Failure::connect_failed(ETIMEDOUT)),
            Self::ConnectFailed(error) => Some(Failure::connect_failed(error)),
            Self::Disconnected { .. } => Some(Failure::disconnected()),
            Self::DeviceRemoved => Some(Failure::DEVICE_REMOVED),
            _ => None,
        }
    }

    /// Returns this event as evidence of the end of an established connection, with the failure to
    /// report if this event is the cause. `iwarp` says whether the transport is iWARP. When the
    /// peer of an siw device disconnects, a Send may fail by LOC_QP_OP_ERR, and the queue pair by
    /// QP_FATAL or QP_REQ_ERR, before the device says that the peer has disconnected. These errors
    /// are consequences over iWARP: over every device, because the driver is not known here.
    pub(super) fn evidence(self, iwarp: bool) -> Option<(Evidence, Failure)> {
        let queue_pair = Failure::queue_pair_failed;
        let unknown = Failure::unknown_cause;

        Some(match self {
            Self::PeerClosed | Self::Disconnected { noted: false } => {
                (Evidence::Disconnected, Failure::disconnected())
            }
            // The peer has accepted, and ends before the RTU arrives.
            Self::Rejected => (
                Evidence::Rejected,
                Failure::lost("the peer rejected the connection"),
            ),
            Self::Closed | Self::Disconnected { noted: true } => {
                (Evidence::Consequence, Failure::closed_by_device())
            }
            Self::Disconnect => (
                Evidence::Disconnect,
                Failure::lost("disconnected by this end"),
            ),
            Self::Completion(status @ bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR) => {
                (Evidence::Consequence, unknown(status_message(status)))
            }
            Self::Completion(status @ bindings::ib_wc_status_IB_WC_LOC_QP_OP_ERR) if iwarp => {
                (Evidence::Consequence, unknown(status_message(status)))
            }
            Self::QueuePair(
                event @ (bindings::ib_event_type_IB_EVENT_QP_FATAL
                | bindings::ib_event_type_IB_EVENT_QP_REQ_ERR),
            ) if iwarp => (Evidence::Consequence, unknown(event_message(event))),
            Self::Completion(status) => (Evidence::Error, queue_pair(status_message(status))),
            Self::QueuePair(event) => (Evidence::Error, queue_pair(event_message(event))),
            Self::DeviceRemoved | Self::Removal => (Evidence::Gone, Failure::DEVICE_REMOVED),
            Self::AddressChanged => (
                Evidence::Gone,
                Failure::lost("the address of this end changed"),
            ),
            _ => return None,
        })
    }
}

/// Returns a text for the status of a completion.
fn status_message(status: bindings::ib_wc_status) -> &'static CStr {
    // SAFETY: The function takes any value.
    let message = unsafe { bindings::ib_wc_status_msg(status) };
    // SAFETY: It returns a static string, and never NULL.
    unsafe { CStr::from_char_ptr(message) }
}

/// Returns a text for an event of a queue pair.
fn event_message(event: bindings::ib_event_type) -> &'static CStr {
    // SAFETY: The function takes any value.
    let message = unsafe { bindings::ib_event_msg(event) };
    // SAFETY: It returns a static string, and never NULL.
    unsafe { CStr::from_char_ptr(message) }
}

/// The address of an id. It only tells ids apart: nothing keeps the id, so it must not be
/// dereferenced.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct IdKey(usize);

impl IdKey {
    /// The key that is lower than those of all ids.
    pub(super) const FIRST: Self = Self(0);

    /// Returns the lowest key that is higher than this.
    pub(super) fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// Reads the counters that the kernel's client keeps of the id's transport; any context.
    /// Returns [`None`] if they cannot be read.
    ///
    /// # Safety
    ///
    /// The report of the id's end must not have finished, and must not finish during the call. The
    /// probes must not be removed meanwhile.
    pub(super) unsafe fn count(self) -> Option<Counters> {
        let mut counters = MaybeUninit::uninit();
        let id = ptr::with_exposed_provenance(self.0);
        // SAFETY: The id is not freed before its end is noted, unless its probe has been removed.
        // The C function finds the note until the report of it has finished. By this function's
        // requirement that has not happened. The probe is removed only while the module is being
        // loaded or unloaded. Only readers of files call this, and `may_open` of debugfs.rs
        // refuses them then.
        if !unsafe { bindings::rpcrdma_cm_count(counters.as_mut_ptr(), id) } {
            return None;
        }
        // SAFETY: The C function returned true, so it has set the counters.
        Some(read_counters(unsafe { counters.assume_init_ref() }))
    }
}

fn read_counters(counters: &bindings::rpcrdma_cm_counters) -> Counters {
    Counters {
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

/// One event of an id, as it was noted.
pub(super) struct ObservedEvent<'a> {
    raw: &'a bindings::rpcrdma_cm_event,
    pub(super) id: IdKey,
    /// The owner of the id. Of [`EventKind::Destroyed`], [`EventKind::Lost`] and the events of
    /// `ends.c`, it only says whether that is a program.
    pub(super) user: User,
    pub(super) kind: EventKind,
}

impl<'a> ObservedEvent<'a> {
    /// Returns [`None`] for an event of an unknown kind.
    fn new(raw: &'a bindings::rpcrdma_cm_event) -> Option<Self> {
        Some(Self {
            raw,
            id: IdKey(raw.id.expose_provenance()),
            user: match raw.user {
                bindings::rpcrdma_cm_user_RPCRDMA_CM_XPRTRDMA => User::Client,
                bindings::rpcrdma_cm_user_RPCRDMA_CM_SVCRDMA => User::Server,
                _ => User::Program,
            },
            kind: EventKind::from_raw(raw)?,
        })
    }

    /// Returns the private data that the event carries: that of one side, or nothing.
    pub(super) fn private_data(&self) -> &'a [u8] {
        let len = usize::from(self.raw.len);
        self.raw.private_data.get(..len).unwrap_or_default()
    }

    /// Returns the user of a program.
    pub(super) fn uid(&self) -> Uid {
        Uid(self.raw.uid)
    }

    pub(super) fn class(&self) -> Class {
        Class::of(self.user, self.uid())
    }

    /// Returns the part of the event that decides its meaning for the id.
    pub(super) fn to_decide(&self) -> Event {
        Event {
            user: self.user,
            step: match self.kind {
                EventKind::Request { refused } => Step::Request { refused },
                EventKind::Connect => Step::Connect,
                EventKind::Accept => Step::Accept,
                EventKind::Established => Step::Established,
                EventKind::Response
                | EventKind::Rejected
                | EventKind::Failed
                | EventKind::ConnectFailed(_)
                | EventKind::Disconnected { .. }
                | EventKind::DeviceRemoved => Step::Other,
                EventKind::Disconnect
                | EventKind::AddressChanged
                | EventKind::PeerClosed
                | EventKind::Closed
                | EventKind::Completion(_)
                | EventKind::QueuePair(_)
                | EventKind::Removal => Step::Evidence,
                EventKind::Existing => Step::Existing {
                    role: self.role_of_existing(),
                },
                // A loss concerns no single id. After either event, nothing is known of the id.
                EventKind::Destroyed | EventKind::Lost(_) => Step::Destroyed,
            },
            speaks: self.is_rpc_over_rdma(),
        }
    }

    /// Returns the role of an id that the search found. Of a program, the local port tells. Returns
    /// [`None`] if the id is no connection.
    fn role_of_existing(&self) -> Option<Role> {
        // An id without a peer's address is a listener. rdma_cm gives one that is bound to a
        // specific address the unspecified address of that family, with port 0.
        if !self.raw.described || self.raw.remote_port == 0 {
            return None;
        }
        Some(match self.user {
            User::Client => Role::Client,
            User::Server => Role::Server,
            User::Program if self.raw.local_port == NFS_RDMA_PORT => Role::Server,
            User::Program => Role::Client,
        })
    }

    /// Whether the event shows that the connection speaks RPC-over-RDMA: by its owner, by its
    /// private data, or by the server's port if the event has addresses.
    pub(super) fn is_rpc_over_rdma(&self) -> bool {
        let server = match self.kind {
            EventKind::Request { .. } => self.raw.local_port,
            EventKind::Connect => self.raw.remote_port,
            EventKind::Existing if self.raw.local_port == NFS_RDMA_PORT => NFS_RDMA_PORT,
            EventKind::Existing => self.raw.remote_port,
            _ => 0,
        };
        self.user != User::Program
            || server == NFS_RDMA_PORT
            || parse(self.private_data()) != Parsed::Absent
    }

    /// Returns the program that owns the id, if known.
    pub(super) fn program(&self) -> Option<Process> {
        (self.raw.pid != 0).then_some(Process {
            pid: self.raw.pid,
            command: self.raw.comm,
        })
    }

    /// Returns everything that was known of the id at the moment of the event, which is one of the
    /// set-up or of the end of a connection. Evidence has no such description.
    pub(super) fn describe(&self) -> Observation {
        Observation::new(self, &self.raw.observation)
    }
}

/// One event of an id, with everything that is known of the id at that moment.
pub(super) struct Observation {
    pub(super) id: IdKey,
    pub(super) user: User,
    pub(super) uid: Uid,
    pub(super) kind: EventKind,
    /// Of [`EventKind::Existing`]: whether the connection is not established yet.
    pub(super) connecting: bool,
    /// Of [`EventKind::Existing`]: whether the transport cannot be read, because the kernel has no
    /// BTF, or BTF lacks a member that is read.
    pub(super) opaque: bool,
    pub(super) device: Option<ShownDevice>,
    pub(super) local: Option<SocketAddr>,
    pub(super) remote: Option<SocketAddr>,
    /// The private data that the event carries. Of [`EventKind::Existing`]: the private data that
    /// the kernel's client sent.
    pub(super) private_data: PrivateData,
    pub(super) program: Option<Process>,
    /// How many connections the client's transport has made, this one included, if known.
    pub(super) generation: Option<u32>,
    pub(super) in_use: InUse,
    /// The counters of a client's transport.
    pub(super) counters: Option<Counters>,
}

impl Observation {
    pub(super) fn class(&self) -> Class {
        Class::of(self.user, self.uid)
    }

    fn new(event: &ObservedEvent<'_>, observation: &bindings::rpcrdma_cm_observation) -> Self {
        // SAFETY: The field is a `sockaddr_in6`, large enough for both families. It holds an
        // address of one of them, or zeros.
        let local = unsafe { RawAddress::read(ptr::from_ref(&observation.local).cast()) };
        // SAFETY: The same as for `local`.
        let remote = unsafe { RawAddress::read(ptr::from_ref(&observation.remote).cast()) };
        let name = DeviceName::from_bytes(observation.device);
        let device = Transport::from_raw(observation.transport)
            .map(|transport| shown_device::of(name, transport));
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
            uid: event.uid(),
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
                .then(|| read_counters(&observation.counters)),
        }
    }
}

/// The registered probes. Dropping this removes them.
pub(super) struct Probes {
    _observations: Arc<Observations>,
}

impl Probes {
    /// Begins to report events to `observations`; process context.
    ///
    /// Fails with `EOPNOTSUPP` or `ENOENT` if the kernel lacks an option, a tracepoint or a
    /// function that the probes need, with `ENOMEM`, or with the error of ftrace, such as `EBUSY`
    /// after an earlier registration that had failed for lack of memory.
    pub(super) fn new(observations: Arc<Observations>) -> Result<Self> {
        let data = Arc::as_ptr(&observations).cast_mut().cast();
        // SAFETY: `event` expects the pointer of an `Arc`. `_observations` keeps that until the
        // probes have been removed.
        to_result(unsafe { bindings::rpcrdma_cm_probes_register(Some(event), data) })?;
        Ok(Self {
            _observations: observations,
        })
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        // SAFETY: `new` registered the probes, and no probe drops this.
        unsafe { bindings::rpcrdma_cm_probes_unregister() };
    }
}

/// Returns the limits of the probes; any context.
pub(super) fn limits_of_probes() -> Limits {
    use bindings::*;

    // SAFETY: The function has no requirements.
    let found = unsafe { rpcrdma_cm_limits() };
    [
        (rpcrdma_cm_limit_RPCRDMA_CM_LIMIT_FPROBE, Limit::Fprobe),
        (
            rpcrdma_cm_limit_RPCRDMA_CM_LIMIT_TRACEPOINTS,
            Limit::Tracepoints,
        ),
        (rpcrdma_cm_limit_RPCRDMA_CM_LIMIT_KALLSYMS, Limit::Kallsyms),
        (rpcrdma_cm_limit_RPCRDMA_CM_LIMIT_BTF, Limit::Btf),
        (rpcrdma_cm_limit_RPCRDMA_CM_LIMIT_MEMBERS, Limit::Members),
        (rpcrdma_cm_limit_RPCRDMA_CM_LIMIT_SYMBOLS, Limit::Symbols),
        (rpcrdma_cm_limit_RPCRDMA_CM_LIMIT_SEARCH, Limit::Search),
        (rpcrdma_cm_limit_RPCRDMA_CM_LIMIT_CAUSES, Limit::Causes),
        (rpcrdma_cm_limit_RPCRDMA_CM_LIMIT_USERS, Limit::Users),
    ]
    .into_iter()
    .fold(Limits::default(), |limits, (bit, limit)| {
        limits.with(limit, found & bit != 0)
    })
}

/// Returns how many missed calls of rdma_cm and of NFS the kernel has counted; any context.
pub(super) fn missed_calls() -> u64 {
    // SAFETY: The function has no requirements.
    unsafe { bindings::rpcrdma_cm_missed_calls() as u64 }
}

/// Has the ids reported that exist already; process context. Waits for handlers of events that are
/// running, and for the reports.
pub(super) fn search() {
    // SAFETY: The function has no requirement except its context.
    unsafe { bindings::rpcrdma_cm_search() };
}

/// Called by C code for each event.
///
/// # Safety
///
/// `data` must be the pointer of an [`Arc`] of [`Observations`] that exists during the call, and
/// `event` must be valid that long.
unsafe extern "C" fn event(data: *mut c_void, event: *const bindings::rpcrdma_cm_event) {
    // SAFETY: By the function's requirement this is the pointer of an `Arc`, which stays during the
    // call. Nobody has a mutable reference.
    let observations = unsafe { ArcBorrow::from_raw(data.cast::<Observations>()) };
    // SAFETY: By the function's requirement `event` is valid during the call.
    let event = unsafe { &*event };
    match ObservedEvent::new(event) {
        Some(event) => observations.event(&event),
        None => pr_warn_once!("ignored an event of the unknown kind {}\n", event.kind),
    }
}
