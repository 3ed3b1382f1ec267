// SPDX-License-Identifier: GPL-2.0

//! The suite's own test client: it speaks RPC-over-RDMA as the RFCs and the draft demand, and for
//! each requirement it has a switch with which it does not. Only tests use it.
//!
//! `--test` runs the cases for clients: `COMMAND ADDR:PORT FAULT` makes the client work with a
//! fault, and `COMMAND ADDR:PORT FAULT two` begins with version 2. Without a fault every case
//! passes, and each case fails with its own. The suite listens at PORT and the next four.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;

use rpcrdma_conformance::case::Case;
use rpcrdma_conformance::case::Need;
use rpcrdma_conformance::case::Outcome;
use rpcrdma_conformance::cases;
use rpcrdma_conformance::cli;
use rpcrdma_conformance::engine::Arrival;
use rpcrdma_conformance::engine::Connection;
use rpcrdma_conformance::engine::Memory;
use rpcrdma_conformance::engine::Message;
use rpcrdma_conformance::engine::Offer;
use rpcrdma_conformance::engine::REMOTE_READ;
use rpcrdma_conformance::engine::REMOTE_WRITE;
use rpcrdma_conformance::gateway::loaded;
use rpcrdma_conformance::gateway::Client;
use rpcrdma_conformance::gateway::BIND;
use rpcrdma_conformance::gateway::LOAD;
use rpcrdma_conformance::gateway::STORE;
use rpcrdma_conformance::gateway::WRONG_DATA;
use rpcrdma_conformance::peer::DEFAULT;
use rpcrdma_conformance::peer::ECHO;
use rpcrdma_conformance::run;
use rpcrdma_conformance::self_test::side_by_side;
use rpcrdma_conformance::self_test::Expected;
use rpcrdma_conformance::self_test::Results;
use rpcrdma_conformance::trace::Trace;
use rpcrdma_conformance::wire;
use rpcrdma_conformance::wire::words;
use rpcrdma_conformance::wire::Header;
use rpcrdma_conformance::wire::Private;
use rpcrdma_conformance::wire::Procedure;
use rpcrdma_conformance::wire::ReadSegment;
use rpcrdma_conformance::wire::Reader;
use rpcrdma_conformance::wire::Segment;
use rpcrdma_conformance::wire::Status;
use rpcrdma_conformance::wire::Transport;
use rpcrdma_conformance::wire::Writer;

/// The sizes that the client offers.
const SIZE: usize = 4096;
/// How many credits it requests.
const REQUEST: u32 = 8;
/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(5);
/// How many octets it loads.
const LOADED: usize = 602;
/// The length of the memory that has all replies, with a fault.
const POOL: usize = 1 << 17;
/// The program has data that is not what was called for, as if that were right.
const MISPLACED: &str = "wrong data";
/// It pauses behind an error to LOAD. That is no fault.
const PAUSES: &str = "pauses";
/// NULL of the program that it calls.
const NULL: Procedure = Procedure { number: 0, ..ECHO };

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["--test", address, command] => {
            cli::address(address).and_then(|address| self_test(address, command))
        }
        [address, fault] => work(address, fault, 1),
        [address, fault, "two"] => work(address, fault, 2),
        _ => Err("usage: faulty-client ADDR:PORT FAULT [two] | --test ADDR:PORT COMMAND".into()),
    };
    match result {
        Ok(good) => ExitCode::from(u8::from(!good)),
        Err(why) => {
            eprintln!("faulty-client: {why}");
            ExitCode::from(if why == MISPLACED { WRONG_DATA } else { 2 })
        }
    }
}

fn work(address: &str, fault: &str, version: u32) -> Result<bool, String> {
    let address = cli::address(address)?;
    let mut worker = Worker::new(address, fault.to_string(), version)?;
    worker.work().map(|()| true)
}

/// A call that has no reply yet.
struct Pending {
    procedure: Procedure,
    arguments: Vec<u8>,
    reply: Option<Segment>,
    /// The Write chunk.
    write: Option<Segment>,
    /// The Steering Tags of its memory.
    keys: Vec<u32>,
}

