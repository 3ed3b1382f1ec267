// SPDX-License-Identifier: GPL-2.0

//! A session of NFS 4.1 (RFC 8881) whose server calls back on its connection (RFC 8167): the suite
//! opens a file, gets a read delegation, and lets another connection write.

use std::thread;
use std::time::Duration;
use std::time::Instant;

use crate::case::inconclusive;
use crate::case::skip;
use crate::case::violation;
use crate::case::Problem;
use crate::nfs;
use crate::peer::Answer;
use crate::peer::Link;
use crate::peer::Target;
use crate::peer::NFS;
use crate::wire;
use crate::wire::Header;
use crate::wire::Private;
use crate::wire::Procedure;
use crate::wire::Reader;
use crate::wire::Status;
use crate::wire::Transport;
use crate::wire::Writer;

// Operations (RFC 8881, section 16.2.3).
const CLOSE: u32 = 4;
const DELEGRETURN: u32 = 8;
const GETFH: u32 = 10;
const LOOKUP: u32 = 15;
const OPEN: u32 = 18;
const PUTFH: u32 = 22;
const PUTROOTFH: u32 = 24;
const EXCHANGE_ID: u32 = 42;
const CREATE_SESSION: u32 = 43;
const DESTROY_SESSION: u32 = 44;
const SEQUENCE: u32 = 53;
const DESTROY_CLIENTID: u32 = 57;
const RECLAIM_COMPLETE: u32 = 58;
const REMOVE: u32 = 28;
const CB_RECALL: u32 = 4;
const CB_SEQUENCE: u32 = 11;

/// The connection of the session is for callbacks, too (RFC 8881, section 18.36).
const CONN_BACK_CHAN: u32 = 2;
/// OPEN4_SHARE_ACCESS_READ, and the wish for a read delegation (RFC 8881, section 18.16).
const READ_WITH_DELEGATION: u32 = 0x101;
const READ_WITHOUT_DELEGATION: u32 = 0x401;
const OPEN_DELEGATE_READ: u32 = 1;
/// The server could not call back (RFC 8881, section 18.46): SEQ4_STATUS_CB_PATH_DOWN,
/// SEQ4_STATUS_CB_PATH_DOWN_SESSION, SEQ4_STATUS_BACKCHANNEL_FAULT.
pub const NO_CALLBACKS: u32 = 0x1 | 0x200 | 0x400;

/// The callback program, as Linux numbers it.
const CALLBACKS: u32 = 0x4000_0000;
/// How long to wait after NFS4ERR_DELAY.
const RETRY: Duration = Duration::from_millis(200);
/// The sizes of both sides.
const SIZE: usize = 4096;

/// A call of the server.
pub struct Callback {
    pub header: Header,
    /// The RPC message.
    pub rpc: Vec<u8>,
}

impl Callback {
    /// Returns the results of CB_COMPOUND of CB_SEQUENCE and CB_RECALL, both NFS4_OK (RFC 8881,
    /// sections 19.2, 20.2 and 20.9).
    fn results(&self) -> Result<Vec<u8>, String> {
        let mut reader = Reader::new(&self.rpc);
        reader.raw(28)?;
        reader.opaque()?;
        reader.word()?;
        reader.opaque()?;
        let tag = reader.opaque()?.to_vec();
        let head = [reader.word()?, reader.word()?, reader.word()?];
        if head[2] != 2 || reader.word()? != CB_SEQUENCE {
            return Err("the callback is no CB_SEQUENCE with another operation".into());
        }
        let session = reader.raw(16)?;
        let (sequence, slot, highest) = (reader.word()?, reader.word()?, reader.word()?);
        Ok(Writer::new()
            .word(0)
            .opaque(&tag)
            .words(&[2, CB_SEQUENCE, 0])
            .raw(session)
            .words(&[sequence, slot, highest, highest, CB_RECALL, 0])
            .0)
    }
}

