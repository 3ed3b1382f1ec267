// SPDX-License-Identifier: GPL-2.0

//! The responder's side: what calls are answered with (RFC 8166, sections 3 and 4).
//!
//! One message after the other is answered, in the version that it came in
//! (draft-cel-nfsv4-rpcrdma-version-two-01, section 5.3). Nothing is eligible for direct data
//! placement: what does not fit into a message goes as a Long Message (RFC 8166, section 3.5.3).

use kernel::{
    alloc::AllocError,
    bindings,
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    }, //
};

use super::{
    payload::Payload,
    Completions,
    Connection,
    Terms, //
};
use crate::{
    protocol::{
        header::{
            self,
            chunks::{
                ChunkLists,
                List,
                ReadList,
                Segment,
                WriteChunk, //
            },
            Body,
            Direction,
            Header,
            Version, //
        },
        negotiation::Role,
        program::{
            is_opaque,
            serve,
            ServedProcedure, //
        },
        rpc::{
            self,
            Reply,
            Status, //
        },
        xdr::NoRoom, //
    },
    rdma::{
        errno,
        memory::{
            Memory,
            BLOCK, //
        },
        queue_pair::QueuePair,
        send_buffer::SendBuffer,
        transfer::Transfer, //
    }, //
};

/// The longest call that is read from the requester's memory, in octets.
const CALL_MAX: u64 = (1 << 20) + 1024;

/// How many chunks a call may have, and how many segments a chunk.
const CHUNKS_MAX: usize = 64;

/// How long it may take to read or write all of a chunk, in milliseconds.
const TRANSFER_MS: i64 = 10_000;

/// Length in octets of the longest head of a call (RFC 5531, section 9).
const CALL_HEAD_MAX: usize = 24 + 2 * (8 + 400);

/// Length in octets of the longest head of a reply that the module makes.
const REPLY_HEAD_MAX: usize = 32;

/// Length in octets of the longest header that reports an error.
const ERROR_MAX: u32 = 28;

/// What a call is answered with.
struct Answer {
    reply: Reply,
    /// Where its results are in the call.
    at: usize,
    /// How many octets these have.
    len: usize,
}

impl Answer {
    /// Finds out what to answer to `call`; [`None`] where that is no call, but a reply.
    fn new(xid: u32, payload: &Payload<'_>) -> Option<Self> {
        let mut head = [0; CALL_HEAD_MAX];
        let head = head.get_mut(..payload.len().min(CALL_HEAD_MAX))?;
        payload.read(0, head);

        let (status, at) = match rpc::parse_call(head) {
            Ok((call, arguments)) => match serve(&call) {
                Ok(ServedProcedure::Null) => (Status::Success, None),
                Ok(ServedProcedure::Echo) => {
                    let at = head.len() - arguments.len();
                    let mut count = [0; 4];
                    payload.read(at, &mut count);
                    match is_opaque(u32::from_be_bytes(count), payload.len() - at) {
                        true => (Status::Success, Some(at)),
                        false => (Status::GarbageArgs, None),
                    }
                }
                Err(status) => (status, None),
            },
            Err(rpc::Error::Refused(reply)) => (reply.status, None),
            Err(rpc::Error::Truncated { .. }) => (Status::GarbageArgs, None),
            Err(rpc::Error::Value { .. }) => return None,
        };
        Some(Self {
            reply: Reply { xid, status },
            at: at.unwrap_or_default(),
            len: at.map_or(0, |at| payload.len() - at),
        })
    }
}

/// Why a call gets no reply.
enum Refusal {
    /// Its chunks do not do (RFC 8166, section 4.5.3).
    Chunk,
    /// The connection is lost, or there is no memory for a reply, and it has to be (RFC 8166,
    /// section 4.5.4).
    Lost,
}

impl From<AllocError> for Refusal {
    fn from(_: AllocError) -> Self {
        Self::Lost
    }
}

impl From<Error> for Refusal {
    fn from(_: Error) -> Self {
        Self::Lost
    }
}

