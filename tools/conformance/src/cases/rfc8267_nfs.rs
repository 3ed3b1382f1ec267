// SPDX-License-Identifier: GPL-2.0

//! RFC 8267, sections 4 and 6.1: GETATTR of NFS 4.0; GETATTR, READ and WRITE of NFS 3.

use super::rfc8166_nfs;
use super::rfc8166_nfs::content;
use super::rfc8166_nfs::long_enough;
use super::rfc8166_nfs::read_whole;
use super::rfc8166_nfs::succeeded;
use super::rfc8166_nfs::written_whole;
use super::rfc8166_nfs::INADEQUATE;
use super::rfc8166_nfs::LACKING;
use super::rfc8166_nfs::SIZE;
use super::rfc8166_nfs::WANTED;
use crate::case::case;
use crate::case::inconclusive;
use crate::case::skip;
use crate::case::unimplemented;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Problem;
use crate::case::Verdict;
use crate::engine::Message;
use crate::mount;
use crate::mount::Export;
use crate::nfs;
use crate::nfs3;
use crate::nfs3::Found;
use crate::nfs3::Read;
use crate::peer::Answer;
use crate::peer::Link;
use crate::peer::Service;
use crate::peer::Target;
use crate::wire::Header;
use crate::wire::ReadSegment;
use crate::wire::Reader;
use crate::wire::Segment;
use crate::wire::Status;

const NOT_REDUCED: &str =
    "RFC 8166, section 6.1: Senders MUST NOT reduce data items that are not DDP-eligible.";
const OTHERS: &str = "All other argument or result data items in NFS versions 2 and 3 are not \
                      DDP-eligible.";
const UNFILLED: &str =
    "All other argument or result data items in NFS versions 2 and 3 are not DDP-eligible. … RFC \
     8166, section 4.3.2: If an RPC Reply message has no possible DDP-eligible result data items, \
     the Requester leaves the Write list empty. … RFC 8166, section 4.3.2.2: If this is the last \
     or only Write chunk available and it remains unconsumed, the Responder MUST return this \
     Write chunk as an unused Write chunk";
const PUSHES: &str =
    "RFC 8166, section 4.3.2: When a Requester provides a Write list, the Responder MUST push data \
     corresponding to DDP-eligible result data items to Requester memory referenced in the Write \
     list.";
const NO_PADDING: &str =
    "RFC 8166, section 3.4.6.2: A Responder MUST NOT write XDR roundup padding into a Write chunk, \
     even if the Requester made space available for it.";
const MAY_REDUCE: &str =
    "RFC 8166, section 3.5.2: If DDP-eligible data items are present in a Payload stream, a sender \
     MAY reduce some or all of these items by removing them from the Payload stream.";

/// Takes the results of a procedure that had to succeed. Some failures are none of the transport.
fn decoded<T>(
    procedure: &str,
    results: &[u8],
    decode: impl FnOnce(&[u8]) -> Result<T, String>,
) -> Result<T, Problem> {
    let status = Reader::new(results).word().unwrap_or_default();
    if let Some(name) = nfs3::environment(status) {
        return inconclusive(format!("{procedure} of NFS 3 fails with {name}"));
    }
    decode(results).or_else(|why| violation(format!("{procedure} of NFS 3: {why}")))
}

/// GETATTR alone, and with a READ behind it that has a Write chunk for its data. Other cases judge
/// the READ.
fn getattr_4(target: &mut Target<'_>) -> Verdict {
    const LENGTH: usize = 500;
    let (mut link, path) = rfc8166_nfs::filled(target, 5)?;
    let results = link.nfs(|compound| compound.path(&path).attributes())?;
    let alone = succeeded(&results, nfs::Results::attributes)?;
    let mut header = Header::msg(link.xid());
    header.writes = vec![vec![link.writable(LENGTH)?]];
    let (answer, results) = link.nfs_with(&header, |compound| {
        compound.path(&path).attributes().read(0, LENGTH as u32)
    })?;
    let attributes = succeeded(&results, nfs::Results::attributes_in_front)?;
    if attributes != alone {
        return violation("GETATTR in front of READ returns other attributes than alone");
    }
    let (eof, count, inline) = results
        .reduced()
        .or_else(|why| inconclusive(format!("the READ fails: {why}")))?;
    let [returned] = &answer.header.writes[..] else {
        return inconclusive("the reply does not have one Write chunk");
    };
    let octets = link.gather(returned)?;
    if octets.len() != count as usize || !inline.is_empty() || !content(5).starts_with(&octets) {
        return inconclusive(format!(
            "the Write chunk does not have the data: READ returns a count of {count}, {} octets \
             in the chunk, {} inline",
            octets.len(),
            inline.len()
        ));
    }
    read_whole(eof, octets.len(), LENGTH).or_else(|problem| inconclusive(problem.reason()))?;
    long_enough(attributes)
}

