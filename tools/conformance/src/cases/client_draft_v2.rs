// SPDX-License-Identifier: GPL-2.0

//! Version 2 of draft-cel-nfsv4-rpcrdma-version-two-01, for clients that begin with it.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::case::case;
use crate::case::inconclusive;
use crate::case::unimplemented;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Problem;
use crate::case::Verdict;
use crate::cases::client_rfc8166::completes_from;
use crate::cases::client_rfc8166::credits_from;
use crate::cases::client_rfc8166::discards_from;
use crate::cases::client_rfc8166::grant_zero;
use crate::cases::client_rfc8166::ACCESS;
use crate::cases::client_rfc8166::DEADLOCK;
use crate::cases::client_rfc8166::EXCESS;
use crate::cases::client_rfc8166::HOLD;
use crate::cases::client_rfc8167::accepted;
use crate::cases::client_rfc8167::answer;
use crate::cases::client_rfc8167::called_by;
use crate::cases::client_rfc8167::excess;
use crate::cases::client_rfc8167::only_answer;
use crate::cases::client_rfc8167::XID;
use crate::cases::client_rfc8797::more_connections;
use crate::cases::client_rfc8797::undisturbed;
use crate::cases::client_rfc8797::within;
use crate::cases::draft_v2::ASSUMED;
use crate::cases::draft_v2::DIRECTION;
use crate::cases::draft_v2::ERRORS;
use crate::cases::draft_v2::OPTIONS;
use crate::cases::rfc8167::MATCH;
use crate::gateway::error;
use crate::gateway::error_in;
use crate::gateway::Backchannel;
use crate::gateway::Call;
use crate::gateway::Gateway;
use crate::gateway::Next;
use crate::gateway::Shape;
use crate::gateway::Work;
use crate::gateway::SIZE;
use crate::peer::DEFAULT;
use crate::wire;
use crate::wire::words;
use crate::wire::Header;
use crate::wire::Status;
use crate::wire::Transport;

const SINGLE: &str =
    "a requester MUST assume the ability to exchange only a single RPC-over-RDMA message at a time \
     until it receives a non-error RPC-over-RDMA message from the responder that reports the \
     responder's actual credit limit.";
const FIRST: &str = "Because the responder might support only RPC-over-RDMA Version One, this initial \
                     message can be no larger than the Version One default inline threshold of 1024 \
                     bytes.";
const SELECTS: &str =
    "To continue operation, the requester selects a protocol version in the range of \
     responder-supported versions for subsequent messages on this connection.";
const LOST: &str = "A requester can assume the same situation (no responder support for \
                    RPC-over-RDMA Version Two) if the initial negotiation message is lost or dropped.";
const REMAINDER: &str =
    "the draft, section 5.2: the protocol version that will be used for the remainder of the \
     connection lifetime";
const BACKWARD: &str =
    "Implementations of RPC-over-RDMA Version Two are REQUIRED to support backwards direction \
     operation";

/// Lets the client work with a server of version 2.
fn served(gateway: &mut Gateway<'_>) -> Result<Rc<Work>, Problem> {
    let work = gateway.shared("version 2", Shape::two)?;
    work.first()?;
    spoken(&work)?;
    Ok(work)
}

fn spoken(work: &Work) -> Result<(), Problem> {
    match work.calls.first() {
        None => inconclusive("the client has made no call"),
        Some(call) if call.header.version != 2 => {
            unimplemented("the client does not begin with version 2")
        }
        Some(_) => Ok(()),
    }
}

fn single(gateway: &mut Gateway<'_>) -> Verdict {
    let work = gateway.work(Shape {
        hold: HOLD,
        ..Shape::two()
    })?;
    spoken(&work)?;
    let early = |call: &&Call| call.granted.is_none() && call.outstanding > 1;
    if work.calls.iter().any(|call| early(&call)) {
        return violation("the client sends a second call before the first reply");
    }
    if work.calls.iter().all(|call| call.outstanding < 2) {
        return inconclusive("the client has never had two calls under way");
    }
    work.succeeded(gateway)?;
    Ok(Passed)
}

fn short(gateway: &mut Gateway<'_>) -> Verdict {
    let work = served(gateway)?;
    for call in work.calls.iter().filter(|call| call.granted.is_none()) {
        let length = call.header.octets().len() + call.inline;
        if length > DEFAULT {
            return violation(format!("the first call has {length} octets"));
        }
    }
    Ok(Passed)
}

/// The server answers ERR_VERS.
fn falls_back(gateway: &mut Gateway<'_>) -> Verdict {
    let work = gateway.shared("version 1", Shape::default)?;
    goes_on_in_version_1(gateway, &work)
}

