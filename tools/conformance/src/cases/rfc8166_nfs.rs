// SPDX-License-Identifier: GPL-2.0

//! RFC 8166, sections 3.4.5 and 3.4.6: chunks with data, by READ and WRITE of NFS 4.0.

use crate::case::case;
use crate::case::inconclusive;
use crate::case::skip;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Problem;
use crate::case::Verdict;
use crate::nfs;
use crate::nfs::Compound;
use crate::nfs::Results;
use crate::peer::Answer;
use crate::peer::Link;
use crate::peer::Service;
use crate::peer::Target;
use crate::wire::Header;
use crate::wire::ReadSegment;

/// How many octets the scratch file is given.
pub(super) const SIZE: usize = 5000;

const FILLED: &str = "the Responder pushes one data item to the Requester, filling the chunk \
                      contiguously and in segment array order until that data item has been \
                      completely written to the Requester.";
const NO_PADDING: &str =
    "A Responder MUST NOT write XDR roundup padding into a Write chunk, even if the Requester made \
     space available for it.";
const LENGTHS: &str =
    "the Responder updates each segment length field to reflect the actual amount of data that is \
     being returned in that segment.";
const INSERTS: &str = "The Responder reconstructs the transferred chunk data by concatenating the \
                       contents of each RDMA segment, in list order, into the received Payload \
                       stream at the Position value recorded in that RDMA segment.";
const UNUSED: &str =
    "RFC 8166, section 4.3.2.2: If this is the last or only Write chunk available and it remains \
     unconsumed, the Responder MUST return this Write chunk as an unused Write chunk";
const ROUNDUP: &str = "If the Requester chooses to include roundup padding in a Read chunk, the \
                       chunk's total length MUST be the sum of the encoded length of the data item \
                       and the length of the roundup padding.";

pub(super) fn content(seed: u8) -> Vec<u8> {
    (0..SIZE)
        .map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed)
        .collect()
}

fn path(target: &Target<'_>) -> Result<String, Problem> {
    match (&target.server.export, &target.server.service) {
        (Some(path), Service::Nfs4(_)) => Ok(path.clone()),
        (Some(_), _) => target.server.lacks("no READ and WRITE of NFS 4.0"),
        (None, _) => skip("only with --export"),
    }
}

/// Takes the results of a COMPOUND that had to succeed. Some failures are none of the transport.
pub(super) fn succeeded<T>(
    results: &Results,
    read: impl FnOnce(&Results) -> Result<T, String>,
) -> Result<T, Problem> {
    if let Some(name) = nfs::environment(results.status) {
        return inconclusive(format!("the COMPOUND fails with {name}"));
    }
    read(results).or_else(|why| violation(format!("the COMPOUND fails: {why}")))
}

fn parsed(answer: &Answer) -> Result<Results, Problem> {
    Results::parse(answer.results()?)
        .or_else(|why| violation(format!("the COMPOUND's results are malformed: {why}")))
}

/// Connects, and fills the file by a Long Call.
pub(super) fn filled(target: &mut Target<'_>, seed: u8) -> Result<(Link, String), Problem> {
    let path = path(target)?;
    let mut link = target.plain()?;
    let results = link.nfs(|compound| compound.path(&path).write(0, &content(seed)))?;
    succeeded(&results, Results::written)?;
    Ok((link, path))
}

/// READ by a Write chunk of these segments.
fn read(
    target: &mut Target<'_>,
    offset: u64,
    count: u32,
    shape: &[usize],
    wanted: usize,
) -> Verdict {
    let (mut link, path) = filled(target, 1)?;
    let mut header = Header::msg(link.xid());
    let mut chunk = Vec::new();
    for &length in shape {
        chunk.push(link.writable(length)?);
    }
    header.writes = vec![chunk.clone()];
    let (answer, results) =
        link.nfs_with(&header, |compound| compound.path(&path).read(offset, count))?;
    let (_, found, inline) = succeeded(&results, Results::read)?;
    if found as usize > wanted && found <= count {
        return skip("the scratch file is longer than 5000 octets");
    }
    if found as usize != wanted || !inline.is_empty() {
        return violation(format!(
            "READ returns {found} octets, {} of them inline",
            inline.len()
        ));
    }
    let [returned] = &answer.header.writes[..] else {
        return violation("the reply does not have one Write chunk");
    };
    let mut left = wanted;
    for (offered, returned) in chunk.iter().zip(returned) {
        let expected = left.min(offered.length as usize);
        if returned.length as usize != expected {
            return violation(format!(
                "a segment comes back with {} octets, not with {expected}",
                returned.length
            ));
        }
        let octets = link.gather(&[*offered])?;
        if octets[expected..].iter().any(|&octet| octet != 0xee) {
            return violation("octets behind the data were written");
        }
        left -= expected;
    }
    let start = offset as usize;
    if link.gather(returned)? != content(1)[start..start + wanted] {
        return violation("the data is other data");
    }
    Ok(Passed)
}

