// SPDX-License-Identifier: GPL-2.0

//! The text of the file `info`: everything about one connection, one `key: value` a line.

use core::fmt::{
    self,
    Display,
    Write, //
};

use super::{
    format::{
        yes_no,
        Or, //
    },
    keys::info_keys,
    snapshot::{
        Origin,
        Snapshot, //
    }, //
};
use crate::pure::wire::{
    negotiation::Role,
    private_data::{
        Parsed,
        Rejection, //
    }, //
};

/// Stands for a value that is not known.
const UNKNOWN: &str = "unknown";

/// The note of every program's connection.
const OF_PROGRAM: &str =
    "the values follow from RFC 8797: what the program makes of the messages is not known";

/// Stands for the value of a key that does not apply.
const NONE: &str = "none";

macro_rules! write_key {
    ($out:ident, $it:ident, $key:ident, Lines, $write:expr) => {
        $write($it, $out)?
    };
    ($out:ident, $it:ident, $key:ident, $kind:ident, $value:expr) => {
        writeln!($out, concat!(stringify!($key), ": {}"), $value)?
    };
}

macro_rules! info {
    ($it:ident $($heading:literal if $pattern:pat = $subject:expr => {
        $($(#[doc = $doc:literal])* $key:ident: $kind:ident = $value:expr;)*
    })*) => {
        /// Writes the file's content. Fails only if `out` fails.
        #[expect(irrefutable_let_patterns, reason = "some keys are always shown")]
        pub(crate) fn info($it: &Snapshot, out: &mut dyn Write) -> fmt::Result {
            $(if let $pattern = $subject {
                $(write_key!(out, $it, $key, $kind, $value);)*
            })*
            Ok(())
        }
    };
}

info_keys!(info);

/// The result of parsing the private data of the peer, as `info` shows it.
#[derive(Clone, Copy)]
struct PeerPrivateData {
    /// [`None`] if the private data is not known.
    parsed: Option<Parsed>,
    offset: Option<usize>,
    version: Option<u8>,
    reserved: Option<u8>,
    /// Stands for a value that there is not.
    none: &'static str,
}

impl PeerPrivateData {
    fn of(snapshot: &Snapshot) -> Self {
        let parsed = snapshot.exchange.received.map(|received| received.parsed);
        let (offset, version, reserved) = match parsed {
            Some(Parsed::Present(found)) => (
                Some(found.offset),
                Some(found.version),
                Some(found.reserved),
            ),
            Some(Parsed::Rejected { offset, reason }) => match reason {
                Rejection::Version(version) => (Some(offset), Some(version), None),
                Rejection::Truncated { .. } => (Some(offset), None, None),
            },
            Some(Parsed::Absent) | None => (None, None, None),
        };
        Self {
            parsed,
            offset,
            version,
            reserved,
            none: if parsed.is_some() { NONE } else { UNKNOWN },
        }
    }
}

impl Display for PeerPrivateData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parsed {
            None => f.write_str(UNKNOWN),
            Some(Parsed::Absent) => f.write_str("absent"),
            Some(Parsed::Present(_)) => f.write_str("present"),
            Some(Parsed::Rejected { reason, .. }) => write!(f, "rejected: {reason}"),
        }
    }
}

/// The flags octet, in hexadecimal.
struct Flags(u8);

impl Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#04x}", self.0)
    }
}

/// The first octets of private data, in hexadecimal.
struct FirstOctets<'a>(&'a [u8]);

impl Display for FirstOctets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut octets = self.0.iter();
        octets.try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// Returns the first octets of the peer's private data if they may be of another format.
fn first_octets(snapshot: &Snapshot) -> Option<FirstOctets<'_>> {
    let received = snapshot.exchange.received.as_ref()?;
    let octets = received.other_format.as_ref()?;
    Some(FirstOctets(
        octets.get(..received.len.into()).unwrap_or(octets),
    ))
}

/// Writes a line for each difference between the values in use and the result of both offers.
fn deviations(snapshot: &Snapshot, out: &mut dyn Write) -> fmt::Result {
    let Some(negotiated) = snapshot.exchange.negotiated(snapshot.role) else {
        return Ok(());
    };
    negotiated
        .deviations(snapshot.role, &snapshot.in_use)
        .try_for_each(|deviation| writeln!(out, "deviation: {deviation}"))?;
    match snapshot.traffic.map(|traffic| traffic.missing_reply_chunks) {
        None | Some(0) => Ok(()),
        Some(replies) => writeln!(
            out,
            "deviation: leaves the offered Reply chunk out of replies, {replies} so far \
             (RFC 8166, section 4.3.3)"
        ),
    }
}

/// Writes why some values are not known.
fn notes(snapshot: &Snapshot, out: &mut dyn Write) -> fmt::Result {
    let of_program = (snapshot.origin == Origin::User).then_some(OF_PROGRAM);
    [of_program, snapshot.note]
        .into_iter()
        .flatten()
        .try_for_each(|note| writeln!(out, "note: {note}"))
}
