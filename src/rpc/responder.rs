// SPDX-License-Identifier: GPL-2.0

//! The responder: answers calls (RFC 8166, sections 3 and 4).
//!
//! Calls with chunks are answered one after the other, and other calls in between, each in its own
//! version (draft-cel-nfsv4-rpcrdma-version-two-01, section 5.3). Nothing is eligible for direct
//! data placement: an RPC message that does not fit inline is transferred as a Long Message (RFC
//! 8166, section 3.5.3).

use kernel::{
    alloc::AllocError,
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    }, //
};

use super::{
    endpoint::{
        too_long,
        Channel,
        Endpoint,
        EndpointConfiguration, //
    },
    payload::Payload,
    version::UsedVersion, //
};
use crate::{
    base::errno::errno,
    pure::{
        text::snapshot::ReverseDirection,
        wire::{
            discarded::Fault,
            header::{
                chunks::{
                    ChunkLists,
                    List,
                    ReadList,
                    Segment,
                    WriteChunk,
                    WriteList, //
                },
                direction::Direction,
                error::HeaderError,
                Body,
                Header,
                Version,
                Versions, //
            },
            negotiation::Role,
            program::{
                is_opaque,
                serve,
                ServedProcedure, //
            },
            rpc_message::{
                self,
                Reply,
                RpcError,
                Status, //
            }, //
        }, //
    },
    rdma::{
        messages::{
            message_queue_pair::MessageQueuePair,
            send_buffer::SendBuffer,
            transfer::Transfer, //
        },
        verbs::memory::{
            Memory,
            BLOCK, //
        }, //
    }, //
};

/// The longest call that is read from the requester's memory, in octets.
const CALL_MAX: u64 = (1 << 20) + 1024;

/// The largest number of chunks of a call, and of segments of a chunk.
const CHUNKS_MAX: usize = 64;

/// The time limit for reading or writing a whole chunk, in milliseconds.
const TRANSFER_MS: i64 = 10_000;

/// Length in octets of the longest head of a reply that the module makes: PROG_MISMATCH (RFC 5531,
/// section 9).
const OWN_REPLY_HEAD_MAX: usize = 32;

/// The reply to a call, before the decision how to send it.
struct PreparedReply {
    reply: Reply,
    /// The offset of the results of ECHO in the call: ECHO returns its arguments.
    at: usize,
    /// The length of the results of ECHO in octets; 0 for other procedures.
    len: usize,
    /// Whether the call is BIND: the caller accepts calls from now on.
    binds: bool,
}

impl PreparedReply {
    /// Performs `call`, which may be BIND only with `may_bind`. Returns [`None`] if the message is
    /// no call.
    fn new(xid: u32, call: &Payload<'_>, may_bind: bool) -> Option<Self> {
        let mut head = [0; rpc_message::CALL_HEAD_MAX];
        let head = head.get_mut(..call.len().min(rpc_message::CALL_HEAD_MAX))?;
        call.read(0, head);

        let mut binds = false;
        let (status, at) = match rpc_message::parse_call(head) {
            Ok((parsed, arguments)) => match serve(&parsed) {
                Ok(ServedProcedure::Null) => (Status::Success, None),
                Ok(ServedProcedure::Bind) if may_bind => {
                    binds = true;
                    (Status::Success, None)
                }
                Ok(ServedProcedure::Bind) => (Status::ProcUnavail, None),
                Ok(ServedProcedure::Echo) => {
                    let at = head.len() - arguments.len();
                    let mut count = [0; 4];
                    call.read(at, &mut count);
                    if is_opaque(u32::from_be_bytes(count), call.len() - at) {
                        (Status::Success, Some(at))
                    } else {
                        (Status::GarbageArgs, None)
                    }
                }
                Err(status) => (status, None),
            },
            Err(RpcError::Refused(reply)) => (reply.status, None),
            Err(RpcError::Truncated) => (Status::GarbageArgs, None),
            Err(RpcError::Illegal) => return None,
        };
        Some(Self {
            reply: Reply { xid, status },
            at: at.unwrap_or_default(),
            len: at.map_or(0, |at| call.len() - at),
            binds,
        })
    }
}