/// A connection, and the scratch file by NFS 3.
struct File {
    link: Link,
    handle: Vec<u8>,
}

/// A call of NFS 3.
fn call(link: &mut Link, header: &Header, rpc: &[u8]) -> Result<(Answer, Vec<u8>), Problem> {
    let message = asked(link, header, rpc)?;
    accepted(link, header.xid, &message)
}

/// Makes a call of NFS 3. Returns the answer, whatever it is.
fn asked(link: &mut Link, header: &Header, rpc: &[u8]) -> Result<Message, Problem> {
    link.ask(header, rpc)?;
    link.receive_of(header.xid)
}

/// Returns the answer, and its results.
fn accepted(link: &mut Link, xid: u32, message: &Message) -> Result<(Answer, Vec<u8>), Problem> {
    let answer = link.decode(xid, message)?;
    match &answer.status {
        Status::Success(results) => {
            let results = results.clone();
            Ok((answer, results))
        }
        Status::ProgUnavail | Status::ProgMismatch(..) => skip("the server has no NFS 3"),
        Status::AuthError(_) => inconclusive("the server refuses AUTH_SYS for NFS 3"),
        other => violation(format!("the call of NFS 3 gets {other:?}")),
    }
}

/// Goes from an export to a file, if there is one.
fn look_up(link: &mut Link, export: &Export, path: &str) -> Result<Option<Found>, Problem> {
    let mut at = Found {
        handle: export.handle.clone(),
        attributes: None,
    };
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let xid = link.xid();
        let rpc = nfs3::lookup(xid, &at.handle, name);
        let (_, results) = call(link, &Header::msg(xid), &rpc)?;
        match nfs3::found(&results) {
            Ok(found) => at = found,
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(at))
}

impl File {
    /// Searches the exports for the scratch file. The path is one of NFS 4, where another directory
    /// may be the root. Only a file that has the attributes of NFS 4.0 is the same one.
    fn open(target: &mut Target<'_>) -> Result<Self, Problem> {
        let server = target.server;
        let Some(path) = &server.export else {
            return skip("only with --export");
        };
        let exports = mount::exports(server)
            .or_else(|why| skip(format!("there is no file handle of NFS 3: {why}")))?;
        let mut link = target.plain()?;
        let known = match server.service {
            Service::Nfs4(_) => Some(
                link.nfs(|compound| compound.path(path).attributes())?
                    .attributes()
                    .or_else(|why| skip(format!("GETATTR of NFS 4.0 fails: {why}")))?
                    .ok_or(Problem::Skip(LACKING.into()))?,
            ),
            _ => None,
        };
        for export in exports {
            let below = mount::below(path, &export.directory);
            let Some(rest) = below.or(known.as_ref().and(Some(path))) else {
                continue;
            };
            match look_up(&mut link, &export, rest)? {
                Some(Found { handle, attributes }) if known.is_none() || attributes == known => {
                    return Ok(File { link, handle })
                }
                _ => (),
            }
        }
        skip("no export of NFS 3 has the scratch file")
    }

    /// Opens the file, and fills it by a Long Call.
    fn filled(target: &mut Target<'_>, seed: u8) -> Result<Self, Problem> {
        let mut file = Self::open(target)?;
        let xid = file.link.xid();
        let rpc = nfs3::write(xid, &file.handle, 0, &content(seed));
        file.write(&Header::msg(xid), &rpc, SIZE)?;
        Ok(file)
    }

