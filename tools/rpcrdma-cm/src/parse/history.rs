// SPDX-License-Identifier: GPL-2.0

//! The file `history`: a header line, then one line for each event, oldest first:
//!
//! ```text
//! TIME      ... ID ORIGIN ROLE   EVENT          ... GEN LASTED_MS C2S        S2C  INV REASON
//! 61.204518 ... 3  nfs    client established    ... 1   -         4096       4096 no  -
//! 75.010022 ... 3  nfs    client lost           ... 1   13805     4096       4096 no  transport …
//! 80.310022 ... 5  nfs    client re-established ... 2   -         4096>65536 4096 no  -
//! ```
//!
//! Columns are separated by spaces and aligned. The header line names them, and REASON is the
//! last: it is the rest of the line. "-" stands for a value that is not known or does not apply.

use serde::Serialize;

use super::{
    keys::history_columns,
    Date,
    Field,
    Milliseconds,
    Number,
    Value,
    Word, //
};

/// A value, and the value of the previous generation if that was another.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Change<T> {
    pub(crate) before: Option<T>,
    pub(crate) now: Option<T>,
}

impl<T: Value> Change<T> {
    fn parse(text: &str) -> Self {
        match text.split_once('>') {
            Some((before, now)) => Self {
                before: T::parse(before),
                now: T::parse(now),
            },
            None => Self {
                before: None,
                now: T::parse(text),
            },
        }
    }
}

type OctetsChange = Change<u64>;
type YesNoChange = Change<bool>;

impl<T: Value> Field for Change<T> {
    fn set(&mut self, value: &str) {
        *self = Self::parse(value);
    }
}

macro_rules! history {
    ($($(#[$doc:meta])* $column:ident = $key:ident: $kind:ident,)*) => {
        /// One event of a connection.
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub(crate) struct Event {
            $(pub(crate) $key: $kind,)*
        }

        impl Event {
            fn set(&mut self, column: &str, value: &str) {
                match column {
                    $(stringify!($column) => self.$key.set(value),)*
                    _ => (),
                }
            }
        }
    };
}

history_columns!(history);

impl Event {
    /// When it happened, in seconds since 1970.
    pub(crate) fn seconds(&self) -> Option<u64> {
        seconds(self.date.as_deref()?)
    }

    /// Whether it happened to a connection of the NFS client.
    pub(crate) fn is_of_nfs_client(&self) -> bool {
        self.origin.as_deref() == Some("nfs") && self.role.as_deref() == Some("client")
    }

    /// Whether an established connection was lost.
    pub(crate) fn is_loss(&self) -> bool {
        self.event.as_deref() == Some("lost")
    }

    /// Whether an attempt to connect failed.
    pub(crate) fn is_failed_attempt(&self) -> bool {
        matches!(self.event.as_deref(), Some("failed" | "refused"))
    }

    /// Whether an established connection ended.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self.event.as_deref(), Some("lost" | "closed"))
    }

    /// Whether this end closed an established connection after less than `seconds` seconds.
    pub(crate) fn is_closed_within(&self, seconds: u64) -> bool {
        self.event.as_deref() == Some("closed")
            && self
                .lasted_ms
                .is_some_and(|lasted| lasted < seconds.saturating_mul(1000))
    }

    /// Whether it made the connection again that ended with `end`: the next one of its transport.
    pub(crate) fn follows(&self, end: &Self) -> bool {
        self.event.as_deref() == Some("re-established")
            && self.generation.is_some()
            && self.generation == end.generation.and_then(|before| before.checked_add(1))
    }
}

/// Parses `history`. A line without an event is left out.
pub(crate) fn history(text: &str) -> Vec<Event> {
    let mut lines = text.lines();
    let columns: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let Some((last, others)) = columns.split_last() else {
        return Vec::new();
    };
    lines
        .map(|line| {
            let mut event = Event::default();
            let mut rest = line.trim();
            for column in others {
                let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                event.set(column, word);
                rest = after.trim_start();
            }
            event.set(last, rest);
            event
        })
        .filter(|event| event.event.is_some())
        .collect()
}

/// The events of `now` that `before` did not have yet: those after the last one of `before`, or all
/// of them if that one has been overwritten.
pub(crate) fn news<'a>(before: &[Event], now: &'a [Event]) -> &'a [Event] {
    let known = before
        .last()
        .and_then(|last| now.iter().rposition(|event| event == last));
    match known {
        Some(known) => now.get(known.saturating_add(1)..).unwrap_or_default(),
        None => now,
    }
}

