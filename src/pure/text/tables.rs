// SPDX-License-Identifier: GPL-2.0

//! The text of the files `connections` and `listeners`: a header line, and one line for each
//! connection or listener. Columns of addresses and names are as wide as their widest value.

use core::fmt::{
    self,
    Write, //
};

use super::{
    exchange::Exchange,
    format::{
        address_width,
        wider,
        yes_no,
        Line, //
    },
    keys::connections_columns,
    snapshot::{
        ListenerSnapshot,
        Snapshot, //
    }, //
};

/// Stands for a value that is not known.
const UNKNOWN: &str = "-";

macro_rules! connections {
    ($($column:ident = $key:ident: $kind:ident,)*) => {
        const COLUMNS: [&str; 12] = [$(stringify!($column),)*];
    };
}

connections_columns!(connections);

/// The widths of the columns of `connections` that depend on their values, in characters.
pub(crate) struct ConnectionColumns {
    device: usize,
    local: usize,
    remote: usize,
}

impl ConnectionColumns {
    /// An estimate of the length of a line in octets, for IPv4 and short IPv6 addresses.
    pub(crate) const LINE: usize = 160;

    /// Creates columns that are as wide as their names.
    pub(crate) const fn new() -> Self {
        Self {
            device: "DEVICE".len(),
            local: "LOCAL".len(),
            remote: "REMOTE".len(),
        }
    }

    /// Makes columns wider if the values of a connection need it.
    pub(crate) fn include(&mut self, exchange: &Exchange) {
        if let Some(device) = &exchange.device {
            self.device = self.device.max(device.name.octets().len());
        }
        self.local = self.local.max(exchange.local.map_or(0, address_width));
        self.remote = self.remote.max(exchange.remote.map_or(0, address_width));
    }

    /// Writes the header line.
    pub(crate) fn header(&self, out: &mut dyn Write) -> fmt::Result {
        let Self {
            device,
            local,
            remote,
        } = *self;
        let [c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12] = COLUMNS;
        writeln!(
            out,
            "{:<6} {:<6} {:<6} {:<12} {:<device$} {:<10} {:<local$} {:<remote$} {:>3} {:>6} {:>6} {}",
            c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12
        )
    }

    /// Writes the line of a connection.
    pub(crate) fn line(&self, snapshot: &Snapshot, out: &mut dyn Write) -> fmt::Result {
        let Self {
            device,
            local,
            remote,
        } = *self;
        let exchange = &snapshot.exchange;
        let negotiated = exchange.negotiated(snapshot.role);
        let (client_to_server, server_to_client) = snapshot.thresholds();
        let (name, transport) = match &exchange.device {
            Some(device) => (device.name.as_str(), device.transport.name()),
            None => (UNKNOWN, UNKNOWN),
        };

        // Widths are in characters. The name of a device may have fewer characters than octets.
        let more = name.len().saturating_sub(name.chars().count());

        let mut line = Line::EMPTY;
        line.left_number(6, snapshot.number);
        line.left(6, snapshot.origin.name());
        line.left(6, snapshot.role.name());
        line.left(12, snapshot.state.name());
        line.left(device.saturating_add(more), name);
        line.left(10, transport);
        for (width, address) in [(local, exchange.local), (remote, exchange.remote)] {
            match address {
                Some(address) => line.left_address(width, address),
                None => line.left(width, UNKNOWN),
            }
        }
        line.right(3, Some(snapshot.generation), UNKNOWN);
        line.right(6, client_to_server, UNKNOWN);
        line.right(6, server_to_client, UNKNOWN);
        line.end(
            negotiated.map_or(UNKNOWN, |both| yes_no(both.remote_invalidation)),
            out,
        )
    }
}

/// The widths of the columns of `listeners` that depend on their values, in characters.
pub(crate) struct ListenerColumns {
    local: usize,
}

impl ListenerColumns {
    /// Creates columns that are as wide as their names.
    pub(crate) const fn new() -> Self {
        Self {
            local: "LOCAL".len(),
        }
    }

    /// Makes the column wider if the address of a listener needs it.
    pub(crate) fn include(&mut self, snapshot: &ListenerSnapshot) {
        self.local = wider(self.local, Some(snapshot.address));
    }

    /// Writes the header line.
    pub(crate) fn header(&self, out: &mut dyn Write) -> fmt::Result {
        let local = self.local;
        writeln!(
            out,
            "{:<6} {:<local$} {:>6} {:>6} {:<3} {:>11} {:>6}",
            "ID", "LOCAL", "SEND", "RECV", "INV", "CONNECTIONS", "MAX",
        )
    }

    /// Writes the line of a listener.
    pub(crate) fn line(&self, snapshot: &ListenerSnapshot, out: &mut dyn Write) -> fmt::Result {
        let local = self.local;
        let offer = &snapshot.offer;
        writeln!(
            out,
            "{:<6} {:<local$} {:>6} {:>6} {:<3} {:>11} {:>6}",
            snapshot.number,
            snapshot.address,
            offer.send_size.octets(),
            offer.receive_size.octets(),
            yes_no(offer.remote_invalidation),
            snapshot.connections,
            snapshot.max,
        )
    }
}
