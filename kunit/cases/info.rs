// SPDX-License-Identifier: GPL-2.0

//! The file `info`.

use super::{
    device,
    private_data,
    snapshot, //
};
use crate::pure::{
    text::{
        exchange::ShownTransport,
        snapshot::{
            CallTraffic,
            Cause,
            Detail,
            Null,
            Origin,
            Process,
            ReverseDirection,
            Snapshot,
            State,
            Traffic, //
        }, //
    },
    wire::negotiation::{
        InUse,
        Role, //
    }, //
};

/// A connection with its whole file.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Makes the differences to the connection of [`snapshot`].
    change: fn(&mut Snapshot),
    /// The pieces of the text.
    pub(crate) text: &'static [&'static str],
}

impl Case {
    /// Returns the connection.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut snapshot = snapshot();
        (self.change)(&mut snapshot);
        snapshot
    }
}

/// Sends 4096 octets, receives 8192, R set.
const MESSAGE: [u8; 8] = *b"\xf6\xab\x0e\x18\x01\x01\x03\x07";

/// The peer has not answered.
const PEER_UNKNOWN: &str = "\
peer_private_data: unknown
peer_length: unknown
peer_offset: unknown
peer_version: unknown
peer_reserved: unknown
peer_send_size: unknown
peer_receive_size: unknown
peer_remote_invalidation: unknown
";

const NOT_NEGOTIATED: &str = "\
client_to_server_threshold: unknown
server_to_client_threshold: unknown
remote_invalidation: unknown
";

const NOT_IN_USE: &str = "\
inline_send_in_use: unknown
inline_receive_in_use: unknown
remote_invalidation_in_use: unknown
";

