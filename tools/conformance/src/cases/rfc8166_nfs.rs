// SPDX-License-Identifier: GPL-2.0

//! RFC 8166 and RFC 8267: chunks with data, and inline data, by READ and WRITE of NFS 4.0.

use crate::case::case;
use crate::case::inconclusive;
use crate::case::skip;
use crate::case::unimplemented;
use crate::case::violation;
use crate::case::Case;
use crate::case::Passed;
use crate::case::Problem;
use crate::case::Verdict;
use crate::cases::rfc8166_chunks::same_segments;
use crate::cases::rfc8166_chunks::PADDED;
use crate::cases::rfc8166_chunks::SEGMENTS;
use crate::cases::rfc8166_credits::EXCHANGE;
use crate::cases::rfc8166_credits::RECEIVERS;
use crate::engine::Message;
use crate::nfs;
use crate::nfs::Attributes;
use crate::nfs::Compound;
use crate::nfs::Read;
use crate::nfs::Results;
use crate::nfs::TAG_MAX;
use crate::peer::fits;
use crate::peer::Answer;
use crate::peer::Link;
use crate::peer::Service;
use crate::peer::Target;
use crate::peer::DEFAULT;
use crate::wire;
use crate::wire::roundup;
use crate::wire::Header;
use crate::wire::Private;
use crate::wire::ReadSegment;
use crate::wire::Segment;

/// How many octets the scratch file is given.
pub(super) const SIZE: usize = 5000;

const FILLED: &str = "the Responder pushes one data item to the Requester, filling the chunk \
                      contiguously and in segment array order until that data item has been \
                      completely written to the Requester.";
const REST: &str =
    "If Write chunks were provided and the Responder has a DDP-eligible result, it first reduces \
     the reply Payload stream. If a Reply chunk was provided and the reduced Payload stream is \
     larger than the reply inline threshold, the Responder MUST use the Requester-provided Reply \
     chunk for the reply.";
const BOTH: &str =
    "NFS version 4 servers MUST accept and process such requests. … The Read list can contain \
     either a Position Zero Read chunk, one Read chunk with a non-zero Position, or both.";
const COPIES: &str = "The Responder MUST copy the segment count and all segments from the \
                      Requester-provided Write chunk into the RPC Reply message's Transport \
                      header.";
const ROUNDUP_REMOVED: &str =
    "When a variable-length XDR data item is reduced, the sender MUST remove XDR roundup padding \
     for that data item from the Payload stream so that data items remaining in the Payload stream \
     begin on four-byte alignment.";
const ROUNDUP_INSERTED: &str =
    "When a variable-length XDR data item is reduced, the sender MUST remove XDR roundup padding \
     for that data item from the Payload stream so that data items remaining in the Payload stream \
     begin on four-byte alignment. … RFC 8166, section 3.4.5.2: The length of the data item that \
     was encoded into the Payload stream remains unchanged.";
const AT_POSITION: &str =
    "The Responder reconstructs the transferred chunk data by concatenating the contents of each \
     RDMA segment, in list order, into the received Payload stream at the Position value recorded \
     in that RDMA segment. … RFC 8166, section 4.5.2: This type of parsing failure might be due to \
     mismatches between chunk sizes or offsets and the contents of the Payload stream";
pub(super) const INADEQUATE: &str =
    "RFC 8166, section 3.4.6: For each Write chunk provided by a Requester, the Responder pushes one \
     data item to the Requester, filling the chunk contiguously and in segment array order until \
     that data item has been completely written to the Requester. … RFC 8267, section 3.1: If an NFS server finds \
     that the NFS client provided inadequate receive resources to return the whole Reply, it \
     returns an RPC-level error or a transport error, such as ERR_CHUNK.";
const BOUNDARIES: &str =
    "A Requester MAY divide a chunk into RDMA segments using any boundaries that are convenient.";
const NO_PADDING: &str =
    "A Responder MUST NOT write XDR roundup padding into a Write chunk, even if the Requester made \
     space available for it.";
const LENGTHS: &str =
    "the Responder updates each segment length field to reflect the actual amount of data that is \
     being returned in that segment.";
const INSERTS: &str = "The Responder reconstructs the transferred chunk data by concatenating the \
                       contents of each RDMA segment, in list order, into the received Payload \
                       stream at the Position value recorded in that RDMA segment.";
const CONVEYED: &str =
    "RFC 8166, section 3.3.2: An \"inline threshold\" value is the largest message size (in \
     octets) that can be conveyed in one direction between peer implementations using RDMA Send \
     and Receive.";
const NO_LONGER: &str =
    "RFC 8166, sections 4.2.4 and 4.5.4: the total length of the gathered buffers cannot exceed \
     the inline threshold. … If a Responder is unable to construct and transmit an RPC Reply or \
     RPC-over-RDMA error message, the Responder MUST close the connection to signal to the \
     Requester that a reply was lost. … RFC 8267, section 3.1: If an NFS server finds that the NFS \
     client provided inadequate receive resources to return the whole Reply, it returns an \
     RPC-level error or a transport error, such as ERR_CHUNK.";
const TOO_LONG: &str =
    "RFC 8166, sections 4.2.4 and 3.5.3: the total length of the gathered buffers cannot exceed \
     the inline threshold. … If a Reply chunk was provided and the reduced Payload stream is \
     larger than the reply inline threshold, the Responder MUST use the Requester-provided Reply \
     chunk for the reply.";
pub(super) const LACKING: &str = "GETATTR does not return size, fileid and time_modify";
const UNFILLED: &str =
    "If this is the last or only Write chunk available and it remains unconsumed, the Responder \
     MUST return this Write chunk as an unused Write chunk … RFC 8267, section 6.4.1: If a READ \
     operation returns a union arm that does not contain a DDP-eligible result, and the NFS \
     version 4 client has provided a matching non-empty Write chunk, an NFS version 4 server MUST \
     return an empty Write chunk in that Write list position.";
const EMPTY: &str =
    "RFC 8267, section 6.4.1: If an NFS version 4 client has provided an empty matching Write \
     chunk, then the corresponding READ operation MUST return all of its result data items inline. \
     … RFC 8166, section 3.4.6: The Responder MUST copy the segment count and all segments from \
     the Requester-provided Write chunk into the RPC Reply message's Transport header.";
