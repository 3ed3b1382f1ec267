// SPDX-License-Identifier: GPL-2.0

//! The suite's own test server: it speaks RPC-over-RDMA versions 1 and 2 as the RFCs and the draft
//! demand, and for each requirement it has a switch with which it does not. Only tests use it.
//!
//! It listens at one port for each fault, the first one without any. `--test` runs the suite
//! against it: without faults every case passes (rfc8797/4.1/5 does not apply, because the server
//! sets R), each case fails with its own fault, and none fails with a harmless one. With `--mortal`
//! it has one fault, and ends where it otherwise plays dead.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io::Read;
use std::io::Write;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use rpcrdma_conformance::case::Case;
use rpcrdma_conformance::case::Need;
use rpcrdma_conformance::case::Outcome;
use rpcrdma_conformance::case::Problem;
use rpcrdma_conformance::case::Verdict;
use rpcrdma_conformance::cases;
use rpcrdma_conformance::cli;
use rpcrdma_conformance::engine::Arrival;
use rpcrdma_conformance::engine::Connection;
use rpcrdma_conformance::engine::Listener;
use rpcrdma_conformance::engine::Message;
use rpcrdma_conformance::engine::Offer;
use rpcrdma_conformance::engine::Request;
use rpcrdma_conformance::mount;
use rpcrdma_conformance::nfs;
use rpcrdma_conformance::nfs3;
use rpcrdma_conformance::peer::Server;
use rpcrdma_conformance::peer::Service;
use rpcrdma_conformance::peer::ECHO;
use rpcrdma_conformance::peer::NFS;
use rpcrdma_conformance::run;
use rpcrdma_conformance::self_test::side_by_side;
use rpcrdma_conformance::self_test::Expected;
use rpcrdma_conformance::self_test::Results;
use rpcrdma_conformance::session::NO_CALLBACKS;
use rpcrdma_conformance::trace::Trace;
use rpcrdma_conformance::wire;
use rpcrdma_conformance::wire::words;
use rpcrdma_conformance::wire::Header;
use rpcrdma_conformance::wire::Private;
use rpcrdma_conformance::wire::Procedure;
use rpcrdma_conformance::wire::ReadSegment;
use rpcrdma_conformance::wire::Reader;
use rpcrdma_conformance::wire::Segment;
use rpcrdma_conformance::wire::Transport;
use rpcrdma_conformance::wire::Writer;

/// How many calls may be under way.
const GRANT: u32 = 32;
/// How many of them are left when the grant has fallen.
const FEW: u32 = 4;
/// The sizes that the server offers.
const SIZE: usize = 4096;
/// The longest call that is read by a Read chunk.
const CALL_MAX: usize = 1 << 20;
/// The one file of its NFS, in the root; other names that begin so are links to it. The file handle
/// of the root is zero, that of the file one. Of symbolic links, only the last target is kept.
const FILE: &str = "scratch";
/// The longest credential and verifier (RFC 5531, section 8.2).
const AUTH_MAX: usize = 400;
/// Faults that are allowed answers, each with the words by which a case accepts it. Such a case
/// still passes, or finds the server to lack what is no failure.
const ALLOWED: [(&str, &str); 31] = [
    ("header-xid", "SUCCESS with XID X"),
    ("system-errors", "SYSTEM_ERR"),
    ("nfs-errors", "an error of NFS"),
    ("takes-one-write-chunk", "need take only one chunk"),
    ("ends-at-write-chunks", "need take only one chunk"),
    (NO_WRITE_CHUNKS, "need take no Write chunks"),
    ("short-reads", "READ of less"),
    ("takes-no-empty-segments", "need not take empty segments"),
    (
        "takes-sixteen-segments",
        "ERR_CHUNK or GARBAGE_ARGS to more",
    ),
    ("answers-replies", "ERR_CHUNK or nothing"),
    ("ends-connections", "the end of this connection"),
    ("ends-behind-errors", "ERR_CHUNK;"),
    ("ends-behind-errors", "ERR_CHUNK,"),
    ("ends-behind-errors", "ERR_CHUNK or"),
    ("ends-behind-errors", "ERR_VERS in"),
    ("ends-behind-errors", "ERR_VERS 1..2"),
    ("ends-behind-errors", "BAD_HEADER;"),
    ("ends-behind-errors", "BAD_HEADER,"),
    ("ends-behind-errors", "BAD_HEADER or"),
    ("ends-behind-errors", "INVALID_OPTION;"),
    ("ends-behind-replies", "ERR_CHUNK or nothing"),
    ("ends-behind-replies", "BAD_HEADER or nothing"),
    ("garbage-args", "GARBAGE_ARGS"),
    ("auth-errors", "AUTH_ERROR"),
    ("silence", "or nothing"),
    ("lowers-grants", "the grant may fall"),
    ("no-links", "need not have symbolic links"),
    ("trusts-options", "or INVALID_OPTION"),
    ("keeps-version", "need not take both versions"),
    ("empties-unused-chunks", "or an empty one"),
    ("refuses-needless-chunks", "need not take that chunk"),
];
/// Allowed only for a program other than NFS of which the suite knows no procedure except NULL.
const NO_WRITE_CHUNKS: &str = "takes-no-write-chunks";
/// With this fault the server of NFS executes `OPERATIONS` operations of a COMPOUND, and answers the
/// next one with NFS4ERR_RESOURCE. No case may fail with it.
const FEW_OPERATIONS: &str = "few-operations";
const OPERATIONS: u32 = 16;
/// Faults that make the server do what RFC 8881 allows where a delegation is recalled: it calls
/// CB_NULL before it grants one, or the conflicting WRITE waits.
const OF_DELEGATIONS: [&str; 2] = ["probes-callbacks", "holds-writes"];
/// The beginning of `sends` of such a case.
const DELEGATION: &str = "OPEN for a delegation";
/// How many delegations a session has at most.
const DELEGATIONS: u32 = 3;
/// How long that WRITE waits at most.
const HOLD: Duration = Duration::from_secs(5);
/// The beginning of the words about what a server need not have.
const LACKS: &str = "need ";
/// Faults that only a server of NFS has.
const OF_NFS: [&str; 5] = [
    "no-links",
    "nfs-errors",
    "takes-one-write-chunk",
    "ends-at-write-chunks",
    FEW_OPERATIONS,
];
/// The XIDs of its callbacks begin here.
const CALLBACK_XID: u32 = 0x6362_0000;
/// The XID of CB_NULL.
const PROBE_XID: u32 = CALLBACK_XID - 1;
/// The number of the callback program.
const CALLBACKS: u32 = 0x4000_0000;

/// The state that all connections of one listener share.
struct Shared {
    fault: &'static str,
    /// The program ends when the server dies.
    mortal: bool,
    /// Until when the server plays dead.
    dead: Mutex<Option<Instant>>,
    /// The largest settings of any connection.
    settings: Mutex<Option<Private>>,
    /// XIDs of all connections.
    xids: Mutex<BTreeSet<u32>>,
    file: Mutex<Vec<u8>>,
    symbolic: Mutex<Vec<u8>>,
    /// How many delegations of the file a session has.
    delegated: AtomicU32,
    /// A WRITE conflicts with the delegations.
    recall: AtomicBool,
    /// XIDs of calls whose chunks could not be written.
    failed: Mutex<BTreeSet<u32>>,
}

impl Shared {
    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }

    fn die(&self) {
        if self.mortal {
            std::process::exit(1);
        }
        if let Ok(mut dead) = self.dead.lock() {
            *dead = Some(Instant::now() + Duration::from_secs(2));
        }
    }

    fn is_dead(&self) -> bool {
        self.dead
            .lock()
            .is_ok_and(|dead| dead.is_some_and(|until| Instant::now() < until))
    }
}

