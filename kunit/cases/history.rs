// SPDX-License-Identifier: GPL-2.0

//! The file `history`.

use core::fmt::{
    self,
    Write, //
};

use crate::pure::{
    text::{
        history::{
            Entry,
            HistoryColumns,
            HistoryEvent,
            NegotiatedColumns,
            Timestamp,
            Transition, //
        },
        snapshot::{
            Cause,
            Detail,
            Origin, //
        }, //
    },
    wire::negotiation::Role, //
};

/// The file without an event.
pub(crate) const NO_EVENTS: &str = "\
TIME DATE                     ID ORIGIN ROLE   EVENT          LOCAL REMOTE GEN LASTED_MS C2S \
S2C INV REASON
";

/// A client of the module, established for the first time.
fn event() -> HistoryEvent {
    HistoryEvent {
        transition: Transition::Established,
        number: Some(7),
        origin: Origin::Module,
        of_root: false,
        role: Role::Client,
        local: "192.0.2.1:35000".parse().ok(),
        remote: "192.0.2.2:20049".parse().ok(),
        generation: Some(1),
        lasted_ms: None,
        outcome: outcome(4096, 4096, false),
        reason: None,
    }
}

/// Each owner of connections, its role, whether it is root, the address of the peer, and the ring
/// of the events: no event overwrites those of another ring.
const RINGS: [(Origin, Role, bool, &str, usize); 14] = [
    (Origin::Nfs, Role::Client, false, "192.0.2.2:20049", 0),
    (Origin::Module, Role::Client, false, "192.0.2.9:20049", 0),
    (Origin::User, Role::Client, true, "192.0.2.2:20049", 1),
    (Origin::User, Role::Server, true, "192.0.2.9:700", 1),
    (Origin::User, Role::Client, false, "192.0.2.2:20049", 2),
    (Origin::User, Role::Server, false, "192.0.2.9:700", 2),
    (Origin::Nfs, Role::Server, false, "192.0.2.2:700", 3),
    (Origin::Module, Role::Server, false, "192.0.2.2:65535", 3),
    (Origin::Nfs, Role::Server, false, "192.0.2.3:700", 4),
    (Origin::Module, Role::Server, false, "192.0.2.0:700", 5),
    (Origin::Nfs, Role::Server, false, "192.0.2.5:700", 10),
    (Origin::Nfs, Role::Server, false, "[2001:db8::2]:700", 9),
    (Origin::Nfs, Role::Server, false, "[2001:db8::3]:700", 10),
    // The peer of an id without an address.
    (Origin::Nfs, Role::Server, false, "", 3),
];

/// Returns the first row of [`RINGS`] whose events are kept in another ring.
pub(crate) fn wrong_ring() -> Option<usize> {
    RINGS
        .iter()
        .position(|&(origin, role, of_root, remote, ring)| {
            let event = HistoryEvent {
                origin,
                role,
                of_root,
                remote: remote.parse().ok(),
                ..event()
            };
            event.ring() != ring || ring >= HistoryEvent::RINGS
        })
}

fn outcome(
    client_to_server: u32,
    server_to_client: u32,
    remote_invalidation: bool,
) -> NegotiatedColumns {
    NegotiatedColumns {
        client_to_server: Some(client_to_server),
        server_to_client: Some(server_to_client),
        remote_invalidation: Some(remote_invalidation),
    }
}

fn reason(text: &'static str) -> Option<Cause> {
    Some(Cause { text, detail: None })
}

/// How many events [`EVENTS`] has.
const COUNT: usize = 16;

/// The time of an event, as in [`Timestamp`], and its differences to [`event`].
type Change = (u64, u64, fn(&mut HistoryEvent));

