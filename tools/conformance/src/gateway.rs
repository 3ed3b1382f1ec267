// SPDX-License-Identifier: GPL-2.0

//! The server that a client under test sees. It passes RPC messages on to an NFS server over TCP, or
//! answers NULL, ECHO, BIND, LOAD and STORE itself. Each case shapes its private data, credits,
//! chunks and errors.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt;
use std::io::ErrorKind;
use std::io::Read;
use std::io::Write;
use std::iter;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use crate::case::inconclusive;
use crate::case::skip;
use crate::case::violation;
use crate::case::Problem;
use crate::engine;
use crate::engine::Arrival;
use crate::engine::Connection;
use crate::engine::Failure;
use crate::engine::Listener;
use crate::engine::Offer;
use crate::peer::DEFAULT;
use crate::peer::ECHO;
use crate::peer::NFS;
use crate::trace::Entry;
use crate::trace::Trace;
use crate::wire;
use crate::wire::room;
use crate::wire::roundup;
use crate::wire::Header;
use crate::wire::Private;
use crate::wire::Procedure;
use crate::wire::Reader;
use crate::wire::Segment;
use crate::wire::Transport;
use crate::wire::Writer;

/// BIND of the program of ECHO: the client says that it accepts calls.
pub const BIND: Procedure = Procedure { number: 2, ..ECHO };
/// LOAD of the program of ECHO: takes a length, and returns true and as many octets. These are
/// eligible for direct data placement.
pub const LOAD: Procedure = Procedure { number: 3, ..ECHO };
/// STORE of the program of ECHO: takes octets, and returns nothing. The octets are eligible for
/// direct data placement.
pub const STORE: Procedure = Procedure { number: 4, ..ECHO };
/// The longest result of LOAD, in octets.
const LOAD_MAX: u32 = 1 << 20;
/// The version of the callback program of NFS 4.1. RFC 8881, section 18.36.3, says 4. Clients
/// have the version of the XDR (RFC 5662, section 2), which is 1; one with 4 only is
/// inconclusive.
const CALLBACK_VERSION: u32 = 1;
/// Operations of NFS 4.
const CREATE_SESSION: u32 = 43;
const SEQUENCE: u32 = 53;
/// The flag of CREATE_SESSION that offers the connection for callbacks, and grants that.
const CONN_BACK_CHAN: u32 = 2;
const READ: u32 = 25;
const READLINK: u32 = 27;
/// COMPOUND of NFS 4.
const COMPOUND: u32 = 1;
/// READLINK and READ of NFS 3.
const READLINK3: u32 = 5;
const READ3: u32 = 6;
/// Flavors of credentials.
const AUTH_NONE: u32 = 0;
const AUTH_SYS: u32 = 1;
/// The bit of a record mark that says that the fragment is the last one.
const LAST: u32 = 1 << 31;
/// The longest RPC message of the NFS server, and the most octets of a call's Read chunks.
const RECORD_MAX: usize = 4 << 20;
/// The most octets of all messages of the client in one run. They are kept.
const RECEIVED_MAX: usize = 256 << 20;
/// How many messages of a connection are handled before --limit and signals are looked at.
const MESSAGES_MAX: usize = 256;
/// How long nothing may happen after the end of the client's work.
const SETTLE: Duration = Duration::from_millis(300);
/// How long after the message of `in_front` the reply follows.
const FRONT: Duration = Duration::from_millis(100);
/// The status of a command whose calls have succeeded and have returned wrong data.
pub const WRONG_DATA: u8 = 3;
/// How many octets of the command's output are kept, at its end.
const OUTPUT_MAX: usize = 4000;

/// The client under test, and how it is tested.
pub struct Client {
    pub address: SocketAddr,
    listener: Option<Listener>,
    /// The NFS server that RPC messages are passed on to.
    pub backend: Option<SocketAddr>,
    /// The command that makes the client work.
    pub run: Option<String>,
    /// How long that may take.
    pub limit: Duration,
    /// Whether the client begins with version 2, which servers without faults have then.
    pub two: bool,
    /// Whether the work succeeds with a server without faults.
    pub works: bool,
    /// The private data of its first REQ.
    pub private: Vec<u8>,
    pub iwarp: bool,
    pub device: String,
    /// How many connections it makes for the work with a server without faults.
    pub connections: usize,
    /// The first program that it calls.
    pub program: Procedure,
    shared: RefCell<BTreeMap<&'static str, Shared>>,
}

/// The work of one run and its trace, for several cases.
type Shared = (Rc<Work>, Vec<Entry>);

/// How a case shapes the server.
pub struct Shape {
    /// Private data of the REP on the first connection, on the second one, and so on. The last one
    /// is that of all others.
    pub private: Vec<Vec<u8>>,
    pub receives: usize,
    pub receive_size: usize,
    /// The Receives of the first connection are posted that long after it was accepted.
    pub receives_after: Option<Duration>,
    /// The grant in each reply.
    pub credits: u32,
    /// Replies are held back until there has been no further one for that long.
    pub hold: Duration,
    /// Whether the reply to a call is held back. All other replies are sent at once.
    pub holds: fn(&Call) -> bool,
    /// Replies go by the Reply chunk wherever the client offers one.
    pub reply_chunk: bool,
    /// Which replies invalidate a Steering Tag of their call.
    pub invalidate: Invalidate,
    /// The server speaks version 2, too. Otherwise it answers ERR_VERS.
    pub two: bool,
    pub on_call: Hook,
    /// Says what of a reply goes into the Write chunk of its call. Asked where the whole reply has
    /// room elsewhere.
    pub reduces: ReduceHook,
    /// Changes the header of each reply before it is sent.
    pub on_reply: ReplyHook,
    /// Returns what is sent in front of a reply, if anything.
    pub in_front: FrontHook,
}

/// Which replies invalidate a Steering Tag of their call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Invalidate {
    Never,
    /// Those on connections on which both sides have set R.
    IfAgreed,
    Always,
}

/// The result of a call that the gateway moves into the call's Write chunk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reduction {
    /// The data, which is eligible for direct data placement.
    Data,
    /// The four octets in front of the length of the data: a boolean, or a status.
    Other,
    Nothing,
}

/// Called for each reply that has a result for the Write chunk of its call.
pub type ReduceHook = Box<dyn FnMut(&Call) -> Reduction>;
/// Called for each call before the gateway serves it.
pub type Hook = Box<dyn FnMut(&Call, &mut Connection) -> Next>;
/// Called for each reply before the gateway sends it.
pub type ReplyHook = Box<dyn FnMut(&Call, &mut Header)>;
/// Called for each reply and its octets, when its chunks have been written.
pub type FrontHook = Box<dyn FnMut(&Call, &[u8]) -> Option<Vec<u8>>>;

/// The handling of a call after the case's own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// The call is served.
    Serve,
    /// The case has answered the call.
    Answered,
    /// The call stays without an answer, and the connection ends.
    Disconnect,
}

/// The sizes that the server offers unless a case needs others.
pub const SIZE: usize = 4096;

impl Default for Shape {
    fn default() -> Self {
        Shape {
            private: vec![Private::new(SIZE, SIZE, true).octets()],
            receives: 160,
            // Longer than any offer, so that messages that exceed it are seen.
            receive_size: 16384,
            receives_after: None,
            credits: 32,
            hold: Duration::ZERO,
            holds: |_| true,
            reply_chunk: false,
            invalidate: Invalidate::Never,
            two: false,
            on_call: Box::new(|_, _| Next::Serve),
            reduces: Box::new(|_| Reduction::Data),
            on_reply: Box::new(|_, _| ()),
            in_front: Box::new(|_, _| None),
        }
    }
}