/// One connection.
struct Responder {
    shared: Arc<Shared>,
    connection: Connection,
    /// The client's offer.
    client: Private,
    invalidates: bool,
    last_xid: Option<u32>,
    last_handle: Option<u32>,
    /// The version of the message that is handled, and the credits that it requests.
    version: u32,
    requested: u32,
    /// How many octets are from the beginning of the call's Read chunk to the end of the call. None
    /// if the chunk was an eligible argument.
    reduced: Option<usize>,
    errors: usize,
    discarded: usize,
    messages: u32,
    calls: u32,
    /// Whether its session of NFS 4.1 has callbacks on this connection.
    callbacks: bool,
    /// The server knows that it can call back: CB_NULL has its reply, or is not needed.
    can_call: bool,
    /// The XIDs of the callbacks that have no reply, by the slots of the session.
    outstanding: [Option<u32>; 2],
    /// How many callbacks each slot has had.
    sequences: [u32; 2],
    /// A callback has had a reply, which grants one credit.
    granted: bool,
    /// How many delegations are still to be recalled.
    recalls: u32,
    /// The status flags of SEQUENCE.
    flags: u32,
}

/// The session ends with its connection.
impl Drop for Responder {
    fn drop(&mut self) {
        if self.callbacks {
            self.shared.delegated.store(0, Relaxed);
            self.shared.recall.store(false, Relaxed);
        }
    }
}

/// The end of a connection.
struct Over;

/// A result that is eligible for direct data placement: its place in the results, and its length.
type Item = (usize, usize);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let all = faults();
    let (test, given, faults, mortal) = match &arguments[..] {
        [option, address] if option == "--test" => (true, address, &all[..], false),
        [option, address] if option == "--listen" => (false, address, &all[..], false),
        [option, fault, address] if option == "--mortal" => {
            let chosen = all.iter().position(|known| known == fault);
            let chosen = chosen.map_or(&[][..], |at| &all[at..=at]);
            (false, address, chosen, true)
        }
        _ => (false, &String::new(), &[][..], false),
    };
    if faults.is_empty() {
        eprintln!(
            "usage: faulty-server --listen ADDR:PORT | --test ADDR:PORT | --mortal FAULT ADDR:PORT"
        );
        return ExitCode::from(2);
    }
    let address = match cli::address(given) {
        Ok(address) => address,
        Err(why) => {
            eprintln!("faulty-server: {why}");
            return ExitCode::from(2);
        }
    };
    if test {
        return self_test(address);
    }
    let mut threads = Vec::new();
    for (number, &fault) in faults.iter().enumerate() {
        let mut at = address;
        at.set_port(address.port() + number as u16);
        let listener = match Listener::new(at) {
            Ok(listener) => listener,
            Err(why) => {
                eprintln!("faulty-server: {at}: {why}");
                return ExitCode::from(2);
            }
        };
        // Its rpcbind and its MOUNT have the same port, of TCP.
        match TcpListener::bind(at) {
            Ok(tcp) => {
                thread::spawn(move || serve_tcp(&tcp, fault));
            }
            Err(why) => {
                eprintln!("faulty-server: {at}: {why}");
                return ExitCode::from(2);
            }
        }
        threads.push((fault, listener));
    }
    println!("listening");
    let threads: Vec<_> = threads
        .into_iter()
        .map(|(fault, listener)| thread::spawn(move || listen(fault, mortal, &listener)))
        .collect();
    for thread in threads {
        let _ = thread.join();
    }
    ExitCode::SUCCESS
}

/// All faults of the cases, none at first, and the harmless ones at last. Their places are the ports.
fn faults() -> Vec<&'static str> {
    let mut faults = vec!["none"];
    for case in cases::server() {
        if !faults.contains(&case.fault) {
            faults.push(case.fault);
        }
    }
    for name in ALLOWED
        .map(|(name, _)| name)
        .into_iter()
        .chain(OF_DELEGATIONS)
        .chain([FEW_OPERATIONS])
    {
        if !faults.contains(&name) {
            faults.push(name);
        }
    }
    faults
}

/// Answers DUMP of rpcbind (RFC 1833), EXPORT, MNT and UMNT of MOUNT (RFC 1813), and NULL.
fn serve_tcp(listener: &TcpListener, fault: &str) {
    for mut stream in listener.incoming().flatten() {
        // The client ends the connection.
        while answer_tcp(&mut stream, fault).is_ok() {}
    }
}

fn answer_tcp(stream: &mut TcpStream, fault: &str) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut mark = [0; 4];
    stream.read_exact(&mut mark)?;
    let length = u32::from_be_bytes(mark) & 0xffff;
    let mut call = vec![0; length as usize];
    stream.read_exact(&mut call)?;
    let head = Reader::new(&call).array::<6>().unwrap_or_default();
    let procedure = Procedure {
        program: head[3],
        version: head[4],
        number: head[5],
    };
    let results = match procedure {
        mount::DUMP => dump(stream.local_addr()?.port(), fault),
        // One directory, which every host may mount, and the flavor AUTH_SYS.
        mount::EXPORT => Writer::new().word(1).opaque(b"/").words(&[0, 0]),
        mount::MNT => Writer::new().word(0).opaque(&handle(false)).words(&[1, 1]),
        _ => Writer::new(),
    };
    // PROG_UNAVAIL.
    let status = u32::from(fault == "no-nsm" && procedure == mount::NSM);
    let reply = Writer::new()
        .words(&[head[0], wire::REPLY, 0, 0, 0, status])
        .raw(&results.0);
    stream.write_all(&words(&[(1 << 31) | reply.0.len() as u32]))?;
    stream.write_all(&reply.0)
}

/// Returns the results of DUMP: NFS 3, MOUNT 3, NLM 4 and NSM 1 have this server's own port.
fn dump(own: u16, fault: &str) -> Writer {
    let other = own ^ u16::from(fault == "other-port");
    let mut entries = vec![(nfs3::NFS3, "rdma", other), (nfs3::NFS3, "rdma6", other)];
    for program in [mount::MNT, mount::NLM, mount::NSM] {
        match (fault, program) {
            ("no-mount-over-tcp", mount::MNT) | ("udp-nlm", mount::NLM) => {
                entries.push((program, "udp", own));
            }
            _ => entries.extend([(program, "tcp", own), (program, "tcp6", own)]),
        }
    }
    entries
        .iter()
        .fold(Writer::new(), |results, (procedure, netid, port)| {
            let address = format!("192.0.2.7.{}.{}", port >> 8, port & 0xff);
            results
                .words(&[1, procedure.program, procedure.version])
                .opaque(netid.as_bytes())
                .opaque(address.as_bytes())
                .opaque(b"superuser")
        })
        .word(0)
}

/// Returns the file handle of the file, or of the root.
fn handle(at_file: bool) -> Vec<u8> {
    words(&[u32::from(at_file)])
}

fn listen(fault: &'static str, mortal: bool, listener: &Listener) {
    let shared = Arc::new(Shared {
        fault,
        mortal,
        dead: Mutex::default(),
        settings: Mutex::default(),
        xids: Mutex::default(),
        file: Mutex::default(),
        symbolic: Mutex::default(),
        delegated: AtomicU32::new(0),
        recall: AtomicBool::new(false),
        failed: Mutex::default(),
    });
    loop {
        let Some(request) = listener.next(Duration::from_secs(3600)) else {
            continue;
        };
        if shared.is_dead() {
            request.reject(&[]);
            continue;
        }
        let shared = shared.clone();
        thread::spawn(move || serve(shared, request));
    }
}

/// Finds the client's message.
fn offer_of(shared: &Shared, private: &[u8]) -> Private {
    let at = |offset: usize| Private {
        flags: private.get(offset + 5).copied().unwrap_or(0xff),
        send: private.get(offset + 6).copied().unwrap_or(0xff),
        receive: private.get(offset + 7).copied().unwrap_or(0xff),
    };
    let identifier = private.windows(4).position(|window| window == wire::FORMAT);
    let none = if shared.has("default-large") {
        Private::new(262_144, 262_144, true)
    } else {
        Private::new(1024, 1024, false)
    };
    match (Private::find(private), identifier) {
        (Some((offset, _)), _) if offset > 0 && shared.has("offset-0-only") => none,
        (Some((offset, _)), _)
            if shared.has("exact-length")
                && private[offset + 8..].iter().any(|&octet| octet != 0) =>
        {
            none
        }
        (None, Some(offset)) if shared.has("any-message-version") => at(offset),
        (None, Some(offset)) if shared.has("overruns") && offset + 8 > private.len() => at(offset),
        (Some((_, found)), _) if shared.has("rejects-reserved") && found.flags > 1 => none,
        (Some((_, found)), _) => found,
        (None, _) => none,
    }
}