/// Seconds since 1970 of a date like `2026-11-22T01:02:03.456Z`.
fn seconds(date: &str) -> Option<u64> {
    let (day, time) = date.strip_suffix('Z')?.split_once('T')?;
    let mut day = day.splitn(3, '-').map(|word| word.parse::<u64>().ok());
    let (year, month, day) = (day.next()??, day.next()??, day.next()??);
    let mut time = time.splitn(3, ':');
    let hour: u64 = time.next()?.parse().ok()?;
    let minute: u64 = time.next()?.parse().ok()?;
    let second: u64 = time.next()?.split('.').next()?.parse().ok()?;
    if !(1970..=9999).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    // Years that begin in March end with the leap day. 719468 days lie between 1 March of the year
    // 0 and 1970.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    Some(((days - 719_468) * 24 + hour) * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
TIME      DATE                     ID ORIGIN ROLE   EVENT       LOCAL           REMOTE          GEN LASTED_MS C2S        S2C  INV REASON
61.204518 2026-11-22T01:02:03.456Z 3  nfs    client established 10.77.1.1:38012 10.77.1.2:20049 1   -         4096       4096 no  -
75.010022 2026-11-22T01:02:17.262Z 3  nfs    client lost        10.77.1.1:38012 10.77.1.2:20049 1   13806     4096       4096 no  transport retry counter exceeded
80.310022 2026-11-22T01:02:22.562Z 3  nfs    client established 10.77.1.1:38013 10.77.1.2:20049 2   -         4096>65536 4096 no>yes  -
";

    #[test]
    fn events() {
        let events = history(TEXT);
        assert_eq!(events.len(), 3);
        assert_eq!(events[0].reason, None);
        assert!(events[1].is_of_nfs_client());
        assert!(events[1].is_loss());
        assert!(!events[0].is_loss());
        assert_eq!(
            events[1].reason.as_deref(),
            Some("transport retry counter exceeded")
        );
        assert_eq!(events[1].lasted_ms, Some(13806));
        assert_eq!(
            events[2].client_to_server_threshold,
            Change {
                before: Some(4096),
                now: Some(65536)
            }
        );
        assert_eq!(events[2].remote_invalidation.now, Some(true));
    }

    #[test]
    fn hostile_text() {
        assert_eq!(history(""), []);
        assert_eq!(history("\n\n"), []);
        assert_eq!(history("EVENT\n\n>\n").len(), 1);
        assert_eq!(history("A B C\nx\n"), []);
    }

    #[test]
    fn only_what_is_new() {
        let all = history(TEXT);
        assert_eq!(news(&[], &all).len(), 3);
        assert_eq!(news(&all[..1], &all).len(), 2);
        assert_eq!(news(&all, &all).len(), 0);
        // Overwritten meanwhile.
        assert_eq!(news(&all[..1], &all[1..]).len(), 2);
    }

    // `date -u -d DATE +%s`
    #[test]
    fn dates() {
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(seconds("2000-02-29T12:00:00.5Z"), Some(951_825_600));
        assert_eq!(seconds("2026-11-22T01:02:03.456Z"), Some(1_795_309_323));
        assert_eq!(seconds("9999-12-31T23:59:59Z"), Some(253_402_300_799));
        for wrong in [
            "",
            "Z",
            "TZ",
            "2026-11-22T01:02:03",
            "0000-01-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-1T1:1Z",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
