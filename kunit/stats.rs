// SPDX-License-Identifier: GPL-2.0

//! `stats`, the whole file, octet for octet.

use core::cell::Cell;

use kernel::prelude::*;

#[kunit_tests(rpcrdma_cm_stats)]
mod tests {
    use super::*;
    use crate::{
        cases::{
            difference,
            stats::{
                set_of,
                stats,
                LIMITS,
                TEXT, //
            }, //
        },
        pure::{
            text::stats::{
                Limit,
                Limits,
                Stats, //
            },
            wire::private_data::parse, //
        },
        rows::check, //
    };

    /// Each kind of private data has a counter of its own.
    #[test]
    fn parsed() -> Result {
        for (octets, present, absent, rejected) in [
            (&b"\xf6\xab\x0e\x18\x01\x01\x03\x07"[..], 1, 0, 0),
            (b"\0\0\0\0\0\0\0\0", 0, 1, 0),
            (b"\xf6\xab\x0e\x18\x02\x01\x03\x07", 0, 0, 1),
        ] {
            let stats = Stats::with(|| Cell::new(0_u64));
            stats.of_parsed(&parse(octets)).set(1);
            let stats = stats.map(Cell::get);
            check("present", stats.private_data_present, present)?;
            check("absent", stats.private_data_absent, absent)?;
            check("rejected", stats.private_data_rejected, rejected)?;
        }
        Ok(())
    }

    /// Whether others are observed, and why not, in the words that docs/ABI lists.
    #[test]
    fn limits() -> Result {
        for (limits, text) in LIMITS {
            let written = difference(&[text], |out| set_of(limits).write(out));
            check("limits", written, None)?;
        }
        let missed = |count: u64| Limits::default().with_missed(&Stats::with(|| count));
        check("none was missed", missed(0), Limits::default())?;
        let expected = set_of(&[
            Limit::Events,
            Limit::Nfs,
            Limit::User,
            Limit::Programs,
            Limit::Memory,
        ]);
        check("all were missed", missed(1), expected)
    }

    #[test]
    fn file() -> Result {
        check("stats", difference(&[TEXT], |out| stats().write(out)), None)
    }
}
