// SPDX-License-Identifier: GPL-2.0

//! The verdicts: sentences that follow only from the values that were read.

use std::{
    cmp::Reverse,
    fmt, //
};

use serde::Serialize;

use crate::{
    parse::{
        info::{
            Info,
            Report, //
        },
        mounts::{
            Mount,
            Stats, //
        },
        stats::Observing,
        transports::Transport, //
    },
    remedy,
    render::{
        escape,
        octets, //
    },
    target, //
};

/// The program of NFS (RFC 5662, section 2).
const NFS_PROGRAM: u64 = 100_003;

/// The Linux client ends a transport after this time without a call (`RPCRDMA_IDLE_DISC_TO`), and
/// connects again with the next call.
pub(crate) const IDLE_SECONDS: u64 = 300;

/// The time in which losses count, in seconds.
pub(crate) const HOUR: u64 = 3600;

/// After so many calls for each transport, the growth of its buffers explains less than one KiB a
/// call: 128 slots have two buffers each, which begin with 2 KiB.
const GROWTH_CALLS: u64 = 10_000;
const HARD_WAY_OCTETS: u64 = 1024;

/// The sizes of an end that sends no private data (RFC 8797, section 5.1), and the least ones that
/// its message can have.
const DEFAULT_SIZE: u64 = 1024;

/// The sizes of the kernel's NFS, at both ends, unless an administrator changes them.
const LINUX_SIZE: u64 = 4096;

/// How bad it is, mildest first. A note is printed behind "fine", because both can hold at once.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Severity {
    /// Worth knowing, but no reason to act.
    Note,
    Fine,
    /// Not enough could be read.
    Unknown,
    /// It works worse than it could.
    Degraded,
    /// It does not work as requested.
    Failed,
}

impl Severity {
    /// The word in a sentence.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Fine => "fine",
            Self::Unknown => "unknown",
            Self::Degraded => "degraded",
            Self::Failed => "failed",
        }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident: $name:literal,)*) => {
        /// The kinds of verdicts. Their names are stable, because monitoring relies on them.
        #[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
        pub(crate) enum Code {
            $($(#[$doc])* #[serde(rename = $name)] $code,)*
        }

        impl Code {
            pub(crate) const ALL: &[Self] = &[$(Self::$code,)*];

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)*
                }
            }
        }
    };
}

codes! {
    Fine: "fine",
    NoPrivateData: "no-private-data",
    SmallReceiveSize: "small-receive-size",
    SmallSendSize: "small-send-size",
    SmallOwnSize: "small-own-size",
    LessInUse: "less-in-use",
    LostOften: "lost-often",
    FewCredits: "few-credits",
    Backlog: "backlog",
    Registrations: "registrations",
    InvalidatesUnoffered: "invalidates-unoffered",
    NotRdma: "not-rdma",
    NotConnected: "not-connected",
    Deviates: "deviates",
    NoAnswer: "no-answer",
    BadReply: "bad-reply",
    ProgramVersion: "program-version",
    Unreachable: "unreachable",
    Unknown: "unknown",
}

/// One sentence.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct Verdict {
    pub(crate) code: Code,
    pub(crate) severity: Severity,
    pub(crate) sentence: String,
    /// The remedy and its host, if they are known.
    pub(crate) remedy: Option<String>,
}

impl Verdict {
    /// The sentence with its severity, unless it begins with that word.
    pub(crate) fn in_short(&self) -> String {
        let word = self.severity.word();
        match escape(&self.sentence) {
            sentence if sentence.starts_with(word) => sentence,
            sentence => format!("{word}: {sentence}"),
        }
    }