const ROUNDUP: &str = "If the Requester chooses to include roundup padding in a Read chunk, the \
                       chunk's total length MUST be the sum of the encoded length of the data item \
                       and the length of the roundup padding.";

pub(super) fn content(seed: u8) -> Vec<u8> {
    (0..SIZE)
        .map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed)
        .collect()
}

pub(super) fn path(target: &Target<'_>) -> Result<String, Problem> {
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

pub(super) fn parsed(answer: &Answer) -> Result<Results, Problem> {
    Results::parse(answer.results()?)
        .or_else(|why| violation(format!("the COMPOUND's results are malformed: {why}")))
}

/// A READ returns `count` octets where the file has `wanted`. It may return less in front of the
/// end of the file (RFC 7530, section 16.23.4).
pub(super) fn read_whole(eof: bool, count: usize, wanted: usize) -> Result<(), Problem> {
    match count {
        _ if count == wanted => Ok(()),
        _ if count < wanted && !eof => {
            inconclusive(format!("READ returns {count} octets only, not {wanted}"))
        }
        _ => violation(format!("READ returns {count} octets, not {wanted}")),
    }
}

/// The inline data of a READ is this, or the beginning of it.
fn is_data(found: &Read, wanted: &[u8]) -> Result<(), Problem> {
    if !wanted.starts_with(&found.data) {
        return violation("the data is other data");
    }
    read_whole(found.eof, found.data.len(), wanted.len())
}

/// A WRITE has written `count` octets of `wanted`. It may write less (RFC 7530, section 16.36.4).
pub(super) fn written_whole(count: u32, wanted: usize) -> Result<(), Problem> {
    match count as usize {
        count if count == wanted => Ok(()),
        count if count < wanted => inconclusive(format!(
            "WRITE has written {count} octets only, not {wanted}"
        )),
        count => violation(format!("WRITE has written {count} octets, not {wanted}")),
    }
}

/// A WRITE has written all these octets.
fn has_written(results: &Results, wanted: usize) -> Result<(), Problem> {
    written_whole(succeeded(results, Results::written)?, wanted)
}

/// Connects, and fills the file by a Long Call.
pub(super) fn filled(target: &mut Target<'_>, seed: u8) -> Result<(Link, String), Problem> {
    let path = path(target)?;
    let mut link = target.plain()?;
    let results = link.nfs(|compound| compound.path(&path).write(0, &content(seed)))?;
    has_written(&results, SIZE)?;
    Ok((link, path))
}

/// READ by a Write chunk of these segments. A server need not take an empty one.
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
    let call = Compound::new(b"").path(&path).read(offset, count);
    let message = asked(&mut link, &header, &call)?;
    if shape.contains(&0) && link.is_declined(header.xid, &message) {
        return unimplemented("the server takes no empty segments");
    }
    let answer = link.decode(header.xid, &message)?;
    let results = parsed(&answer)?;
    let (eof, found, inline) = succeeded(&results, Results::reduced)?;
    if found as usize > wanted && found <= count {
        return skip("the scratch file is longer than 5000 octets");
    }
    if !inline.is_empty() {
        return violation(format!(
            "READ returns {found} octets, {} of them inline",
            inline.len()
        ));
    }
    read_whole(eof, found as usize, wanted)?;
    let [returned] = &answer.header.writes[..] else {
        return violation("the reply does not have one Write chunk");
    };
    same_segments(&chunk, returned)?;
    let mut left = wanted;
    for (offered, returned) in chunk.iter().zip(returned) {
        let expected = left.min(offered.length as usize);
        if returned.length as usize != expected {
            return violation(format!(
                "a segment comes back with {} octets, not with {expected}",
                returned.length
            ));
        }
        // Other octets may have been written (RFC 8166, section 4.3.2.2).
        let octets = link.gather(&[*offered])?;
        let mut padding = octets.iter().skip(expected).take(roundup(wanted) - wanted);
        if left == expected && padding.any(|&octet| octet != 0xee) {
            return violation("the padding of the data was written");
        }
        left -= expected;
    }
    let start = offset as usize;
    if link.gather(returned)? != content(1)[start..start + wanted] {
        return violation("the data is other data");
    }
    Ok(Passed)
}

/// READ by a Write chunk, behind so many GETFH that the rest of the reply needs the Reply chunk.
fn read_with_long_reply(target: &mut Target<'_>) -> Verdict {
    const LENGTH: usize = 3000;
    let (_, path) = filled(target, 13)?;
    let Service::Nfs4(handle) = target.server.service else {
        return target.server.lacks("no READ of NFS 4.0");
    };
    let mut link = target.small_replies(false)?;
    // A GETFH returns twelve octets and the file handle. 880 octets of such results, with those of
    // READ and the tag, make a reply longer than 1024 octets, by fewer than the 50 operations that
    // Linux 6.12 takes.
    let count = 880_usize.div_ceil(12 + handle);
    let compound = (0..count)
        .fold(Compound::new(&[b't'; TAG_MAX]).put_root(), |compound, _| {
            compound.get_handle()
        })
        .path(&path)
        .read(0, LENGTH as u32);
    let mut header = Header::msg(link.xid());
    let offered = vec![link.writable(LENGTH)?];
    let reply = vec![link.writable(2 * SIZE)?];
    header.writes = vec![offered.clone()];
    header.reply = Some(reply.clone());
    let answer = link.call(&header, &compound.call(header.xid))?;
    fits(answer.length, link.to_client)?;
    let (eof, found, inline) = succeeded(&parsed(&answer)?, Results::reduced)?;
    if !inline.is_empty() {
        return violation(format!("{} octets follow the count of READ", inline.len()));
    }
    read_whole(eof, found as usize, LENGTH)?;
    let ([returned], Some(long)) = (&answer.header.writes[..], &answer.header.reply) else {
        return violation("the reply does not have one Write chunk and the Reply chunk");
    };
    same_segments(&offered, returned)?;
    same_segments(&reply, long)?;
    if link.gather(returned)? != content(13)[..LENGTH] {
        return violation("the data is other data");
    }
    Ok(Passed)
}

