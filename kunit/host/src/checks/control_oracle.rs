// SPDX-License-Identifier: GPL-2.0

//! A second implementation of the grammar of the control files, written from docs/admin-guide.md in
//! another way: each key is a row of a table, and the result of a line is its words, completed by
//! the defaults.

use std::{
    net::{
        Ipv4Addr,
        Ipv6Addr, //
    },
    str,
};

/// The words of a line, or the first word that does not fit. An empty word stands for a missing
/// one.
pub(crate) type Verdict<'a> = Result<Vec<String>, &'a [u8]>;

/// The values that a key can have.
#[derive(Clone, Copy)]
enum Kind {
    Number(u128, u128),
    Size,
    Flag,
    Versions,
    Private,
    Address,
}

/// A key, its default if it has one, and its possible values.
type Row = (&'static str, Option<&'static str>, Kind);

const SEND: Row = ("send", Some("4096"), Kind::Size);
const RECV: Row = ("recv", Some("4096"), Kind::Size);
const INV: Row = ("inv", Some("0"), Kind::Flag);
const PRIVATE: Row = ("private", None, Kind::Private);
const CLIENT_RPCVERS: Row = ("rpcvers", Some("1"), Kind::Versions);
const SERVER_RPCVERS: Row = ("rpcvers", Some("auto"), Kind::Versions);
const CREDITS: Row = ("credits", Some("8"), Kind::Number(1, 64));
const REVERSE: Row = ("reverse", Some("0"), Kind::Number(0, 64));
const BIND: Row = ("bind", Some("1"), Kind::Flag);
const RECONNECT: Row = ("reconnect", Some("0"), Kind::Flag);
const TIMEOUT: Row = ("timeout_ms", Some("5000"), Kind::Number(1, 600_000));
const FROM: Row = ("from", None, Kind::Address);
const NULL: Row = ("null", Some("1"), Kind::Flag);
const PROGRAM: Row = ("program", Some("100003"), Kind::Number(0, 4_294_967_295));
const VERSION: Row = ("version", Some("4"), Kind::Number(0, 4_294_967_295));
const MAX: Row = ("max", Some("64"), Kind::Number(1, 65_536));
const ANSWER: Row = ("answer", Some("1"), Kind::Flag);
const SIZE: Row = ("size", Some("1024"), Kind::Number(0, 1_048_576));
const COUNT: Row = ("count", Some("1"), Kind::Number(1, 1_000_000));
const JOBS: Row = ("jobs", Some("1"), Kind::Number(1, 64));
const CHUNKS: Row = ("chunks", Some("0"), Kind::Flag);

const CONNECT: [Row; 14] = [
    SEND,
    RECV,
    INV,
    PRIVATE,
    CLIENT_RPCVERS,
    CREDITS,
    REVERSE,
    BIND,
    RECONNECT,
    TIMEOUT,
    FROM,
    NULL,
    PROGRAM,
    VERSION,
];
const PROBE: [Row; 10] = [
    SEND,
    RECV,
    INV,
    PRIVATE,
    CLIENT_RPCVERS,
    CREDITS,
    TIMEOUT,
    FROM,
    PROGRAM,
    VERSION,
];
const LISTEN: [Row; 11] = [
    SEND,
    RECV,
    INV,
    PRIVATE,
    SERVER_RPCVERS,
    CREDITS,
    REVERSE,
    BIND,
    MAX,
    ANSWER,
    TIMEOUT,
];

/// Two keys: the second one may not be given if the first one has that value.
const EXCLUDED: [(&str, &str, &str); 5] = [
    ("private", "", "send"),
    ("private", "", "recv"),
    ("private", "", "inv"),
    ("null", "0", "program"),
    ("null", "0", "version"),
];

pub(crate) fn connect(line: &[u8]) -> Verdict<'_> {
    at_address(line, &CONNECT)
}

pub(crate) fn probe(line: &[u8]) -> Verdict<'_> {
    at_address(line, &PROBE)
}

pub(crate) fn listen(line: &[u8]) -> Verdict<'_> {
    at_address(line, &LISTEN)
}

pub(crate) fn call(line: &[u8]) -> Verdict<'_> {
    let words = words(line)?;
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    if word(0) != b"connection" {
        return Err(word(0));
    }
    let id = id(word(1)).ok_or(word(1))?;
    let (what, rows): (_, &[Row]) = match word(2) {
        b"null" => ("null", &[PROGRAM, VERSION, COUNT, JOBS, CHUNKS]),
        b"echo" => ("echo", &[SIZE, COUNT, JOBS, CHUNKS]),
        word => return Err(word),
    };
    let said = keys(&words[3..], rows, None)?;
    Ok([vec![format!("connection {id} {what}")], said].concat())
}

pub(crate) fn close(line: &[u8]) -> Verdict<'_> {
    let words = words(line)?;
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let (said, used) = match word(0) {
        b"all" => ("all".to_string(), 1),
        b"connection" => (
            format!("connection {}", id(word(1)).ok_or(word(1))?),
            2, //
        ),
        b"listener" => (
            format!("listener {}", id(word(1)).ok_or(word(1))?),
            2, //
        ),
        word => return Err(word),
    };
    match words.get(used) {
        None => Ok(vec![said]),
        Some(word) => Err(word),
    }
}

