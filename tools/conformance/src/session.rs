// SPDX-License-Identifier: GPL-2.0

//! A session of NFS 4.1 (RFC 8881) whose server calls back on its connection (RFC 8167): the suite
//! opens a file, gets a read delegation, and lets another connection write.

use std::thread;
use std::time::Duration;
use std::time::Instant;

use crate::case::inconclusive;
use crate::case::skip;
use crate::case::violation;
use crate::case::Passed;
use crate::case::Problem;
use crate::case::Verdict;
use crate::engine::Message;
use crate::nfs;
use crate::peer::Answer;
use crate::peer::Link;
use crate::peer::Service;
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
const LOOKUP: u32 = 15;
const OPEN: u32 = 18;
const PUTROOTFH: u32 = 24;
const EXCHANGE_ID: u32 = 42;
const CREATE_SESSION: u32 = 43;
const DESTROY_SESSION: u32 = 44;
const SEQUENCE: u32 = 53;
const DESTROY_CLIENTID: u32 = 57;
const RECLAIM_COMPLETE: u32 = 58;
const REMOVE: u32 = 28;
/// A procedure of the callback program.
const CB_NULL: u32 = 0;
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
/// How many calls of the server may be under way: as its session's slots allow, and as the credits
/// that it is granted allow (RFC 8167, section 4.1).
const SLOTS: u32 = 2;
const GRANT: u32 = 1;
/// NFS4ERR_BACK_CHAN_BUSY (RFC 8881, section 15.1.12.1).
const BACK_CHAN_BUSY: u32 = 10_057;
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
    /// Whether it is CB_NULL, by which a server tries whether it can call back (RFC 8881, section
    /// 19.1.3).
    fn is_null(&self) -> bool {
        let words = Reader::new(&self.rpc).array::<6>();
        words.is_ok_and(|words| (words[1], words[3], words[5]) == (wire::CALL, CALLBACKS, CB_NULL))
    }

    /// Returns the last operation, and the results of CB_COMPOUND: NFS4_OK of
    /// CB_SEQUENCE, and NFS4_OK of CB_RECALL or NFS4ERR_NOTSUPP of another operation (RFC 8881,
    /// sections 19.2, 20.2 and 20.9).
    fn results(&self) -> Result<(u32, Vec<u8>), String> {
        let mut reader = Reader::new(&self.rpc);
        reader.raw(28)?;
        reader.opaque()?;
        reader.word()?;
        reader.opaque()?;
        let tag = reader.opaque()?.to_vec();
        let head = [reader.word()?, reader.word()?, reader.word()?];
        if !(1..=2).contains(&head[2]) || reader.word()? != CB_SEQUENCE {
            return Err("the callback is no CB_SEQUENCE with one operation at most".into());
        }
        let session = reader.raw(16)?;
        let (sequence, slot, highest) = (reader.word()?, reader.word()?, reader.word()?);
        reader.word()?;
        // Referring calls: each list has a session id, and a sequence id and a slot id of each call.
        for _ in 0..reader.word()? {
            reader.raw(16)?;
            let requests = reader.word()?;
            reader.raw(8 * requests as usize)?;
        }
        let (operation, rest) = match head[2] {
            1 => (CB_SEQUENCE, vec![]),
            _ => match reader.word()? {
                CB_RECALL => (CB_RECALL, vec![CB_RECALL, 0]),
                other => (other, vec![other, nfs::NOTSUPP]),
            },
        };
        let results = Writer::new()
            .word(rest.last().copied().unwrap_or_default())
            .opaque(&tag)
            .words(&[head[2], CB_SEQUENCE, 0])
            .raw(session)
            .words(&[sequence, slot, highest, highest])
            .words(&rest)
            .0;
        Ok((operation, results))
    }
}

/// A file that the session has created, or has tried to.
struct File {
    path: String,
    /// The stateid of the open file.
    opened: Option<Vec<u8>>,
    delegation: Option<Vec<u8>>,
}