/// The client.
struct Worker {
    address: SocketAddr,
    fault: String,
    connection: Connection,
    to_server: usize,
    to_client: usize,
    /// The client's settings of the first connection.
    first: Option<(usize, usize)>,
    granted: Option<u32>,
    /// The version of the calls. The server has agreed to it with the first reply.
    version: u32,
    recoveries: u32,
    pending: BTreeMap<u32, Pending>,
    /// Calls that were lost with a connection. They are made again.
    lost: VecDeque<(u32, Pending)>,
    memories: Vec<Memory>,
    /// How many octets of the memory of all replies are in use.
    pool_used: u64,
    next_xid: u32,
    first_xid: u32,
    bound: bool,
    /// Calls of the server.
    called: u32,
    /// Calls that failed.
    failed: Option<String>,
    /// A call has had no reply.
    gave_up: bool,
}

impl Worker {
    fn new(address: SocketAddr, fault: String, version: u32) -> Result<Self, String> {
        if fault == "probes-first" {
            let mut probe = connect(address, &fault)?;
            let header = Header {
                version,
                ..Header::msg(7)
            };
            probe.send(&header.with(&wire::call(7, NULL, &[])))?;
            probe.receive(LIMIT);
        }
        let connection = connect(address, &fault)?;
        let mut worker = Worker {
            address,
            fault,
            connection,
            to_server: 0,
            to_client: 0,
            first: None,
            granted: None,
            version,
            recoveries: 0,
            pending: BTreeMap::new(),
            lost: VecDeque::new(),
            memories: Vec::new(),
            pool_used: 0,
            next_xid: std::process::id() << 12,
            first_xid: std::process::id() << 12,
            bound: false,
            called: 0,
            failed: None,
            gave_up: false,
        };
        worker.negotiate();
        Ok(worker)
    }

    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }

    /// Computes the thresholds (RFC 8797).
    fn negotiate(&mut self) {
        let server = self.offer(self.connection.private());
        let mut to_server = SIZE.min(server.receive_size());
        match self.fault.as_str() {
            "ignores-receive-size" => to_server = SIZE,
            "ignores-own-size" => to_server = server.receive_size(),
            _ => (),
        }
        let to_client = match self.fault.as_str() {
            "no-reply-chunk" => usize::MAX,
            _ => SIZE.min(server.send_size()),
        };
        let (to_server, to_client) = match self.first {
            Some(first) if self.has("settings-stay") => first,
            _ => (to_server, to_client),
        };
        self.first.get_or_insert((to_server, to_client));
        self.to_server = to_server;
        self.to_client = to_client;
        if !self.has("keeps-grant") {
            self.granted = None;
        }
    }

    /// Finds the server's message.
    fn offer(&self, private: &[u8]) -> Private {
        let none = if self.has("default-large") {
            Private::new(262_144, 262_144, true)
        } else {
            Private::new(DEFAULT, DEFAULT, false)
        };
        let identifier = private.windows(4).position(|octets| octets == wire::FORMAT);
        let large = Private::new(16384, 16384, true);
        match (Private::find(private), identifier) {
            (None, None) if self.has("any-identifier") && private.starts_with(&[0x18]) => large,
            (None, Some(_)) if self.has("any-message-version") => large,
            (None, Some(_)) if self.has("overruns") => large,
            (Some((offset, _)), _) if offset > 0 && self.has("offset-0-only") => none,
            (Some((offset, _)), Some(first))
                if offset != first && self.has("first-identifier-only") =>
            {
                none
            }
            (Some((offset, _)), _)
                if self.has("exact-length")
                    && private[offset + 8..].iter().any(|&octet| octet != 0) =>
            {
                none
            }
            (Some((_, found)), _) if found.flags & 0xfe != 0 && self.has("rejects-reserved") => {
                none
            }
            (Some((_, found)), _) => found,
            (None, _) => none,
        }
    }

    /// Works: short calls, long ones, and many at once.
    fn work(&mut self) -> Result<(), String> {
        let opaque = |length| Writer::new().opaque(&vec![0x5a; length]).0;
        if self.has("hasty") {
            self.all(&[(NULL, vec![]), (NULL, vec![])])?;
        }
        if self.has("long-first") {
            self.all(&[(ECHO, opaque(2000))])?;
        }
        self.all(&[(NULL, vec![])])?;
        if self.has("sends-done") {
            self.send(&words(&[7, 1, 32, wire::DONE, 0, 0, 0]))?;
        }
        self.all(&[(BIND, vec![])])?;
        self.bound = true;
        for length in [100, 2000, 8001] {
            self.all(&[(ECHO, opaque(length))])?;
        }
        self.all(&[(STORE, opaque(LOADED))])?;
        let many: Vec<_> = (0..12).map(|n| (ECHO, opaque(100 + n))).collect();
        self.all(&many)?;
        self.all(&[(ECHO, opaque(8000)), (ECHO, opaque(8000))])?;
        self.all(&[(LOAD, words(&[LOADED as u32]))])?;
        self.all(&[(NULL, vec![])])?;
        self.failed.take().map_or(Ok(()), Err)
    }

    fn window(&self) -> usize {
        let granted = match self.granted {
            None if self.has("hasty") => REQUEST,
            None => 1,
            Some(0) if self.has("stops-at-zero") => 0,
            Some(_) if self.has("ignores-grant") => REQUEST,
            Some(granted) if self.has("ignores-own-request") => granted,
            Some(granted) => granted.clamp(1, REQUEST),
        };
        granted as usize
    }

    /// Makes calls, as many at once as may be, and waits for all replies.
    fn all(&mut self, calls: &[(Procedure, Vec<u8>)]) -> Result<(), String> {
        let mut waiting = calls.iter();
        let mut next = waiting.next();
        let mut until = Instant::now() + LIMIT;
        loop {
            while self.pending.len() < self.window() {
                if let Some((xid, call)) = self.lost.pop_front() {
                    self.call(xid, call.procedure, call.arguments)?;
                    continue;
                }
                let Some((procedure, arguments)) = next else {
                    break;
                };
                if self.pending.is_empty() || !self.has("one-xid") {
                    self.next_xid = self.next_xid.wrapping_add(1);
                }
                self.call(self.next_xid, *procedure, arguments.clone())?;
                next = waiting.next();
            }
            if self.pending.is_empty() && self.lost.is_empty() && next.is_none() {
                return Ok(());
            }
            match self.connection.receive(Duration::from_millis(100)) {
                Arrival::Message(message) => {
                    until = Instant::now() + LIMIT;
                    self.message(&message)?;
                }
                Arrival::Closed(why) => self.recover(&why)?,
                Arrival::Nothing if Instant::now() > until => {
                    if std::mem::replace(&mut self.gave_up, true) {
                        return Err("no answer".into());
                    }
                    self.give_up();
                    until = Instant::now() + LIMIT;
                }
                Arrival::Nothing => (),
            }
        }
    }

    /// Gives up the calls under way.
    fn give_up(&mut self) {
        let calls = std::mem::take(&mut self.pending);
        let keys: Vec<u32> = calls.into_values().flat_map(|call| call.keys).collect();
        self.memories.retain(|memory| !keys.contains(&memory.key()));
        self.failed = Some("no answer".into());
    }

    fn send(&mut self, octets: &[u8]) -> Result<(), String> {
        let start = Instant::now();
        match self.connection.send(octets) {
            Ok(()) if self.has("impatient") && start.elapsed() > Duration::from_millis(300) => {
                Err("the server posts its Receives late".into())
            }
            Ok(()) => Ok(()),
            Err(_) => {
                // The event tells more.
                self.connection.wait_closed(Duration::from_secs(1));
                Ok(())
            }
        }
    }

    /// Connects again after a loss, and sends all calls again.
    fn recover(&mut self, why: &str) -> Result<(), String> {
        if self.has("gives-up") {
            return Err(format!("the connection ended: {why}"));
        }
        self.recoveries += 1;
        if self.recoveries > 4 {
            return Err("no connection lasts".into());
        }
        if self.version == 2 && self.granted.is_none() && !self.has("begins-with-2-again") {
            self.version = 1;
        }
        self.memories.clear();
        self.connection = connect(self.address, &self.fault)?;
        self.negotiate();
        let restart = self.has("xids-restart");
        if restart {
            self.next_xid = self.first_xid;
        }
        for (mut xid, call) in std::mem::take(&mut self.pending) {
            if restart {
                self.next_xid += 1;
                xid = self.next_xid;
            }
            self.lost.push_back((xid, call));
        }
        Ok(())
    }

    fn expose(&mut self, octets: &[u8], access: u32) -> Result<Segment, String> {
        if self.has("one-key") && access == REMOTE_WRITE {
            let is_pool = |memory: &&Memory| memory.octets().len() == POOL;
            if let Some(memory) = self.memories.iter().find(is_pool) {
                let offset = memory.offset() + self.pool_used;
                self.pool_used += octets.len() as u64;
                return Ok(Segment {
                    handle: memory.key(),
                    length: octets.len() as u32,
                    offset,
                });
            }
            let memory = self.connection.expose(&[0xee; POOL], access)?;
            self.memories.push(memory);
            self.pool_used = 0;
            return self.expose(octets, access);
        }
        let memory = self.connection.expose(octets, access)?;
        let segment = Segment {
            handle: memory.key(),
            length: octets.len() as u32,
            offset: memory.offset(),
        };
        self.memories.push(memory);
        let wrong = access != REMOTE_WRITE && self.has("wrong-handles");
        Ok(Segment {
            handle: segment.handle ^ (u32::from(wrong) << 14),
            ..segment
        })
    }

    /// Sends a call (RFC 8166, sections 3.5 and 4.3).
    fn call(&mut self, xid: u32, procedure: Procedure, arguments: Vec<u8>) -> Result<(), String> {
        let payload_xid = xid ^ u32::from(self.has("wrong-xid"));
        let rpc = wire::call(payload_xid, procedure, &arguments);
        let mut header = Header::msg(xid);
        header.credits = if self.has("requests-zero") {
            0
        } else {
            REQUEST
        };
        header.version = self.version;
        if self.has("wrong-version") {
            header.version = 2;
        }
        header.direction = u32::from(self.has("calls-are-replies"));
        let (to_server, to_client) = self.thresholds();
        let mut keys = Vec::new();
        // The results are as long as the arguments.
        let mut reply = None;
        // BIND shows that a Reply chunk need not be used.
        if 32 + 24 + arguments.len() > to_client || procedure == BIND {
            let head = if self.has("tiny-reply-chunks") {
                24
            } else {
                100
            };
            let segment = self.expose(&vec![0xee; head + arguments.len()], REMOTE_WRITE)?;
            header.reply = Some(vec![segment]);
            keys.push(segment.handle);
            reply = Some(segment);
        }
        let mut write = None;
        if procedure == LOAD {
            let room = if self.has("room-for-padding") {
                wire::roundup(LOADED)
            } else {
                LOADED
            };
            let segment = self.expose(&vec![0xee; room], REMOTE_WRITE)?;
            header.writes = vec![vec![segment]];
            match self.fault.as_str() {
                "two-write-chunks" => header.writes.push(vec![segment]),
                "many-segments" => header.writes[0] = in_pieces(segment, 17),
                _ => (),
            }
            keys.push(segment.handle);
            write = Some(segment);
        }
        let mut octets = header.with(&rpc);
        if let Some(data) = self.reduces(procedure, &arguments) {
            let segment = self.expose(&data, REMOTE_READ)?;
            keys.push(segment.handle);
            // Behind the length of the argument.
            let before = rpc.len() - arguments.len() + 4;
            let position = before as u32;
            header.reads.push(ReadSegment { position, segment });
            if self.has("two-read-chunks") {
                let pieces = in_pieces(segment, 2);
                header.reads[0].segment = pieces[0];
                header.reads.push(ReadSegment {
                    position: position + pieces[0].length,
                    segment: pieces[1],
                });
            }
            octets = header.with(&rpc[..before]);
        } else if octets.len() > to_server {
            header.procedure = wire::NOMSG;
            let mut access = REMOTE_READ;
            if self.has("writable-reads") {
                access |= REMOTE_WRITE;
            }
            let half = rpc.len() / 8 * 4;
            let padding = if self.has("cuts-padding") { 3 } else { 0 };
            for part in [&rpc[..half], &rpc[half..rpc.len() - padding]] {
                let segment = self.expose(part, access)?;
                keys.push(segment.handle);
                let position = 0;
                header.reads.push(ReadSegment { position, segment });
            }
            match self.fault.as_str() {
                "odd-positions" => header.reads[1].position = 2,
                "long-call-position" => header.procedure = wire::MSG,
                "two-positions" => header.reads[1].position = 4,
                _ => (),
            }
            octets = header.octets();
            if self.has("nomsg-with-payload") {
                octets.extend([0; 4]);
            }
        }
        let call = Pending {
            procedure,
            arguments,
            reply,
            write,
            keys,
        };
        self.pending.insert(xid, call);
        self.send(&octets)
    }

    /// Returns what goes by a Read chunk of its own: the argument of STORE. That of ECHO is not
    /// eligible.
    fn reduces(&self, procedure: Procedure, arguments: &[u8]) -> Option<Vec<u8>> {
        let mut data = Reader::new(arguments).opaque().ok()?.to_vec();
        match (procedure, self.fault.as_str()) {
            (STORE, "longer-chunks") => data.resize(data.len() + 8, 0),
            (STORE, "pads-chunks") => data.resize(wire::roundup(data.len()), 0),
            (STORE, _) | (ECHO, "reduces-arguments") => (),
            _ => return None,
        }
        Some(data)
    }

    /// Returns the thresholds of both directions. Those of version 2 are larger, once it is agreed
    /// upon (the draft, section 5.1).
    fn thresholds(&self) -> (usize, usize) {
        match (self.version, self.granted) {
            (2, _) if self.has("long-first") => (SIZE, SIZE),
            (2, None) => (DEFAULT, DEFAULT),
            (2, _) if self.has("no-limit") => (usize::MAX, SIZE),
            (2, _) => (self.to_server.max(SIZE), self.to_client.max(SIZE)),
            _ => (self.to_server, self.to_client),
        }
    }

    /// Handles what only version 2 has: options and directions.
    fn version_2(&mut self, octets: &[u8], xid: u32, procedure: u32) -> Option<Result<(), String>> {
        let direction = octets.get(16..20)?;
        let call = direction == [0; 4];
        if procedure == wire::OPTIONAL && call {
            if !self.bound || self.has("drops-options") {
                return Some(Ok(()));
            }
            let error = words(&[xid, 2, REQUEST, wire::ERROR, wire::INVALID_OPTION]);
            return Some(self.send(&error));
        }
        if procedure == wire::OPTIONAL {
            return Some(self.discard("trusts-options"));
        }
        let malformed =
            Transport::parse(octets).is_err() || octets.get(36..40) == Some(&words(&[wire::REPLY]));
        if procedure == wire::ERROR || !call || !malformed {
            return None;
        }
        if self.has("trusts-malformed") {
            return Some(Err("a message that cannot be understood".into()));
        }
        if !self.bound || self.has("drops-malformed") {
            return Some(Ok(()));
        }
        Some(self.send(&words(&[xid, 2, REQUEST, wire::ERROR, wire::ERR_CHUNK])))
    }

    /// Handles a message of the server.
    fn message(&mut self, message: &Message) -> Result<(), String> {
        let octets = &message.octets;
        let word = |at: usize| {
            octets
                .get(4 * at..4 * at + 4)
                .and_then(|word| word.try_into().ok())
                .map_or(0, u32::from_be_bytes)
        };
        let (xid, version, procedure) = (word(0), word(1), word(3));
        if octets.len() < 28 && procedure != wire::ERROR || octets.len() < 20 {
            return self.discard("trusts-short");
        }
        let fallback = procedure == wire::ERROR && self.version == 2 && self.granted.is_none();
        if version != self.version && !(version == 1 && fallback) {
            let chunks = octets.get(16..28) == Some(&[0; 12]);
            if chunks && word(7) == xid && word(8) == wire::CALL && !self.has("drops-versions") {
                let range = [
                    xid,
                    version,
                    32,
                    wire::ERROR,
                    wire::ERR_VERS,
                    1,
                    self.version,
                ];
                let range = words(&range);
                return self.send(&range);
            }
            return self.discard("trusts-versions");
        }
        if version == 2 {
            if let Some(result) = self.version_2(octets, xid, procedure) {
                return result;
            }
        }
        let (header, inline) = match Transport::parse(octets) {
            Ok(Transport::Chunks(header, inline)) => (header, inline),
            Ok(Transport::Error { error, .. }) => return self.error(xid, error),
            Err(_) if procedure == wire::ERROR => return self.discard("trusts-errors"),
            Err(_) => return self.discard("trusts-malformed"),
        };
        let mut reader = Reader::new(&inline);
        let (payload_xid, kind) = (reader.word().ok(), reader.word().ok());
        // A Long Call of the server.
        let long = header.procedure == wire::NOMSG
            && !header.reads.is_empty()
            && !self.pending.contains_key(&xid);
        if long || (kind == Some(wire::CALL) && payload_xid == Some(xid)) {
            return self.answer(&header, &inline, message);
        }
        self.reply(&header, &inline, message.invalidated)
    }

    /// A message that has to be discarded. With the fault it ends the work.
    fn discard(&mut self, fault: &str) -> Result<(), String> {
        if self.has(fault) {
            return Err("a message that cannot be understood".into());
        }
        Ok(())
    }

    fn error(&mut self, xid: u32, error: u32) -> Result<(), String> {
        if self.has("ignores-errors") {
            return Ok(());
        }
        if ![wire::ERR_CHUNK, wire::ERR_VERS].contains(&error) {
            return self.discard("trusts-errors");
        }
        let Some(call) = self.pending.remove(&xid) else {
            return self.discard("trusts-xids");
        };
        if error == wire::ERR_VERS
            && self.version == 2
            && self.granted.is_none()
            && !self.has("version-2-only")
        {
            self.version = 1;
            return self.call(xid, call.procedure, call.arguments);
        }
        if self.has("retries-errors") {
            return self.call(xid, call.procedure, call.arguments);
        }
        if self.has(PAUSES) && call.procedure == LOAD {
            std::thread::sleep(Duration::from_secs(3));
        }
        self.failed = Some(format!("RDMA_ERROR {error}"));
        Ok(())
    }

    /// Handles a reply.
    fn reply(
        &mut self,
        header: &Header,
        inline: &[u8],
        invalidated: Option<u32>,
    ) -> Result<(), String> {
        let xid = header.xid;
        if !header.reads.is_empty() {
            return self.discard("trusts-read-lists");
        }
        let Some(call) = self.pending.get(&xid) else {
            if self.has("takes-late-grants") {
                self.granted = Some(header.credits);
            }
            if self.has("answers-replies") {
                return self.send(&words(&[xid, 1, REQUEST, wire::ERROR, wire::ERR_CHUNK]));
            }
            return self.discard("trusts-xids");
        };
        let (offered, write) = (call.reply, call.write);
        if let Some(fault) = mismatch(call, header) {
            return self.discard(fault);
        }
        let rpc = if header.procedure == wire::NOMSG {
            let (Some(offered), Some([returned])) = (offered, header.reply.as_deref()) else {
                return self.discard("trusts-empty-nomsg");
            };
            if self.has("ignores-nomsg") && (offered.length as usize) < SIZE {
                return Err("a long reply that could be short".into());
            }
            self.written(offered, returned.length)?
        } else {
            if self.has("needs-reply-chunk") && offered.is_some() && header.reply.is_none() {
                return Err("the Reply chunk is missing".into());
            }
            inline.to_vec()
        };
        let data = match (write, header.writes.first().map(Vec::as_slice)) {
            (Some(offered), Some([returned])) => self.written(offered, returned.length)?,
            _ => Vec::new(),
        };
        let Ok((payload_xid, status)) = wire::parse_reply(&rpc) else {
            return self.discard("trusts-malformed");
        };
        if payload_xid != xid && self.has("refuses-two-xids") {
            self.pending.remove(&xid);
            self.failed = Some("a reply with two XIDs".into());
            return Ok(());
        }
        if payload_xid != xid && self.has("ends-at-two-xids") {
            self.connection.disconnect();
            return Ok(());
        }
        if payload_xid != xid && !self.has("wrong-xid") {
            return self.discard("trusts-xids");
        }
        let Some(call) = self.pending.remove(&xid) else {
            return Ok(());
        };
        let mut leaves = self.has("leaves-registered") || self.has("one-key");
        if let Some(key) = invalidated {
            leaves |= self.has("trusts-invalidation");
            if self.has("refuses-invalidation") {
                return Err(format!("{key:#x} was invalidated"));
            }
        } else if self.has("needs-invalidation") && !call.keys.is_empty() {
            return Err("nothing was invalidated".into());
        }
        // Invalidates the memory of the call.
        if !leaves {
            self.memories
                .retain(|memory| !call.keys.contains(&memory.key()));
        }
        if !(self.has("keeps-first-grant") && self.granted.is_some()) {
            self.granted = Some(header.credits);
        }
        if self.has("forgets-version-2") {
            self.version = 1;
        }
        // The length of what LOAD returns is inline, and the rest in the Write chunk.
        let load = words(&[1, LOADED as u32]);
        let expected = match call.procedure {
            ECHO => call.arguments.clone(),
            LOAD if data.is_empty() && self.has("takes-inline-data") => {
                Writer::new().word(1).opaque(&loaded(LOADED)).0
            }
            LOAD if data == loaded(LOADED) => load,
            // Anything else is wrong.
            LOAD => vec![0],
            _ => Vec::new(),
        };
        let ignores = self.has("ignores-refusals") && matches!(status, Status::ProgMismatch(..));
        if status != Status::Success(expected) && !ignores {
            if self.has("retries-refusals") {
                return self.call(xid, call.procedure, call.arguments);
            }
            if self.has("retries-with-new-xid") {
                self.next_xid = self.next_xid.wrapping_add(1);
                return self.call(self.next_xid, call.procedure, call.arguments);
            }
            let misplaced = call.procedure == LOAD && self.has("misplaces-data");
            let why = if misplaced {
                MISPLACED
            } else {
                "a call has other results"
            };
            self.failed = Some(why.into());
        }
        Ok(())
    }

    /// Returns what the server has written into a segment.
    fn written(&self, offered: Segment, length: u32) -> Result<Vec<u8>, String> {
        let memory = self
            .memories
            .iter()
            .find(|memory| memory.key() == offered.handle)
            .ok_or("no memory")?;
        let start = offered.offset.saturating_sub(memory.offset()) as usize;
        let octets = memory.octets().into_iter().skip(start);
        Ok(octets.take(length as usize).collect())
    }

    /// Answers a call of the server (RFC 8167).
    fn answer(&mut self, header: &Header, rpc: &[u8], message: &Message) -> Result<(), String> {
        let xid = header.xid;
        if !self.bound || message.invalidated.is_some() || self.has("no-answers") {
            return Ok(());
        }
        if self.has("ends-when-called") {
            self.connection.disconnect();
            return Ok(());
        }
        if self.has("one-credit-count") {
            self.granted = Some(header.credits);
        }
        if self.has("answers-need-credit") && self.pending.len() >= self.window() {
            return Ok(());
        }
        self.called += 1;
        if self.has("dies-of-excess") && self.called > REQUEST {
            return Err("more calls than are granted".into());
        }
        // As if it posted no Receive in place of that of a call.
        if self.has("keeps-receives") && self.called > 64 {
            return Ok(());
        }
        if self.has("one-xid-space") && self.pending.contains_key(&xid) {
            return Ok(());
        }
        if !header.reads.is_empty() || !header.writes.is_empty() || header.reply.is_some() {
            if self.has("drops-chunks") {
                return Ok(());
            }
            let version = header.version;
            return self.send(&words(&[
                xid,
                version,
                REQUEST,
                wire::ERROR,
                wire::ERR_CHUNK,
            ]));
        }
        let mut reader = Reader::new(rpc.get(12..).unwrap_or_default());
        let (program, version) = (reader.word()?, reader.word()?);
        let procedure = reader.word()?;
        let status: &[u32] = if program != ECHO.program && !self.has("any-program") {
            &[1]
        } else if version != ECHO.version {
            &[2, 1, 1]
        } else if procedure != 0 && !self.has("any-procedure") {
            &[3]
        } else {
            &[0]
        };
        let mut reply = Header {
            version: header.version,
            direction: wire::REPLY,
            ..Header::msg(xid)
        };
        match self.fault.as_str() {
            "answers-in-version-2" => reply.version = 2,
            "replies-are-calls" => reply.direction = wire::CALL,
            "answers-without-credit" => reply.credits = 0,
            "answers-with-read-list" => reply.reads.push(ReadSegment::default()),
            _ => (),
        }
        let payload = words(&[&[xid, wire::REPLY, 0, 0, 0], status].concat());
        self.send(&reply.with(&payload))
    }
}