fn serve(shared: Arc<Shared>, request: Request) {
    let mut client = offer_of(&shared, &request.private);
    if shared.has("rejects-large-sizes") && client.receive == 255
        || shared.has("rejects-long-private-data")
            && request.private.last().is_some_and(|&octet| octet != 0)
    {
        request.reject(&[]);
        return;
    }
    if shared.has("settings-stay") {
        if let Ok(mut settings) = shared.settings.lock() {
            let most = settings.get_or_insert(client);
            if client.receive > most.receive {
                *most = client;
            }
            client = *most;
        }
    }
    let own_r = !shared.has("hidden-r");
    let mut private = Private::new(SIZE, SIZE, own_r).octets();
    if shared.has("rep-reserved") {
        private[5] |= 0x40;
    }
    if shared.has("rep-little-endian") {
        private[..4].reverse();
    }
    let r = if shared.has("any-flag-is-r") {
        client.flags != 0
    } else {
        client.invalidation()
    };
    let few = shared.has("grants-too-many");
    let offer = Offer {
        private,
        // One more for each message that is discarded before the next one is read.
        receives: if few { 2 } else { 2 * GRANT as usize },
        receive_size: match shared.fault {
            "small-receives" => 2048,
            "tiny-receives" => 1000,
            _ => SIZE,
        },
        rnr_retries: if few { 0 } else { 7 },
        ..Offer::default()
    };
    let Ok(connection) = request.accept(&offer, &Trace::quiet()) else {
        return;
    };
    let mut responder = Responder {
        invalidates: r,
        can_call: !shared.has("probes-callbacks"),
        shared,
        connection,
        client,
        last_xid: None,
        last_handle: None,
        version: 1,
        requested: 0,
        reduced: None,
        errors: 0,
        discarded: 0,
        messages: 0,
        calls: 0,
        callbacks: false,
        outstanding: [None; 2],
        sequences: [0; 2],
        granted: false,
        recalls: 0,
        flags: 0,
    };
    loop {
        if responder.shared.is_dead() {
            return;
        }
        if responder.callbacks && !responder.can_call && responder.probe().is_err() {
            return;
        }
        if responder.callbacks && responder.call_back().is_err() {
            return;
        }
        match responder.connection.receive(Duration::from_millis(100)) {
            Arrival::Message(message) => {
                let messages = responder.with_others(message);
                let handle = |message: &Message| responder.message(&message.octets);
                if messages
                    .and_then(|all| all.iter().try_for_each(handle))
                    .is_err()
                {
                    if responder.has("dies-of-disconnects") {
                        responder.shared.die();
                    }
                    return;
                }
            }
            Arrival::Closed(why) => {
                let harmed = responder.last_xid.is_some() || why.contains("failed");
                if responder.has("dies-of-disconnects") && harmed {
                    responder.shared.die();
                }
                return;
            }
            Arrival::Nothing => (),
        }
    }
}

impl Responder {
    fn has(&self, fault: &str) -> bool {
        self.shared.has(fault)
    }

    fn send(&mut self, octets: &[u8], key: Option<u32>) -> Result<(), Over> {
        let start = Instant::now();
        let sent = match key {
            Some(key) => self.connection.send_invalidate(key, octets),
            None => self.connection.send(octets),
        };
        if self.has("dies-of-slow-replies") && start.elapsed() > Duration::from_millis(300) {
            self.shared.die();
            return Err(Over);
        }
        sent.map_err(|_| Over)
    }

    /// Sends an RDMA_ERROR.
    fn error(&mut self, xid: u32, version: u32, rest: &[u32]) -> Result<(), Over> {
        self.errors += 1;
        if self.has("errors-use-receives") && self.errors > 30 {
            return Err(Over);
        }
        if self.has("drops-malformed") {
            return Ok(());
        }
        let xid = xid ^ u32::from(self.has("wrong-error-xid"));
        let mut octets = words(&[xid, version, self.grant(self.requested), wire::ERROR]);
        octets.extend(words(rest));
        self.send(&octets, None)?;
        if self.has("ends-behind-errors") {
            return Err(Over);
        }
        Ok(())
    }

    fn err_chunk(&mut self, xid: u32) -> Result<(), Over> {
        // Behind the XID and the type of a reply (RFC 5531, section 9).
        let rest: &[u32] = match self.shared.fault {
            "ends-connections" => return Err(Over),
            "silence" => return Ok(()),
            "garbage-args" => &[0, 0, 0, 4],
            "system-errors" => &[0, 0, 0, 5],
            // SUCCESS of a COMPOUND that fails, without a tag and results.
            "nfs-errors" => &[0, 0, 0, 0, nfs::RESOURCE, 0, 0],
            // AUTH_BADCRED
            "auth-errors" => &[1, 1, 1],
            _ => return self.error(xid, self.version, &[wire::ERR_CHUNK]),
        };
        let header = Header {
            version: self.version,
            direction: wire::REPLY,
            credits: GRANT,
            ..Header::msg(xid)
        };
        let reply = Writer::new().words(&[xid, wire::REPLY]).words(rest);
        self.send(&header.with(&reply.0), None)
    }

    fn discard(&mut self, fault: &str, xid: u32) -> Result<(), Over> {
        self.discarded += 1;
        if self.has("discards-use-receives") && self.discarded > 16 {
            return Err(Over);
        }
        if self.has("ends-connections") && fault == "answers-replies" {
            return Err(Over);
        }
        if self.has("ends-behind-replies") && fault == "answers-replies" {
            self.err_chunk(xid)?;
            return Err(Over);
        }
        let garbage = self.has("garbage-args") && fault == "answers-replies";
        if self.has(fault) || garbage {
            return self.err_chunk(xid);
        }
        Ok(())
    }

    /// Returns the grant to a request.
    fn grant(&self, requested: u32) -> u32 {
        match self.shared.fault {
            "grants-zero" => 0,
            "grants-as-requested" => requested,
            "grants-too-many" => 2 * GRANT,
            _ if self.grants_few() => FEW,
            _ => GRANT,
        }
    }

    /// Whether the grant has fallen.
    fn grants_few(&self) -> bool {
        self.has("lowers-grants") && self.messages > GRANT
    }

    /// Returns a message, and those that follow it at once if the grant has fallen. No more may
    /// then follow than are granted.
    fn with_others(&mut self, message: Message) -> Result<Vec<Message>, Over> {
        let mut messages = vec![message];
        if self.grants_few() {
            thread::sleep(Duration::from_millis(50));
            while let Arrival::Message(message) = self.connection.receive(Duration::ZERO) {
                messages.push(message);
            }
            if messages.len() > FEW as usize {
                return Err(Over);
            }
        }
        Ok(messages)
    }

    /// Handles a message (RFC 8166, section 4.5).
    fn message(&mut self, octets: &[u8]) -> Result<(), Over> {
        self.messages += 1;
        let word = |at: usize| {
            octets
                .get(4 * at..4 * at + 4)
                .and_then(|word| word.try_into().ok())
                .map_or(0, u32::from_be_bytes)
        };
        let (xid, version, procedure) = (word(0), word(1), word(3));
        if procedure == wire::ERROR && self.completes(xid) {
            if self.has("dies-of-callback-errors") {
                self.shared.die();
                return Err(Over);
            }
            return Ok(());
        }
        if octets.len() < 28 {
            return self.discard("answers-short", xid);
        }
        let other = self.has("keeps-version") && self.messages > 1 && version != self.version;
        self.version = version;
        self.requested = word(2);
        self.reduced = None;
        let two = version == 2;
        if two && self.has("drops-version-2") {
            return Ok(());
        }
        if version != 1 && !two && !self.has("ignores-version") || other {
            let vers = if self.has("error-in-version-1") {
                1
            } else {
                version
            };
            let range = if self.has("wrong-versions") {
                [wire::ERR_VERS, 2, 300]
            } else {
                [
                    wire::ERR_VERS,
                    1,
                    1 + u32::from(!self.has("hides-version-2")),
                ]
            };
            return self.error(xid, vers, &range);
        }
        if two {
            if let Some(result) = self.version_2(octets, xid, procedure, word(4)) {
                return result;
            }
        }
        match procedure {
            wire::DONE if two => return self.err_chunk(xid),
            wire::DONE => return self.discard("answers-done", xid),
            wire::ERROR => return self.discard("answers-errors", xid),
            _ => (),
        }
        let mut octets = octets.to_vec();
        // The lists begin behind four words, or five. Their first word that is not zero is a flag.
        let fixed = 4 + usize::from(two);
        let mut lists = octets.chunks_exact_mut(4).skip(fixed).take(3);
        if let (true, Some(flag)) = (self.has("any-boolean"), lists.find(|word| **word != [0; 4])) {
            flag.copy_from_slice(&1_u32.to_be_bytes());
        }
        let Ok(Transport::Chunks(header, inline)) = Transport::parse(&octets) else {
            return self.err_chunk(xid);
        };
        self.call(&header, inline)
    }

