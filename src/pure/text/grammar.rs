// SPDX-License-Identifier: GPL-2.0

//! The grammar of the control files `connect`, `listen`, `probe`, `call` and `close`.
//!
//! One line, words separated by spaces and tabs, one newline at its end or none. A line with an
//! error is refused as a whole. The keys describe a Private Data message (RFC 8797, section 4), how
//! the module sends it, and the calls on the connection (RFC 8166, section 4.2; RFC 5531, section
//! 8.1). Like the protocol code, this knows no kernel and does not panic.

use core::{
    fmt::{
        self,
        Write, //
    },
    net::{
        Ipv4Addr,
        Ipv6Addr, //
    },
    ops::RangeInclusive,
    str,
};

use super::control_keys::control_keys;
use crate::pure::wire::{
    call_request::{
        CallRequest,
        CalledProcedure, //
    },
    header::Versions,
    private_data::{
        Offer,
        Offered,
        PrivateData,
        Size, //
    },
    program::Program, //
};

/// The largest number of octets of a refused word that are shown.
const SHOWN: usize = 64;

/// The largest length of a line, in octets.
pub(crate) const LINE_MAX: usize = 2048;

/// The reason to refuse a word, in words for its writer.
type Reason = &'static str;

/// The reason to refuse Private Data that is longer than rdma_cm's length field can express.
const TOO_MANY_OCTETS: Reason = "more than 255 octets, which rdma_cm cannot send";

/// The word of a line that was refused, and the reason.
///
/// Its [`Display`](fmt::Display) form is bounded and printable, even if the word is neither.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct LineError<'a> {
    /// The word as written; empty if a word is missing.
    word: &'a [u8],
    reason: Reason,
}

impl LineError<'_> {
    /// Whether the word asks for more Private Data than can be sent.
    pub(crate) fn is_too_many_octets(&self) -> bool {
        self.reason == TOO_MANY_OCTETS
    }
}

impl fmt::Display for LineError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &octet in self.word.iter().take(SHOWN) {
            if octet.is_ascii_graphic() && octet != b'\\' {
                f.write_char(char::from(octet))?;
            } else {
                write!(f, "\\x{octet:02x}")?;
            }
        }
        if self.word.len() > SHOWN {
            f.write_str("...")?;
        }
        if !self.word.is_empty() {
            f.write_str(": ")?;
        }
        f.write_str(self.reason)
    }
}

/// A network interface, as written behind the `%` of an IPv6 address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Zone {
    /// Its index; never zero.
    Index(u32),
    /// Its name, of 1 to 15 octets, padded with NUL.
    Name([u8; 16]),
}

/// An address without a port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Address {
    V4(Ipv4Addr),
    V6 {
        address: Ipv6Addr,
        zone: Option<Zone>,
    },
}

/// An address and a port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SocketAddr {
    pub(crate) address: Address,
    /// In host byte order; never zero.
    pub(crate) port: u16,
}

/// The keys that configure RPC-over-RDMA.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Rpc {
    /// The versions to speak (RFC 8166, section 4.2.2).
    pub(crate) versions: Versions,
    /// The credits of the forward direction: a client requests them, and a server grants them (RFC
    /// 8166, section 4.2.3).
    pub(crate) credits: u32,
    /// The credits of the reverse direction: a server requests them, and a client grants them (RFC
    /// 8167, section 4.1). Zero if this end does not support the reverse direction.
    pub(crate) reverse: u32,
    /// Whether a client calls BIND to announce that it supports the reverse direction, and a server
    /// makes no calls before that (RFC 8167, section 6).
    pub(crate) bind: bool,
}

/// The command in a line written to `connect` or `probe`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Connect {
    pub(crate) to: SocketAddr,
    /// The source address, of the family of `to`.
    pub(crate) from: Option<Address>,
    pub(crate) offer: Offered,
    pub(crate) rpc: Rpc,
    pub(crate) reconnect: bool,
    pub(crate) timeout_ms: u32,
    /// The program whose NULL is called after connecting, if any.
    pub(crate) null: Option<Program>,
}

/// The command in a line written to `listen`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Listen {
    pub(crate) at: SocketAddr,
    pub(crate) offer: Offered,
    pub(crate) rpc: Rpc,
    /// The largest number of connections.
    pub(crate) max: u32,
    /// Whether calls are answered.
    pub(crate) answer: bool,
    /// The time limit of a call in the reverse direction, in milliseconds.
    pub(crate) timeout_ms: u32,
}

/// The command in a line written to `call`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CallCommand {
    /// The number of the connection to call on.
    pub(crate) connection: u64,
    pub(crate) request: CallRequest,
}

/// The command in a line written to `close`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Close {
    Connection(u64),
    Listener(u64),
    All,
}