/// Returns the fault with which a client takes the chunks of a reply, if they are not those of the
/// call.
fn mismatch(call: &Pending, header: &Header) -> Option<&'static str> {
    let write = header.writes.first();
    let mut several = header.writes.len() > 1;
    for (offered, returned) in [(call.write, write), (call.reply, header.reply.as_ref())] {
        let (Some(offered), Some(returned)) = (offered, returned) else {
            continue;
        };
        several |= returned.len() != 1;
        for segment in returned {
            if segment.length > offered.length {
                return Some("trusts-lengths");
            }
            if (segment.handle, segment.offset) != (offered.handle, offered.offset) {
                return Some("trusts-handles");
            }
        }
    }
    several.then_some("trusts-counts")
}

fn connect(address: SocketAddr, fault: &str) -> Result<Connection, String> {
    let mut private = Private::new(SIZE, SIZE, true).octets();
    match fault {
        "reserved-bits" => private[5] |= 2,
        "shifted-private" => private.insert(0, 0),
        _ => (),
    }
    let offer = Offer {
        private,
        receives: 64,
        receive_size: if fault == "small-receives" {
            SIZE - 4
        } else {
            SIZE
        },
        ..Offer::default()
    };
    Connection::connect(address, &offer, &Trace::quiet()).map_err(|why| why.to_string())
}