    fn write(&mut self, header: &Header, rpc: &[u8], length: usize) -> Verdict {
        let (_, results) = call(&mut self.link, header, rpc)?;
        written_whole(decoded("WRITE", &results, nfs3::written)?, length)?;
        Ok(Passed)
    }

    /// READ. Returns the answer, and what it has inline.
    fn read(
        &mut self,
        header: &Header,
        offset: u64,
        length: usize,
    ) -> Result<(Answer, Read), Problem> {
        let rpc = nfs3::read(header.xid, &self.handle, offset, length as u32);
        let (answer, results) = call(&mut self.link, header, &rpc)?;
        let found = decoded("READ", &results, nfs3::read_result)?;
        read_whole(found.eof, found.count as usize, length)?;
        Ok((answer, found))
    }

    /// The file has this content, read inline in parts.
    fn same(&mut self, expected: &[u8]) -> Verdict {
        for (number, part) in expected.chunks(500).enumerate() {
            let offset = number as u64 * 500;
            let header = Header::msg(self.link.xid());
            let (_, found) = self.read(&header, offset, part.len())?;
            if found.data().or_else(violation)? != part {
                return violation(format!("the file has other octets behind {offset}"));
            }
        }
        Ok(Passed)
    }
}

/// GETATTR, with a Write chunk of `room` octets if that is not zero.
fn getattr_3(target: &mut Target<'_>, room: usize) -> Verdict {
    let mut file = File::filled(target, 6)?;
    let mut header = Header::msg(file.link.xid());
    if room > 0 {
        header.writes = vec![vec![file.link.writable(room)?]];
    }
    let rpc = nfs3::getattr(header.xid, &file.handle);
    let message = asked(&mut file.link, &header, &rpc)?;
    if room > 0 && file.link.is_declined(header.xid, &message) {
        file.link.answers_or_ends("an error")?;
        return unimplemented("the server takes no Write chunk without a result for it");
    }
    let (answer, results) = accepted(&mut file.link, header.xid, &message)?;
    long_enough(Some(decoded("GETATTR", &results, nfs3::attributes)?))?;
    let unused = |chunk: &Vec<Segment>| chunk.len() == 1 && chunk[0].length == 0;
    let returned = &answer.header.writes;
    if returned.len() != header.writes.len() || !returned.iter().all(unused) {
        return violation(format!("the Write list comes back as {returned:?}"));
    }
    Ok(Passed)
}

fn read_inline(target: &mut Target<'_>) -> Verdict {
    File::filled(target, 7)?.same(&content(7))
}

/// READ by a Write chunk of `room` octets.
fn read_by_chunk(target: &mut Target<'_>, length: usize, room: usize) -> Verdict {
    let mut file = File::filled(target, 8)?;
    let mut header = Header::msg(file.link.xid());
    let offered = file.link.writable(room)?;
    header.writes = vec![vec![offered]];
    let (answer, found) = file.read(&header, 100, length)?;
    if !found.rest.is_empty() {
        return violation(format!("READ returns {} octets inline", found.rest.len()));
    }
    match &answer.header.writes[..] {
        [chunk] if chunk.len() == 1 && chunk[0].length as usize == length => (),
        other => return violation(format!("the Write list comes back as {other:?}")),
    }
    let octets = file.link.gather(&[offered])?;
    if octets[..length] != content(8)[100..100 + length] {
        return violation("the data is other data");
    }
    if octets[length..].iter().any(|&octet| octet != 0xee) {
        return violation("octets behind the data were written");
    }
    Ok(Passed)
}

/// READ with Write chunks that are too short.
fn too_short(target: &mut Target<'_>) -> Verdict {
    let begin = |target: &mut Target<'_>, seed: u8| {
        let mut file = File::filled(target, seed)?;
        let xid = file.link.xid();
        let rpc = nfs3::read(xid, &file.handle, 0, WANTED as u32);
        Ok((file.link, rpc, xid))
    };
    rfc8166_nfs::too_short_chunks(target, begin, |answer| {
        let results = answer.results()?;
        let status = Reader::new(results).word().unwrap_or_default();
        if status == nfs::IO || status != 0 && nfs3::environment(status).is_none() {
            return Ok(None);
        }
        let found = decoded("READ", results, nfs3::read_result)?;
        Ok(Some((found.eof, found.count, found.rest)))
    })
}