/// WRITE of `length` octets by a Read chunk of these segments; the last one has the rest, and
/// `padding` octets more.
fn write(target: &mut Target<'_>, length: usize, shape: &[usize], padding: usize) -> Verdict {
    let (mut link, path) = filled(target, 2)?;
    let data = content(77)[..length].to_vec();
    let mut padded = data.clone();
    padded.resize(length + padding, 0);
    let compound = Compound::new(b"")
        .path(&path)
        .write_reduced(8, length as u32);
    let mut header = Header::msg(link.xid());
    let mut rest = &padded[..];
    for &part in shape.iter().chain(&[usize::MAX]) {
        let (part, behind) = rest.split_at(part.min(rest.len()));
        rest = behind;
        let segment = link.readable(part)?;
        header.reads.push(ReadSegment {
            position: compound.position(),
            segment,
        });
    }
    link.send(&header.with(&compound.call(header.xid)))?;
    let message = link.receive_of(header.xid)?;
    let answer = link.decode(header.xid, &message)?;
    let written = succeeded(&parsed(&answer)?, Results::written)?;
    if written as usize != length {
        return violation(format!("WRITE has written {written} octets, not {length}"));
    }
    let mut expected = content(2);
    expected[8..8 + length].copy_from_slice(&data);
    same(&mut link, &path, &expected)
}

/// The file has this content, read inline in parts.
fn same(link: &mut Link, path: &str, expected: &[u8]) -> Verdict {
    for (number, part) in expected.chunks(500).enumerate() {
        let offset = number as u64 * 500;
        let results = link.nfs(|compound| compound.path(path).read(offset, part.len() as u32))?;
        let (_, count, mut inline) = succeeded(&results, Results::read)?;
        inline.truncate(count as usize);
        if inline != part {
            return violation(format!("the file has other octets behind {offset}"));
        }
    }
    Ok(Passed)
}

/// An inline WRITE of a call of exactly `length` octets.
fn write_inline(target: &mut Target<'_>, length: usize) -> Verdict {
    let (mut link, path) = filled(target, 3)?;
    let xid = link.xid();
    let header = Header::msg(xid);
    let empty = Compound::new(b"").path(&path).write(16, &[]).call(xid);
    let room = length - header.with(&empty).len();
    let data = content(99)[..room].to_vec();
    let octets = header.with(&Compound::new(b"").path(&path).write(16, &data).call(xid));
    link.send(&octets)?;
    let message = link.receive_of(xid)?;
    let answer = link.decode(xid, &message)?;
    succeeded(&parsed(&answer)?, Results::written)?;
    let mut expected = content(3);
    expected[16..16 + room].copy_from_slice(&data);
    same(&mut link, &path, &expected)
}

fn read_fails(target: &mut Target<'_>) -> Verdict {
    let path = path(target)?;
    let mut link = target.plain()?;
    let mut header = Header::msg(link.xid());
    header.writes = vec![vec![link.writable(512)?]];
    let (answer, results) = link.nfs_with(&header, |compound| {
        compound.path(&path).lookup(b"no-such-file").read(0, 512)
    })?;
    if results.status == 0 {
        return violation("a file that does not exist can be read");
    }
    match &answer.header.writes[..] {
        [chunk] if chunk.len() == 1 && chunk[0].length == 0 => Ok(Passed),
        other => violation(format!("the Write list comes back as {other:?}")),
    }
}

fn read_inline(target: &mut Target<'_>) -> Verdict {
    let (mut link, path) = filled(target, 4)?;
    same(&mut link, &path, &content(4))
}

