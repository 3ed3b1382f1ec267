// SPDX-License-Identifier: GPL-2.0

//! The keys and the columns of `info`, `stats`, `connections` and `history`, and the reasons of
//! `observing_reason`, each declared once.
//!
//! Each macro passes its list to another macro. The text of the files (`info.rs`, `stats.rs`,
//! `tables.rs`, `history.rs`), the parser of tools/rpcrdma-cm, and scripts/keys, which writes
//! docs/ABI and the schema of the tool, all come from these lists. A doc comment is the description
//! in both.
//!
//! Kinds: `Word`, `Number`, `Octets`, `Milliseconds`, `Microseconds`, `YesNo`, `Hex`, `Lines` (any
//! number of lines with this key). In `history` also `Date`, `OctetsChange` and `YesNoChange`.

/// `info`: groups of keys in the order of the file. A group has a heading in docs/ABI, and the
/// condition under which it is shown, as in `if let`. A key has a kind, and its value in the
/// snapshot `it`. That of `Lines` is a function that writes them.
macro_rules! info_keys {
    ($define:ident) => {
        $define! { it
            "Of every connection:" if _ = () => {
                /// The number of the connection, and the name of its directory in connection/.
                id: Number = it.number;
                /// "module": the module's own. "nfs": of the kernel's RPC-over-RDMA client or
                /// server. "user": of a program.
                origin: Word = it.origin;
            }
            "" if Some(process) = it.process => {
                /// The name of the program's thread that has connected or accepted. Only of "user".
                /// Of a connection that is older than the module: the task that created the rdma_cm
                /// id.
                command: Word = process;
                /// The process id of ``command`` in the initial pid namespace.
                pid: Number = process.pid;
            }
            "" if device = it.exchange.device => {
                /// "client" or "server": this end of the connection.
                role: Word = it.role;
                /// "resolving", "connecting", "established", "reconnecting", "closing"; of others
                /// also "disconnected": the connection has ended, and its owner has not destroyed
                /// the id yet. A client of NFS does so when the peer has answered, or after more
                /// than a minute. A server of InfiniBand or RoCE is "connecting" until RTU has
                /// arrived, or until its program tells rdma_cm that a message has.
                state: Word = it.state;
                /// The name of the RDMA device.
                device: Word = Or(device.map(|device| device.name), UNKNOWN);
                /// "infiniband", "roce" or "iwarp".
                transport: Word = Or(device.map(|device| device.transport), UNKNOWN);
                /// The address and the port of this end.
                local: Word = Or(it.exchange.local, UNKNOWN);
                /// The address and the port of the peer.
                remote: Word = Or(it.exchange.remote, UNKNOWN);
                /// 1, and one more after each loss. Each generation negotiates anew. Of a mount,
                /// this is the number that the NFS client counts; without BTF it is always 1.
                generation: Number = it.generation;
                /// The time since the connection entered its state. Of an established connection
                /// that is older than the module, the time since the module found it.
                age_ms: Milliseconds = it.age_ms;
                /// Why the connection was last lost or not established, or "none". It is the first
                /// cause, like REASON in ``history``. Each connection of the kernel's client is
                /// another one, with another id: why the one before was lost is in ``history``
                /// only.
                last_failure: Word = Or(it.failure, NONE);
            }
            "" if own = it.exchange.sent.map(|sent| it.exchange.offer_of(&sent)) => {
                /// The Send Size in the message of this end. This and the next two: the defaults
                /// where ``private=`` sends no valid message, not counting the padding of the
                /// transport.
                local_send_size: Octets = Or(own.map(|own| own.send_size.octets()), UNKNOWN);
                /// The Receive Size in the message of this end.
                local_receive_size: Octets = Or(own.map(|own| own.receive_size.octets()), UNKNOWN);
                /// R in the message of this end.
                local_remote_invalidation: YesNo =
                    Or(own.map(|own| yes_no(own.remote_invalidation)), UNKNOWN);
            }
            "" if found = PeerPrivateData::of(it) => {
                /// "present": a valid message was found. "absent": there is no Format Identifier.
                /// "rejected: REASON": a Format Identifier was found, and no valid message behind
                /// it. The reason concerns the private data; the connection is not rejected. Over
                /// InfiniBand and RoCE, zeros cannot be told from no private data: both are
                /// "absent".
                peer_private_data: Word = found;
                /// The length of the private data that the transport delivered. Over InfiniBand and
                /// RoCE it is always 56 of a REQ and 196 of a REP, padded with zeros. Over iWARP,
                /// Linux counts in eight bits: 256 octets, which a peer of MPA revision 1 can send,
                /// are delivered as none.
                peer_length: Octets = Or(it.exchange.received.map(|it| it.len), UNKNOWN);
                /// The offset of the Format Identifier, or "none".
                peer_offset: Octets = Or(found.offset, found.none);
                /// The Version field, or "none". Over InfiniBand and RoCE, the transport pads with
                /// zeros: if a peer sent ``f6ab0e18`` alone, this is 0, and peer_private_data is
                /// "rejected: unrecognized version 0".
                peer_version: Number = Or(found.version, found.none);
                /// The flags octet without R, in hexadecimal, or "none".
                peer_reserved: Hex = Or(found.reserved.map(Flags), found.none);
            }
            "" if Some(octets) = first_octets(it) => {
                /// The first eight octets, or fewer, of private data that has no Format Identifier,
                /// in hexadecimal. Shown only if ``peer_private_data`` is "absent" and an octet is
                /// not zero: the peer sent something else than a message of RFC 8797.
                peer_first_octets: Word = octets;
            }
            "" if peer = it.exchange.received.map(|received| it.exchange.offer_of(&received)) => {
                /// The Send Size in the message of the peer. Without a valid message, this and the
                /// next two are the defaults: 1024, 1024, "no"; and 4096, 4096, "no" once
                /// ``rpc_version_used`` is 2.
                peer_send_size: Octets = Or(peer.map(|peer| peer.send_size.octets()), UNKNOWN);
                /// The Receive Size in the message of the peer.
                peer_receive_size: Octets =
                    Or(peer.map(|peer| peer.receive_size.octets()), UNKNOWN);
                /// R in the message of the peer.
                peer_remote_invalidation: YesNo =
                    Or(peer.map(|peer| yes_no(peer.remote_invalidation)), UNKNOWN);
            }
            "" if (both, (client_to_server, server_to_client)) =
                (it.exchange.negotiated(it.role), it.thresholds()) => {
                /// The inline threshold of the messages of the client, as it follows from both
                /// messages (RFC 8797, section 4.2). Of a client that is older than the module: the
                /// value that the client uses, or the size in its message if that is smaller.
                client_to_server_threshold: Octets = Or(client_to_server, UNKNOWN);
                /// The inline threshold of the messages of the server, likewise.
                server_to_client_threshold: Octets = Or(server_to_client, UNKNOWN);
                /// "yes" where both messages have R set (RFC 8797, section 4.1). A Linux server
                /// invalidates remotely also where this is "no": see
                /// ``remote_invalidation_in_use``.
                remote_invalidation: YesNo =
                    Or(both.map(|both| yes_no(both.remote_invalidation)), UNKNOWN);
            }
            "Of \"nfs\" only:" if (Origin::Nfs, in_use) = (it.origin, &it.in_use) => {
                /// The length up to which the implementation sends messages inline. If a call has
                /// no Reply chunk, a Linux server sends as many pages as its queue pair takes at a
                /// time, even if the client's Receive Size is smaller. "unknown" if the kernel has
                /// no BTF.
                inline_send_in_use: Octets = Or(in_use.inline_send, UNKNOWN);
                /// The length up to which the implementation expects messages inline. A Linux
                /// server receives up to its ``max_req_size``.
                inline_receive_in_use: Octets = Or(in_use.inline_receive, UNKNOWN);
                /// Of a server: whether it is set to use Send with Invalidate, even if it has sent
                /// no reply yet. Of a client: whether the server has used it. The module concludes
                /// that when the file is read, from the segments that the client has registered for
                /// chunks and those that it has invalidated itself: "yes" if the server has
                /// invalidated some, "no" if the client had to invalidate all, "unknown" as long as
                /// its counters prove neither, for example before a call with a chunk.
                remote_invalidation_in_use: YesNo =
                    Or(in_use.remote_invalidation.map(yes_no), UNKNOWN);
            }
            "Of \"module\" only:" if Some(_) = it.traffic => {
                /// The version of RPC-over-RDMA that has been agreed upon, or "none".
                rpc_version_used: Number = Or(it.exchange.version, NONE);
            }
            "" if (Role::Client, Some(traffic)) = (it.role, &it.traffic) => {
                /// Of a client: "none", "pending", "SUCCESS", or why the first NULL call had no
                /// result, as ``failure`` in ``call`` says it.
                rpc_null: Word = traffic.null;
                /// Of a client: how long the last NULL call took that was answered, or "none".
                rpc_null_us: Microseconds = Or(traffic.null_us, NONE);
            }
            "" if Some(traffic) = &it.traffic => {
                /// Of a client, the credits that the server granted last, or "none". Of a server,
                /// the credits that it grants. These are credits of the forward direction: the
                /// calls of the client.
                credits_granted: Number = Or(traffic.forward.credits_granted, NONE);
                /// Whether there may be calls of the server to the client (RFC 8167): "yes", "no",
                /// "pending", or why the call of BIND failed, by which the client accepts them.
                reverse_direction: Word = traffic.reverse_direction;
                /// Of a client, the credits that it grants in the reverse direction. Of a server,
                /// those that the client granted last. "none" where there are none.
                reverse_credits_granted: Number = Or(traffic.reverse.credits_granted, NONE);
                /// Messages sent.
                sends: Number = traffic.sends;
                /// Messages among ``sends`` that invalidated a Steering Tag of the peer.
                sends_with_invalidate: Number = traffic.sends_with_invalidate;
                /// Steering Tags of this end that the peer invalidated.
                remote_invalidations_received: Number = traffic.remote_invalidations_received;
                /// Steering Tags that this end had to invalidate itself.
                local_invalidations: Number = traffic.local_invalidations;
                /// Calls of the client without chunks, made or answered.
                inline_calls: Number = traffic.forward.inline;
                /// Calls of the client with chunks, made or answered.
                chunked_calls: Number = traffic.forward.chunked;
                /// Calls of the server without chunks, made or answered.
                reverse_inline_calls: Number = traffic.reverse.inline;
                /// Calls of the server with chunks, made or answered.
                reverse_chunked_calls: Number = traffic.reverse.chunked;
                /// Messages received that begin with no valid transport header, and calls in a
                /// version that is not spoken.
                bad_headers: Number = traffic.bad_headers;
                /// Messages received with a valid header that match no call: an unknown XID, a
                /// duplicate, the wrong direction, another version, a reply to a call that was
                /// given up. With ``answer=0`` also each call.
                unexpected_messages: Number = traffic.unexpected_messages;
            }
            "Of any origin, none or more:" if _ = () => {
                /// A difference between the implementation and the meaning of the two messages,
                /// with the section of the RFC. The implementation is the kernel's client or server
                /// for "nfs", and the peer for "module". There, a client has a line if the server
                /// invalidates remotely although not both messages allow it. Either end has a line
                /// for the peer's replies that leave the offered Reply chunk out, with their
                /// number.
                deviation: Lines = deviations;
                /// The reason why some values of this connection are not known: it is older than
                /// the module, or the version of RPC-over-RDMA that a program speaks is not known.
                /// With ``origin: user`` there is always a note that the values follow from RFC
                /// 8797: a program may look for the message of its peer elsewhere, or use other
                /// values.
                note: Lines = notes;
            }
        }
    };
}