fn goes_on_in_version_1(gateway: &Gateway<'_>, work: &Work) -> Verdict {
    spoken(work)?;
    version_1_follows(work)?;
    if more_connections(gateway, work) {
        return violation("the client makes another connection");
    }
    work.succeeded(gateway)?;
    Ok(Passed)
}

/// The server answers ERR_VERS in version 1.
fn falls_back_by_version_1(gateway: &mut Gateway<'_>) -> Verdict {
    let work = gateway.work(Shape {
        on_call: Box::new(|call, connection| {
            if call.header.version == 1 {
                return Next::Serve;
            }
            let _ = connection.send(&error(call.header.xid, 32, &[wire::ERR_VERS, 1, 1]));
            Next::Answered
        }),
        ..Shape::default()
    })?;
    goes_on_in_version_1(gateway, &work)
}

/// Nothing in version 2 follows the first call of a connection.
fn version_1_follows(work: &Work) -> Result<(), Problem> {
    let mut later = work.calls.iter().filter(|call| call.on_connection > 0);
    if later.any(|call| call.header.version != 1) {
        return violation("the client makes another call in version 2");
    }
    if work.calls.iter().all(|call| call.header.version != 1) {
        return unimplemented(format!(
            "the client makes no call in version 1; {}",
            work.end()
        ));
    }
    Ok(())
}

/// The connection ends in place of an answer.
fn lost(gateway: &mut Gateway<'_>) -> Verdict {
    let work = gateway.work(Shape {
        on_call: Box::new(|call, _| match call.header.version {
            2 => Next::Disconnect,
            _ => Next::Serve,
        }),
        ..Shape::default()
    })?;
    spoken(&work)?;
    match work.calls.get(1..) {
        None | Some([]) => violation(format!("the client makes no further call; {}", work.end())),
        Some(later) if later.iter().any(|call| call.header.version != 1) => {
            violation("the client makes another call in version 2")
        }
        Some(_) => work.succeeded(gateway).map(|()| Passed),
    }
}

fn stays(gateway: &mut Gateway<'_>) -> Verdict {
    let work = served(gateway)?;
    let mut first = BTreeMap::new();
    for call in &work.calls {
        let version = call.header.version;
        if *first.entry(call.connection).or_insert(version) != version {
            return violation("the client makes a call in another version");
        }
    }
    if work.calls.len() < 2 {
        return inconclusive("the client has made only one call");
    }
    work.succeeded(gateway)?;
    Ok(Passed)
}

fn directions(gateway: &mut Gateway<'_>) -> Verdict {
    let work = served(gateway)?;
    match work
        .calls
        .iter()
        .find(|call| call.header.direction != wire::CALL)
    {
        Some(call) => violation(format!("a call has direction {}", call.header.direction)),
        None => Ok(Passed),
    }
}

/// The server sends no private data, which would give thresholds of 1024 octets to version 1.
fn threshold(gateway: &mut Gateway<'_>) -> Verdict {
    let work = gateway.work(Shape {
        private: vec![Vec::new()],
        ..Shape::two()
    })?;
    spoken(&work)?;
    within(gateway, &work, |_| SIZE)?;
    if let Some(why) = work.too_long.first() {
        return violation(why.clone());
    }
    work.succeeded(gateway)?;
    Ok(Passed)
}

/// Sends octets in front of the reply to a late call. The client must discard them, or answer them.
fn discards(gateway: &mut Gateway<'_>, octets: fn(&Call) -> Vec<u8>) -> Verdict {
    served(gateway)?;
    discards_from(gateway, Shape::two(), octets)
}

/// Returns a reply, SUCCESS without results, with a header of these words behind the XID.
fn reply(call: &Call, header: &[u32]) -> Vec<u8> {
    let xid = call.header.xid;
    words(&[&[xid], header, &[xid, wire::REPLY, 0, 0, 0, 0]].concat())
}

fn completes(gateway: &mut Gateway<'_>) -> Verdict {
    served(gateway)?;
    completes_from(gateway, Shape::two, |xid| {
        error_in(2, xid, 32, &[wire::ERR_CHUNK])
    })
}

/// Calls the client once, in version 2 unless `octets` says otherwise.
fn called(
    gateway: &mut Gateway<'_>,
    octets: fn(&Backchannel, &Call) -> Vec<u8>,
) -> Result<Work, Problem> {
    served(gateway)?;
    let (work, _) = called_by(gateway, Shape::two, octets)?;
    Ok(work)
}

fn null_succeeds(gateway: &mut Gateway<'_>) -> Verdict {
    let work = called(gateway, |client, _| {
        Header::two(XID).with(&client.call(XID))
    })?;
    let (header, status) = answer(gateway, &work, XID)?;
    if header.version != 2 || header.direction != wire::REPLY || header.credits == 0 {
        return violation(format!(
            "the reply has version {}, direction {} and {} credits",
            header.version, header.direction, header.credits
        ));
    }
    if status != Status::Success(Vec::new()) {
        accepted(&work, &status)?;
        return violation(format!("NULL gets {status:?}"));
    }
    undisturbed(gateway, &work)
}

