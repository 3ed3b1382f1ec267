// SPDX-License-Identifier: GPL-2.0

//! rpcbind (RFC 1833), and MOUNT version 3 (RFC 1813, appendix I), both over TCP: the port and the
//! file handles that a client of NFS 3 needs. It also calls NULL of other programs.

use std::io;
use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::time::Duration;
use std::time::Instant;

use crate::engine;
use crate::peer::Server;
use crate::wire;
use crate::wire::Procedure;
use crate::wire::Reader;
use crate::wire::Status;
use crate::wire::Writer;

/// How long an answer over TCP may take.
const LIMIT: Duration = Duration::from_secs(5);
/// The longest answer that is read.
const LENGTH_MAX: usize = 1 << 20;
/// The bit of a record mark that says that the fragment is the last one (RFC 5531, section 11).
const LAST: u32 = 1 << 31;

/// RPCBPROC_DUMP of version 3 of rpcbind (RFC 1833, section 2.1). RPCBPROC_GETADDR would answer for
/// the transport of the question.
pub const DUMP: Procedure = Procedure {
    program: 100_000,
    version: 3,
    number: 4,
};
/// MOUNTPROC3_MNT.
pub const MNT: Procedure = Procedure {
    program: 100_005,
    version: 3,
    number: 1,
};
pub const UMNT: Procedure = Procedure { number: 3, ..MNT };
pub const EXPORT: Procedure = Procedure { number: 5, ..MNT };
/// NULL of NLM 4 (RFC 1813, appendix II).
pub const NLM: Procedure = Procedure {
    program: 100_021,
    version: 4,
    number: 0,
};
/// NULL of NSM 1 (XNFS, chapter 11).
pub const NSM: Procedure = Procedure {
    program: 100_024,
    version: 1,
    number: 0,
};
/// MNT3ERR_ACCES.
const ACCESS: u32 = 13;

/// Reads until a time.
struct Until<'a>(&'a TcpStream, Instant);

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.1.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.0.set_read_timeout(Some(left))?;
        self.0.read(buffer)
    }
}

/// Sends a call over TCP. Returns the RPC reply, all of which must arrive in time.
fn exchange(mut stream: &TcpStream, rpc: &[u8], limit: Duration) -> io::Result<Vec<u8>> {
    let mut octets = wire::words(&[LAST | rpc.len() as u32]);
    octets.extend(rpc);
    stream.write_all(&octets)?;
    let mut stream = Until(stream, Instant::now() + limit);
    let mut reply = Vec::new();
    loop {
        let mut mark = [0; 4];
        stream.read_exact(&mut mark)?;
        let mark = u32::from_be_bytes(mark);
        let start = reply.len();
        let end = start + (mark & !LAST) as usize;
        if end > LENGTH_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        reply.resize(end, 0);
        stream.read_exact(&mut reply[start..])?;
        if mark & LAST != 0 {
            return Ok(reply);
        }
    }
}

/// Returns the address of another port of the same host. A link-local address keeps its zone.
fn beside(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

/// Asks rpcbind. Returns its list.
pub fn dump(server: &Server) -> Result<Vec<u8>, String> {
    let reply = call(beside(server.address, server.rpcbind), DUMP)
        .map_err(|why| format!("rpcbind cannot be asked: {why}"))?;
    match wire::parse_reply(&reply)?.1 {
        Status::Success(list) => Ok(list),
        other => Err(format!("RPCBPROC_DUMP gets {other:?}")),
    }
}

/// Returns the universal address of a program's version for a netid, if rpcbind's list has one.
/// Octets that are not for a terminal are escaped.
pub fn address_in(list: &[u8], wanted: Procedure, netid: &str) -> Result<Option<String>, String> {
    let mut reader = Reader::new(list);
    while reader.flag("the list")? {
        let program = reader.array::<2>()?;
        let (its_netid, address) = (reader.opaque()?, reader.opaque()?);
        reader.opaque()?;
        if program == [wanted.program, wanted.version] && its_netid == netid.as_bytes() {
            return Ok(Some(address.escape_ascii().to_string()));
        }
    }
    Ok(None)
}

/// The universal address ends with the port: ".78.81" is 20049 (RFC 5665, section 5.2.3.3).
pub fn port(address: &str) -> Option<u16> {
    let mut numbers = address.rsplit('.').map(str::parse::<u16>);
    let (low, high) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    high.checked_mul(256)?.checked_add(low)
}

/// Returns where the server's program listens for TCP, by rpcbind's list.
pub fn place(server: &Server, list: &[u8], program: Procedure) -> Result<SocketAddr, String> {
    let netid = match server.address {
        SocketAddr::V4(_) => "tcp",
        SocketAddr::V6(_) => "tcp6",
    };
    let address = address_in(list, program, netid)?;
    let port = address.and_then(|address| port(&address));
    let port = port.ok_or(format!(
        "rpcbind has no program {}, version {}, for {netid}",
        program.program, program.version
    ))?;
    Ok(beside(server.address, port))
}

/// Calls a procedure without arguments over TCP. Returns the RPC reply.
pub fn call(at: SocketAddr, procedure: Procedure) -> io::Result<Vec<u8>> {
    let stream = TcpStream::connect_timeout(&at, LIMIT)?;
    exchange(&stream, &wire::call(1, procedure, &[]), LIMIT)
}

/// A directory that the server exports.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Export {
    pub directory: String,
    pub handle: Vec<u8>,
}