/// Parses `ADDR:PORT [key=value]…` with the keys of `connect`.
///
/// # Errors
///
/// Fails with the first word that is refused, and the reason.
pub(crate) fn parse_connect(line: &[u8]) -> Result<Connect, LineError<'_>> {
    connect(Line::Connect, line)
}

/// Parses `ADDR:PORT [key=value]…` with the keys of `probe`. A probe always calls NULL in each
/// version of `rpcvers=`.
///
/// # Errors
///
/// Fails with the first word that is refused, and the reason.
pub(crate) fn parse_probe(line: &[u8]) -> Result<Connect, LineError<'_>> {
    connect(Line::Probe, line)
}

fn connect(kind: Line, line: &[u8]) -> Result<Connect, LineError<'_>> {
    let mut words = words(line)?;
    let to = read(words.next().unwrap_or_default(), socket_address)?;
    let keys = Keys::read(kind, Some(to.address), words)?;

    Ok(Connect {
        to,
        from: keys.from,
        offer: keys.offer(),
        rpc: keys.rpc(),
        reconnect: keys.reconnect(),
        timeout_ms: keys.timeout_ms(),
        null: keys.null().then_some(keys.null_program()),
    })
}

/// Parses `ADDR:PORT [key=value]…` with the keys of `listen`.
///
/// # Errors
///
/// Fails with the first word that is refused, and the reason.
pub(crate) fn parse_listen(line: &[u8]) -> Result<Listen, LineError<'_>> {
    let mut words = words(line)?;
    let at = read(words.next().unwrap_or_default(), socket_address)?;
    let keys = Keys::read(Line::Listen, None, words)?;

    Ok(Listen {
        at,
        offer: keys.offer(),
        rpc: keys.rpc(),
        max: keys.max(),
        answer: keys.answer(),
        timeout_ms: keys.timeout_ms(),
    })
}

/// Parses `connection ID null [key=value]…` or `connection ID echo [key=value]…`.
///
/// # Errors
///
/// Fails with the first word that is refused, and the reason.
pub(crate) fn parse_call(line: &[u8]) -> Result<CallCommand, LineError<'_>> {
    let mut words = words(line)?;
    let connection = match words.next().unwrap_or_default() {
        b"connection" => read(words.next().unwrap_or_default(), id)?,
        word => {
            let reason = "expected connection ID";
            return Err(LineError { word, reason });
        }
    };

    let kind = match words.next().unwrap_or_default() {
        b"null" => Line::Null,
        b"echo" => Line::Echo,
        word => {
            let reason = "expected null or echo";
            return Err(LineError { word, reason });
        }
    };
    let keys = Keys::read(kind, None, words)?;

    Ok(CallCommand {
        connection,
        request: CallRequest {
            procedure: match kind {
                Line::Echo => CalledProcedure::Echo { size: keys.size() },
                _ => CalledProcedure::Null(keys.null_program()),
            },
            count: keys.count(),
            jobs: keys.jobs(),
            chunks: keys.chunks(),
        },
    })
}

/// Parses `connection ID`, `listener ID` or `all`.
///
/// # Errors
///
/// Fails with the first word that is refused, and the reason.
pub(crate) fn parse_close(line: &[u8]) -> Result<Close, LineError<'_>> {
    let mut words = words(line)?;
    let what = words.next().unwrap_or_default();
    let close = match what {
        b"connection" => Close::Connection(read(words.next().unwrap_or_default(), id)?),
        b"listener" => Close::Listener(read(words.next().unwrap_or_default(), id)?),
        b"all" => Close::All,
        word => {
            let reason = "expected connection ID, listener ID or all";
            return Err(LineError { word, reason });
        }
    };

    match words.next() {
        None => Ok(close),
        Some(word) => Err(LineError {
            word,
            reason: "one word too many",
        }),
    }
}

/// The lines with keys. `Null` and `Echo` are lines of `call`.
#[derive(Clone, Copy)]
enum Line {
    Connect,
    Listen,
    Probe,
    Null,
    Echo,
}

macro_rules! parse_value {
    ($text:ident, $to:expr, Size) => {
        size($text)
    };
    ($text:ident, $to:expr, bool) => {
        flag($text)
    };
    ($text:ident, $to:expr, u32 $low:literal to $high:literal $($unit:literal)?) => {
        number($text, $low..=$high, concat!("not ", $low, " to ", $high $(, " ", $unit)?))
    };
    ($text:ident, $to:expr, Versions) => {
        versions($text)
    };
    ($text:ident, $to:expr, Offered) => {
        private($text)
    };
    ($text:ident, $to:expr, Address) => {
        source_address($text, $to)
    };
}