/// Makes a call. Returns the answer, whatever it is.
fn asked(link: &mut Link, header: &Header, compound: &Compound) -> Result<Message, Problem> {
    link.ask(header, &compound.call(header.xid))?;
    link.receive_of(header.xid)
}

/// READ of 400 octets and of 600, with a Write chunk of 600 for each of them. The first one is
/// empty unless `full`. Returns no message if the server does not take so many chunks.
fn two_reads(
    link: &mut Link,
    path: &str,
    full: bool,
) -> Result<(Header, Option<Message>), Problem> {
    let mut header = Header::msg(link.xid());
    let first = if full {
        vec![link.writable(600)?]
    } else {
        Vec::new()
    };
    header.writes = vec![first, vec![link.writable(600)?]];
    let call = Compound::new(b"").path(path).read(0, 400).read(1000, 600);
    link.ask(&header, &call.call(header.xid))?;
    let message = link.receive_unless_refused(header.xid)?;
    Ok((header, message))
}

/// The first READ of two is inline, and the second one fills its Write chunk. A server of NFS need
/// take only one chunk; but if it takes two, it takes them with an empty one in front.
fn empty_chunk_in_front(target: &mut Target<'_>) -> Verdict {
    let (mut link, path) = filled(target, 10)?;
    let (header, message) = two_reads(&mut link, &path, false)?;
    let Some(message) = message else {
        // The server may have ended the connection.
        let mut link = target.plain()?;
        let (header, message) = two_reads(&mut link, &path, true)?;
        let Some(message) = message else {
            return unimplemented("the server takes only one Write chunk");
        };
        let answer = link.decode(header.xid, &message)?;
        succeeded(&parsed(&answer)?, |results| results.reads(&[false, false]))?;
        return violation("two Write chunks are taken if none of them is empty");
    };
    let answer = link.decode(header.xid, &message)?;
    let results = parsed(&answer)?;
    let found = succeeded(&results, |results| results.reads(&[true, false]))?;
    let [first, returned] = &answer.header.writes[..] else {
        return violation("the reply does not have two Write chunks");
    };
    if !first.is_empty() {
        return violation("the empty Write chunk does not come back empty");
    }
    let [inline, reduced] = &found[..] else {
        return violation(format!("{} of two READs have results", found.len()));
    };
    let data = content(10);
    let octets = link.gather(returned)?;
    if octets.len() != reduced.count as usize || !data[1000..1600].starts_with(&octets) {
        return violation("the data of the second READ is other data");
    }
    is_data(inline, &data[..400])?;
    read_whole(reduced.eof, octets.len(), 600)?;
    Ok(Passed)
}

/// Two READs fill two Write chunks, in order.
fn two_full_chunks(target: &mut Target<'_>) -> Verdict {
    let (mut link, path) = filled(target, 14)?;
    let (header, message) = two_reads(&mut link, &path, true)?;
    let Some(message) = message else {
        return unimplemented("the server takes only one Write chunk");
    };
    let answer = link.decode(header.xid, &message)?;
    let results = parsed(&answer)?;
    let found = succeeded(&results, |results| results.reads(&[false, false]))?;
    let returned = &answer.header.writes;
    if (returned.len(), found.len()) != (2, 2) {
        return violation("the reply does not have two Write chunks and the results of two READs");
    }
    for (offered, returned) in header.writes.iter().zip(returned) {
        same_segments(offered, returned)?;
    }
    let data = content(14);
    for (number, wanted) in [&data[..400], &data[1000..1600]].into_iter().enumerate() {
        let octets = link.gather(&returned[number])?;
        if octets.len() != found[number].count as usize || !wanted.starts_with(&octets) {
            return violation(format!(
                "Write chunk {number} does not have the data of its READ"
            ));
        }
        read_whole(found[number].eof, octets.len(), wanted.len())?;
    }
    Ok(Passed)
}

/// Two READs with one Write chunk of `length`: the second one is inline.
fn more_reads_than_chunks(target: &mut Target<'_>, length: usize) -> Verdict {
    let (mut link, path) = filled(target, 15)?;
    let mut header = Header::msg(link.xid());
    header.writes = vec![vec![link.writable(length)?]];
    let compound = Compound::new(b"")
        .path(&path)
        .read(0, length as u32)
        .read(1000, 300);
    let answer = link.call(&header, &compound.call(header.xid))?;
    let found = succeeded(&parsed(&answer)?, |results| results.reads(&[false, true]))?;
    let ([returned], [reduced, inline]) = (&answer.header.writes[..], &found[..]) else {
        return violation("the reply does not have one Write chunk and the results of two READs");
    };
    same_segments(&header.writes[0], returned)?;
    let data = content(15);
    let octets = link.gather(returned)?;
    if octets.len() != reduced.count as usize || !data[..length].starts_with(&octets) {
        return violation("the data of the first READ is other data");
    }
    read_whole(reduced.eof, octets.len(), length)?;
    is_data(inline, &data[1000..1300])?;
    Ok(Passed)
}

/// READ with one Write chunk, which has no segments.
fn read_with_empty_chunk(target: &mut Target<'_>) -> Verdict {
    let (mut link, path) = filled(target, 11)?;
    let mut header = Header::msg(link.xid());
    header.writes = vec![Vec::new()];
    let (answer, results) = link.nfs_with(&header, |compound| compound.path(&path).read(0, 400))?;
    is_data(&succeeded(&results, Results::inline)?, &content(11)[..400])?;
    match &answer.header.writes[..] {
        [chunk] if chunk.is_empty() => Ok(Passed),
        other => violation(format!("the Write list comes back as {other:?}")),
    }
}

/// A READ without a Write list, whose inline reply is as long as the threshold, or `more` octets
/// longer.
struct FullRead {
    link: Link,
    header: Header,
    rpc: Vec<u8>,
    data: Vec<u8>,
}