/// A connection to the server's MOUNT.
struct Mount(TcpStream);

impl Mount {
    fn call(&mut self, procedure: Procedure, arguments: &[u8]) -> Result<Vec<u8>, String> {
        let rpc = wire::call_with(1, procedure, 1, &wire::auth_sys(), arguments);
        let reply = exchange(&self.0, &rpc, LIMIT).map_err(|why| why.to_string())?;
        match wire::parse_reply(&reply)?.1 {
            Status::Success(results) => Ok(results),
            other => Err(format!("the call gets {other:?}")),
        }
    }

    fn directories(&mut self) -> Result<Vec<String>, String> {
        let results = self
            .call(EXPORT, &[])
            .map_err(|why| format!("EXPORT: {why}"))?;
        directories_in(&results).map_err(|why| format!("EXPORT: {why}"))
    }

    fn export(&mut self, directory: &str) -> Result<Export, String> {
        let arguments = Writer::new().opaque(directory.as_bytes()).0;
        let results = self.call(MNT, &arguments)?;
        // The file handle stays valid.
        let _ = self.call(UMNT, &arguments);
        let mut reader = Reader::new(&results);
        match reader.word()? {
            0 => Ok(Export {
                directory: directory.into(),
                handle: reader.opaque()?.to_vec(),
            }),
            ACCESS => Err("MNT3ERR_ACCES; the server may want a port below 1024".into()),
            status => Err(format!("the status is {status}")),
        }
    }

    /// Returns the exports that may be mounted, and why one may not.
    fn exports(&mut self, directories: &[String]) -> (Vec<Export>, Option<String>) {
        let (mut exports, mut refusal) = (Vec::new(), None);
        for directory in directories {
            match self.export(directory) {
                Ok(export) => exports.push(export),
                Err(why) => refusal = Some(format!("MNT of {directory:?}: {why}")),
            }
        }
        (exports, refusal)
    }
}

fn directories_in(results: &[u8]) -> Result<Vec<String>, String> {
    let mut reader = Reader::new(results);
    let mut directories = Vec::new();
    while reader.flag("the list")? {
        directories.push(String::from_utf8_lossy(reader.opaque()?).into_owned());
        while reader.flag("the list of groups")? {
            reader.opaque()?;
        }
    }
    Ok(directories)
}

/// Asks rpcbind for MOUNT, and MOUNT for the exports. Returns those that may be mounted.
pub fn exports(server: &Server) -> Result<Vec<Export>, String> {
    let at = place(server, &dump(server)?, MNT)?;
    let mut mount = TcpStream::connect_timeout(&at, LIMIT)
        .map(Mount)
        .map_err(|why| format!("MOUNT cannot be asked: {why}"))?;
    let directories = mount.directories()?;
    let (mut exports, mut refusal) = mount.exports(&directories);
    if refusal.is_some() {
        // Linux wants a port below 1024, except with `insecure`.
        if let Ok(stream) = engine::connect_privileged(at, LIMIT) {
            (exports, refusal) = Mount(stream).exports(&directories);
        }
    }
    match refusal {
        Some(why) if exports.is_empty() => Err(why),
        _ => Ok(exports),
    }
}