    fn with(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

fn verdict(code: Code, severity: Severity, sentence: impl Into<String>) -> Verdict {
    Verdict {
        code,
        severity,
        sentence: sentence.into(),
        remedy: None,
    }
}

/// What is known of a mount.
pub(crate) struct Facts<'a> {
    pub(crate) mount: &'a Mount,
    /// All mounts of its namespace.
    pub(crate) mounts: &'a [Mount],
    pub(crate) stats: Option<&'a Stats>,
    /// The age of the oldest mount that uses the same transports, in seconds. Their counters are at
    /// least as old.
    pub(crate) age_seconds: Option<u64>,
    /// The connections of the kernel's NFS client to the mount's server, or `None` if the files of
    /// the module could not be read.
    pub(crate) connections: Option<&'a [Info]>,
    /// Whether the module observes others, or `None` if it does not say.
    pub(crate) observing: Option<&'a Observing>,
    /// The RDMA transports to the server.
    pub(crate) transports: &'a [Transport],
    /// The number of the RDMA transports of all mounts of that server. Each version has its own.
    pub(crate) transports_of_server: u64,
    /// How many connections to that server were lost in the last hour, by `history`, or `None` if
    /// it does not say ([`Module::lost_in_an_hour`](crate::mount_report::Module)).
    pub(crate) lost_in_an_hour: Option<u64>,
    /// Why the last connection to that server was lost, or the last attempt to make one failed, if
    /// that is the last event of the server in `history`.
    pub(crate) last_failure: Option<&'a str>,
}

/// The verdicts on a mount, worst first: at least one.
pub(crate) fn of_mount(facts: &Facts<'_>) -> Vec<Verdict> {
    if !facts.mount.is_rdma() {
        return finish(not_rdma(facts.mount, facts.mounts).into_iter().collect());
    }
    let mut verdicts: Vec<Verdict> = lost_often(facts).into_iter().collect();
    verdicts.extend(few_credits(facts.transports));
    verdicts.extend(backlog(facts.transports));
    verdicts.extend(facts.stats.map(registrations).unwrap_or_default());
    // A connection that has ended is shown until its peer has answered, or for more than a minute.
    // Without the transports, nothing else shows that calls may wait.
    let has_ended = |info: &&Info| {
        info.state.as_deref() == Some("disconnected")
            && (!facts.transports.is_empty()
                || info.last_failure.as_deref() == Some("disconnected by this end"))
    };
    let connections: Option<Vec<Info>> = facts.connections.map(|all| {
        all.iter()
            .filter(|info| !has_ended(info))
            .cloned()
            .collect()
    });
    // A connection that exists says more.
    let waits = waits_for_connection(facts)
        .filter(|_| connections.as_ref().is_none_or(|all| all.is_empty()));
    match connections.as_deref() {
        None => verdicts.extend(thresholds(facts).unwrap_or_else(|| {
            vec![verdict(
                Code::Unknown,
                Severity::Unknown,
                "unknown what it negotiated: the module's files could not be read",
            )
            .with(remedy::load(facts.mount.address.as_deref()))]
        })),
        Some(connections) => {
            let hidden = facts.observing.filter(|observing| observing.hides_clients);
            match hidden.and_then(Observing::sentence) {
                // The connections of the mount may be missing.
                Some(sentence) if connections.is_empty() => verdicts.push(
                    verdict(
                        Code::Unknown,
                        Severity::Unknown,
                        format!("unknown what it negotiated: {sentence}"),
                    )
                    .with(remedy::connect(facts.mount.address.as_deref())),
                ),
                _ if waits.is_some() => {}
                _ => verdicts.extend(not_connected(connections)),
            }
            verdicts.extend(of_all(connections, facts.stats));
        }
    }
    verdicts.extend(waits);
    finish(verdicts)
}

/// `less-in-use`, without the module: the kernel shows the inline thresholds, and one is below the
/// usual one. `None` if it does not show them for each connected transport.
fn thresholds(facts: &Facts<'_>) -> Option<Vec<Verdict>> {
    let smallest = |threshold: fn(&Transport) -> Option<u64>| {
        let connected = facts.transports.iter().filter(|one| one.connected);
        connected.map(threshold).min().flatten()
    };
    let found = [
        ("calls", smallest(|transport| transport.inline_send)?),
        ("replies", smallest(|transport| transport.inline_recv)?),
    ];
    let small = found.into_iter().filter(|(_, size)| *size < LINUX_SIZE);
    let verdicts = small.map(|(messages, size)| {
        let cause = format!("one end has less than Linux' {LINUX_SIZE}");
        verdict(
            Code::LessInUse,
            Severity::Degraded,
            by_chunks(messages, size, &cause),
        )
        .with(remedy::load(facts.mount.address.as_deref()))
    });
    Some(verdicts.collect())
}

/// The verdicts on one connection, worst first: at least one. `sent` is the private data of this
/// end.
pub(crate) fn of_connection(info: &Info, sent: &[u8]) -> Vec<Verdict> {
    let mut verdicts = of_info(info);
    verdicts.extend(no_own_private_data(info, sent));
    finish(verdicts)
}

/// The verdicts on the peer `target` that was probed, worst first: at least one.
///
/// `unreachable`: the report says so.
pub(crate) fn of_report(target: &str, report: &Report) -> Vec<Verdict> {
    let mut verdicts = match report.reachable {
        Some(true) => of_info(&report.info),
        Some(false) => {
            let reason = report.reason.as_deref().unwrap_or("no reason is known");
            return vec![verdict(
                Code::Unreachable,
                Severity::Failed,
                format!("unreachable: {reason}"),
            )
            .with(remedy::listen(target, reason, None))];
        }
        None => {
            return vec![verdict(
                Code::Unknown,
                Severity::Unknown,
                "unknown: there is no report of the probe",
            )
            .with("on this host: run it again, alone")]
        }
    };
    verdicts.extend(no_answer(report));
    verdicts.extend(program_version(report));
    finish(verdicts)
}

/// The rules on one connection. All of them apply to each connection of a mount, to that of `show`
/// and to that of a probe. A rule that is for some ends only says so.
///
/// The other rules need more than a connection: those of [`of_mount`] and [`of_report`].
fn of_info(info: &Info) -> Vec<Verdict> {
    let rules = [
        no_private_data,
        sizes,
        less_in_use,
        older,
        invalidates_unoffered,
        deviates,
        bad_reply,
    ];
    rules.iter().flat_map(|rule| rule(info)).collect()
}

/// The verdicts on all connections to the server of a mount. A sentence that finds a fault of some
/// of them only has their number: another mount of that server can have other connections.
///
/// With the counters of the mount, the sentence of `invalidates-unoffered` has N of M: M segments
/// were registered for chunks, and the client invalidated M - N of them itself.
fn of_all(connections: &[Info], stats: Option<&Stats>) -> Vec<Verdict> {
    let all: Vec<Verdict> = connections.iter().flat_map(of_info).collect();
    let spared = stats.and_then(|stats| {
        let regions = stats.regions()?;
        let spared = regions.checked_sub(stats.counters.local_invalidations?)?;
        Some(format!(
            ": {spared} of {regions} regions needed no local invalidation"
        ))
    });
    let mut verdicts = all.clone();
    for verdict in &mut verdicts {
        let count = all.iter().filter(|other| *other == verdict).count();
        if verdict.severity > Severity::Fine && count < connections.len() {
            verdict.sentence.push_str(&format!(
                " (on {count} of {} connections to the server)",
                connections.len()
            ));
        }
        if verdict.code == Code::InvalidatesUnoffered {
            verdict
                .sentence
                .push_str(spared.as_deref().unwrap_or_default());
        }
    }
    verdicts
}

/// Puts the worst first, leaves out repetitions, and adds "fine" if nothing is wrong.
fn finish(mut verdicts: Vec<Verdict>) -> Vec<Verdict> {
    if verdicts
        .iter()
        .all(|verdict| verdict.severity == Severity::Note)
    {
        verdicts.push(verdict(Code::Fine, Severity::Fine, "fine"));
    }
    // Stable: verdicts of one severity stay in the order of the rules.
    verdicts.sort_by_key(|verdict| Reverse(verdict.severity));
    let mut seen: Vec<Verdict> = Vec::new();
    for verdict in verdicts {
        if !seen.contains(&verdict) {
            seen.push(verdict);
        }
    }
    seen
}

/// The names of the two ends and of their sizes in a sentence.
struct Ends {
    peer: &'static str,
    this: &'static str,
    /// The sources of the Send Size and the Receive Size of this end.
    send: &'static str,
    receive: &'static str,
}

impl Ends {
    fn of(info: &Info) -> Self {
        let nfs = info.is_of("nfs");
        match (info.is_client(), nfs) {
            (true, true) => Self {
                peer: "server",
                this: "client",
                send: "rdma_max_inline_write",
                receive: "rdma_max_inline_read",
            },
            (false, true) => Self {
                peer: "client",
                this: "server",
                send: "svc_rdma/max_req_size",
                receive: "svc_rdma/max_req_size",
            },
            (true, false) => Self {
                peer: "server",
                this: "client",
                send: "Send Size",
                receive: "Receive Size",
            },
            (false, false) => Self {
                peer: "client",
                this: "server",
                send: "Send Size",
                receive: "Receive Size",
            },
        }
    }
}

/// The sentence of a size that is too small: first what follows from it.
fn by_chunks(messages: &str, size: u64, cause: &str) -> String {
    format!("{messages} over {size} octets go by chunks: {cause}")
}

/// The messages that this end sends, and those that it receives.
fn messages(info: &Info) -> (&'static str, &'static str) {
    if info.is_client() {
        ("calls", "replies")
    } else {
        ("replies", "calls")
    }
}

/// `no-private-data`: `peer_private_data` is `absent`, or `rejected: REASON`.
fn no_private_data(info: &Info) -> Vec<Verdict> {
    let peer = Ends::of(info).peer;
    let found = info.peer_private_data.as_deref().unwrap_or_default();
    let fault = if found == "absent" {
        format!("the {peer} sends no RFC 8797 private data")
    } else if let Some(reason) = found.strip_prefix("rejected:") {
        let reason = reason.trim();
        format!("the {peer}'s private data cannot be used ({reason})")
    } else {
        return Vec::new();
    };
    // The defaults are 1024 in version 1 and 4096 in version 2.
    let default = info.peer_receive_size.unwrap_or(DEFAULT_SIZE);
    vec![verdict(
        Code::NoPrivateData,
        Severity::Degraded,
        by_chunks("messages", default, &fault),
    )
    .with(remedy::private_data(info, false))]
}

/// `no-private-data`, of this end: it sent no valid message. The message of a client of the kernel's
/// NFS is always valid, so `mounts` needs no such rule.
fn no_own_private_data(info: &Info, sent: &[u8]) -> Option<Verdict> {
    // If nothing is known of what this end sent, neither are its sizes.
    let default = info.local_send_size?;
    let Ends { this, .. } = Ends::of(info);
    (!octets::has_message(sent)).then(|| {
        verdict(
            Code::NoPrivateData,
            Severity::Degraded,
            by_chunks(
                "messages",
                default,
                &format!("this {this} sends no RFC 8797 private data"),
            ),
        )
        .with(remedy::private_data(info, true))
    })
}

/// The verdicts on the sizes of both ends.
pub(crate) fn sizes(info: &Info) -> Vec<Verdict> {
    [small_peer_sizes(info), small_own_sizes(info)].concat()
}

/// `small-receive-size`: `peer_private_data` is `present`, and `peer_receive_size` is below
/// `local_send_size`. `small-send-size`: likewise, `peer_send_size` is below `local_receive_size`.
///
/// Of a connection of NFS, the size of this end is the value that its sysctl had when the
/// connection was made, rounded down to a multiple of 1024.
fn small_peer_sizes(info: &Info) -> Vec<Verdict> {
    if info.peer_private_data.as_deref() != Some("present") {
        return Vec::new();
    }
    let Ends {
        peer,
        this,
        send,
        receive,
    } = Ends::of(info);
    let (sent, received) = messages(info);
    let sizes = [
        (
            Code::SmallReceiveSize,
            sent,
            "Receive Size",
            info.peer_receive_size,
            send,
            info.local_send_size,
        ),
        (
            Code::SmallSendSize,
            received,
            "Send Size",
            info.peer_send_size,
            receive,
            info.local_receive_size,
        ),
    ];
    let mut verdicts = Vec::new();
    for (code, messages, name, theirs, own_name, ours) in sizes {
        if let Some((theirs, ours)) = theirs.zip(ours).filter(|(theirs, ours)| theirs < ours) {
            let remedy = remedy::Size {
                is_own: false,
                is_send: code == Code::SmallSendSize,
                wanted: ours,
            };
            let cause = format!("the {peer}'s {name} is {theirs}, this {this}'s {own_name} {ours}");
            let sentence = by_chunks(messages, theirs, &cause);
            verdicts
                .push(verdict(code, Severity::Degraded, sentence).with(remedy::size(info, remedy)));
        }
    }
    verdicts
}

/// `small-own-size`: `local_send_size` or `local_receive_size` is the default of RFC 8797, or below
/// the size that the peer offers for that direction.
///
/// A client asks for sizes by its message. So it is a note if a server takes more than its client
/// asks for, and a fault of a server that takes less. Without a change of its sysctls, Linux offers
/// 4096 at both ends; its server cannot be set to less.
fn small_own_sizes(info: &Info) -> Vec<Verdict> {
    let Ends {
        peer,
        this,
        send,
        receive,
    } = Ends::of(info);
    let is_client = info.is_client();
    let (sent, received) = messages(info);
    let offered =
        |size: Option<u64>| size.filter(|_| info.peer_private_data.as_deref() == Some("present"));
    let sizes = [
        (
            send,
            info.local_send_size,
            sent,
            "Receive Size",
            offered(info.peer_receive_size),
        ),
        (
            receive,
            info.local_receive_size,
            received,
            "Send Size",
            offered(info.peer_send_size),
        ),
    ];
    let mut verdicts = Vec::new();
    for (name, ours, messages, their_name, theirs) in sizes {
        let Some(ours) = ours else {
            continue;
        };
        let than = theirs.filter(|theirs| *theirs > ours);
        let severity = match than {
            _ if is_client && info.is_of("nfs") && ours <= DEFAULT_SIZE => Severity::Degraded,
            Some(_) if is_client => Severity::Note,
            Some(_) => Severity::Degraded,
            None => continue,
        };
        let than = than.map_or_else(String::new, |theirs| {
            format!(", the {peer}'s {their_name} {theirs}")
        });
        let remedy = remedy::Size {
            is_own: true,
            is_send: messages == sent,
            wanted: theirs.unwrap_or_default(),
        };
        let sentence = by_chunks(
            messages,
            ours,
            &format!("this {this}'s {name} is {ours}{than}"),
        );
        verdicts
            .push(verdict(Code::SmallOwnSize, severity, sentence).with(remedy::size(info, remedy)));
    }
    verdicts
}

/// `less-in-use`, of NFS: `inline_send_in_use` or `inline_receive_in_use` is below the threshold of
/// that direction. Linux uses the defaults where `peer_offset` is not 0.
fn less_in_use(info: &Info) -> Vec<Verdict> {
    let (c2s, s2c) = (
        info.client_to_server_threshold,
        info.server_to_client_threshold,
    );
    let (send, receive) = if info.is_client() {
        (c2s, s2c)
    } else {
        (s2c, c2s)
    };
    let Ends { peer, this, .. } = Ends::of(info);
    let reason = match info.peer_offset {
        Some(offset @ 1..) => format!(
            ": the {peer}'s message is at offset {offset}, and this {this} looks at offset 0 only"
        ),
        _ => String::new(),
    };
    let mut verdicts = Vec::new();
    for (verb, used, threshold) in [
        ("sends", info.inline_send_in_use, send),
        ("expects", info.inline_receive_in_use, receive),
    ] {
        if let Some((used, threshold)) = used.zip(threshold).filter(|(used, all)| used < all) {
            let verdict = verdict(
                Code::LessInUse,
                Severity::Degraded,
                format!(
                    "this {this} {verb} {used} octets inline, {threshold} were negotiated{reason}"
                ),
            );
            verdicts.push(Verdict {
                remedy: Some(remedy::offset(info)),
                ..verdict
            });
        }
    }
    verdicts
}

/// `unknown`: the connection is established and `peer_private_data` is not known, because the
/// connection is older than the module.
///
/// It is a note if a client of NFS uses its own sizes in full. The client uses the lesser of its own
/// and the server's sizes, so the server's are then no smaller.
fn older(info: &Info) -> Vec<Verdict> {
    if !info.is_established() || info.peer_private_data.is_some() {
        return Vec::new();
    }
    let sizes = info.inline_send_in_use.zip(info.inline_receive_in_use);
    let own = info.local_send_size.zip(info.local_receive_size);
    let is_in_full = sizes
        .zip(own)
        .is_some_and(|((send, receive), (own_send, own_receive))| {
            send >= own_send && receive >= own_receive
        });
    let is_sound = info.is_client() && is_in_full;
    let Ends { peer, this, .. } = Ends::of(info);
    let all = if is_sound { ", all that it offers" } else { "" };
    let sizes = sizes.map(|(send, receive)| {
        format!("this {this} sends {send} octets inline and expects {receive}{all}, and ")
    });
    let sentence = format!(
        "older than the module: {}the {peer}'s private data is unknown until the next connection",
        sizes.unwrap_or_default()
    );
    vec![if is_sound {
        verdict(Code::Unknown, Severity::Note, sentence)
    } else {
        verdict(Code::Unknown, Severity::Unknown, sentence).with(remedy::negotiate_again(info))
    }]
}

/// `invalidates-unoffered`, a note: of an NFS client's connection, `remote_invalidation` is `no`
/// and `remote_invalidation_in_use` is `yes`.
fn invalidates_unoffered(info: &Info) -> Vec<Verdict> {
    let invalidates = info.is_client()
        && info.remote_invalidation == Some(false)
        && info.remote_invalidation_in_use == Some(true);
    let sentence = "the server invalidates remotely although it did not offer to";
    let note = invalidates.then(|| verdict(Code::InvalidatesUnoffered, Severity::Note, sentence));
    note.into_iter().collect()
}

/// `deviates`: `info` has lines `deviation:`. One of them is left out where
/// `invalidates-unoffered` says the same. They are of the peer if this end is the module's, and
/// otherwise of this end.
fn deviates(info: &Info) -> Vec<Verdict> {
    let Ends { peer, this, .. } = Ends::of(info);
    let whose = if info.is_of("module") {
        format!("the {peer}")
    } else {
        format!("this {this}")
    };
    let severity = if info.is_of("nfs") {
        Severity::Note
    } else {
        Severity::Degraded
    };
    let is_said = !invalidates_unoffered(info).is_empty();
    info.deviation
        .iter()
        .filter(|deviation| !(is_said && deviation.contains("Send with Invalidate")))
        .map(|deviation| {
            let sentence = format!("deviation of {whose}: {deviation}");
            let verdict = verdict(Code::Deviates, severity, sentence);
            // A deviation of Linux is a note, and its vendors know it.
            match severity {
                Severity::Note => verdict,
                _ => verdict.with(remedy::report(info)),
            }
        })
        .collect()
}

/// `bad-reply`, of the module's own connections: the peer answered NULL, or the call of BIND, by a
/// message that is no reply to it.
fn bad_reply(info: &Info) -> Vec<Verdict> {
    [("NULL", &info.rpc_null), ("BIND", &info.reverse_direction)]
        .into_iter()
        .filter_map(|(call, found)| Some((call, found.as_deref()?)))
        .filter(|(_, found)| is_bad_reply(found) || found.starts_with("no reply in time; "))
        .map(|(call, found)| of_bad_reply(info, call, found))
        .collect()
}

fn of_bad_reply(info: &Info, call: &str, found: &str) -> Verdict {
    verdict(
        Code::BadReply,
        Severity::Degraded,
        format!("{call} has no result: {found}"),
    )
    .with(remedy::report(info))
}

/// Whether this reason says that the peer answered, by a message that had to be discarded.
fn is_bad_reply(reason: &str) -> bool {
    [
        "the server answered with ",
        "the client answered with ",
        "the reply ",
    ]
    .iter()
    .any(|begin| reason.starts_with(begin))
}

/// The name of a program and its version.
pub(crate) fn program(number: Option<u64>, version: Option<u64>) -> String {
    let number = match number {
        None => return "the program".to_owned(),
        Some(NFS_PROGRAM) => "NFS".to_owned(),
        Some(number) => format!("program {number}"),
    };
    match version {
        Some(version) => format!("{number} version {version}"),
        None => number,
    }
}

/// `program-version`, a note of a probe: the server does not have the version of the program that
/// was asked for, and named others.
fn program_version(report: &Report) -> Option<Verdict> {
    let named = report.program_versions.as_deref()?;
    let versions = match named.split_once(" to ") {
        Some((low, high)) if low == high => format!("version {low}"),
        _ => format!("versions {named}"),
    };
    Some(verdict(
        Code::ProgramVersion,
        Severity::Note,
        format!(
            "the server has only {versions} of {}: this is the result of {}",
            program(report.program, None),
            program(report.program, report.program_version)
        ),
    ))
}

/// `no-answer`: NULL had a result in none of the versions of RPC-over-RDMA that were asked in. It is
/// `bad-reply` if the server answered by a message that is no reply.
fn no_answer(report: &Report) -> Option<Verdict> {
    let answers = [&report.rpc_version_1, &report.rpc_version_2].map(|answer| answer.as_deref());
    if answers.contains(&Some("SUCCESS")) {
        return None;
    }
    let why = answers.into_iter().flatten().next();
    let why = why.unwrap_or("no reason is known");
    if is_bad_reply(why) {
        return Some(of_bad_reply(&report.info, "NULL", why));
    }
    let sentence = if why.starts_with("no reply") {
        format!("it accepts connections and does not answer NULL: {why}")
    } else {
        format!("it accepts connections, and NULL fails: {why}")
    };
    let remedy = remedy::answer(&report.info);
    Some(verdict(Code::NoAnswer, Severity::Degraded, sentence).with(remedy))
}

/// `lost-often`: more connections to the server were lost in the last hour than there are transports,
/// by `history`.
///
/// Or by mountstats: the transports were connected again more often than there are transports, and
/// more often than the client's own idle time explains, which is once in [`IDLE_SECONDS`] for each of
/// them. That decides while the oldest mount of these transports is younger than an hour, and where
/// `history` has no event of the server. Later, `history` says whether connections are still lost.
///
/// If a server restarts, each transport is lost once. So one of them must have been lost twice.
fn lost_often(facts: &Facts<'_>) -> Option<Verdict> {
    let again = facts
        .stats
        .and_then(|stats| connected_again(stats, facts.age_seconds?));
    let transports = facts.transports_of_server.max(1);
    let lost = facts.lost_in_an_hour;
    let sentence = match (lost.filter(|lost| *lost > transports), again) {
        // Both count the same span, and mountstats miss none.
        (Some(lost), Some(again)) if again.count > lost && again.age < HOUR => again.to_string(),
        (Some(lost), Some(again)) if again.count > lost => {
            format!("lost {lost} times in an hour, {again}")
        }
        (Some(lost), _) => format!("lost {lost} times in an hour"),
        (None, again) => again
            .filter(|again| again.often && (lost.is_none() || again.age < HOUR))?
            .to_string(),
    };
    let remedy = remedy::losses(facts.mount.address.as_deref());
    Some(verdict(Code::LostOften, Severity::Degraded, sentence).with(remedy))
}

/// How often the transports of a mount were connected again.
struct ConnectedAgain {
    count: u64,
    /// The age of the oldest mount that uses these transports, in seconds.
    age: u64,
    /// Whether one of them was made again twice or more, and they were more often than the client's
    /// idle time explains.
    often: bool,
}

impl fmt::Display for ConnectedAgain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, age) = (self.count, duration(self.age));
        write!(f, "connected again {count} times in {age}")
    }
}