fn is_two(case: &Case) -> bool {
    case.needs.contains(&Need::DraftV2)
}

/// Runs the cases for clients against this client, and prints TAP.
fn self_test(address: SocketAddr, command: &str) -> Result<bool, String> {
    let all: Vec<_> = cases::client().collect();
    let mut results = Results::begin();
    let mut client = explored(address, command)?;
    for two in [false, true] {
        let these: Vec<_> = all
            .iter()
            .copied()
            .filter(|case| is_two(case) == two)
            .collect();
        works(&mut client, command, "none", two);
        for found in cli::with_progress(&these, |case| run::run_client(&client, case)) {
            results.without_fault(&found, found.outcome == Outcome::Pass);
        }
    }
    side_by_side(
        &all,
        |case| case.id,
        |thread| {
            let mut address = address;
            address.set_port(address.port() + 1 + thread);
            explored(address, command)
        },
        |client, case| {
            works(client, command, case.fault, is_two(case));
            run::client_case(case, client, &Trace::default())
        },
        |case, verdict| results.with_fault(case, &verdict),
    )?;
    // LOAD is the last call with chunks.
    let other = |case: &&&Case| case.fault == "retries-errors" && case.id != "rfc8166/4.5/c20";
    for case in all.iter().filter(other) {
        works(&mut client, command, PAUSES, is_two(case));
        let verdict = run::client_case(case, &client, &Trace::default());
        results.harmless(
            case,
            "a pause behind one error",
            Expected::Pass,
            Ok(verdict),
        );
    }
    Ok(results.end())
}

/// Cuts a segment into so many pieces. All but the last one are multiples of four octets.
fn in_pieces(segment: Segment, count: u32) -> Vec<Segment> {
    let length = segment.length / count / 4 * 4;
    let piece = |number| Segment {
        length: if number + 1 == count {
            segment.length - number * length
        } else {
            length
        },
        offset: segment.offset + u64::from(number * length),
        ..segment
    };
    (0..count).map(piece).collect()
}

/// Returns the client without a fault, whose work has succeeded.
fn explored(address: SocketAddr, command: &str) -> Result<Client, String> {
    let mut client = Client::new(address);
    client.limit = Duration::from_secs(20);
    works(&mut client, command, "none", false);
    client.explore()?;
    Ok(client)
}

/// Sets how the client works from now on.
fn works(client: &mut Client, command: &str, fault: &str, two: bool) {
    client.forget();
    client.two = two;
    let two = if two { " two" } else { "" };
    client.run = Some(format!("{command} {} {fault}{two}", client.address));
}