/// A client that has made no call.
const NO_CALLS: &str = "\
rpc_version_used: none
rpc_null: none
rpc_null_us: none
credits_granted: none
reverse_direction: no
reverse_credits_granted: none
sends: 0
sends_with_invalidate: 0
remote_invalidations_received: 0
local_invalidations: 0
inline_calls: 0
chunked_calls: 0
reverse_inline_calls: 0
reverse_chunked_calls: 0
bad_headers: 0
unexpected_messages: 0
";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "module, client, resolving: only the peer's address is known",
        change: |it| {
            it.number = 1;
            it.state = State::Resolving;
            it.age_ms = 0;
            it.exchange.device = None;
            it.exchange.local = None;
        },
        text: &[
            "\
id: 1
origin: module
role: client
state: resolving
device: unknown
transport: unknown
local: unknown
remote: 192.0.2.2:20049
generation: 1
age_ms: 0
last_failure: none
local_send_size: unknown
local_receive_size: unknown
local_remote_invalidation: unknown
",
            PEER_UNKNOWN,
            NOT_NEGOTIATED,
            NO_CALLS,
        ],
    },
    Case {
        name: "module, client, connecting: the peer has not answered",
        change: |it| {
            it.state = State::Connecting;
            it.exchange.sent = private_data(&MESSAGE);
        },
        text: &[
            "\
id: 7
origin: module
role: client
state: connecting
device: rxe0
transport: roce
local: 192.0.2.1:35000
remote: 192.0.2.2:20049
generation: 1
age_ms: 1234
last_failure: none
local_send_size: 4096
local_receive_size: 8192
local_remote_invalidation: yes
",
            PEER_UNKNOWN,
            NOT_NEGOTIATED,
            NO_CALLS,
        ],
    },
    Case {
        name: "module, client, established: a message, version 2, calls",
        change: |it| {
            it.exchange.sent = private_data(&MESSAGE);
            it.exchange.received = private_data(b"\xf6\xab\x0e\x18\x01\x01\x00\xff");
            it.exchange.version = Some(2);
            it.in_use.remote_invalidation = Some(true);
            it.traffic = Some(Traffic {
                null: Null::Answered,
                null_us: Some(321),
                forward: CallTraffic {
                    credits_granted: Some(64),
                    inline: 15,
                    chunked: 16,
                },
                sends: 11,
                sends_with_invalidate: 12,
                remote_invalidations_received: 13,
                local_invalidations: 14,
                reverse_direction: ReverseDirection::Yes,
                reverse: CallTraffic {
                    credits_granted: Some(18),
                    inline: 19,
                    chunked: 20,
                },
                bad_headers: 17,
                unexpected_messages: u64::MAX,
                missing_reply_chunks: 0,
            });
        },
        text: &[include_str!("info/established.txt")],
    },
    Case {
        name: "module, client, established: no private data in version 2, the NULL call pending",
        change: |it| {
            it.exchange.device = device("siw0", ShownTransport::Iwarp);
            it.exchange.local = "[2001:db8::1]:35000".parse().ok();
            it.exchange.remote = "[fe80::2%3]:20049".parse().ok();
            it.exchange.sent = private_data(&[]);
            it.exchange.received = private_data(&[]);
            it.exchange.version = Some(2);
            it.traffic = Some(Traffic {
                null: Null::Pending,
                reverse_direction: ReverseDirection::Pending,
                ..Traffic::default()
            });
        },
        text: &[include_str!("info/no_private_data.txt")],
    },
    Case {
        name: "module, client, reconnecting: the cause has a detail",
        change: |it| {
            it.state = State::Reconnecting;
            it.generation = 4_294_967_295;
            it.failure = Some(Cause {
                text: "the queue pair failed",
                detail: Some(Detail::Reason(c"local length error")),
            });
            it.exchange.device = None;
            it.exchange.local = None;
        },
        text: &[
            "\
id: 7
origin: module
role: client
state: reconnecting
device: unknown
transport: unknown
local: unknown
remote: 192.0.2.2:20049
generation: 4294967295
age_ms: 1234
last_failure: the queue pair failed: local length error
local_send_size: unknown
local_receive_size: unknown
local_remote_invalidation: unknown
",
            PEER_UNKNOWN,
            NOT_NEGOTIATED,
            NO_CALLS,
        ],
    },
    Case {
        name: "module, client, closing: the responder uses what was not agreed upon",
        change: |it| {
            it.state = State::Closing;
            it.exchange.sent = private_data(b"\xf6\xab\x0e\x18\x01\x00\x03\x03");
            it.exchange.received = private_data(&MESSAGE);
            it.exchange.version = Some(1);
            it.in_use.remote_invalidation = Some(true);
            it.traffic = Some(Traffic {
                null: Null::Failed(Cause {
                    text: "the responder answered",
                    detail: Some(Detail::Reason(c"PROG_UNAVAIL")),
                }),
                reverse_direction: ReverseDirection::Failed(Cause {
                    text: "the responder answered",
                    detail: Some(Detail::Reason(c"PROC_UNAVAIL")),
                }),
                remote_invalidations_received: 1,
                missing_reply_chunks: 2,
                ..Traffic::default()
            });
        },
        text: &[include_str!("info/deviating_responder.txt")],
    },
    Case {
        name: "module, server, connecting: Reserved bits, and other data before the message",
        change: |it| {
            it.role = Role::Server;
            it.state = State::Connecting;
            it.exchange.sent = private_data(&MESSAGE);
            it.exchange.received = private_data(b"\x00\x00\x00\xf6\xab\x0e\x18\x01\xff\x01\x02");
            it.traffic = Some(Traffic {
                forward: CallTraffic {
                    credits_granted: Some(8),
                    ..CallTraffic::default()
                },
                ..Traffic::default()
            });
        },
        text: &[include_str!("info/reserved_bits.txt")],
    },
    Case {
        name: "module, server, established: another version of the message",
        change: |it| {
            it.role = Role::Server;
            it.exchange.sent = private_data(&MESSAGE);
            it.exchange.received = private_data(b"\xf6\xab\x0e\x18\x02\x01\x03\x03\x00");
        },
        text: &[include_str!("info/another_version.txt")],
    },
    Case {
        name: "nfs, client, established: sends more than the threshold, expects another one",
        change: |it| {
            it.origin = Origin::Nfs;
            it.exchange.device = device("mlx5_0", ShownTransport::InfiniBand);
            it.exchange.sent = private_data(&MESSAGE);
            it.exchange.received = private_data(&[0; 196]);
            it.in_use = InUse {
                inline_send: Some(4096),
                inline_receive: Some(8192),
                remote_invalidation: None,
                ..InUse::default()
            };
            it.traffic = None;
        },
        text: &[include_str!("info/nfs_above_threshold.txt")],
    },
    Case {
        name: "nfs, client, established: older than the module",
        change: |it| {
            it.origin = Origin::Nfs;
            it.exchange.sent = private_data(&MESSAGE);
            it.in_use.inline_send = Some(5000);
            it.traffic = None;
            it.note = Some("older than the module, so that what was received is not known");
        },
        text: &[
            "\
id: 7
origin: nfs
role: client
state: established
device: rxe0
transport: roce
local: 192.0.2.1:35000
remote: 192.0.2.2:20049
generation: 1
age_ms: 1234
last_failure: none
local_send_size: 4096
local_receive_size: 8192
local_remote_invalidation: yes
",
            PEER_UNKNOWN,
            "\
client_to_server_threshold: 4096
server_to_client_threshold: unknown
remote_invalidation: unknown
inline_send_in_use: 5000
inline_receive_in_use: unknown
remote_invalidation_in_use: unknown
note: older than the module, so that what was received is not known
",
        ],
    },
    Case {
        name: "nfs, server, disconnected: a message that is cut off",
        change: |it| {
            it.origin = Origin::Nfs;
            it.role = Role::Server;
            it.state = State::Disconnected;
            it.generation = 3;
            it.failure = Some(Cause {
                text: "disconnected",
                detail: None,
            });
            it.exchange.sent = private_data(b"\xf6\xab\x0e\x18\x01\x00\x03\x03");
            it.exchange.received = private_data(b"\x00\xf6\xab\x0e\x18\x01");
            it.in_use = InUse {
                inline_send: Some(1024),
                inline_receive: Some(4096),
                remote_invalidation: Some(true),
                ..InUse::default()
            };
            it.traffic = None;
        },
        text: &[include_str!("info/nfs_truncated.txt")],
    },
    Case {
        name: "user, client, closing: a command with an octet that is no letter",
        change: |it| {
            it.number = u64::MAX;
            it.origin = Origin::User;
            it.state = State::Closing;
            it.age_ms = 123_456_789_012;
            it.exchange.sent = private_data(&[0; 56]);
            it.process = Some(Process {
                pid: 4711,
                command: *b"a\nstate: x\xff y\0\0\0",
            });
            it.traffic = None;
        },
        text: &[
            "\
id: 18446744073709551615
origin: user
command: a?state: x? y
pid: 4711
role: client
state: closing
device: rxe0
transport: roce
local: 192.0.2.1:35000
remote: 192.0.2.2:20049
generation: 1
age_ms: 123456789012
last_failure: none
local_send_size: 1024
local_receive_size: 1024
local_remote_invalidation: no
",
            PEER_UNKNOWN,
            NOT_NEGOTIATED,
            "\
note: the values follow from RFC 8797: what the program makes of the messages is not known
",
        ],
    },
    Case {
        name: "user, server, established: the command fills its field",
        change: |it| {
            it.origin = Origin::User;
            it.role = Role::Server;
            it.exchange.sent = private_data(&MESSAGE);
            it.exchange.received = private_data(&MESSAGE);
            it.process = Some(Process {
                pid: 1,
                command: *b"ganesha.nfsd-123",
            });
            it.traffic = None;
        },
        text: &[include_str!("info/user.txt")],
    },
];