/// Returns [`None`] if mountstats do not say.
fn connected_again(stats: &Stats, age: u64) -> Option<ConnectedAgain> {
    let count = stats.reconnects?;
    let idle = (age / IDLE_SECONDS).saturating_mul(stats.transports);
    Some(ConnectedAgain {
        count,
        age,
        often: count > idle && count > stats.transports.max(1),
    })
}

/// `few-credits`: calls wait, all credits are in use, and the server has granted less than the client
/// asks for. By the worst transport at this moment.
///
/// While a credit is left, a call waits for something else: another call is being sent, or the
/// transport has no room (`xprt_reserve_xprt_cong` and `RPCXPRT_CONGESTED`, net/sunrpc/xprt.c).
fn few_credits(transports: &[Transport]) -> Option<Verdict> {
    let (waiting, credits, slots, transport) = transports
        .iter()
        .filter(|transport| transport.connected && transport.credits_in_use >= transport.credits)
        .filter_map(|transport| {
            Some((
                transport.waiting_to_send?,
                transport.credits?,
                transport.slots?,
                transport,
            ))
        })
        .filter(|(waiting, credits, slots, _)| *waiting > 0 && credits < slots)
        .max_by_key(|(waiting, credits, slots, _)| (*waiting, *credits, *slots))?;
    let calls = calls_wait(waiting);
    let port = transport.port.unwrap_or(target::PORT.into());
    let target = target::with_port(&transport.address, port);
    Some(
        verdict(
            Code::FewCredits,
            Severity::Degraded,
            match credits {
                0 | 1 => format!(
                    "{calls}: the server grants 1 credit, or has not answered on this connection yet"
                ),
                _ => format!(
                    "{calls}: the server grants {credits} credits, this client asks for {slots}"
                ),
            },
        )
        .with(match credits {
            0 | 1 => format!(
                "{}\nif it answers: {}",
                remedy::connect(Some(&target)),
                remedy::credits(&target, slots)
            ),
            _ => remedy::credits(&target, slots),
        }),
    )
}

