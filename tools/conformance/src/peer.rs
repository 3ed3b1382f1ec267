// SPDX-License-Identifier: GPL-2.0

//! The server under test: how it is called, and the checks that many cases share.

use std::net::IpAddr;
use std::net::SocketAddr;
use std::time::Duration;
use std::time::Instant;

use crate::case::inconclusive;
use crate::case::skip;
use crate::case::violation;
use crate::case::Passed;
use crate::case::Problem;
use crate::case::Verdict;
use crate::engine::Arrival;
use crate::engine::Connection;
use crate::engine::Failure;
use crate::engine::Memory;
use crate::engine::Message;
use crate::engine::Offer;
use crate::engine::REMOTE_READ;
use crate::engine::REMOTE_WRITE;
use crate::nfs;
use crate::trace::Trace;
use crate::wire;
use crate::wire::roundup;
use crate::wire::words;
use crate::wire::Header;
use crate::wire::Private;
use crate::wire::Procedure;
use crate::wire::ReadSegment;
use crate::wire::Segment;
use crate::wire::Status;
use crate::wire::Transport;
use crate::wire::Writer;

/// The smallest inline threshold, and the default (RFC 8166, section 3.3.3).
pub const DEFAULT: usize = 1024;

/// The services of the server besides NULL.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Service {
    /// NULL only.
    Null,
    /// A procedure that takes `opaque<>` and returns it.
    Echo(Procedure),
    /// NFS 4.0. The number is the length of the root's file handle with its padding.
    Nfs4(usize),
}

/// The server under test, and how it is tested.
#[derive(Clone, Debug)]
pub struct Server {
    pub address: SocketAddr,
    pub source: Option<IpAddr>,
    /// How long an answer may take.
    pub limit: Duration,
    /// How long nothing must arrive where the server has to be silent.
    pub quiet: Duration,
    /// Path of a scratch file, from the root of NFS 4.
    pub export: Option<String>,
    /// NULL of its program.
    pub null: Procedure,
    pub service: Service,
    /// Why the service is NULL only.
    pub lacks: Problem,
    /// The private data of its REP.
    pub private: Vec<u8>,
    pub iwarp: bool,
    pub device: String,
    /// The port of its rpcbind.
    pub rpcbind: u16,
}

/// The program of NFS (RFC 5662).
pub const NFS: Procedure = Procedure {
    program: 100_003,
    version: 4,
    number: 0,
};

/// The program of the suite's test server, and of the module rpcrdma_cm. Its procedure 1 takes
/// `opaque<>` and returns it.
pub const ECHO: Procedure = Procedure {
    program: 0x2000_8797,
    version: 1,
    number: 1,
};

impl Server {
    pub fn new(address: SocketAddr) -> Self {
        Server {
            address,
            source: None,
            limit: Duration::from_secs(10),
            quiet: Duration::from_millis(300),
            export: None,
            null: NFS,
            service: Service::Null,
            lacks: Problem::Skip("the server was asked for NULL only".into()),
            private: Vec::new(),
            iwarp: false,
            device: String::new(),
            rpcbind: 111,
        }
    }

    /// Connects, and finds out which program and procedures the server has. `wanted` is a program
    /// and its version.
    pub fn explore(&mut self, wanted: Option<Procedure>, trace: &Trace) -> Result<(), String> {
        let candidates = match wanted {
            Some(procedure) => vec![procedure],
            None => vec![NFS, Procedure { number: 0, ..ECHO }],
        };
        let mut why = Err("there is no program".into());
        for mut null in candidates {
            // A server may have another version of the program, which it names.
            for _ in 0..2 {
                let status = match self.try_null(null, trace) {
                    // A server may give no reply to a call of a program that it does not have.
                    Err(_) if why.is_ok() => break,
                    other => other?,
                };
                match status {
                    Status::Success(_) => {
                        self.null = null;
                        match self.explore_service(trace) {
                            Ok(service) => {
                                self.service = service;
                                return Ok(());
                            }
                            Err(problem) => self.lacks = problem,
                        }
                        why = Ok(null);
                        break;
                    }
                    Status::ProgMismatch(_, highest) if highest != null.version => {
                        null.version = highest;
                    }
                    other => {
                        why = why.or(Err(format!(
                            "NULL of program {} gets {other:?}",
                            null.program
                        )));
                        break;
                    }
                }
            }
        }
        self.null = why?;
        Ok(())
    }

