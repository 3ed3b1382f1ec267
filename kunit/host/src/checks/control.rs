// SPDX-License-Identifier: GPL-2.0

//! The grammar of the control files: what is understood of a line is put into words again, in a
//! canonical form.

use std::fmt::Debug;

use super::{
    control_oracle::{
        self,
        Verdict, //
    },
    shown, //
};
use crate::protocol::{
    control::{
        parse_call,
        parse_close,
        parse_connect,
        parse_listen,
        parse_probe,
        Address,
        Call,
        CalledProcedure,
        Close,
        Connect,
        LineError,
        Listen,
        Rpc,
        SocketAddr,
        Zone, //
    },
    private_data::Offered,
    program::Program, //
};

fn address_word(address: Address) -> String {
    match address {
        Address::V4(address) => format!("{address}"),
        Address::V6 {
            address,
            zone: None,
        } => format!("[{address}]"),
        Address::V6 {
            address,
            zone: Some(Zone::Index(index)),
        } => format!("[{address}%{index}]"),
        Address::V6 {
            address,
            zone: Some(Zone::Name(name)),
        } => {
            let name = std::str::from_utf8(&name).unwrap();
            format!("[{address}%{}]", name.trim_end_matches('\0'))
        }
    }
}

pub(crate) fn hex(octets: &[u8]) -> String {
    octets
        .iter()
        .flat_map(|octet| [octet >> 4, octet & 0x0f])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

fn words(at: SocketAddr, offer: &Offered, rpc: Rpc, others: &[String]) -> Vec<String> {
    let mut words = vec![format!("{}:{}", address_word(at.address), at.port)];
    match offer {
        Offered::Message(offer) => words.extend([
            format!("send={}", offer.send_size.octets()),
            format!("recv={}", offer.receive_size.octets()),
            format!("inv={}", u8::from(offer.remote_invalidation)),
        ]),
        Offered::Raw(data) => {
            words.push(format!("private={}", hex(data.octets())));
        }
        Offered::None => words.push("private=none".into()),
    }
    let versions = match (rpc.versions.low, rpc.versions.high) {
        (1, 1) => "1",
        (2, 2) => "2",
        (1, 2) => "auto",
        versions => panic!("versions {versions:?}"),
    };
    words.extend([
        format!("rpcvers={versions}"),
        format!("credits={}", rpc.credits),
        format!("reverse={}", rpc.reverse),
        format!("bind={}", u8::from(rpc.bind)),
    ]);
    words.extend_from_slice(others);
    words
}

fn program_words(program: Program) -> [String; 2] {
    [
        format!("program={}", program.number),
        format!("version={}", program.version),
    ]
}

pub(crate) fn connect_words(connect: Connect) -> Vec<String> {
    let mut others = vec![
        format!("reconnect={}", u8::from(connect.reconnect)),
        format!("timeout_ms={}", connect.timeout_ms),
    ];
    others.extend(
        connect
            .from
            .map(|from| format!("from={}", address_word(from))),
    );
    others.push(format!("null={}", u8::from(connect.null.is_some())));
    others.extend(connect.null.into_iter().flat_map(program_words));
    words(connect.to, &connect.offer, connect.rpc, &others)
}

/// As of `connect`, without what is the same of all probes.
pub(crate) fn probe_words(connect: Connect) -> Vec<String> {
    let mut words = connect_words(connect);
    let len = words.len();
    let same = [
        "rpcvers=auto",
        "reverse=0",
        "bind=1",
        "reconnect=0",
        "null=1",
    ];
    words.retain(|word| !same.contains(&&word[..]));
    assert_eq!(words.len(), len - same.len());
    words
}

pub(crate) fn listen_words(listen: Listen) -> Vec<String> {
    let max = format!("max={}", listen.max);
    let answer = format!("answer={}", u8::from(listen.answer));
    let timeout_ms = format!("timeout_ms={}", listen.timeout_ms);
    words(
        listen.at,
        &listen.offer,
        listen.rpc,
        &[max, answer, timeout_ms],
    )
}

pub(crate) fn call_words(call: Call) -> Vec<String> {
    let connection = call.connection;
    let mut words = Vec::new();
    match call.procedure {
        CalledProcedure::Null(program) => {
            words.push(format!("connection {connection} null"));
            words.extend(program_words(program));
        }
        CalledProcedure::Echo { size, count } => words.extend([
            format!("connection {connection} echo"),
            format!("size={size}"),
            format!("count={count}"),
        ]),
    }
    words.push(format!("chunks={}", u8::from(call.chunks)));
    words
}

fn close_words(close: Close) -> Vec<String> {
    vec![match close {
        Close::Connection(id) => format!("connection {id}"),
        Close::Listener(id) => format!("listener {id}"),
        Close::All => "all".into(),
    }]
}

/// How a word that may be anything is shown: the beginning of what `last_error` says.
fn shown_word(word: &[u8]) -> String {
    let mut shown: String = word
        .iter()
        .take(64)
        .map(|octet| match octet {
            b'\\' => "\\x5c".into(),
            b'!'..=b'~' => char::from(*octet).into(),
            _ => format!("\\x{octet:02x}"),
        })
        .collect();
    if word.len() > 64 {
        shown += "...";
    }
    if !word.is_empty() {
        shown += ": ";
    }
    shown
}

/// Checks what one file makes of a line: the same as the oracle, and of its words in the canonical
/// form the same again. A refusal begins with the word that is the first not to fit.
fn check_file<'a, T: Copy + Debug + PartialEq>(
    line: &'a [u8],
    parse: impl for<'b> Fn(&'b [u8]) -> Result<T, LineError<'b>>,
    words: impl Fn(T) -> Vec<String>,
    verdict: Verdict<'a>,
) {
    match (parse(line), verdict) {
        (Ok(parsed), Ok(expected)) => {
            let own = words(parsed);
            assert_eq!(own, expected, "{}", line.escape_ascii());
            assert_eq!(parse(own.join(" ").as_bytes()), Ok(parsed));
        }
        (Err(refusal), Err(word)) => {
            if refusal.is_too_many_octets() {
                let digits = word.strip_prefix(b"private=").unwrap();
                assert!(digits[..2 * 256].iter().all(u8::is_ascii_hexdigit));
            }
            let shown = shown(refusal);
            let begin = shown_word(word);
            assert!(
                shown.len() > begin.len() && shown.starts_with(&begin),
                "{shown}, not {begin}: {}",
                line.escape_ascii()
            );
        }
        (parsed, expected) => panic!("{parsed:?}, not {expected:?}: {}", line.escape_ascii()),
    }
}

/// Checks what is made of a line that may be anything.
pub(crate) fn check(line: &[u8]) {
    check_file(
        line,
        parse_connect,
        connect_words,
        control_oracle::connect(line),
    );
    check_file(line, parse_probe, probe_words, control_oracle::probe(line));
    check_file(
        line,
        parse_listen,
        listen_words,
        control_oracle::listen(line),
    );
    check_file(line, parse_call, call_words, control_oracle::call(line));
    check_file(line, parse_close, close_words, control_oracle::close(line));
}