/// Private data of the peer, and its part of the file.
struct Kind {
    octets: Option<&'static [u8]>,
    lines: &'static str,
    /// The lines of the negotiated values if this side is the client.
    client: &'static str,
    /// The lines of the negotiated values if this side is the server.
    server: &'static str,
}

/// This side sends 2048 octets, receives 8192 and supports remote invalidation.
const SENT: [u8; 8] = *b"\xf6\xab\x0e\x18\x01\x01\x01\x07";

const DEFAULTS: &str = "\
client_to_server_threshold: 1024
server_to_client_threshold: 1024
remote_invalidation: no
";

const KINDS: &[Kind] = &[
    Kind {
        octets: None,
        lines: PEER_UNKNOWN,
        client: NOT_NEGOTIATED,
        server: NOT_NEGOTIATED,
    },
    Kind {
        octets: Some(&[0; 56]),
        lines: "\
peer_private_data: absent
peer_length: 56
peer_offset: none
peer_version: none
peer_reserved: none
peer_send_size: 1024
peer_receive_size: 1024
peer_remote_invalidation: no
",
        client: DEFAULTS,
        server: DEFAULTS,
    },
    // Another format, with its first eight octets.
    Kind {
        octets: Some(b"\x00ABCDEFGHI"),
        lines: "\
peer_private_data: absent
peer_length: 10
peer_offset: none
peer_version: none
peer_reserved: none
peer_first_octets: 0041424344454647
peer_send_size: 1024
peer_receive_size: 1024
peer_remote_invalidation: no
",
        client: DEFAULTS,
        server: DEFAULTS,
    },
    Kind {
        octets: Some(b"\xf6\xab\x0e\x18\x01\x81\x03\x00"),
        lines: "\
peer_private_data: present
peer_length: 8
peer_offset: 0
peer_version: 1
peer_reserved: 0x80
peer_send_size: 4096
peer_receive_size: 1024
peer_remote_invalidation: yes
",
        client: "\
client_to_server_threshold: 1024
server_to_client_threshold: 4096
remote_invalidation: yes
",
        server: "\
client_to_server_threshold: 4096
server_to_client_threshold: 1024
remote_invalidation: yes
",
    },
    Kind {
        octets: Some(b"\x00\x00\xf6\xab\x0e\x18\x00\x01\x03\x03"),
        lines: "\
peer_private_data: rejected: unrecognized version 0
peer_length: 10
peer_offset: 2
peer_version: 0
peer_reserved: none
peer_send_size: 1024
peer_receive_size: 1024
peer_remote_invalidation: no
",
        client: DEFAULTS,
        server: DEFAULTS,
    },
    Kind {
        octets: Some(b"\xf6\xab\x0e\x18\x01\x01\x03"),
        lines: "\
peer_private_data: rejected: truncated, 7 of 8 octets
peer_length: 7
peer_offset: 0
peer_version: none
peer_reserved: none
peer_send_size: 1024
peer_receive_size: 1024
peer_remote_invalidation: no
",
        client: DEFAULTS,
        server: DEFAULTS,
    },
];

