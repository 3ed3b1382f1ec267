// SPDX-License-Identifier: GPL-2.0

//! Fuzzes building transport headers, with any lists and options.

#![no_main]
#![allow(dead_code, reason = "the module uses all of it, each fuzzer some")]

include!("../root.rs");

use checks::header::{
    body,
    check_filled,
    check_len,
    check_room,
    check_round_trip,
    Owned, //
};
use pure::wire::header::chunks::{
    ReadSegment,
    Segment, //
};

/// The input, from which a header is made. Zeros follow its end.
struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    fn octet(&mut self) -> u8 {
        let Some((&octet, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        octet
    }

    fn word(&mut self) -> u32 {
        u32::from_be_bytes([self.octet(), self.octet(), self.octet(), self.octet()])
    }

    fn octets(&mut self, len: usize) -> &'a [u8] {
        let (octets, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        octets
    }

    fn segment(&mut self) -> Segment {
        Segment {
            handle: self.octet().into(),
            length: self.word(),
            offset: (u64::from(self.word()) << 32) | u64::from(self.octet()),
        }
    }

    /// Makes up to `most` elements.
    fn some<T>(&mut self, most: u8, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.octet() % (most + 1);
        (0..count).map(|_| make(self)).collect()
    }

    fn header(&mut self) -> Owned {
        let which = self.octet().into();
        Owned {
            xid: self.word(),
            credit: self.octet().into(),
            body: body(which, self.word(), self.octet().into(), self.word()),
            reads: self.some(3, |source| ReadSegment {
                position: source.word() & !3,
                target: source.segment(),
            }),
            writes: self.some(3, |source| source.some(3, Self::segment)),
            reply: (self.octet() & 1 != 0).then(|| self.some(5, Self::segment)),
            optinfo: self.some(13, Self::octet),
        }
    }
}

fn fuzz(octets: &[u8]) {
    let mut source = Source(octets);
    let owned = source.header();
    let available = source.octet().into();
    let more = source.octets(9);

    check_round_trip(&owned, more);
    check_room(&owned, available);
    check_len(&owned);
    for chunk in owned.writes.iter().chain(&owned.reply) {
        let octets = owned.optinfo.len() as u64 * u64::from(owned.xid);
        check_filled(chunk, octets);
    }
}