    fn try_null(&mut self, null: Procedure, trace: &Trace) -> Result<Status, String> {
        let mut target = Target {
            server: self,
            trace: trace.clone(),
        };
        let mut link = target
            .plain()
            .map_err(|problem| problem.reason().to_string())?;
        let xid = link.xid();
        let status = link
            .call(&Header::msg(xid), &wire::call(xid, null, &[]))
            .map_err(|problem| problem.reason().to_string())?
            .status;
        let connection = &link.connection;
        let (private, iwarp) = (connection.private().to_vec(), connection.is_iwarp());
        let device = connection.device().to_string();
        self.private = private;
        self.iwarp = iwarp;
        self.device = device;
        Ok(status)
    }

    /// Finds out what the server has besides NULL. If it clearly has no NFS 4.0, the cases that
    /// need that do not apply. If anything else fails, nothing is known of them.
    fn explore_service(&self, trace: &Trace) -> Result<Service, Problem> {
        let Procedure {
            program, version, ..
        } = self.null;
        if program == ECHO.program {
            return Ok(Service::Echo(ECHO));
        }
        if self.null != NFS {
            return skip(format!(
                "of program {program}, version {version}, only NULL is known"
            ));
        }
        let mut target = Target {
            server: self,
            trace: trace.clone(),
        };
        let unknown = |why: String| {
            Problem::Inconclusive(format!("the file handle of NFS 4.0's root: {why}"))
        };
        let mut ask = || {
            let mut link = target.plain()?;
            let xid = link.xid();
            let rpc = nfs::Compound::new(b"").put_root().get_handle().call(xid);
            link.call(&Header::msg(xid), &rpc)
        };
        let answer = ask().map_err(|problem| unknown(problem.reason().into()))?;
        match answer.status {
            // The lengths of replies are computed for an empty verifier, whose length this is.
            Status::Success(_) if answer.inline.get(16..20) != Some(&[0; 4]) => {
                Err(unknown("the reply has a verifier that is not empty".into()))
            }
            Status::Success(results) => nfs::Results::parse(&results)
                .and_then(|mut results| match results.status {
                    nfs::MINOR_VERS_MISMATCH => {
                        Ok(Err(Problem::Skip("the server has no NFS 4.0".into())))
                    }
                    _ => Ok(Ok(Service::Nfs4(roundup(results.handle()?.len())))),
                })
                .map_err(unknown)?,
            Status::ProgUnavail | Status::ProgMismatch(..) | Status::ProcUnavail => {
                skip("the server has no NFS 4.0")
            }
            other => Err(unknown(format!("COMPOUND gets {other:?}"))),
        }
    }

    /// Returns why the server cannot do something besides NULL.
    pub fn lacks<T>(&self, what: &str) -> Result<T, Problem> {
        let told = |why: &str| format!("{what}: {why}");
        Err(match &self.lacks {
            Problem::Skip(why) => Problem::Skip(told(why)),
            other => Problem::Inconclusive(told(other.reason())),
        })
    }

    /// Returns what the server offers, or the defaults.
    pub fn offers(&self) -> Private {
        Private::find(&self.private)
            .map_or(Private::new(DEFAULT, DEFAULT, false), |(_, found)| found)
    }

    /// Returns the octets of the longest private data that a REQ can carry.
    pub fn request_room(&self) -> usize {
        if self.iwarp {
            251
        } else {
            56
        }
    }

    /// Returns an RPC call whose reply has `length` octets of results.
    pub fn call_for(&self, xid: u32, length: usize) -> Result<Vec<u8>, Problem> {
        match self.service {
            Service::Echo(procedure) => {
                let octets: Vec<u8> = (0..length - 4).map(|at| at as u8 ^ 0x5a).collect();
                Ok(wire::call(xid, procedure, &Writer::new().opaque(&octets).0))
            }
            Service::Nfs4(handle) => Ok(nfs::call_for(xid, length, handle)),
            Service::Null => self.lacks("no procedure whose reply can be made long"),
        }
    }

    /// Returns an RPC call of `length` octets that succeeds.
    pub fn call_of(&self, xid: u32, length: usize) -> Result<Vec<u8>, Problem> {
        match self.service {
            Service::Echo(procedure) => {
                let octets: Vec<u8> = (0..length - 44).map(|at| at as u8 ^ 0xa5).collect();
                Ok(wire::call(xid, procedure, &Writer::new().opaque(&octets).0))
            }
            Service::Nfs4(_) => Ok(nfs::call_of(xid, length)),
            Service::Null => self.lacks("no procedure whose call can be made long"),
        }
    }
}