impl FullRead {
    /// The threshold is the smaller one of `receive` and the server's Send Size.
    fn new(target: &mut Target<'_>, receive: usize, more: usize) -> Result<Self, Problem> {
        const SHORT: usize = 4;
        let (_, path) = filled(target, 12)?;
        let mut link = target.connect(&Private::new(DEFAULT, receive, false).octets())?;
        let read = |count: usize| Compound::new(b"").path(&path).read(0, count as u32);
        let header = Header::msg(link.xid());
        let answer = link.call(&header, &read(SHORT).call(header.xid))?;
        let found = succeeded(&parsed(&answer)?, Results::inline)?.data;
        if found.len() != SHORT || answer.length > DEFAULT {
            return inconclusive(format!("READ of {SHORT} octets returns {}", found.len()));
        }
        let length = link.to_client + more + SHORT - answer.length;
        let header = Header::msg(link.xid());
        Ok(FullRead {
            rpc: read(length).call(header.xid),
            link,
            header,
            data: content(12)[..length].to_vec(),
        })
    }

    /// The reply has all data.
    fn has_data(&self, answer: &Answer) -> Verdict {
        is_data(&succeeded(&parsed(answer)?, Results::inline)?, &self.data)?;
        Ok(Passed)
    }
}

/// A reply as long as the threshold is inline.
fn full_read(target: &mut Target<'_>, receive: usize) -> Verdict {
    let mut read = FullRead::new(target, receive, 0)?;
    let answer = read.link.call(&read.header, &read.rpc)?;
    read.has_data(&answer)
}

/// A reply that is longer goes by the Reply chunk, with the padding of the data.
pub(super) fn longer_read(target: &mut Target<'_>, receive: usize, more: usize) -> Verdict {
    let mut read = FullRead::new(target, receive, more)?;
    read.header.reply = Some(vec![read.link.writable(2 * SIZE)?]);
    let answer = read.link.call(&read.header, &read.rpc)?;
    fits(answer.length, read.link.to_client)?;
    read.has_data(&answer)
}

/// Whether an error of a READ may be about the length of its reply. READ of a few octets has just
/// succeeded.
fn tells_of_length(status: u32) -> bool {
    status == nfs::RESOURCE || status != 0 && nfs::environment(status).is_none()
}

/// The lengths of Write chunks that are too short for a READ of `WANTED` octets.
const TOO_SHORT: [usize; 3] = [WANTED - 1, WANTED - 4, 1000];
pub(super) const WANTED: usize = 3000;

/// A connection on which the file has been filled, a READ of its first `WANTED` octets, and the XID.
type Begun = (Link, Vec<u8>, u32);
/// eof, the count, and what is inline behind it, of a READ that has succeeded.
type Reduced = (bool, u32, Vec<u8>);

/// READ with Write chunks that are too short. `found` returns none if the READ has failed.
pub(super) fn too_short_chunks(
    target: &mut Target<'_>,
    begin: fn(&mut Target<'_>, u8) -> Result<Begun, Problem>,
    found: fn(&Answer) -> Result<Option<Reduced>, Problem>,
) -> Verdict {
    for room in TOO_SHORT {
        let (mut link, rpc, xid) = begin(target, 16)?;
        let whole = link.writable(WANTED)?;
        let offered = Segment {
            length: room as u32,
            ..whole
        };
        let mut header = Header::msg(xid);
        header.writes = vec![vec![offered]];
        link.ask(&header, &rpc)?;
        let message = link.receive_or_end(xid)?;
        let octets = link.gather(&[whole])?;
        if octets[room..].iter().any(|&octet| octet != 0xee) {
            return violation(format!(
                "octets behind a Write chunk of {room} were written"
            ));
        }
        let answer = match &message {
            Some(message) => link.processed(xid, message)?,
            None => None,
        };
        if let Some(answer) = answer {
            if let Some((eof, count, inline)) = found(&answer)? {
                let returned = match &answer.header.writes[..] {
                    [chunk] => wire::room(chunk),
                    other => return violation(format!("the Write list comes back as {other:?}")),
                };
                if eof || count as usize != returned || returned > room || !inline.is_empty() {
                    return violation(format!(
                        "the file has {SIZE} octets, the Write chunk {room}: READ returns a count of \
                         {count}, {returned} octets in the chunk, {} inline, and eof {eof}",
                        inline.len()
                    ));
                }
                if octets[..returned] != content(16)[..returned] {
                    return violation("the data is other data");
                }
            }
        }
        let answered = message.is_some();
        target.goes_on(&mut link, answered, "a Write chunk that was too short")?;
    }
    Ok(Passed)
}

fn too_short(target: &mut Target<'_>) -> Verdict {
    let begin = |target: &mut Target<'_>, seed: u8| {
        let (mut link, path) = filled(target, seed)?;
        let xid = link.xid();
        let rpc = Compound::new(b"").path(&path).read(0, WANTED as u32);
        Ok((link, rpc.call(xid), xid))
    };
    too_short_chunks(target, begin, |answer| {
        let results = parsed(answer)?;
        if results.status == nfs::IO || tells_of_length(results.status) {
            return Ok(None);
        }
        succeeded(&results, Results::reduced).map(Some)
    })
}

/// A reply that is four octets longer cannot be sent without a Reply chunk. It may have less data.
fn longer_read_without_chunk(target: &mut Target<'_>) -> Verdict {
    let mut read = FullRead::new(target, DEFAULT, 4)?;
    let xid = read.header.xid;
    read.link.ask(&read.header, &read.rpc)?;
    let message = read.link.receive_or_end(xid)?;
    if let Some(message) = &message {
        fits(message.octets.len(), read.link.to_client)?;
        if let Some(answer) = read.link.processed(xid, message)? {
            let results = parsed(&answer)?;
            if !tells_of_length(results.status) {
                let found = succeeded(&results, Results::inline)?;
                if found.eof || !read.data.starts_with(&found.data) {
                    return violation("the data is other data, or the end of the file");
                }
            }
        }
    }
    let answered = message.is_some();
    target.goes_on(&mut read.link, answered, "a reply that was too long")
}

