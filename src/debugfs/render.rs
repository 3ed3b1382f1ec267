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
    connection::{
        Message,
        Null,
        Traffic, //
    },
    protocol::{
        negotiation::Role,
        private_data::{
            Parsed,
            Rejection, //
        }, //
    },
    registry::{
        Live,
        Origin,
        Registry,
        View, //
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

/// How many octets a line of the table of connections has, with addresses of IPv4 or short ones of
/// IPv6.
pub(super) const CONNECTION_LINE: usize = 160;

/// Shows the table of connections.
pub(super) fn connections(registry: &Registry, out: &mut Output<'_>) -> fmt::Result {
    let mut device = "DEVICE".len();
    let mut local = "LOCAL".len();
    let mut remote = "REMOTE".len();
    for live in registry.each() {
        let exchange = live.view().exchange;
        device = wider(device, exchange.device.map(|(name, _)| name));
        local = wider(local, exchange.local);
        remote = wider(remote, exchange.remote);
    }

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
    for live in registry.each() {
        let view = live.view();
        let exchange = &view.exchange;
        let negotiated = exchange.negotiated(view.role);
        let (client_to_server, server_to_client) = view.thresholds();
        writeln!(
            out,
            "{:<6} {:<6} {:<6} {:<12} {:<device$} {:<10} {:<local$} {:<remote$} {:>3} {:>6} {:>6} {}",
            view.number,
            view.origin,
            view.role,
            view.state,
            Or(exchange.device.map(|(name, _)| name), "-"),
            Or(exchange.device.map(|(_, transport)| transport), "-"),
            Or(exchange.local, "-"),
            Or(exchange.remote, "-"),
            view.generation,
            Or(client_to_server, "-"),
            Or(server_to_client, "-"),
            Or(negotiated.map(|n| yes_no(n.remote_invalidation)), "-"),
        )?;
    }
    Ok(())
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
        let offer = listener.terms.offered.offer();
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

/// Shows the octets that this side sent.
pub(super) fn sent(live: &Live, out: &mut Output<'_>) -> fmt::Result {
    octets(live.view().exchange.sent, out)
}

/// Shows the octets that the peer sent, as the transport delivered them.
pub(super) fn received(live: &Live, out: &mut Output<'_>) -> fmt::Result {
    octets(live.view().exchange.received, out)
}

fn octets(message: Option<Message>, out: &mut Output<'_>) -> fmt::Result {
    if let Some(message) = message {
        out.write_octets(message.octets.octets());
    }
    Ok(())
}

/// Shows all about one connection.
pub(super) fn info(live: &Live, out: &mut Output<'_>) -> fmt::Result {
    // A copy, so that the connection is as it was at one moment.
    view(&live.view(), out)
}

/// Shows all about what was a connection at one moment.
pub(super) fn view(view: &View, out: &mut impl Write) -> fmt::Result {
    let exchange = &view.exchange;
    let role = view.role;
    let unknown = "unknown";

    writeln!(out, "id: {}", view.number)?;
    writeln!(out, "origin: {}", view.origin)?;
    if let Some(program) = view.program {
        writeln!(out, "command: {program}")?;
        writeln!(out, "pid: {}", program.pid)?;
    }
    writeln!(out, "role: {role}")?;
    writeln!(out, "state: {}", view.state)?;
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
    writeln!(out, "generation: {}", view.generation)?;
    writeln!(out, "age_ms: {}", view.since.elapsed().as_millis())?;
    writeln!(out, "last_failure: {}", Or(view.failure, "none"))?;

    let own = exchange.sent.map(|sent| exchange.offer_of(&sent));
    writeln!(
        out,
        "local_send_size: {}",
        Or(own.map(|own| own.send_size.octets()), unknown)
    )?;
    writeln!(
        out,
        "local_receive_size: {}",
        Or(own.map(|own| own.receive_size.octets()), unknown)
    )?;
    writeln!(
        out,
        "local_remote_invalidation: {}",
        Or(own.map(|own| yes_no(own.remote_invalidation)), unknown)
    )?;

    let received = exchange.received.as_ref();
    let parsed = received.map(|received| received.parsed);
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
    let len = received.map(|received| received.octets.len());
    writeln!(out, "peer_length: {}", Or(len, unknown))?;
    writeln!(out, "peer_offset: {}", Or(offset, none))?;
    writeln!(out, "peer_version: {}", Or(version, none))?;
    match reserved {
        Some(reserved) => writeln!(out, "peer_reserved: {reserved:#04x}")?,
        None => writeln!(out, "peer_reserved: {none}")?,
    }

    let peer = received.map(|received| exchange.offer_of(received));
    let negotiated = exchange.negotiated(role);
    let (client_to_server, server_to_client) = view.thresholds();
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
        Or(client_to_server, unknown)
    )?;
    writeln!(
        out,
        "server_to_client_threshold: {}",
        Or(server_to_client, unknown)
    )?;
    writeln!(
        out,
        "remote_invalidation: {}",
        Or(negotiated.map(|n| yes_no(n.remote_invalidation)), unknown)
    )?;
    if view.origin == Origin::Nfs {
        in_use(view, out)?;
    }
    if let Some(traffic) = &view.traffic {
        self::traffic(view, traffic, out)?;
    }
    if let Some(negotiated) = negotiated {
        negotiated
            .deviations(role, &view.in_use)
            .try_for_each(|deviation| writeln!(out, "deviation: {deviation}"))?;
    }
    if let Some(note) = view.note {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

/// Shows what the kernel's client or server goes by.
fn in_use(view: &View, out: &mut impl Write) -> fmt::Result {
    let in_use = &view.in_use;
    let unknown = "unknown";

    writeln!(
        out,
        "inline_send_in_use: {}",
        Or(in_use.inline_send, unknown)
    )?;
    writeln!(
        out,
        "inline_receive_in_use: {}",
        Or(in_use.inline_receive, unknown)
    )?;
    if view.role == Role::Server {
        writeln!(
            out,
            "remote_invalidation_in_use: {}",
            Or(in_use.remote_invalidation.map(yes_no), unknown)
        )?;
    }
    Ok(())
}

/// Shows what has gone back and forth on a connection of the module's.
fn traffic(view: &View, traffic: &Traffic, out: &mut impl Write) -> fmt::Result {
    let none = "none";

    writeln!(out, "rpc_version_used: {}", Or(view.exchange.version, none))?;
    if view.role == Role::Client {
        match traffic.null {
            Null::None => writeln!(out, "rpc_null: {none}")?,
            Null::Pending => writeln!(out, "rpc_null: pending")?,
            Null::Answered => writeln!(out, "rpc_null: SUCCESS")?,
            Null::Failed(failure) => writeln!(out, "rpc_null: {failure}")?,
        }
        writeln!(out, "rpc_null_us: {}", Or(traffic.null_us, none))?;
    }
    writeln!(
        out,
        "credits_granted: {}",
        Or(traffic.credits_granted, none)
    )?;
    let counters = [
        ("sends", traffic.sends),
        ("sends_with_invalidate", traffic.sends_with_invalidate),
        (
            "remote_invalidations_received",
            traffic.remote_invalidations_received,
        ),
        ("local_invalidations", traffic.local_invalidations),
        ("inline_calls", traffic.inline_calls),
        ("chunked_calls", traffic.chunked_calls),
        ("bad_headers", traffic.bad_headers),
        ("unexpected_messages", traffic.unexpected_messages),
    ];
    counters
        .iter()
        .try_for_each(|(name, value)| writeln!(out, "{name}: {value}"))
}