const STATES: &[(State, &str)] = &[
    (State::Resolving, "resolving"),
    (State::Connecting, "connecting"),
    (State::Established, "established"),
    (State::Reconnecting, "reconnecting"),
    (State::Disconnected, "disconnected"),
    (State::Closing, "closing"),
];

/// An origin and a role, with their names and the end of the file.
type Whose = (Origin, &'static str, Role, &'static str, &'static str);

const OF_PROGRAM: &str = "\
note: the values follow from RFC 8797: what the program makes of the messages is not known
";

const WHOSE: &[Whose] = &[
    (Origin::Module, "module", Role::Client, "client", NO_CALLS),
    (
        Origin::Module,
        "module",
        Role::Server,
        "server",
        "\
rpc_version_used: none
credits_granted: none
reverse_direction: no
reverse_credits_granted: none
sends: 0
sends_with_invalidate: 0
remote_invalidations_received: 0
local_invalidations: 0
inline_calls: 0
chunked_calls: 0
reverse_inline_calls: 0
reverse_chunked_calls: 0
bad_headers: 0
unexpected_messages: 0
",
    ),
    (Origin::Nfs, "nfs", Role::Client, "client", NOT_IN_USE),
    (Origin::Nfs, "nfs", Role::Server, "server", NOT_IN_USE),
    (Origin::User, "user", Role::Client, "client", OF_PROGRAM),
    (Origin::User, "user", Role::Server, "server", OF_PROGRAM),
];

/// Calls `check` with a connection of every origin, role, state and kind of private data, and with
/// the pieces of its whole file.
pub(crate) fn each_combination<E>(
    mut check: impl FnMut(&Snapshot, &[&str]) -> Result<(), E>,
) -> Result<(), E> {
    let mut snapshot = snapshot();
    snapshot.exchange.sent = private_data(&SENT);
    for &(origin, origin_word, role, role_word, end) in WHOSE {
        snapshot.origin = origin;
        snapshot.role = role;
        snapshot.traffic = (origin == Origin::Module).then(Traffic::default);
        for kind in KINDS {
            snapshot.exchange.received = kind.octets.and_then(private_data);
            for &(state, state_word) in STATES {
                snapshot.state = state;
                let pieces = [
                    "id: 7\norigin: ",
                    origin_word,
                    "\nrole: ",
                    role_word,
                    "\nstate: ",
                    state_word,
                    "\n\
device: rxe0
transport: roce
local: 192.0.2.1:35000
remote: 192.0.2.2:20049
generation: 1
age_ms: 1234
last_failure: none
local_send_size: 2048
local_receive_size: 8192
local_remote_invalidation: yes
",
                    kind.lines,
                    match role {
                        Role::Client => kind.client,
                        Role::Server => kind.server,
                    },
                    end,
                ];
                check(&snapshot, &pieces)?;
            }
        }
    }
    Ok(())
}