/// WRITE of `length` octets by a Read chunk of these segments; the last one has the rest, and
/// `padding` octets more.
fn write(target: &mut Target<'_>, length: usize, shape: &[usize], padding: usize) -> Verdict {
    write_with(target, length, shape, padding, false)
}

/// The same. The call is a Long Call if `long`: the rest of it is a Position Zero Read chunk.
fn write_with(
    target: &mut Target<'_>,
    length: usize,
    shape: &[usize],
    padding: usize,
    long: bool,
) -> Verdict {
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
    let message = if long {
        let segment = link.readable(&compound.call(header.xid))?;
        let position = 0;
        header.procedure = wire::NOMSG;
        header.reads.insert(0, ReadSegment { position, segment });
        link.send(&header.octets())?;
        link.receive_of(header.xid)?
    } else {
        asked(&mut link, &header, &compound)?
    };
    let answer = link.decode(header.xid, &message)?;
    has_written(&parsed(&answer)?, length)?;
    let mut expected = content(2);
    expected[8..8 + length].copy_from_slice(&data);
    same(&mut link, &path, &expected)
}

/// The file has just been given `SIZE` octets.
pub(super) fn long_enough(found: Option<Attributes>) -> Verdict {
    match found {
        Some(Attributes { size, .. }) if size < SIZE as u64 => {
            violation(format!("the file has {size} octets"))
        }
        Some(_) => Ok(Passed),
        None => inconclusive(LACKING),
    }
}

/// WRITE of 1001 octets by a Read chunk, and GETATTR inline behind it.
fn attributes_behind_chunk(target: &mut Target<'_>) -> Verdict {
    const LENGTH: usize = 1001;
    let (mut link, path) = filled(target, 17)?;
    let data = &content(71)[..LENGTH];
    let write = Compound::new(b"")
        .path(&path)
        .write_reduced(8, LENGTH as u32);
    // What follows the chunk does not move its Position.
    let compound = write.attributes();
    let mut header = Header::msg(link.xid());
    header.reads.push(ReadSegment {
        position: compound.position(),
        segment: link.readable(data)?,
    });
    let answer = link.call(&header, &compound.call(header.xid))?;
    let results = parsed(&answer)?;
    has_written(&results, LENGTH)?;
    let attributes = succeeded(&results, Results::attributes)?;
    let mut expected = content(17);
    expected[8..8 + LENGTH].copy_from_slice(data);
    same(&mut link, &path, &expected)?;
    long_enough(attributes)
}

/// WRITE of 3000 octets by a Read chunk whose Position is `ahead` octets from that of the data, or
/// which has fewer octets. Nothing is written.
fn mismatch(target: &mut Target<'_>, ahead: i32, length: usize) -> Verdict {
    const LENGTH: u32 = 3000;
    let (mut link, path) = filled(target, 18)?;
    let mut data = content(81)[..length].to_vec();
    // A server that inserts the data 4 octets too early takes these for the count: too large.
    data[..4].fill(0xff);
    let compound = Compound::new(b"").path(&path).write_reduced(8, LENGTH);
    let mut header = Header::msg(link.xid());
    header.reads.push(ReadSegment {
        position: compound.position().wrapping_add_signed(ahead),
        segment: link.readable(&data)?,
    });
    link.ask(&header, &compound.call(header.xid))?;
    if let Some(message) = link.receive_or_end(header.xid)? {
        if let Some(answer) = link.processed(header.xid, &message)? {
            let results = parsed(&answer)?;
            if results.status == 0 {
                return violation("the COMPOUND succeeds");
            }
        }
    }
    // The server may have ended the connection.
    same(&mut target.plain()?, &path, &content(18))
}

/// Lengths of segments, most of which end within pages. The last one has the rest.
const WITHIN_PAGES: [usize; 6] = [1, 4095, 5000, 65_537, 300_001, 123_458];

/// WRITE and READ of 1 MiB by chunks of such segments, or of what the server takes at most. The file
/// has its old length at the end.
fn large(target: &mut Target<'_>) -> Verdict {
    let (mut link, path) = filled(target, 19)?;
    let results = link.nfs(|compound| compound.path(&path).most())?;
    let Some(most) = succeeded(&results, Results::most)? else {
        return inconclusive("the server does not tell how much READ and WRITE take");
    };
    let length = most.min(1 << 20) as usize;
    let data: Vec<u8> = (0..length).map(|at| (at * 31 + at / 251) as u8).collect();
    let found = write_large(&mut link, &path, &data)
        .and_then(|written| read_large(&mut link, &path, &data[..written]));
    let shortened = target
        .plain()
        .and_then(|mut link| link.nfs(|compound| compound.path(&path).resize(SIZE as u64)))
        .and_then(|results| succeeded(&results, Results::succeeded))
        .or_else(|problem| {
            inconclusive(format!("SETATTR of the size fails: {}", problem.reason()))
        });
    found.and_then(|passed| shortened.map(|()| passed))
}

/// Cuts a length into segments.
fn segments(length: usize) -> Vec<usize> {
    let mut left = length;
    let mut parts = Vec::new();
    for part in WITHIN_PAGES.into_iter().chain([usize::MAX]) {
        let part = part.min(left);
        left -= part;
        parts.extend((part > 0).then_some(part));
    }
    parts
}

/// Returns how many octets were written.
fn write_large(link: &mut Link, path: &str, data: &[u8]) -> Result<usize, Problem> {
    let compound = Compound::new(b"")
        .path(path)
        .write_reduced(0, data.len() as u32);
    let mut header = Header::msg(link.xid());
    let mut rest = data;
    for part in segments(data.len()) {
        let (part, behind) = rest.split_at(part);
        rest = behind;
        header.reads.push(ReadSegment {
            position: compound.position(),
            segment: link.readable(part)?,
        });
    }
    let answer = link.call(&header, &compound.call(header.xid))?;
    let results = parsed(&answer)?;
    if results.status == nfs::FBIG {
        return inconclusive("the server does not let files be as long");
    }
    match succeeded(&results, Results::written)? as usize {
        count if (1..=data.len()).contains(&count) => Ok(count),
        count => violation(format!(
            "WRITE of {} octets has written {count}",
            data.len()
        )),
    }
}

