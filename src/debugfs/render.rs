// SPDX-License-Identifier: GPL-2.0

//! How connections, listeners and counters look to who reads them.

use core::{
    convert::Infallible,
    fmt::{
        self,
        Display,
        Write, //
    },
};

use super::file::Output;
use crate::{
    connection::Connection,
    registry::Registry,
    wire::private_data::{
        Parsed,
        Rejection, //
    }, //
};

/// Shows a value, or a word in the place of one that is not there.
struct Or<T>(Option<T>, &'static str);

impl<T: Display> Display for Or<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.pad(self.1),
        }
    }
}

fn yes_no(yes: bool) -> &'static str {
    if yes {
        "yes"
    } else {
        "no"
    }
}

/// Counts the characters that something shows as.
#[derive(Default)]
struct Width(usize);

impl Write for Width {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.0 += s.len();
        Ok(())
    }
}

/// Returns the larger of `width` and what `value` takes.
fn wider(width: usize, value: Option<impl Display>) -> usize {
    let mut shown = Width::default();
    match value.map(|value| write!(shown, "{value}")) {
        Some(Ok(())) => width.max(shown.0),
        _ => width,
    }
}

/// Shows the table of connections.
pub(super) fn connections(registry: &Registry, out: &mut Output<'_>) -> fmt::Result {
    let mut device = "DEVICE".len();
    let mut local = "LOCAL".len();
    let mut remote = "REMOTE".len();
    let Ok(()) = registry.for_each_connection(|connection| {
        connection.with(|inner| {
            device = wider(device, inner.exchange.device.map(|(name, _)| name));
            local = wider(local, inner.exchange.local);
            remote = wider(remote, inner.exchange.remote);
        });
        Ok::<_, Infallible>(())
    });

    writeln!(
        out,
        "{:<6} {:<6} {:<6} {:<12} {:<device$} {:<10} {:<local$} {:<remote$} {:>3} {:>6} {:>6} INV",
        "ID",
        "ORIGIN",
        "ROLE",
        "STATE",
        "DEVICE",
        "TRANSPORT",
        "LOCAL",
        "REMOTE",
        "GEN",
        "C2S",
        "S2C",
    )?;
    registry.for_each_connection(|connection| {
        connection.with(|inner| {
            let exchange = &inner.exchange;
            let negotiated = exchange.negotiated(connection.role());
            writeln!(
                out,
                "{:<6} {:<6} {:<6} {:<12} {:<device$} {:<10} {:<local$} {:<remote$} {:>3} {:>6} {:>6} {}",
                connection.number,
                "module",
                connection.role(),
                inner.state,
                Or(exchange.device.map(|(name, _)| name), "-"),
                Or(exchange.device.map(|(_, transport)| transport), "-"),
                Or(exchange.local, "-"),
                Or(exchange.remote, "-"),
                inner.generation,
                Or(negotiated.map(|n| n.client_to_server_threshold), "-"),
                Or(negotiated.map(|n| n.server_to_client_threshold), "-"),
                Or(negotiated.map(|n| yes_no(n.remote_invalidation)), "-"),
            )
        })
    })
}

/// Shows the table of listeners.
pub(super) fn listeners(registry: &Registry, out: &mut Output<'_>) -> fmt::Result {
    let mut local = "LOCAL".len();
    let Ok(()) = registry.for_each_listener(|listener| {
        local = wider(local, Some(listener.address));
        Ok::<_, Infallible>(())
    });

    writeln!(
        out,
        "{:<6} {:<local$} {:>6} {:>6} {:<3} {:>11} {:>6}",
        "ID", "LOCAL", "SEND", "RECV", "INV", "CONNECTIONS", "MAX",
    )?;
    registry.for_each_listener(|listener| {
        let offer = listener.offered.offer();
        writeln!(
            out,
            "{:<6} {:<local$} {:>6} {:>6} {:<3} {:>11} {:>6}",
            listener.number,
            listener.address,
            offer.send_size.octets(),
            offer.receive_size.octets(),
            yes_no(offer.remote_invalidation),
            listener.connections(),
            listener.max,
        )
    })
}