impl File {
    /// Returns the operations that go to the file's folder, and the file's name.
    fn folder(&self) -> (Vec<Writer>, &str) {
        let mut names: Vec<&str> = self
            .path
            .split('/')
            .filter(|name| !name.is_empty())
            .collect();
        let name = names.pop().unwrap_or_default();
        let lookups = names.iter().map(|name| op(LOOKUP).opaque(name.as_bytes()));
        ([op(PUTROOTFH)].into_iter().chain(lookups).collect(), name)
    }

    /// Takes the stateids. Returns the COMPOUNDs that return the delegation and close the file.
    fn closing(&mut self) -> Vec<Vec<Writer>> {
        let delegation = self.delegation.take();
        let opened = self.opened.take();
        let returns = delegation.map(|stateid| op(DELEGRETURN).raw(&stateid));
        let closes = opened.map(|stateid| op(CLOSE).word(0).raw(&stateid));
        let (mut file, name) = self.folder();
        file.push(op(LOOKUP).opaque(name.as_bytes()));
        let last = returns.into_iter().chain(closes);
        last.map(|operation| [&file[..], &[operation]].concat())
            .collect()
    }
}

/// A session, and the files that it has opened.
pub struct Session {
    pub link: Link,
    /// The connection that writes into the first file.
    other: Link,
    /// The path of the first file.
    path: String,
    client: Vec<u8>,
    id: Vec<u8>,
    sequence: u32,
    /// The status flags of the last SEQUENCE.
    pub flags: u32,
    /// How many calls of the server may be under way.
    pub slots: u32,
    files: Vec<File>,
    /// The XID of the WRITE on the other connection whose reply has not been taken.
    writing: Option<u32>,
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

/// Sends the WRITE of a file. Returns the XID.
pub fn ask_write(link: &mut Link, path: &str) -> Result<u32, Problem> {
    let xid = link.xid();
    let compound = nfs::Compound::new(b"").path(path).write(0, b"other");
    link.ask(&Header::msg(xid), &compound.call(xid))?;
    Ok(xid)
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

/// If a precondition of a check fails, nothing is known of the requirement: inconclusive.
pub fn unjudged(problem: Problem) -> Problem {
    match problem {
        Problem::Violation(why) => Problem::Inconclusive(why),
        other => other,
    }
}

impl Session {
    /// Makes a session, opens its file, runs a check, and ends the session even where the check has
    /// failed. With `callbacks`, its connection is for callbacks, too. Only the check is judged.
    pub fn within(
        target: &mut Target<'_>,
        callbacks: bool,
        check: impl FnOnce(&mut Session) -> Verdict,
    ) -> Verdict {
        let (found, ended) = Session::run(target, callbacks, check)?;
        found.and_then(|Passed| ended.map(|()| Passed).map_err(unjudged))
    }

    /// The same with callbacks. The end of the session is judged, too.
    pub fn within_and_end(
        target: &mut Target<'_>,
        check: impl FnOnce(&mut Session) -> Verdict,
    ) -> Verdict {
        let (found, ended) = Session::run(target, true, check)?;
        found.and_then(|Passed| ended.map(|()| Passed))
    }

    /// Returns what the check has found, and how the session has ended.
    fn run(
        target: &mut Target<'_>,
        callbacks: bool,
        check: impl FnOnce(&mut Session) -> Verdict,
    ) -> Result<(Verdict, Result<(), Problem>), Problem> {
        let mut session = Session::begin(target, callbacks).map_err(unjudged)?;
        let prepared = session.prepare(callbacks).map_err(unjudged);
        let found = prepared.and_then(|()| check(&mut session));
        Ok((found, session.end()))
    }

    fn begin(target: &mut Target<'_>, callbacks: bool) -> Result<Self, Problem> {
        let Some(path) = target.server.export.clone() else {
            return skip("only with --export");
        };
        if !matches!(target.server.service, Service::Nfs4(_)) {
            return target
                .server
                .lacks("no WRITE of NFS 4.0 on the other connection");
        }
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
        // requests, no IRD. The callbacks have AUTH_NONE, and no chunks (RFC 8267, section 6.5.2).
        let size = SIZE as u32;
        let short = SIZE.min(link.to_server).min(link.to_client) as u32;
        let create = op(CREATE_SESSION)
            .raw(&client)
            .words(&[sequence, if callbacks { CONN_BACK_CHAN } else { 0 }])
            .words(&[0, size, size, 1024, 16, 4, 0])
            .words(&[0, short, short, 0, 2, SLOTS, 0])
            .words(&[CALLBACKS, 1, 0]);
        let results = compound(&mut link, &[create])?;
        let mut reader = Reader::new(&results);
        well_formed(operation(&mut reader, CREATE_SESSION))?;
        let id = well_formed(reader.raw(16))?.to_vec();
        let flags = well_formed(reader.raw(4).and_then(|_| reader.word()))?;
        if callbacks && flags & CONN_BACK_CHAN == 0 {
            return skip("the server does not call back on this connection");
        }
        // Of each channel: padding, three sizes, operations, requests and a list of IRDs.
        let mut requests = || -> Result<u32, String> {
            reader.raw(20)?;
            let requests = reader.word()?;
            let depths = reader.word()?;
            reader.raw(4 * depths as usize)?;
            Ok(requests)
        };
        well_formed(requests())?;
        let slots = well_formed(requests())?;
        Ok(Session {
            link,
            other,
            path,
            client,
            id,
            sequence: 0,
            flags: 0,
            slots,
            files: Vec::new(),
            writing: None,
        })
    }

    fn prepare(&mut self, callbacks: bool) -> Result<(), Problem> {
        self.call(&[op(RECLAIM_COMPLETE).word(0)])?;
        self.creates(self.path.clone())?;
        if callbacks {
            self.answers_probe()?;
        }
        self.opens()
    }

    /// Opens another file, and returns its path. The server must grant a delegation of it.
    pub fn opens_another(&mut self) -> Result<String, Problem> {
        let path = format!("{}.{}", self.path, self.files.len());
        let opened = self.creates(path.clone()).and_then(|()| self.opens());
        opened.map_err(unjudged)?;
        match self.files.last() {
            Some(file) if file.delegation.is_some() => Ok(path),
            _ => skip("the server grants no delegation of another file"),
        }
    }

    /// Answers CB_NULL if it arrives: a server may grant no delegation before that.
    fn answers_probe(&mut self) -> Result<(), Problem> {
        let Some(message) = self.link.receive_within(self.link.server.quiet) else {
            return Ok(());
        };
        let callback = Self::call_in(&message)?;
        if !self.answers_other(&callback)? {
            return inconclusive("the server calls back before it has granted a delegation");
        }
        Ok(())
    }

    /// Answers CB_NULL, and operations other than CB_RECALL: a server may send CB_RECALL_ANY and
    /// CB_RECALL_SLOT at any time (RFC 8881, sections 20.6 and 20.8). Returns false for the rest.
    fn answers_other(&mut self, callback: &Callback) -> Result<bool, Problem> {
        if callback.is_null() {
            self.answer(callback, 0, &[])?;
            return Ok(true);
        }
        match callback.results() {
            Ok((CB_RECALL, _)) | Err(_) => Ok(false),
            Ok((_, results)) => self.answer(callback, 0, &results).map(|()| true),
        }
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

    /// Returns OPEN of a file, in the folder where the operations before have gone. `how` begins
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

    /// Makes a file.
    fn creates(&mut self, path: String) -> Result<(), Problem> {
        let file = File {
            path,
            opened: None,
            delegation: None,
        };
        let (mut operations, name) = file.folder();
        // OPEN4_CREATE, UNCHECKED4, no attributes; CLOSE of the current stateid.
        operations.push(self.open(READ_WITHOUT_DELEGATION, &[1, 0, 0, 0], name));
        operations.push(op(CLOSE).words(&[0, 1, 0, 0, 0]));
        self.files.push(file);
        self.call(&operations).map(drop)
    }

    /// Opens the file that was made last, with a read delegation if the server grants one.
    fn opens(&mut self) -> Result<(), Problem> {
        let Some(file) = self.files.last() else {
            return Ok(());
        };
        let (mut operations, name) = file.folder();
        let folders = operations.len() - 1;
        operations.push(self.open(READ_WITH_DELEGATION, &[0], name));
        let results = self.call(&operations)?;
        let Some(file) = self.files.last_mut() else {
            return Ok(());
        };
        let mut reader = Reader::new(&results);
        let mut read = || -> Result<(), String> {
            operation(&mut reader, PUTROOTFH)?;
            for _ in 0..folders {
                operation(&mut reader, LOOKUP)?;
            }
            operation(&mut reader, OPEN)?;
            file.opened = Some(reader.raw(16)?.to_vec());
            reader.raw(24)?;
            let attributes = reader.word()?;
            reader.raw(4 * attributes as usize)?;
            if reader.word()? == OPEN_DELEGATE_READ {
                file.delegation = Some(reader.raw(16)?.to_vec());
            }
            Ok(())
        };
        well_formed(read())
    }

    /// Begins to write into the first file on the other connection. While a delegation is out, the
    /// server may delay its reply (RFC 8881, section 10.2).
    pub fn begin_write(&mut self) -> Result<u32, Problem> {
        let xid = ask_write(&mut self.other, &self.path)?;
        self.writing = Some(xid);
        Ok(xid)
    }

    /// Writes into the file on the other connection, unless that is under way. Returns the status of
    /// the COMPOUND: success, NFS4ERR_DELAY while a delegation is out, or another error.
    pub fn write(&mut self) -> Result<u32, Problem> {
        let xid = match self.writing {
            Some(xid) => xid,
            None => self.begin_write()?,
        };
        let message = self.other.receive_of(xid)?;
        self.writing = None;
        let answer = self.other.decode(xid, &message)?;
        let results = well_formed(nfs::Results::parse(answer.results()?))?;
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

    /// Whether the server has granted a delegation of the first file.
    pub fn is_delegated(&self) -> bool {
        let first = self.files.first();
        first.is_some_and(|file| file.delegation.is_some())
    }

    /// Begins to write on the other connection, and returns the call by which the server recalls
    /// the delegation.
    pub fn recalled(&mut self) -> Result<Callback, Problem> {
        if !self.is_delegated() {
            return skip("the server grants no delegation");
        }
        self.begin_write()?;
        self.callback()
    }

    /// Returns the next call of the server that recalls something. Others are answered.
    pub fn callback(&mut self) -> Result<Callback, Problem> {
        match self.callback_within(self.link.server.limit)? {
            Some(callback) => Ok(callback),
            None => inconclusive("the server recalls nothing"),
        }
    }

    /// The same. Returns none if it does not arrive in that time.
    pub fn callback_within(&mut self, limit: Duration) -> Result<Option<Callback>, Problem> {
        let until = Instant::now() + limit;
        while let Some(message) = self.link.receive_within(limit) {
            let callback = Self::call_in(&message)?;
            if !self.answers_other(&callback)? {
                return Ok(Some(callback));
            }
            if Instant::now() > until {
                break;
            }
        }
        match self.link.connection.closed() {
            Some(why) => violation(format!("the connection ended: {why}")),
            None => Ok(None),
        }
    }

    fn call_in(message: &Message) -> Result<Callback, Problem> {
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
            credits: GRANT,
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
            Ok((_, results)) => self.answer(callback, 0, &results),
            Err(why) => violation(format!("the call cannot be decoded: {why}")),
        }
    }

    /// Answers a call of the server. Returns whether it recalls something.
    fn answers(&mut self, callback: &Callback) -> Result<bool, Problem> {
        let recalls = !self.answers_other(callback)?;
        if recalls {
            self.accept(callback)?;
        }
        Ok(recalls)
    }

    /// Answers the calls of the server until none arrives for a while. No second one may arrive
    /// before the reply. Returns how many there were that recall something.
    pub fn accept_others(&mut self) -> Result<u32, Problem> {
        let until = Instant::now() + self.link.server.limit;
        let mut recalls = 0;
        let mut wait = self.link.server.limit;
        while let Some(message) = self.link.receive_within(wait) {
            let callback = Self::call_in(&message)?;
            self.link.quiet()?;
            if self.answers(&callback)? {
                recalls += 1;
                wait = self.link.server.quiet;
            }
            if Instant::now() > until {
                break;
            }
        }
        Ok(recalls)
    }

    /// Returns the delegations, and closes the files.
    pub fn give_back(&mut self) -> Result<(), Problem> {
        let calls: Vec<_> = self.files.iter_mut().flat_map(File::closing).collect();
        calls.iter().try_for_each(|call| self.call(call).map(drop))
    }

    fn remove(&mut self) -> Result<(), Problem> {
        let removal = |file: &File| {
            let (mut operations, name) = file.folder();
            operations.push(op(REMOVE).opaque(name.as_bytes()));
            operations
        };
        let calls: Vec<_> = self.files.iter().map(removal).collect();
        calls.iter().try_for_each(|call| self.call(call).map(drop))
    }

    /// Ends the session. If that fails, the files are removed on the other connection, as far as the
    /// server lets it.
    fn end(mut self) -> Result<(), Problem> {
        let removed = self.give_back().and_then(|()| self.remove());
        if removed.is_err() {
            // The connection of the session may have ended. No call may follow the first one of the
            // other connection before that has its reply.
            if self.writing.is_some() {
                let _ = self.write();
            }
            for file in &self.files {
                let _ = self.other.nfs(|compound| compound.remove(&file.path));
            }
        }
        removed?;
        self.destroys()?;
        let last = op(DESTROY_CLIENTID).raw(&self.client);
        let _ = compound(&mut self.link, &[last]);
        Ok(())
    }

    /// Destroys the session. The server may refuse that while its calls are unanswered (RFC 8881,
    /// section 18.37.3).
    fn destroys(&mut self) -> Result<(), Problem> {
        let until = Instant::now() + self.link.server.limit;
        loop {
            while let Some(message) = self.link.receive_within(Duration::ZERO) {
                self.answers(&Self::call_in(&message)?)?;
                if Instant::now() > until {
                    break;
                }
            }
            let answer = asked(&mut self.link, &[op(DESTROY_SESSION).raw(&self.id)])?;
            let status = well_formed(Reader::new(answer.results()?).word())?;
            if !matches!(status, nfs::DELAY | BACK_CHAN_BUSY) {
                return succeeded(&answer).map(drop);
            }
            if Instant::now() > until {
                return inconclusive("the server does not end the session: calls are under way");
            }
            thread::sleep(RETRY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a callback with a session's id of 9, request 5 of slot 0, and these words behind
    /// csa_cachethis.
    fn callback(rest: &[u32]) -> Callback {
        let arguments = Writer::new()
            .words(&[0, 1, 0, 2, CB_SEQUENCE, 0, 0, 0, 9, 5, 0, 3, 0])
            .words(rest);
        let procedure = Procedure {
            program: CALLBACKS,
            version: 1,
            number: 1,
        };
        Callback {
            header: Header::msg(7),
            rpc: wire::call(7, procedure, &arguments.0),
        }
    }

    // RFC 8881, sections 20.2.2 and 20.9.1
    #[test]
    fn a_recall_is_told_from_other_operations() {
        let results = |operation: u32, status: u32| {
            let head = [status, 0, 2, CB_SEQUENCE, 0, 0, 0, 0, 9, 5, 0, 3, 3];
            let words = [&head[..], &[operation, status]].concat();
            Ok((operation, wire::words(&words)))
        };
        // Of two sessions, two requests and none.
        let referring = [2, 0, 0, 0, 9, 2, 1, 0, 2, 4, 0, 0, 0, 8, 0];
        for lists in [&[0][..], &referring] {
            let found = |operation| callback(&[lists, &[operation, 0]].concat()).results();
            assert_eq!(found(CB_RECALL), results(CB_RECALL, 0));
            assert_eq!(found(8), results(8, nfs::NOTSUPP));
        }
        assert!(callback(&[u32::MAX, 0, 0, 0, 9, u32::MAX, 4])
            .results()
            .is_err());
        assert!(callback(&[0]).results().is_err());
        let mut alone = callback(&[0]);
        // The number of operations.
        alone.rpc[40 + 12..][..4].copy_from_slice(&wire::words(&[1]));
        let words = [0, 0, 1, CB_SEQUENCE, 0, 0, 0, 0, 9, 5, 0, 3, 3];
        assert_eq!(alone.results(), Ok((CB_SEQUENCE, wire::words(&words))));
    }
}