impl Shape {
    /// Returns a server that has version 2.
    pub fn two() -> Self {
        Shape {
            two: true,
            ..Shape::default()
        }
    }
}

/// A call of the client.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its number, from 0, on all connections.
    pub number: usize,
    /// The number of the connection.
    pub connection: usize,
    /// Its number on the connection.
    pub on_connection: usize,
    /// When it arrived.
    pub at: Instant,
    pub header: Header,
    /// The number of octets behind the header.
    pub inline: usize,
    /// The RPC message, with the data of chunks.
    pub rpc: Vec<u8>,
    /// Calls without a reply on the connection, with this one.
    pub outstanding: usize,
    /// The latest grant on the connection; none before the first reply.
    pub granted: Option<u32>,
    /// The calls that the client accepts, once it has said so.
    pub accepts: Option<Backchannel>,
}

/// The calls that the client accepts: their program and their credential.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Backchannel {
    /// Procedure 0 of the program.
    pub null: Procedure,
    flavor: u32,
    body: Vec<u8>,
}

impl Backchannel {
    /// Returns one whose credential is AUTH_NONE.
    fn plain(null: Procedure) -> Self {
        Backchannel {
            null,
            flavor: AUTH_NONE,
            body: Vec::new(),
        }
    }

    /// Returns the RPC message of NULL.
    pub fn call(&self, xid: u32) -> Vec<u8> {
        self.call_of(self.null, xid)
    }

    /// Returns the RPC message of a call without arguments.
    pub fn call_of(&self, procedure: Procedure, xid: u32) -> Vec<u8> {
        wire::call_with(xid, procedure, self.flavor, &self.body, &[])
    }
}

impl Call {
    /// Returns the called procedure.
    pub fn procedure(&self) -> Option<Procedure> {
        let mut reader = Reader::new(self.rpc.get(12..)?);
        Some(Procedure {
            program: reader.word().ok()?,
            version: reader.word().ok()?,
            number: reader.word().ok()?,
        })
    }

    /// Returns the arguments.
    fn arguments(&self) -> Option<Reader<'_>> {
        let mut reader = Reader::new(self.rpc.get(24..)?);
        for _ in 0..2 {
            reader.word().ok()?;
            reader.opaque().ok()?;
        }
        Some(reader)
    }

    /// Returns the calls that the client accepts from this reply on, or why it accepts none. `None`
    /// if the call is about something else.
    fn prepares(&self, reply: &[u8]) -> Option<Result<Backchannel, &'static str>> {
        let procedure = self.procedure()?;
        if procedure == BIND {
            return Some(Ok(Backchannel::plain(Procedure { number: 0, ..ECHO })));
        }
        if procedure
            != (Procedure {
                number: COMPOUND,
                ..NFS
            })
        {
            return None;
        }
        // The tag, the minor version, and the number of operations.
        let mut arguments = self.arguments()?;
        arguments.opaque().ok()?;
        skip_words(&mut arguments, 2)?;
        let mut operation = arguments.word().ok()?;
        let sequence = operation == SEQUENCE;
        if sequence {
            skip_words(&mut arguments, 8)?;
            operation = arguments.word().ok()?;
        }
        if operation != CREATE_SESSION {
            return None;
        }
        let (asked, backchannel) = session_arguments(&mut arguments)?;
        let Some(granted) = session_flags(reply, sequence) else {
            return Some(Err("CREATE_SESSION has failed"));
        };
        Some(if asked & CONN_BACK_CHAN == 0 {
            Err("its CREATE_SESSION does not set CREATE_SESSION4_FLAG_CONN_BACK_CHAN")
        } else if granted & CONN_BACK_CHAN == 0 {
            Err("the NFS server has not granted CREATE_SESSION4_FLAG_CONN_BACK_CHAN")
        } else {
            backchannel.ok_or("its first csa_sec_parms is neither AUTH_NONE nor AUTH_SYS")
        })
    }

    /// Returns the header of a reply that uses no chunk of the call.
    pub fn unused(&self) -> Header {
        let mut header = Header {
            writes: self.header.writes.clone(),
            reply: self.header.reply.clone(),
            ..Header::msg(self.header.xid)
        };
        for segment in header.writes.iter_mut().chain(&mut header.reply).flatten() {
            segment.length = 0;
        }
        header
    }

    /// Returns the segments that the server may read.
    pub fn readable(&self) -> impl Iterator<Item = Segment> + '_ {
        self.header.reads.iter().map(|read| read.segment)
    }

    /// Returns the segments that the server may write.
    pub fn writable(&self) -> impl Iterator<Item = Segment> + '_ {
        let reply = self.header.reply.iter().flatten();
        self.header.writes.iter().flatten().chain(reply).copied()
    }

    /// Returns the Steering Tags of its memory.
    fn keys(&self) -> impl Iterator<Item = u32> + '_ {
        let segments = self.readable().chain(self.writable());
        // The handle of an empty segment need not be one.
        segments
            .filter(|segment| segment.length > 0)
            .map(|segment| segment.handle)
    }

    /// Returns the first Steering Tag.
    pub fn key(&self) -> Option<u32> {
        self.keys().next()
    }
}

#[cfg(test)]
impl Call {
    /// Returns the only call of a client, for tests.
    pub fn example(header: Header, rpc: Vec<u8>) -> Self {
        Self {
            number: 0,
            connection: 0,
            on_connection: 0,
            at: Instant::now(),
            header,
            inline: 0,
            rpc,
            outstanding: 1,
            granted: None,
            accepts: None,
        }
    }
}

fn skip_words(reader: &mut Reader<'_>, count: usize) -> Option<()> {
    (0..count).try_for_each(|_| reader.word().ok().map(drop))
}

/// Returns the flags of CREATE_SESSION, and the calls that the client accepts (RFC 8881, section
/// 18.36.1). Of its credentials, the first one counts. `None` for these calls if that is another one
/// than AUTH_NONE or AUTH_SYS.
fn session_arguments(reader: &mut Reader<'_>) -> Option<(u32, Option<Backchannel>)> {
    // The client ID and the sequence number.
    skip_words(reader, 3)?;
    let flags = reader.word().ok()?;
    for _ in 0..2 {
        // The attributes of a channel end with an array of at most one word.
        skip_words(reader, 6)?;
        let depths = reader.word().ok().filter(|&count| count < 2)?;
        skip_words(reader, depths as usize)?;
    }
    let null = Procedure {
        program: reader.word().ok()?,
        version: CALLBACK_VERSION,
        number: 0,
    };
    let plain = Backchannel::plain(null);
    if reader.word().ok()? == 0 {
        return Some((flags, None));
    }
    let backchannel = match reader.word().ok()? {
        AUTH_NONE => Some(plain),
        AUTH_SYS => Some(Backchannel {
            flavor: AUTH_SYS,
            body: auth_sys(reader)?,
            ..plain
        }),
        _ => None,
    };
    Some((flags, backchannel))
}

/// Returns the octets of `authsys_parms` (RFC 5531, appendix A).
fn auth_sys(reader: &mut Reader<'_>) -> Option<Vec<u8>> {
    let octets = reader.rest();
    // The stamp; the name of the machine; the user, the group and other groups.
    skip_words(reader, 1)?;
    reader.opaque().ok()?;
    skip_words(reader, 2)?;
    let groups = reader.word().ok()?;
    skip_words(reader, groups as usize)?;
    let length = octets.len() - reader.rest().len();
    octets.get(..length).map(<[u8]>::to_vec)
}