/// The server, as a case sees it.
pub struct Target<'a> {
    pub server: &'a Server,
    pub trace: Trace,
}

impl Target<'_> {
    /// Connects with this private data.
    pub fn connect(&mut self, private: &[u8]) -> Result<Link, Problem> {
        self.connect_offer(&Offer {
            private: private.to_vec(),
            ..Offer::default()
        })
    }

    pub fn connect_offer(&mut self, offer: &Offer) -> Result<Link, Problem> {
        self.try_connect(offer).or_else(|failure| match failure {
            Failure::ConnectError | Failure::Unregistered(_) | Failure::Other(_) => {
                inconclusive(format!("this side cannot connect: {failure}"))
            }
            other => violation(format!(
                "the server does not accept the connection: {other}"
            )),
        })
    }

    pub fn try_connect(&mut self, offer: &Offer) -> Result<Link, Failure> {
        let mut offer = offer.clone();
        offer.source = self.server.source;
        let connect = || Connection::connect(self.server.address, &offer, &self.trace);
        // A second attempt tells whether the server has rejected the first one.
        let connection = connect().or_else(|failure| match failure {
            Failure::ConnectError => connect(),
            other => Err(other),
        })?;
        let offered =
            Private::find(&offer.private).map_or(Private::new(DEFAULT, DEFAULT, false), |(_, p)| p);
        let peer = Private::find(connection.private())
            .map_or(Private::new(DEFAULT, DEFAULT, false), |(_, p)| p);
        Ok(Link {
            server: self.server.clone(),
            to_server: offered.send_size().min(peer.receive_size()),
            to_client: offered.receive_size().min(peer.send_size()),
            offers_invalidation: offered.invalidation(),
            both_invalidate: offered.invalidation() && peer.invalidation(),
            version: 1,
            peer,
            connection,
            memories: Vec::new(),
            granted: 0,
            next_xid: first_xid(),
            skipped: Vec::new(),
            met_end: false,
        })
    }

    /// Connects with the smallest sizes, and without remote invalidation.
    pub fn plain(&mut self) -> Result<Link, Problem> {
        self.connect(&Private::new(DEFAULT, DEFAULT, false).octets())
    }

    /// Connects with the smallest Receive Size, so that replies must be small, and with a Send Size
    /// for long calls.
    pub fn small_replies(&mut self, invalidation: bool) -> Result<Link, Problem> {
        self.connect(&Private::new(262_144, DEFAULT, invalidation).octets())
    }

    /// Runs a check on a new connection with the smallest sizes.
    pub fn on_plain(&mut self, check: impl FnOnce(&mut Link) -> Verdict) -> Verdict {
        let mut link = self.plain()?;
        check(&mut link)
    }

    /// Runs a check on a new connection with the smallest sizes. The server may also end it, because
    /// of what the check sends, and go on with others.
    pub fn on_plain_or_end(
        &mut self,
        after: &str,
        check: impl FnOnce(&mut Link) -> Verdict,
    ) -> Verdict {
        let mut link = self.plain()?;
        match check(&mut link) {
            // A wrong answer is one, even if the connection ends behind it.
            Err(_) if link.skipped.is_empty() && link.met_end => {
                self.goes_on(&mut link, false, after)
            }
            verdict => verdict,
        }
    }

    /// NULL succeeds: on this connection if the server has answered on it, otherwise on another one.
    /// Behind its answer, too, the server may end the connection.
    pub fn goes_on(&mut self, link: &mut Link, answered: bool, after: &str) -> Verdict {
        if answered {
            link.answers_or_ends(after)?;
        }
        if !answered || link.met_end {
            self.plain()?.still_answers(after)?;
        }
        Ok(Passed)
    }

    /// The server must not answer these octets, and must go on.
    pub fn discards(&mut self, octets: impl FnOnce(u32, &[u8]) -> Vec<u8>) -> Verdict {
        self.on_plain(|link| {
            let xid = link.xid();
            let null = link.null_call(xid);
            let octets = octets(xid, &null);
            link.discards(&octets)
        })
    }

    /// The server must answer these octets with ERR_CHUNK, and must go on.
    pub fn refuses(&mut self, octets: impl FnOnce(u32, &[u8]) -> Vec<u8>) -> Verdict {
        self.on_plain(|link| {
            let xid = link.xid();
            let null = link.null_call(xid);
            let octets = octets(xid, &null);
            link.refuses(xid, &octets)
        })
    }
}