/// `stats`: the counters in the order of the file.
macro_rules! stats_keys {
    ($define:ident) => {
        $define! {
            /// Attempts to connect as client.
            connects,
            /// Attempts among ``connects`` that led to no connection.
            connects_failed,
            /// Attempts among ``connects`` that followed a loss.
            reconnects,
            /// Connection requests of peers (REQ). Each is counted once more, as accepted, refused
            /// or failed.
            requests,
            /// Requests that were accepted (REP sent).
            requests_accepted,
            /// Requests that were rejected because the listener had ``max=`` connections.
            requests_refused,
            /// Requests that could not be accepted: no memory, a transport that is not known, a
            /// ``private=`` that is too long for a REP, an error of rdma_cm or of the device (after
            /// the peer has given up, for example).
            requests_failed,
            /// Accepted requests that the peer never confirmed (RTU), except those that were closed
            /// locally.
            requests_unconfirmed,
            /// Connections established, in either role.
            established,
            /// Connections among ``established`` that were lost.
            lost,
            /// Connections among ``established`` that were closed locally.
            closed,
            /// Private data of peers in which a valid message of RFC 8797 was found. This and the
            /// next two count the module's own connections only.
            private_data_present,
            /// Private data of peers without a Format Identifier.
            private_data_absent,
            /// Private data of peers with a Format Identifier that no valid message follows. The
            /// connection is not rejected.
            private_data_rejected,
            /// Messages that arrived on the module's own connections.
            messages_received,
            /// Connections of others that were observed.
            observed,
            /// Connections among ``observed`` that were established later than the module was
            /// loaded.
            observed_established,
            /// Connection attempts of others that either side refused.
            observed_refused,
            /// Connection attempts of others that failed otherwise.
            observed_failed,
            /// Connections of others, of any protocol, that could not be observed. The next four
            /// keys say why.
            observed_missed,
            /// Those of the kernel's NFS among ``observed_missed``: its clients, or its servers,
            /// had ``max_observed``.
            observed_missed_nfs,
            /// Those of programs among ``observed_missed``: the programs of their user had as many
            /// as one user may have.
            observed_missed_user,
            /// Those of programs among ``observed_missed``: the share of root's programs, or that
            /// of all other users' programs, was used up.
            observed_missed_programs,
            /// Those among ``observed_missed`` for which there was no memory.
            observed_missed_memory,
            /// Events of connections of others, of any protocol, that were lost, because they came
            /// faster than they could be noted. The next four keys say which.
            observed_events_lost,
            /// Those of the kernel's NFS among ``observed_events_lost``.
            observed_events_lost_nfs,
            /// Those of root's programs among ``observed_events_lost``.
            observed_events_lost_root,
            /// Those of all other users' programs among ``observed_events_lost``.
            observed_events_lost_users,
            /// Calls of hooked functions among ``observed_events_lost``, of anybody, of which the
            /// kernel did not tell the module (``nmissed`` of its probes).
            observed_events_lost_hooks,
            /// Events of NFS and of the module that ``history`` showed, and that later events have
            /// overwritten.
            history_overwritten,
            /// Events of programs that ``history`` showed, and that later events of programs have
            /// overwritten.
            history_overwritten_programs,
            /// Those of root's programs among ``history_overwritten_programs``. Later events of
            /// root's programs have overwritten them.
            history_overwritten_root,
        }
    };
}