/// Returns the flags of the result of CREATE_SESSION, which may follow SEQUENCE (RFC 8881, sections
/// 18.36.2 and 18.46.2). `None` if it has failed.
fn session_flags(reply: &[u8], sequence: bool) -> Option<u32> {
    let mut reader = Reader::new(reply);
    // The XID and the type; the reply is accepted; the flavor of the verifier.
    skip_words(&mut reader, 2)?;
    skip_success(&mut reader, 1)?;
    reader.opaque().ok()?;
    // The statuses of RPC and of the COMPOUND; its tag, and the first of its results.
    skip_success(&mut reader, 0)?;
    skip_success(&mut reader, 0)?;
    reader.opaque().ok()?;
    skip_words(&mut reader, 2)?;
    if sequence {
        // The number of the next operation follows the result of SEQUENCE.
        skip_success(&mut reader, 9 + 1)?;
    }
    // The session ID and the sequence number.
    skip_success(&mut reader, 5)?;
    reader.word().ok()
}

/// Skips a status of success, and words behind it.
fn skip_success(reader: &mut Reader<'_>, words: usize) -> Option<()> {
    reader.word().ok().filter(|&status| status == 0)?;
    skip_words(reader, words)
}

/// A connection of the client, as the server sees it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Private data of the REQ, with the padding of the transport.
    pub private: Vec<u8>,
    pub client: Private,
    /// The client-to-server threshold.
    pub to_server: usize,
    /// The server-to-client threshold.
    pub to_client: usize,
    /// The longest Send of the client.
    pub longest: usize,
    /// Replies that used a Reply chunk.
    pub long_replies: usize,
    /// Replies without a Reply chunk to calls that offered one.
    pub short_replies: usize,
    /// Replies that invalidated a Steering Tag.
    pub invalidated: usize,
    /// Why it ended, if the client or a failure ended it.
    pub ended: Option<String>,
    /// When that was seen.
    pub ended_at: Option<Instant>,
    pub iwarp: bool,
    pub device: String,
}

/// The observations of one run of the client's work.
#[derive(Debug, Default)]
pub struct Work {
    pub connections: Vec<Seen>,
    pub calls: Vec<Call>,
    /// Messages that are neither calls nor answers to calls of the server, and why.
    pub malformed: Vec<String>,
    /// The octets of all messages, and of their Read chunks.
    received: usize,
    /// How long replies were held back, at least.
    held: Duration,
    /// XIDs of calls that were sent again before the reply, on the same connection.
    pub repeated: Vec<u32>,
    /// Memory of the client that could not be reached, and why.
    pub unreachable: Vec<String>,
    /// The first error of a Read chunk.
    pub unreadable: Option<String>,
    /// The error of the first Send with Invalidate that failed.
    pub not_invalidated: Option<String>,
    /// Replies that found neither inline room nor a Reply chunk.
    pub too_long: Vec<String>,
    /// Answers to calls of the server.
    pub reverse: Vec<Vec<u8>>,
    /// Why the client accepts no calls, if it has said so.
    pub accepts_none: Option<&'static str>,
    /// When the command ended, or the client's last connection.
    pub ended: Option<Instant>,
    /// The status of the command.
    pub status: Option<i32>,
    pub output: String,
}

/// The client, as a case sees it.
pub struct Gateway<'a> {
    pub client: &'a Client,
    pub trace: Trace,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a client that connects to {}", self.address)
    }
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        Client {
            address,
            listener: None,
            backend: None,
            run: None,
            limit: Duration::from_secs(60),
            two: false,
            works: false,
            private: Vec::new(),
            iwarp: false,
            device: String::new(),
            connections: 1,
            program: Procedure {
                program: 0,
                version: 0,
                number: 0,
            },
            shared: RefCell::default(),
        }
    }

    /// Listens, and lets the client work once with a server without faults.
    pub fn explore(&mut self) -> Result<(), String> {
        let listener = Listener::new(self.address).map_err(|why| why.to_string())?;
        self.listener = Some(listener);
        let mut gateway = Gateway {
            client: self,
            trace: Trace::default(),
        };
        let work = gateway
            .plain()
            .map_err(|problem| problem.reason().to_string())?;
        let program = work.calls.iter().find_map(Call::procedure);
        let first = work
            .connections
            .first()
            .ok_or(format!("no client has connected; {}", work.end()))?
            .clone();
        self.works = work.status == Some(0);
        self.private = first.private;
        self.iwarp = first.iwarp;
        self.device = first.device;
        self.connections = work.connections.len();
        self.program = program.unwrap_or(self.program);
        Ok(())
    }

    /// Forgets what the cases share, because the client will behave in another way.
    pub fn forget(&self) {
        self.shared.borrow_mut().clear();
    }

    /// Starts the command.
    fn start(&self) -> Result<Option<Worker>, String> {
        let Some(command) = &self.run else {
            return Ok(None);
        };
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(format!("exec 2>&1\n{command}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|why| format!("sh: {why}"))?;
        let (sender, output) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                let _ = sender.send(last(stdout));
            });
        }
        Ok(Some(Worker { child, output }))
    }

    /// Returns why the work has not ended in time. Ends the command.
    fn late<T>(&self, worker: Option<Worker>, work: &Work) -> Result<T, Problem> {
        if work.held > self.limit {
            return inconclusive("the suite has held replies back for longer than --limit");
        }
        violation(match worker {
            // Its process group may be another one by now.
            Some(_) if work.status.is_some() => {
                "the client goes on after the end of the command, and does not stop in time".into()
            }
            Some(worker) => format!(
                "the command does not end within {} s: {}",
                self.limit.as_secs(),
                {
                    engine::kill_group(worker.child.id());
                    worker.output()
                }
            ),
            None if work.connections.is_empty() => return inconclusive("no client has connected"),
            None => "the client does not disconnect in time".into(),
        })
    }
}

