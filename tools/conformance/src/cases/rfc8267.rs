// SPDX-License-Identifier: GPL-2.0

//! RFC 8267: NFS 3, its programs over TCP, and the answers of rpcbind (RFC 1833), which clients of
//! NFS 3 ask for a port.

use crate::case::case;
use crate::case::inconclusive;
use crate::case::skip;
use crate::case::unimplemented;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Verdict;
use crate::mount;
use crate::nfs3::NFS3;
use crate::peer::Target;
use crate::wire;
use crate::wire::Header;
use crate::wire::Procedure;
use crate::wire::Status;

const AUXILIARY: &str =
    "Historically, NFS/RDMA implementations have chosen to convey the MOUNT, NLM, and NSM protocols \
     via TCP. To enable interoperation of these protocols when NFS/RDMA is in use, a Legacy NFS \
     server MUST provide support for these protocols via TCP.";
const NETIDS: [&str; 6] = ["rdma", "rdma6", "tcp", "tcp6", "udp", "udp6"];
const REGISTERED: &str =
    "The chosen port MAY be registered with the RPC portmapper under the netids assigned in \
     [RFC8166].";

fn null3(target: &mut Target<'_>) -> Verdict {
    target.on_plain(|link| {
        let xid = link.xid();
        let answer = link.call(&Header::msg(xid), &wire::call(xid, NFS3, &[]))?;
        match answer.status {
            Status::Success(results) if results.is_empty() => Ok(Passed),
            Status::ProgUnavail | Status::ProgMismatch(..) => {
                unimplemented("the server has no NFS 3")
            }
            other => violation(format!("NULL of NFS 3 gets {other:?}")),
        }
    })
}

/// Whether a server of NFS 3 answers NULL of this program over TCP.
fn over_tcp(target: &mut Target<'_>, program: Procedure) -> Verdict {
    if let Err(problem) = null3(target) {
        return skip(problem.reason());
    }
    let program = Procedure {
        number: 0,
        ..program
    };
    let list = mount::dump(target.server).or_else(skip)?;
    let has = |program, netids: &[&str]| {
        let has_one = |netid: &&str| mount::address_in(&list, program, netid) != Ok(None);
        netids.iter().any(has_one)
    };
    if !has(NFS3, &NETIDS) {
        return skip("rpcbind has no NFS 3: the server does not register itself");
    }
    let at = match mount::place(target.server, &list, program) {
        Ok(at) => at,
        // TCP over the other version of IP, or an address that cannot be read.
        Err(why) if has(program, &["tcp", "tcp6"]) => return inconclusive(why),
        // A program need not be registered.
        Err(why) if !has(program, &NETIDS) => return inconclusive(why),
        Err(why) => return violation(why),
    };
    let reply = match mount::call(at, program) {
        Ok(reply) => reply,
        Err(why) => return inconclusive(format!("TCP port {}: {why}", at.port())),
    };
    match wire::parse_reply(&reply).or_else(violation)?.1 {
        Status::Success(results) if results.is_empty() => Ok(Passed),
        other => violation(format!("NULL over TCP gets {other:?}")),
    }
}

fn registered(target: &mut Target<'_>, netid: &str) -> Verdict {
    let port = target.server.address.port();
    let list = mount::dump(target.server).or_else(skip)?;
    match mount::address_in(&list, NFS3, netid) {
        Err(why) => violation(format!("rpcbind's answer: {why}")),
        Ok(None) => unimplemented(format!("rpcbind has no address for {netid}")),
        Ok(Some(address)) if mount::port(&address) == Some(port) => Ok(Passed),
        Ok(Some(address)) => violation(format!("rpcbind has another address: {address}")),
    }
}

pub const CASES: &[Case] = &[
    case!("rfc8267/4/1", "NULL of NFS 3", May,
        "The Upper-Layer Binding specification in this section applies to NFS versions 2 [RFC1094] and \
         3 [RFC1813].",
        sends "procedure 0 of version 3 of program 100003", accepts "SUCCESS", fault "no-nfs-3", null3),
    case!("rfc8267/4.2/1", "rpcbind has the port for rdma", May, REGISTERED,
        sends "RPCBPROC_DUMP over TCP", accepts "NFS 3 and rdma with the server's port",
        fault "other-port", |target| registered(target, "rdma")),
    case!("rfc8267/4.2/2", "rpcbind has the port for rdma6", May, REGISTERED,
        sends "RPCBPROC_DUMP over TCP", accepts "NFS 3 and rdma6 with the server's port",
        fault "other-port", |target| registered(target, "rdma6")),
    case!("rfc8267/5.1/1", "a server of NFS 3 has MOUNT over TCP", Must, AUXILIARY,
        sends "RPCBPROC_DUMP, and NULL of MOUNT 3, over TCP",
        accepts "SUCCESS; skipped without NFS 3, or if rpcbind has none; inconclusive if rpcbind \
                 has no MOUNT",
        fault "no-mount-over-tcp", |target| over_tcp(target, mount::MNT)),
    case!("rfc8267/5.1/2", "a server of NFS 3 has NLM over TCP", Must, AUXILIARY,
        sends "RPCBPROC_DUMP, and NULL of NLM 4, over TCP",
        accepts "SUCCESS; skipped without NFS 3, or if rpcbind has none; inconclusive if rpcbind \
                 has no NLM",
        fault "udp-nlm", |target| over_tcp(target, mount::NLM)),
    case!("rfc8267/5.1/3", "a server of NFS 3 has NSM over TCP", Must, AUXILIARY,
        sends "RPCBPROC_DUMP, and NULL of NSM 1, over TCP",
        accepts "SUCCESS; skipped without NFS 3, or if rpcbind has none; inconclusive if rpcbind \
                 has no NSM",
        fault "no-nsm", |target| over_tcp(target, mount::NSM)),
];
