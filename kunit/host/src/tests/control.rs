// SPDX-License-Identifier: GPL-2.0

//! The grammar of the control files.
//!
//! A line is made from words in a canonical form, in any order and spacing, with or without the
//! words that repeat a default. The result of parsing it is turned into that form again.

use std::net::{
    Ipv4Addr,
    Ipv6Addr, //
};

use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{
        select,
        Index, //
    }, //
};

use super::cases;
use crate::{
    checks::control::{
        call_words,
        check,
        connect_words,
        hex,
        listen_words, //
    },
    pure::text::grammar::{
        parse_call,
        parse_close,
        parse_connect,
        parse_listen,
        parse_probe,
        Close, //
    }, //
};

/// The words of all defaults except that of `rpcvers=`.
const UNTOLD: [&str; 17] = [
    "send=4096",
    "recv=4096",
    "inv=0",
    "credits=8",
    "reverse=0",
    "bind=1",
    "reconnect=0",
    "timeout_ms=5000",
    "null=1",
    "program=100003",
    "version=4",
    "max=64",
    "answer=1",
    "size=1024",
    "count=1",
    "jobs=1",
    "chunks=0",
];

fn addresses(v6: bool) -> BoxedStrategy<String> {
    let zones = prop_oneof![
        (1..=u32::MAX).prop_map(|index| format!("%{index}")),
        r"%[!-~&&[^\]]]{0,14}[!-/:-~&&[^\]]]",
        Just(String::new()),
    ];
    if v6 {
        (any::<Ipv6Addr>(), zones)
            .prop_map(|(address, zone)| format!("[{address}{zone}]"))
            .boxed()
    } else {
        any::<Ipv4Addr>()
            .prop_map(|address| address.to_string())
            .boxed()
    }
}

/// A key with any of `numbers`, or often with `default`.
fn number(
    key: &'static str,
    default: u32,
    numbers: impl Strategy<Value = u32>,
) -> impl Strategy<Value = String> {
    prop_oneof![1 => Just(default), 3 => numbers].prop_map(move |number| format!("{key}={number}"))
}

fn offers() -> impl Strategy<Value = Vec<String>> {
    let size = || (1..=256u32).prop_map(|kilo_octets| kilo_octets * 1024);
    prop_oneof![
        (
            number("send", 4096, size()),
            number("recv", 4096, size()),
            number("inv", 0, 0..=1u32)
        )
            .prop_map(|(send, recv, inv)| vec![send, recv, inv]),
        vec(any::<u8>(), 1..=255).prop_map(|octets| vec![format!("private={}", hex(&octets))]),
        Just(vec!["private=none".to_string()]),
    ]
}

fn rpcs() -> impl Strategy<Value = [String; 4]> {
    let versions = select(vec!["1", "2", "auto"]);
    (
        versions,
        number("credits", 8, 1..=64u32),
        number("reverse", 0, 0..=64u32),
        number("bind", 1, 0..=1u32),
    )
        .prop_map(|(versions, credits, reverse, bind)| {
            [format!("rpcvers={versions}"), credits, reverse, bind]
        })
}

fn programs() -> impl Strategy<Value = [String; 2]> {
    (
        number("program", 100_003, any::<u32>()),
        number("version", 4, any::<u32>()),
    )
        .prop_map(|(program, version)| [program, version])
}

/// The words of a line for `connect`, the address first.
fn connects() -> impl Strategy<Value = Vec<String>> {
    let addresses = any::<bool>().prop_flat_map(|v6| (addresses(v6), option::of(addresses(v6))));
    (
        addresses,
        1..=u16::MAX,
        offers(),
        rpcs(),
        number("reconnect", 0, 0..=1u32),
        number("timeout_ms", 5000, 1..=600_000u32),
        option::weighted(0.8, programs()),
    )
        .prop_map(
            |((to, from), port, offer, rpc, reconnect, timeout_ms, null)| {
                let mut words = vec![format!("{to}:{port}")];
                words.extend(offer);
                words.extend(rpc);
                words.extend([reconnect, timeout_ms]);
                words.extend(from.map(|from| format!("from={from}")));
                words.push(format!("null={}", u8::from(null.is_some())));
                words.extend(null.into_iter().flatten());
                words
            },
        )
}

/// The words of a line for `listen`, the address first.
fn listens() -> impl Strategy<Value = Vec<String>> {
    let address = any::<bool>().prop_flat_map(addresses);
    (
        address,
        1..=u16::MAX,
        offers(),
        rpcs(),
        number("max", 64, 1..=65_536u32),
        number("answer", 1, 0..=1u32),
        number("timeout_ms", 5000, 1..=600_000u32),
    )
        .prop_map(|(at, port, offer, rpc, max, answer, timeout_ms)| {
            let mut words = vec![format!("{at}:{port}")];
            words.extend(offer);
            words.extend(rpc);
            words.extend([max, answer, timeout_ms]);
            words
        })
}

