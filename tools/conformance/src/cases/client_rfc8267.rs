// SPDX-License-Identifier: GPL-2.0

//! RFC 8267, section 6.4.2, for clients: the chunk lists of version 4 of NFS. The suite's own client
//! is tried in the same way.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::case::case;
use crate::case::skip;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Verdict;
use crate::cases::client_rfc8166::completes_by;
use crate::cases::client_rfc8166::data_chunks;
use crate::engine::Connection;
use crate::gateway::Call;
use crate::gateway::Gateway;
use crate::gateway::Next;
use crate::gateway::Shape;
use crate::peer::ECHO;
use crate::peer::NFS;
use crate::wire::words;
use crate::wire::Procedure;
use crate::wire::GARBAGE_ARGS;
use crate::wire::REPLY;

const PRESCRIPTIONS: &str =
    "In the absence of explicit knowledge of the server's limits, NFS version 4 clients SHOULD \
     follow the prescriptions listed below when constructing RPC-over-RDMA version 1 messages. … \
     The Read list can contain either a Position Zero Read chunk, one Read chunk with a non-zero \
     Position, or both. … The Write list can contain no more than one Write chunk. … Any chunk can \
     contain up to sixteen RDMA segments.";
const NO_CHUNKS: &str = "the client has made no call of version 4 of NFS with such a chunk";

/// Whether the call is one of version 4 of NFS, or of the echo program.
fn is_bound(call: &Call) -> bool {
    let version = |procedure: Procedure| (procedure.program, procedure.version);
    let bound = [NFS, ECHO].map(version);
    call.procedure()
        .is_some_and(|called| bound.contains(&version(called)))
}

/// Whether no call has more than `most` of what `count` counts.
fn at_most(
    gateway: &mut Gateway<'_>,
    most: usize,
    what: &str,
    count: fn(&Call) -> usize,
) -> Verdict {
    let work = gateway.plain()?;
    work.first()?;
    let bound = work.calls.iter().filter(|call| is_bound(call));
    match bound.map(count).max() {
        None | Some(0) => skip(NO_CHUNKS),
        Some(number) if number > most => violation(format!("a call with {number} {what}")),
        Some(_) => Ok(Passed),
    }
}

/// Returns the number of segments in the longest chunk.
fn segments(call: &Call) -> usize {
    let mut reads = BTreeMap::new();
    for read in &call.header.reads {
        *reads.entry(read.position).or_insert(0) += 1;
    }
    let others = call.header.writes.iter().chain(&call.header.reply);
    let lengths = reads.into_values().chain(others.map(Vec::len));
    lengths.max().unwrap_or_default()
}

/// Whether the call has chunks, and is one of these versions.
fn suits(call: &Call) -> bool {
    is_bound(call) && call.key().is_some()
}

/// Answers a call with GARBAGE_ARGS, and uses none of its chunks.
fn refuse(call: &Call, connection: &mut Connection) {
    let reply = words(&[call.header.xid, REPLY, 0, 0, 0, GARBAGE_ARGS]);
    let _ = connection.send(&call.unused().with(&reply));
}

/// Refuses a late call that has chunks.
fn garbage(gateway: &mut Gateway<'_>) -> Verdict {
    if !gateway.plain()?.calls.iter().any(suits) {
        return skip(NO_CHUNKS);
    }
    completes_by(gateway, Shape::default, suits, refuse)?;
    is_not_made_again(gateway)
}