/// Returns the rest of a path below an export, if the path begins with the export's directory.
pub fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    let rest = path
        .trim_start_matches('/')
        .strip_prefix(directory.trim_matches('/'))?;
    (rest.starts_with('/') || directory.trim_matches('/').is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddrV6;
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Returns both ends of a connection.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let stream = TcpStream::connect(address).expect("a connection");
        (stream, listener.accept().expect("a connection").0)
    }

    #[test]
    fn answers_are_joined_from_fragments() {
        let (stream, mut server) = pair();
        let sent = wire::words(&[0, 4, 1, LAST | 8, 2, 3]);
        server.write_all(&sent).expect("a socket");
        let reply = exchange(&stream, &[1, 2, 3, 4], LIMIT).expect("a reply");
        assert_eq!(reply, wire::words(&[1, 2, 3]));
        server.write_all(&wire::words(&[!LAST])).expect("a socket");
        let why = exchange(&stream, &[], LIMIT).expect_err("too long");
        assert_eq!(why.kind(), io::ErrorKind::InvalidData);
    }

    // Each octet arrives in time, and fragments of no octets reach no length.
    #[test]
    fn an_answer_without_end_is_an_error() {
        for octets in [wire::words(&[0; 64]), vec![0]] {
            let (stream, mut server) = pair();
            let sender = thread::spawn(move || {
                while server.write_all(&octets).is_ok() {
                    thread::sleep(Duration::from_millis(1));
                }
            });
            let start = Instant::now();
            let limit = Duration::from_millis(100);
            assert!(exchange(&stream, &[1, 2, 3, 4], limit).is_err());
            assert!(start.elapsed() >= limit);
            drop(stream);
            sender.join().expect("no panic");
        }
    }

    #[test]
    fn octets_of_the_server_are_escaped() {
        let head = Writer::new().words(&[1, 100_005, 3]);
        let entry = head.opaque(b"tcp").opaque(b"\x1b[2J\n::1.3.4\xff");
        let list = entry.opaque(b"superuser").word(0).0;
        let address = address_in(&list, MNT, "tcp").expect("a list");
        assert_eq!(address.as_deref(), Some("\\x1b[2J\\n::1.3.4\\xff"));

        let (stream, mut server) = pair();
        let refused = wire::words(&[LAST | 28, 1, wire::REPLY, 0, 0, 0, 0, 13]);
        server.write_all(&refused.repeat(2)).expect("a socket");
        let (_, refusal) = Mount(stream).exports(&["/\u{1b}[2J".into()]);
        let refusal = refusal.expect("a refusal");
        assert!(
            refusal.starts_with("MNT of \"/\\u{1b}[2J\": MNT3ERR_ACCES"),
            "{refusal}"
        );
    }

    #[test]
    fn a_zone_is_kept() {
        let address = SocketAddrV6::new("fe80::1".parse().expect("an address"), 20_049, 0, 7);
        let expected = SocketAddrV6::new(*address.ip(), 111, 0, 7);
        assert_eq!(beside(address.into(), 111), expected.into());
    }

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

    #[test]
    fn paths_below_exports() {
        for (path, directory, expected) in [
            ("export/a/file", "/export", Some("/a/file")),
            ("/export/file", "/export/", Some("/file")),
            ("file", "/", Some("file")),
            ("/file", "/", Some("file")),
            ("exported/file", "/export", None),
            ("file", "/export", None),
            ("export", "/export", None),
        ] {
            assert_eq!(below(path, directory), expected, "{path} {directory}");
        }
    }

    // RFC 1813, section 5.2.5: an export with two groups, and one without.
    #[test]
    fn exports_have_groups() {
        let results = Writer::new()
            .word(1)
            .opaque(b"/export")
            .word(1)
            .opaque(b"*")
            .word(1)
            .opaque(b"host")
            .words(&[0, 1])
            .opaque(b"/other")
            .words(&[0, 0])
            .0;
        let expected = vec!["/export".to_string(), "/other".to_string()];
        assert_eq!(directories_in(&results), Ok(expected));
        assert!(directories_in(&results[..20]).is_err());
    }
}