pub const CASES: &[Case] = &[
    case!("rfc8166/3.4.6/1", "READ fills a Write chunk", Must, FILLED,
        sends "READ of 3000 octets, a Write chunk of 3000", accepts "the data in the chunk, length 3000",
        fault "reads-inline", needs [Export], |target| read(target, 100, 3000, &[3000], 3000)),
    case!("rfc8166/3.4.6/2", "READ fills three segments in order", Must, FILLED,
        sends "READ of 3000 octets, a Write chunk of 1000, 1000 and 2000", accepts "lengths 1000, 1000, 1000",
        fault "fills-backwards", needs [Export], |target| read(target, 0, 3000, &[1000, 1000, 2000], 3000)),
    case!("rfc8166/3.4.6/3", "READ fills segments whose lengths are no multiples of four", Must, FILLED,
        sends "READ of 3000 octets, a Write chunk of 1, 998, 3 and 2998", accepts "lengths 1, 998, 3, 1998",
        fault "fills-backwards", needs [Export], |target| read(target, 0, 3000, &[1, 998, 3, 2998], 3000)),
    case!("rfc8166/3.4.6/4", "READ at the end of the file returns short lengths", Must, LENGTHS,
        sends "READ of 3000 octets where 1000 are left", accepts "length 1000, nothing written behind it",
        fault "reads-keep-length", needs [Export], |target| read(target, 4000, 3000, &[3000], 1000)),
    case!("rfc8166/3.4.6.2/1", "READ of 1001 octets writes no padding", Must, NO_PADDING,
        sends "READ of 1001 octets, a Write chunk of 1004", accepts "length 1001, nothing written behind it",
        fault "writes-padding", needs [Export], |target| read(target, 0, 1001, &[1004], 1001)),
    case!("rfc8166/4.3.2.2/5", "a READ that fails returns an unused Write chunk", Must, UNUSED,
        sends "READ behind a LOOKUP that fails, a Write chunk", accepts "the chunk with length 0",
        fault "unused-keep-length", needs [Export], read_fails),
    case!("rfc8166/4.3.2.3/3", "READ without a Write list is inline", Must,
        "When there is only one DDP-eligible result item in an RPC Reply message, the Requester \
         provides an empty Write list.",
        sends "READ of 500 octets without chunks", accepts "the data inline",
        fault "no-inline-reads", needs [Export], read_inline),
    case!("rfc8166/3.4.5/5", "WRITE takes its data from a Read chunk", Must, INSERTS,
        sends "WRITE of 3000 octets by a Read chunk", accepts "the file has them",
        fault "loses-read-chunks", needs [Export], |target| write(target, 3000, &[], 0)),
    case!("rfc8166/3.4.5/6", "WRITE takes its data from segments of odd lengths", Must, INSERTS,
        sends "WRITE of 3000 octets in segments of 1, 998, 3 and 1998", accepts "the file has them",
        fault "first-segment-only", needs [Export], |target| write(target, 3000, &[1, 998, 3], 0)),
    case!("rfc8166/3.4.5.2/1", "WRITE of 1001 octets without padding in the chunk", Must, ROUNDUP,
        sends "WRITE of 1001 octets, a Read chunk of 1001", accepts "the file has them, and nothing else",
        fault "wants-padding", needs [Export], |target| write(target, 1001, &[], 0)),
    case!("rfc8166/3.4.5.2/2", "WRITE of 1001 octets with padding in the chunk", Must, ROUNDUP,
        sends "WRITE of 1001 octets, a Read chunk of 1004", accepts "the file has them, and nothing else",
        fault "takes-padding", needs [Export], |target| write(target, 1001, &[], 3)),
    case!("rfc8166/3.4.5.2/3", "WRITE with its padding in a segment of its own", Must, ROUNDUP,
        sends "WRITE of 1001 octets, segments of 1001 and 3", accepts "the file has them, and nothing else",
        fault "takes-padding", needs [Export], |target| write(target, 1001, &[1001], 3)),
    case!("rfc8166/3.5.1/1", "an inline WRITE in a call of 1024 octets", Must,
        "RFC 8166, section 3.3.3: Receiver implementations MUST support inline thresholds of 1024 \
         bytes",
        sends "WRITE inline, 1024 octets in all", accepts "the file has them, and nothing else",
        fault "cuts-inline-writes", needs [Export], |target| write_inline(target, 1024)),
    case!("rfc8166/3.5.1/2", "an inline WRITE in a call of 1020 octets", Must,
        "RFC 8166, section 3.3.3: Receiver implementations MUST support inline thresholds of 1024 \
         bytes",
        sends "WRITE inline, 1020 octets in all", accepts "the file has them, and nothing else",
        fault "cuts-inline-writes", needs [Export], |target| write_inline(target, 1020)),
];