fn read_large(link: &mut Link, path: &str, data: &[u8]) -> Verdict {
    let mut header = Header::msg(link.xid());
    let mut chunk = Vec::new();
    for part in segments(data.len()) {
        chunk.push(link.writable(part)?);
    }
    header.writes = vec![chunk.clone()];
    let compound = Compound::new(b"").path(path).read(0, data.len() as u32);
    let answer = link.call(&header, &compound.call(header.xid))?;
    let (_, count, inline) = succeeded(&parsed(&answer)?, Results::reduced)?;
    let [returned] = &answer.header.writes[..] else {
        return violation("the reply does not have one Write chunk");
    };
    same_segments(&chunk, returned)?;
    let octets = link.gather(returned)?;
    if octets.len() != count as usize || octets.is_empty() || !inline.is_empty() {
        return violation(format!(
            "READ returns a count of {count}, {} octets in the chunk, and {} inline",
            octets.len(),
            inline.len()
        ));
    }
    // A READ may return less.
    if !data.starts_with(&octets) {
        return violation("the data is other data");
    }
    Ok(Passed)
}

/// The file has this content, read inline in parts.
fn same(link: &mut Link, path: &str, expected: &[u8]) -> Verdict {
    for (number, part) in expected.chunks(500).enumerate() {
        let offset = number as u64 * 500;
        let results = link.nfs(|compound| compound.path(path).read(offset, part.len() as u32))?;
        let found = succeeded(&results, Results::inline)?;
        if !part.starts_with(&found.data) {
            return violation(format!("the file has other octets behind {offset}"));
        }
        read_whole(found.eof, found.data.len(), part.len())?;
    }
    Ok(Passed)
}