/// `backlog`: calls wait for a slot, because all that the client has are in use. By the worst
/// transport at this moment.
fn backlog(transports: &[Transport]) -> Option<Verdict> {
    let (backlog, slots) = transports
        .iter()
        .filter_map(|transport| Some((transport.backlog?, transport.slots?)))
        .filter(|(backlog, _)| *backlog > 0)
        .max()?;
    let calls = calls_wait(backlog);
    Some(
        verdict(
            Code::Backlog,
            Severity::Degraded,
            format!("{calls} for a slot: all {slots} of a transport are in use"),
        )
        .with(remedy::slots(slots)),
    )
}

/// `1 credit`, `2 credits`.
pub(crate) fn number_of(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

fn calls_wait(number: u64) -> String {
    match number {
        1 => "1 call waits".to_owned(),
        _ => format!("{number} calls wait"),
    }
}

/// `registrations`: memory is registered while calls wait for it. Regions had to be recovered after a
/// fault, or call after call needs a longer buffer.
///
/// A buffer keeps its new size, so the buffers of a sound mount grow at its beginning only. The
/// counter has octets. They are no fault until there were as many calls as explain that growth.
fn registrations(stats: &Stats) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let degraded = |sentence: String| {
        verdict(Code::Registrations, Severity::Degraded, sentence).with(remedy::registrations())
    };
    let counters = &stats.counters;
    if let Some(regions) = counters.recovered_regions.filter(|regions| *regions > 0) {
        verdicts.push(degraded(format!(
            "{regions} memory regions had to be recovered after a fault"
        )));
    }
    let hard = counters.hard_way_octets.zip(counters.sends);
    // The buffers of each transport grow.
    let growth = GROWTH_CALLS.saturating_mul(stats.transports.max(1));
    if let Some((octets, calls)) =
        hard.filter(|(octets, calls)| *calls >= growth && *octets / *calls >= HARD_WAY_OCTETS)
    {
        verdicts.push(degraded(format!(
            "{octets} octets of buffers were registered the hard way in {calls} calls"
        )));
    }
    verdicts
}

/// `not-connected`: calls wait, and no transport to the server is connected. The module need not show
/// a connection meanwhile: the client destroys each id whose attempt fails, and pauses for three
/// seconds. Without an address or a route, no REQ is sent.
fn waits_for_connection(facts: &Facts<'_>) -> Option<Verdict> {
    if facts.transports.iter().any(|one| one.connected) {
        return None;
    }
    let calls = facts
        .transports
        .iter()
        .filter_map(|one| one.calls_of_switch);
    let calls = calls.max().filter(|calls| *calls > 0)?;
    Some(failed_to_connect(
        &calls_wait(calls),
        facts.last_failure,
        facts.mount.remote().as_deref(),
    ))
}

fn failed_to_connect(what: &str, failure: Option<&str>, server: Option<&str>) -> Verdict {
    let failure = match failure {
        Some(failure) => format!("; last failure: {failure}"),
        None => String::new(),
    };
    verdict(
        Code::NotConnected,
        Severity::Failed,
        format!("not connected: {what}{failure}"),
    )
    .with(remedy::connect(server))
}

/// `not-connected`: no connection to the server is established. It is a note if there is none at
/// all, because an idle client has none.
fn not_connected(connections: &[Info]) -> Option<Verdict> {
    if connections.iter().any(Info::is_established) {
        return None;
    }
    let Some(info) = connections.first() else {
        return Some(verdict(
            Code::NotConnected,
            Severity::Note,
            "not connected at present: the client connects again with the next call",
        ));
    };
    Some(failed_to_connect(
        info.state.as_deref().unwrap_or("in an unknown state"),
        info.last_failure.as_deref(),
        info.remote.as_deref(),
    ))
}

/// `not-rdma`: the mount has the port of NFS over RDMA, or `/etc/fstab` asks for RDMA, and the
/// mount uses another transport.
///
/// mount.nfs sets that port with `proto=rdma`. The client takes an existing transport instead if
/// the server of a mount of version 4.1 or later is known from an earlier mount. If the mount also
/// shares the superblock of the earlier mount, it shows that one's options.
pub(crate) fn not_rdma(mount: &Mount, mounts: &[Mount]) -> Option<Verdict> {
    // A mount that asks for RDMA has this port unless it names another.
    let asked = mount.port == Some(target::PORT.into()) || mount.is_rdma_in_fstab;
    (!mount.is_rdma() && asked).then(|| {
        let protocol = mount.protocol.as_deref().unwrap_or("another transport");
        verdict(
            Code::NotRdma,
            Severity::Failed,
            format!(
                "not RDMA: this mount fell back to {}",
                protocol.to_uppercase()
            ),
        )
        .with(remedy::mount_again(mount, mounts))
    })
}

