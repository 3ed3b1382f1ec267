// SPDX-License-Identifier: GPL-2.0

//! RFC 8267: NFS 3, and the answers of rpcbind (RFC 1833), which clients of NFS 3 ask for a port.

use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::time::Duration;

use crate::case::case;
use crate::case::skip;
use crate::case::unimplemented;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Verdict;
use crate::peer::Target;
use crate::peer::NFS;
use crate::wire;
use crate::wire::Header;
use crate::wire::Procedure;
use crate::wire::Reader;
use crate::wire::Status;

const REGISTERED: &str =
    "The chosen port MAY be registered with the RPC portmapper under the netids assigned in \
     [RFC8166].";

/// NULL of NFS 3 (RFC 1813).
const NFS3: Procedure = Procedure { version: 3, ..NFS };
/// RPCBPROC_DUMP of version 3 of rpcbind (RFC 1833, section 2.1). RPCBPROC_GETADDR would answer for
/// the transport of the question.
const DUMP: Procedure = Procedure {
    program: 100_000,
    version: 3,
    number: 4,
};
/// The bit of a record mark that says that the fragment is the last one (RFC 5531, section 11).
const LAST: u32 = 1 << 31;

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

/// Calls rpcbind over TCP. Returns its RPC reply.
fn dump(at: SocketAddr) -> std::io::Result<Vec<u8>> {
    let limit = Duration::from_secs(5);
    let mut stream = TcpStream::connect_timeout(&at, limit)?;
    stream.set_read_timeout(Some(limit))?;
    let rpc = wire::call(1, DUMP, &[]);
    let mut octets = wire::words(&[LAST | rpc.len() as u32]);
    octets.extend(rpc);
    stream.write_all(&octets)?;
    let mut mark = [0; 4];
    stream.read_exact(&mut mark)?;
    let length = u32::from_be_bytes(mark) & !LAST;
    let mut reply = vec![0; length.min(1 << 20) as usize];
    stream.read_exact(&mut reply)?;
    Ok(reply)
}

/// Returns the universal address of NFS 3 for a netid, if rpcbind's reply has one.
fn address_in(reply: &[u8], netid: &str) -> Result<Option<String>, String> {
    let Status::Success(results) = wire::parse_reply(reply)?.1 else {
        return Err("RPCBPROC_DUMP does not succeed".into());
    };
    let mut reader = Reader::new(&results);
    while reader.flag("the list")? {
        let program = reader.array::<2>()?;
        let (its_netid, address) = (reader.opaque()?, reader.opaque()?);
        reader.opaque()?;
        if program == [NFS3.program, NFS3.version] && its_netid == netid.as_bytes() {
            return Ok(Some(String::from_utf8_lossy(address).into_owned()));
        }
    }
    Ok(None)
}

/// The universal address ends with the port: ".78.81" is 20049 (RFC 5665, section 5.2.3.3).
fn port(address: &str) -> Option<u16> {
    let mut numbers = address.rsplit('.').map(str::parse::<u16>);
    let (low, high) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    high.checked_mul(256)?.checked_add(low)
}

fn registered(target: &mut Target<'_>, netid: &str) -> Verdict {
    let server = target.server;
    let at = SocketAddr::new(server.address.ip(), server.rpcbind);
    let reply = match dump(at) {
        Ok(reply) => reply,
        Err(why) => return skip(format!("rpcbind cannot be asked: {why}")),
    };
    match address_in(&reply, netid) {
        Err(why) => violation(format!("rpcbind's answer: {why}")),
        Ok(None) => unimplemented(format!("rpcbind has no address for {netid}")),
        Ok(Some(address)) if port(&address) == Some(server.address.port()) => Ok(Passed),
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

#[cfg(test)]
mod tests {
    use super::port;

    #[test]
    fn ports_of_universal_addresses() {
        for (address, expected) in [
            ("192.0.2.7.78.81", Some(20_049)),
            ("fd77::2.8.1", Some(2049)),
            ("::.255.255", Some(u16::MAX)),
            ("::.256.0", None),
            ("", None),
            ("x.y", None),
        ] {
            assert_eq!(port(address), expected, "{address}");
        }
    }
}
