// SPDX-License-Identifier: GPL-2.0

//! The events of connections, and the text of the file `history`: a header line, and one line for
//! each event, oldest first.

use core::{
    fmt::{
        self,
        Display,
        Write, //
    },
    net::{
        IpAddr,
        SocketAddr, //
    }, //
};

use super::{
    exchange::Exchange,
    format::{
        wider,
        yes_no,
        Or,
        Text, //
    },
    keys::history_columns,
    snapshot::{
        Cause,
        Origin, //
    }, //
};
use crate::pure::wire::negotiation::Role;

/// Stands for a value that is not known, or does not apply.
const UNKNOWN: &str = "-";

/// How many of the latest events are searched for the previous generation. The number is limited
/// because a lock is held meanwhile.
const SEARCHED: usize = 1024;

/// A change of a connection, or the end of an attempt to connect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Transition {
    /// The first generation was established.
    Established,
    /// A later generation was established.
    Reestablished,
    /// One side rejected the attempt.
    Refused,
    /// The attempt led to no connection for another reason.
    Failed,
    /// An established connection ended because of the peer or of a failure.
    Lost,
    /// This end closed the connection, or gave up an attempt.
    Closed,
}

impl Transition {
    /// Returns the event for a connection whose generation `generation` was established.
    pub(crate) const fn established(generation: u32) -> Self {
        match generation {
            0..=1 => Self::Established,
            _ => Self::Reestablished,
        }
    }

    /// Whether this is one of the two events that begin a generation.
    fn is_established(self) -> bool {
        matches!(self, Self::Established | Self::Reestablished)
    }
}

impl Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Established => "established",
            Self::Reestablished => "re-established",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Lost => "lost",
            Self::Closed => "closed",
        })
    }
}

/// The result of combining both offers. [`None`] stands for a value that is not known.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct NegotiatedColumns {
    /// The client-to-server inline threshold in octets.
    pub(crate) client_to_server: Option<u32>,
    /// The server-to-client inline threshold in octets.
    pub(crate) server_to_client: Option<u32>,
    pub(crate) remote_invalidation: Option<bool>,
}

impl NegotiatedColumns {
    /// Returns the outcome of `exchange`. `role` is that of this side.
    pub(crate) fn of(exchange: &Exchange, role: Role) -> Self {
        exchange
            .negotiated(role)
            .map_or(Self::default(), |negotiated| Self {
                client_to_server: Some(negotiated.client_to_server_threshold),
                server_to_client: Some(negotiated.server_to_client_threshold),
                remote_invalidation: Some(negotiated.remote_invalidation),
            })
    }
}

/// An event, with the connection that it happened to.
#[derive(Clone, Copy)]
pub(crate) struct HistoryEvent {
    pub(crate) transition: Transition,
    /// The number of the connection; [`None`] for a request that was refused or failed.
    pub(crate) number: Option<u64>,
    pub(crate) origin: Origin,
    /// Whether root owns the program, if the connection is that of a program.
    pub(crate) of_root: bool,
    pub(crate) role: Role,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) generation: Option<u32>,
    /// How long the connection had been established when it ended, in milliseconds.
    pub(crate) lasted_ms: Option<i64>,
    pub(crate) outcome: NegotiatedColumns,
    pub(crate) reason: Option<Cause>,
}

impl HistoryEvent {
    /// How many rings keep the events of servers.
    const SERVER_RINGS: usize = 8;

    /// The number of rings that keep events.
    pub(crate) const RINGS: usize = 3 + Self::SERVER_RINGS;

    /// Returns the index of the ring that keeps this event. Any user can make events of programs,
    /// and any peer can make events of servers, those of root's programs included. So none of
    /// these overwrites an event of a client of NFS or of the module, an ordinary user's program
    /// overwrites none of root's programs, and from one address a peer overwrites those of few
    /// other peers.
    pub(crate) fn ring(&self) -> usize {
        match (self.origin, self.role) {
            (Origin::Module | Origin::Nfs, Role::Client) => 0,
            (Origin::User, _) if self.of_root => 1,
            (Origin::User, _) => 2,
            (Origin::Module | Origin::Nfs, Role::Server) => 3 + self.peer() % Self::SERVER_RINGS,
        }
    }

