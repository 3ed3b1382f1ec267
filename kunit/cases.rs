// SPDX-License-Identifier: GPL-2.0

//! Whole files of debugfs, which both the host tests and KUnit compare octet for octet.
//!
//! The texts are written by hand, from the description of the files. None is computed.

use core::fmt::{
    self,
    Write, //
};

// Test crates include this file with `#[path]`, so that the files below need paths of their own.
#[path = "cases/history.rs"]
pub(crate) mod history;
#[path = "cases/info.rs"]
pub(crate) mod info;
#[path = "cases/outcome.rs"]
pub(crate) mod outcome;
#[path = "cases/stats.rs"]
pub(crate) mod stats;
#[path = "cases/tables.rs"]
pub(crate) mod tables;

use crate::pure::{
    text::{
        exchange::{
            Exchange,
            ParsedPrivateData,
            ShownDevice,
            ShownTransport, //
        },
        format::Text,
        snapshot::{
            Origin,
            Snapshot,
            State,
            Traffic, //
        }, //
    },
    wire::{
        negotiation::{
            InUse,
            Role, //
        },
        private_data::PrivateData, //
    }, //
};

/// The rest of an expected text. Writing other octets to it fails.
struct Rest<'p, 'a> {
    text: &'a str,
    /// The pieces of text that follow.
    pieces: &'p [&'a str],
}

impl Rest<'_, '_> {
    /// Moves to the next piece that is not empty.
    fn settle(&mut self) {
        while let ("", [text, pieces @ ..]) = (self.text, self.pieces) {
            self.text = text;
            self.pieces = pieces;
        }
    }
}

impl Write for Rest<'_, '_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let mut s = s;
        while !s.is_empty() {
            self.settle();
            let both = self.text.len().min(s.len());
            match (s.split_at_checked(both), self.text.split_at_checked(both)) {
                (Some((got, more)), Some((expected, rest))) if both > 0 && got == expected => {
                    s = more;
                    self.text = rest;
                }
                _ => return Err(fmt::Error),
            }
        }
        Ok(())
    }
}

/// Compares everything that `write` writes with the `expected` pieces, put together. Returns the
/// expected text from the first difference on, up to the end of its piece.
pub(crate) fn difference<'a>(
    expected: &[&'a str],
    write: impl FnOnce(&mut dyn Write) -> fmt::Result,
) -> Option<&'a str> {
    let mut rest = Rest {
        text: "",
        pieces: expected,
    };
    let written = write(&mut rest);
    rest.settle();
    (written.is_err() || !rest.text.is_empty()).then_some(rest.text)
}

/// Private data of these octets.
fn private_data(octets: &[u8]) -> Option<ParsedPrivateData> {
    Some(ParsedPrivateData::new(&PrivateData::truncated(octets)))
}

/// A device.
fn device(name: &str, transport: ShownTransport) -> Option<ShownDevice> {
    Some(ShownDevice {
        name: Text::of(name),
        transport,
    })
}

/// A connection that the module has just established as client, without private data.
pub(crate) fn snapshot() -> Snapshot {
    Snapshot {
        number: 7,
        origin: Origin::Module,
        role: Role::Client,
        state: State::Established,
        age_ms: 1234,
        generation: 1,
        failure: None,
        exchange: Exchange {
            device: device("rxe0", ShownTransport::Roce),
            local: "192.0.2.1:35000".parse().ok(),
            remote: "192.0.2.2:20049".parse().ok(),
            sent: None,
            received: None,
            version: None,
        },
        process: None,
        in_use: InUse::default(),
        traffic: Some(Traffic::default()),
        note: None,
    }
}