/// XIDs begin anywhere, so that no server takes a call for one of an earlier run.
fn first_xid() -> u32 {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    (now.as_micros() as u32).wrapping_mul(0x9e37_79b1) | 1
}

/// A reply.
#[derive(Clone, Debug)]
pub struct Answer {
    pub header: Header,
    /// The octets behind the header.
    pub inline: Vec<u8>,
    /// Length of the whole Send.
    pub length: usize,
    pub invalidated: Option<u32>,
    pub status: Status,
}

impl Answer {
    /// Returns the results of a call that must have succeeded.
    pub fn results(&self) -> Result<&[u8], Problem> {
        match &self.status {
            Status::Success(results) => Ok(results),
            other => violation(format!("the call gets {other:?}, not SUCCESS")),
        }
    }
}

/// A connection to the server under test.
pub struct Link {
    pub server: Server,
    pub connection: Connection,
    /// The client-to-server threshold.
    pub to_server: usize,
    /// The server-to-client threshold.
    pub to_client: usize,
    /// Whether this side has set R.
    pub offers_invalidation: bool,
    pub both_invalidate: bool,
    /// The version of the calls.
    pub version: u32,
    pub peer: Private,
    pub memories: Vec<Memory>,
    /// The credits of the last reply, or 0 before the first one.
    pub granted: u32,
    next_xid: u32,
    /// Messages that arrived while another one was waited for.
    skipped: Vec<Message>,
    /// Whether the end of the connection came in place of a message, or of silence.
    met_end: bool,
}

impl Link {
    pub fn xid(&mut self) -> u32 {
        self.next_xid = self.next_xid.wrapping_add(1);
        self.next_xid
    }

    /// Returns the header of a call without chunks.
    pub fn header(&self, xid: u32) -> Header {
        Header {
            version: self.version,
            ..Header::msg(xid)
        }
    }

    /// Returns the RPC call of NULL.
    pub fn null_call(&self, xid: u32) -> Vec<u8> {
        wire::call(xid, self.server.null, &[])
    }

    /// Sends a message. A server may end the connection because of it before the Send completes:
    /// then whoever waits for the answer finds the end.
    pub fn send(&mut self, octets: &[u8]) -> Result<(), Problem> {
        self.send_all(&[octets.to_vec()])
    }

    /// Sends messages like `send`, all at once.
    pub fn send_all(&mut self, messages: &[Vec<u8>]) -> Result<(), Problem> {
        self.connection.send_all(messages).or_else(|why| {
            let why = format!("a message could not be sent: {why}");
            match self.connection.wait_closed(self.server.quiet) {
                _ if self.connection.unregistered().is_some() => inconclusive(why),
                Some(_) => Ok(()),
                None => violation(why),
            }
        })
    }

    /// Waits for a message.
    pub fn receive(&mut self) -> Result<Message, Problem> {
        if !self.skipped.is_empty() {
            return Ok(self.skipped.remove(0));
        }
        match self.connection.receive(self.server.limit) {
            Arrival::Message(message) => Ok(message),
            Arrival::Closed(why) => self.end(&why),
            Arrival::Nothing => violation(format!(
                "no answer within {} s",
                self.server.limit.as_secs_f32()
            )),
        }
    }

    /// Waits for the message with this XID.
    pub fn receive_of(&mut self, xid: u32) -> Result<Message, Problem> {
        let of = |message: &Message| message.octets.get(..4) == Some(&xid.to_be_bytes());
        let until = Instant::now() + self.server.limit;
        if let Some(at) = self.skipped.iter().position(of) {
            return Ok(self.skipped.remove(at));
        }
        let mut others = Vec::new();
        let found = loop {
            match self.receive() {
                Ok(message) if of(&message) => break Ok(message),
                Ok(message) if Instant::now() < until => others.push(message),
                Ok(_) => break violation("no answer in time"),
                Err(problem) => break Err(problem),
            }
        };
        self.skipped.extend(others);
        match (found, self.skipped.first()) {
            (Err(_), Some(other)) => violation(format!(
                "no answer with XID {xid:08x}; another message arrived: {}",
                crate::trace::words(&other.octets, 64)
            )),
            (found, _) => found,
        }
    }