/// Refuses a late call that has chunks. No call with the same octets behind another XID
/// follows, if the work without faults makes that call once. In a session, every call has other
/// octets.
fn is_not_made_again(gateway: &mut Gateway<'_>) -> Verdict {
    let plain = gateway.plain()?;
    let refused: Rc<RefCell<Option<Call>>> = Rc::default();
    let own = refused.clone();
    let work = gateway.work(Shape {
        on_call: Box::new(move |call, connection| {
            let late = call.number >= plain.calls.len() * 2 / 3;
            if own.borrow().is_some() || !late || !suits(call) {
                return Next::Serve;
            }
            let same = plain.calls.iter().filter(|other| is_same(other, call));
            if same.count() != 1 {
                return Next::Serve;
            }
            refuse(call, connection);
            own.replace(Some(call.clone()));
            Next::Answered
        }),
        ..Shape::default()
    })?;
    let Some(refused) = refused.take() else {
        return Ok(Passed);
    };
    let mut later = work.calls.iter().skip(refused.number + 1);
    if later.any(|call| is_same(call, &refused)) {
        return violation("the client has made the call again after the error");
    }
    Ok(Passed)
}

/// Whether two calls have the same octets behind the XID.
fn is_same(one: &Call, other: &Call) -> bool {
    one.rpc.get(4..) == other.rpc.get(4..)
}

pub const CASES: &[Case] = &[
    case!(client "rfc8267/6.4.2/c1", "the Read list has one chunk with data", Should, PRESCRIPTIONS,
    sends "nothing",
    accepts "calls of version 4 of NFS, or of the echo program, with at most one Position other than 0",
    fault "two-read-chunks",
    |gateway| at_most(gateway, 1, "Read chunks with data", |call| data_chunks(call).len())),
    case!(client "rfc8267/6.4.2/c2", "the Write list has one chunk", Should, PRESCRIPTIONS,
    sends "nothing",
    accepts "calls of version 4 of NFS, or of the echo program, with at most one Write chunk",
    fault "two-write-chunks",
    |gateway| at_most(gateway, 1, "Write chunks", |call| call.header.writes.len())),
    case!(client "rfc8267/6.4.2/c3", "a chunk has up to sixteen segments", Should, PRESCRIPTIONS,
    sends "nothing",
    accepts "calls of version 4 of NFS, or of the echo program, with at most 16 segments in each chunk",
    fault "many-segments",
    |gateway| at_most(gateway, 16, "segments in a chunk", segments)),
    case!(client "rfc8267/6.4.2/c4", "GARBAGE_ARGS completes the call", Should,
    "After receiving one of these errors, an NFS version 4 client SHOULD NOT retransmit the \
     failing request, as the result would be the same error. It SHOULD immediately terminate the \
     RPC transaction associated with the XID in the RPC Reply.",
    sends "GARBAGE_ARGS to a late call of version 4 of NFS, or of the echo program, that has chunks",
    accepts "no later call with its XID; no later call with the same octets behind another XID, if the \
             work without faults makes that call once; the command ends",
    fault "retries-with-new-xid", garbage),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nfs3::NFS3;
    use crate::wire;
    use crate::wire::Header;
    use crate::wire::ReadSegment;
    use crate::wire::Segment;

    #[test]
    fn only_version_4_of_nfs_is_bound() {
        let acl = Procedure {
            program: 100_227,
            version: 3,
            number: 1,
        };
        for (procedure, bound) in [(NFS, true), (ECHO, true), (NFS3, false), (acl, false)] {
            let call = Call::example(Header::msg(7), wire::call(7, procedure, &[]));
            assert_eq!(is_bound(&call), bound, "{procedure:?}");
        }
        assert!(!is_bound(&Call::example(Header::msg(7), Vec::new())));
    }

    #[test]
    fn segments_are_counted_for_each_chunk() {
        let chunk = |count| vec![Segment::default(); count];
        for (reads, writes, reply, longest) in [
            (&[][..], vec![], None, 0),
            (&[0, 0, 40, 0], vec![], None, 3),
            (&[40], vec![chunk(0), chunk(2)], None, 2),
            (&[], vec![chunk(1)], Some(chunk(4)), 4),
        ] {
            let read = |&position| ReadSegment {
                position,
                segment: Segment::default(),
            };
            let header = Header {
                reads: reads.iter().map(read).collect(),
                writes,
                reply,
                ..Header::msg(7)
            };
            assert_eq!(segments(&Call::example(header, Vec::new())), longest);
        }
    }
}