/// The events of [`TEXT`], oldest first.
const EVENTS: [Change; COUNT] = [
    (0, 0, |_| {}),
    (999, 999_999, |it| {
        it.transition = Transition::Lost;
        it.lasted_ms = Some(0);
        it.reason = reason("disconnected by the peer");
    }),
    // A failed attempt has no outcome, and leaves no gap between the generations.
    (1_000, 1_000_000, |it| {
        it.transition = Transition::Refused;
        it.local = None;
        it.generation = Some(2);
        it.outcome = NegotiatedColumns::default();
        it.reason = Some(Cause {
            text: "the peer rejected the connection",
            detail: Some(Detail::Reason(c"consumer defined")),
        });
    }),
    // Everything has changed.
    (999_999_999, 68_169_599_999_999_999, |it| {
        it.transition = Transition::established(2);
        it.local = "192.0.2.1:35001".parse().ok();
        it.generation = Some(2);
        it.outcome = outcome(131_072, 1024, true);
    }),
    (1_000_000_000, 68_169_600_000_000_000, |it| {
        it.transition = Transition::Closed;
        it.local = "192.0.2.1:35001".parse().ok();
        it.generation = Some(2);
        it.lasted_ms = Some(86_400_000);
        it.outcome = outcome(131_072, 1024, true);
    }),
    // Each connection of the kernel's client has a number of its own.
    (1_000_001_000, 951_782_400_000_000_000, |it| {
        it.number = Some(8);
        it.origin = Origin::Nfs;
    }),
    // Another server.
    (1_000_002_000, 951_825_600_500_000_000, |it| {
        it.number = Some(9);
        it.origin = Origin::Nfs;
        it.remote = "192.0.2.3:20049".parse().ok();
        it.outcome = outcome(1024, 1024, true);
    }),
    // Another origin, or another role.
    (1_000_003_000, 951_868_799_999_000_000, |it| {
        it.number = Some(10);
        it.origin = Origin::User;
        it.outcome = outcome(2048, 2048, true);
    }),
    (1_000_003_000, 951_868_800_000_000_000, |it| {
        it.number = Some(11);
        it.origin = Origin::Nfs;
        it.role = Role::Server;
        it.outcome = outcome(3072, 3072, true);
    }),
    // One value has changed.
    (12_000_000_000, 1_795_309_323_456_789_012, |it| {
        it.transition = Transition::established(2);
        it.number = Some(12);
        it.origin = Origin::Nfs;
        it.generation = Some(2);
        it.outcome = outcome(4096, 8192, false);
    }),
    // Each generation follows the one before it.
    (12_000_000_000, 1_795_309_323_457_000_000, |it| {
        it.transition = Transition::established(3);
        it.number = Some(13);
        it.origin = Origin::Nfs;
        it.generation = Some(3);
        it.outcome = outcome(4096, 4096, false);
    }),
    // The generation before is not known.
    (12_000_000_000, 1_795_309_323_457_000_000, |it| {
        it.transition = Transition::established(9);
        it.number = Some(14);
        it.origin = Origin::Nfs;
        it.generation = Some(9);
        it.outcome = outcome(1024, 1024, true);
    }),
    // An unknown value is not shown as a change.
    (12_000_000_000, 1_795_309_323_457_000_000, |it| {
        it.transition = Transition::established(10);
        it.number = Some(15);
        it.origin = Origin::Nfs;
        it.generation = Some(10);
        it.outcome = NegotiatedColumns {
            server_to_client: Some(2048),
            ..NegotiatedColumns::default()
        };
    }),
    // A request that was refused has no number.
    (34_567_890_123_456, 4_107_542_399_999_000_000, |it| {
        it.transition = Transition::Refused;
        it.number = None;
        it.role = Role::Server;
        it.local = "[fd00::1]:20049".parse().ok();
        it.remote = "[fd00:1234:5678:9abc:def0:1234:5678:9abc]:65535"
            .parse()
            .ok();
        it.generation = None;
        it.outcome = NegotiatedColumns::default();
        it.reason = reason("the listener has its maximum of connections");
    }),
    (34_567_890_124_456, 4_107_542_400_000_000_000, |it| {
        it.transition = Transition::Failed;
        it.number = Some(1000);
        it.origin = Origin::User;
        it.local = None;
        it.remote = None;
        it.generation = Some(4_294_967_295);
        it.outcome = NegotiatedColumns::default();
        it.reason = reason("given up before it was established");
    }),
    (u64::MAX, u64::MAX, |it| {
        it.transition = Transition::Lost;
        it.origin = Origin::User;
        it.role = Role::Server;
        it.lasted_ms = Some(i64::MAX);
        it.outcome.remote_invalidation = None;
        it.reason = reason("disconnected");
    }),
];

/// The file of [`EVENTS`].
pub(crate) const TEXT: &str = include_str!("history.txt");

/// Writes the file of [`EVENTS`].
pub(crate) fn history(out: &mut dyn Write) -> fmt::Result {
    let mut entries: [Option<Entry>; COUNT] = [None; COUNT];
    for (at, &(log_ns, utc_ns, change)) in EVENTS.iter().enumerate() {
        let mut event = event();
        change(&mut event);
        let earlier = entries.get(..at).unwrap_or_default().iter().rev().flatten();
        let entry = Entry::new(Timestamp { log_ns, utc_ns }, event, earlier);
        if let Some(place) = entries.get_mut(at) {
            *place = Some(entry);
        }
    }

    let mut columns = HistoryColumns::new();
    entries
        .iter()
        .flatten()
        .for_each(|entry| columns.include(entry));
    columns.header(out)?;
    entries
        .iter()
        .flatten()
        .try_for_each(|entry| columns.line(entry, out))
}