/// A session, and the file that it has opened.
pub struct Session {
    pub link: Link,
    /// The connection that writes.
    other: Link,
    path: String,
    client: Vec<u8>,
    id: Vec<u8>,
    sequence: u32,
    /// The status flags of the last SEQUENCE.
    pub flags: u32,
    handle: Vec<u8>,
    opened: Vec<u8>,
    delegation: Option<Vec<u8>>,
}

/// Calls COMPOUND of NFS 4.1, which must succeed. Returns its results behind their number.
fn compound(link: &mut Link, operations: &[Writer]) -> Result<Vec<u8>, Problem> {
    succeeded(&asked(link, operations)?)
}

/// Calls COMPOUND of NFS 4.1.
fn asked(link: &mut Link, operations: &[Writer]) -> Result<Answer, Problem> {
    let all: Vec<u8> = operations.iter().flat_map(|one| one.0.clone()).collect();
    let arguments = Writer::new()
        .words(&[0, 1, operations.len() as u32])
        .raw(&all);
    let xid = link.xid();
    let procedure = Procedure { number: 1, ..NFS };
    let rpc = wire::call_with(xid, procedure, 1, &wire::auth_sys(), &arguments.0);
    link.call(&Header::msg(xid), &rpc)
}

fn succeeded(answer: &Answer) -> Result<Vec<u8>, Problem> {
    let mut reader = Reader::new(answer.results()?);
    let status = well_formed(reader.word())?;
    if let Some(name) = nfs::environment(status) {
        return inconclusive(format!("a COMPOUND of NFS 4.1 ends with {name}"));
    }
    if status != 0 {
        return violation(format!("a COMPOUND of NFS 4.1 ends with status {status}"));
    }
    well_formed(reader.raw(8))?;
    Ok(reader.rest().to_vec())
}

fn well_formed<T>(found: Result<T, String>) -> Result<T, Problem> {
    found.or_else(|why| violation(format!("the results of NFS 4.1 are malformed: {why}")))
}

/// Reads the number of an operation, and its status.
fn operation(reader: &mut Reader<'_>, number: u32) -> Result<(), String> {
    let found = (reader.word()?, reader.word()?);
    match found {
        (found, 0) if found == number => Ok(()),
        (found, status) => Err(format!("operation {found} with status {status}")),
    }
}

fn op(number: u32) -> Writer {
    Writer::new().word(number)
}

impl Session {
    /// Makes the session. With `callbacks`, its connection is for callbacks, too.
    pub fn begin(target: &mut Target<'_>, callbacks: bool) -> Result<Self, Problem> {
        let Some(path) = target.server.export.clone() else {
            return skip("only with --export");
        };
        let sizes = Private::new(SIZE, SIZE, false).octets();
        let mut link = target.connect(&sizes)?;
        let other = target.connect(&sizes)?;
        let xid = link.xid();
        let owner = format!("conformance {xid:08x}");
        // A server may grant no delegation of a file of which it has just recalled one.
        let path = format!("{path}.{xid:08x}");
        let exchange = op(EXCHANGE_ID)
            .hyper(1)
            .opaque(owner.as_bytes())
            .words(&[0, 0, 0]);
        let answer = asked(&mut link, &[exchange])?;
        let mismatch = nfs::MINOR_VERS_MISMATCH.to_be_bytes();
        match &answer.status {
            Status::ProgUnavail | Status::ProgMismatch(..) | Status::ProcUnavail => {
                return skip("the server has no NFS 4")
            }
            Status::Success(results) if results.starts_with(&mismatch) => {
                return skip("the server has no NFS 4.1")
            }
            _ => (),
        }
        let results = succeeded(&answer)?;
        let mut reader = Reader::new(&results);
        well_formed(operation(&mut reader, EXCHANGE_ID))?;
        let client = well_formed(reader.raw(8))?.to_vec();
        let sequence = well_formed(reader.word())?;
        // Of each channel: padding, longest request, response and cached response, operations,
        // requests, no IRD. The callbacks have AUTH_NONE.
        let size = SIZE as u32;
        let create = op(CREATE_SESSION)
            .raw(&client)
            .words(&[sequence, if callbacks { CONN_BACK_CHAN } else { 0 }])
            .words(&[0, size, size, 1024, 16, 4, 0])
            .words(&[0, size, size, 0, 2, 1, 0])
            .words(&[CALLBACKS, 1, 0]);
        let results = compound(&mut link, &[create])?;
        let mut reader = Reader::new(&results);
        well_formed(operation(&mut reader, CREATE_SESSION))?;
        let id = well_formed(reader.raw(16))?.to_vec();
        let flags = well_formed(reader.raw(4).and_then(|_| reader.word()))?;
        if callbacks && flags & CONN_BACK_CHAN == 0 {
            return skip("the server does not call back on this connection");
        }
        let mut session = Session {
            link,
            other,
            path,
            client,
            id,
            sequence: 0,
            flags: 0,
            handle: Vec::new(),
            opened: Vec::new(),
            delegation: None,
        };
        session.call(&[op(RECLAIM_COMPLETE).word(0)])?;
        session.creates()?;
        session.opens()?;
        Ok(session)
    }