    /// Whether a callback has this XID, which has its reply now.
    fn completes(&mut self, xid: u32) -> bool {
        let mut slots = self.outstanding.iter_mut();
        let found = slots.find(|slot| **slot == Some(xid));
        found.is_some_and(|slot| slot.take().is_some())
    }

    /// Handles what only version 2 has: options and directions (the draft, sections 3.1 and 4.2.2).
    fn version_2(
        &mut self,
        octets: &[u8],
        xid: u32,
        procedure: u32,
        direction: u32,
    ) -> Option<Result<(), Over>> {
        if procedure == wire::ERROR {
            return None;
        }
        if procedure == wire::OPTIONAL {
            let mut reader = Reader::new(&octets[16..]);
            let mut valid = || {
                let direction = reader.word()?;
                reader.word()?;
                let before = reader.rest();
                let length = reader.opaque()?.len();
                let padding = &before[4 + length..4 + wire::roundup(length)];
                Ok::<_, String>(direction < 2 && padding.iter().all(|&octet| octet == 0))
            };
            return Some(match valid() {
                _ if self.has("drops-options") => Ok(()),
                Ok(true) => self.error(xid, 2, &[wire::INVALID_OPTION]),
                _ if self.has("trusts-options") => self.error(xid, 2, &[wire::INVALID_OPTION]),
                _ if direction == wire::REPLY => self.discard("answers-options", xid),
                _ => self.err_chunk(xid),
            });
        }
        if self.has("any-direction") {
            return None;
        }
        match direction {
            wire::CALL => None,
            wire::REPLY => Some(self.discard("answers-replies", xid)),
            _ => Some(self.err_chunk(xid)),
        }
    }

    fn call(&mut self, header: &Header, inline: Vec<u8>) -> Result<(), Over> {
        let xid = header.xid;
        let reads = &header.reads;
        if reads.iter().any(|read| read.position % 4 != 0) && !self.has("odd-positions") {
            return self.err_chunk(xid);
        }
        if reads.iter().any(|read| read.position % 4 != 0) {
            // With that fault the segment counts as one that is not there.
            let mut other = header.clone();
            other.reads.clear();
            return self.call(&other, inline);
        }
        let chunks = header.writes.iter().chain(&header.reply);
        let segments = chunks.map(Vec::len).chain([reads.len()]).max();
        match (self.shared.fault, segments.unwrap_or_default()) {
            ("ends-at-segments", 20..) => return Err(Over),
            ("takes-eight-segments", 9..) | ("takes-sixteen-segments", 17..) => {
                return self.err_chunk(xid);
            }
            _ => (),
        }
        let payload = if header.procedure == wire::NOMSG && !self.has("nomsg-is-msg") {
            let (zero, others): (Vec<_>, Vec<_>) = reads
                .iter()
                .copied()
                .partition(|read: &ReadSegment| read.position == 0);
            let mut segments: Vec<_> = zero.iter().map(|read| read.segment).collect();
            if segments.is_empty() || self.has("one-read-chunk") && !others.is_empty() {
                return self.err_chunk(xid);
            }
            if self.has("no-long-calls") {
                return self.err_chunk(xid);
            }
            if self.has("drops-long-calls") {
                return Ok(());
            }
            if self.has("first-segment-only") {
                segments.truncate(1);
            }
            let rest = self.read(&segments)?;
            rest.map_or(Ok(None), |rest| self.insert(&others, rest))?
        } else {
            self.insert(reads, inline)?
        };
        let Some(payload) = payload else {
            return self.err_chunk(xid);
        };
        let mut reader = Reader::new(&payload);
        let (Ok(payload_xid), Ok(message_type)) = (reader.word(), reader.word()) else {
            return self.err_chunk(xid);
        };
        if self.has("small-version-2") && header.version == 2 && payload.len() > 1000 {
            return self.err_chunk(xid);
        }
        let inline_reply = message_type == wire::REPLY && header.procedure == wire::MSG;
        if inline_reply && header.version == 1 && !self.has("any-message-type") {
            if self.has("loses-replies") && self.outstanding.contains(&Some(xid)) {
                return Ok(());
            }
            if !self.completes(xid) {
                return self.discard("answers-replies", xid);
            }
            self.can_call = true;
            self.granted = true;
            // The status of an accepted reply is its sixth word.
            let refused = payload.get(20..24) != Some(&[0; 4]);
            if refused && self.has("dies-of-refused-calls") {
                self.shared.die();
                return Err(Over);
            }
            if refused {
                self.flags = NO_CALLBACKS;
            }
            return Ok(());
        }
        if self.has("one-xid-space") && self.completes(xid) {
            // The callback never gets its reply then.
            self.outstanding[0] = Some(!xid);
        }
        if message_type > wire::REPLY && !self.has("any-message-type") {
            return self.discard("answers-replies", xid);
        }
        let call = message_type == wire::CALL || self.has("any-message-type");
        let any_xid = self.has("no-xid-check") || self.has("header-xid");
        if payload_xid != xid && !any_xid || !call {
            return self.err_chunk(xid);
        }
        self.calls += 1;
        if self.has("dies-of-excess") && self.calls > GRANT {
            self.shared.die();
            return Err(Over);
        }
        if self.has("dies-of-duplicates") && self.last_xid == Some(xid) {
            self.shared.die();
            return Err(Over);
        }
        let known = self
            .shared
            .xids
            .lock()
            .is_ok_and(|mut xids| !xids.insert(xid));
        if known && self.has("ends-connections") {
            return Err(Over);
        }
        if known && self.has("silence") {
            return Ok(());
        }
        if known && self.has("refuses-old-calls") {
            return self.err_chunk(xid);
        }
        self.last_xid = Some(xid);
        if self
            .shared
            .failed
            .lock()
            .is_ok_and(|failed| failed.contains(&xid))
        {
            return self.err_chunk(xid);
        }
        let reply_xid = match self.shared.fault {
            "wrong-xid" => xid ^ 1,
            "no-xid-check" => payload_xid,
            _ => xid,
        };
        let mut reply = Writer::new().words(&[reply_xid, wire::REPLY]);
        let mut items = Vec::new();
        reply = match self.execute(&mut reader, &mut items) {
            Ok(Execution::Denied(rest)) => reply.word(1).words(&rest),
            Ok(Execution::Accepted(status, results)) => {
                reply.words(&[0, 0, 0]).words(&status).raw(&results)
            }
            Err(_) if self.has("drops-garbage") => return Ok(()),
            Err(_) => reply.words(&[0, 0, 0, 4]),
        };
        self.reply(header, reply.0, &items)
    }