/// Why a call gets no reply.
enum ReplyError {
    /// The call is an option, and none is known (the draft, section 3.1).
    Option,
    /// The call cannot be processed, and its requester gets ERR_CHUNK or, in version 2, BAD_HEADER:
    /// its chunks are missing, too small, too many or cannot be read (RFC 8166, section 4.5.3),
    /// they hold arguments that are not eligible (section 6.1), or they hold no call with the XID
    /// of the header.
    Chunk,
    /// The connection is lost, a transfer took too long, or there is no memory for a reply, so that
    /// the connection has to be ended (RFC 8166, section 4.5.4).
    Lost,
}

impl From<AllocError> for ReplyError {
    fn from(_: AllocError) -> Self {
        Self::Lost
    }
}

impl From<Error> for ReplyError {
    fn from(_: Error) -> Self {
        Self::Lost
    }
}

/// A call that has arrived.
struct IncomingCall<'a, 'c> {
    channel: &'a Channel<'c>,
    header: &'a Header<'a>,
    version: Version,
    lists: &'a ChunkLists<'a>,
    payload: Payload<'a>,
}

impl IncomingCall<'_, '_> {
    /// Whether parts of the arguments are in Read chunks (RFC 8166, section 3.4.5). The Position
    /// Zero Read chunk of a Long Call is the call itself.
    fn is_reduced(&self) -> bool {
        let is_long = matches!(self.payload, Payload::Long(..));
        let mut reads = self.lists.reads.iter();
        reads.any(|read| read.position != 0 || !is_long)
    }

    /// Returns the Steering Tag that the reply to this call invalidates (RFC 8797, section 4.1).
    fn stag(&self) -> Option<u32> {
        let lists = self.lists;
        let read = lists.reads.iter().map(|read| read.target).next();
        let written = || {
            let mut chunks = lists.writes.iter().flat_map(List::iter);
            chunks.next().or_else(|| lists.reply?.iter().next())
        };
        read.or_else(written)
            // An empty segment need not have a Steering Tag.
            .filter(|segment| segment.length > 0)
            .map(|segment| segment.handle)
    }
}

/// A reply that is ready to be sent, with the parameters of its message.
struct ReplyMessage<'a> {
    reply: &'a PreparedReply,
    head: &'a [u8],
    /// The largest length of the message, in octets.
    limit: u32,
    /// The Steering Tag that the message invalidates.
    stag: Option<u32>,
}

impl ReplyMessage<'_> {
    /// Returns the length of the reply, in octets.
    fn len(&self) -> usize {
        self.head.len() + self.reply.len
    }
}