macro_rules! default_value {
    (Size 4096) => {
        Size::from_encoded(3)
    };
    (bool $flag:tt) => {
        $flag == 1
    };
    (u32 $number:tt) => {
        $number
    };
    (Versions auto) => {
        Versions::ALL
    };
    (Versions $version:tt) => {
        Versions::only($version)
    };
}

macro_rules! keys {
    ($(
        $(#[doc = $doc:literal])* $key:ident: $type:ident $(($($range:tt)*))?
            $(= $default:tt $(($other:ident: $others:tt))?)? in $($line:ident)*;
    )*) => {
        /// The keys of a line, with the values that it gives.
        struct Keys {
            line: Line,
            /// The destination, whose address family `from=` must have.
            to: Option<Address>,
            $($key: Option<$type>,)*
        }

        impl Keys {
            fn new(line: Line, to: Option<Address>) -> Self {
                Self { line, to, $($key: None,)* }
            }

            fn set(&mut self, key: &str, value: &str) -> Result<(), Reason> {
                match key {
                    $(stringify!($key) if matches!(self.line, $(Line::$line)|*) => {
                        let value = parse_value!(value, self.to, $type $($($range)*)?)?;
                        once(&mut self.$key, value)
                    })*
                    _ => Err("unknown key"),
                }
            }

            // The value, or the default.
            $($(fn $key(&self) -> $type {
                self.$key.unwrap_or(match self.line {
                    $(Line::$other => default_value!($type $others),)?
                    _ => default_value!($type $default),
                })
            })?)*
        }
    };
}

control_keys!(keys);

impl Keys {
    /// Reads `key=value` words.
    fn read<'a>(
        line: Line,
        to: Option<Address>,
        words: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self, LineError<'a>> {
        let mut keys = Self::new(line, to);
        for word in words {
            read(word, |text| {
                let (key, rest) = until(text, b'=');
                match rest.strip_prefix('=') {
                    None => Err("not key=value"),
                    Some("") => Err("no value"),
                    Some(value) => keys.set(key, value).and_then(|()| keys.check()),
                }
            })?;
        }
        Ok(keys)
    }

    /// Checks that no key excludes another one.
    fn check(&self) -> Result<(), Reason> {
        let message = self.send.is_some() || self.recv.is_some() || self.inv.is_some();
        if message && self.private.is_some() {
            return Err("private= excludes send=, recv= and inv=");
        }
        let program = self.program.is_some() || self.version.is_some();
        if program && !self.null() {
            return Err("null=0 excludes program= and version=");
        }
        Ok(())
    }

    fn offer(&self) -> Offered {
        self.private.unwrap_or(Offered::Message(Offer {
            send_size: self.send(),
            receive_size: self.recv(),
            remote_invalidation: self.inv(),
        }))
    }

    fn rpc(&self) -> Rpc {
        Rpc {
            versions: self.rpcvers(),
            credits: self.credits(),
            reverse: self.reverse(),
            bind: self.bind(),
        }
    }

    fn null_program(&self) -> Program {
        Program {
            number: self.program(),
            version: self.version(),
        }
    }
}

/// Splits a line into its words.
fn words(line: &[u8]) -> Result<impl Iterator<Item = &[u8]>, LineError<'_>> {
    if line.len() > LINE_MAX {
        return Err(LineError {
            word: b"",
            reason: "longer than 2048 octets",
        });
    }
    Ok(line
        .strip_suffix(b"\n")
        .unwrap_or(line)
        .split(|octet| matches!(octet, b' ' | b'\t'))
        .filter(|word| !word.is_empty()))
}

/// Reads one word with `parse`. If that fails, the error names the word.
fn read<'a, T>(
    word: &'a [u8],
    parse: impl FnOnce(&'a str) -> Result<T, Reason>,
) -> Result<T, LineError<'a>> {
    text(word)
        .and_then(parse)
        .map_err(|reason| LineError { word, reason })
}

fn text(word: &[u8]) -> Result<&str, Reason> {
    match str::from_utf8(word) {
        Ok(text) if !text.chars().any(char::is_control) => Ok(text),
        _ => Err("not printable text on one line"),
    }
}

/// Splits before the first `end`, or behind the last octet if there is none.
///
/// Unlike the standard methods for that, this brings no check for overflow into the module.
fn until(text: &str, end: u8) -> (&str, &str) {
    text.bytes()
        .position(|octet| octet == end)
        .and_then(|at| text.split_at_checked(at))
        .unwrap_or((text, ""))
}

fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), Reason> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err("given twice"),
    }
}

/// Reads decimal digits and nothing else: no sign, no space.
fn decimal(text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.bytes().try_fold(0, |number: u64, octet| match octet {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(octet - b'0')),
        _ => None,
    })
}

