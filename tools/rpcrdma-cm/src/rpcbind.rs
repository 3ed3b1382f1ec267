// SPDX-License-Identifier: GPL-2.0

//! The registrations of a server's rpcbind: RPCBPROC_DUMP of version 4 (RFC 1833, section 2.1), over
//! TCP.

use std::{
    io::{
        ErrorKind,
        Read,
        Write, //
    },
    net::{
        SocketAddr,
        TcpStream, //
    },
    time::{
        Duration,
        Instant, //
    }, //
};

/// The port of rpcbind (RFC 1833, section 2.2.1).
const PORT: u16 = 111;

const PROGRAM: u32 = 100_000;
const VERSION: u32 = 4;
const DUMP: u32 = 4;

/// The longest reply that is read, in octets. A registration takes some 60.
const REPLY_MAX: usize = 65_536;

/// How long connecting, sending the call, and the whole reply, may take.
const LIMIT: Duration = Duration::from_secs(3);

/// A registration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Registration {
    pub(crate) program: u32,
    pub(crate) version: u32,
    /// The network identifier: `tcp`, `rdma6`.
    pub(crate) netid: String,
    pub(crate) port: Option<u16>,
}

/// Asks the rpcbind of that host for its registrations. The error says why there is no answer.
pub(crate) fn dump(mut host: SocketAddr) -> Result<Vec<Registration>, String> {
    host.set_port(PORT);
    let failed = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect_timeout(&host, LIMIT).map_err(failed)?;
    stream
        .set_write_timeout(Some(LIMIT))
        .and_then(|()| stream.write_all(&call()))
        .map_err(failed)?;
    let reply = record(&mut stream, Instant::now() + LIMIT)?;
    registrations(&reply).ok_or_else(|| "the reply cannot be decoded".to_owned())
}

/// Reads a record, until that moment.
fn record(stream: &mut TcpStream, end: Instant) -> Result<Vec<u8>, String> {
    let mut record = Vec::new();
    loop {
        let mut mark = [0; 4];
        read(stream, &mut mark, end)?;
        let mark = u32::from_be_bytes(mark);
        // The highest bit marks the last fragment (RFC 5531, section 11).
        let is_last = mark & 0x8000_0000 != 0;
        let length = usize::try_from(mark & 0x7fff_ffff).unwrap_or(usize::MAX);
        if record.len().saturating_add(length) > REPLY_MAX {
            return Err(format!("the reply is longer than {REPLY_MAX} octets"));
        }
        // Such fragments could follow each other without end.
        if length == 0 && !is_last {
            return Err("the reply has an empty fragment".to_owned());
        }
        let start = record.len();
        record.resize(start + length, 0);
        read(stream, record.get_mut(start..).unwrap_or_default(), end)?;
        if is_last {
            return Ok(record);
        }
    }
}

/// Reads as many octets as `octets` has, until that moment. A time limit of the stream alone would
/// begin anew with each octet.
fn read(stream: &mut TcpStream, mut octets: &mut [u8], end: Instant) -> Result<(), String> {
    while !octets.is_empty() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("the reply takes too long".to_owned());
        }
        stream
            .set_read_timeout(Some(left))
            .map_err(|error| error.to_string())?;
        let count = match stream.read(octets) {
            Ok(0) => return Err("the reply ends too early".to_owned()),
            Ok(count) => count,
            Err(error) => match error.kind() {
                // The latter is a time limit.
                ErrorKind::Interrupted | ErrorKind::WouldBlock => 0,
                _ => return Err(error.to_string()),
            },
        };
        octets = octets.get_mut(count..).unwrap_or_default();
    }
    Ok(())
}

/// The call: one record with its mark.
fn call() -> Vec<u8> {
    // XID, CALL, version 2 of RPC, the procedure, and no credentials and verifier (AUTH_NONE, no
    // octets, each).
    let words = [1, 0, 2, PROGRAM, VERSION, DUMP, 0, 0, 0, 0];
    let mut octets = (0x8000_0000_u32 | 40).to_be_bytes().to_vec();
    octets.extend(words.iter().flat_map(|word: &u32| word.to_be_bytes()));
    octets
}

/// Decodes the reply: a list in which a 1 stands before each item, and a 0 at the end.
fn registrations(reply: &[u8]) -> Option<Vec<Registration>> {
    let mut reader = Reader(reply);
    // XID, REPLY, MSG_ACCEPTED, the verifier, SUCCESS.
    if (reader.word()?, reader.word()?, reader.word()?) != (1, 1, 0) {
        return None;
    }
    reader.word()?;
    reader.octets()?;
    if reader.word()? != 0 {
        return None;
    }
    let mut found = Vec::new();
    while reader.word()? == 1 {
        found.push(Registration {
            program: reader.word()?,
            version: reader.word()?,
            netid: reader.text()?,
            port: port(&reader.text()?),
        });
        // The owner.
        reader.octets()?;
    }
    Some(found)
}

/// The port of a universal address: its last two numbers (RFC 5665, section 5.2.3.3).
fn port(address: &str) -> Option<u16> {
    let mut words = address.rsplit('.');
    let low: u8 = words.next()?.parse().ok()?;
    let high: u8 = words.next()?.parse().ok()?;
    Some(u16::from_be_bytes([high, low]))
}

