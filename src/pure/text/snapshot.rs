// SPDX-License-Identifier: GPL-2.0

//! Connections and listeners at one moment, as plain values.

use core::{
    ffi::CStr,
    fmt::{
        self,
        Write, //
    },
    net::SocketAddr, //
};

use super::exchange::Exchange;
use crate::pure::wire::{
    discarded::Fault,
    negotiation::{
        InUse,
        Role, //
    },
    private_data::Offer, //
};

/// The owner of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Origin {
    /// This module.
    Module,
    /// The kernel's RPC-over-RDMA client or server.
    Nfs,
    /// A user process.
    User,
}

impl Origin {
    /// Returns its name in the files of debugfs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::Nfs => "nfs",
            Self::User => "user",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum State {
    /// Resolving the peer's address and the route to it.
    Resolving,
    /// Waiting for the peer's REP or, on the server's side, for its RTU.
    Connecting,
    Established,
    /// Lost; the client is going to connect again.
    Reconnecting,
    /// Lost, but its id still exists. Only observed connections have this state.
    Disconnected,
    /// Ended; the connection is removed when its ids have been destroyed.
    Closing,
}

impl State {
    /// Returns its name in the files of debugfs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Resolving => "resolving",
            Self::Connecting => "connecting",
            Self::Established => "established",
            Self::Reconnecting => "reconnecting",
            Self::Disconnected => "disconnected",
            Self::Closing => "closing",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why a connection was lost or not established, or why a call failed, in words.
#[derive(Clone, Copy)]
pub(crate) struct Cause {
    pub(crate) text: &'static str,
    pub(crate) detail: Option<Detail>,
}

/// The part of a [`Cause`] that only the kernel, the peer or the message can tell.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Detail {
    /// The reason that the kernel or the peer gave.
    Reason(&'static CStr),
    /// The message that came instead of a reply.
    Message(Fault),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)?;
        match self.detail {
            Some(Detail::Reason(reason)) => match reason.to_str() {
                Ok(reason) => write!(f, ": {reason}"),
                Err(_) => Ok(()),
            },
            Some(Detail::Message(fault)) => write!(f, " {fault}"),
            None => Ok(()),
        }
    }
}

/// The user process that owns an id.
#[derive(Clone, Copy)]
pub(crate) struct Process {
    /// Its process id in the initial pid namespace.
    pub(crate) pid: i32,
    /// Its name (`comm`): `TASK_COMM_LEN` octets, padded with NUL.
    pub(crate) command: [u8; 16],
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A process chooses its name freely: a newline in it could forge a line of `info`.
        self.command
            .iter()
            .take_while(|&&octet| octet != 0)
            .map(|&octet| match octet {
                b' '..=b'~' => char::from(octet),
                _ => '?',
            })
            .try_for_each(|letter| f.write_char(letter))
    }
}

/// The result of the NULL call that a client makes first.
#[derive(Clone, Copy, Default)]
pub(crate) enum Null {
    /// No NULL call was made.
    #[default]
    None,
    Pending,
    Answered,
    Failed(Cause),
}

impl fmt::Display for Null {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Pending => f.write_str("pending"),
            Self::Answered => f.write_str("SUCCESS"),
            Self::Failed(cause) => cause.fmt(f),
        }
    }
}

/// Whether the server may make calls on the connection: the reverse direction (RFC 8167, section
/// 2.2).
#[derive(Clone, Copy, Default)]
pub(crate) enum ReverseDirection {
    /// Not on this connection. At a server's end also: the client has not said so yet.
    #[default]
    No,
    /// A client is about to tell its server.
    Pending,
    Yes,
    /// The client could not tell its server.
    Failed(Cause),
}

impl fmt::Display for ReverseDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::No => f.write_str("no"),
            Self::Pending => f.write_str("pending"),
            Self::Yes => f.write_str("yes"),
            Self::Failed(cause) => cause.fmt(f),
        }
    }
}

/// Counters of the calls in one direction.
#[derive(Clone, Copy, Default)]
pub(crate) struct CallTraffic {
    /// The credits that the responder granted last (RFC 8166, section 3.3.1).
    pub(crate) credits_granted: Option<u32>,
    /// Calls without any chunk (RFC 8166, section 3.5.1).
    pub(crate) inline: u64,
    /// Calls with chunks (RFC 8166, section 3.5.3).
    pub(crate) chunked: u64,
}

