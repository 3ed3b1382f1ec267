// SPDX-License-Identifier: GPL-2.0

//! RFC 8267, section 6.1: chunks with the targets of symbolic links, and with arguments that are
//! not eligible, by NFS 4.0.

use super::rfc8166_chunks::same_segments;
use super::rfc8166_nfs::parsed;
use super::rfc8166_nfs::path;
use super::rfc8166_nfs::succeeded;
use crate::case::case;
use crate::case::inconclusive;
use crate::case::unimplemented;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Problem;
use crate::case::Verdict;
use crate::nfs;
use crate::nfs::Compound;
use crate::nfs::Results;
use crate::peer::Link;
use crate::peer::Service;
use crate::peer::Target;
use crate::wire::roundup;
use crate::wire::Header;
use crate::wire::ReadSegment;

const COUNTED: &str =
    "If a chunk contains a counted array data type, the count of array elements MUST remain in the \
     Payload stream, while the array elements MUST be moved to the chunk. … RFC 8267, sections 6.1 \
     and 6.4.1: The linkdata field in the READLINK4resok structure … If an NFS version 4 client \
     has provided a matching non-empty Write chunk, then the corresponding READ operation MUST \
     return its DDP-eligible data item using that chunk.";
const LINKDATA: &str =
    "Only the following XDR data items in the COMPOUND procedure of all NFS version 4 minor \
     versions are DDP-eligible: … The linkdata field of the NF4LNK arm in the createtype4 union … \
     RFC 8166, section 3.4.5: The Responder reconstructs the transferred chunk data by \
     concatenating the contents of each RDMA segment, in list order, into the received Payload \
     stream at the Position value recorded in that RDMA segment.";
const NOT_ELIGIBLE: &str =
    "Only the following XDR data items in the COMPOUND procedure of all NFS version 4 minor \
     versions are DDP-eligible … RFC 8166, section 6.1: A Requester reduces a non-DDP-eligible \
     argument data item. The Responder MUST NOT process this RPC Call message and MUST report the \
     violation as described in Section 4.5.2.";

/// Makes a symbolic link by an inline call. A server need not have them, and not every client may
/// make them.
fn create(link: &mut Link, path: &str, text: &[u8]) -> Result<(), Problem> {
    let results = link.nfs(|compound| compound.create_link(path, text, false))?;
    match results.status {
        0 => Ok(()),
        nfs::NOTSUPP | nfs::BADTYPE => unimplemented("the server has no symbolic links"),
        status => inconclusive(format!(
            "CREATE of a symbolic link fails with status {status}"
        )),
    }
}

/// Removes a file. A failure is inconclusive: it need not be one of the transport.
fn remove(link: &mut Link, path: &str) -> Result<(), Problem> {
    let results = link.nfs(|compound| compound.remove(path));
    match results.map(|results| results.status) {
        Ok(0) => Ok(()),
        Ok(status) => inconclusive(format!("REMOVE of {path} fails with status {status}")),
        Err(problem) => inconclusive(format!("REMOVE of {path} fails: {}", problem.reason())),
    }
}

/// Runs a check with a symbolic link beside the scratch file, and removes the link in any case.
fn with_link(
    target: &mut Target<'_>,
    text: &[u8],
    check: impl FnOnce(&mut Link, &str) -> Verdict,
) -> Verdict {
    let file = path(target)?;
    let mut link = target.plain()?;
    let path = format!("{file}.{:08x}", link.xid());
    let verdict = create(&mut link, &path, text).and_then(|()| check(&mut link, &path));
    // The connection may have ended.
    let removed = target.plain().and_then(|mut link| remove(&mut link, &path));
    verdict.and_then(|passed| removed.map(|()| passed))
}

/// READLINK with a Write chunk.
fn read_link(target: &mut Target<'_>, text: &[u8]) -> Verdict {
    with_link(target, text, |link, path| {
        let mut header = Header::msg(link.xid());
        let offered = link.writable(1024)?;
        header.writes = vec![vec![offered]];
        let (answer, results) =
            link.nfs_with(&header, |compound| compound.path(path).read_link())?;
        let (count, behind) = succeeded(&results, Results::reduced_link)?;
        let [returned] = &answer.header.writes[..] else {
            return violation("the reply does not have one Write chunk");
        };
        same_segments(&[offered], returned)?;
        let (length, moved) = (text.len(), returned[0].length as usize);
        if (count as usize, moved, behind.len()) != (length, length, 0) {
            return violation(format!(
                "the target has {length} octets; {moved} of them are in the Write chunk, the count \
                 is {count}, and {} octets follow it inline",
                behind.len()
            ));
        }
        let octets = link.gather(&[offered])?;
        if octets[..length] != *text {
            return violation("the Write chunk has another target");
        }
        let mut padding = octets.iter().take(roundup(length)).skip(length);
        if padding.any(|&octet| octet != 0xee) {
            return violation("the padding of the target was written");
        }
        Ok(Passed)
    })
}