/// `observing_reason` in `stats`: the reasons in the order of the file, by the value of `observing`
/// that they cause. Each has its name in the module and its word for programs. Its doc comment is
/// the sentence for people. `observing` has the value of the first reason, so "no" comes first.
macro_rules! observing_reasons {
    ($define:ident) => {
        $define! {
            "no" {
                /// the module was loaded with observe=0
                Parameter = "parameter";
                /// the kernel lacks CONFIG_FPROBE
                Fprobe = "fprobe";
                /// the kernel lacks CONFIG_TRACEPOINTS
                Tracepoints = "tracepoints";
                /// the kernel lacks CONFIG_KALLSYMS
                Kallsyms = "kallsyms";
                /// rdma_cm could not be hooked, and the kernel's log has the errno
                Hooks = "hooks";
            }
            "partial" {
                /// the kernel lacks CONFIG_DEBUG_INFO_BTF or CONFIG_BPF_SYSCALL, so that the values
                /// that NFS uses are unknown
                Btf = "btf";
                /// BTF lacks members of the structures of NFS, so that values that NFS uses, or its
                /// counters, are unknown
                Members = "members";
                /// an id of rpcrdma or rdma_ucm has an unknown handler, and is not shown
                Symbols = "symbols";
                /// BTF does not have the members of the structures of rdma_ucm, so that the users
                /// of programs are unknown, and all programs have the limit of one user
                Users = "users";
                /// connections that are older than the module were not all found
                Search = "search";
                /// events were lost, so that connections and their events may be missing
                Events = "events";
                /// some causes of the ends of connections are not noticed, so that a reason in
                /// history may be a consequence
                Causes = "causes";
                /// connections of NFS were left out, because there were max_observed of them
                Nfs = "limit_nfs";
                /// connections of programs were left out, because of the limit of their user
                User = "limit_user";
                /// connections of programs were left out, because of the limit of all programs
                Programs = "limit_programs";
                /// connections were left out, because there was no memory
                Memory = "memory";
            }
        }
    };
}