    /// Calls COMPOUND with SEQUENCE in front, always in slot 0. Returns the results behind those of
    /// SEQUENCE.
    fn call(&mut self, operations: &[Writer]) -> Result<Vec<u8>, Problem> {
        self.sequence += 1;
        let sequence = op(SEQUENCE).raw(&self.id).words(&[self.sequence, 0, 0, 0]);
        let all = [&[sequence], operations].concat();
        let results = compound(&mut self.link, &all)?;
        let mut reader = Reader::new(&results);
        well_formed(operation(&mut reader, SEQUENCE))?;
        well_formed(reader.raw(32))?;
        self.flags = well_formed(reader.word())?;
        Ok(reader.rest().to_vec())
    }

    /// Returns the operations that go to the folder of the file, and the name of the file.
    fn folder(&self) -> (Vec<Writer>, String) {
        let mut names: Vec<&str> = self
            .path
            .split('/')
            .filter(|name| !name.is_empty())
            .collect();
        let name = names.pop().unwrap_or_default().to_string();
        let lookups = names.iter().map(|name| op(LOOKUP).opaque(name.as_bytes()));
        ([op(PUTROOTFH)].into_iter().chain(lookups).collect(), name)
    }

    /// Returns OPEN of the file, in the folder where the operations before have gone. `how` begins
    /// with the way to open.
    fn open(&self, access: u32, how: &[u32], name: &str) -> Writer {
        op(OPEN)
            .words(&[0, access, 0])
            .raw(&self.client)
            .opaque(b"owner")
            .words(how)
            .word(0)
            .opaque(name.as_bytes())
    }

    /// Makes the file.
    fn creates(&mut self) -> Result<(), Problem> {
        let (mut operations, name) = self.folder();
        // OPEN4_CREATE, UNCHECKED4, no attributes; CLOSE of the current stateid.
        operations.push(self.open(READ_WITHOUT_DELEGATION, &[1, 0, 0, 0], &name));
        operations.push(op(CLOSE).words(&[0, 1, 0, 0, 0]));
        self.call(&operations).map(|_| ())
    }

    /// Opens the file, with a read delegation if the server grants one.
    fn opens(&mut self) -> Result<(), Problem> {
        let (mut operations, name) = self.folder();
        let folders = operations.len() - 1;
        operations.push(self.open(READ_WITH_DELEGATION, &[0], &name));
        operations.push(op(GETFH));
        let results = self.call(&operations)?;
        let mut reader = Reader::new(&results);
        let mut read = || -> Result<(), String> {
            operation(&mut reader, PUTROOTFH)?;
            for _ in 0..folders {
                operation(&mut reader, LOOKUP)?;
            }
            operation(&mut reader, OPEN)?;
            self.opened = reader.raw(16)?.to_vec();
            reader.raw(24)?;
            let attributes = reader.word()?;
            reader.raw(4 * attributes as usize)?;
            match reader.word()? {
                OPEN_DELEGATE_READ => (),
                // Its form is not needed: the file stays open until the session ends.
                _ => return Ok(()),
            }
            self.delegation = Some(reader.raw(16)?.to_vec());
            reader.raw(16)?;
            reader.opaque()?;
            operation(&mut reader, GETFH)?;
            self.handle = reader.opaque()?.to_vec();
            Ok(())
        };
        well_formed(read())
    }