    /// Waits for the message with this XID. Returns none if no message arrives.
    pub fn receive_or_nothing(&mut self, xid: u32) -> Result<Option<Message>, Problem> {
        match self.receive_of(xid) {
            Ok(message) => Ok(Some(message)),
            Err(_) if self.skipped.is_empty() => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// Waits for the message with this XID. Returns none if the connection ends instead.
    pub fn receive_or_end(&mut self, xid: u32) -> Result<Option<Message>, Problem> {
        match self.receive_of(xid) {
            Ok(message) => Ok(Some(message)),
            Err(_) if self.skipped.is_empty() && self.connection.closed().is_some() => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// Waits for the message with this XID. Returns none if the server does not take a call with as
    /// many chunks: it answers with ERR_CHUNK, GARBAGE_ARGS or SYSTEM_ERR, or ends the connection.
    pub fn receive_unless_refused(&mut self, xid: u32) -> Result<Option<Message>, Problem> {
        let system = |answer: Answer| answer.status == Status::SystemErr;
        Ok(self.receive_or_end(xid)?.filter(|message| {
            !self.is_declined(xid, message) && !self.decode(xid, message).is_ok_and(system)
        }))
    }

    /// Returns the message with this XID if it arrives while a server would have to be silent.
    pub fn receive_if(&mut self, xid: u32) -> Result<Option<Message>, Problem> {
        let limit = std::mem::replace(&mut self.server.limit, self.server.quiet);
        let found = self.receive_of(xid);
        self.server.limit = limit;
        match found {
            Ok(message) => Ok(Some(message)),
            Err(_) if self.skipped.is_empty() && self.connection.closed().is_none() => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// Returns the next message if it arrives in that time.
    pub fn receive_within(&mut self, limit: Duration) -> Option<Message> {
        if !self.skipped.is_empty() {
            return Some(self.skipped.remove(0));
        }
        match self.connection.receive(limit) {
            Arrival::Message(message) => Some(message),
            _ => None,
        }
    }

    /// Nothing may arrive for some time.
    pub fn quiet(&mut self) -> Result<(), Problem> {
        if let Some(message) = self.skipped.first() {
            return violation(format!(
                "an unexpected message: {}",
                crate::trace::words(&message.octets, 64)
            ));
        }
        match self.connection.receive(self.server.quiet) {
            Arrival::Nothing => Ok(()),
            Arrival::Message(message) => violation(format!(
                "an unexpected message: {}",
                crate::trace::words(&message.octets, 64)
            )),
            Arrival::Closed(why) => self.end(&why),
        }
    }

    fn end<T>(&mut self, why: &str) -> Result<T, Problem> {
        self.met_end = true;
        violation(format!("the connection ended: {why}"))
    }

    /// Decodes a reply.
    pub fn decode(&mut self, xid: u32, message: &Message) -> Result<Answer, Problem> {
        let transport = Transport::parse(&message.octets)
            .or_else(|why| violation(format!("the reply has a malformed header: {why}")))?;
        let (header, inline) = match transport {
            Transport::Chunks(header, inline) => (header, inline),
            Transport::Error { error, range, .. } => {
                return violation(match (error, range) {
                    (wire::ERR_CHUNK, _) => format!("the server answers {}", self.refusal()),
                    (wire::ERR_VERS, Some((low, high))) => {
                        format!("the server answers ERR_VERS {low}..{high}")
                    }
                    (other, _) => format!("the server answers error {other}"),
                })
            }
        };
        if header.xid != xid {
            return violation(format!("the reply has XID {:08x}", header.xid));
        }
        if header.version != self.version {
            return violation(format!("the reply has version {}", header.version));
        }
        if header.version == 2 && header.direction != wire::REPLY {
            return violation(format!("the reply has direction {}", header.direction));
        }
        if !header.reads.is_empty() {
            return violation("the reply has a Read list");
        }
        if header.credits == 0 {
            return violation("the reply grants no credits");
        }
        self.granted = header.credits;
        let payload = if header.procedure == wire::NOMSG {
            if !inline.is_empty() {
                return violation("octets follow the header of an RDMA_NOMSG");
            }
            self.gather(header.reply.as_deref().unwrap_or_default())?
        } else {
            inline.clone()
        };
        let (payload_xid, status) = wire::parse_reply(&payload)
            .or_else(|why| violation(format!("the RPC reply is malformed: {why}")))?;
        if payload_xid != xid {
            return violation(format!(
                "the RPC reply has XID {payload_xid:08x}, the header {xid:08x}"
            ));
        }
        Ok(Answer {
            header,
            inline,
            length: message.octets.len(),
            invalidated: message.invalidated,
            status,
        })
    }

    /// Returns the octets of the segments of a chunk of this side.
    pub fn gather(&self, chunk: &[Segment]) -> Result<Vec<u8>, Problem> {
        let mut octets = Vec::new();
        for segment in chunk {
            let memory = self
                .memories
                .iter()
                .find(|memory| memory.key() == segment.handle);
            let Some(memory) = memory else {
                return violation(format!("handle {:#x} was not offered", segment.handle));
            };
            let content = memory.octets();
            let start = segment.offset.wrapping_sub(memory.offset()) as usize;
            match start
                .checked_add(segment.length as usize)
                .and_then(|end| content.get(start..end))
            {
                Some(part) => octets.extend(part),
                None => return violation("a returned segment exceeds the memory"),
            }
        }
        Ok(octets)
    }

    /// Sends a call and waits for the reply. A call that is too long goes by a Position Zero Read
    /// chunk.
    pub fn call(&mut self, header: &Header, rpc: &[u8]) -> Result<Answer, Problem> {
        self.ask(header, rpc)?;
        let message = self.receive_of(header.xid)?;
        self.decode(header.xid, &message)
    }

    /// Sends a call: as a Long Call if it is longer than the threshold.
    pub fn ask(&mut self, header: &Header, rpc: &[u8]) -> Result<(), Problem> {
        let octets = self.form(header, rpc)?;
        self.send(&octets)
    }

    /// Returns the octets to send for a call.
    pub fn form(&mut self, header: &Header, rpc: &[u8]) -> Result<Vec<u8>, Problem> {
        let octets = header.with(rpc);
        if octets.len() <= self.to_server {
            return Ok(octets);
        }
        let segment = self.readable(rpc)?;
        let mut header = header.clone();
        header.procedure = wire::NOMSG;
        let position = 0;
        header.reads.insert(0, ReadSegment { position, segment });
        Ok(header.octets())
    }

    /// Exposes these octets for RDMA Reads.
    pub fn readable(&mut self, octets: &[u8]) -> Result<Segment, Problem> {
        self.expose(octets, REMOTE_READ)
    }

    /// Exposes memory for RDMA Writes, filled with 0xee. Behind an empty segment, too, there is
    /// some memory.
    pub fn writable(&mut self, length: usize) -> Result<Segment, Problem> {
        let segment = self.expose(
            &vec![0xee; if length == 0 { 4 } else { length }],
            REMOTE_WRITE,
        )?;
        Ok(Segment {
            length: length as u32,
            ..segment
        })
    }

    fn expose(&mut self, octets: &[u8], access: u32) -> Result<Segment, Problem> {
        let memory = self
            .connection
            .expose(octets, access)
            .or_else(|why| inconclusive(format!("memory cannot be registered: {why}")))?;
        let segment = Segment {
            handle: memory.key(),
            length: octets.len() as u32,
            offset: memory.offset(),
        };
        self.memories.push(memory);
        Ok(segment)
    }

    /// NULL succeeds.
    pub fn null(&mut self) -> Result<Answer, Problem> {
        let xid = self.xid();
        let rpc = self.null_call(xid);
        let answer = self.call(&self.header(xid), &rpc)?;
        if !answer.results()?.is_empty() {
            return violation("NULL returns results");
        }
        Ok(answer)
    }

    /// NULL succeeds, where that follows something else.
    pub fn still_answers(&mut self, after: &str) -> Result<(), Problem> {
        match self.null() {
            Ok(_) => Ok(()),
            Err(problem) => violation(format!("after {after}, NULL fails: {}", problem.reason())),
        }
    }

    /// NULL succeeds, or the connection ends: an error may precede that (RFC 8267, section 6.7.2).
    pub fn answers_or_ends(&mut self, after: &str) -> Result<(), Problem> {
        match self.still_answers(after) {
            Err(_) if self.met_end && self.skipped.is_empty() => Ok(()),
            result => result,
        }
    }

    /// Sends a message that need not be answered, so that a call may follow. No more messages are
    /// under way than the server grants: it may have no more Receives, and one until its first
    /// reply (RFC 8166, sections 3.3.1 and 3.3.3).
    pub fn send_ahead(&mut self, octets: &[u8]) -> Result<(), Problem> {
        if self.granted == 0 {
            self.null()?;
        }
        self.send(octets)?;
        if self.granted < 2 {
            if let Arrival::Message(message) = self.connection.receive(self.server.quiet) {
                self.skipped.push(message);
            }
        }
        Ok(())
    }

    /// The server does not answer these octets, and answers a NULL behind them.
    pub fn discards(&mut self, octets: &[u8]) -> Verdict {
        self.send_ahead(octets)?;
        let xid = self.xid();
        let rpc = self.null_call(xid);
        self.send(&self.header(xid).with(&rpc))?;
        let message = self.receive()?;
        if message.octets.get(..4) != Some(&xid.to_be_bytes()) {
            return violation(format!(
                "the message is answered: {}",
                crate::trace::words(&message.octets, 64)
            ));
        }
        self.decode(xid, &message)?.results()?;
        self.quiet()?;
        Ok(Passed)
    }

    /// Returns the name of the error that answers malformed headers.
    fn refusal(&self) -> &'static str {
        match self.version {
            2 => "BAD_HEADER",
            _ => "ERR_CHUNK",
        }
    }

    /// The server answers these octets with ERR_CHUNK, and goes on or ends the connection.
    pub fn refuses(&mut self, xid: u32, octets: &[u8]) -> Verdict {
        self.send(octets)?;
        self.refused(xid)?;
        self.answers_or_ends(self.refusal())?;
        Ok(Passed)
    }

    /// The server answers these octets with ERR_CHUNK, or by a status of RPC that fits, and goes on.
    /// Behind ERR_CHUNK it may also end the connection.
    pub fn refuses_or(
        &mut self,
        xid: u32,
        octets: &[u8],
        fits: impl FnOnce(&Status) -> bool,
    ) -> Verdict {
        self.send(octets)?;
        let message = self.receive_of(xid)?;
        if self.is_refusal(&message).is_ok() {
            self.answers_or_ends("an error")?;
            return Ok(Passed);
        }
        let status = self.decode(xid, &message)?.status;
        if !fits(&status) {
            return violation(format!("the call gets {status:?}"));
        }
        self.still_answers("an error")?;
        Ok(Passed)
    }

    /// The server answers these octets with ERR_CHUNK or GARBAGE_ARGS, and goes on.
    pub fn refuses_or_garbage(&mut self, xid: u32, octets: &[u8]) -> Verdict {
        self.refuses_or(xid, octets, |status| *status == Status::GarbageArgs)
    }

    /// The server answers these octets with ERR_CHUNK or not at all, and goes on. Behind ERR_CHUNK
    /// it may also end the connection.
    pub fn refuses_or_discards(&mut self, xid: u32, octets: &[u8]) -> Verdict {
        self.discards_or(xid, octets, |link, message| link.is_refusal(message))
    }

    /// The server answers these octets with a message that fits, or not at all, and goes on. Behind
    /// RDMA_ERROR it may also end the connection.
    pub fn discards_or(
        &mut self,
        xid: u32,
        octets: &[u8],
        fits: impl FnOnce(&mut Link, &Message) -> Result<(), Problem>,
    ) -> Verdict {
        self.send_ahead(octets)?;
        let null = self.still_answers("a message that need not be answered");
        // The error may follow the reply to NULL.
        if self.skipped.is_empty() && !self.met_end {
            if let Arrival::Message(message) = self.connection.receive(self.server.quiet) {
                self.skipped.push(message);
            }
        }
        let mut refused = false;
        if !self.skipped.is_empty() {
            let message = self.receive_of(xid)?;
            fits(self, &message)?;
            refused = matches!(
                Transport::parse(&message.octets),
                Ok(Transport::Error { .. })
            );
        }
        match null.and_then(|()| self.quiet()) {
            Err(_) if refused && self.met_end && self.skipped.is_empty() => Ok(Passed),
            result => result.map(|()| Passed),
        }
    }

    /// Waits for ERR_CHUNK, or for BAD_HEADER in version 2.
    pub fn refused(&mut self, xid: u32) -> Result<Message, Problem> {
        self.error_of(xid, wire::ERR_CHUNK, self.refusal())
    }

    /// Waits for this error.
    pub fn error_of(&mut self, xid: u32, wanted: u32, name: &str) -> Result<Message, Problem> {
        let message = self.receive_of(xid)?;
        self.is_error(&message, wanted, name)?;
        Ok(message)
    }

    /// The message is ERR_CHUNK, or BAD_HEADER in version 2.
    pub fn is_refusal(&self, message: &Message) -> Result<(), Problem> {
        self.is_error(message, wire::ERR_CHUNK, self.refusal())
    }

    /// The message is ERR_CHUNK or GARBAGE_ARGS: the server has limits of chunks (RFC 8267, section
    /// 6.4.2).
    pub fn is_declined(&mut self, xid: u32, message: &Message) -> bool {
        let garbage = |answer: Answer| answer.status == Status::GarbageArgs;
        self.is_refusal(message).is_ok() || self.decode(xid, message).is_ok_and(garbage)
    }

    /// Returns the answer to a call, unless the server cannot process the call or return its results:
    /// ERR_CHUNK, GARBAGE_ARGS or SYSTEM_ERR.
    pub fn processed(&mut self, xid: u32, message: &Message) -> Result<Option<Answer>, Problem> {
        if self.is_refusal(message).is_ok() {
            return Ok(None);
        }
        let answer = self.decode(xid, message)?;
        let refused = matches!(answer.status, Status::GarbageArgs | Status::SystemErr);
        Ok((!refused).then_some(answer))
    }

    fn is_error(&self, message: &Message, wanted: u32, name: &str) -> Result<(), Problem> {
        match Transport::parse(&message.octets) {
            Ok(Transport::Error { version, error, .. })
                if version == self.version && error == wanted =>
            {
                Ok(())
            }
            Ok(Transport::Error { version, error, .. }) => violation(format!(
                "the server answers with version {version}, error {error}, not with {name}"
            )),
            Ok(Transport::Chunks(..)) => violation(format!(
                "the server answers with a reply, not with {name}: {}",
                crate::trace::words(&message.octets, 96)
            )),
            Err(why) => violation(format!("the answer is malformed: {why}")),
        }
    }

    /// The server answers a version with ERR_VERS, and goes on or ends the connection.
    pub fn refuses_version(&mut self, xid: u32, version: u32, octets: &[u8]) -> Verdict {
        self.send(octets)?;
        let message = self.receive_of(xid)?;
        match Transport::parse(&message.octets) {
            Ok(Transport::Error {
                version: found,
                error: wire::ERR_VERS,
                range: Some((low, high)),
                ..
            }) => {
                if found != version {
                    return violation(format!("the error has version {found}, not {version}"));
                }
                if low > 1 || high < 1 || low > high || (low..=high).contains(&version) {
                    return violation(format!("ERR_VERS names {low}..{high}"));
                }
            }
            Ok(other) => return violation(format!("the answer is no ERR_VERS: {other:?}")),
            Err(why) => return violation(format!("the answer is malformed: {why}")),
        }
        self.answers_or_ends("ERR_VERS")?;
        Ok(Passed)
    }

    /// A call of NFS 4.0.
    pub fn nfs(
        &mut self,
        operations: impl FnOnce(nfs::Compound) -> nfs::Compound,
    ) -> Result<nfs::Results, Problem> {
        let xid = self.xid();
        self.nfs_with(&Header::msg(xid), operations)
            .map(|(_, results)| results)
    }

    pub fn nfs_with(
        &mut self,
        header: &Header,
        operations: impl FnOnce(nfs::Compound) -> nfs::Compound,
    ) -> Result<(Answer, nfs::Results), Problem> {
        let rpc = operations(nfs::Compound::new(b"")).call(header.xid);
        let answer = self.call(header, &rpc)?;
        let results = nfs::Results::parse(answer.results()?)
            .or_else(|why| violation(format!("the COMPOUND's results are malformed: {why}")))?;
        Ok((answer, results))
    }
}

/// A Send of this length in octets is no longer than the threshold.
pub fn fits(length: usize, threshold: usize) -> Result<(), Problem> {
    if length > threshold {
        return violation(format!(
            "the reply is a Send of {length} octets, the threshold {threshold}"
        ));
    }
    Ok(())
}

/// Returns the four fixed words and what follows them.
pub fn fixed(xid: u32, version: u32, procedure: u32, rest: &[u32], payload: &[u8]) -> Vec<u8> {
    let mut octets = words(&[xid, version, 32, procedure]);
    octets.extend(words(rest));
    octets.extend(payload);
    octets
}
