// SPDX-License-Identifier: GPL-2.0

//! RFC 8167: calls in the reverse direction, as a server sees them.

use crate::case::case;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Verdict;
use crate::peer::Target;
use crate::wire::words;
use crate::wire::Header;

const MATCH: &str =
    "When receiving a Reply, a Requester matches the XID value in the Reply with a \
                     Call it previously sent.";

fn unmatched(target: &mut Target<'_>, reply: &[u32]) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let mut rpc = words(&[xid]);
        rpc.extend(words(reply));
        link.discards(&Header::msg(xid).with(&rpc))
    })
}

fn same_xid(target: &mut Target<'_>) -> Verdict {
    target.on_plain(|link| {
        // A reply of this side and a call of this side with one XID are two transactions.
        let xid = link.xid();
        let mut reply = words(&[xid]);
        reply.extend(words(&[1, 0, 0, 0, 0]));
        link.send(&Header::msg(xid).with(&reply))?;
        let null = link.null_call(xid);
        link.call(&Header::msg(xid), &null)?.results()?;
        link.quiet()?;
        Ok(Passed)
    })
}

pub const CASES: &[Case] = &[
    case!("rfc8167/2.4/1", "a reply to no call is not answered", Must, MATCH,
        sends "RDMA_MSG with an RPC reply, SUCCESS, of an unknown XID", accepts "nothing; NULL succeeds",
        fault "answers-replies", |target| unmatched(target, &[1, 0, 0, 0, 0])),
    case!("rfc8167/2.4/2", "a denied reply to no call is not answered", Must, MATCH,
        sends "RDMA_MSG with an RPC reply, AUTH_ERROR, of an unknown XID", accepts "nothing; NULL succeeds",
        fault "answers-replies", |target| unmatched(target, &[1, 1, 1, 1])),
    case!("rfc8167/2.4/3", "a reply and a call with the same XID are two transactions", Must,
        "Though such concurrent requests use the same XID value, they represent distinct ONC RPC \
         transactions.",
        sends "an RPC reply and NULL with one XID", accepts "one reply to NULL",
        fault "answers-replies", same_xid),
    case!("rfc8167/6/1", "no call before the client is prepared for it", Must,
    "Therefore, a ULP MUST NOT perform reverse-direction ONC RPC operations until the peer has \
     indicated it is prepared to handle them.",
    sends "NULL, then nothing for a while", accepts "the reply, and nothing else",
    fault "calls-unasked",
    |target| target.on_plain(|link| {
        link.null()?;
        link.quiet()?;
        Ok(Passed)
    })),
];
