// SPDX-License-Identifier: GPL-2.0

//! Measures how long it takes to find a message in Private Data.
//!
//! usage: `rpcrdma_cm_bench ROUNDS`
//!
//! Prints a line for each round and each content of the Private Data, as
//! scripts/benchmarks/table.py reads it. The fastest sample of a round counts, because other load
//! only adds time.

#![allow(dead_code, reason = "the module uses all of it, this some")]

#[path = "../../../src/pure/mod.rs"]
mod pure;

use std::{
    env,
    hint::black_box,
    time::Instant, //
};

use pure::wire::private_data::parse;

const MESSAGE: [u8; 8] = [0xf6, 0xab, 0x0e, 0x18, 0x01, 0x01, 0x03, 0x07];

const SAMPLES: u32 = 100;
const CALLS_PER_SAMPLE: u32 = 10_000;

/// Private Data as InfiniBand and RoCE deliver it with a REQ and with a REP.
fn cases() -> [(&'static str, Vec<u8>); 3] {
    let mut first = vec![0; 56];
    first[..8].copy_from_slice(&MESSAGE);
    let mut last = vec![0; 196];
    last[188..].copy_from_slice(&MESSAGE);
    [
        ("56 octets, message at 0", first),
        ("196 octets, message at 188", last),
        ("196 octets, no message", vec![0; 196]),
    ]
}

fn nanoseconds(octets: &[u8]) -> f64 {
    let sample = |_| {
        let start = Instant::now();
        for _ in 0..CALLS_PER_SAMPLE {
            black_box(parse(black_box(octets)));
        }
        start.elapsed()
    };
    let fastest = (0..SAMPLES).map(sample).min().unwrap_or_default();
    fastest.as_secs_f64() * 1e9 / f64::from(CALLS_PER_SAMPLE)
}

fn main() {
    let rounds = env::args().nth(1).and_then(|rounds| rounds.parse().ok());
    for _ in 0..rounds.unwrap_or(1) {
        for (name, octets) in cases() {
            println!("parse {name}, ns\tmodule\t{:.1}", nanoseconds(&octets));
        }
    }
}
