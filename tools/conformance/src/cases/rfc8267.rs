// SPDX-License-Identifier: GPL-2.0

//! RFC 8267: NFS 3, and the answers of rpcbind (RFC 1833), which clients of NFS 3 ask for a port.

use crate::case::case;
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
use crate::wire::Status;

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

fn registered(target: &mut Target<'_>, netid: &str) -> Verdict {
    let server = target.server;
    let reply = match mount::dump(server) {
        Ok(reply) => reply,
        Err(why) => return skip(format!("rpcbind cannot be asked: {why}")),
    };
    match mount::address_in(&reply, NFS3, netid) {
        Err(why) => violation(format!("rpcbind's answer: {why}")),
        Ok(None) => unimplemented(format!("rpcbind has no address for {netid}")),
        Ok(Some(address)) if mount::port(&address) == Some(server.address.port()) => Ok(Passed),
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
];