fn number<T>(text: &str, range: RangeInclusive<T>, reason: Reason) -> Result<T, Reason>
where
    T: PartialOrd + TryFrom<u64>,
{
    decimal(text)
        .and_then(|number| number.try_into().ok())
        .filter(|number| range.contains(number))
        .ok_or(reason)
}

fn id(text: &str) -> Result<u64, Reason> {
    decimal(text).ok_or("expected a decimal ID")
}

fn flag(value: &str) -> Result<bool, Reason> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("not 0 or 1"),
    }
}

/// Reads the versions of RPC-over-RDMA to speak.
fn versions(value: &str) -> Result<Versions, Reason> {
    match value {
        "1" => Ok(Versions::only(1)),
        "2" => Ok(Versions::only(2)),
        "auto" => Ok(Versions::ALL),
        _ => Err("not 1, 2 or auto"),
    }
}

/// Reads a size in octets (RFC 8797, section 4.2).
///
/// Refuses a size that [`Size::from_octets`] would round, so that the peer sees the size that was
/// written.
fn size(value: &str) -> Result<Size, Reason> {
    const OUT_OF_RANGE: Reason = "not 1024 to 262144 octets";

    let octets: u32 = number(value, 0..=u32::MAX, OUT_OF_RANGE)?;
    if octets % 1024 != 0 {
        return Err("not a multiple of 1024 octets");
    }
    Size::from_octets(octets).ok_or(OUT_OF_RANGE)
}

fn private(value: &str) -> Result<Offered, Reason> {
    if value == "none" {
        return Ok(Offered::None);
    }

    let mut data = PrivateData::EMPTY;
    for pair in value.as_bytes().chunks(2) {
        let &[high, low] = pair else {
            return Err("an odd number of hex digits");
        };
        data.push((hex_digit(high)? << 4) | hex_digit(low)?)
            .ok_or(TOO_MANY_OCTETS)?;
    }
    Ok(Offered::Raw(data))
}

fn hex_digit(octet: u8) -> Result<u8, Reason> {
    match octet {
        b'0'..=b'9' => Ok(octet - b'0'),
        b'a'..=b'f' => Ok(octet - b'a' + 10),
        b'A'..=b'F' => Ok(octet - b'A' + 10),
        _ => Err("expected pairs of hexadecimal digits, or the word none"),
    }
}

fn socket_address(word: &str) -> Result<SocketAddr, Reason> {
    let (address, rest) = address(word)?;
    let port = rest
        .strip_prefix(':')
        .ok_or("expected :PORT behind the address")?;

    Ok(SocketAddr {
        address,
        port: number(port, 1..=u16::MAX, "port is not 1 to 65535")?,
    })
}

fn source_address(value: &str, to: Option<Address>) -> Result<Address, Reason> {
    let (from, rest) = address(value)?;
    if !rest.is_empty() {
        return Err("expected only an address");
    }
    match (from, to) {
        (Address::V4(_), Some(Address::V4(_))) | (Address::V6 { .. }, Some(Address::V6 { .. })) => {
            Ok(from)
        }
        _ => Err("not of the destination's address family"),
    }
}

/// Reads an IPv4 address, or an IPv6 address in brackets with its zone inside them, and returns it
/// with the octets behind it.
fn address(text: &str) -> Result<(Address, &str), Reason> {
    const NOT_AN_ADDRESS: Reason = "expected an IPv4 address, or an IPv6 address in brackets";

    let Some(bracketed) = text.strip_prefix('[') else {
        let (address, rest) = until(text, b':');
        let address = address.parse().map_err(|_| NOT_AN_ADDRESS)?;
        return Ok((Address::V4(address), rest));
    };

    let (inner, rest) = until(bracketed, b']');
    let rest = rest.strip_prefix(']').ok_or(NOT_AN_ADDRESS)?;
    let (address, behind) = until(inner, b'%');
    let address = Address::V6 {
        address: address.parse().map_err(|_| NOT_AN_ADDRESS)?,
        zone: behind.strip_prefix('%').map(zone).transpose()?,
    };
    Ok((address, rest))
}

/// Reads an interface's name, or its index if there are only digits.
fn zone(text: &str) -> Result<Zone, Reason> {
    const NOT_A_ZONE: Reason = "zone is not an interface's index or name of up to 15 octets";

    if text.bytes().all(|octet| octet.is_ascii_digit()) {
        return number(text, 1..=u32::MAX, NOT_A_ZONE).map(Zone::Index);
    }

    let mut name = [0; 16];
    if text.len() >= name.len() {
        return Err(NOT_A_ZONE);
    }
    for (to, from) in name.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    Ok(Zone::Name(name))
}
