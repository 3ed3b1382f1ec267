// SPDX-License-Identifier: GPL-2.0

//! Calls to be sent: inline, or as Long Messages in registered memory (RFC 8166, section 3.5).

use kernel::{
    bindings,
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    }, //
};

use super::{
    endpoint::{
        not_connected,
        too_long,
        Endpoint,
        Link, //
    },
    version::UsedVersion, //
};
use crate::{
    base::errno::errno,
    failure::Failure,
    pure::wire::{
        call_request::CallRequest,
        header::{
            chunks::{
                ChunkLists,
                List,
                ReadSegment,
                Segment, //
            },
            direction::Direction,
            Body,
            Header,
            Version, //
        }, //
    },
    rdma::{
        messages::{
            message_queue_pair::MessageQueuePair,
            send_buffer::SendBuffer,
            send_queue::PostedSend, //
        },
        registration::{
            remote_access::RemoteAccess,
            Registration, //
        }, //
    }, //
};

/// The longest first message, in octets: the default inline threshold of version 1 (RFC 8166,
/// section 3.3.3; draft-cel-nfsv4-rpcrdma-version-two-01, section 5).
const FIRST_MESSAGE: u32 = 1024;

/// The largest number of pages of a memory region, as in rdma_rw.
const REGION_PAGES: u32 = 256;

/// Room in octets for the head of a call that the module makes, which has 40 octets (RFC 5531,
/// section 9).
const OWN_CALL_HEAD_MAX: usize = 64;

/// Memory that is registered for the responder.
pub(super) type Chunk<'a> = Registration<'a, Endpoint>;

/// A call in one version, ready to be sent.
pub(super) struct OutgoingCall<'a> {
    request: &'a CallRequest,
    pub(super) xid: u32,
    credits: u32,
    version: Version,
    /// The largest length of the message, in octets.
    pub(super) limit: u32,
    /// The Read chunk of a Long Call; empty if the call is sent inline.
    pub(super) read_chunk: KVec<ReadSegment>,
    /// The Reply chunk; empty if none is offered.
    pub(super) reply_chunk: KVec<Segment>,
}

impl OutgoingCall<'_> {
    pub(super) fn version(&self) -> u32 {
        self.header().version()
    }

    pub(super) fn is_inline(&self) -> bool {
        self.read_chunk.is_empty()
    }

    fn header(&self) -> Header<'_> {
        let lists = ChunkLists {
            reads: List::new(&self.read_chunk),
            reply: (!self.reply_chunk.is_empty()).then_some(List::new(&self.reply_chunk)),
            ..ChunkLists::EMPTY
        };
        Header {
            xid: self.xid,
            credit: self.credits,
            body: if self.is_inline() {
                Body::Msg(self.version, lists)
            } else {
                Body::Nomsg(self.version, lists)
            },
        }
    }

    /// Writes the message.
    pub(super) fn build(&self, message: &mut SendBuffer<'_>) -> Result {
        message.append_with(|room| self.header().build(room).map_err(too_long))?;
        if !self.is_inline() {
            return Ok(());
        }
        let (request, xid) = (self.request, self.xid);
        message.append_with(|room| request.call(xid).build(room).map_err(too_long))?;
        request.fill(xid, 0, message.append(request.arguments())?);
        Ok(())
    }
}

/// A call that has been sent.
pub(super) struct SentCall<'a> {
    pub(super) call: OutgoingCall<'a>,
    /// Whether version 1 is tried if the responder does not speak the version of this call.
    pub(super) may_fall_back: bool,
    /// The time before the call was sent.
    pub(super) start: Instant<Monotonic>,
    pub(super) send: PostedSend,
    /// The time when the caller has seen that the transport had acknowledged the message. The
    /// timeout begins here.
    pub(super) acknowledged: Option<Instant<Monotonic>>,
}

/// A place for one of the calls under way, with its memory. Later calls use the memory again.
#[derive(Default)]
pub(super) struct Place<'a> {
    pub(super) call: Option<SentCall<'a>>,
    /// The memory of the call if it does not fit into a message.
    pub(super) call_chunk: Option<Chunk<'a>>,
    /// The memory for a Long Reply.
    pub(super) reply_chunk: Option<Chunk<'a>>,
}

