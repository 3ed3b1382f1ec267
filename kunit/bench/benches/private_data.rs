// SPDX-License-Identifier: GPL-2.0

//! Measures how long it takes to find a message in Private Data, and to build one. For comparison,
//! on the same octets: a check like that of Linux, which looks at offset 0 only and does not check
//! the length; a simple search in C; and `memmem` for the Format Identifier, with vector
//! instructions and, as in a kernel, without.
//!
//! With `--count`, for callgrind: calls each variant a thousand times, and `mark` after that.

#![allow(dead_code, reason = "the module uses all of it, this some")]

#[path = "../../../src/pure/mod.rs"]
mod pure;

use std::{
    env,
    ffi::c_int,
    hint::black_box, //
};

use criterion::Criterion;
use memchr::{
    arch::all::{
        memchr::One,
        packedpair::Pair, //
    },
    memmem::Finder, //
};
use pure::wire::private_data::{
    parse,
    Offer,
    Size, //
};

const MESSAGE: [u8; 8] = [0xf6, 0xab, 0x0e, 0x18, 0x01, 0x01, 0x03, 0x07];

/// How many times each variant is called with `--count`.
const COUNTED: u32 = 1000;

#[repr(C)]
#[derive(Default)]
struct COffer {
    send_size: u32,
    recv_size: u32,
    remote_invalidation: c_int,
}

/// A function of `checks.c`.
type Check = unsafe extern "C" fn(*const u8, usize, &mut COffer) -> c_int;

extern "C" {
    fn check_at_start(private_data: *const u8, len: usize, offer: &mut COffer) -> c_int;
    fn search(octets: *const u8, len: usize, offer: &mut COffer) -> c_int;
}

fn by_c(check: Check, octets: &[u8]) -> (c_int, COffer) {
    let mut offer = COffer::default();
    // SAFETY: `octets` is valid for its length. `check_at_start` reads eight octets without looking
    // at the length, and every case has at least eight.
    let found = unsafe { check(octets.as_ptr(), octets.len(), &mut offer) };
    (found, offer)
}

/// The algorithm of `memmem` without vector instructions, which the crate does not offer on its
/// own. It looks for the rarest octet, word by word, and then compares the octets around it. Two
/// parts of the original are left out: the record of failed comparisons, and comparing beyond the
/// octets that are wanted.
struct Scalar<'a> {
    wanted: &'a [u8],
    rarest: One,
    index: usize,
}

impl<'a> Scalar<'a> {
    fn new(wanted: &'a [u8]) -> Self {
        let index = Pair::new(wanted).map_or(0, |pair| pair.index1().into());
        Self {
            wanted,
            rarest: One::new(wanted[index]),
            index,
        }
    }

    fn find(&self, octets: &[u8]) -> Option<usize> {
        let mut from = self.index;
        loop {
            let found = from + self.rarest.find(octets.get(from..)?)?;
            let at = found - self.index;
            if octets[at..].starts_with(self.wanted) {
                return Some(at);
            }
            from = found + 1;
        }
    }
}

/// Private Data as InfiniBand and RoCE deliver it with a REQ and with a REP.
fn cases() -> Vec<(String, Vec<u8>)> {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut octet = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 56) as u8
    };
    let mut cases = Vec::new();
    for len in [56, 196] {
        let at = |offset: usize| {
            let mut octets = vec![0; len];
            octets[offset..offset + 8].copy_from_slice(&MESSAGE);
            octets
        };
        cases.push((format!("{len} octets, message at 0"), at(0)));
        cases.push((format!("{len} octets, message at {}", len - 8), at(len - 8)));
        cases.push((format!("{len} octets, zeros"), vec![0; len]));
        cases.push((
            format!("{len} octets, random"),
            (0..len).map(|_| octet()).collect(),
        ));
        cases.push((format!("{len} octets, all 0xf6"), vec![0xf6; len]));
        // The longest search: a message of another version, and behind that only the octet at which
        // the search moves on by one.
        let mut worst = vec![0x0e; len];
        worst[..5].copy_from_slice(&[0xf6, 0xab, 0x0e, 0x18, 2]);
        cases.push((format!("{len} octets, worst"), worst));
    }
    cases
}

/// Calls `each` with the name of a case, the name of a variant, and the function to measure.
fn for_each(mut each: impl FnMut(&str, &str, &mut dyn FnMut())) {
    let finder = Finder::new(&MESSAGE[..4]);
    let scalar = Scalar::new(&MESSAGE[..4]);
    for (name, octets) in cases() {
        let octets = || black_box(&octets[..]);
        // A check of offset 0 alone is no comparison if the message is elsewhere.
        if name.ends_with("message at 0") {
            each(&name, "Linux", &mut || {
                black_box(by_c(check_at_start, octets()));
            });
        }
        // A search for the Format Identifier alone stops at the first one.
        if !name.ends_with("worst") {
            each(&name, "memmem", &mut || {
                black_box(finder.find(octets()));
            });
            each(&name, "memmem, scalar", &mut || {
                black_box(scalar.find(octets()));
            });
        }
        each(&name, "C search", &mut || {
            black_box(by_c(search, octets()));
        });
        each(&name, "parse", &mut || {
            black_box(parse(octets()));
        });
    }

    let offer = Offer {
        send_size: Size::from_encoded(3),
        receive_size: Size::from_encoded(7),
        remote_invalidation: true,
    };
    each("build of 8 octets", "build", &mut || {
        black_box(black_box(offer).to_octets());
    });
}

#[no_mangle]
#[inline(never)]
extern "C" fn mark() {
    black_box(());
}

fn count() {
    let one = |name: &str, variant: &str, call: &mut dyn FnMut()| {
        // Called once before: the first call binds symbols and detects the processor.
        call();
        println!("{name}\t{variant}\t{COUNTED}");
        mark();
        for _ in 0..COUNTED {
            call();
        }
        mark();
    };
    one("nothing", "nothing", &mut || ());
    for_each(one);
}

fn main() {
    if env::args().any(|argument| argument == "--count") {
        return count();
    }
    let mut criterion = Criterion::default().configure_from_args();
    for_each(|name, variant, call| {
        let mut group = criterion.benchmark_group(name);
        group.bench_function(variant, |bencher| bencher.iter(&mut *call));
        group.finish();
    });
}
