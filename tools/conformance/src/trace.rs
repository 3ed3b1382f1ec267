// SPDX-License-Identifier: GPL-2.0

//! The messages of both sides, in order, with times.

use std::cell::Cell;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

/// Whose octets they are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum From {
    /// This program sent them.
    Suite,
    /// The peer sent them.
    Peer,
    /// No octets: a remark.
    Note,
}

/// One entry.
#[derive(Clone, Debug)]
pub struct Entry {
    pub at: Duration,
    pub connection: usize,
    pub from: From,
    pub what: String,
    pub octets: Vec<u8>,
}

#[derive(Debug)]
struct Inner {
    start: Instant,
    keeps: bool,
    connections: Cell<usize>,
    entries: RefCell<Vec<Entry>>,
}

/// The messages of both sides on the connections of a case.
#[derive(Clone, Debug)]
pub struct Trace(Rc<Inner>);

impl Default for Trace {
    fn default() -> Self {
        Trace::new(true)
    }
}

impl Trace {
    fn new(keeps: bool) -> Self {
        Trace(Rc::new(Inner {
            start: Instant::now(),
            keeps,
            connections: Cell::new(0),
            entries: RefCell::default(),
        }))
    }

    /// Returns a trace that keeps nothing.
    pub fn quiet() -> Self {
        Trace::new(false)
    }

    /// Returns the number of a new connection.
    pub fn connection(&self) -> usize {
        self.0.connections.set(self.0.connections.get() + 1);
        self.0.connections.get()
    }

    fn add(&self, connection: usize, from: From, what: &str, octets: &[u8]) {
        if !self.0.keeps {
            return;
        }
        self.0.entries.borrow_mut().push(Entry {
            at: self.0.start.elapsed(),
            connection,
            from,
            what: what.into(),
            octets: octets.to_vec(),
        });
    }

    pub fn sent(&self, connection: usize, what: &str, octets: &[u8]) {
        self.add(connection, From::Suite, what, octets);
    }

    pub fn received(&self, connection: usize, what: &str, octets: &[u8]) {
        self.add(connection, From::Peer, what, octets);
    }

    pub fn note(&self, connection: usize, what: &str) {
        self.add(connection, From::Note, what, &[]);
    }

    /// Adds the entries of another trace.
    pub fn extend(&self, entries: &[Entry]) {
        self.0.entries.borrow_mut().extend_from_slice(entries);
    }

    /// Returns all entries.
    pub fn entries(&self) -> Vec<Entry> {
        self.0.entries.borrow().clone()
    }
}

/// Returns octets in words of four, at most `most` octets.
pub fn words(octets: &[u8], most: usize) -> String {
    let mut text = String::new();
    for (at, octet) in octets.iter().take(most).enumerate() {
        if at > 0 && at % 4 == 0 {
            text.push(' ');
        }
        let _ = write!(text, "{octet:02x}");
    }
    if octets.len() > most {
        let _ = write!(text, " … ({} octets)", octets.len());
    }
    text
}

impl Entry {
    /// Returns the entry in one line.
    pub fn line(&self) -> String {
        let from = match self.from {
            From::Suite => "suite",
            From::Peer => "peer ",
            From::Note => "note ",
        };
        let mut line = format!(
            "{:9.3} ms  connection {}  {from}  {}",
            self.at.as_secs_f64() * 1000.0,
            self.connection,
            self.what
        );
        if self.from != From::Note {
            let _ = write!(
                line,
                ", {} octets: {}",
                self.octets.len(),
                words(&self.octets, 256)
            );
        }
        line
    }

    /// Returns the entry in the form that text2pcap reads (with -D and -t '%s.%f').
    pub fn packet(&self) -> String {
        let mut text = format!(
            "{}\n{:.6}\n",
            if self.from == From::Suite { "O" } else { "I" },
            self.at.as_secs_f64()
        );
        for (row, octets) in self.octets.chunks(16).enumerate() {
            let _ = write!(text, "{:06x}", row * 16);
            for octet in octets {
                let _ = write!(text, " {octet:02x}");
            }
            text.push('\n');
        }
        text
    }
}