/// Reads to the end, so that the writer never meets a closed pipe. Returns the last octets.
fn last(mut output: impl Read) -> String {
    let (mut text, mut buffer) = (Vec::new(), [0; OUTPUT_MAX]);
    while let Ok(length @ 1..) = output.read(&mut buffer) {
        text.extend(&buffer[..length]);
        text.drain(..text.len().saturating_sub(OUTPUT_MAX));
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The command under way.
struct Worker {
    child: Child,
    output: mpsc::Receiver<String>,
}

impl Worker {
    fn status(&mut self) -> Option<i32> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(status.code().unwrap_or(-1))
    }

    fn output(&self) -> String {
        // A process in the background may keep the output open.
        self.output
            .recv_timeout(Duration::from_millis(200))
            .unwrap_or_default()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.status().is_none() {
            engine::kill_group(self.child.id());
            let _ = self.child.wait();
        }
    }
}

impl Work {
    /// Returns how the command ended, in words.
    pub fn end(&self) -> String {
        let Some(status) = self.status else {
            return "there is no --run".into();
        };
        let last = self.output.trim_end().lines().last().unwrap_or_default();
        format!("the command ends with {status}: {last}")
    }

    /// Returns an error if the client has sent more than can be kept.
    fn check_received(&self) -> Result<(), String> {
        match self.received {
            0..=RECEIVED_MAX => Ok(()),
            _ => Err(format!(
                "the client sends more than {} MiB in one run",
                RECEIVED_MAX >> 20
            )),
        }
    }

    /// Returns that the client accepts no calls.
    pub fn not_called<T>(&self) -> Result<T, Problem> {
        let why = self
            .accepts_none
            .unwrap_or("it calls neither CREATE_SESSION nor BIND");
        skip(format!(
            "the client has not said that it accepts calls: {why}"
        ))
    }

    /// Returns the times without a call: before each call except the first one, and before the end.
    pub fn pauses(&self) -> Vec<Duration> {
        let calls = self.calls.iter().map(|call| call.at);
        let times: Vec<Instant> = calls.chain(self.ended).collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// Returns an error unless the client has made the work succeed.
    pub fn succeeded(&self, gateway: &Gateway<'_>) -> Result<(), Problem> {
        if self.status.is_none() {
            return inconclusive("without --run it cannot be seen whether the client succeeds");
        }
        if !gateway.client.works {
            return skip("the command of --run fails even with a server without faults");
        }
        if self.status != Some(0) {
            return violation(self.end());
        }
        Ok(())
    }

    /// Returns the first connection.
    pub fn first(&self) -> Result<&Seen, Problem> {
        match self.connections.first() {
            Some(seen) => Ok(seen),
            None => inconclusive(format!("the client did not connect; {}", self.end())),
        }
    }
}

impl Gateway<'_> {
    /// Lets the client work with a server without faults. All cases share what is seen then.
    pub fn plain(&mut self) -> Result<Rc<Work>, Problem> {
        let one: fn() -> Shape = Shape::default;
        self.shared("plain", if self.client.two { Shape::two } else { one })
    }

    /// Lets the client work with a server of this shape, once for all cases with that name.
    pub fn shared(
        &mut self,
        name: &'static str,
        shape: fn() -> Shape,
    ) -> Result<Rc<Work>, Problem> {
        let known = self.client.shared.borrow().get(name).cloned();
        if let Some((work, entries)) = known {
            self.trace.extend(&entries);
            return Ok(work);
        }
        let work = Rc::new(self.work(shape())?);
        let entries = self.trace.entries();
        let mut shared = self.client.shared.borrow_mut();
        shared.insert(name, (work.clone(), entries));
        Ok(work)
    }

    /// Lets the client work once.
    pub fn work(&mut self, shape: Shape) -> Result<Work, Problem> {
        let Some(listener) = &self.client.listener else {
            return inconclusive("the suite does not listen");
        };
        // REQs of an earlier work.
        while let Some(request) = listener.next(Duration::ZERO) {
            request.reject(&[]);
        }
        let mut worker = self.client.start().or_else(inconclusive)?;
        let mut server = Serving {
            listener,
            backend: self.client.backend,
            trace: self.trace.clone(),
            shape,
            work: Work::default(),
            sessions: Vec::new(),
        };
        let until = Instant::now() + self.client.limit;
        let mut last = Instant::now();
        loop {
            let any = server.step().or_else(inconclusive)?;
            if any {
                last = Instant::now();
            }
            let settled = last.elapsed() > SETTLE;
            let live = !server.sessions.is_empty();
            let ended = match &mut worker {
                Some(worker) => {
                    server.work.status = worker.status();
                    server.work.status.is_some() && (settled || !live)
                }
                None => !server.work.connections.is_empty() && !live && settled,
            };
            let over = match &worker {
                Some(_) => server.work.status.is_some(),
                None => !server.work.connections.is_empty() && !live,
            };
            if over {
                server.work.ended.get_or_insert_with(Instant::now);
            }
            if ended && !any {
                break;
            }
            if engine::interrupted() {
                return inconclusive("the run was interrupted");
            }
            // A client that never stops has replies held back without end.
            if Instant::now() > until + server.work.held.min(self.client.limit) {
                return self.client.late(worker, &server.work);
            }
            if !any {
                let soon = Instant::now() + Duration::from_millis(10);
                engine::wait_readable(&server.files(), soon);
            }
        }
        if let Some(worker) = worker {
            server.work.output = worker.output();
        }
        Ok(server.work)
    }
}

/// A reply that is held back.
struct Held {
    xid: u32,
    rpc: Vec<u8>,
}

/// A connection with the client.
struct Session {
    number: usize,
    connection: Connection,
    backend: Option<Backend>,
    own: Private,
    invalidation: bool,
    /// When the Receives are posted, if that is still to be done.
    receives_at: Option<Instant>,
    calls: usize,
    granted: Option<u32>,
    pending: BTreeMap<u32, Call>,
    held: Vec<Held>,
    last_held: Instant,
    /// XIDs of calls of the NFS server.
    relayed: BTreeSet<u32>,
    accepts: Option<Backchannel>,
    over: bool,
}

/// The server while the client works.
struct Serving<'a> {
    listener: &'a Listener,
    backend: Option<SocketAddr>,
    trace: Trace,
    shape: Shape,
    work: Work,
    sessions: Vec<Session>,
}

impl Serving<'_> {
    fn files(&self) -> Vec<i32> {
        let mut files = vec![self.listener.file()];
        for session in &self.sessions {
            files.extend(session.connection.files());
            files.extend(session.backend.as_ref().map(|it| it.stream.as_raw_fd()));
        }
        files
    }

    /// Handles what has happened. Returns whether anything has.
    fn step(&mut self) -> Result<bool, String> {
        let mut any = false;
        let listener = self.listener;
        let requests = iter::from_fn(|| listener.next(Duration::ZERO));
        for request in requests.take(MESSAGES_MAX) {
            any = true;
            let number = self.work.connections.len();
            let private = &self.shape.private;
            let private = private.get(number).or(private.last());
            let late = self.shape.receives_after.filter(|_| number == 0);
            let offer = Offer {
                private: private.cloned().unwrap_or_default(),
                receives: self.shape.receives,
                receive_size: self.shape.receive_size,
                posts_receives: late.is_none(),
                ..Offer::default()
            };
            let asked = request.private.clone();
            let connection = match request.accept(&offer, &self.trace) {
                Ok(connection) => connection,
                Err(Failure::Unregistered(why)) => return Err(unregistered(&why)),
                // The client may have given up.
                Err(why) => {
                    let why = format!("the connection cannot be accepted: {why}");
                    self.trace.note(self.trace.connection(), &why);
                    continue;
                }
            };
            let defaults = Private::new(DEFAULT, DEFAULT, false);
            let found = |octets: &[u8]| Private::find(octets).map_or(defaults, |(_, found)| found);
            let (client, own) = (found(&asked), found(&offer.private));
            self.work.connections.push(Seen {
                private: asked,
                client,
                to_server: client.send_size().min(own.receive_size()),
                to_client: own.send_size().min(client.receive_size()),
                longest: 0,
                long_replies: 0,
                short_replies: 0,
                invalidated: 0,
                ended: None,
                ended_at: None,
                iwarp: connection.is_iwarp(),
                device: connection.device().to_string(),
            });
            let backend = self
                .backend
                .map(Backend::new)
                .transpose()
                .map_err(|why| format!("the NFS server at --backend: {why}"))?;
            self.sessions.push(Session {
                number,
                connection,
                backend,
                own,
                invalidation: client.invalidation() && own.invalidation(),
                receives_at: late.map(|late| Instant::now() + late),
                calls: 0,
                granted: None,
                pending: BTreeMap::new(),
                held: Vec::new(),
                last_held: Instant::now(),
                relayed: BTreeSet::new(),
                accepts: None,
                over: false,
            });
        }
        for session in &mut self.sessions {
            any |= session.step(&mut self.shape, &mut self.work)?;
            if let Some(why) = session.connection.unregistered() {
                return Err(unregistered(why));
            }
        }
        self.sessions.retain(|session| !session.over);
        Ok(any)
    }
}