impl Endpoint {
    /// Answers a call, or reports the error in it.
    pub(super) fn respond(
        &self,
        channel: &Channel<'_>,
        parsed: Result<(Header<'_>, &[u8]), HeaderError>,
    ) {
        let Some((header, payload)) = self.check_header(channel, parsed) else {
            return;
        };
        let result = match &header.body {
            Body::Msg(version, lists) => self.answer(&IncomingCall {
                channel,
                header: &header,
                version: *version,
                lists,
                payload: Payload::Inline(payload),
            }),
            Body::Nomsg(version, lists) => read_call(channel, lists.reads).and_then(|memory| {
                self.answer(&IncomingCall {
                    channel,
                    header: &header,
                    version: *version,
                    lists,
                    payload: Payload::Long(&memory, memory.len()),
                })
            }),
            Body::Optional { .. } => Err(ReplyError::Option),
            // These are replies, and are never handed to the responder.
            Body::ErrVers { .. } | Body::ErrChunk | Body::ErrBadHeader | Body::ErrInvalidOption => {
                return
            }
        };
        let body = match (result, header.version()) {
            (Ok(()), _) => return,
            (Err(ReplyError::Option), _) => Body::ErrInvalidOption,
            (Err(ReplyError::Chunk), 1) => Body::ErrChunk,
            (Err(ReplyError::Chunk), _) => Body::ErrBadHeader,
            // Losing the connection tells the requester that the reply is lost (RFC 8166, section
            // 4.5.4).
            (Err(ReplyError::Lost), _) => {
                return channel.fail_because(c"a call could not be answered");
            }
        };
        self.send_error(channel, &self.reply_header(&header, body));
    }

    /// Returns the parsed message if this end answers calls in its version. Reports any other
    /// message as an error, or discards it.
    fn check_header<'a>(
        &self,
        channel: &Channel<'_>,
        parsed: Result<(Header<'a>, &'a [u8]), HeaderError>,
    ) -> Option<(Header<'a>, &'a [u8])> {
        let EndpointConfiguration { answers, rpc, .. } = self.configuration;
        let (credits, versions) = (self.configuration.grants(), self.spoken());
        let answer = match parsed {
            // An end that does not accept calls discards them (RFC 8167, section 6).
            Ok((header, _)) if !answers => {
                self.inner.lock().traffic.unexpected_messages += 1;
                self.note_discarded(Some(header.xid), Fault::Call);
                return None;
            }
            Ok((header, payload)) => match header.version_error(credits, versions) {
                None => return Some((header, payload)),
                answer => answer,
            },
            Err(error) => {
                let answer = error.answer(credits, versions).filter(|_| answers);
                if answer.is_none() {
                    self.note_discarded(None, error.into());
                }
                answer
            }
        };
        self.inner.lock().traffic.bad_headers += 1;
        if let Some(mut answer) = answer {
            if let Body::ErrVers { low, high, .. } = &mut answer.body {
                // All versions that this end speaks (RFC 8166, section 4.5.1), not only the one
                // that is agreed upon.
                *low = rpc.versions.low;
                *high = rpc.versions.high;
            }
            self.send_error(channel, &answer);
        }
        None
    }

    /// Returns the versions in which this end answers. Calls of a server must have the version of
    /// the client's calls, once that is agreed upon (RFC 8167, section 5.1).
    fn spoken(&self) -> Versions {
        let EndpointConfiguration { role, rpc, .. } = self.configuration;
        match (role, self.inner.lock().version.known()) {
            (Role::Client, Some(version)) => Versions::only(version),
            _ => rpc.versions,
        }
    }

    /// Returns the header of the answer to a message with the header `to`.
    fn reply_header<'a>(&self, to: &Header<'_>, body: Body<'a>) -> Header<'a> {
        Header {
            xid: to.xid,
            credit: self.configuration.grants(),
            body,
        }
    }

    /// Answers a call.
    fn answer(&self, call: &IncomingCall<'_, '_>) -> Result<(), ReplyError> {
        let mut xid = [0; 4];
        call.payload.read(0, &mut xid);
        if u32::from_be_bytes(xid) != call.header.xid {
            return Err(ReplyError::Chunk);
        }
        let EndpointConfiguration { role, rpc, .. } = self.configuration;
        let may_bind = role == Role::Server && rpc.reverse > 0;
        let Some(reply) = PreparedReply::new(call.header.xid, &call.payload, may_bind) else {
            // A message in a Read chunk has the direction of a call, so it must be one (RFC 8167,
            // section 5.1; the draft, section 4.2.2). Its sender waits for an answer.
            if matches!(call.payload, Payload::Long(..)) {
                return Err(ReplyError::Chunk);
            }
            self.inner.lock().traffic.unexpected_messages += 1;
            return Ok(());
        };
        // Each program defines what is eligible. Nothing is eligible in the programs that are
        // served, and the eligibility of other programs does not matter (RFC 8166, section 6.1).
        let served = matches!(reply.reply.status, Status::Success | Status::GarbageArgs);
        if served && call.is_reduced() {
            return Err(ReplyError::Chunk);
        }
        {
            let mut inner = self.inner.lock();
            if call.lists.is_empty() {
                inner.answered.inline += 1
            } else {
                inner.answered.chunked += 1
            }
        }
        let (limit, may_invalidate) = self.begin_reply(call.header.version());
        let mut head = [0; OWN_REPLY_HEAD_MAX];
        let len = reply.reply.build(&mut head).or(Err(ReplyError::Chunk))?;
        let message = ReplyMessage {
            reply: &reply,
            head: head.get(..len).unwrap_or_default(),
            limit,
            stag: call.stag().filter(|_| may_invalidate),
        };

        // The reply returns the chunks, with lengths that tell how much of them is used (RFC 8166,
        // sections 4.3.2 and 4.3.3). Nothing is written to Write chunks.
        let mut unused_writes = KVec::new();
        for chunk in call.lists.writes.iter().take(CHUNKS_MAX + 1) {
            unused_writes.push(collect(chunk.filled(0))?, GFP_KERNEL)?;
        }
        let writes = collect(unused_writes.iter().map(|chunk| List::new(chunk)))?;
        let writes = List::new(&writes);
        if self.reply_inline(call, &message, writes)? {
            return Ok(());
        }
        self.reply_long(call, &message, writes)
    }

