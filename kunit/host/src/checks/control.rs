// SPDX-License-Identifier: GPL-2.0

//! The grammar of the control files. The result of parsing a line is turned into words again, in a
//! canonical form, and compared with the oracle.

use super::{
    control_oracle::{
        self,
        Verdict, //
    },
    shown, //
};
use crate::pure::{
    text::grammar::{
        parse_call,
        parse_close,
        parse_connect,
        parse_listen,
        parse_probe,
        Address,
        CallCommand,
        Close,
        Connect,
        LineError,
        Listen,
        Rpc,
        SocketAddr,
        Zone, //
    },
    wire::{
        call_request::CalledProcedure,
        private_data::Offered,
        program::Program, //
    }, //
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

/// The words of `connect`, without those that are the same for all probes.
pub(crate) fn probe_words(connect: Connect) -> Vec<String> {
    let mut words = connect_words(connect);
    let len = words.len();
    let same = ["reverse=0", "bind=1", "reconnect=0", "null=1"];
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

pub(crate) fn call_words(call: CallCommand) -> Vec<String> {
    let CallCommand {
        connection,
        request,
    } = call;
    let mut words = Vec::new();
    match request.procedure {
        CalledProcedure::Null(program) => {
            words.push(format!("connection {connection} null"));
            words.extend(program_words(program));
        }
        CalledProcedure::Echo { size } => words.extend([
            format!("connection {connection} echo"),
            format!("size={size}"), //
        ]),
        CalledProcedure::Bind => panic!("the grammar has no BIND"),
    }
    words.push(format!("count={}", request.count));
    words.push(format!("jobs={}", request.jobs));
    words.push(format!("chunks={}", u8::from(request.chunks)));
    words
}

fn close_words(close: Close) -> Vec<String> {
    vec![match close {
        Close::Connection(id) => format!("connection {id}"),
        Close::Listener(id) => format!("listener {id}"),
        Close::All => "all".into(),
    }]
}

/// Returns a word as `last_error` shows it.
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

/// Checks the result of one file for a line: it is that of the oracle, and parsing its canonical
/// form gives the same result. A refusal begins with the first word that does not fit.
fn check_file<'a>(
    line: &'a [u8],
    words: impl for<'b> Fn(&'b [u8]) -> Result<Vec<String>, LineError<'b>>,
    verdict: Verdict<'a>,
) {
    match (words(line), verdict) {
        (Ok(own), Ok(expected)) => {
            assert_eq!(own, expected, "{}", line.escape_ascii());
            assert_eq!(words(own.join(" ").as_bytes()), Ok(own));
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

/// Checks the results of all control files for a line.
pub(crate) fn check(line: &[u8]) {
    check_file(
        line,
        |line| parse_connect(line).map(connect_words),
        control_oracle::connect(line),
    );
    check_file(
        line,
        |line| parse_probe(line).map(probe_words),
        control_oracle::probe(line),
    );
    check_file(
        line,
        |line| parse_listen(line).map(listen_words),
        control_oracle::listen(line),
    );
    check_file(
        line,
        |line| parse_call(line).map(call_words),
        control_oracle::call(line),
    );
    check_file(
        line,
        |line| parse_close(line).map(close_words),
        control_oracle::close(line),
    );
}
