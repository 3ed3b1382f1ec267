// SPDX-License-Identifier: GPL-2.0

//! The meaning of an event of rdma_cm for an id of others, by what is known of the id.

use super::negotiation::Role;

/// The owner of an id.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum User {
    /// The kernel's RPC-over-RDMA client, xprtrdma.
    Client,
    /// The kernel's RPC-over-RDMA server, svcrdma.
    Server,
    /// A program. Its protocol is not known.
    Program,
}

/// The kind of an event, as far as its meaning depends on that.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// The handler of a server was called with a REQ. `refused`: the handler has refused it.
    Request { refused: bool },
    /// A client sends REQ.
    Connect,
    /// A server sends REP, or a program as client sends RTU.
    Accept,
    /// The connection is established.
    Established,
    /// The peer has answered, or the connection was not established, or has ended.
    Other,
    /// Only evidence of the end of the connection, if there is one.
    Evidence,
    /// The search found the id. It has a role if it is a connection, or about to become one.
    Existing { role: Option<Role> },
    /// The id is about to be destroyed.
    Destroyed,
}

/// An event of an id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) user: User,
    pub(crate) step: Step,
    /// Whether the event shows that the id speaks RPC-over-RDMA: by its owner, by private data, or
    /// by the server's port.
    pub(crate) speaks: bool,
}

/// The present knowledge of an id.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Known {
    Nothing,
    /// A program's id that connects, and whose protocol is not known yet.
    Connecting,
    /// A request that its program has not accepted yet. `speaks`: it speaks RPC-over-RDMA.
    Requested {
        speaks: bool,
    },
    /// The id is observed.
    Observed,
}

/// The meaning of an event for its id. An id is undecided while it is [`Known::Connecting`] or
/// [`Known::Requested`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Meaning {
    /// Nothing changes.
    Nothing,
    /// The id is undecided from this event on, and nothing else that was known of it is true.
    BeginUndecided(Role),
    /// The undecided id notes the event.
    NoteUndecided,
    /// The undecided id is forgotten: its connection is established, and speaks another protocol,
    /// or its accept was missed.
    Forget,
    /// The id is observed from this event on, and nothing else that was known of it is true.
    Observe(Role),
    /// The undecided id is observed from this event on.
    ObserveUndecided,
    /// The kernel's server accepts a request that was not reported. The id is observed from this
    /// event on if the request came before the probes did.
    ObserveOlder,
    /// The observed id notes the event.
    Note,
    /// The observed id notes evidence of its end.
    Learn,
    /// The server's handler has refused a request, which is counted and recorded. Its id is
    /// destroyed at once.
    Refuse,
    /// Nothing that is known of the id is true any more.
    End,
}

impl Event {
    /// Returns the meaning of the event for its id, of which `known` is known.
    pub(crate) fn meaning(self, known: Known) -> Meaning {
        use Known::*;
        use Step::*;

        match (known, self.step) {
            (_, Destroyed) => Meaning::End,
            (_, Request { refused: true }) if self.speaks => Meaning::Refuse,
            (_, Request { refused: true }) => Meaning::Nothing,
            // Anybody can send a request to a program, so it has to be accepted first.
            (_, Request { refused: false }) if self.user == User::Program => {
                Meaning::BeginUndecided(Role::Server)
            }
            (_, Request { refused: false }) => Meaning::Observe(Role::Server),

            (Observed, Connect | Accept | Established | Other) => Meaning::Note,
            (Observed, Evidence) => Meaning::Learn,
            (Observed, Existing { .. }) => Meaning::Nothing,

            (_, Connect) if self.speaks => Meaning::Observe(Role::Client),
            (_, Connect) => Meaning::BeginUndecided(Role::Client),

            (Connecting | Requested { .. }, Evidence | Existing { .. }) => Meaning::Nothing,
            (Requested { speaks: true }, Accept) => Meaning::ObserveUndecided,
            (Connecting | Requested { .. }, Accept | Established | Other) if self.speaks => {
                Meaning::ObserveUndecided
            }
            (Connecting, Accept) | (Connecting | Requested { .. }, Established) => Meaning::Forget,
            (Requested { speaks: false }, Accept) | (Connecting | Requested { .. }, Other) => {
                Meaning::NoteUndecided
            }

            (Nothing, Existing { role: Some(role) }) if self.speaks => Meaning::Observe(role),
            (Nothing, Accept) if self.user == User::Server => Meaning::ObserveOlder,
            (Nothing, Accept | Established | Other | Evidence | Existing { .. }) => {
                Meaning::Nothing
            }
        }
    }
}