    /// Sends a reply inline, unless the message would be too long. Returns whether it was sent.
    fn reply_inline(
        &self,
        call: &IncomingCall<'_, '_>,
        message: &ReplyMessage<'_>,
        writes: WriteList<'_>,
    ) -> Result<bool, ReplyError> {
        let unused = call.lists.reply.map(|chunk| collect(chunk.filled(0)));
        let unused = unused.transpose()?;
        let lists = ChunkLists {
            reads: List::EMPTY,
            writes,
            reply: unused.as_ref().map(|segments| List::new(segments)),
        };
        let header = self.reply_header(call.header, Body::Msg(to_reply(call.version), lists));
        if header.len() + message.len() > message.limit as usize {
            return Ok(false);
        }
        self.send_reply(call, message, |buffer| {
            buffer.append_with(|room| header.build(room).map_err(too_long))?;
            buffer
                .append(message.head.len())?
                .copy_from_slice(message.head);
            let results = buffer.append(message.reply.len)?;
            call.payload.read(message.reply.at, results);
            Ok(())
        })?;
        Ok(true)
    }

    /// Writes a reply to the requester's Reply chunk, and sends RDMA_NOMSG for it (RFC 8166,
    /// section 3.5.3).
    fn reply_long(
        &self,
        call: &IncomingCall<'_, '_>,
        message: &ReplyMessage<'_>,
        writes: WriteList<'_>,
    ) -> Result<(), ReplyError> {
        let len = message.len();
        let fits = |chunk: &WriteChunk<'_>| chunk.length() >= len as u64;
        let chunk = call.lists.reply.filter(fits).ok_or(ReplyError::Chunk)?;
        let mut memory = Memory::new();
        memory.grow(len)?;
        memory.write(0, message.head);
        let mut at = message.reply.at;
        for piece in memory.pieces_mut(message.head.len(), message.reply.len) {
            call.payload.read(at, piece);
            at += piece.len();
        }

        let filled = collect(chunk.filled(len as u64))?;
        let lists = ChunkLists {
            reads: List::EMPTY,
            writes,
            reply: Some(List::new(&filled)),
        };
        let header = self.reply_header(call.header, Body::Nomsg(to_reply(call.version), lists));
        if header.len() > message.limit as usize {
            return Err(ReplyError::Chunk);
        }
        let start: Instant<Monotonic> = Instant::now();
        let (queue_pair, mut at) = (call.channel.queue_pair()?, 0);
        for &segment in &filled {
            transfer(queue_pair, Transfer::Write, &mut memory, at, segment, start)?;
            at += segment.length as usize;
        }
        self.send_reply(call, message, |buffer| {
            buffer.append_with(|room| header.build(room).map_err(too_long))
        })
    }