    /// Writes into the file on the other connection. Returns the status of the COMPOUND: success,
    /// NFS4ERR_DELAY while a delegation is out, or another error.
    pub fn write(&mut self) -> Result<u32, Problem> {
        let path = self.path.clone();
        let results = self
            .other
            .nfs(|compound| compound.path(&path).write(0, b"other"))?;
        match (results.status, nfs::environment(results.status)) {
            (nfs::DELAY, _) | (_, None) => Ok(results.status),
            (_, Some(name)) => inconclusive(format!("WRITE gets {name}")),
        }
    }

    /// Writes as soon as the server lets it.
    pub fn write_at_last(&mut self) -> Result<u32, Problem> {
        let until = Instant::now() + self.link.server.limit;
        loop {
            match self.write()? {
                nfs::DELAY if Instant::now() < until => thread::sleep(RETRY),
                status => return Ok(status),
            }
        }
    }

    /// Writes on the other connection, and returns the call by which the server recalls the
    /// delegation.
    pub fn recalled(&mut self) -> Result<Callback, Problem> {
        if self.delegation.is_none() {
            return skip("the server grants no delegation");
        }
        self.write()?;
        self.callback()
    }

    /// Returns the next call of the server.
    pub fn callback(&mut self) -> Result<Callback, Problem> {
        let message = self.link.receive()?;
        match Transport::parse(&message.octets) {
            Ok(Transport::Chunks(header, rpc)) => Ok(Callback { header, rpc }),
            other => violation(format!(
                "the server does not call back, but sends {other:?}"
            )),
        }
    }

    /// Answers a call of the server with an RPC status and results.
    pub fn answer(
        &mut self,
        callback: &Callback,
        status: u32,
        results: &[u8],
    ) -> Result<(), Problem> {
        let xid = callback.header.xid;
        let header = Header {
            credits: 4,
            version: callback.header.version,
            ..Header::msg(xid)
        };
        let reply = Writer::new()
            .words(&[xid, wire::REPLY, 0, 0, 0, status])
            .raw(results);
        self.link.send(&header.with(&reply.0))
    }

    /// Answers a recall with NFS4_OK.
    pub fn accept(&mut self, callback: &Callback) -> Result<(), Problem> {
        match callback.results() {
            Ok(results) => self.answer(callback, 0, &results),
            Err(why) => violation(format!("the call cannot be decoded: {why}")),
        }
    }

    /// Returns the delegation, and closes the file.
    pub fn give_back(&mut self) -> Result<(), Problem> {
        let put = op(PUTFH).opaque(&self.handle.clone());
        if let Some(delegation) = self.delegation.take() {
            self.call(&[put.clone(), op(DELEGRETURN).raw(&delegation)])?;
            let opened = self.opened.clone();
            self.call(&[put, op(CLOSE).word(0).raw(&opened)])?;
        }
        Ok(())
    }

    /// Ends the session.
    pub fn end(mut self) -> Result<(), Problem> {
        self.give_back()?;
        let (mut operations, name) = self.folder();
        operations.push(op(REMOVE).opaque(name.as_bytes()));
        self.call(&operations)?;
        let (id, client) = (self.id.clone(), self.client.clone());
        compound(&mut self.link, &[op(DESTROY_SESSION).raw(&id)])?;
        // The open without a delegation keeps the client.
        let _ = compound(&mut self.link, &[op(DESTROY_CLIENTID).raw(&client)]);
        Ok(())
    }
}