    /// Returns a number that is the same for all events of a remote address, from any port.
    /// Addresses that differ in one octet have different numbers.
    fn peer(&self) -> usize {
        let fold = |octets: &[u8]| octets.iter().fold(0, |sum, octet| sum ^ octet);
        usize::from(match self.remote.map(|remote| remote.ip()) {
            Some(IpAddr::V4(address)) => fold(&address.octets()),
            Some(IpAddr::V6(address)) => fold(&address.octets()),
            None => 0,
        })
    }

    /// Whether this event established the generation before that of `next`.
    ///
    /// The module's own connections keep their numbers when they reconnect. The kernel's client has
    /// a new number for each connection: there, the remote address tells.
    fn precedes(&self, next: &Self) -> bool {
        let generation = next.generation.and_then(|next| next.checked_sub(1));
        let same = match next.origin {
            Origin::Module => self.number == next.number,
            Origin::Nfs | Origin::User => self.remote == next.remote,
        };

        same && self.transition.is_established()
            && self.generation == generation
            && (self.origin, self.role) == (next.origin, next.role)
    }
}

/// When an event happened.
#[derive(Clone, Copy)]
pub(crate) struct Timestamp {
    /// The time on the clock of the kernel's log, in nanoseconds.
    pub(crate) log_ns: u64,
    /// The time since the beginning of 1970 in UTC, in nanoseconds, as the clock was set then.
    pub(crate) utc_ns: u64,
}

/// An entry of the history: an event with its time.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    timestamp: Timestamp,
    event: HistoryEvent,
    /// Of [`Transition::Reestablished`]: the outcome of the previous generation, if known.
    before: Option<NegotiatedColumns>,
}

impl Entry {
    /// Creates the entry of `event`. `earlier` are the earlier entries, the latest one first.
    pub(crate) fn new<'a>(
        timestamp: Timestamp,
        event: HistoryEvent,
        earlier: impl Iterator<Item = &'a Entry>,
    ) -> Self {
        let before = match event.transition {
            Transition::Reestablished => earlier
                .take(SEARCHED)
                .find(|earlier| earlier.event.precedes(&event))
                .map(|earlier| earlier.event.outcome),
            _ => None,
        };
        Self {
            timestamp,
            event,
            before,
        }
    }

    fn client_to_server(&self) -> Text<24> {
        changed(self.before, self.event.outcome, |outcome| {
            outcome.client_to_server
        })
    }

    fn server_to_client(&self) -> Text<24> {
        changed(self.before, self.event.outcome, |outcome| {
            outcome.server_to_client
        })
    }

    fn remote_invalidation(&self) -> Text<24> {
        changed(self.before, self.event.outcome, |outcome| {
            outcome.remote_invalidation.map(yes_no)
        })
    }
}

/// Returns the text of a value of the outcome `now`: `BEFORE>NOW` if the value of the previous
/// generation is known and differs.
fn changed<T: Copy + Display + PartialEq>(
    before: Option<NegotiatedColumns>,
    now: NegotiatedColumns,
    value: impl Fn(NegotiatedColumns) -> Option<T>,
) -> Text<24> {
    let now = value(now);
    match before.and_then(value).zip(now) {
        Some((before, now)) if before != now => Text::of(format_args!("{before}>{now}")),
        _ => Text::of(Or(now, UNKNOWN)),
    }
}

/// A time in nanoseconds, shown in seconds with six decimals, as in the kernel's log.
struct LogTime(u64);

impl Display for LogTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.0 / 1000;
        write!(f, "{}.{:06}", us / 1_000_000, us % 1_000_000)
    }
}

/// Returns the date that is `days` days after 1 January 1970: year, month and day of the month.
pub(crate) fn date(days: u32) -> (u32, u32, u32) {
    // Years are counted from 1 March here, so that 29 February is the last day of a leap year.
    // There are 719468 days from 1 March of the year 0 to 1 January 1970. 400 years have 146097
    // days.
    let days = u64::from(days).wrapping_add(719_468);
    let (cycles, day) = (days / 146_097, days % 146_097);
    // Without the leap days that came before, each year has 365 days.
    let leap_days = (day / 1460)
        .wrapping_sub(day / 36_524)
        .wrapping_add(day / 146_096);
    let year = day.wrapping_sub(leap_days) / 365;
    let first = (year * 365).wrapping_add(year / 4).wrapping_sub(year / 100);
    let day = day.wrapping_sub(first);
    // From March on, each five months in a row have 153 days.
    let month = day.wrapping_mul(5).wrapping_add(2) / 153;
    let first = month.wrapping_mul(153).wrapping_add(2) / 5;
    let day = day.wrapping_sub(first).wrapping_add(1);

    let (next_year, month) = match month {
        0..=9 => (0, month.wrapping_add(3)),
        _ => (1, month.wrapping_sub(9)),
    };
    let year = cycles
        .wrapping_mul(400)
        .wrapping_add(year)
        .wrapping_add(next_year);
    (year as u32, month as u32, day as u32)
}