impl Session {
    fn step(&mut self, shape: &mut Shape, work: &mut Work) -> Result<bool, String> {
        let mut any = false;
        if self.receives_at.is_some_and(|at| Instant::now() >= at) {
            self.receives_at = None;
            self.connection.post_receives()?;
        }
        for _ in 0..MESSAGES_MAX {
            match self.connection.poll() {
                Arrival::Message(message) => {
                    self.message(message.octets, shape, work)?;
                    work.check_received()?;
                }
                Arrival::Closed(why) => {
                    let seen = &mut work.connections[self.number];
                    seen.ended.get_or_insert(why);
                    seen.ended_at.get_or_insert_with(Instant::now);
                    self.over = true;
                }
                Arrival::Nothing => break,
            }
            any = true;
            if self.over {
                return Ok(true);
            }
        }
        while let Some(record) = self.backend.as_mut().map_or(Ok(None), Backend::next)? {
            any = true;
            self.record(record);
        }
        let over = self.last_held.elapsed() >= shape.hold;
        let pending = &self.pending;
        let waits = |held: &Held| pending.get(&held.xid).is_some_and(shape.holds);
        let (later, now): (_, Vec<Held>) =
            self.held.drain(..).partition(|held| !over && waits(held));
        self.held = later;
        if over && !now.is_empty() {
            work.held += shape.hold;
        }
        for held in now {
            any = true;
            self.reply(held.xid, held.rpc, shape, work);
        }
        Ok(any)
    }

    /// Handles a message of the client. Returns an error if its chunks are more than can be read.
    fn message(
        &mut self,
        octets: Vec<u8>,
        shape: &mut Shape,
        work: &mut Work,
    ) -> Result<(), String> {
        let seen = &mut work.connections[self.number];
        seen.longest = seen.longest.max(octets.len());
        work.received += octets.len();
        let malformed = |why: String| {
            let start = crate::trace::words(&octets, 64);
            format!("{why}: {start}")
        };
        let (header, inline) = match Transport::parse(&octets) {
            Ok(Transport::Chunks(header, inline)) => (header, inline),
            Ok(Transport::Error { .. }) => {
                work.reverse.push(octets);
                return Ok(());
            }
            Err(why) => {
                work.malformed.push(malformed(why));
                return Ok(());
            }
        };
        let inline_length = inline.len();
        // The RPC reply is in a Reply chunk of a call of the server. A Long Call has a Read chunk.
        if header.procedure == wire::NOMSG && header.reads.is_empty() && header.reply.is_some() {
            work.reverse.push(octets);
            return Ok(());
        }
        if let Err(why) = check_length(&header) {
            let is_reply = inline.get(4..8) == Some(&wire::words(&[wire::REPLY]));
            if header.procedure == wire::MSG && is_reply {
                work.malformed.push(malformed(why));
                return Ok(());
            }
            return Err(why);
        }
        let Some(rpc) = self.gather(&header, inline, work) else {
            return Ok(());
        };
        work.received += rpc.len() - inline_length;
        let mut reader = Reader::new(&rpc);
        let (Ok(xid), Ok(kind)) = (reader.word(), reader.word()) else {
            work.malformed
                .push(malformed("the RPC message is missing".into()));
            return Ok(());
        };
        if kind == wire::REPLY {
            work.reverse.push(octets);
            if self.relayed.remove(&xid) {
                self.pass_on(&rpc);
            }
            return Ok(());
        }
        if self.pending.contains_key(&header.xid) {
            work.repeated.push(header.xid);
        }
        let call = Call {
            number: work.calls.len(),
            connection: self.number,
            on_connection: self.calls,
            at: Instant::now(),
            header,
            inline: inline_length,
            rpc,
            outstanding: self.pending.len() + 1,
            granted: self.granted,
            accepts: self.accepts.clone(),
        };
        self.calls += 1;
        work.calls.push(call.clone());
        match (shape.on_call)(&call, &mut self.connection) {
            Next::Serve => (),
            Next::Answered => return Ok(()),
            Next::Disconnect => {
                self.connection.disconnect();
                self.over = true;
                return Ok(());
            }
        }
        let (xid, version) = (call.header.xid, call.header.version);
        if version != 1 && !(shape.two && version == 2) {
            let range = [wire::ERR_VERS, 1, if shape.two { 2 } else { 1 }];
            let _ = self
                .connection
                .send(&error_in(version, xid, shape.credits, &range));
            return Ok(());
        }
        let own = self.backend.is_none().then(|| execute(&call));
        let rpc = call.rpc.clone();
        self.pending.insert(xid, call);
        match own {
            Some(reply) => self.hold(xid, reply),
            None => self.pass_on(&rpc),
        }
        Ok(())
    }

    fn pass_on(&mut self, rpc: &[u8]) {
        if let Some(backend) = &mut self.backend {
            backend.send(rpc);
        }
    }

    fn hold(&mut self, xid: u32, rpc: Vec<u8>) {
        self.last_held = Instant::now();
        self.held.push(Held { xid, rpc });
    }

    /// Handles a message of the NFS server.
    fn record(&mut self, rpc: Vec<u8>) {
        let mut reader = Reader::new(&rpc);
        let (Ok(xid), Ok(kind)) = (reader.word(), reader.word()) else {
            return;
        };
        if kind == wire::CALL {
            self.relayed.insert(xid);
            let _ = self.connection.send(&Header::msg(xid).with(&rpc));
        } else {
            self.hold(xid, rpc);
        }
    }

    /// Returns the RPC message of a call: what is inline, and Read chunks in their places. `None` if
    /// there is none: `work` says why.
    fn gather(&mut self, header: &Header, inline: Vec<u8>, work: &mut Work) -> Option<Vec<u8>> {
        let mut rpc = inline;
        // Chunks may stand in any order. The segments of one are joined in the order of the list.
        let mut sorted = header.reads.clone();
        sorted.sort_by_key(|read| read.position);
        let mut reads = &sorted[..];
        while let Some(first) = reads.first() {
            let position = first.position;
            let count = reads
                .iter()
                .take_while(|read| read.position == position)
                .count();
            let (chunk, rest) = reads.split_at(count);
            reads = rest;
            let mut data = Vec::new();
            for read in chunk {
                let Segment {
                    handle,
                    length,
                    offset,
                } = read.segment;
                if length > 0 {
                    match self.connection.read(handle, offset, length as usize) {
                        Ok(part) => data.extend(part),
                        Err(why) => {
                            let why = format!("handle {handle:#x}: {why}");
                            work.unreadable.get_or_insert(why.clone());
                            work.unreachable.push(why);
                            return None;
                        }
                    }
                }
            }
            data.resize(roundup(data.len()), 0);
            let at = position as usize;
            if at > rpc.len() {
                let why = format!("Position {at} is behind the RPC message");
                work.malformed.push(why);
                return None;
            }
            rpc.splice(at..at, data);
        }
        Some(rpc)
    }

