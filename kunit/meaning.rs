// SPDX-License-Identifier: GPL-2.0

//! The meaning of the events of an id, in the order in which rdma_cm reports them.

use kernel::prelude::*;

#[kunit_tests(rpcrdma_cm_meaning)]
mod tests {
    use super::*;
    use crate::{
        pure::wire::{
            meaning::{
                Event,
                Known,
                Meaning::{
                    self,
                    *, //
                },
                Step::{
                    self,
                    *, //
                },
                User, //
            },
            negotiation::Role, //
        },
        rows::check, //
    };

    const REQUEST: Step = Request { refused: false };
    const REFUSED: Step = Request { refused: true };
    const FOUND_CLIENT: Step = Existing {
        role: Some(Role::Client),
    };
    const FOUND_SERVER: Step = Existing {
        role: Some(Role::Server),
    };
    const SPEAKS: bool = true;
    const SILENT: bool = false;

    /// An event, whether it speaks RPC-over-RDMA, and its meaning.
    type Row = (Step, bool, Meaning);

    /// Returns what is known of an id after an event with this meaning.
    fn after(known: Known, event: Event, meaning: Meaning) -> Known {
        match meaning {
            BeginUndecided(Role::Client) => Known::Connecting,
            BeginUndecided(Role::Server) => Known::Requested {
                speaks: event.speaks,
            },
            Observe(_) | ObserveUndecided | ObserveOlder => Known::Observed,
            Forget | End => Known::Nothing,
            Nothing | NoteUndecided | Note | Learn | Refuse => known,
        }
    }

    /// Each row is the life of an id: its owner, and each event with its meaning.
    #[test]
    fn lives_of_ids() -> Result {
        let rows: &[(&str, User, &[Row])] = &[
            (
                "a mount",
                User::Client,
                &[
                    (Connect, SPEAKS, Observe(Role::Client)),
                    (Established, SPEAKS, Note),
                    (Evidence, SPEAKS, Learn),
                    (Other, SPEAKS, Note),
                    (Destroyed, SPEAKS, End),
                ],
            ),
            (
                "a client of nfsd",
                User::Server,
                &[
                    (REQUEST, SPEAKS, Observe(Role::Server)),
                    (Accept, SPEAKS, Note),
                    (Established, SPEAKS, Note),
                    (Destroyed, SPEAKS, End),
                ],
            ),
            (
                "a client that nfsd refuses",
                User::Server,
                &[(REFUSED, SPEAKS, Refuse), (Destroyed, SPEAKS, End)],
            ),
            (
                "a client of nfsd whose request came before the probes",
                User::Server,
                &[
                    (Accept, SPEAKS, ObserveOlder),
                    (FOUND_SERVER, SPEAKS, Nothing),
                ],
            ),
            (
                "a mount that the search finds",
                User::Client,
                &[
                    (FOUND_CLIENT, SPEAKS, Observe(Role::Client)),
                    (Other, SPEAKS, Note),
                ],
            ),
            (
                "a listener that the search finds",
                User::Server,
                &[(Existing { role: None }, SPEAKS, Nothing)],
            ),
            (
                "a program of another protocol that connects",
                User::Program,
                &[
                    (Connect, SILENT, BeginUndecided(Role::Client)),
                    (Other, SILENT, NoteUndecided),
                    (Established, SILENT, Forget),
                    (Other, SILENT, Nothing),
                    (Destroyed, SILENT, End),
                ],
            ),
            (
                "a program of another protocol that connects without ESTABLISHED",
                User::Program,
                &[
                    (Connect, SILENT, BeginUndecided(Role::Client)),
                    (Accept, SILENT, Forget),
                ],
            ),
            (
                "a program of another protocol that is found",
                User::Program,
                &[(FOUND_CLIENT, SILENT, Nothing)],
            ),
            (
                "a program that is found by its port",
                User::Program,
                &[
                    (FOUND_SERVER, SPEAKS, Observe(Role::Server)),
                    (Evidence, SILENT, Learn),
                ],
            ),
            (
                "a program that connects, and only the server has the Format Identifier",
                User::Program,
                &[
                    (Connect, SILENT, BeginUndecided(Role::Client)),
                    (Other, SPEAKS, ObserveUndecided),
                    (Accept, SILENT, Note),
                ],
            ),
            (
                "a program that does not accept a request with the Format Identifier",
                User::Program,
                &[
                    (REQUEST, SPEAKS, BeginUndecided(Role::Server)),
                    (Evidence, SILENT, Nothing),
                    (Destroyed, SILENT, End),
                ],
            ),
            (
                "a program that accepts one",
                User::Program,
                &[
                    (REQUEST, SPEAKS, BeginUndecided(Role::Server)),
                    (Accept, SILENT, ObserveUndecided),
                    (Established, SILENT, Note),
                ],
            ),
            (
                "a program that accepts a request without it, and does not send it",
                User::Program,
                &[
                    (REQUEST, SILENT, BeginUndecided(Role::Server)),
                    (Accept, SILENT, NoteUndecided),
                    (Established, SILENT, Forget),
                ],
            ),
            (
                "a program whose library refuses a request with it",
                User::Program,
                &[(REFUSED, SPEAKS, Refuse)],
            ),
            (
                "ids of programs at the address of one whose end was lost",
                User::Program,
                &[
                    (Connect, SILENT, BeginUndecided(Role::Client)),
                    (REFUSED, SILENT, Nothing),
                    (REQUEST, SILENT, BeginUndecided(Role::Server)),
                    (REFUSED, SPEAKS, Refuse),
                    (Connect, SPEAKS, Observe(Role::Client)),
                    (REQUEST, SPEAKS, BeginUndecided(Role::Server)),
                    (FOUND_SERVER, SPEAKS, Nothing),
                    (Established, SILENT, Forget),
                ],
            ),
        ];

        for &(row, user, events) in rows {
            let mut known = Known::Nothing;
            for (at, &(step, speaks, expected)) in events.iter().enumerate() {
                let event = Event { user, step, speaks };
                let meaning = event.meaning(known);
                check(format_args!("{row}, event {at}"), meaning, expected)?;
                known = after(known, event, meaning);
            }
        }
        Ok(())
    }
}