/// Counters of the messages on one connection (RFC 8166), and the result of the NULL call.
#[derive(Clone, Copy, Default)]
pub(crate) struct Traffic {
    pub(crate) null: Null,
    /// The round-trip time of the latest NULL call, in microseconds.
    pub(crate) null_us: Option<i64>,
    /// The calls of the client.
    pub(crate) forward: CallTraffic,
    pub(crate) reverse_direction: ReverseDirection,
    /// The calls of the server (RFC 8167, sections 4.1 and 5).
    pub(crate) reverse: CallTraffic,
    /// Messages sent.
    pub(crate) sends: u64,
    /// Messages among `sends` that invalidated a Steering Tag of the peer (RFC 8797, section 4.1).
    pub(crate) sends_with_invalidate: u64,
    /// Messages received that invalidated a Steering Tag of this side.
    pub(crate) remote_invalidations_received: u64,
    /// Steering Tags that this side had to invalidate itself.
    pub(crate) local_invalidations: u64,
    /// Messages received without a valid transport header, or with one of a version that this end
    /// does not speak (RFC 8166, section 4.5).
    pub(crate) bad_headers: u64,
    /// Messages received with a valid header that match no call: unknown XIDs, duplicates, wrong
    /// directions.
    pub(crate) unexpected_messages: u64,
    /// Replies that came inline and left out the Reply chunk that was offered (RFC 8166, section
    /// 4.3.3).
    pub(crate) missing_reply_chunks: u64,
}

/// A connection at one moment.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot {
    pub(crate) number: u64,
    pub(crate) origin: Origin,
    pub(crate) role: Role,
    pub(crate) state: State,
    /// The time since the connection entered its state, in milliseconds.
    pub(crate) age_ms: i64,
    /// Of the module's own connections: starts at 1, and grows by one each time that the client
    /// connects again after a loss. Of the kernel's client: the number that NFS counts.
    pub(crate) generation: u32,
    /// Why the connection was last lost or not established.
    pub(crate) failure: Option<Cause>,
    pub(crate) exchange: Exchange,
    /// The user process that owns the connection; [`None`] also if that is not known.
    pub(crate) process: Option<Process>,
    /// The values in use by the kernel's client or server. Of the module's own connections, those
    /// in use by the peer.
    pub(crate) in_use: InUse,
    /// The counters of messages; only of the module's own connections.
    pub(crate) traffic: Option<Traffic>,
    /// Why some values are not known; only of observed connections.
    pub(crate) note: Option<&'static str>,
}

impl Snapshot {
    /// Returns both inline thresholds, client-to-server first, in octets; [`None`] if not known.
    ///
    /// If a client is older than the module, the messages are not both known. Then the thresholds
    /// are the values in use by the client, limited to its offer: Linux sends its sizes rounded
    /// down to multiples of 1024, and uses the exact ones.
    pub(crate) fn thresholds(&self) -> (Option<u32>, Option<u32>) {
        match self.exchange.negotiated(self.role) {
            Some(negotiated) => (
                Some(negotiated.client_to_server_threshold),
                Some(negotiated.server_to_client_threshold),
            ),
            None if self.note.is_some() && self.role == Role::Client => {
                let own = self.exchange.sent.map(|sent| self.exchange.offer_of(&sent));
                let up_to = |in_use: Option<u32>, size: Option<u32>| {
                    in_use.map(|in_use| size.map_or(in_use, |size| in_use.min(size)))
                };
                (
                    up_to(
                        self.in_use.inline_send,
                        own.map(|own| own.send_size.octets()),
                    ),
                    up_to(
                        self.in_use.inline_receive,
                        own.map(|own| own.receive_size.octets()),
                    ),
                )
            }
            None => (None, None),
        }
    }
}

/// A listener at one moment.
#[derive(Clone, Copy)]
pub(crate) struct ListenerSnapshot {
    pub(crate) number: u64,
    pub(crate) address: SocketAddr,
    /// The offer that it sends in a REP, if the device supports remote invalidation. Otherwise the
    /// REP has R cleared.
    pub(crate) offer: Offer,
    /// How many connections count against `max`.
    pub(crate) connections: u32,
    /// How many connections it may have at a time.
    pub(crate) max: u32,
}