/// The words of a line for `call`, those without a key as the first.
fn calls() -> impl Strategy<Value = Vec<String>> {
    let nulls = programs().prop_map(|program| ("null", program.to_vec()));
    let echoes = number("size", 1024, 0..=1_048_576u32).prop_map(|size| ("echo", vec![size]));
    (
        any::<u64>(),
        prop_oneof![nulls, echoes],
        number("count", 1, 1..=1_000_000u32),
        number("jobs", 1, 1..=64u32),
        number("chunks", 0, 0..=1u32),
    )
        .prop_map(|(id, (what, own), count, jobs, chunks)| {
            let mut words = vec![format!("connection {id} {what}")];
            words.extend(own);
            words.extend([count, jobs, chunks]);
            words
        })
}

/// Writes words as a line, in any way that means the same.
fn lines(words: Vec<String>) -> impl Strategy<Value = (Vec<String>, String)> {
    let address = words[0].clone();
    let keys = Just(words[1..].to_vec()).prop_shuffle();
    let space = select(vec![" ", "\t", "  ", " \t "]);
    let end = select(vec!["", " ", "\n", "\t\n"]);
    // A server has `max=`.
    let versions = if words.iter().any(|word| word.starts_with("max=")) {
        "rpcvers=auto"
    } else {
        "rpcvers=1"
    };
    (keys, vec(space, words.len()), end, any::<bool>()).prop_map(
        move |(keys, spaces, end, terse)| {
            let mut line = address.clone();
            for (key, space) in keys.iter().zip(spaces) {
                if !(terse && (key == versions || UNTOLD.contains(&key.as_str()))) {
                    line += space;
                    line += key;
                }
            }
            (words.clone(), line + end)
        },
    )
}

proptest! {
    #![proptest_config(cases(5_000))]

    #[test]
    fn connect((words, line) in connects().prop_flat_map(lines)) {
        let connect = parse_connect(line.as_bytes()).map_err(|refusal| refusal.to_string());
        prop_assert_eq!(connect.map(connect_words), Ok(words));
    }

    #[test]
    fn listen((words, line) in listens().prop_flat_map(lines)) {
        let listen = parse_listen(line.as_bytes()).map_err(|refusal| refusal.to_string());
        prop_assert_eq!(listen.map(listen_words), Ok(words));
    }

    #[test]
    fn probe((mut words, line) in connects().prop_flat_map(lines)) {
        check(line.as_bytes());
        // These are the same for all probes.
        words.retain(|word| {
            ["reverse=", "bind=", "reconnect=", "null="]
                .iter()
                .all(|key| !word.starts_with(key))
        });
        let line = words.join(" ");
        check(line.as_bytes());
        prop_assert!(parse_probe(line.as_bytes()).is_ok());
    }

    #[test]
    fn call((words, line) in calls().prop_flat_map(lines)) {
        let call = parse_call(line.as_bytes()).map_err(|refusal| refusal.to_string());
        prop_assert_eq!(call.map(call_words), Ok(words));
    }

    #[test]
    fn close(id in any::<u64>()) {
        let connection = format!("connection {id}\n");
        prop_assert_eq!(parse_close(connection.as_bytes()), Ok(Close::Connection(id)));
        let listener = format!("listener {id}\n");
        prop_assert_eq!(parse_close(listener.as_bytes()), Ok(Close::Listener(id)));
    }

    #[test]
    fn any_octets(line in vec(any::<u8>(), 0..=600)) {
        check(&line);
    }

    /// Lines that are nearly right. They reach more code than random octets do.
    #[test]
    fn any_change(
        (_, line) in prop_oneof![connects(), listens(), calls()].prop_flat_map(lines),
        at in any::<Index>(),
        removed in 0..=3usize,
        added in vec(prop_oneof![any::<u8>(), select(b" \t\n\0=:%[].0159af".to_vec())], 0..=3),
    ) {
        let mut line = line.into_bytes();
        let at = at.index(line.len());
        line.splice(at..line.len().min(at + removed), added);
        check(&line);
    }

    /// Any word that is given twice is refused.
    #[test]
    fn repeated(
        connect in connects(),
        listen in listens(),
        call in calls(),
        which in any::<Index>(),
    ) {
        let repeated = |words: Vec<String>| [&words.join(" "), " ", which.get(&words)].concat();
        prop_assert!(parse_connect(repeated(connect).as_bytes()).is_err());
        prop_assert!(parse_listen(repeated(listen).as_bytes()).is_err());
        prop_assert!(parse_call(repeated(call).as_bytes()).is_err());
    }

    /// `program=` or `version=` together with `null=0` is refused, in any order.
    #[test]
    fn no_call_of_a_program(words in (programs(), any::<Index>()).prop_flat_map(
        |(program, which)| Just(vec!["null=0".into(), which.get(&program).clone()]).prop_shuffle()
    )) {
        let line = format!("192.0.2.1:1 {}", words.join(" "));
        let refusal = parse_connect(line.as_bytes()).map_err(|refusal| refusal.to_string());
        let reason = "null=0 excludes program= and version=";
        prop_assert_eq!(refusal, Err(format!("{}: {reason}", words[1])));
    }
}