    /// Puts the data of a Read chunk at its Position (RFC 8166, section 3.4.5). Returns none if that
    /// has to be refused.
    fn insert(&mut self, reads: &[ReadSegment], inline: Vec<u8>) -> Result<Option<Vec<u8>>, Over> {
        if reads.is_empty() || self.has("ignores-reads") || self.has("any-boolean") {
            return Ok(Some(inline));
        }
        // The data of WRITE is eligible for direct data placement, and no argument of ECHO. Of
        // other programs this server does not know that.
        if inline.get(12..16) == Some(&ECHO.program.to_be_bytes()) {
            return Ok(None);
        }
        let position = if self.has("ignores-positions") {
            inline.len()
        } else {
            reads[0].position as usize
        };
        let mut segments: Vec<_> = reads.iter().map(|read| read.segment).collect();
        if self.has("first-segment-only") {
            segments.truncate(1);
        }
        if position > inline.len() || reads.iter().any(|read| read.position != reads[0].position) {
            return Ok(None);
        }
        let Some(mut data) = self.read(&segments)? else {
            return Ok(None);
        };
        if self.has("wants-padding") && data.len() % 4 != 0 {
            return Ok(None);
        }
        if self.has("loses-read-chunks") {
            data.fill(0);
        }
        if !self.has("inserts-no-padding") {
            data.resize(wire::roundup(data.len()), 0);
        }
        let (before, behind) = inline.split_at(position);
        if let (true, Some(count)) = (self.has("fills-short-chunks"), before.last_chunk()) {
            data.resize(u32::from_be_bytes(*count) as usize, 0);
        }
        self.reduced = Some(data.len() + behind.len());
        Ok(Some([before, &data, behind].concat()))
    }