/// CREATE with the target in a Read chunk, name and attributes inline behind it. The same without
/// a chunk has just succeeded.
fn create_by_chunk(target: &mut Target<'_>, text: &[u8]) -> Verdict {
    with_link(target, text, |link, path| {
        remove(link, path)?;
        let mut header = Header::msg(link.xid());
        let compound = Compound::new(b"").create_link(path, text, true);
        header.reads.push(ReadSegment {
            position: compound.position(),
            segment: link.readable(text)?,
        });
        let answer = link.call(&header, &compound.call(header.xid))?;
        succeeded(&parsed(&answer)?, Results::succeeded)?;
        let results = link.nfs(|compound| compound.path(path).read_link())?;
        if succeeded(&results, Results::link)? != text {
            return violation("the link has another target");
        }
        Ok(Passed)
    })
}

/// Two targets, one of which needs no padding.
fn both(target: &mut Target<'_>, check: fn(&mut Target<'_>, &[u8]) -> Verdict) -> Verdict {
    check(target, b"5-oct")?;
    check(target, b"8-octets")
}

const NAME: &[u8] = b"conformance!";

/// An argument that is not eligible is the Read chunk.
fn reduces(target: &mut Target<'_>, call: impl FnOnce(u32) -> (Vec<u8>, u32)) -> Verdict {
    if !matches!(target.server.service, Service::Nfs4(_)) {
        return target.server.lacks("no COMPOUND of NFS 4.0");
    }
    let mut link = target.plain()?;
    let xid = link.xid();
    let (rpc, position) = call(xid);
    let segment = link.readable(NAME)?;
    let mut header = Header::msg(xid);
    header.reads.push(ReadSegment { position, segment });
    link.ask(&header, &rpc)?;
    let message = link.receive_of(xid)?;
    if !link.is_declined(xid, &message) {
        let answer = link.decode(xid, &message)?;
        let status = parsed(&answer)?.status;
        if status != nfs::BADXDR {
            return violation(format!(
                "the call is processed, and ends with status {status}"
            ));
        }
    }
    target.goes_on(&mut link, true, "an argument that is not eligible")
}

pub const CASES: &[Case] = &[
    case!("rfc8166/3.4.4.1/1", "READLINK fills a Write chunk", Must, COUNTED,
        sends "READLINK of targets of 5 and of 8 octets, a Write chunk of 1024",
        accepts "the target in the chunk, its length inline; a server need not have symbolic links",
        fault "moves-counts", needs [Export], |target| both(target, read_link)),
    case!("rfc8267/6.1/2", "CREATE takes the target of a link from a Read chunk", Must, LINKDATA,
        sends "CREATE of links to targets of 5 and of 8 octets by a Read chunk",
        accepts "READLINK returns them; a server need not have symbolic links",
        fault "loses-read-chunks", needs [Export], |target| both(target, create_by_chunk)),
    case!("rfc8267/6.1/3", "a COMPOUND whose tag is a Read chunk", Must, NOT_ELIGIBLE,
    sends "PUTROOTFH with a tag of 12 octets by a Read chunk",
    accepts "ERR_CHUNK, GARBAGE_ARGS or NFS4ERR_BADXDR; NULL succeeds",
    fault "takes-any-argument", |target| reduces(target, |xid| {
        Compound::new(b"").put_root().call_without_tag(xid, NAME.len() as u32)
    })),
    case!("rfc8267/6.1/4", "a LOOKUP whose name is a Read chunk", Must, NOT_ELIGIBLE,
    sends "PUTROOTFH and LOOKUP of a name of 12 octets by a Read chunk",
    accepts "ERR_CHUNK, GARBAGE_ARGS or NFS4ERR_BADXDR; NULL succeeds",
    fault "takes-any-argument", |target| reduces(target, |xid| {
        let lookup = Compound::new(b"").put_root().lookup_reduced(NAME.len() as u32);
        (lookup.call(xid), lookup.position())
    })),
];