/// WRITE of `length` octets, inline or by a Read chunk.
fn write(target: &mut Target<'_>, length: usize, by_chunk: bool) -> Verdict {
    let mut file = File::filled(target, 9)?;
    let data = content(88)[..length].to_vec();
    let mut header = Header::msg(file.link.xid());
    let rpc = if by_chunk {
        let rpc = nfs3::write_reduced(header.xid, &file.handle, 8, length as u32);
        header.reads.push(ReadSegment {
            position: rpc.len() as u32,
            segment: file.link.readable(&data)?,
        });
        rpc
    } else {
        nfs3::write(header.xid, &file.handle, 8, &data)
    };
    file.write(&header, &rpc, length)?;
    let mut expected = content(9);
    expected[8..8 + length].copy_from_slice(&data);
    file.same(&expected)
}

pub const CASES: &[Case] = &[
    case!("rfc8267/6.1/1", "GETATTR of NFS 4.0", Must, NOT_REDUCED,
        sends "GETATTR of size, fileid and time_modify; the same with READ of 500 octets and a Write \
               chunk of 500",
        accepts "the same attributes inline, the data in the chunk",
        fault "reduces-fattr4", needs [Export], getattr_4),
    case!("rfc8267/4/2", "GETATTR of NFS 3 needs no Write chunk", Must, OTHERS,
        sends "GETATTR without chunks", accepts "the attributes inline",
        fault "reduces-fattr3", needs [Export], |target| getattr_3(target, 0)),
    case!("rfc8267/4/3", "GETATTR of NFS 3 does not use a Write chunk", Must, UNFILLED,
        sends "GETATTR, a Write chunk of 512 octets",
        accepts "the attributes inline, the chunk with length 0; a server need not take that chunk: \
                 ERR_CHUNK or GARBAGE_ARGS is no failure",
        fault "reduces-fattr3", needs [Export], |target| getattr_3(target, 512)),
    case!("rfc8267/4/4", "READ of NFS 3 without a Write list is inline", Must,
        "RFC 8166, section 4.3.2.3: When there is only one DDP-eligible result item in an RPC Reply \
         message, the Requester provides an empty Write list.",
        sends "READ of 500 octets without chunks", accepts "the data inline",
        fault "no-inline-reads", needs [Export], read_inline),
    case!("rfc8267/4/5", "READ of NFS 3 fills a Write chunk", Must, PUSHES,
        sends "READ of 3000 octets, a Write chunk of 3000", accepts "the data in the chunk, length 3000",
        fault "reads-inline", needs [Export], |target| read_by_chunk(target, 3000, 3000)),
    case!("rfc8267/4/6", "READ of NFS 3 of 1001 octets writes no padding", Must, NO_PADDING,
        sends "READ of 1001 octets, a Write chunk of 1004", accepts "length 1001, nothing written behind it",
        fault "writes-padding", needs [Export], |target| read_by_chunk(target, 1001, 1004)),
    case!("rfc8267/4/9", "a Write chunk that is too short for the data of NFS 3", Must, INADEQUATE,
        sends "READ of 3000 octets, Write chunks of 2999, 2996 and 1000",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR, an error of NFS, a READ of less or the end of \
                 this connection; nothing written behind the chunk; NULL succeeds",
        fault "cuts-reads", needs [Export], too_short),
    case!("rfc8267/4/7", "an inline WRITE of NFS 3", Must, MAY_REDUCE,
        sends "WRITE of 501 octets without chunks", accepts "the file has them, and nothing else",
        fault "cuts-inline-writes", needs [Export], |target| write(target, 501, false)),
    case!("rfc8267/4/8", "WRITE of NFS 3 takes its data from a Read chunk", Must, MAY_REDUCE,
        sends "WRITE of 3000 octets by a Read chunk", accepts "the file has them",
        fault "loses-read-chunks", needs [Export], |target| write(target, 3000, true)),
];