/// `connections`: the columns in the order of the file, each with the key of `info` that it shows.
macro_rules! connections_columns {
    ($define:ident) => {
        $define! {
            ID = id: Number,
            ORIGIN = origin: Word,
            ROLE = role: Word,
            STATE = state: Word,
            DEVICE = device: Word,
            TRANSPORT = transport: Word,
            LOCAL = local: Word,
            REMOTE = remote: Word,
            GEN = generation: Number,
            C2S = client_to_server_threshold: Octets,
            S2C = server_to_client_threshold: Octets,
            INV = remote_invalidation: YesNo,
        }
    };
}

/// `history`: the columns in the order of the file, each with its key in the JSON of the tool.
macro_rules! history_columns {
    ($define:ident) => {
        $define! {
            /// When it happened, in seconds with six decimals, on the clock of the kernel's log
            /// (dmesg). Of a program, it may be some milliseconds too late. An end whose cause
            /// is not known at once may be recorded up to two seconds later.
            TIME = time: Word,
            /// The same moment as a date and time in UTC, with milliseconds:
            /// ``2026-11-22T01:02:03.456Z``. It is the date that the system had then.
            DATE = date: Date,
            /// The number of the connection. "-" for a request that was refused, or that failed,
            /// before it had one. Each connection of the kernel's client has a number of its own.
            ID = id: Number,
            /// As in ``connections``.
            ORIGIN = origin: Word,
            /// As in ``connections``.
            ROLE = role: Word,
            /// "established": the first generation of a connection. "re-established": a later one.
            /// Each of these is followed by "lost" or "closed" of the same ID and GEN, unless the
            /// connection still exists, that event has been overwritten, or events of others were
            /// lost. "lost": an established
            /// connection ended, because of the peer or of a failure. "closed": this end closed the
            /// connection. A "closed" of "module" without LASTED_MS: this end gave up an attempt,
            /// or does not reconnect any more. "refused": one end, or the host of the peer,
            /// rejected the attempt; REASON tells which. "failed": the attempt led to no
            /// connection for another reason.
            EVENT = event: Word,
            /// As in ``connections``.
            LOCAL = local: Word,
            /// As in ``connections``.
            REMOTE = remote: Word,
            /// As in ``connections``.
            GEN = generation: Number,
            /// Of "lost" and "closed": how long the connection had been established. "-" where it
            /// is older than the module.
            LASTED_MS = lasted_ms: Milliseconds,
            /// As in ``connections``, at that moment. Of "re-established", a value that differs
            /// from that of the generation before reads ``BEFORE>NOW``: ``4096>1024``, if the
            /// events of that one are among the latest 1024. If the kernel's client has several
            /// transports to one server, that may be the generation of another one.
            C2S = client_to_server_threshold: OctetsChange,
            /// Likewise.
            S2C = server_to_client_threshold: OctetsChange,
            /// Likewise: ``no>yes``.
            INV = remote_invalidation: YesNoChange,
            /// Why, in words: the first cause. Of "lost", it begins with "unknown cause" where only
            /// consequences were seen, such as Work Requests that were flushed.
            REASON = reason: Word,
        }
    };
}

pub(crate) use connections_columns;
pub(crate) use history_columns;
pub(crate) use info_keys;
pub(crate) use observing_reasons;
pub(crate) use stats_keys;