    /// Sends a reply (RFC 8166, sections 3.5.3 and 4.3).
    fn reply(&mut self, xid: u32, mut rpc: Vec<u8>, shape: &mut Shape, work: &mut Work) {
        let Some(call) = self.pending.remove(&xid) else {
            return;
        };
        let seen = &mut work.connections[self.number];
        let mut header = Header {
            version: call.header.version,
            direction: wire::REPLY,
            credits: shape.credits,
            ..call.unused()
        };
        let mut threshold = self.own.send_size().min(seen.client.receive_size());
        if header.version == 2 {
            // The draft, section 2.3.
            threshold = threshold.max(SIZE);
        }
        let prepares = call.prepares(&rpc);
        if let Some((chunk, start, length)) = reduced(&call, &rpc) {
            let whole = header.octets().len() + rpc.len() <= threshold
                || call.header.reply.as_deref().map_or(0, room) >= rpc.len();
            let data: Vec<u8> = match whole.then(|| (shape.reduces)(&call)) {
                Some(Reduction::Nothing) => Vec::new(),
                Some(Reduction::Other) => rpc.drain(start - 8..start - 4).collect(),
                Some(Reduction::Data) | None => {
                    let mut data = rpc.split_off(start);
                    data.truncate(length);
                    data
                }
            };
            match self.write(chunk, &data) {
                Ok(filled) => header.writes[0] = filled,
                Err(why) => {
                    work.unreachable.push(why);
                    let error = [wire::ERR_CHUNK];
                    let octets = error_in(header.version, xid, shape.credits, &error);
                    let _ = self.connection.send(&octets);
                    return;
                }
            }
        }
        let fits = header.octets().len() + rpc.len() <= threshold;
        let octets = match &call.header.reply {
            Some(chunk) if !fits || shape.reply_chunk => match self.write(chunk, &rpc) {
                Ok(filled) => {
                    header.procedure = wire::NOMSG;
                    header.reply = Some(filled);
                    seen.long_replies += 1;
                    (shape.on_reply)(&call, &mut header);
                    header.octets()
                }
                Err(why) => {
                    work.unreachable.push(why);
                    error_in(header.version, xid, shape.credits, &[wire::ERR_CHUNK])
                }
            },
            _ if fits => {
                seen.short_replies += usize::from(header.reply.is_some());
                (shape.on_reply)(&call, &mut header);
                header.with(&rpc)
            }
            _ => {
                work.too_long.push(format!(
                    "the reply to XID {xid:08x} has {} octets, the threshold is {threshold}",
                    header.octets().len() + rpc.len()
                ));
                error_in(header.version, xid, shape.credits, &[wire::ERR_CHUNK])
            }
        };
        self.granted = Some(header.credits);
        match prepares {
            Some(Ok(backchannel)) => self.accepts = self.accepts.take().or(Some(backchannel)),
            Some(Err(why)) => work.accepts_none = Some(why),
            None => (),
        }
        if let Some(front) = (shape.in_front)(&call, &octets) {
            let _ = self.connection.send(&front);
            // The client looks at it before the reply arrives.
            thread::sleep(FRONT);
        }
        let key = call.key().filter(|&key| {
            let invalidates = match shape.invalidate {
                Invalidate::Never => false,
                Invalidate::IfAgreed => self.invalidation,
                Invalidate::Always => true,
            };
            let mut others = self.pending.values().flat_map(Call::keys);
            invalidates && others.all(|other| other != key)
        });
        let Some(key) = key else {
            let _ = self.connection.send(&octets);
            return;
        };
        seen.invalidated += 1;
        if let Err(why) = self.connection.send_invalidate(key, &octets) {
            work.not_invalidated.get_or_insert(why);
        }
    }

    /// Writes into a chunk. Returns it with its new lengths.
    fn write(&mut self, chunk: &[Segment], data: &[u8]) -> Result<Vec<Segment>, String> {
        let mut chunk = chunk.to_vec();
        let mut rest = data;
        for segment in &mut chunk {
            let (part, behind) = rest.split_at(rest.len().min(segment.length as usize));
            rest = behind;
            segment.length = part.len() as u32;
            if !part.is_empty() {
                self.connection
                    .write(segment.handle, segment.offset, part)
                    .map_err(|why| format!("handle {:#x}: {why}", segment.handle))?;
            }
        }
        if !rest.is_empty() {
            return Err(format!("a chunk is {} octets too short", rest.len()));
        }
        Ok(chunk)
    }
}

/// Says that the client is not to blame.
fn unregistered(why: &str) -> String {
    format!("this host cannot register memory (see ulimit -l): {why}")
}

/// Returns an error if the Read chunks of a message have too many octets. All segments may name
/// the same memory.
fn check_length(header: &Header) -> Result<(), String> {
    let lengths = header.reads.iter().map(|read| read.segment.length as usize);
    match lengths.sum() {
        0..=RECORD_MAX => Ok(()),
        length => Err(format!(
            "a message has Read chunks of {length} octets, more than {} MiB",
            RECORD_MAX >> 20
        )),
    }
}

/// Returns an RDMA_ERROR of version 1.
pub fn error(xid: u32, credits: u32, rest: &[u32]) -> Vec<u8> {
    error_in(1, xid, credits, rest)
}

/// Returns an RDMA_ERROR.
pub fn error_in(version: u32, xid: u32, credits: u32, rest: &[u32]) -> Vec<u8> {
    let mut octets = wire::words(&[xid, version, credits, wire::ERROR]);
    octets.extend(wire::words(rest));
    octets
}

/// Returns the reply of the server without an NFS server behind it.
fn execute(call: &Call) -> Vec<u8> {
    let writer = Writer::new().words(&[call.header.xid, wire::REPLY, 0, 0, 0]);
    let procedure = call.procedure();
    let echo = call
        .arguments()
        .and_then(|mut arguments| arguments.opaque().ok().map(<[u8]>::to_vec));
    match (procedure, echo) {
        (Some(Procedure { number: 0, .. }), _) => writer.word(0).0,
        (Some(ECHO), Some(octets)) => writer.word(0).opaque(&octets).0,
        (Some(BIND), _) | (Some(STORE), Some(_)) => writer.word(0).0,
        (Some(LOAD), _) => {
            let length = call.arguments().and_then(|mut rest| rest.word().ok());
            match length.filter(|&length| length <= LOAD_MAX) {
                Some(length) => writer.words(&[0, 1]).opaque(&loaded(length as usize)).0,
                None => writer.word(wire::GARBAGE_ARGS).0,
            }
        }
        _ => writer.word(3).0,
    }
}

/// Returns the octets that LOAD returns.
pub fn loaded(length: usize) -> Vec<u8> {
    (0..length).map(|at| at as u8 ^ 0x3c).collect()
}

/// Returns the Write chunk that a result belongs into, and the place of that result. An empty chunk
/// asks for the result inline (RFC 8166, section 4.3.2.3).
fn reduced<'a>(call: &'a Call, rpc: &[u8]) -> Option<(&'a [Segment], usize, usize)> {
    let chunk = call.header.writes.first()?;
    if chunk.iter().all(|segment| segment.length == 0) {
        return None;
    }
    let (start, length) = data_item(call, rpc)?;
    Some((chunk, start, length))
}

/// Returns the place of the result that belongs into a Write chunk (RFC 8267): data of READ, or the
/// text of READLINK, at the end of the reply; or the data of LOAD. Nothing follows them in the
/// calls of clients.
fn data_item(call: &Call, rpc: &[u8]) -> Option<(usize, usize)> {
    let procedure = call.procedure()?;
    let version4 = procedure
        == Procedure {
            number: COMPOUND,
            ..NFS
        };
    let version3 = procedure
        == Procedure {
            version: 3,
            number: READ3,
            ..NFS
        };
    if procedure
        == (Procedure {
            version: 3,
            number: READLINK3,
            ..NFS
        })
    {
        return link3(rpc);
    }
    let word = |at: usize| {
        let octets = rpc.get(at..at.checked_add(4)?)?;
        Some(u32::from_be_bytes(octets.try_into().ok()?))
    };
    (24..rpc.len()).step_by(4).find_map(|at| {
        let length = word(at)? as usize;
        let ends = length > 0 && at + 4 + roundup(length) == rpc.len();
        let before = |words: usize| word(at.checked_sub(4 * words)?);
        let read = before(1).is_some_and(|eof| eof < 2)
            && (version4 && before(2) == Some(0) && before(3) == Some(READ)
                || version3 && before(2) == Some(length as u32)
                || procedure == LOAD);
        let link = version4 && before(1) == Some(0) && before(2) == Some(READLINK);
        (ends && (read || link)).then_some((at + 4, length))
    })
}

