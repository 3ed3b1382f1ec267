// SPDX-License-Identifier: GPL-2.0

//! Fills the files that show connections, listeners and counters from snapshots.

use core::{
    convert::Infallible,
    fmt, //
};

use super::file::Output;
use crate::{
    counters::{
        Counter,
        SharedStats, //
    },
    protocol::{
        self,
        exchange::ParsedPrivateData,
        tables::{
            ConnectionColumns,
            ListenerColumns, //
        }, //
    },
    registry::{
        Live,
        Registry, //
    }, //
};

/// Shows the table of connections.
pub(super) fn connections(registry: &Registry, out: &mut Output) -> fmt::Result {
    let mut columns = ConnectionColumns::new();
    for live in registry.each() {
        columns.include(&live.snapshot());
    }

    columns.header(out)?;
    for live in registry.each() {
        columns.line(&live.snapshot(), out)?;
    }
    Ok(())
}

/// Shows the table of listeners.
pub(super) fn listeners(registry: &Registry, out: &mut Output) -> fmt::Result {
    let mut columns = ListenerColumns::new();
    let Ok(()) = registry.for_each_listener(|listener| {
        columns.include(&listener.snapshot());
        Ok::<_, Infallible>(())
    });

    columns.header(out)?;
    registry.for_each_listener(|listener| columns.line(&listener.snapshot(), out))
}

/// Shows the counters.
pub(super) fn stats(stats: &SharedStats, out: &mut Output) -> fmt::Result {
    stats.map(Counter::get).write(out)
}

/// Shows the octets that this side sent.
pub(super) fn sent(live: &Live, out: &mut Output) -> fmt::Result {
    octets(live.snapshot().exchange.sent, out)
}

/// Shows the octets that the peer sent, as the transport delivered them.
pub(super) fn received(live: &Live, out: &mut Output) -> fmt::Result {
    octets(live.snapshot().exchange.received, out)
}

fn octets(private_data: Option<ParsedPrivateData>, out: &mut Output) -> fmt::Result {
    if let Some(private_data) = private_data {
        out.write_octets(private_data.octets.octets())?;
    }
    Ok(())
}

/// Shows all about one connection.
pub(super) fn info(live: &Live, out: &mut Output) -> fmt::Result {
    protocol::info::info(&live.snapshot(), out)
}
