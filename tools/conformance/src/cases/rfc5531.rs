// SPDX-License-Identifier: GPL-2.0

//! RFC 5531: RPC messages, as far as a transport has to carry them.

use crate::case::case;
use crate::case::skip;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Verdict;
use crate::cases::rfc8166_chunks::UNKNOWN;
use crate::cases::rfc8166_header::unparsed;
use crate::peer::Target;
use crate::wire;
use crate::wire::Header;
use crate::wire::Procedure;
use crate::wire::Status;

/// Sends a call with AUTH_NONE, and compares the status. Any procedure except 0 may require
/// another flavor (RFC 5531, section 12.1).
fn status(
    target: &mut Target<'_>,
    change: impl FnOnce(&mut Procedure),
    fits: impl FnOnce(&Status) -> bool,
) -> Verdict {
    target.on_plain(|link| {
        let mut procedure = link.server.null;
        change(&mut procedure);
        let xid = link.xid();
        let answer = link.call(&Header::msg(xid), &wire::call(xid, procedure, &[]))?;
        if procedure.number != 0 && matches!(answer.status, Status::AuthError(_)) {
            return skip("the server wants another credential for procedures other than 0");
        }
        if !fits(&answer.status) {
            return violation(format!("the call gets {:?}", answer.status));
        }
        link.still_answers("an RPC error")?;
        Ok(Passed)
    })
}

fn rpc_version(target: &mut Target<'_>) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let mut rpc = link.null_call(xid);
        rpc[11] = 3;
        let answer = link.call(&Header::msg(xid), &rpc)?;
        if answer.status != Status::RpcMismatch(2, 2) {
            return violation(format!("the call gets {:?}", answer.status));
        }
        Ok(Passed)
    })
}

fn flavor(target: &mut Target<'_>, flavor: u32, body: &[u8], accepted: bool) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let rpc = wire::call_with(xid, link.server.null, flavor, body, &[]);
        let answer = link.call(&Header::msg(xid), &rpc)?;
        match (&answer.status, accepted) {
            (Status::Success(_), true) | (Status::AuthError(_), false) => (),
            (other, _) => return violation(format!("the call gets {other:?}")),
        }
        link.still_answers("a credential")?;
        Ok(Passed)
    })
}

/// NULL whose credential or verifier begins with these words, and has 404 octets. 400 are allowed
/// (RFC 5531, section 8.2).
fn long_auth(target: &mut Target<'_>, auth: &[u32]) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let mut rpc = link.null_call(xid);
        rpc.truncate(24);
        rpc.extend(wire::words(auth));
        // The longer one, and for a credential the verifier.
        rpc.resize(rpc.len() + 404 + 8, 0);
        link.refuses_or(xid, &Header::msg(xid).with(&rpc), unparsed)
    })
}

/// The server may answer a message that it takes for a malformed call.
fn neither_call_nor_reply(target: &mut Target<'_>) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let mut octets = Header::msg(xid).with(&link.null_call(xid));
        octets[35] = 2;
        link.discards_or(xid, &octets, |link, message| {
            if !link.is_declined(xid, message) {
                return violation("the server takes the message for a call");
            }
            Ok(())
        })
    })
}

const MISMATCH: &str =
    "PROG_MISMATCH = 2, /* remote can't support version # */ … The PROG_MISMATCH arm specifies the \
     lowest and highest version numbers of the remote program supported by the server.";

pub const CASES: &[Case] = &[
    case!("rfc5531/9/1", "RPC version 3 gets RPC_MISMATCH 2..2", Must,
        "In case of an RPC version mismatch, the server returns the lowest and highest supported RPC \
         version numbers.",
        sends "NULL with rpcvers 3", accepts "MSG_DENIED, RPC_MISMATCH, 2, 2",
        fault "any-rpc-version", rpc_version),
    case!("rfc5531/9/2", "an unknown program gets PROG_UNAVAIL", Must,
        UNKNOWN,
        sends "procedure 0 of program 0x3fffffff", accepts "PROG_UNAVAIL", fault "any-program",
        |target| status(target, |p| p.program = 0x3fff_ffff, |s| *s == Status::ProgUnavail)),
    case!("rfc5531/9/3", "an unknown version gets PROG_MISMATCH", Must, MISMATCH,
    sends "procedure 0 of version 0xffffffff",
    accepts "PROG_MISMATCH with a range that holds the version used and not 0xffffffff",
    fault "any-program-version",
    |target| {
        let used = target.server.null.version;
        status(target, |p| p.version = u32::MAX, move |s| {
            let holds = |low, high| (low..=high).contains(&used) && high < u32::MAX;
            matches!(s, Status::ProgMismatch(low, high) if holds(*low, *high))
        })
    }),
    case!("rfc5531/9/4", "an unknown procedure gets PROC_UNAVAIL", Must,
        "PROC_UNAVAIL = 3, /* program can't support procedure */",
        sends "procedure 9999 with AUTH_NONE",
        accepts "PROC_UNAVAIL; a server that wants another credential is skipped",
        fault "any-procedure",
        |target| status(target, |p| p.number = 9999, |s| *s == Status::ProcUnavail)),
    case!("rfc5531/8.2/1", "AUTH_SYS is accepted for NULL", May,
        "RFC 5531, section 10: Implementors MAY include AUTH_SYS in their implementations to \
         support existing applications.",
        sends "NULL with an AUTH_SYS credential", accepts "SUCCESS", fault "auth-none-only",
        |target| flavor(target, 1, &wire::auth_sys(), true)),
    case!("rfc5531/8.2/2", "an unknown flavor gets AUTH_ERROR", May,
        "If authentication parameters were rejected, the reply message contains information stating \
         why they were rejected.",
        sends "NULL with credential flavor 77", accepts "AUTH_ERROR", fault "any-flavor",
        |target| flavor(target, 77, &[], false)),
    case!("rfc5531/9/5", "a malformed AUTH_SYS credential gets AUTH_ERROR", May,
        "In case of invalid authentication, failure status is returned.",
        sends "NULL with an AUTH_SYS credential of 3 octets", accepts "AUTH_ERROR", fault "any-flavor",
        |target| flavor(target, 1, &[1, 2, 3], false)),
    case!("rfc5531/8.2/3", "a credential that is too long is refused", Should,
        "struct opaque_auth { auth_flavor flavor; opaque body<400>; };",
        sends "NULL with an AUTH_NONE credential of 404 octets",
        accepts "ERR_CHUNK, GARBAGE_ARGS or AUTH_ERROR; NULL succeeds",
        fault "any-length", |target| long_auth(target, &[0, 404])),
    case!("rfc5531/8.2/4", "a verifier that is too long is refused", Should,
        "struct opaque_auth { auth_flavor flavor; opaque body<400>; };",
        sends "NULL with an AUTH_NONE verifier of 404 octets",
        accepts "ERR_CHUNK, GARBAGE_ARGS or AUTH_ERROR; NULL succeeds",
        fault "any-length", |target| long_auth(target, &[0, 0, 0, 404])),
    case!("rfc5531/9/6", "a message that is neither a call nor a reply is not executed", Should,
        "enum msg_type { CALL = 0, REPLY = 1 };",
        sends "NULL with msg_type 2",
        accepts "ERR_CHUNK or nothing, or GARBAGE_ARGS; NULL succeeds",
        fault "any-message-type", neither_call_nor_reply),
];