    /// Reads an argument that is eligible for direct data placement.
    fn eligible<'a>(&mut self, reader: &mut Reader<'a>) -> Result<&'a [u8], String> {
        self.reduced
            .take_if(|behind| *behind + 4 == reader.rest().len());
        reader.opaque()
    }

    /// `Err` if the Read chunk was another argument. This server has executed the call then.
    fn used(&self) -> Result<(), String> {
        match self.reduced {
            Some(_) if !self.has("takes-any-argument") => Err("it is not eligible".into()),
            _ => Ok(()),
        }
    }

    fn length(&self) -> Result<u64, String> {
        let file = self.shared.file.lock().map_err(|why| why.to_string())?;
        Ok(file.len() as u64)
    }

    /// Returns whether the data ends the file, and the data.
    fn read_file(&self, offset: usize, length: usize) -> Result<(bool, Vec<u8>), String> {
        let file = self.shared.file.lock().map_err(|why| why.to_string())?;
        let start = offset.min(file.len());
        let length = if self.has("short-reads") {
            length.min(900)
        } else {
            length
        };
        let end = start.saturating_add(length).min(file.len());
        Ok((end == file.len(), file[start..end].to_vec()))
    }

    /// Returns how many octets were written. With a fault that cuts them, it tells of all.
    fn write_file(&self, offset: usize, data: &[u8]) -> Result<u32, String> {
        let mut data = data.to_vec();
        let told = data.len() as u32;
        match self.shared.fault {
            "takes-padding" => data.resize(wire::roundup(data.len()), 0),
            "cuts-inline-writes" if data.len() < 1000 => {
                data.truncate(data.len().saturating_sub(4));
            }
            "cuts-full-writes" if (3500..4500).contains(&data.len()) => {
                data.truncate(data.len() - 4);
            }
            _ => (),
        }
        let mut file = self.shared.file.lock().map_err(|why| why.to_string())?;
        let end = offset.saturating_add(data.len()).min(CALL_MAX);
        let length = file.len().max(end);
        file.resize(length, 0);
        file[offset.min(end)..end].copy_from_slice(&data[..end - offset.min(end)]);
        Ok(told.max(data.len() as u32))
    }

    /// Executes a procedure of NFS 3 (RFC 1813, section 3.3). Adds to `items` like `compound`.
    fn nfs_3(
        &mut self,
        procedure: u32,
        reader: &mut Reader<'_>,
        items: &mut Vec<Item>,
    ) -> Result<Vec<u8>, String> {
        let at_file = reader.opaque()? == handle(true);
        // fattr3; used is zero, fileid is one.
        let attributes = Writer::new()
            .words(&[1, 0o644, 1, 0, 0])
            .hyper(self.length()?)
            .words(&[0; 6])
            .hyper(1)
            .words(&[0; 6]);
        let results = match procedure {
            nfs3::GETATTR => {
                if self.has("reduces-fattr3") {
                    items.push((4, attributes.0.len()));
                }
                Writer::new().word(0).raw(&attributes.0)
            }
            nfs3::LOOKUP => match reader.opaque()? {
                name if name.starts_with(FILE.as_bytes()) && !at_file => Writer::new()
                    .word(0)
                    .opaque(&handle(true))
                    .word(1)
                    .raw(&attributes.0)
                    .word(0),
                _ => Writer::new().words(&[nfs::NOENT, 0]),
            },
            nfs3::READ => {
                let (offset, length) = (reader.hyper()? as usize, reader.word()? as usize);
                let (eof, data) = self.read_file(offset, length)?;
                items.push((20, data.len()));
                Writer::new()
                    .words(&[0, 0, data.len() as u32, u32::from(eof)])
                    .opaque(&data)
            }
            _ => {
                let offset = reader.hyper()? as usize;
                reader.array::<2>()?;
                let data = self.eligible(reader)?;
                let count = self.write_file(offset, data)?;
                // No wcc_data; FILE_SYNC, and the verifier.
                Writer::new().words(&[0, 0, 0, count, 2, 0, 0])
            }
        };
        self.used()?;
        Ok(results.0)
    }

    /// Executes COMPOUND of NFS 4.0 or 4.1 (RFC 7530, RFC 8881), as far as the suite needs it. Adds
    /// to `items` the data of each READ.
    fn compound(
        &mut self,
        reader: &mut Reader<'_>,
        items: &mut Vec<Item>,
    ) -> Result<Vec<u8>, String> {
        let tag = reader.opaque()?.to_vec();
        let (_minor, count) = (reader.word()?, reader.word()?);
        let mut results = Writer::new();
        let (mut status, mut done) = (0, 0);
        let mut at_file = false;
        while done < count && status == 0 {
            let operation = reader.word()?;
            let mut body = Writer::new();
            done += 1;
            match operation {
                _ if self.has(FEW_OPERATIONS) && done > OPERATIONS => status = nfs::RESOURCE,
                4 => {
                    reader.word()?;
                    body = body.raw(reader.raw(16)?);
                }
                6 => {
                    reader.word()?;
                    let target = self.eligible(reader)?.to_vec();
                    reader.opaque()?;
                    reader.array::<2>()?;
                    let mut symbolic =
                        self.shared.symbolic.lock().map_err(|why| why.to_string())?;
                    *symbolic = target;
                    status = if self.has("no-links") {
                        nfs::NOTSUPP
                    } else {
                        0
                    };
                    body = body.words(&[0; 5 + 1]);
                }
                8 => {
                    reader.raw(16)?;
                    let fewer = |count: u32| count.checked_sub(1);
                    let _ = self.shared.delegated.fetch_update(Relaxed, Relaxed, fewer);
                }
                9 => {
                    let asked = reader.word()?;
                    if reader.raw(4 * asked as usize)? == words(&[nfs::MOST]) {
                        let most = Writer::new().hyper(CALL_MAX as u64).hyper(CALL_MAX as u64);
                        body = body.words(&[1, nfs::MOST]).opaque(&most.0);
                        results = results.words(&[operation, 0]).raw(&body.0);
                        continue;
                    }
                    let attributes = Writer::new().hyper(self.length()?).hyper(1).words(&[0; 3]);
                    body = body.word(2).words(&nfs::ATTRIBUTES).opaque(&attributes.0);
                    if self.has("reduces-fattr4") {
                        let at = 12 + wire::roundup(tag.len()) + results.0.len() + 8 + 16;
                        items.push((at, attributes.0.len()));
                    }
                }
                10 => body = body.opaque(&handle(at_file)),
                15 => match reader.opaque()? {
                    name if name.starts_with(FILE.as_bytes()) && !at_file => at_file = true,
                    _ => status = nfs::NOENT,
                },
                17 => {
                    let words = reader.word()?;
                    reader.raw(4 * words as usize)?;
                    reader.opaque()?;
                }
                18 => {
                    let words = [reader.word()?, reader.word()?, reader.word()?];
                    reader.raw(8)?;
                    reader.opaque()?;
                    if reader.word()? == 1 {
                        reader.array::<3>()?;
                    }
                    reader.word()?;
                    reader.opaque()?;
                    at_file = true;
                    body = body.words(&[0; 4 + 6 + 1]);
                    let wanted = self.callbacks && self.can_call && words[1] & 0x100 != 0;
                    if wanted && self.shared.delegated.load(Relaxed) < DELEGATIONS {
                        self.shared.delegated.fetch_add(1, Relaxed);
                        // Its stateid, no recall, and an ACE.
                        body = body.word(1).words(&[0; 4 + 4]).opaque(b"");
                    } else {
                        body = body.word(0);
                    }
                }
                22 => at_file = reader.opaque()? == handle(true),
                24 => at_file = false,
                25 => {
                    reader.raw(16)?;
                    let (offset, length) = (reader.hyper()? as usize, reader.word()? as usize);
                    let (eof, data) = self.read_file(offset, length)?;
                    body = body.word(u32::from(eof)).opaque(&data);
                    let at = 12 + wire::roundup(tag.len()) + results.0.len() + 8 + 8;
                    items.push((at, data.len()));
                }
                27 => {
                    let symbolic = self.shared.symbolic.lock().map_err(|why| why.to_string())?;
                    body = body.opaque(&symbolic);
                    let at = 12 + wire::roundup(tag.len()) + results.0.len() + 8;
                    items.push((
                        at + 4 * usize::from(!self.has("moves-counts")),
                        symbolic.len(),
                    ));
                }
                28 => {
                    reader.opaque()?;
                    body = body.words(&[0; 5]);
                }
                34 => {
                    reader.raw(16)?;
                    reader.array::<2>()?;
                    let size = Reader::new(reader.opaque()?).hyper()?;
                    let mut file = self.shared.file.lock().map_err(|why| why.to_string())?;
                    file.truncate(size as usize);
                    body = body.words(&[1, 1 << 4]);
                }
                38 => {
                    reader.raw(16)?;
                    let offset = reader.hyper()? as usize;
                    reader.word()?;
                    let data = self.eligible(reader)?;
                    let start = Instant::now();
                    let delegated = || self.shared.delegated.load(Relaxed) > 0;
                    if delegated() {
                        self.shared.recall.store(true, Relaxed);
                    }
                    while self.has("holds-writes") && delegated() && start.elapsed() < HOLD {
                        thread::sleep(Duration::from_millis(10));
                    }
                    if delegated() {
                        status = nfs::DELAY;
                    } else {
                        let count = self.write_file(offset, data)?;
                        body = body.words(&[count, 2, 0, 0]);
                    }
                }
                42 => {
                    reader.raw(8)?;
                    reader.opaque()?;
                    reader.array::<3>()?;
                    // The client, its first sequence, no flags; no protection, no server's name.
                    body = body.words(&[0, 7, 1, 0, 0, 0, 0, 0, 0, 0]);
                }
                43 => {
                    reader.raw(8)?;
                    let (sequence, flags) = (reader.word()?, reader.word()?);
                    reader.array::<{ 7 + 7 + 3 }>()?;
                    self.callbacks = flags & 2 != 0;
                    body = body.words(&[0, 0, 0, 9, sequence, flags & 2]);
                    body = body.words(&[0, 4096, 4096, 1024, 16, 4, 0]);
                    body = body.words(&[0, 4096, 4096, 0, 2, 2, 0]);
                }
                44 => {
                    reader.raw(16)?;
                }
                53 => {
                    body = body.raw(reader.raw(16)?);
                    let words = reader.array::<4>()?;
                    body = body.words(&[words[0], words[1], words[2], words[2], self.flags]);
                }
                57 => {
                    reader.raw(8)?;
                }
                58 => {
                    reader.word()?;
                }
                _ => status = nfs::NOTSUPP,
            }
            if status != 0 {
                body = Writer::new();
            }
            results = results.words(&[operation, status]).raw(&body.0);
        }
        self.used()?;
        Ok(Writer::new()
            .word(status)
            .opaque(&tag)
            .word(done)
            .raw(&results.0)
            .0)
    }

    /// Calls CB_NULL, once (RFC 8881, section 19.1.3).
    fn probe(&mut self) -> Result<(), Over> {
        if self.outstanding != [None; 2] {
            return Ok(());
        }
        self.outstanding[0] = Some(PROBE_XID);
        let null = Procedure {
            program: CALLBACKS,
            version: 1,
            number: 0,
        };
        let call = wire::call(PROBE_XID, null, &[]);
        self.send(&Header::msg(PROBE_XID).with(&call), None)
    }

    /// Recalls the delegations, one after the other: the client grants one call.
    fn call_back(&mut self) -> Result<(), Over> {
        if self.shared.recall.swap(false, Relaxed) {
            self.recalls = self.shared.delegated.load(Relaxed);
        }
        let beyond = if self.granted {
            self.has("calls-beyond-grant")
        } else {
            self.has("assumes-credits")
        };
        while self.recalls > 0 {
            let slots = &self.outstanding[..1 + usize::from(beyond)];
            let Some(slot) = slots.iter().position(Option::is_none) else {
                break;
            };
            self.recall(slot)?;
            self.recalls -= 1;
        }
        Ok(())
    }

    /// Calls CB_COMPOUND of CB_SEQUENCE and CB_RECALL (RFC 8881, section 20) in a slot of the session.
    fn recall(&mut self, slot: usize) -> Result<(), Over> {
        self.sequences[slot] += 1;
        let sequence = self.sequences[slot];
        let xid = CALLBACK_XID + 2 * sequence + slot as u32;
        let procedure = Procedure {
            program: CALLBACKS,
            version: 1,
            number: 1,
        };
        let arguments = Writer::new()
            .words(&[0, 1, 0, 2, 11, 0, 0, 0, 9])
            .words(&[sequence, slot as u32, 1, 0, 0, 4])
            .words(&[0; 4 + 1])
            .opaque(&wire::words(&[1]));
        let rpc_xid = xid ^ u32::from(self.has("calls-with-other-xid"));
        let header = Header {
            version: 1 + u32::from(self.has("calls-in-version-2")),
            credits: u32::from(!self.has("calls-without-credit")),
            reply: self
                .has("calls-with-chunks")
                .then(|| vec![Segment::default()]),
            ..Header::msg(xid)
        };
        self.outstanding[slot] = Some(xid);
        self.send(
            &header.with(&wire::call(rpc_xid, procedure, &arguments.0)),
            None,
        )
    }

    /// Reads the octets of segments. Returns none if they are too many.
    fn read(&mut self, segments: &[Segment]) -> Result<Option<Vec<u8>>, Over> {
        let length: u64 = segments
            .iter()
            .map(|segment| u64::from(segment.length))
            .sum();
        if length > CALL_MAX as u64 {
            if self.has("dies-of-huge-chunks") {
                self.shared.die();
                return Err(Over);
            }
            return Ok(None);
        }
        let mut octets = Vec::new();
        for segment in segments.iter().filter(|segment| segment.length > 0) {
            match self
                .connection
                .read(segment.handle, segment.offset, segment.length as usize)
            {
                Ok(part) => octets.extend(part),
                Err(_) => {
                    if self.has("dies-of-access-errors") {
                        self.shared.die();
                    }
                    return Err(Over);
                }
            }
        }
        if self.has("fills-long-calls") {
            let first = segments.iter().take(8);
            let kept: usize = first.map(|segment| segment.length as usize).sum();
            octets.iter_mut().skip(kept).for_each(|octet| *octet = 0);
        }
        if self.has("takes-64-kib") {
            octets.iter_mut().skip(1 << 16).for_each(|octet| *octet = 0);
        }
        Ok(Some(octets))
    }

    /// Executes a call (RFC 5531), from behind its type. `Err` is GARBAGE_ARGS.
    fn execute(
        &mut self,
        reader: &mut Reader<'_>,
        items: &mut Vec<Item>,
    ) -> Result<Execution, String> {
        let accepted = |status: &[u32]| Ok(Execution::Accepted(status.to_vec(), Vec::new()));
        if reader.word()? != 2 && !self.has("any-rpc-version") {
            return Ok(Execution::Denied(vec![0, 2, 2]));
        }
        let (program, version, procedure) = (reader.word()?, reader.word()?, reader.word()?);
        let flavor = reader.word()?;
        let body = reader.opaque()?;
        let sys = || -> Result<(), String> {
            let mut reader = Reader::new(body);
            reader.word()?;
            reader.opaque()?;
            reader.word()?;
            reader.word()?;
            let count = reader.word()?;
            (count <= 16).then_some(()).ok_or("too many".into())
        };
        let good = match flavor {
            0 => true,
            1 => sys().is_ok() && !self.has("auth-none-only"),
            _ => false,
        };
        if !good && !self.has("any-flavor") {
            return Ok(Execution::Denied(vec![1, if flavor == 1 { 1 } else { 2 }]));
        }
        let too_long = |why: u32| match self.shared.fault {
            "garbage-args" => Err("too long".into()),
            _ => Ok(Execution::Denied(vec![1, why])),
        };
        if body.len() > AUTH_MAX && !self.has("any-length") {
            return too_long(1);
        }
        reader.word()?;
        if reader.opaque()?.len() > AUTH_MAX && !self.has("any-length") {
            return too_long(3);
        }
        match (program, version, procedure) {
            (100_003, 3, 0) if self.has("no-nfs-3") => return accepted(&[2, 4, 4]),
            (100_003, 3 | 4, 0) => {
                self.used()?;
                return accepted(&[0]);
            }
            (100_003, 3, nfs3::GETATTR | nfs3::LOOKUP | nfs3::READ | nfs3::WRITE) => {
                let results = self.nfs_3(procedure, reader, items)?;
                return Ok(Execution::Accepted(vec![0], results));
            }
            (100_003, 4, 1) => {
                return Ok(Execution::Accepted(vec![0], self.compound(reader, items)?))
            }
            (100_003, 3 | 4, _) => return accepted(&[3]),
            (100_003, ..) => return accepted(&[2, 3, 4]),
            _ => (),
        }
        if program != ECHO.program && !self.has("any-program") {
            return accepted(&[1]);
        }
        if version != ECHO.version && !self.has("any-program-version") {
            return accepted(&[2, ECHO.version, ECHO.version]);
        }
        match procedure {
            0 => accepted(&[0]),
            1 => {
                let octets = reader.opaque()?;
                let mut results = Writer::new().opaque(octets).0;
                if self.has("unpadded") {
                    results.truncate(4 + octets.len());
                }
                Ok(Execution::Accepted(vec![0], results))
            }
            _ if self.has("any-procedure") => accepted(&[0]),
            _ => accepted(&[3]),
        }
    }

    /// Returns the header of a call as this server takes it.
    fn taken(&self, call: &Header) -> Header {
        let mut call = call.clone();
        if self.has("drops-empty-segments") {
            for chunk in call.writes.iter_mut().chain(&mut call.reply) {
                chunk.retain(|segment| segment.length > 0);
            }
        }
        call
    }

    /// Sends a reply (RFC 8166, sections 3.5.3 and 4.3).
    fn reply(&mut self, call: &Header, mut payload: Vec<u8>, items: &[Item]) -> Result<(), Over> {
        let call = &self.taken(call);
        let unused = |chunk: &Vec<Segment>| -> Vec<Segment> {
            chunk
                .iter()
                .map(|segment| Segment {
                    length: 0,
                    ..*segment
                })
                .collect()
        };
        if self.has(NO_WRITE_CHUNKS) && !call.writes.is_empty() {
            return self.err_chunk(call.xid);
        }
        if self.has("takes-one-write-chunk") && call.writes.len() > 1 {
            return self.err_chunk(call.xid);
        }
        if self.has("ends-at-write-chunks") && call.writes.len() > 1 {
            return Err(Over);
        }
        if self.has("refuses-needless-chunks") && call.writes.len() > items.len() {
            return self.err_chunk(call.xid);
        }
        let mut all = call
            .writes
            .iter()
            .flatten()
            .chain(call.reply.iter().flatten());
        if self.has("takes-no-empty-segments") && all.any(|segment| segment.length == 0) {
            return self.err_chunk(call.xid);
        }
        let mut header = Header::msg(call.xid);
        header.credits = self.grant(call.credits);
        header.version = call.version;
        header.direction = wire::REPLY;
        match self.shared.fault {
            "wrong-version" => header.version = 3 - header.version,
            "replies-are-calls" => header.direction = wire::CALL,
            _ => (),
        }
        if self.has("returns-reads") {
            header.reads = call.reads.clone();
        }
        header.writes = call.writes.iter().map(unused).collect();
        match self.shared.fault {
            "unused-keep-length" => header.writes = call.writes.clone(),
            "empties-unused-chunks" => header.writes.iter_mut().for_each(Vec::clear),
            "loses-empty-chunks" => header.writes.retain(|chunk| !chunk.is_empty()),
            "write-list-reversed" => header.writes.reverse(),
            "one-write-chunk" => header.writes.truncate(1),
            "ends-at-empty-chunk" => {
                let empty = header.writes.iter().position(Vec::is_empty);
                header.writes.truncate(empty.unwrap_or(usize::MAX));
            }
            _ => (),
        }
        if self.has("wants-more-chunks") && (1..items.len()).contains(&call.writes.len()) {
            return self.err_chunk(call.xid);
        }
        let inline =
            self.has("reads-inline") || self.has("reduces-no-long-replies") && call.reply.is_some();
        // From the last one on: the places of the others stay what they are. An empty chunk asks
        // for the result inline.
        for (number, &(at, length)) in items.iter().enumerate().rev() {
            let empty = |chunk: &Vec<Segment>| chunk.is_empty() && !self.has("fills-empty-chunks");
            let number = match call.writes.len() {
                count if count > number && self.has("swaps-write-chunks") => count - 1 - number,
                _ => number,
            };
            let chunk = match call.writes.get(number) {
                Some(chunk) if !empty(chunk) && !inline => chunk,
                _ => continue,
            };
            // Behind the head of the reply.
            let at = 24 + at;
            let padded = wire::roundup(length);
            let room = wire::room(chunk);
            let length = if self.has("cuts-reads") {
                length.min(room)
            } else {
                length
            };
            let removed = if self.has("leaves-padding") {
                length
            } else {
                padded
            };
            let data = payload[at..at + padded].to_vec();
            payload.drain(at..at + removed);
            if self.has("writes-padding") && padded <= room {
                self.write(chunk, &data)?;
            }
            let Some(mut filled) = self.write(chunk, &data[..length])? else {
                return self.err_chunk(call.xid);
            };
            if self.has("drops-unneeded-segments") {
                filled.retain(|segment| segment.length > 0);
            }
            if let Some(returned) = header.writes.get_mut(number) {
                *returned = if self.has("reads-keep-length") {
                    chunk.clone()
                } else {
                    filled
                };
            }
        }
        if !items.is_empty()
            && call.writes.is_empty()
            && matches!(self.shared.fault, "no-inline-reads" | "reduces-fattr3")
        {
            return self.err_chunk(call.xid);
        }
        header.reply = call.reply.as_ref().map(unused);
        if self.has("loses-reply-chunk")
            || self.has("loses-empty-chunks") && header.reply.as_ref().is_some_and(Vec::is_empty)
        {
            header.reply = None;
        }
        let own = match self.shared.fault {
            "ignores-own-send-size" => usize::MAX,
            _ => SIZE,
        };
        let negotiated = self.client.receive_size().min(own);
        let threshold = match self.shared.fault {
            "ignores-threshold" => usize::MAX,
            "refuses-1024" => negotiated - 4,
            "refuses-full-reads" if !items.is_empty() => negotiated - 4,
            "reads-ignore-threshold" if !items.is_empty() => usize::MAX,
            // The default of version 2 (the draft, section 2.3).
            _ if call.version == 2 && !self.has("small-version-2") => SIZE.max(negotiated),
            _ => negotiated,
        };
        let head = if self.has("forgets-header-length") && call.version == 1 {
            28
        } else {
            header.octets().len()
        };
        let excess = (head + payload.len()).saturating_sub(threshold);
        let cut = self.has("cuts-inline-reads") && excess > 0 && call.reply.is_none();
        if let (true, Some(&(at, length))) = (cut, items.last()) {
            // eof and the count stand in front of the data.
            let left = length.saturating_sub(excess) / 4 * 4;
            payload.truncate(24 + at + left);
            payload[16 + at..24 + at].copy_from_slice(&words(&[1, left as u32]));
        }
        let key = self.key(call);
        if head + payload.len() <= threshold {
            self.send(&header.with(&payload), key)?;
        } else {
            let Some(chunk) = call.reply.clone() else {
                return self.err_chunk(call.xid);
            };
            if let (true, Some((at, length))) = (self.has("unpadded"), items.last()) {
                payload.truncate(24 + at + length);
            }
            let Some(chunk) = self.write(&chunk, &payload)? else {
                return self.err_chunk(call.xid);
            };
            header.procedure = wire::NOMSG;
            header.reply = Some(if self.has("reply-keeps-length") {
                call.reply.clone().unwrap_or_default()
            } else {
                chunk
            });
            let used = call.reply.iter().flatten().next();
            let key = match self.shared.fault {
                "invalidates-used-chunks" => used.map(|segment| segment.handle),
                _ => key,
            };
            self.send(&header.octets(), key)?;
        }
        if self.has("calls-unasked") {
            let call = wire::call(9, ECHO, &[]);
            self.send(&Header::msg(9).with(&call), None)?;
        }
        Ok(())
    }

    /// Chooses the Steering Tag that a reply invalidates (RFC 8797, section 4.1).
    fn key(&mut self, call: &Header) -> Option<u32> {
        let mut segments = call
            .writes
            .iter()
            .flatten()
            .chain(call.reply.iter().flatten());
        let own = segments.next().map(|segment| segment.handle);
        let last = self.last_handle;
        self.last_handle = own.or(last);
        if !self.invalidates {
            None
        } else if self.has("wrong-stag") {
            last
        } else {
            own
        }
    }

    /// Writes into a chunk. Returns it with its new lengths, or none if it is too small.
    fn write(&mut self, chunk: &[Segment], payload: &[u8]) -> Result<Option<Vec<Segment>>, Over> {
        let room: u64 = chunk.iter().map(|segment| u64::from(segment.length)).sum();
        if self.has("dies-of-huge-chunks") && room >= u64::from(u32::MAX) {
            self.shared.die();
            return Err(Over);
        }
        let mut chunk = chunk.to_vec();
        if room < payload.len() as u64 {
            if !self.has("overruns-reply-chunk") || chunk.is_empty() {
                return Ok(None);
            }
            chunk[0].length = payload.len() as u32;
        }
        let mut rest = payload;
        let mut order: Vec<usize> = (0..chunk.len()).collect();
        if self.has("fills-backwards") {
            order.reverse();
        }
        for at in order {
            let (part, behind) = rest.split_at(rest.len().min(chunk[at].length as usize));
            rest = behind;
            chunk[at].length = part.len() as u32;
            if part.is_empty() {
                continue;
            }
            if self
                .connection
                .write(chunk[at].handle, chunk[at].offset, part)
                .is_err()
            {
                if !self.has("forgets-failed-calls") {
                    if let Ok(mut failed) = self.shared.failed.lock() {
                        failed.extend(self.last_xid);
                    }
                }
                if self.has("dies-of-access-errors") {
                    self.shared.die();
                }
                return Err(Over);
            }
        }
        Ok(Some(chunk))
    }
}