fn words(line: &[u8]) -> Result<Vec<&[u8]>, &[u8]> {
    if line.len() > 2048 {
        return Err(b"");
    }
    let end = line.len() - usize::from(line.last() == Some(&b'\n'));
    Ok(line[..end]
        .split(|octet| *octet == 32 || *octet == 9)
        .filter(|word| !word.is_empty())
        .collect())
}

/// Returns a word as text. All words except the fixed ones have to be text.
fn text(word: &[u8]) -> Option<&str> {
    let text = str::from_utf8(word).ok()?;
    (!text.contains(char::is_control)).then_some(text)
}

/// `ADDR:PORT [key=value]…`
fn at_address<'a>(line: &'a [u8], rows: &[Row]) -> Verdict<'a> {
    let words = words(line)?;
    let first = words.first().copied().unwrap_or_default();
    let (address, port) = text(first)
        .and_then(|text| {
            let (at, port) = text.rsplit_once(':')?;
            Some((address(at)?, digits(port, 1, 65_535)?))
        })
        .ok_or(first)?;
    let said = keys(&words[1..], rows, Some(&address))?;
    Ok([vec![format!("{address}:{port}")], said].concat())
}

/// `[key=value]…` of a line that begins with the address `to`, if it has one.
fn keys<'a>(words: &[&'a [u8]], rows: &[Row], to: Option<&str>) -> Verdict<'a> {
    let mut given: Vec<(&str, String)> = Vec::new();
    for word in words {
        let said = said(word, rows).ok_or(*word)?;
        let twice = given.iter().any(|(key, _)| *key == said.0);
        let family = said.0 != "from" || to.map(is_v6) == Some(is_v6(&said.1));
        given.push(said);
        if twice || !family || is_contradiction(&given) {
            return Err(word);
        }
    }

    let value = |key: &str| {
        given
            .iter()
            .find(|said| said.0 == key)
            .map(|said| &said.1[..])
    };
    let with_defaults: Vec<_> = rows
        .iter()
        .filter_map(|&(key, default, _)| Some((key, value(key).or(default)?)))
        .collect();
    Ok(with_defaults
        .iter()
        .filter(|(key, _)| {
            !EXCLUDED.iter().any(|(by, having, excluded)| {
                excluded == key && with_defaults.iter().any(|said| excludes(said, by, having))
            })
        })
        .map(|(key, value)| format!("{key}={value}"))
        .collect())
}

fn is_contradiction(given: &[(&str, String)]) -> bool {
    EXCLUDED.iter().any(|(by, having, excluded)| {
        given
            .iter()
            .any(|(key, value)| excludes(&(key, value), by, having))
            && given.iter().any(|(key, _)| key == excluded)
    })
}

fn excludes(said: &(&str, &str), by: &str, having: &str) -> bool {
    said.0 == by && (having.is_empty() || said.1 == having)
}

/// Splits a word into its key and its value, which is brought into its canonical form.
fn said(word: &[u8], rows: &[Row]) -> Option<(&'static str, String)> {
    let (key, value) = text(word)?.split_once('=')?;
    let (key, _, kind) = rows.iter().find(|row| row.0 == key)?;
    let value = match kind {
        Kind::Number(low, high) => digits(value, *low, *high)?,
        Kind::Size => {
            let octets = digits(value, 1024, 262_144)?;
            let is_multiple = octets.parse::<u32>().ok()?.trailing_zeros() >= 10;
            is_multiple.then_some(octets)?
        }
        Kind::Flag => one_of(&["0", "1"], value)?,
        Kind::Versions => one_of(&["1", "2", "auto"], value)?,
        Kind::Private if value == "none" => value.into(),
        Kind::Private => {
            let is_hex = value.bytes().all(|digit| digit.is_ascii_hexdigit());
            let is_octets = matches!(value.len(), 2..=510) && value.len() % 2 == 0;
            (is_hex && is_octets).then(|| value.to_ascii_lowercase())?
        }
        Kind::Address => address(value)?,
    };
    Some((key, value))
}

fn one_of(values: &[&str], value: &str) -> Option<String> {
    values.contains(&value).then(|| value.into())
}

/// A decimal number, without leading zeros.
fn digits(text: &str, low: u128, high: u128) -> Option<String> {
    if text.is_empty() || text.contains(|digit: char| !digit.is_ascii_digit()) {
        return None;
    }
    let number = match text.trim_start_matches('0') {
        "" => "0",
        number => number,
    };
    // A number that an u128 cannot hold is in no range.
    let is_within = number
        .parse()
        .is_ok_and(|number| (low..=high).contains(&number));
    is_within.then(|| number.into())
}

fn id(word: &[u8]) -> Option<String> {
    digits(text(word)?, 0, u64::MAX.into())
}

fn is_v6(address: &str) -> bool {
    address.starts_with('[')
}

fn address(text: &str) -> Option<String> {
    if !is_v6(text) {
        return Some(text.parse::<Ipv4Addr>().ok()?.to_string());
    }
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let (address, zone) = match inner.split_once('%') {
        None => (inner, None),
        Some((address, zone)) => (address, Some(zone)),
    };
    let address: Ipv6Addr = address.parse().ok()?;
    Some(match zone {
        None => format!("[{address}]"),
        Some(zone) if zone.contains(']') => return None,
        Some(zone) if zone.bytes().all(|octet| octet.is_ascii_digit()) => {
            format!("[{address}%{}]", digits(zone, 1, 4_294_967_295)?)
        }
        Some(zone) if zone.len() <= 15 => format!("[{address}%{zone}]"),
        Some(_) => return None,
    })
}