/// Octets in XDR.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    /// Opaque data of a variable length, which is padded to a multiple of four octets.
    fn octets(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.word()?).ok()?;
        let octets = self.take(length)?;
        self.take(length.wrapping_neg() % 4)?;
        Some(octets)
    }

    fn text(&mut self) -> Option<String> {
        Some(String::from_utf8_lossy(self.octets()?).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By RFC 5531 and RFC 1833: the head of a reply, and two registrations of NFS.
    fn reply() -> Vec<u8> {
        let mut octets = Vec::new();
        let word = |octets: &mut Vec<u8>, word: u32| octets.extend(word.to_be_bytes());
        for value in [1, 1, 0, 0, 0, 0] {
            word(&mut octets, value);
        }
        for (version, netid, address) in [
            (3, "rdma\0\0\0\0", "0.0.0.0.78.81\0\0\0"),
            (4, "tcp6\0\0\0\0", "::.8.1\0\0"),
        ] {
            word(&mut octets, 1);
            word(&mut octets, 100_003);
            word(&mut octets, version);
            for text in [netid, address, "superuser\0\0\0"] {
                let length = text.trim_end_matches('\0').len();
                word(&mut octets, length.try_into().unwrap());
                octets.extend(&text.as_bytes()[..length.next_multiple_of(4)]);
            }
        }
        word(&mut octets, 0);
        octets
    }

    #[test]
    fn replies() {
        let one = |version, netid: &str, port| Registration {
            program: 100_003,
            version,
            netid: netid.to_owned(),
            port: Some(port),
        };
        assert_eq!(
            registrations(&reply()),
            Some(vec![one(3, "rdma", 20049), one(4, "tcp6", 2049)])
        );
        // Cut off anywhere.
        for length in 0..reply().len() {
            assert_eq!(registrations(&reply()[..length]), None, "{length}");
        }
        // Another XID; denied; PROG_MISMATCH.
        for (offset, value) in [(3, 9), (11, 1), (23, 2)] {
            let mut octets = reply();
            octets[offset] = value;
            assert_eq!(registrations(&octets), None, "{offset}");
        }
        // A string of 4 GiB.
        let mut octets = reply();
        octets[36..40].copy_from_slice(&[0xff; 4]);
        assert_eq!(registrations(&octets), None);
    }

    /// What `record` returns, and how long it takes, of a peer that sends these octets, one in
    /// `pause` each if there is one, and again for five seconds if `again`.
    fn from_peer(
        octets: &[u8],
        pause: Duration,
        again: bool,
    ) -> (Result<Vec<u8>, String>, Duration) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let octets = octets.to_vec();
        let peer = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let end = Instant::now() + Duration::from_secs(5);
            loop {
                for part in octets.chunks(if pause.is_zero() { 1024 } else { 1 }) {
                    std::thread::sleep(pause);
                    if stream.write_all(part).is_err() {
                        return;
                    }
                }
                if !again || Instant::now() >= end {
                    return;
                }
            }
        });
        let mut stream = TcpStream::connect(address).unwrap();
        let start = Instant::now();
        let found = record(&mut stream, start + Duration::from_secs(1));
        let lasted = start.elapsed();
        drop(stream);
        peer.join().unwrap();
        (found, lasted)
    }

    /// A peer that sends what it likes does not hold the reader longer than the limit.
    #[test]
    fn records() {
        let at_once = Duration::ZERO;
        let two = [0, 0, 0, 2, 1, 2, 0x80, 0, 0, 1, 3];
        assert_eq!(from_peer(&two, at_once, false).0, Ok(vec![1, 2, 3]));
        let ends_empty = [0, 0, 0, 1, 1, 0x80, 0, 0, 0];
        assert_eq!(from_peer(&ends_empty, at_once, false).0, Ok(vec![1]));
        // A fragment of 1000 octets.
        let mut long = vec![0, 0, 3, 232];
        long.resize(1004, 7);
        for (octets, pause, again, expected) in [
            (&two[..9], at_once, false, "the reply ends too early"),
            (&[0; 4], at_once, true, "the reply has an empty fragment"),
            (
                &[0, 1, 0, 1],
                at_once,
                false,
                "the reply is longer than 65536 octets",
            ),
            (
                &long,
                at_once,
                true,
                "the reply is longer than 65536 octets",
            ),
            (
                &[0, 0, 0, 1, 7],
                Duration::from_millis(100),
                true,
                "the reply takes too long",
            ),
        ] {
            let (found, lasted) = from_peer(octets, pause, again);
            assert_eq!(found, Err(expected.to_owned()));
            assert!(lasted < Duration::from_secs(3), "{expected}: {lasted:?}");
        }
    }

    #[test]
    fn ports() {
        for (address, expected) in [
            ("10.77.1.2.78.81", Some(20049)),
            ("::1.8.1", Some(2049)),
            ("/run/rpcbind.sock", None),
            ("1.256", None),
            ("81", None),
            ("", None),
        ] {
            assert_eq!(port(address), expected, "{address}");
        }
    }
}
