// SPDX-License-Identifier: GPL-2.0

//! The conclusions from the counters of the kernel's client, compared with a model of that client.

use proptest::prelude::*;

use super::cases;
use crate::pure::wire::inferred_invalidation::{
    Counters,
    Invalidations, //
};

/// A call's chunks, in segments.
#[derive(Clone, Copy, Debug)]
struct Chunks {
    read: u64,
    write: u64,
    reply: u64,
    /// Whether a Write chunk has a segment for padding.
    padded: bool,
}

impl Chunks {
    /// The segments that are registered for this call.
    fn registered(&self) -> u64 {
        self.read + self.write + self.reply
    }
}

/// The next action of the client.
#[derive(Clone, Debug)]
enum Step {
    /// Registers the segments of a call, without having sent it yet.
    Marshal(Chunks),
    /// Sends the call that has been marshalled, or gives it up.
    Send { fails: bool },
    /// Receives the reply to the call that was sent first; the server may have invalidated a
    /// segment.
    Reply { invalidated: bool },
    /// A call ends without a reply.
    Abandon,
    /// The client replies to a callback.
    Callback,
    /// The counters are read.
    Read,
}

fn chunks() -> impl Strategy<Value = Chunks> {
    // The combinations of chunk lists that the client uses.
    prop_oneof![
        2 => Just((0, 0, 0)),
        2 => (1..=16u64).prop_map(|read| (read, 0, 0)),
        2 => (1..=16u64).prop_map(|write| (0, write, 0)),
        2 => (0..=16u64, 1..=16u64).prop_map(|(read, reply)| (read, 0, reply)),
        1 => Just((1, 0, 0)),
        1 => Just((0, 1, 0)),
    ]
    .prop_flat_map(|(read, write, reply)| {
        any::<bool>().prop_map(move |padded| Chunks {
            read,
            write,
            reply,
            padded: padded && write > 0,
        })
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => chunks().prop_map(Step::Marshal),
        6 => prop::bool::weighted(0.02).prop_map(|fails| Step::Send { fails }),
        6 => any::<bool>().prop_map(|invalidated| Step::Reply { invalidated }),
        1 => Just(Step::Abandon),
        1 => Just(Step::Callback),
        4 => Just(Step::Read),
    ]
}

/// The client, with its counters.
#[derive(Default)]
struct Client {
    counters: Counters,
    marshalled: Option<Chunks>,
    sent: Vec<Chunks>,
    invalidated: bool,
    replied_with_chunks: bool,
}

impl Client {
    fn take(&mut self, step: &Step, invalidates: bool) {
        match step {
            Step::Marshal(chunks) if self.marshalled.is_none() => {
                self.counters.read_segments += chunks.read;
                self.counters.write_segments += chunks.write + u64::from(chunks.padded);
                self.counters.reply_segments += chunks.reply;
                self.marshalled = Some(*chunks);
            }
            Step::Send { fails } => match self.marshalled.take() {
                Some(_) if *fails => self.counters.failed_marshals += 1,
                Some(chunks) => {
                    self.counters.sends += 1;
                    self.sent.push(chunks);
                }
                None => {}
            },
            Step::Reply { invalidated } if !self.sent.is_empty() => {
                let chunks = self.sent.remove(0);
                let remotely = u64::from(*invalidated && invalidates && chunks.registered() > 0);
                self.counters.receives += 1;
                self.counters.local_invalidations += chunks.registered() - remotely;
                self.invalidated |= remotely > 0;
                self.replied_with_chunks |= chunks.registered() > 0;
            }
            Step::Abandon if !self.sent.is_empty() => {
                let chunks = self.sent.remove(0);
                self.counters.local_invalidations += chunks.registered();
            }
            Step::Callback => self.counters.sends += 1,
            _ => {}
        }
    }

    fn counters(&self) -> Counters {
        Counters {
            steady: self.marshalled.is_none(),
            ..self.counters
        }
    }
}

proptest! {
    #![proptest_config(cases(20_000))]

    /// No conclusion is wrong, at any moment at which the counters are read.
    #[test]
    fn no_verdict_is_wrong(
        invalidates in any::<bool>(),
        older in any::<bool>(),
        callbacks in any::<bool>(),
        before in prop::collection::vec(step(), 0..20),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut client = Client::default();
        let mut invalidations = Invalidations::begin(Client::default().counters());
        if older {
            // These happen before the first reading.
            for step in &before {
                client.take(step, invalidates);
            }
            client.invalidated = false;
            invalidations = Invalidations::default();
        }

        for step in &steps {
            // After a callback no moment seems quiet.
            if matches!(step, Step::Callback) && !callbacks {
                continue;
            }
            client.take(step, invalidates);
            if let Step::Read = step {
                let known = invalidations.used();
                invalidations.learn(&client.counters());
                match invalidations.used() {
                    Some(true) => prop_assert!(client.invalidated || (older && invalidates)),
                    // A conclusion stays until the opposite is certain.
                    Some(false) if known.is_none() => {
                        prop_assert!(!client.invalidated || older);
                        prop_assert!(client.replied_with_chunks);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// A server that invalidates whenever it can is detected with the first call that has a chunk.
#[test]
fn one_call_is_enough() {
    for chunks in [(1, 0, 0), (0, 1, 0), (0, 0, 1)] {
        let (read, write, reply) = chunks;
        for invalidates in [false, true] {
            let mut client = Client::default();
            let mut invalidations = Invalidations::begin(Client::default().counters());
            for step in [
                Step::Marshal(Chunks {
                    read,
                    write,
                    reply,
                    padded: false,
                }),
                Step::Send { fails: false },
                Step::Reply { invalidated: true },
            ] {
                invalidations.learn(&client.counters());
                assert_eq!(invalidations.used(), None, "{chunks:?} {step:?}");
                client.take(&step, invalidates);
            }
            invalidations.learn(&client.counters());
            assert_eq!(invalidations.used(), Some(invalidates), "{chunks:?}");
        }
    }
}