/// Makes calls of one kind.
pub(super) struct Caller<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) link: &'a Link,
    pub(super) queue_pair: &'a MessageQueuePair<Endpoint>,
    pub(super) request: &'a CallRequest,
}

pub(super) fn call_failure(error: Error) -> Failure {
    if error == ENOMEM {
        return Failure::new(error, "no memory for a call");
    }
    if error == errno(bindings::EMSGSIZE) {
        return Failure::new(error, "the header is longer than the inline threshold");
    }
    if error == errno(bindings::ECONNRESET) {
        return Failure::new(error, "the connection was lost");
    }
    Failure::new(error, "the device cannot register the memory of a call")
}

impl<'a> Caller<'a> {
    /// Decides how to send a call in `version`, and registers the memory that it needs.
    pub(super) fn prepare(
        &self,
        place: &mut Place<'a>,
        version: u32,
        agreed: UsedVersion,
    ) -> Result<OutgoingCall<'a>, Failure> {
        let request = self.request;
        let configuration = &self.endpoint.configuration;
        let xid = self.endpoint.services.xids.next();
        let negotiated = self
            .endpoint
            .started(|inner| inner.negotiated(configuration.role, inner.version.known()))?;
        let negotiated = negotiated.ok_or(not_connected())?;
        let mut limit = negotiated.threshold(configuration.role);
        let threshold = negotiated.threshold(configuration.role.peer());
        if agreed.known().is_none() {
            limit = limit.min(FIRST_MESSAGE);
        }
        let mut call = OutgoingCall {
            request,
            xid,
            credits: configuration.requests(),
            version: match version {
                1 => Version::One,
                _ => Version::Two(Direction::Call),
            },
            limit,
            read_chunk: KVec::new(),
            reply_chunk: KVec::new(),
        };

        // A message that fits inline needs no chunk.
        let reply_len = request.longest_reply();
        if request.chunks || call.header().len() + reply_len > threshold as usize {
            let queue_pair = self.queue_pair;
            let chunk = make(
                queue_pair,
                &mut place.reply_chunk,
                RemoteAccess::Write,
                reply_len,
            )?;
            call.reply_chunk = register(chunk, xid, |segment| segment).map_err(call_failure)?;
        }

        let call_len = request.call(xid).len() + request.arguments();
        if call.header().len() + call_len > limit as usize {
            let queue_pair = self.queue_pair;
            let chunk = make(
                queue_pair,
                &mut place.call_chunk,
                RemoteAccess::Read,
                call_len,
            )?;
            write_call(chunk, request, xid).map_err(call_failure)?;
            let at_start = |target| ReadSegment {
                position: 0,
                target,
            };
            call.read_chunk = register(chunk, xid, at_start).map_err(call_failure)?;
        }
        Ok(call)
    }
}

/// Returns the memory of a chunk. Allocates it if there is none yet.
fn make<'a, 'b>(
    queue_pair: &'a MessageQueuePair<Endpoint>,
    chunk: &'b mut Option<Chunk<'a>>,
    access: RemoteAccess,
    len: usize,
) -> Result<&'b mut Chunk<'a>, Failure> {
    let made = match chunk.take() {
        Some(made) => made,
        None => Registration::new(queue_pair, access, len, REGION_PAGES).map_err(call_failure)?,
    };
    Ok(chunk.insert(made))
}

/// Registers the memory of call `xid`, and returns its segments as elements of a chunk.
fn register<T>(chunk: &mut Chunk<'_>, xid: u32, element: impl Fn(Segment) -> T) -> Result<KVec<T>> {
    chunk.register(xid)?;
    let mut elements = KVec::new();
    for piece in chunk.pieces() {
        let segment = Segment {
            handle: piece.rkey,
            length: piece.len,
            offset: piece.offset,
        };
        elements.push(element(segment), GFP_KERNEL)?;
    }
    Ok(elements)
}

/// Writes a whole call.
fn write_call(memory: &mut Chunk<'_>, request: &CallRequest, xid: u32) -> Result {
    let mut head = [0; OWN_CALL_HEAD_MAX];
    let len = request.call(xid).build(&mut head).map_err(too_long)?;
    memory.write(0, head.get(..len).unwrap_or_default())?;
    let mut at = 0;
    for piece in memory.pieces_mut(len, request.arguments())? {
        request.fill(xid, at, piece);
        at += piece.len();
    }
    Ok(())
}