/// The client answers these octets with this error.
fn refuses(
    gateway: &mut Gateway<'_>,
    octets: fn(&Backchannel, &Call) -> Vec<u8>,
    version: u32,
    error: u32,
) -> Verdict {
    let work = called(gateway, octets)?;
    match Transport::parse(only_answer(gateway, &work, XID)?) {
        Ok(Transport::Error {
            version: found,
            error: code,
            ..
        }) if found == version && code == error => undisturbed(gateway, &work),
        other => violation(format!("the answer is {other:?}")),
    }
}

pub const CASES: &[Case] = &[
    case!(client "draft-v2/5/c1", "one call until the first reply in version 2", Must, SINGLE,
        sends "replies after 100 ms without a call", accepts "the second call after the first reply",
        fault "hasty", needs [DraftV2], single),
    case!(client "draft-v2/5/c2", "the first call has at most 1024 octets", Must, FIRST,
        sends "replies in version 2", accepts "a first Send of at most 1024 octets",
        fault "long-first", needs [DraftV2], short),
    case!(client "draft-v2/5.2/c1", "ERR_VERS: the client goes on in version 1", Must, SELECTS,
        sends "ERR_VERS 1..1 to the call in version 2", accepts "the work succeeds in version 1 on the same connection",
        fault "version-2-only", needs [DraftV2], falls_back),
    case!(client "draft-v2/5.2/c4", "ERR_VERS in version 1: the client goes on in version 1", Should, SELECTS,
        sends "ERR_VERS 1..1 in version 1 to the call in version 2",
        accepts "the work succeeds in version 1 on the same connection",
        fault "version-2-only", needs [DraftV2], falls_back_by_version_1),
    case!(client "draft-v2/5.2/c2", "no answer: the client connects again in version 1", May, LOST,
        sends "a DREQ in place of the answer", accepts "the work succeeds in version 1",
        fault "begins-with-2-again", needs [DraftV2], lost),
    case!(client "draft-v2/5.2/c3", "the version stays to the end of the connection", Must, REMAINDER,
        sends "replies in version 2", accepts "all calls of a connection in one version; the work succeeds",
        fault "forgets-version-2", needs [DraftV2], stays),
    case!(client "draft-v2/4.2.2/c1", "calls have the direction CALL", Must, DIRECTION,
        sends "replies in version 2", accepts "rdma_direction 0",
        fault "calls-are-replies", needs [DraftV2], directions),
    case!(client "draft-v2/4.2/c1", "version 2: a grant of 0 does not stop the client", Should, DEADLOCK,
    sends "a grant of 0 in each reply", accepts "the work succeeds on one connection",
    fault "stops-at-zero", needs [DraftV2], |gateway| {
        served(gateway)?;
        grant_zero(gateway, Shape::two())
    }),
    case!(client "draft-v2/4.2/c2", "version 2: with 2 credits two calls are under way at most", Must, EXCESS,
    sends "a grant of 2; replies after 100 ms without a call", accepts "at most two calls under way; the work succeeds",
    fault "ignores-grant", needs [DraftV2], |gateway| {
        served(gateway)?;
        credits_from(gateway, Shape::two(), 2)
    }),
    case!(client "draft-v2/4.2/c3", "version 2: more calls at once than the client grants", Must, ACCESS,
    sends "forty NULL at once, once the client accepts calls",
    accepts "one answer to each and the work succeeds, or calls on another connection; no wrong data",
    fault "dies-of-excess", needs [DraftV2], |gateway| {
        served(gateway)?;
        excess(gateway, Shape::two(), false)
    }),
    case!(client "draft-v2/4.2/c4", "version 2: more Long Calls at once than the client grants", Must, ACCESS,
    sends "forty NULL at once as Long Calls, once the client accepts calls",
    accepts "one answer to each and the work succeeds, or calls on another connection; no wrong data",
    fault "dies-of-excess", needs [DraftV2], |gateway| {
        served(gateway)?;
        excess(gateway, Shape::two(), true)
    }),
    case!(client "draft-v2/2.3/c1", "the threshold of version 2 is 4096 without private data", Must, ASSUMED,
        sends "no private data; replies of up to 4096 octets without a Reply chunk",
        accepts "Sends of at most 4096 octets; the work succeeds",
        fault "no-limit", needs [DraftV2], threshold),
    case!(client "draft-v2/4.2.2/c2", "a reply in the direction of a call completes no call", Should, DIRECTION,
        sends "an RPC reply in the direction 0, then the reply", accepts "the work succeeds on one connection",
        fault "trusts-malformed", needs [DraftV2],
        |gateway| discards(gateway, |call| reply(call, &[2, 32, 0, 0, 0, 0, 0]))),
    case!(client "draft-v2/4.2.3/c1", "a reply whose Read list begins with 2 is discarded", Must, ERRORS,
        sends "that reply, then the reply", accepts "the work succeeds on one connection",
        fault "trusts-malformed", needs [DraftV2],
        |gateway| discards(gateway, |call| reply(call, &[2, 32, 0, 1, 2, 0, 0]))),
    case!(client "draft-v2/4.2.3/c2", "a reply of procedure 3 is discarded", Must, ERRORS,
        sends "procedure 3 of version 2, then the reply", accepts "the work succeeds on one connection",
        fault "trusts-malformed", needs [DraftV2],
        |gateway| discards(gateway, |call| reply(call, &[2, 32, wire::DONE, 1, 0, 0, 0]))),
    case!(client "draft-v2/4.2.3/c3", "RDMA2_ERROR with an unknown error is discarded", Must, ERRORS,
        sends "error 9, then the reply", accepts "the work succeeds on one connection",
        fault "trusts-errors", needs [DraftV2],
        |gateway| discards(gateway, |call| error_in(2, call.header.xid, 32, &[9, 0, 0]))),
    case!(client "draft-v2/4.2.3/c4", "a reply in version 1 to a call in version 2 is discarded", Should,
        "the draft, section 5.3: a responder MUST send Replies with the same RPC-over-RDMA \
         protocol version that the requester uses to send its Calls.",
        sends "a reply in version 1, then the reply", accepts "the work succeeds on one connection",
        fault "trusts-versions", needs [DraftV2],
        |gateway| discards(gateway, |call| reply(call, &[1, 32, 0, 0, 0, 0]))),
    case!(client "draft-v2/4.2.3/c5", "a reply to no call in version 2 is discarded", Must, MATCH,
    sends "a reply with another XID, then the reply", accepts "the work succeeds on one connection",
    fault "trusts-xids", needs [DraftV2],
    |gateway| discards(gateway, |call| {
        let xid = call.header.xid ^ 0x8000_0000;
        words(&[xid, 2, 32, 0, 1, 0, 0, 0, xid, wire::REPLY, 0, 0, 0, 0])
    })),
    // As ERR_CHUNK of version 1, it is shorter than a message that may be trusted.
    case!(client "draft-v2/4.2.3/c6", "BAD_HEADER completes the call", May, ERRORS,
        sends "BAD_HEADER, which has 20 octets", accepts "the call is not sent again",
        fault "retries-errors", needs [DraftV2], completes),
    case!(client "draft-v2/3.1/c1", "an option in the direction of a reply disturbs no call", Should, OPTIONS,
    sends "option 77 in the direction 1, then the reply", accepts "the work succeeds on one connection",
    fault "trusts-options", needs [DraftV2],
    |gateway| discards(gateway, |call| {
        words(&[call.header.xid, 2, 32, wire::OPTIONAL, 1, 77, 0])
    })),
    case!(client "draft-v2/3.1/c2", "an unknown option gets INVALID_OPTION of the client", Must, OPTIONS,
        sends "option 77 in the direction 0, once the client accepts calls",
        accepts "INVALID_OPTION; the work succeeds", fault "drops-options", needs [DraftV2],
        |gateway| refuses(gateway,
            |_, _| words(&[XID, 2, 32, wire::OPTIONAL, 0, 77, 0]), 2, wire::INVALID_OPTION)),
    case!(client "draft-v2/4.2.2/c3", "the client answers NULL in version 2", Must, BACKWARD,
        sends "NULL of the client's program in version 2, once the client accepts calls",
        accepts "SUCCESS in version 2 and in the direction 1, with at least one credit; the work succeeds",
        fault "replies-are-calls", needs [DraftV2], null_succeeds),
    case!(client "draft-v2/4.2.3/c7", "a malformed call gets BAD_HEADER of the client", Must, ERRORS,
        sends "NULL with a Read list that begins with 2", accepts "BAD_HEADER; the work succeeds",
        fault "drops-malformed", needs [DraftV2],
        |gateway| refuses(gateway, |client, _| {
            let mut octets = words(&[XID, 2, 32, 0, 0, 2, 0, 0]);
            octets.extend(client.call(XID));
            octets
        }, 2, wire::ERR_CHUNK)),
    case!(client "draft-v2/5.3/c1", "a call in version 1 gets ERR_VERS once version 2 is agreed upon", May,
        REMAINDER,
        sends "NULL of the client's program in version 1", accepts "ERR_VERS; the work succeeds",
        fault "drops-versions", needs [DraftV2],
        |gateway| refuses(gateway,
            |client, _| Header::msg(XID).with(&client.call(XID)), 1, wire::ERR_VERS)),
];