    /// Sends the reply to a call. A reply of a server settles the version of the client's calls
    /// (the draft, section 5.1).
    fn send_reply(
        &self,
        call: &IncomingCall<'_, '_>,
        message: &ReplyMessage<'_>,
        build: impl FnOnce(&mut SendBuffer<'_>) -> Result,
    ) -> Result<(), ReplyError> {
        // Before the Send is posted: the client's next call may be answered elsewhere before this
        // function returns, in a completion or by the work that answers postponed calls.
        if self.configuration.role == Role::Server {
            self.inner.lock().version = UsedVersion::Known(call.header.version());
        }
        self.send(call.channel, message.limit, message.stag, build)?;
        if message.reply.binds {
            self.inner.lock().traffic.reverse_direction = ReverseDirection::Yes;
        }
        Ok(())
    }

    /// Returns the inline threshold for the reply to a call of this version, in octets, and whether
    /// the reply may invalidate remotely. A call of version 1 to a server also settles version 1
    /// before its reply, so that the reply does not exceed the thresholds of version 1.
    fn begin_reply(&self, version: u32) -> (u32, bool) {
        let role = self.configuration.role;
        let mut inner = self.inner.lock();
        if version == 1 && role == Role::Server {
            inner.version = UsedVersion::Known(1);
        }
        let version = match role {
            // A server calls in the version that is agreed upon (RFC 8167, section 5.1). The client
            // may not have handled the reply yet that settled it.
            Role::Client => Some(version),
            // The larger thresholds of version 2 apply only after the first reply.
            Role::Server => inner.version.known(),
        };
        inner
            .negotiated(role, version)
            .map_or((0, false), |n| (n.threshold(role), n.remote_invalidation))
    }
}

/// Returns the version of the reply to a call of this version.
fn to_reply(version: Version) -> Version {
    match version {
        Version::One => Version::One,
        Version::Two(_) => Version::Two(Direction::Reply),
    }
}

/// Collects chunks or segments. Fails if there are more than [`CHUNKS_MAX`], or no memory.
fn collect<T>(items: impl Iterator<Item = T>) -> Result<KVec<T>, ReplyError> {
    let mut all = KVec::new();
    for item in items {
        if all.len() >= CHUNKS_MAX {
            return Err(ReplyError::Chunk);
        }
        all.push(item, GFP_KERNEL)?;
    }
    Ok(all)
}

/// Reads a Long Call from the requester's memory, without what other Read chunks hold (RFC 8166,
/// section 3.5.3).
fn read_call(channel: &Channel<'_>, reads: ReadList<'_>) -> Result<Memory, ReplyError> {
    let start: Instant<Monotonic> = Instant::now();
    let mut memory = Memory::new();
    let reads = collect(reads.iter())?;
    for read in reads.iter().filter(|read| read.position == 0) {
        let segment = read.target;
        let at = memory.len();
        let total = (at as u64).saturating_add(segment.length.into());
        if total > CALL_MAX {
            return Err(ReplyError::Chunk);
        }
        let queue_pair = channel.queue_pair()?;
        transfer(queue_pair, Transfer::Read, &mut memory, at, segment, start)?;
    }
    if memory.is_empty() {
        return Err(ReplyError::Chunk);
    }
    Ok(memory)
}

/// Transfers a segment from or to `memory` from offset `at` on, block by block. `memory` grows by
/// one block at a time when it is too short, so that a peer that announces long segments without
/// data costs little memory.
///
/// Fails with [`ReplyError::Chunk`] if the peer serves no RDMA Reads. Fails with
/// [`ReplyError::Lost`] if there is no memory, if the transfer fails, or if the transfers of the
/// chunk, which began at `start`, take too long.
fn transfer(
    queue_pair: &MessageQueuePair<Endpoint>,
    transfer: Transfer,
    memory: &mut Memory,
    mut at: usize,
    mut segment: Segment,
    start: Instant<Monotonic>,
) -> Result<(), ReplyError> {
    while segment.length > 0 {
        let octets = segment.length.min(BLOCK as u32);
        let len = octets as usize;
        memory.grow((at + len).saturating_sub(memory.len()))?;
        queue_pair
            .transfer(transfer, memory, at, len, segment.handle, segment.offset)
            .map_err(|error| {
                if error == errno(kernel::bindings::EOPNOTSUPP) {
                    ReplyError::Chunk
                } else {
                    ReplyError::Lost
                }
            })?;
        if start.elapsed().as_millis() > TRANSFER_MS {
            return Err(ReplyError::Lost);
        }
        at += len;
        segment.length -= octets;
        segment.offset = segment.offset.wrapping_add(octets.into());
    }
    Ok(())
}