/// A time in words, in the largest unit of which it has at least one.
pub(crate) fn duration(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..86400 => (seconds / 3600, "hour"),
        _ => (seconds / 86400, "day"),
    };
    number_of(count, unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{
        info,
        mounts, //
    };

    fn mount(options: &str) -> Mount {
        let line = format!("1 2 0:3 / /mnt rw - nfs4 s:/ rw,{options},addr=10.0.0.2\n");
        mounts::mountinfo(&line).remove(0)
    }

    /// Of a mount, and nothing else except its connections.
    fn facts<'a>(mount: &'a Mount, connections: &'a [Info]) -> Facts<'a> {
        Facts {
            mount,
            mounts: &[],
            stats: None,
            connections: Some(connections),
            observing: None,
            transports: &[],
            lost_in_an_hour: None,
            transports_of_server: 1,
            age_seconds: None,
            last_failure: None,
        }
    }

    fn stats(age: u64, transports: &[&str]) -> Stats {
        let mut text =
            format!("device s:/ mounted on /mnt with fstype nfs4 statvers=1.1\nage: {age}\n");
        for transport in transports {
            text.push_str(&format!("xprt: rdma {transport}\n"));
        }
        let mount = mount("proto=rdma");
        mounts::with_stats(vec![mount], &text).remove(0).1.unwrap()
    }

    /// `connects` and `local_invalidations`; 8 read, 2 write and 1 reply chunks.
    fn transport(connects: u64, local: u64) -> String {
        format!("0 0 {connects} 0 0 50 50 0 50 0 8 2 1 0 0 0 0 0 0 0 0 0 0 16 {local} 0 0")
    }

    const CLIENT: &str = "origin: nfs\nrole: client\nstate: established\n\
        local_send_size: 4096\nlocal_receive_size: 4096\npeer_private_data: present\n\
        peer_send_size: 4096\npeer_receive_size: 4096\nremote_invalidation: no\n";

    /// Version 1, R clear, 4096 octets in both directions (RFC 8797, section 4).
    const MESSAGE: [u8; 8] = [0xf6, 0xab, 0x0e, 0x18, 1, 0, 3, 3];

    const THRESHOLDS: &str = "client_to_server_threshold: 4096\nserver_to_client_threshold: 8192\n";

    fn client(changes: &str) -> Info {
        info::info(&format!("{CLIENT}{changes}"))
    }

    const FINE: &str = "fine fine: fine";

    /// A line for each: `SEVERITY CODE: SENTENCE`.
    fn lines(verdicts: &[Verdict]) -> Vec<String> {
        verdicts
            .iter()
            .map(|one| {
                let (severity, code) = (one.severity.word(), one.code.name());
                format!("{severity} {code}: {}", one.sentence)
            })
            .collect()
    }

    #[test]
    fn codes_are_those_of_the_schema() {
        let schema: serde_json::Value =
            serde_json::from_str(include_str!("../schema.json")).unwrap();
        let names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(
            schema["$defs"]["verdict"]["properties"]["code"]["enum"],
            serde_json::json!(names)
        );
    }

    #[test]
    fn of_connections() {
        for (changes, expected) in [
            ("", vec![FINE]),
            ("remote_invalidation_in_use: no\n", vec![FINE]),
            (
                "peer_private_data: unknown\n",
                vec!["unknown unknown: older than the module: the server's private data is unknown until the next connection"],
            ),
            (
                "peer_private_data: unknown\ninline_send_in_use: 4096\ninline_receive_in_use: 1024\n",
                vec!["unknown unknown: older than the module: this client sends 4096 octets inline and expects 1024, and the server's private data is unknown until the next connection"],
            ),
            // The server limits neither size.
            (
                "peer_private_data: unknown\ninline_send_in_use: 5000\ninline_receive_in_use: 4096\n",
                vec![
                    FINE,
                    "note unknown: older than the module: this client sends 5000 octets inline and expects 4096, all that it offers, and the server's private data is unknown until the next connection",
                ],
            ),
            (
                "role: server\npeer_private_data: unknown\ninline_send_in_use: 12316\ninline_receive_in_use: 4096\n",
                vec!["unknown unknown: older than the module: this server sends 12316 octets inline and expects 4096, and the client's private data is unknown until the next connection"],
            ),
            // The peer has not answered yet.
            ("state: connecting\npeer_private_data: unknown\n", vec![FINE]),
            (
                "local_send_size: 1024\n",
                vec!["degraded small-own-size: calls over 1024 octets go by chunks: this client's rdma_max_inline_write is 1024, the server's Receive Size 4096"],
            ),
            (
                "local_receive_size: 1024\npeer_private_data: unknown\ninline_send_in_use: 4096\ninline_receive_in_use: 1024\n",
                vec![
                    "degraded small-own-size: replies over 1024 octets go by chunks: this client's rdma_max_inline_read is 1024",
                    "note unknown: older than the module: this client sends 4096 octets inline and expects 1024, all that it offers, and the server's private data is unknown until the next connection",
                ],
            ),
            // A client asks for what it needs.
            (
                "local_send_size: 2048\n",
                vec![
                    FINE,
                    "note small-own-size: calls over 2048 octets go by chunks: this client's rdma_max_inline_write is 2048, the server's Receive Size 4096",
                ],
            ),
            (
                "origin: module\nlocal_receive_size: 1024\n",
                vec![
                    FINE,
                    "note small-own-size: replies over 1024 octets go by chunks: this client's Receive Size is 1024, the server's Send Size 4096",
                ],
            ),
            (
                "role: server\npeer_send_size: 65536\npeer_receive_size: 8192\n",
                vec![
                    "degraded small-own-size: replies over 4096 octets go by chunks: this server's svc_rdma/max_req_size is 4096, the client's Receive Size 8192",
                    "degraded small-own-size: calls over 4096 octets go by chunks: this server's svc_rdma/max_req_size is 4096, the client's Send Size 65536",
                ],
            ),
            // The defaults that stand for a missing message are no sizes of the peer.
            (
                "origin: user\nrole: server\nlocal_send_size: 1024\npeer_private_data: absent\npeer_receive_size: 4096\n",
                vec!["degraded no-private-data: messages over 4096 octets go by chunks: the client sends no RFC 8797 private data"],
            ),
            (
                &format!("{THRESHOLDS}peer_offset: 4\ninline_send_in_use: 1024\ninline_receive_in_use: 2048\ndeviation: a\n"),
                vec![
                    "degraded less-in-use: this client sends 1024 octets inline, 4096 were negotiated: the server's message is at offset 4, and this client looks at offset 0 only",
                    "degraded less-in-use: this client expects 2048 octets inline, 8192 were negotiated: the server's message is at offset 4, and this client looks at offset 0 only",
                    "note deviates: deviation of this client: a",
                ],
            ),
            (
                &format!("{THRESHOLDS}role: server\ninline_send_in_use: 12316\ninline_receive_in_use: 2048\n"),
                vec!["degraded less-in-use: this server expects 2048 octets inline, 4096 were negotiated"],
            ),
            (
                "peer_private_data: absent\npeer_receive_size: 1024\npeer_send_size: 1024\n",
                vec!["degraded no-private-data: messages over 1024 octets go by chunks: the server sends no RFC 8797 private data"],
            ),
            (
                "role: server\npeer_private_data: absent\npeer_receive_size: 4096\n",
                vec!["degraded no-private-data: messages over 4096 octets go by chunks: the client sends no RFC 8797 private data"],
            ),
            (
                "peer_private_data: rejected: truncated\npeer_receive_size: 1024\n",
                vec!["degraded no-private-data: messages over 1024 octets go by chunks: the server's private data cannot be used (truncated)"],
            ),
            (
                "local_send_size: 65536\n",
                vec!["degraded small-receive-size: calls over 4096 octets go by chunks: the server's Receive Size is 4096, this client's rdma_max_inline_write 65536"],
            ),
            (
                "peer_receive_size: 65536\n",
                vec![
                    FINE,
                    "note small-own-size: calls over 4096 octets go by chunks: this client's rdma_max_inline_write is 4096, the server's Receive Size 65536",
                ],
            ),
            (
                "local_receive_size: 8192\n",
                vec!["degraded small-send-size: replies over 4096 octets go by chunks: the server's Send Size is 4096, this client's rdma_max_inline_read 8192"],
            ),
            (
                "origin: module\nlocal_send_size: 65536\n",
                vec!["degraded small-receive-size: calls over 4096 octets go by chunks: the server's Receive Size is 4096, this client's Send Size 65536"],
            ),
            (
                "role: server\nlocal_send_size: 65536\n",
                vec!["degraded small-receive-size: replies over 4096 octets go by chunks: the client's Receive Size is 4096, this server's svc_rdma/max_req_size 65536"],
            ),
            (
                "remote_invalidation_in_use: yes\n",
                vec![
                    FINE,
                    "note invalidates-unoffered: the server invalidates remotely although it did not offer to",
                ],
            ),
            (
                "remote_invalidation_in_use: yes\ndeviation: uses RDMA Send with Invalidate, although\n",
                vec![
                    FINE,
                    "note invalidates-unoffered: the server invalidates remotely although it did not offer to",
                ],
            ),
            (
                "remote_invalidation: yes\nremote_invalidation_in_use: yes\n",
                vec![FINE],
            ),
            (
                "role: server\nremote_invalidation_in_use: yes\n",
                vec![FINE],
            ),
            (
                "origin: module\ndeviation: a (RFC 8797, section 4.1)\n",
                vec!["degraded deviates: deviation of the server: a (RFC 8797, section 4.1)"],
            ),
            (
                "deviation: a\n",
                vec![FINE, "note deviates: deviation of this client: a"],
            ),
            (
                "role: server\ndeviation: a\n",
                vec![FINE, "note deviates: deviation of this server: a"],
            ),
            (
                "origin: module\nrpc_null: the server answered with a message of 0 octets\n",
                vec!["degraded bad-reply: NULL has no result: the server answered with a message of 0 octets"],
            ),
            (
                "origin: module\nrpc_null: no reply in time\n",
                vec![FINE],
            ),
            (
                "origin: module\nrpc_null: no reply in time; the server sent a call\n",
                vec!["degraded bad-reply: NULL has no result: no reply in time; the server sent a call"],
            ),
            (
                "origin: module\nrole: server\nreverse_direction: the client answered with a call\n",
                vec!["degraded bad-reply: BIND has no result: the client answered with a call"],
            ),
        ] {
            let verdicts = of_connection(&client(changes), &MESSAGE);
            assert_eq!(lines(&verdicts), expected, "{changes}");
            for verdict in verdicts {
                let is_needed = verdict.severity > Severity::Fine;
                assert!(!is_needed || verdict.remedy.is_some(), "{changes}: {verdict:?}");
            }
        }
    }

    /// The host, the file and the value of each remedy.
    #[test]
    fn remedies() {
        let debug =
            "(a kernel without CONFIG_SUNRPC_DEBUG does not have the file), then unmount and mount";
        for (changes, sent, expected) in [
            ("", &MESSAGE[..], None),
            (
                "local_send_size: 65536\n",
                &MESSAGE,
                Some("on 10.0.0.2, if /proc/fs/nfsd/portlist there has `rdma 20049`: echo 65536 > /proc/sys/sunrpc/svc_rdma/max_req_size\notherwise raise the sizes in that server's settings, or ask its vendor; then unmount and mount on the client".to_owned()),
            ),
            // Linux takes no larger value.
            (
                "local_receive_size: 262144\n",
                &MESSAGE,
                Some("on 10.0.0.2, if /proc/fs/nfsd/portlist there has `rdma 20049`: echo 65536 > /proc/sys/sunrpc/svc_rdma/max_req_size\notherwise raise the sizes in that server's settings, or ask its vendor; then unmount and mount on the client".to_owned()),
            ),
            (
                "role: server\nlocal_send_size: 16384\n",
                &MESSAGE,
                Some(format!("on 10.0.0.2, if it runs Linux: echo 16384 > /proc/sys/sunrpc/rdma_max_inline_read {debug}")),
            ),
            (
                "role: server\nlocal_receive_size: 16384\n",
                &MESSAGE,
                Some(format!("on 10.0.0.2, if it runs Linux: echo 16384 > /proc/sys/sunrpc/rdma_max_inline_write {debug}")),
            ),
            (
                "local_send_size: 1024\n",
                &MESSAGE,
                Some(format!("on this host: echo 4096 > /proc/sys/sunrpc/rdma_max_inline_write {debug}")),
            ),
            (
                "local_receive_size: 1024\npeer_send_size: 8192\n",
                &MESSAGE,
                Some(format!("on this host: echo 8192 > /proc/sys/sunrpc/rdma_max_inline_read {debug}")),
            ),
            (
                "role: server\npeer_send_size: 65536\n",
                &MESSAGE,
                Some("on this host: echo 65536 > /proc/sys/sunrpc/svc_rdma/max_req_size, then unmount and mount on the client".to_owned()),
            ),
            (
                "origin: user\nrole: server\npeer_send_size: 65536\n",
                &MESSAGE,
                Some("on this host, set the sizes of the server to 65536 octets".to_owned()),
            ),
            (
                "peer_private_data: absent\n",
                &MESSAGE,
                Some("on 10.0.0.2: use a server that sends it, as Linux 4.9 and later do; ask the vendor".to_owned()),
            ),
            (
                "remote: [fd77::2]:20049\nrole: server\npeer_private_data: absent\n",
                &MESSAGE,
                Some("on fd77::2: use a client that sends it, as Linux 4.9 and later do".to_owned()),
            ),
            (
                "origin: user\nrole: server\n",
                &[],
                Some("on this host: use a server that sends it, as Linux 4.9 and later do; ask the vendor".to_owned()),
            ),
            (
                "peer_private_data: unknown\n",
                &MESSAGE,
                Some("on this host: unmount and mount while the module is loaded on this host".to_owned()),
            ),
            (
                "client_to_server_threshold: 4096\ninline_send_in_use: 1024\npeer_offset: 4\n",
                &MESSAGE,
                Some("on 10.0.0.2: use a version that sends the message at offset 0; ask the vendor".to_owned()),
            ),
        ] {
            let info = client(&format!("remote: 10.0.0.2:20049\n{changes}"));
            let worst = of_connection(&info, sent).remove(0);
            assert_eq!(worst.remedy, expected, "{changes}");
        }
        let worst = of_report("[fd77::2]:20050", &info::report("reachable: no: x\n")).remove(0);
        let remedy = worst.remedy.unwrap();
        assert!(
            remedy.starts_with("on fd77::2, if it runs Linux: cat /proc/fs/nfsd/portlist")
                && remedy.contains("echo 'rdma 20050' > /proc/fs/nfsd/portlist"),
            "{remedy}"
        );
        let mounts = mounts::mountinfo(
            "1 2 0:3 / /new rw - nfs4 s:/a\\040b rw,vers=4.2,proto=tcp,port=20049,addr=10.0.0.2\n\
             1 2 0:4 / /old\\040one rw - nfs4 s:/ rw,vers=4.1,proto=tcp,addr=10.0.0.2\n\
             1 2 0:5 / /v3 rw - nfs s:/ rw,vers=3,proto=tcp,addr=10.0.0.2\n\
             1 2 0:6 / /rdma rw - nfs4 s:/ rw,vers=4.2,proto=rdma,addr=10.0.0.2\n\
             1 2 0:7 / /other rw - nfs4 t:/ rw,vers=4.2,proto=tcp,addr=10.0.0.3\n",
        );
        let unmount = "on this host, all mounts of 10.0.0.2 over TCP: umount '/old one' /new\n\
                       then, before any other mount of it";
        let mut fallen = mounts[0].clone();
        for (is_in_fstab, again) in [
            (
                false,
                ", with its other options: mount -t nfs -o proto=rdma,port=20049,vers=4.2 's:/a b' /new",
            ),
            (true, ": mount /new"),
        ] {
            fallen.is_rdma_in_fstab = is_in_fstab;
            let remedy = not_rdma(&fallen, &mounts).unwrap().remedy;
            assert_eq!(remedy, Some(format!("{unmount}{again}")));
        }
    }

    /// A server's end that sends no private data, or none that counts.
    #[test]
    fn of_own_private_data() {
        let server = |changes: &str| {
            client(&format!(
                "role: server\norigin: user\nlocal_send_size: 1024\nlocal_receive_size: 1024\n{changes}"
            ))
        };
        let none =
            "degraded no-private-data: messages over 1024 octets go by chunks: this server sends no RFC 8797 private data";
        let small = "degraded small-own-size: replies over 1024 octets go by chunks: this server's Send Size is 1024, the client's Receive Size 4096";
        let of_version_2 = [0xf6, 0xab, 0x0e, 0x18, 2, 0, 3, 3];
        let shifted = [&[0xa5][..], &MESSAGE].concat();
        for (sent, is_none) in [
            (&[][..], true),
            (&[0; 56], true),
            (&MESSAGE[..7], true),
            (&of_version_2, true),
            (&shifted, false),
        ] {
            let found = lines(&of_connection(&server(""), sent));
            assert!(found.iter().any(|line| line == small));
            assert_eq!(found.iter().any(|line| line == none), is_none, "{sent:?}");
        }
        // Of a connection older than the module, nothing is known.
        let older = of_connection(&server("local_send_size: unknown\n"), &[]);
        assert!(older
            .iter()
            .all(|verdict| verdict.code != Code::NoPrivateData));
    }

    /// Mounts without a connection that is shown, where observing is limited.
    #[test]
    fn of_mounts_that_are_not_observed() {
        use crate::parse::stats::observing;

        let mount = mount("proto=rdma");
        for (text, expected) in [
            (
                "observing: yes\n",
                "not connected at present: the client connects again with the next call",
            ),
            (
                "observing: no\nobserving_reason: parameter: observe=0\n",
                "unknown what it negotiated: observing is off, so only the module's own connections are shown: observe=0",
            ),
            (
                "observing: partial\nobserving_reason: limit_nfs: 16384 ids\n",
                "unknown what it negotiated: observing is partial: 16384 ids",
            ),
            (
                "observing: partial\nobserving_reason: limit_nfs: a\nobserving_reason: btf: b\n",
                "unknown what it negotiated: observing is partial: a; b",
            ),
            (
                "observing: partial\nobserving_reason: new: something else\n",
                "unknown what it negotiated: observing is partial: something else",
            ),
            (
                "observing: partial\nobserving_reason: events: e\n\
                 observed_events_lost_nfs: 0\nobserved_events_lost_hooks: 1\n",
                "unknown what it negotiated: observing is partial: e",
            ),
            (
                "observing: partial\nobserving_reason: events: e\n\
                 observed_events_lost_nfs: 1\nobserved_events_lost_hooks: 0\n",
                "unknown what it negotiated: observing is partial: e",
            ),
            // A user's programs can cause these.
            (
                "observing: partial\nobserving_reason: events: e\n\
                 observing_reason: limit_user: u\nobserving_reason: limit_programs: p\n\
                 observed_events_lost_nfs: 0\nobserved_events_lost_hooks: 0\n",
                "not connected at present: the client connects again with the next call",
            ),
            (
                "observing: partial\nobserving_reason: users: u\nobserving_reason: btf: b\n\
                 observing_reason: members: m\nobserving_reason: causes: c\n",
                "not connected at present: the client connects again with the next call",
            ),
        ] {
            let observing = observing(text);
            let facts = Facts {
                observing: observing.as_ref(),
                ..facts(&mount, &[])
            };
            let verdicts = of_mount(&facts);
            assert!(verdicts.iter().any(|verdict| verdict.sentence == expected), "{verdicts:?}");
        }
    }

    #[test]
    fn of_mounts_by_their_transports() {
        let (mount, established) = (mount("proto=rdma"), [client("")]);
        // Connections of each transport, age in seconds, transports.
        for (connects, age, transports, expected) in [
            (1, 0, 1, FINE),
            (2, 10, 1, FINE),
            (
                3,
                10,
                1,
                "degraded lost-often: connected again 2 times in 10 seconds",
            ),
            (13, 3600, 1, FINE),
            (
                15,
                3600,
                1,
                "degraded lost-often: connected again 14 times in 1 hour",
            ),
            (15, 7200, 1, FINE),
            (4, 900, 2, FINE),
            (
                5,
                900,
                2,
                "degraded lost-often: connected again 8 times in 15 minutes",
            ),
        ] {
            let transport = transport(connects, 0);
            let stats = stats(age, &vec![&*transport; transports]);
            let facts = Facts {
                stats: Some(&stats),
                age_seconds: Some(age),
                ..facts(&mount, &established)
            };
            assert_eq!(
                lines(&of_mount(&facts)),
                [expected],
                "{connects} {age} {transports}"
            );
        }
    }

    /// The counters stand where `xprt_rdma_print_stats` (net/sunrpc/xprtrdma/transport.c) has them.
    #[test]
    fn of_registrations() {
        let found = |calls: u64, hard: u64, recovered: u64| {
            let line = format!(
                "0 0 1 0 0 {calls} 50 0 50 0 8 2 1 0 0 0 0 {hard} 0 0 0 {recovered} 0 16 0 0 0"
            );
            let verdicts = registrations(&stats(10, &[&line]));
            let sentences: Vec<String> = verdicts.into_iter().map(|one| one.sentence).collect();
            sentences
        };
        // The beginning of a real mount.
        assert!(found(29, 61_336, 0).is_empty());
        assert!(found(10_000, 10_239_999, 0).is_empty());
        assert_eq!(
            found(10_000, 10_240_000, 0),
            ["10240000 octets of buffers were registered the hard way in 10000 calls"]
        );
        assert_eq!(
            found(1, 0, 7),
            ["7 memory regions had to be recovered after a fault"]
        );
    }

    #[test]
    fn of_mounts_by_their_history() {
        let (mount, established) = (mount("proto=rdma"), [client("")]);
        // Connections of the transport, age in seconds, lost in the last hour.
        for (connects, age, lost, expected) in [
            (1, 10, 0, FINE),
            (2, 10, 1, FINE),
            (3, 10, 2, "degraded lost-often: lost 2 times in an hour"),
            (15, 10, 14, "degraded lost-often: lost 14 times in an hour"),
            // The history does not have all of them.
            (
                536,
                1200,
                2,
                "degraded lost-often: connected again 535 times in 20 minutes",
            ),
            // As often as an idle client connects again.
            (
                4,
                1200,
                2,
                "degraded lost-often: connected again 3 times in 20 minutes",
            ),
            (
                536,
                200_000,
                2,
                "degraded lost-often: lost 2 times in an hour, connected again 535 times in 2 days",
            ),
            (
                15,
                10,
                0,
                "degraded lost-often: connected again 14 times in 10 seconds",
            ),
            (
                15,
                3599,
                1,
                "degraded lost-often: connected again 14 times in 59 minutes",
            ),
            // More than an hour ago.
            (15, 3600, 1, FINE),
        ] {
            let stats = stats(age, &[&transport(connects, 0)]);
            let facts = Facts {
                stats: Some(&stats),
                age_seconds: Some(age),
                lost_in_an_hour: Some(lost),
                ..facts(&mount, &established)
            };
            assert_eq!(
                lines(&of_mount(&facts)),
                [expected],
                "{connects} {age} {lost}"
            );
        }
    }

    #[test]
    fn of_mounts_by_their_connections() {
        let mount = mount("proto=rdma");
        let stats = stats(100, &[&transport(1, 3)]);
        let offer = client("remote_invalidation_in_use: yes\n");
        let small = client("local_send_size: 65536\n");
        let reduced = client("local_send_size: 1024\ndeviation: a\n");
        let lost = client("state: reconnecting\nlast_failure: transport retry counter exceeded\n");
        let idle = "note not-connected: not connected at present: the client connects again with the next call";
        let size = "degraded small-receive-size: calls over 4096 octets go by chunks: the server's Receive Size is 4096, this client's rdma_max_inline_write 65536 (on 2 of 3 connections to the server)";
        let own = "degraded small-own-size: calls over 1024 octets go by chunks: this client's rdma_max_inline_write is 1024, the server's Receive Size 4096 (on 1 of 3 connections to the server)";
        let unknown =
            "unknown unknown: unknown what it negotiated: the module's files could not be read";
        let spared = "note invalidates-unoffered: the server invalidates remotely although it did not offer to: \
                      8 of 11 regions needed no local invalidation";
        let reconnecting =
            "failed not-connected: not connected: reconnecting; last failure: transport retry counter exceeded";
        for (connections, expected) in [
            (None, vec![unknown]),
            (
                Some(vec![]),
                vec![FINE, idle],
            ),
            (
                Some(vec![offer.clone(), offer.clone()]),
                vec![
                    FINE,
                    spared,
                ],
            ),
            (
                Some(vec![offer, small.clone(), small]),
                vec![
                    size,
                    spared,
                ],
            ),
            // A note has no number of connections.
            (
                Some(vec![reduced, client("deviation: a\n"), client("")]),
                vec![
                    own,
                    "note deviates: deviation of this client: a",
                ],
            ),
            (
                Some(vec![client("peer_private_data: unknown\n")]),
                vec!["unknown unknown: older than the module: the server's private data is unknown until the next connection"],
            ),
            (
                Some(vec![lost.clone()]),
                vec![reconnecting],
            ),
            (Some(vec![lost, client("")]), vec![FINE]),
        ] {
            let facts = Facts {
                stats: Some(&stats),
                connections: connections.as_deref(),
                ..facts(&mount, &[])
            };
            assert_eq!(lines(&of_mount(&facts)), expected);
        }
    }

    #[test]
    fn of_mounts_by_their_transports_now() {
        use crate::parse::transports::transport;

        let using = |in_use: u64, credits: u64, sending: u64, backlog: u64| {
            let info = format!(
                "cur_cong={}\ncong_win={}\nmax_num_slots=128\nsending_q_len={sending}\npending_q_len=9\nbacklog_q_len={backlog}\ndst_port=20049\n",
                in_use * 256,
                credits * 256
            );
            transport("10.0.0.2\n", &info, "state= CONNECTED  BOUND\n", "")
        };
        let at = |credits, sending, backlog| using(credits, credits, sending, backlog);
        let (mount, established) = (mount("proto=rdma"), [client("")]);
        let few = "3 calls wait: the server grants 4 credits, this client asks for 128";
        let one =
            "7 calls wait: the server grants 1 credit, or has not answered on this connection yet";
        let slots = "7 calls wait for a slot: all 128 of a transport are in use";
        for (transports, expected) in [
            (vec![at(4, 0, 0)], vec!["fine"]),
            // Each call waits until the call before it is sent.
            (vec![at(128, 3, 0)], vec!["fine"]),
            (vec![at(4, 3, 0)], vec![few]),
            // A credit is left.
            (vec![using(3, 4, 3, 0)], vec!["fine"]),
            (vec![using(63, 64, 7, 0), at(4, 3, 0)], vec![few]),
            // The server has granted less since.
            (vec![using(6, 4, 3, 0)], vec![few]),
            (vec![at(4, 1, 0), at(4, 3, 0), at(128, 9, 0)], vec![few]),
            (
                vec![at(4, 1, 0)],
                vec!["1 call waits: the server grants 4 credits, this client asks for 128"],
            ),
            (vec![at(128, 0, 7)], vec![slots]),
            (vec![at(4, 3, 7)], vec![few, slots]),
            // Also before the first reply on a connection.
            (vec![at(1, 7, 0)], vec![one]),
        ] {
            let facts = Facts {
                transports: &transports,
                ..facts(&mount, &established)
            };
            let verdicts = of_mount(&facts);
            let found: Vec<&str> = verdicts.iter().map(|verdict| &*verdict.sentence).collect();
            assert_eq!(found, expected);
        }
        let verdict = few_credits(&[at(4, 3, 0)]).unwrap();
        assert!(verdict.remedy.unwrap().starts_with(
            "on 10.0.0.2, if /proc/fs/nfsd/portlist there has `rdma 20049`: echo 128 > /proc/sys/sunrpc/svc_rdma/max_requests"
        ));
    }

    #[test]
    fn of_mounts_that_wait_for_a_connection() {
        use crate::parse::transports::transport;

        let at = |state: &str, calls: u64| {
            let switch = format!("num_xprts=1\nqueue_len={calls}\n");
            transport("10.0.0.2\n", "<closed>\n", state, &switch)
        };
        let (closed, connected) = ("state=  BOUND\n", "state= CONNECTED  BOUND\n");
        let mount = mount("proto=rdma,port=20049");
        let idle = "note not-connected: not connected at present: the client connects again with the next call";
        let waits = "failed not-connected: not connected: 2 calls wait";
        let unknown =
            "unknown unknown: unknown what it negotiated: the module's files could not be read";
        let connecting = client("state: connecting\n");
        let ended = client("state: disconnected\nlast_failure: disconnected by this end\n");
        let failed = client("state: disconnected\nlast_failure: an error\n");
        let refused = "the peer rejected the connection";
        let reason = format!("{waits}; last failure: {refused}");
        for (transports, connections, last_failure, expected) in [
            (
                vec![at(closed, 0)],
                Some(vec![]),
                Some(refused),
                vec![FINE, idle],
            ),
            (vec![at(closed, 2)], Some(vec![]), None, vec![waits]),
            // The client was idle.
            (
                vec![at(closed, 0)],
                Some(vec![ended.clone()]),
                None,
                vec![FINE, idle],
            ),
            (
                vec![at(closed, 2)],
                Some(vec![ended.clone()]),
                None,
                vec![waits],
            ),
            // In another network namespace.
            (vec![], Some(vec![ended]), None, vec![FINE, idle]),
            (
                vec![],
                Some(vec![failed]),
                None,
                vec!["failed not-connected: not connected: disconnected; last failure: an error"],
            ),
            (
                vec![at(closed, 2)],
                Some(vec![]),
                Some(refused),
                vec![&*reason],
            ),
            (vec![at(closed, 2)], None, None, vec![waits, unknown]),
            // One transport of `nconnect=` is connected.
            (
                vec![at(closed, 2), at(connected, 2)],
                Some(vec![]),
                None,
                vec![FINE, idle],
            ),
            (
                vec![at(closed, 2)],
                Some(vec![connecting]),
                None,
                vec!["failed not-connected: not connected: connecting"],
            ),
        ] {
            let facts = Facts {
                transports: &transports,
                connections: connections.as_deref(),
                last_failure,
                ..facts(&mount, &[])
            };
            assert_eq!(lines(&of_mount(&facts)), expected);
        }
    }

    /// A server with two connections of a mount restarts: each of them is lost once.
    #[test]
    fn of_mounts_with_several_transports() {
        let (mount, established) = (mount("proto=rdma"), [client("")]);
        let often = "degraded lost-often: lost 3 times in an hour";
        for (lost, connects, expected) in [(2, 2, FINE), (3, 2, often), (2, 1, FINE)] {
            let transport = transport(connects, 0);
            let stats = stats(10, &[&transport, &transport]);
            let facts = Facts {
                stats: Some(&stats),
                age_seconds: Some(10),
                lost_in_an_hour: Some(lost),
                transports_of_server: 2,
                ..facts(&mount, &established)
            };
            assert_eq!(lines(&of_mount(&facts)), [expected], "{lost} {connects}");
        }
    }

    /// The server may not answer.
    #[test]
    fn remedy_of_one_credit() {
        use crate::parse::transports::transport;

        let info =
            "cur_cong=256\ncong_win=256\nmax_num_slots=128\nsending_q_len=7\ndst_port=20049\n";
        let verdict = few_credits(&[transport("fd77::2\n", info, "state= CONNECTED\n", "")]);
        let remedy = verdict.unwrap().remedy.unwrap();
        let (first, second) = remedy.split_once('\n').unwrap();
        assert_eq!(first, "on this host: rpcrdma-cm probe [fd77::2]:20049");
        assert!(
            second.starts_with("if it answers: on fd77::2, "),
            "{second}"
        );
    }

    /// Without the module, by the keys of series/observe's second patch.
    #[test]
    fn of_mounts_by_their_thresholds() {
        use crate::parse::transports::transport;

        let at = |keys: &str| transport("10.0.0.2\n", keys, "state= CONNECTED  BOUND\n", "");
        let usual = at("inline_send=4096\ninline_recv=4096\n");
        let closed = transport("10.0.0.2\n", "<closed>\n", "state=  BOUND\n", "");
        let unknown = "unknown what it negotiated: the module's files could not be read";
        let calls = "calls over 4095 octets go by chunks: one end has less than Linux' 4096";
        let replies = "replies over 1024 octets go by chunks: one end has less than Linux' 4096";
        let mount = mount("proto=rdma");
        for (transports, expected) in [
            (vec![], vec![unknown]),
            (vec![closed.clone()], vec![unknown]),
            (vec![at("")], vec![unknown]),
            (vec![at("inline_send=4096\n")], vec![unknown]),
            (vec![usual.clone(), at("")], vec![unknown]),
            (vec![usual.clone(), closed], vec!["fine"]),
            (
                vec![at("inline_send=4095\ninline_recv=4096\n")],
                vec![calls],
            ),
            (
                vec![usual, at("inline_send=4095\ninline_recv=1024\n")],
                vec![calls, replies],
            ),
        ] {
            let facts = Facts {
                connections: None,
                transports: &transports,
                ..facts(&mount, &[])
            };
            let verdicts = of_mount(&facts);
            let found: Vec<&str> = verdicts.iter().map(|verdict| &*verdict.sentence).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn of_other_transports() {
        for (options, expected) in [
            (
                "proto=tcp,port=20049",
                Some("not RDMA: this mount fell back to TCP"),
            ),
            (
                "proto=tcp6,port=20049",
                Some("not RDMA: this mount fell back to TCP6"),
            ),
            ("proto=tcp", None),
            ("proto=rdma,port=20049", None),
            ("proto=rdma6,port=20049", None),
        ] {
            let found = not_rdma(&mount(options), &[]);
            assert_eq!(
                found.as_ref().map(|verdict| &*verdict.sentence),
                expected,
                "{options}"
            );
        }
    }

    #[test]
    fn of_other_transports_by_fstab() {
        for (options, expected) in [
            ("proto=tcp", Some("not RDMA: this mount fell back to TCP")),
            ("proto=rdma,port=20049", None),
        ] {
            let mut mounts = [mount(options)];
            let entries = mounts::rdma_entries("s:/ /mnt nfs rdma 0 0");
            mounts::mark_by_fstab(&mut mounts, &entries);
            let found = not_rdma(&mounts[0], &mounts);
            assert_eq!(
                found.as_ref().map(|verdict| &*verdict.sentence),
                expected,
                "{options}"
            );
        }
    }

    #[test]
    fn of_reports() {
        let module = "origin: module\nrole: client\npeer_private_data: present\n";
        for (text, expected) in [
            (
                String::new(),
                vec!["unknown unknown: unknown: there is no report of the probe"],
            ),
            (
                "reachable: no: connection refused\n".to_owned(),
                vec!["failed unreachable: unreachable: connection refused"],
            ),
            (
                format!("reachable: yes\nrpc_version_1: SUCCESS\nrpc_version_2: ERR_VERS\n{module}"),
                vec![FINE],
            ),
            (
                format!("reachable: yes\nrpc_version_1: no reply\nrpc_version_2: SUCCESS\n{module}"),
                vec![FINE],
            ),
            (
                format!("reachable: yes\nrpc_version_1: PROG_UNAVAIL\nrpc_version_2: no reply\n{module}"),
                vec!["degraded no-answer: it accepts connections, and NULL fails: PROG_UNAVAIL"],
            ),
            (
                format!("reachable: yes\nrpc_version_1: no reply in time\n{module}"),
                vec!["degraded no-answer: it accepts connections and does not answer NULL: no reply in time"],
            ),
            (
                format!("reachable: yes\nrpc_version_1: the server answered with a message of 0 octets\n{module}rpc_null: the server answered with a message of 0 octets\n"),
                vec!["degraded bad-reply: NULL has no result: the server answered with a message of 0 octets"],
            ),
            (
                format!("reachable: yes\nrpc_version_1: SUCCESS\nprogram: 100003\nprogram_version: 3\nprogram_versions: 3 to 3\n{module}"),
                vec![
                    FINE,
                    "note program-version: the server has only version 3 of NFS: this is the result of NFS version 3",
                ],
            ),
            (
                format!("reachable: yes\nrpc_version_1: SUCCESS\nprogram: 7\nprogram_version: 2\nprogram_versions: 2 to 5\n{module}"),
                vec![
                    FINE,
                    "note program-version: the server has only versions 2 to 5 of program 7: this is the result of program 7 version 2",
                ],
            ),
            (
                format!("reachable: yes\nrpc_version_1: SUCCESS\n{module}deviation: b\n"),
                vec!["degraded deviates: deviation of the server: b"],
            ),
        ] {
            assert_eq!(lines(&of_report("10.0.0.2:20049", &info::report(&text))), expected, "{text}");
        }
    }

    #[test]
    fn times_in_words() {
        for (seconds, text) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (59, "59 seconds"),
            (60, "1 minute"),
            (3599, "59 minutes"),
            (7200, "2 hours"),
            (200_000, "2 days"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
