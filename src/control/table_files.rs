// SPDX-License-Identifier: GPL-2.0

//! The tables of connections, listeners, counters and events.

use core::{
    convert::Infallible,
    fmt, //
};

use kernel::sync::Arc;

use crate::{
    connection::listener::listeners::Listeners,
    counters::{
        Counter,
        SharedStats, //
    },
    debugfs::Output,
    history_ring::History,
    observer::ObserverStatus,
    pure::text::{
        history::HistoryColumns,
        tables::{
            ConnectionColumns,
            ListenerColumns, //
        }, //
    },
    registry::Registry, //
};

/// Shows the table of connections.
pub(super) fn connections(registry: &Registry, out: &mut Output) -> fmt::Result {
    let mut columns = ConnectionColumns::new();
    for live in registry.each() {
        columns.include(&live.exchange());
    }

    columns.header(out)?;
    for live in registry.each() {
        columns.line(&live.snapshot(), out)?;
    }
    Ok(())
}

/// Shows the table of listeners.
pub(super) fn listeners(listeners: &Listeners, out: &mut Output) -> fmt::Result {
    let mut columns = ListenerColumns::new();
    let Ok(()) = listeners.for_each(|listener| {
        columns.include(&listener.snapshot());
        Ok::<_, Infallible>(())
    });

    columns.header(out)?;
    listeners.for_each(|listener| columns.line(&listener.snapshot(), out))
}

/// The data of the file `stats`.
pub(super) struct Counted {
    pub(super) stats: Arc<SharedStats>,
    pub(super) status: Arc<ObserverStatus>,
}

/// Shows the counters, and whether the connections of others are observed.
pub(super) fn stats(counted: &Counted, out: &mut Output) -> fmt::Result {
    let mut stats = counted.stats.map(Counter::get);
    counted.status.count_missed_calls(&mut stats);
    stats.write(out)?;
    counted.status.limits(&stats).write(out)
}

/// Shows the events, the oldest one first.
pub(super) fn history(history: &History, out: &mut Output) -> fmt::Result {
    let oldest_first = history.oldest_first().map_err(|_| fmt::Error)?;
    let mut entries = oldest_first.iter().map(|numbered| &numbered.entry);
    let mut columns = HistoryColumns::new();
    entries.clone().for_each(|entry| columns.include(entry));

    columns.header(out)?;
    entries.try_for_each(|entry| columns.line(entry, out))
}
