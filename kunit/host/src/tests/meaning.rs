// SPDX-License-Identifier: GPL-2.0

//! The meaning of every event for an id, for all that may be known of the id.

use crate::pure::wire::{
    meaning::{
        Event,
        Known,
        Meaning,
        Step,
        User, //
    },
    negotiation::Role, //
};

const KNOWN: [Known; 5] = [NOTHING, CONNECTING, REQUESTED, SPOKE, OBSERVED];
const NOTHING: Known = Known::Nothing;
const CONNECTING: Known = Known::Connecting;
const REQUESTED: Known = Known::Requested { speaks: false };
/// A request that speaks RPC-over-RDMA.
const SPOKE: Known = Known::Requested { speaks: true };
const OBSERVED: Known = Known::Observed;

const STEPS: [Step; 11] = [
    REQUEST,
    REFUSED,
    Step::Connect,
    Step::Accept,
    Step::Established,
    Step::Other,
    Step::Evidence,
    LISTENER,
    FOUND[0],
    FOUND[1],
    Step::Destroyed,
];
const REQUEST: Step = Step::Request { refused: false };
const REFUSED: Step = Step::Request { refused: true };
const LISTENER: Step = Step::Existing { role: None };
const FOUND: [Step; 2] = [
    Step::Existing {
        role: Some(Role::Client),
    },
    Step::Existing {
        role: Some(Role::Server),
    },
];

/// A program's event, by whether it shows RPC-over-RDMA, or an event of the kernel's NFS, which
/// always does.
const SILENT: (User, bool) = (User::Program, false);
const SPEAKS: (User, bool) = (User::Program, true);
const CLIENT: (User, bool) = (User::Client, true);
const SERVER: (User, bool) = (User::Server, true);
const KERNEL: &[(User, bool)] = &[CLIENT, SERVER];
const SPEAKING: &[(User, bool)] = &[SPEAKS, CLIENT, SERVER];
const ALL: &[(User, bool)] = &[SILENT, SPEAKS, CLIENT, SERVER];

/// The knowledge of an id, the kinds of events, their owners, and the meaning of each of them.
type Row<'a> = (&'a [Known], &'a [Step], &'a [(User, bool)], Meaning);

const ROWS: &[Row<'_>] = &[
    (&KNOWN, &[Step::Destroyed], ALL, Meaning::End),
    (&KNOWN, &[REFUSED], SPEAKING, Meaning::Refuse),
    (&KNOWN, &[REFUSED], &[SILENT], Meaning::Nothing),
    (&KNOWN, &[REQUEST], KERNEL, Meaning::Observe(Role::Server)),
    (
        &KNOWN,
        &[REQUEST],
        &[SILENT, SPEAKS],
        Meaning::BeginUndecided(Role::Server),
    ),
    // Of an observed id every event is noted.
    (
        &[OBSERVED],
        &[Step::Connect, Step::Accept, Step::Established, Step::Other],
        ALL,
        Meaning::Note,
    ),
    (&[OBSERVED], &[Step::Evidence], ALL, Meaning::Learn),
    (
        &[OBSERVED],
        &[LISTENER, FOUND[0], FOUND[1]],
        ALL,
        Meaning::Nothing,
    ),
    // A client speaks first.
    (
        &[NOTHING, CONNECTING, REQUESTED, SPOKE],
        &[Step::Connect],
        SPEAKING,
        Meaning::Observe(Role::Client),
    ),
    (
        &[NOTHING, CONNECTING, REQUESTED, SPOKE],
        &[Step::Connect],
        &[SILENT],
        Meaning::BeginUndecided(Role::Client),
    ),
    // An undecided id: the private data of the other side, or the accept, decides.
    (
        &[CONNECTING, REQUESTED, SPOKE],
        &[Step::Accept, Step::Established, Step::Other],
        SPEAKING,
        Meaning::ObserveUndecided,
    ),
    (
        &[SPOKE],
        &[Step::Accept],
        &[SILENT],
        Meaning::ObserveUndecided,
    ),
    (
        &[CONNECTING],
        &[Step::Accept, Step::Established],
        &[SILENT],
        Meaning::Forget,
    ),
    (
        &[REQUESTED, SPOKE],
        &[Step::Established],
        &[SILENT],
        Meaning::Forget,
    ),
    (
        &[REQUESTED],
        &[Step::Accept],
        &[SILENT],
        Meaning::NoteUndecided,
    ),
    (
        &[CONNECTING, REQUESTED, SPOKE],
        &[Step::Other],
        &[SILENT],
        Meaning::NoteUndecided,
    ),
    (
        &[CONNECTING, REQUESTED, SPOKE],
        &[Step::Evidence, LISTENER, FOUND[0], FOUND[1]],
        ALL,
        Meaning::Nothing,
    ),
    // An id of which nothing is known.
    (
        &[NOTHING],
        &[FOUND[0]],
        SPEAKING,
        Meaning::Observe(Role::Client),
    ),
    (
        &[NOTHING],
        &[FOUND[1]],
        SPEAKING,
        Meaning::Observe(Role::Server),
    ),
    (
        &[NOTHING],
        &[FOUND[0], FOUND[1]],
        &[SILENT],
        Meaning::Nothing,
    ),
    (&[NOTHING], &[LISTENER], ALL, Meaning::Nothing),
    (
        &[NOTHING],
        &[Step::Accept],
        &[SERVER],
        Meaning::ObserveOlder,
    ),
    (
        &[NOTHING],
        &[Step::Accept],
        &[SILENT, SPEAKS, CLIENT],
        Meaning::Nothing,
    ),
    (
        &[NOTHING],
        &[Step::Established, Step::Other, Step::Evidence],
        ALL,
        Meaning::Nothing,
    ),
];

/// Each combination has exactly one row.
#[test]
fn every_event_of_every_id() {
    for known in KNOWN {
        for step in STEPS {
            for &(user, speaks) in ALL {
                let event = Event { user, step, speaks };
                let rows: Vec<_> = ROWS
                    .iter()
                    .filter(|(of, steps, whose, _)| {
                        of.contains(&known)
                            && steps.contains(&step)
                            && whose.contains(&(user, speaks))
                    })
                    .collect();
                let [(.., expected)] = rows[..] else {
                    panic!("{} rows for {event:?}, {known:?}", rows.len());
                };
                assert_eq!(event.meaning(known), *expected, "{event:?}, {known:?}");
            }
        }
    }
}