impl Connection {
    /// Answers a message, if that is to be answered.
    pub(super) fn respond(&self, queue_pair: &QueuePair<Completions>, octets: &[u8]) {
        let Terms {
            versions, credits, ..
        } = self.terms;
        let (header, payload) = match header::parse(octets) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.inner.lock().traffic.bad_headers += 1;
                if let Some(answer) = error.answer(credits, versions) {
                    self.send_header(queue_pair, &answer);
                }
                return;
            }
        };
        if let Some(answer) = header.version_error(credits, versions) {
            self.inner.lock().traffic.bad_headers += 1;
            return self.send_header(queue_pair, &answer);
        }
        let answer = |body| Header {
            xid: header.xid,
            credit: credits,
            body,
        };
        let (version, result) = match header.body {
            // In the other direction; errors are for calls (RFC 8166, section 4.5).
            Body::Msg(Version::Two(Direction::Reply), _)
            | Body::Nomsg(Version::Two(Direction::Reply), _) => {
                self.inner.lock().traffic.unexpected_messages += 1;
                return;
            }
            Body::Msg(version, lists) if lists.reads.is_empty() => (
                version,
                self.answer(
                    queue_pair,
                    &header,
                    version,
                    &lists,
                    Payload::Inline(payload),
                ),
            ),
            Body::Msg(version, _) => (version, Err(Refusal::Chunk)),
            Body::Nomsg(version, lists) => (
                version,
                read_call(queue_pair, lists.reads).and_then(|memory| {
                    self.answer(
                        queue_pair,
                        &header,
                        version,
                        &lists,
                        Payload::Long(&memory, memory.len()),
                    )
                }),
            ),
            Body::Optional {
                direction: Direction::Call,
                ..
            } => return self.send_header(queue_pair, &answer(Body::ErrInvalidOption)),
            _ => {
                self.inner.lock().traffic.unexpected_messages += 1;
                return;
            }
        };
        match (result, version) {
            (Ok(()), _) => {}
            (Err(Refusal::Chunk), Version::One) => {
                self.send_header(queue_pair, &answer(Body::ErrChunk));
            }
            (Err(Refusal::Chunk), Version::Two(_)) => {
                self.send_header(queue_pair, &answer(Body::ErrBadHeader));
            }
            // The requester has to know that a reply is lost (RFC 8166, section 4.5.4).
            (Err(Refusal::Lost), _) => queue_pair.fail_because(c"a call could not be answered"),
        }
    }

    /// Answers a call.
    fn answer(
        &self,
        queue_pair: &QueuePair<Completions>,
        header: &Header<'_>,
        version: Version,
        lists: &ChunkLists<'_>,
        call: Payload<'_>,
    ) -> Result<(), Refusal> {
        let mut xid = [0; 4];
        call.read(0, &mut xid);
        if u32::from_be_bytes(xid) != header.xid {
            return Err(Refusal::Chunk);
        }
        let Some(answer) = Answer::new(header.xid, &call) else {
            // What came inline has been found out already (the draft, section 4.2.2).
            if matches!(version, Version::Two(_)) {
                return Err(Refusal::Chunk);
            }
            self.inner.lock().traffic.unexpected_messages += 1;
            return Ok(());
        };
        {
            let mut inner = self.inner.lock();
            match lists.is_empty() {
                true => inner.traffic.inline_calls += 1,
                false => inner.traffic.chunked_calls += 1,
            }
        }
        let reply_chunk = lists.reply;
        let version = match version {
            Version::One => Version::One,
            Version::Two(_) => Version::Two(Direction::Reply),
        };
        let (limit, may_invalidate) = self.begin_reply(header.version());
        // One that belongs to this call (RFC 8797, section 4.1).
        let read = lists.reads.iter().map(|read| read.target).next();
        let written = || {
            let mut chunks = lists.writes.iter().flat_map(List::iter);
            chunks.next().or_else(|| reply_chunk?.iter().next())
        };
        let stag = read
            .or_else(written)
            // An empty segment need not have one.
            .filter(|segment| may_invalidate && segment.length > 0)
            .map(|segment| segment.handle);

        // The chunks go back with the reply, which says how much of them is used (RFC 8166,
        // sections 4.3.2 and 4.3.3): of Write chunks nothing.
        let mut unused_writes = KVec::new();
        for chunk in lists.writes.iter().take(CHUNKS_MAX + 1) {
            unused_writes.push(collect(chunk.filled(0))?, GFP_KERNEL)?;
        }
        let unused_writes = collect(unused_writes.iter().map(|chunk| List::new(chunk)))?;
        let lists = |reply| ChunkLists {
            reads: List::EMPTY,
            writes: List::new(&unused_writes),
            reply,
        };
        let reply_header = |body| Header {
            xid: header.xid,
            credit: self.terms.credits,
            body,
        };

        let mut head = [0; REPLY_HEAD_MAX];
        let head_len = answer.reply.build(&mut head).map_err(|_| Refusal::Chunk)?;
        let head = head.get(..head_len).unwrap_or_default();
        let reply_len = head_len + answer.len;

        let unused = reply_chunk
            .map(|chunk| collect(chunk.filled(0)))
            .transpose()?;
        let unused = unused.as_ref().map(|segments| List::new(segments));
        let short = reply_header(Body::Msg(version, lists(unused)));
        if short.len() + reply_len <= limit as usize {
            return self.send_reply(queue_pair, header.version(), limit, stag, |message| {
                message.append_with(|room| short.build(room).map_err(too_long))?;
                message.append(head_len)?.copy_from_slice(head);
                call.read(answer.at, message.append(answer.len)?);
                Ok(())
            });
        }

        let fits = |chunk: &WriteChunk<'_>| chunk.length() >= reply_len as u64;
        let chunk = reply_chunk.filter(fits).ok_or(Refusal::Chunk)?;
        let mut memory = Memory::new();
        memory.grow(reply_len)?;
        memory.write(0, head);
        let mut at = answer.at;
        for piece in memory.pieces_mut(head_len, answer.len) {
            call.read(at, piece);
            at += piece.len();
        }
        let filled = collect(chunk.filled(reply_len as u64))?;
        let long = reply_header(Body::Nomsg(version, lists(Some(List::new(&filled)))));
        if long.len() > limit as usize {
            return Err(Refusal::Chunk);
        }
        let start: Instant<Monotonic> = Instant::now();
        let mut at = 0;
        for &segment in &filled {
            transfer(queue_pair, Transfer::Write, &mut memory, at, segment, start)?;
            at += segment.length as usize;
        }
        self.send_reply(queue_pair, header.version(), limit, stag, |message| {
            message.append_with(|room| long.build(room).map_err(too_long))
        })
    }

    /// Sends the reply to a call of this version, which is agreed upon by that (the draft, section
    /// 5.1).
    fn send_reply(
        &self,
        queue_pair: &QueuePair<Completions>,
        version: u32,
        limit: u32,
        stag: Option<u32>,
        build: impl FnOnce(&mut SendBuffer<'_>) -> Result,
    ) -> Result<(), Refusal> {
        self.send(queue_pair, limit, stag, build)?;
        self.inner.lock().exchange.version = Some(version);
        Ok(())
    }

    /// Returns the inline threshold for the reply to a call of this version, in octets, and whether
    /// it may invalidate remotely.
    fn begin_reply(&self, version: u32) -> (u32, bool) {
        let mut inner = self.inner.lock();
        // What is larger in version 2 holds only after the first reply.
        if version == 1 {
            inner.exchange.version = Some(1);
        }
        inner
            .exchange
            .negotiated(Role::Server)
            .map_or((0, false), |n| {
                (n.server_to_client_threshold, n.remote_invalidation)
            })
    }

    fn send(
        &self,
        queue_pair: &QueuePair<Completions>,
        limit: u32,
        stag: Option<u32>,
        build: impl FnOnce(&mut SendBuffer<'_>) -> Result,
    ) -> Result<(), Refusal> {
        queue_pair.send(limit, stag, build).or(Err(Refusal::Lost))?;
        let mut inner = self.inner.lock();
        inner.traffic.sends += 1;
        inner.traffic.sends_with_invalidate += u64::from(stag.is_some());
        Ok(())
    }

    pub(super) fn send_header(&self, queue_pair: &QueuePair<Completions>, header: &Header<'_>) {
        let result = self.send(queue_pair, ERROR_MAX, None, |message| {
            message.append_with(|room| header.build(room).map_err(too_long))
        });
        if result.is_err() {
            queue_pair.fail_because(c"an error could not be reported");
        }
    }
}

fn too_long(_: NoRoom) -> Error {
    errno(bindings::EMSGSIZE)
}

/// Collects chunks, or segments, of which no call needs more than [`CHUNKS_MAX`].
fn collect<T>(items: impl Iterator<Item = T>) -> Result<KVec<T>, Refusal> {
    let mut all = KVec::new();
    for item in items {
        if all.len() >= CHUNKS_MAX {
            return Err(Refusal::Chunk);
        }
        all.push(item, GFP_KERNEL)?;
    }
    Ok(all)
}

/// Reads a Long Call from the requester's memory (RFC 8166, section 3.5.3).
fn read_call(queue_pair: &QueuePair<Completions>, reads: ReadList<'_>) -> Result<Memory, Refusal> {
    let start: Instant<Monotonic> = Instant::now();
    let mut memory = Memory::new();
    for read in &collect(reads.iter())? {
        let segment = read.target;
        let at = memory.len();
        let total = (at as u64).saturating_add(segment.length.into());
        if read.position != 0 || total > CALL_MAX {
            return Err(Refusal::Chunk);
        }
        transfer(queue_pair, Transfer::Read, &mut memory, at, segment, start)?;
    }
    if memory.len() == 0 {
        return Err(Refusal::Chunk);
    }
    Ok(memory)
}

/// Transfers a segment from or to `memory` from `at` on, block by block. Memory that ends before
/// that grows: by no more than what is known to be there, and the next block.
///
/// Fails where the transfers of the chunk, which began at `start`, take too long.
fn transfer(
    queue_pair: &QueuePair<Completions>,
    transfer: Transfer,
    memory: &mut Memory,
    mut at: usize,
    mut segment: Segment,
    start: Instant<Monotonic>,
) -> Result<(), Refusal> {
    while segment.length > 0 {
        let octets = segment.length.min(BLOCK as u32);
        let len = octets as usize;
        memory.grow((at + len).saturating_sub(memory.len()))?;
        queue_pair
            .transfer(transfer, memory, at, len, segment.handle, segment.offset)
            .or(Err(Refusal::Lost))?;
        if start.elapsed().as_millis() > TRANSFER_MS {
            return Err(Refusal::Lost);
        }
        at += len;
        segment.length -= octets;
        segment.offset = segment.offset.wrapping_add(octets.into());
    }
    Ok(())
}