/// Returns the place of the text in a reply of READLINK of NFS 3 (RFC 1813, section 3.3.5).
fn link3(rpc: &[u8]) -> Option<(usize, usize)> {
    let wire::Status::Success(results) = wire::parse_reply(rpc).ok()?.1 else {
        return None;
    };
    let mut reader = Reader::new(&results);
    skip_success(&mut reader, 0)?;
    if reader.flag("the attributes").ok()? {
        skip_words(&mut reader, 21)?;
    }
    let length = reader.opaque().ok()?.len();
    (length > 0 && reader.rest().is_empty()).then(|| (rpc.len() - roundup(length), length))
}

/// A connection with the NFS server: RPC over TCP, with record marking (RFC 5531, section 11).
struct Backend {
    stream: TcpStream,
    /// Octets that the NFS server's socket has not accepted yet.
    unsent: Vec<u8>,
    arrived: Vec<u8>,
    /// Earlier fragments of the record.
    fragments: Vec<u8>,
}

impl Backend {
    fn new(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(10))?;
        stream.set_nodelay(true)?;
        // An NFS server may take no calls while nobody reads its replies.
        stream.set_nonblocking(true)?;
        Ok(Backend {
            stream,
            unsent: Vec::new(),
            arrived: Vec::new(),
            fragments: Vec::new(),
        })
    }

    fn send(&mut self, rpc: &[u8]) {
        self.unsent.extend(wire::words(&[LAST | rpc.len() as u32]));
        self.unsent.extend(rpc);
    }

    /// Sends what the NFS server takes now. Returns the next record that has arrived, and an error
    /// if none will arrive any more.
    fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        let failed = |why: std::io::Error| match why.kind() {
            ErrorKind::WouldBlock => Ok(0),
            _ => Err(format!("the NFS server at --backend: {why}")),
        };
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent).or_else(failed)? {
                0 => break,
                length => drop(self.unsent.drain(..length)),
            }
        }
        let mut buffer = [0; 65536];
        let closed = loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => break true,
                Ok(length) => self.arrived.extend(&buffer[..length]),
                Err(why) => {
                    failed(why)?;
                    break false;
                }
            }
        };
        match self.record()? {
            None if closed => Err("the NFS server at --backend has closed the connection".into()),
            record => Ok(record),
        }
    }

    /// Takes a record from what has arrived.
    fn record(&mut self) -> Result<Option<Vec<u8>>, String> {
        loop {
            let Ok(mark) = Reader::new(&self.arrived).word() else {
                return Ok(None);
            };
            let length = (mark & !LAST) as usize;
            if length + self.fragments.len() > RECORD_MAX {
                return Err(format!("the NFS server sends a record of {length} octets"));
            }
            if self.arrived.len() < 4 + length {
                return Ok(None);
            }
            self.fragments.extend(&self.arrived[4..4 + length]);
            self.arrived.drain(..4 + length);
            if mark & LAST != 0 {
                return Ok(Some(std::mem::take(&mut self.fragments)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn call(procedure: Procedure) -> Call {
        Call {
            number: 0,
            connection: 0,
            on_connection: 0,
            at: Instant::now(),
            header: Header::msg(7),
            inline: 0,
            rpc: wire::call(7, procedure, &[]),
            outstanding: 1,
            granted: None,
            accepts: None,
        }
    }

    // RFC 7530, section 16.23: status, eof, data; RFC 1813, section 3.3.6: count, eof, data;
    // section 3.3.5: status, attributes of 21 words or none, text.
    #[test]
    fn the_data_of_a_read_is_found() {
        let head = [7, 1, 0, 0, 0, 0];
        let compound = Procedure {
            number: COMPOUND,
            ..NFS
        };
        let reply = |rest: &[u32]| wire::words(&[&head[..], rest].concat());
        // status, tag, two results: PUTFH and READ of 5 octets
        let read = reply(&[0, 0, 2, 22, 0, READ, 0, 1, 5, 0x6162_6364, 0x6500_0000]);
        assert_eq!(data_item(&call(compound), &read), Some((60, 5)));
        let failed = reply(&[70, 0, 2, 22, 0, READ, 70]);
        assert_eq!(data_item(&call(compound), &failed), None);
        let followed = reply(&[0, 0, 2, READ, 0, 1, 4, 0x6162_6364, 9, 0]);
        assert_eq!(data_item(&call(compound), &followed), None);
        let read3 = Procedure {
            version: 3,
            number: READ3,
            ..NFS
        };
        let found = reply(&[0, 0, 4, 1, 4, 0x6162_6364]);
        assert_eq!(data_item(&call(read3), &found), Some((44, 4)));
        assert_eq!(data_item(&call(NFS), &found), None);
        let readlink3 = Procedure {
            number: READLINK3,
            ..read3
        };
        let link = |rest: &[u32]| data_item(&call(readlink3), &reply(rest));
        let text = [5, 0x6162_6364, 0x6500_0000];
        assert_eq!(link(&[&[0, 0][..], &text].concat()), Some((36, 5)));
        let attributes = [&[0, 1][..], &[9; 21]].concat();
        assert_eq!(link(&[&attributes[..], &text].concat()), Some((120, 5)));
        assert_eq!(link(&[&attributes[..], &[0]].concat()), None);
        assert_eq!(link(&[70, 0]), None);
        let load = reply(&[1, 4, 0x6162_6364]);
        assert_eq!(data_item(&call(LOAD), &load), Some((32, 4)));
    }

    // RFC 8166, section 4.3.2.3
    #[test]
    fn an_empty_write_chunk_asks_for_data_inline() {
        let read = Procedure {
            version: 3,
            number: READ3,
            ..NFS
        };
        let reply = wire::words(&[7, 1, 0, 0, 0, 0, 0, 4, 1, 4, 0x6162_6364]);
        let mut call = call(read);
        let room = Segment {
            length: 4,
            ..Segment::default()
        };
        for (chunk, goes) in [
            (vec![], false),
            (vec![Segment::default()], false),
            (vec![Segment::default(), room], true),
        ] {
            call.header.writes = vec![chunk];
            let place = reduced(&call, &reply).map(|(_, start, length)| (start, length));
            assert_eq!(place, goes.then_some((40, 4)));
        }
    }

    // RFC 8881, sections 18.36 and 18.46
    #[test]
    fn callbacks_go_to_the_program_of_the_session() {
        let channel = [0, 4096, 4096, 0, 8, 16, 1, 9];
        let session = |flags: u32, program: u32| {
            let head = [CREATE_SESSION, 1, 2, 3, flags];
            [&head[..], &channel, &channel[..6], &[0, program, 1, 0]].concat()
        };
        let compound = |rest: &[u32]| {
            let number = COMPOUND;
            let mut call = call(Procedure { number, ..NFS });
            let arguments = wire::words(&[&[0, 1, 1][..], rest].concat());
            call.rpc = wire::call(7, Procedure { number, ..NFS }, &arguments);
            call
        };
        let reply = |rest: &[u32]| wire::words(&[&[7, 1, 0, 0, 0, 0, 0, 0, 1][..], rest].concat());
        let made = |flags| reply(&[CREATE_SESSION, 0, 1, 2, 3, 4, 5, flags]);
        let program = |found: Option<Result<Backchannel, &'static str>>| {
            found.map(|found| found.map(|it| it.null.program).map_err(drop))
        };
        let prepares = |flags, reply: &[u8]| program(compound(&session(flags, 99)).prepares(reply));
        assert_eq!(prepares(2, &made(3)), Some(Ok(99)));
        assert_eq!(prepares(1, &made(1)), Some(Err(())));
        assert_eq!(prepares(2, &made(1)), Some(Err(())));
        assert_eq!(prepares(1, &made(3)), Some(Err(())));
        assert_eq!(prepares(2, &reply(&[CREATE_SESSION, 10022])), Some(Err(())));
        let second = [&[SEQUENCE, 1, 2, 3, 4, 5, 6, 7, 8][..], &session(2, 98)].concat();
        let sequence = [SEQUENCE, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        let session = [CREATE_SESSION, 0, 1, 2, 3, 4, 5, 2];
        let both = reply(&[&sequence[..], &session].concat());
        assert_eq!(program(compound(&second).prepares(&both)), Some(Ok(98)));
        assert_eq!(program(compound(&[22, 0]).prepares(&both)), None);
        assert_eq!(program(call(BIND).prepares(&[])), Some(Ok(ECHO.program)));
    }

    // RFC 8881, section 18.36.1; RFC 5531, appendix A
    #[test]
    fn callbacks_have_the_first_credential_of_the_session() {
        let channel = [0, 4096, 4096, 0, 8, 16, 0];
        let credential = |parms: &[u32]| {
            let head = [1, 2, 3, 2];
            let session = [&head[..], &channel, &channel, &[99], parms].concat();
            let octets = wire::words(&session);
            session_arguments(&mut Reader::new(&octets))
                .map(|(_, found)| found.map(|it| (it.flavor, it.body)))
        };
        let sys = [5, 3, 0x6162_6300, 0, 0, 2, 7, 8];
        assert_eq!(credential(&[1, 0]), Some(Some((0, vec![]))));
        assert_eq!(
            credential(&[&[2, 1][..], &sys, &[0]].concat()),
            Some(Some((1, wire::words(&sys))))
        );
        assert_eq!(credential(&[&[1, 1][..], &sys[..7]].concat()), None);
        assert_eq!(credential(&[1, 6]), Some(None));
        assert_eq!(credential(&[0]), Some(None));
        assert_eq!(credential(&[]), None);
    }

    #[test]
    fn read_chunks_have_a_longest_length() {
        let segment = |length| wire::ReadSegment {
            position: 0,
            segment: Segment {
                length,
                ..Segment::default()
            },
        };
        let check = |lengths: &[u32]| {
            let mut header = Header::msg(7);
            header.reads = lengths.iter().map(|&length| segment(length)).collect();
            check_length(&header)
        };
        let most = RECORD_MAX as u32;
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[most]), Ok(()));
        assert_eq!(check(&[most - 4, 4]), Ok(()));
        assert!(check(&[most - 4, 4, 1]).is_err());
        assert!(check(&[u32::MAX; 681]).is_err());
    }

    #[test]
    fn a_client_may_send_much_in_one_run_but_not_more() {
        let check = |received| {
            Work {
                received,
                ..Work::default()
            }
            .check_received()
        };
        assert_eq!(check(RECEIVED_MAX), Ok(()));
        let why = check(RECEIVED_MAX + 1).expect_err("too much");
        assert_eq!(why, "the client sends more than 256 MiB in one run");
    }

    #[test]
    fn a_command_may_print_much() {
        let mut client = Client::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        client.run = Some("seq 100000; echo the last line >&2; exit 7".into());
        let mut worker = client.start().expect("sh").expect("a command");
        worker.child.wait().expect("a status");
        let work = Work {
            status: worker.status(),
            output: worker.output(),
            ..Work::default()
        };
        assert_eq!(work.end(), "the command ends with 7: the last line");
        assert_eq!(work.output.len(), OUTPUT_MAX);
        assert!(
            work.output.contains("\n100000\nthe last"),
            "{}",
            work.output
        );
    }

    #[test]
    fn a_command_that_has_ended_is_not_late() {
        let mut client = Client::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        let mut late = |command: &str, ends: bool| {
            client.run = Some(command.into());
            let mut worker = client.start().expect("sh").expect("a command");
            let mut work = Work::default();
            if ends {
                worker.child.wait().expect("a status");
                work.status = worker.status();
            }
            let found: Result<(), _> = client.late(Some(worker), &work);
            found.expect_err("a problem").reason().to_string()
        };
        let why = late("exec sleep 60", false);
        assert!(why.starts_with("the command does not end within 60 s"));
        let why = late("true", true);
        assert!(why.starts_with("the client goes on after the end of the command"));
    }

    /// Returns a connection with an NFS server, and that server's end of it.
    fn backend() -> (Backend, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let backend = Backend::new(address).expect("a connection");
        (backend, listener.accept().expect("a connection").0)
    }

    #[test]
    fn the_end_of_the_nfs_server_is_an_error_behind_its_records() {
        let (mut backend, mut server) = backend();
        assert_eq!(backend.next(), Ok(None));
        let records = [LAST | 4, 7, LAST | 4, 8];
        server.write_all(&wire::words(&records)).expect("a socket");
        drop(server);
        assert!(engine::wait_readable(
            &[backend.stream.as_raw_fd()],
            Instant::now() + Duration::from_secs(10)
        ));
        assert_eq!(backend.next(), Ok(Some(wire::words(&[7]))));
        assert_eq!(backend.next(), Ok(Some(wire::words(&[8]))));
        let why = backend.next().expect_err("the end");
        assert!(why.contains("has closed"), "{why}");
    }

    // More than both sockets hold: whoever only sends would wait for ever.
    #[test]
    fn calls_do_not_wait_for_an_nfs_server_that_does_not_read() {
        let (mut backend, mut server) = backend();
        let call: Vec<u8> = (0..RECORD_MAX).map(|at| at as u8).collect();
        for _ in 0..4 {
            backend.send(&call);
            assert_eq!(backend.next(), Ok(None));
        }
        assert!(!backend.unsent.is_empty());
        let reader = thread::spawn(move || {
            let mut octets = vec![0; 4 * (4 + RECORD_MAX)];
            server.read_exact(&mut octets).map(|()| (server, octets))
        });
        while !backend.unsent.is_empty() {
            assert_eq!(backend.next(), Ok(None));
        }
        let (_server, octets) = reader.join().expect("no panic").expect("all octets");
        let sent = [wire::words(&[LAST | RECORD_MAX as u32]), call].concat();
        assert!(octets.chunks(sent.len()).all(|chunk| chunk == sent));
    }

    #[test]
    fn records_are_joined_from_fragments() {
        let (mut backend, _server) = backend();
        backend.arrived = wire::words(&[4, 1, LAST | 8, 2, 3, LAST | 4]);
        assert_eq!(backend.record(), Ok(Some(wire::words(&[1, 2, 3]))));
        assert_eq!(backend.record(), Ok(None));
        backend.arrived.extend([0, 0, 0, 9]);
        assert_eq!(backend.record(), Ok(Some(wire::words(&[9]))));
        backend.arrived = wire::words(&[u32::MAX]);
        assert!(backend.record().is_err());
    }

    #[test]
    fn the_server_without_nfs_answers_null_only() {
        let status = |procedure| wire::parse_reply(&execute(&call(procedure))).map(|found| found.1);
        assert_eq!(status(NFS), Ok(wire::Status::Success(Vec::new())));
        assert_eq!(status(BIND), Ok(wire::Status::Success(Vec::new())));
        let compound = Procedure {
            number: COMPOUND,
            ..NFS
        };
        assert_eq!(status(compound), Ok(wire::Status::ProcUnavail));
    }
}