/// A time in nanoseconds since the beginning of 1970, shown as date and time in UTC, with
/// milliseconds (ISO 8601).
struct Utc(u64);

impl Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0 / 1_000_000;
        let seconds = ms / 1000;
        // An `u64` of nanoseconds holds fewer than 2^32 days, so the cast loses nothing.
        let (year, month, day) = date((seconds / 86_400) as u32);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
            seconds / 3600 % 24,
            seconds / 60 % 60,
            seconds % 60,
            ms % 1000,
        )
    }
}

macro_rules! history {
    ($($(#[$doc:meta])* $column:ident = $key:ident: $kind:ident,)*) => {
        const COLUMNS: [&str; 14] = [$(stringify!($column),)*];
    };
}

history_columns!(history);

/// The widths of the columns of `history`, in characters.
pub(crate) struct HistoryColumns {
    time: usize,
    number: usize,
    local: usize,
    remote: usize,
    lasted: usize,
    client_to_server: usize,
    server_to_client: usize,
    remote_invalidation: usize,
}

impl HistoryColumns {
    /// An estimate of the length of a line in octets, for IPv4 and short IPv6 addresses.
    pub(crate) const LINE: usize = 208;

    /// Creates columns that are as wide as their names.
    pub(crate) const fn new() -> Self {
        Self {
            time: "TIME".len(),
            number: "ID".len(),
            local: "LOCAL".len(),
            remote: "REMOTE".len(),
            lasted: "LASTED_MS".len(),
            client_to_server: "C2S".len(),
            server_to_client: "S2C".len(),
            remote_invalidation: "INV".len(),
        }
    }

    /// Makes columns wider if the values of an event need it.
    pub(crate) fn include(&mut self, entry: &Entry) {
        let event = &entry.event;
        self.time = wider(self.time, Some(LogTime(entry.timestamp.log_ns)));
        self.number = wider(self.number, event.number);
        self.local = wider(self.local, event.local);
        self.remote = wider(self.remote, event.remote);
        self.lasted = wider(self.lasted, event.lasted_ms);
        self.client_to_server = wider(self.client_to_server, Some(entry.client_to_server()));
        self.server_to_client = wider(self.server_to_client, Some(entry.server_to_client()));
        self.remote_invalidation =
            wider(self.remote_invalidation, Some(entry.remote_invalidation()));
    }

    /// Writes the header line.
    pub(crate) fn header(&self, out: &mut dyn Write) -> fmt::Result {
        let Self {
            time,
            number,
            local,
            remote,
            lasted,
            client_to_server,
            server_to_client,
            remote_invalidation,
        } = *self;
        let [c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14] = COLUMNS;
        writeln!(
            out,
            "{:<time$} {:<24} {:<number$} {:<6} {:<6} {:<14} {:<local$} {:<remote$} {:>3} \
             {:>lasted$} {:>client_to_server$} {:>server_to_client$} \
             {:<remote_invalidation$} {}",
            c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14
        )
    }

    /// Writes the line of an event.
    pub(crate) fn line(&self, entry: &Entry, out: &mut dyn Write) -> fmt::Result {
        let Self {
            time,
            number,
            local,
            remote,
            lasted,
            client_to_server,
            server_to_client,
            remote_invalidation,
        } = *self;
        let event = &entry.event;
        writeln!(
            out,
            "{:<time$} {} {:<number$} {:<6} {:<6} {:<14} {:<local$} {:<remote$} {:>3} \
             {:>lasted$} {:>client_to_server$} {:>server_to_client$} \
             {:<remote_invalidation$} {}",
            Text::<24>::of(LogTime(entry.timestamp.log_ns)),
            Utc(entry.timestamp.utc_ns),
            Or(event.number, UNKNOWN),
            event.origin,
            event.role,
            event.transition,
            Or(event.local, UNKNOWN),
            Or(event.remote, UNKNOWN),
            Or(event.generation, UNKNOWN),
            Or(event.lasted_ms, UNKNOWN),
            entry.client_to_server(),
            entry.server_to_client(),
            entry.remote_invalidation(),
            Or(event.reason, UNKNOWN),
        )
    }
}