/// Shows the counters.
pub(super) fn stats(registry: &Registry, out: &mut Output<'_>) -> fmt::Result {
    registry
        .stats
        .all()
        .try_for_each(|(name, value)| writeln!(out, "{name}: {value}"))
}

/// Shows all about one connection.
pub(super) fn info(connection: &Connection, out: &mut Output<'_>) -> fmt::Result {
    // Copied, so that the connection is as it was at one moment.
    let (state, since, generation, failure, exchange) = connection.with(|inner| {
        (
            inner.state,
            inner.since,
            inner.generation,
            inner.failure,
            inner.exchange,
        )
    });
    let role = connection.role();
    let unknown = "unknown";

    writeln!(out, "id: {}", connection.number)?;
    writeln!(out, "origin: module")?;
    writeln!(out, "role: {role}")?;
    writeln!(out, "state: {state}")?;
    writeln!(
        out,
        "device: {}",
        Or(exchange.device.map(|(name, _)| name), unknown)
    )?;
    writeln!(
        out,
        "transport: {}",
        Or(exchange.device.map(|(_, transport)| transport), unknown)
    )?;
    writeln!(out, "local: {}", Or(exchange.local, unknown))?;
    writeln!(out, "remote: {}", Or(exchange.remote, unknown))?;
    writeln!(out, "generation: {generation}")?;
    writeln!(out, "age_ms: {}", since.elapsed().as_millis())?;
    writeln!(out, "last_failure: {}", Or(failure, "none"))?;

    let own = exchange.own_offer();
    writeln!(out, "local_send_size: {}", own.send_size.octets())?;
    writeln!(out, "local_receive_size: {}", own.receive_size.octets())?;
    writeln!(
        out,
        "local_remote_invalidation: {}",
        yes_no(own.remote_invalidation)
    )?;

    let received = exchange.received.as_ref();
    let parsed = received.map(|(_, parsed)| *parsed);
    match parsed {
        None => writeln!(out, "peer_private_data: {unknown}")?,
        Some(Parsed::Absent) => writeln!(out, "peer_private_data: absent")?,
        Some(Parsed::Present(_)) => writeln!(out, "peer_private_data: present")?,
        Some(Parsed::Rejected { reason, .. }) => {
            writeln!(out, "peer_private_data: rejected: {reason}")?;
        }
    }
    let (offset, version, reserved) = match parsed {
        Some(Parsed::Present(found)) => (
            Some(found.offset),
            Some(found.version),
            Some(found.reserved),
        ),
        Some(Parsed::Rejected { offset, reason }) => match reason {
            Rejection::Version(version) => (Some(offset), Some(version), None),
            Rejection::Truncated { .. } => (Some(offset), None, None),
        },
        Some(Parsed::Absent) | None => (None, None, None),
    };
    let none = if parsed.is_some() { "none" } else { unknown };
    let len = received.map(|(octets, _)| octets.len());
    writeln!(out, "peer_length: {}", Or(len, unknown))?;
    writeln!(out, "peer_offset: {}", Or(offset, none))?;
    writeln!(out, "peer_version: {}", Or(version, none))?;
    match reserved {
        Some(reserved) => writeln!(out, "peer_reserved: {reserved:#04x}")?,
        None => writeln!(out, "peer_reserved: {none}")?,
    }

    let peer = parsed.map(|parsed| parsed.offer());
    let negotiated = exchange.negotiated(role);
    writeln!(
        out,
        "peer_send_size: {}",
        Or(peer.map(|offer| offer.send_size.octets()), unknown)
    )?;
    writeln!(
        out,
        "peer_receive_size: {}",
        Or(peer.map(|offer| offer.receive_size.octets()), unknown)
    )?;
    writeln!(
        out,
        "peer_remote_invalidation: {}",
        Or(peer.map(|offer| yes_no(offer.remote_invalidation)), unknown)
    )?;
    writeln!(
        out,
        "client_to_server_threshold: {}",
        Or(negotiated.map(|n| n.client_to_server_threshold), unknown)
    )?;
    writeln!(
        out,
        "server_to_client_threshold: {}",
        Or(negotiated.map(|n| n.server_to_client_threshold), unknown)
    )?;
    writeln!(
        out,
        "remote_invalidation: {}",
        Or(negotiated.map(|n| yes_no(n.remote_invalidation)), unknown)
    )
}