/// An inline WRITE of a call of exactly `length` octets, or as long as the smaller one of that and
/// the server's Receive Size.
///
/// A call that is longer than the server's Receives must not be sent (RFC 8166, section 3.3.2): it
/// ends the connection of any server, so no case has it. `rfc8166/3.3.2/2` tests whether that harms
/// other connections. By a Read chunk or as a Long Call, longer calls are in the sections 3.4.5 and
/// 3.5.3.
fn write_inline(target: &mut Target<'_>, length: usize) -> Verdict {
    let (_, path) = filled(target, 3)?;
    let mut link = target.connect(&Private::new(length.max(DEFAULT), DEFAULT, false).octets())?;
    let length = length.min(link.to_server);
    let xid = link.xid();
    let header = Header::msg(xid);
    let empty = Compound::new(b"").path(&path).write(16, &[]).call(xid);
    let room = length - header.with(&empty).len();
    let data = content(99)[..room].to_vec();
    let octets = header.with(&Compound::new(b"").path(&path).write(16, &data).call(xid));
    link.send(&octets)?;
    let message = link.receive_of(xid)?;
    let answer = link.decode(xid, &message)?;
    has_written(&parsed(&answer)?, room)?;
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
        [chunk] if chunk.len() <= 1 && wire::room(chunk) == 0 => Ok(Passed),
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
        sends "READ of 3000 octets where 1000 are left", accepts "length 1000",
        fault "reads-keep-length", needs [Export], |target| read(target, 4000, 3000, &[3000], 1000)),
    case!("rfc8166/3.4.6/8", "READ behind the end of the file returns an unused Write chunk", Must,
        LENGTHS,
        sends "READ of 3000 octets where none are left, a Write chunk of 3000",
        accepts "length 0",
        fault "reads-keep-length", needs [Export], |target| read(target, 5000, 3000, &[3000], 0)),
    case!("rfc8166/3.4.6/7", "a Write chunk that is too short for the data", Must, INADEQUATE,
        sends "READ of 3000 octets, Write chunks of 2999, 2996 and 1000",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR, an error of NFS, a READ of less or the end of \
                 this connection; nothing written behind the chunk; NULL succeeds",
        fault "cuts-reads", needs [Export], too_short),
    case!("rfc8166/3.4.6.2/1", "READ of 1001 octets writes no padding", Must, NO_PADDING,
        sends "READ of 1001 octets, a Write chunk of 1004", accepts "length 1001, nothing written behind it",
        fault "writes-padding", needs [Export], |target| read(target, 0, 1001, &[1004], 1001)),
    case!("rfc8166/3.4.6/5", "READ fills the segments around an empty one", Must, FILLED,
        sends "READ of 3000 octets, a Write chunk of 1000, 0 and 3000",
        accepts "lengths 1000, 0, 2000; a server need not take empty segments: ERR_CHUNK or \
                 GARBAGE_ARGS is no failure",
        fault "drops-empty-segments", needs [Export],
        |target| read(target, 0, 3000, &[1000, 0, 3000], 3000)),
    case!("rfc8166/3.4.6/6", "READ returns a segment that is not needed", Must, COPIES,
        sends "READ of 1500 octets, a Write chunk of 1000, 1000 and 2000",
        accepts "lengths 1000, 500, 0",
        fault "drops-unneeded-segments", needs [Export],
        |target| read(target, 0, 1500, &[1000, 1000, 2000], 1500)),
    case!("rfc8267/6.4.2/1", "READ fills sixteen segments", Must, SEGMENTS,
        sends "READ of 3000 octets, a Write chunk of sixteen segments of 190",
        accepts "the data in the chunk, filled in order",
        fault "takes-eight-segments", needs [Export],
        |target| read(target, 0, 3000, &[190; 16], 3000)),
    case!("rfc8267/6.4.2/2", "WRITE takes its data from sixteen segments", Must, SEGMENTS,
        sends "WRITE of 3000 octets by a Read chunk of sixteen segments",
        accepts "the file has them",
        fault "takes-eight-segments", needs [Export], |target| write(target, 3000, &[190; 15], 0)),
    case!("rfc8267/6.4.2/8", "WRITE as a Long Call, with its data in a Read chunk", Must, BOTH,
        sends "RDMA_NOMSG with a Position Zero Read chunk, and a Read chunk with 3000 octets for WRITE",
        accepts "the file has them",
        fault "one-read-chunk", needs [Export],
        |target| write_with(target, 3000, &[], 0, true)),
    case!("rfc8267/6.4.1/1", "two READs fill two Write chunks in order", Must,
        "The first chunk in the Write list MUST be used by the first READ operation in an NFS \
         version 4 COMPOUND procedure. The next Write chunk is used by the next READ operation, \
         and so on.",
        sends "READ of 400 and READ of 600 octets, two Write chunks of 600",
        accepts "the data of each READ in its chunk; a server of NFS need take only one chunk: an \
                 error or the end of this connection is no failure",
        fault "swaps-write-chunks", needs [Export, Destructive], two_full_chunks),
    case!("rfc8267/6.4.1/2", "a READ without a Write chunk behind one that has one is inline", Must,
        "If there are more READ operations than Write chunks, then remaining NFS READ operations \
         in an NFS version 4 COMPOUND that have no matching Write chunk MUST return their results \
         inline.",
        sends "READ of 400 and READ of 300 octets, a Write chunk of 400",
        accepts "the first data in the chunk, the second inline",
        fault "wants-more-chunks", needs [Export, Destructive],
        |target| more_reads_than_chunks(target, 400)),
    case!("rfc8166/3.4.4.4/1", "an inline READ behind one that needs padding", Must, ROUNDUP_REMOVED,
        sends "READ of 1001 and READ of 300 octets, a Write chunk of 1001",
        accepts "the first data in the chunk, the second inline",
        fault "leaves-padding", needs [Export, Destructive],
        |target| more_reads_than_chunks(target, 1001)),
    case!("rfc8166/4.3.2.2/5", "a READ that fails returns an unused Write chunk", Must, UNFILLED,
        sends "READ behind a LOOKUP that fails, a Write chunk",
        accepts "the chunk with length 0, or an empty one",
        fault "unused-keep-length", needs [Export], read_fails),
    case!("rfc8166/4.3.2.3/3", "READ without a Write list is inline", Must,
        "When there is only one DDP-eligible result item in an RPC Reply message, the Requester \
         provides an empty Write list.",
        sends "READ of 500 octets without chunks", accepts "the data inline",
        fault "no-inline-reads", needs [Export], read_inline),
    case!("rfc8166/4.3.2.3/5", "READ with an empty Write chunk is inline", Must,
        EMPTY,
        sends "READ of 400 octets, a Write chunk of no segments",
        accepts "the data inline, and a Write list 1 0 0",
        fault "fills-empty-chunks", needs [Export, Destructive], read_with_empty_chunk),
    case!("rfc8166/4.3.2.3/6", "an empty Write chunk in front of one with segments", Must,
        "The Responder MUST return the corresponding result data item inline and MUST return an \
         empty Write chunk in that Write list position in the RPC Reply message. … RFC 8267, \
         section 6.4.1: If an NFS version 4 client has provided a matching non-empty Write chunk, \
         then the corresponding READ operation MUST return its DDP-eligible data item using that \
         chunk.",
        sends "READ of 400 and READ of 600 octets, Write chunks of no segments and of 600 octets",
        accepts "the first data inline, the second in its chunk; a server of NFS need take only \
                 one chunk: an error or the end of this connection is no failure",
        fault "fills-empty-chunks", needs [Export, Destructive], empty_chunk_in_front),
    case!("rfc8166/3.4.5/5", "WRITE takes its data from a Read chunk", Must, INSERTS,
        sends "WRITE of 3000 octets by a Read chunk", accepts "the file has them",
        fault "loses-read-chunks", needs [Export], |target| write(target, 3000, &[], 0)),
    case!("rfc8166/3.4.5/6", "WRITE takes its data from segments of odd lengths", Must, INSERTS,
        sends "WRITE of 3000 octets in segments of 1, 998, 3 and 1998", accepts "the file has them",
        fault "first-segment-only", needs [Export], |target| write(target, 3000, &[1, 998, 3], 0)),
    case!("rfc8166/3.4.4.4/2", "an operation behind one that needs padding", Must, ROUNDUP_INSERTED,
        sends "WRITE of 1001 octets by a Read chunk of 1001, GETATTR inline behind it",
        accepts "the file has them, and the attributes come back",
        fault "inserts-no-padding", needs [Export], attributes_behind_chunk),
    case!("rfc8166/3.4.5/7", "a Position in front of the count of the data", Should, AT_POSITION,
        sends "WRITE of 3000 octets by a Read chunk whose Position is 4 too small",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR, an error of NFS or the end of this \
                 connection; nothing is written",
        fault "ignores-positions", needs [Export], |target| mismatch(target, -4, 3000)),
    case!("rfc8166/3.4.5/8", "a Position behind the end of the Payload stream", Should, AT_POSITION,
        sends "WRITE of 3000 octets by a Read chunk whose Position is 4 too large",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR, an error of NFS or the end of this \
                 connection; nothing is written",
        fault "ignores-positions", needs [Export, Destructive], |target| mismatch(target, 4, 3000)),
    case!("rfc8166/3.4.5/9", "a Read chunk four octets shorter than the data", Must, AT_POSITION,
        sends "WRITE of 3000 octets by a Read chunk of 2996",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR, an error of NFS or the end of this \
                 connection; nothing is written",
        fault "fills-short-chunks", needs [Export], |target| mismatch(target, 0, 2996)),
    case!("rfc8166/3.4.5/10", "a Read chunk that has a third of the data", Must, AT_POSITION,
        sends "WRITE of 3000 octets by a Read chunk of 1000",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR, an error of NFS or the end of this \
                 connection; nothing is written",
        fault "fills-short-chunks", needs [Export], |target| mismatch(target, 0, 1000)),
    case!("rfc8166/3.4.4/5", "WRITE and READ of 1 MiB in segments that end within pages", Must,
        BOUNDARIES,
        sends "WRITE of 1 MiB by a Read chunk and READ of it by a Write chunk, of seven segments",
        accepts "the same data, or its beginning",
        fault "takes-64-kib", needs [Export], large),
    case!("rfc8166/3.4.5.2/1", "WRITE of 1001 octets without padding in the chunk", Must,
        "If the sender chooses not to include roundup padding in the chunk, the chunk's total \
         length MUST be the same as the encoded length of the data item.",
        sends "WRITE of 1001 octets, a Read chunk of 1001", accepts "the file has them, and nothing else",
        fault "wants-padding", needs [Export], |target| write(target, 1001, &[], 0)),
    case!("rfc8166/3.4.5.2/2", "WRITE of 1001 octets with padding in the chunk", Must, ROUNDUP,
        sends "WRITE of 1001 octets, a Read chunk of 1004", accepts "the file has them, and nothing else",
        fault "takes-padding", needs [Export], |target| write(target, 1001, &[], 3)),
    case!("rfc8166/3.4.5.2/3", "WRITE with its padding in a segment of its own", Must, ROUNDUP,
        sends "WRITE of 1001 octets, segments of 1001 and 3", accepts "the file has them, and nothing else",
        fault "takes-padding", needs [Export], |target| write(target, 1001, &[1001], 3)),
    case!("rfc8166/3.5.1/1", "an inline WRITE in a call of 1024 octets", Must,
        RECEIVERS,
        sends "WRITE inline, 1024 octets in all", accepts "the file has them, and nothing else",
        fault "cuts-inline-writes", needs [Export], |target| write_inline(target, 1024)),
    case!("rfc8166/3.5.1/2", "an inline WRITE in a call of 1020 octets", Must,
        RECEIVERS,
        sends "WRITE inline, 1020 octets in all", accepts "the file has them, and nothing else",
        fault "cuts-inline-writes", needs [Export], |target| write_inline(target, 1020)),
    case!("rfc8166/3.5.1/3", "an inline WRITE as long as the threshold", Must,
        CONVEYED,
        sends "WRITE inline, as long as the server's Receive Size, at most 4096 octets in all",
        accepts "the file has them, and nothing else",
        fault "cuts-full-writes", needs [Export], |target| write_inline(target, 4096)),
    case!("rfc8166/3.5.1/4", "an inline READ in a reply of 1024 octets", Must, EXCHANGE,
        sends "Receive Size 1024, READ without chunks whose reply has 1024 octets",
        accepts "RDMA_MSG with the data",
        fault "refuses-full-reads", needs [Export], |target| full_read(target, DEFAULT)),
    case!("rfc8166/3.5.1/5", "an inline READ in a reply as long as the threshold", Must, CONVEYED,
        sends "Receive Size 4096, READ without chunks whose reply is as long as the threshold",
        accepts "RDMA_MSG with the data",
        fault "refuses-full-reads", needs [Export], |target| full_read(target, 4096)),
    case!("rfc8166/3.5.3/12", "a READ whose reply has 1028 octets goes by the Reply chunk", Must,
        TOO_LONG,
        sends "Receive Size 1024, READ whose reply has 1028 octets without the Reply chunk in its \
               header",
        accepts "RDMA_NOMSG with the data in the Reply chunk",
        fault "reads-ignore-threshold", needs [Export], |target| longer_read(target, DEFAULT, 4)),
    case!("rfc8166/3.5.3/14", "data that needs padding goes by the Reply chunk", Must, PADDED,
        sends "Receive Size 1024, READ of an odd length whose reply has 1032 octets without the \
               Reply chunk in its header",
        accepts "RDMA_NOMSG with the data and its padding in the Reply chunk",
        fault "unpadded", needs [Export], |target| longer_read(target, DEFAULT, 5)),
    case!("rfc8166/3.5.3/13", "READ by a Write chunk, and the rest of the reply by the Reply chunk",
        Must, REST,
        sends "Receive Size 1024, a tag of 128 octets, GETFH of 880 in all and READ of 3000, a Write \
               chunk of 3000 and a Reply chunk",
        accepts "RDMA_NOMSG, the data in the Write chunk, the rest in the Reply chunk",
        fault "reduces-no-long-replies", needs [Export], read_with_long_reply),
    case!("rfc8166/3.5.1/6", "a READ whose reply has 1028 octets, without a Reply chunk", Must,
        NO_LONGER,
        sends "Receive Size 1024, READ without chunks whose reply has 1028 octets",
        accepts "ERR_CHUNK, GARBAGE_ARGS, SYSTEM_ERR, an error of NFS, a READ of less or the end \
                 of this connection; NULL succeeds",
        fault "cuts-inline-reads", needs [Export], longer_read_without_chunk),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn is_inconclusive(found: Result<(), Problem>) -> bool {
        matches!(found, Err(Problem::Inconclusive(_)))
    }

    fn is_violation(found: Result<(), Problem>) -> bool {
        matches!(found, Err(Problem::Violation(_)))
    }

    #[test]
    fn less_than_wanted_is_no_violation() {
        assert_eq!(read_whole(false, 600, 600), Ok(()));
        assert_eq!(read_whole(true, 600, 600), Ok(()));
        assert!(is_inconclusive(read_whole(false, 599, 600)));
        assert!(is_violation(read_whole(true, 599, 600)));
        assert!(is_violation(read_whole(false, 601, 600)));
        assert_eq!(written_whole(600, 600), Ok(()));
        assert!(is_inconclusive(written_whole(599, 600)));
        assert!(is_violation(written_whole(601, 600)));
    }

    #[test]
    fn other_data_is_a_violation() {
        let found = |data: &[u8]| Read {
            eof: false,
            count: data.len() as u32,
            data: data.to_vec(),
        };
        assert_eq!(is_data(&found(b"abc"), b"abc"), Ok(()));
        assert!(is_inconclusive(is_data(&found(b"ab"), b"abc")));
        assert!(is_violation(is_data(&found(b"ad"), b"abc")));
    }

    #[test]
    fn only_some_errors_tell_of_the_length() {
        // NFS4_OK, NFS4ERR_ACCESS, NFS4ERR_DELAY, NFS4ERR_GRACE
        for status in [0, 13, 10_008, 10_013] {
            assert!(!tells_of_length(status), "{status}");
        }
        // NFS4ERR_RESOURCE, NFS4ERR_SERVERFAULT
        for status in [10_018, 10_006] {
            assert!(tells_of_length(status), "{status}");
        }
    }
}
