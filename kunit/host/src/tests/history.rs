// SPDX-License-Identifier: GPL-2.0

//! The whole file `history`, octet for octet, and all dates that it can show.

use crate::{
    cases::{
        difference,
        history::{
            history,
            wrong_ring,
            NO_EVENTS,
            TEXT, //
        }, //
    },
    pure::text::history::{
        date,
        HistoryColumns, //
    }, //
};

#[test]
fn rings() {
    assert_eq!(wrong_ring(), None);
}

#[test]
fn file() {
    let no_events = |out: &mut dyn std::fmt::Write| HistoryColumns::new().header(out);
    assert_eq!(difference(&[NO_EVENTS], no_events), None);
    assert_eq!(difference(&[TEXT], history), None);
}

/// Returns the number of days of a month in the Gregorian calendar.
fn days_of(year: u32, month: u32) -> u32 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Every day that an `u64` of nanoseconds can express, counted one by one.
#[test]
fn every_day() {
    let last = u64::MAX / 1_000_000_000 / 86_400;
    let (mut year, mut month, mut day) = (1970, 1, 1);
    for days in 0..=u32::try_from(last).unwrap() {
        assert_eq!(date(days), (year, month, day), "{days}");
        day += 1;
        if day > days_of(year, month) {
            (month, day) = (month + 1, 1);
        }
        if month > 12 {
            (year, month) = (year + 1, 1);
        }
    }
    assert_eq!(year, 2554);
}

/// Compares with `date -u -d @SECONDS +'%Y %m %d'`, where SECONDS are 86400 times the days of the
/// row.
#[test]
fn known_days() {
    for (days, expected) in [
        (0, (1970, 1, 1)),
        (58, (1970, 2, 28)),
        (59, (1970, 3, 1)),
        (364, (1970, 12, 31)),
        (365, (1971, 1, 1)),
        (789, (1972, 2, 29)),
        (790, (1972, 3, 1)),
        (11015, (2000, 2, 28)),
        (11016, (2000, 2, 29)),
        (11017, (2000, 3, 1)),
        (20778, (2026, 11, 21)),
        (20779, (2026, 11, 22)),
        (47540, (2100, 2, 28)),
        (47541, (2100, 3, 1)),
        (106751, (2262, 4, 11)),
        (146096, (2369, 12, 31)),
        (213502, (2554, 7, 20)),
        (213503, (2554, 7, 21)),
    ] {
        assert_eq!(date(days), expected, "{days}");
    }
}
