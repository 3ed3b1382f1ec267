// SPDX-License-Identifier: GPL-2.0

//! The first cause of the end of a connection, for every order of the evidence.

use crate::pure::wire::ending::{
    Ending,
    Evidence, //
};

const ALL: [Evidence; 7] = [
    Evidence::Disconnected,
    Evidence::Rejected,
    Evidence::Disconnect,
    Evidence::Error,
    Evidence::GivenUp,
    Evidence::Gone,
    Evidence::Consequence,
];

/// The rule in sentences about the whole order.
fn expected(evidence: &[Evidence], iwarp: bool) -> Ending {
    let names = |evidence: &Evidence| match evidence {
        Evidence::Error => Some(Ending::Error),
        Evidence::Gone => Some(Ending::Gone),
        Evidence::Rejected => Some(Ending::Peer),
        _ => None,
    };
    let Some((first, rest)) = evidence.split_first() else {
        return Ending::None;
    };
    // Without a consequence before it, the first one is the cause.
    match first {
        Evidence::Disconnected | Evidence::Rejected => return Ending::Peer,
        Evidence::Disconnect | Evidence::GivenUp => return Ending::ThisEnd,
        Evidence::Error => return Ending::Error,
        Evidence::Gone => return Ending::Gone,
        Evidence::Consequence => {}
    }
    // After a consequence, no act of this end shows the cause. A disconnect of the peer shows it
    // only over iWARP, where it may be reported after its consequences, and only before this end
    // disconnects. The first evidence that shows the cause counts.
    let disconnect = rest.iter().position(|&it| it == Evidence::Disconnect);
    let disconnected = rest.iter().position(|&it| it == Evidence::Disconnected);
    let peer = iwarp && disconnect.is_none_or(|this| disconnected.is_some_and(|it| it < this));
    let error = rest.iter().position(|it| names(it).is_some());
    match (disconnected.filter(|_| peer), error) {
        (Some(disconnected), Some(error)) if disconnected < error => Ending::Peer,
        (Some(_), None) => Ending::Peer,
        (_, Some(error)) => names(&rest[error]).unwrap(),
        (None, None) => Ending::Unknown { peer },
    }
}

#[test]
fn every_order_of_six() {
    for length in 0..=6 {
        for number in 0..ALL.len().pow(length) {
            let digits = (0..length).map(|at| number / ALL.len().pow(at) % ALL.len());
            let evidence: Vec<_> = digits.map(|digit| ALL[digit]).collect();
            for iwarp in [false, true] {
                let mut ending = Ending::None;
                for &one in &evidence {
                    let before = ending;
                    ending = before.learn(one, iwarp);
                    assert!(!before.is_known() || ending == before, "{evidence:?}");
                }
                assert_eq!(ending, expected(&evidence, iwarp), "{iwarp} {evidence:?}");
            }
        }
    }
}