enum Execution {
    Denied(Vec<u32>),
    Accepted(Vec<u32>, Vec<u8>),
}

/// Whether only servers of NFS have to pass the case.
fn is_of_nfs(case: &Case) -> bool {
    case.needs.contains(&Need::Export) || case.id.starts_with("rfc8267/6.")
}

/// Runs the suite against this server, and prints TAP.
fn self_test(address: SocketAddr) -> ExitCode {
    let mut clean = Server::new(address);
    clean.quiet = Duration::from_millis(100);
    clean.rpcbind = address.port();
    let null = Procedure { number: 0, ..ECHO };
    if let Err(why) = clean.explore(Some(null), &Trace::default()) {
        eprintln!("faulty-server: {why}");
        return ExitCode::from(2);
    }
    let mut nfs = clean.clone();
    nfs.export = Some(FILE.into());
    if let Err(why) = nfs.explore(Some(NFS), &Trace::default()) {
        eprintln!("faulty-server: {why}");
        return ExitCode::from(2);
    }
    let allowed = [Need::Destructive, Need::DraftV2, Need::Export];
    let (of_nfs, others): (Vec<&'static Case>, Vec<_>) =
        cases::server().partition(|case| is_of_nfs(case));
    let mut results = Results::begin();
    let reports = cli::run_all(&clean, &others, &allowed);
    for found in reports
        .into_iter()
        .chain(cli::run_all(&nfs, &of_nfs, &allowed))
    {
        // The server sets R, so one case does not apply.
        let good = found.outcome == Outcome::Pass
            || found.case.id == "rfc8797/4.1/5" && found.outcome == Outcome::Skipped;
        results.without_fault(&found, good);
    }
    let ports: BTreeMap<_, _> = faults().into_iter().zip(address.port()..).collect();
    let all: Vec<_> = others.into_iter().chain(of_nfs).collect();
    let mut only_null = clean.clone();
    only_null.service = Service::Null;
    let run = |case: &'static Case, fault: &str, limit| -> Result<Verdict, String> {
        let mut server = match fault {
            NO_WRITE_CHUNKS => only_null.clone(),
            _ if is_of_nfs(case) || OF_NFS.contains(&fault) => nfs.clone(),
            _ => clean.clone(),
        };
        server.limit = limit;
        server.address.set_port(ports[fault]);
        server.rpcbind = ports[fault];
        look(&mut server)?;
        Ok(run::server_case(case, &server, &Trace::default()))
    };
    // The connections of a port share state of the server, so cases with the same fault are tried
    // one after the other. Many faults are a missing answer.
    let limit = Duration::from_secs(1);
    let tried = side_by_side(
        &all,
        |case| case.fault,
        |_| Ok(()),
        |(), case| run(case, case.fault, limit),
        |case, verdict| match verdict {
            Ok(verdict) => results.with_fault(case, &verdict),
            Err(why) => results.not_tried(case, &why),
        },
    );
    let few = all
        .iter()
        .map(|case| (FEW_OPERATIONS, Expected::NoFailure, *case));
    let accepted = ALLOWED.iter().flat_map(|&(name, words)| {
        let accepts = move |case: &&&'static Case| case.accepts.contains(words);
        let expected = if words.starts_with(LACKS) {
            Expected::Unimplemented
        } else {
            Expected::Pass
        };
        all.iter()
            .filter(accepts)
            .map(move |case| (name, expected, *case))
    });
    let of_delegations = OF_DELEGATIONS.iter().flat_map(|&name| {
        let recalls = |case: &&&'static Case| case.sends.starts_with(DELEGATION);
        all.iter()
            .filter(recalls)
            .map(move |case| (name, Expected::Pass, *case))
    });
    // All cases with few-operations share a port: they take the longest, and begin first.
    let harmless: Vec<_> = few.chain(accepted).chain(of_delegations).collect();
    let mut limited = 0;
    let tried = tried.and(side_by_side(
        &harmless,
        |(name, ..)| name,
        |_| Ok(()),
        |(), (name, _, case)| run(case, name, clean.limit),
        |(name, expected, case), verdict| {
            limited += usize::from(
                name == FEW_OPERATIONS && matches!(verdict, Ok(Err(Problem::Inconclusive(_)))),
            );
            results.harmless(case, name, expected, verdict);
        },
    ));
    results.acts(FEW_OPERATIONS, limited > 0);
    if let Err(why) = tried {
        eprintln!("faulty-server: {why}");
        return ExitCode::from(2);
    }
    ExitCode::from(u8::from(!results.end()))
}

/// Connects once, and notes what the server offers. It may have played dead.
fn look(server: &mut Server) -> Result<(), String> {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match Connection::connect(server.address, &Offer::default(), &Trace::default()) {
            Ok(connection) => {
                server.private = connection.private().to_vec();
                return Ok(());
            }
            Err(why) if Instant::now() > until => return Err(why.to_string()),
            Err(_) => thread::sleep(Duration::from_millis(200)),
        }
    }
}
