// SPDX-License-Identifier: GPL-2.0

//! The text of the file `info`: everything about one connection, one `key: value` a line.

use core::fmt::{
    self,
    Display,
    Write, //
};

use super::{
    format::{
        yes_no,
        Or, //
    },
    snapshot::{
        Null,
        Origin,
        ReverseDirection,
        Snapshot,
        Traffic, //
    }, //
};
use crate::pure::wire::{
    negotiation::Role,
    private_data::{
        Offer,
        Parsed,
        Rejection, //
    }, //
};

/// Stands for a value that is not known.
const UNKNOWN: &str = "unknown";

/// The note of every program's connection.
const OF_PROGRAM: &str =
    "the values follow from RFC 8797: what the program makes of the messages is not known";

/// Stands for the value of a key that does not apply.
const NONE: &str = "none";

/// Writes the file's content. Fails only if `out` fails.
pub(crate) fn info(snapshot: &Snapshot, out: &mut dyn Write) -> fmt::Result {
    identity(snapshot, out)?;
    endpoints(snapshot, out)?;

    let exchange = &snapshot.exchange;
    let own = exchange.sent.map(|sent| exchange.offer_of(&sent));
    offer("local", own, out)?;

    private_data(snapshot, out)?;
    let received = exchange.received;
    let peer = received.map(|received| exchange.offer_of(&received));
    offer("peer", peer, out)?;

    negotiated(snapshot, out)?;
    if snapshot.origin == Origin::Nfs {
        in_use(snapshot, out)?;
    }
    if let Some(traffic) = &snapshot.traffic {
        self::traffic(snapshot, traffic, out)?;
    }
    deviations(snapshot, out)?;
    if snapshot.origin == Origin::User {
        line(out, "note", OF_PROGRAM)?;
    }
    match snapshot.note {
        Some(note) => line(out, "note", note),
        None => Ok(()),
    }
}

fn line(out: &mut dyn Write, key: &str, value: impl Display) -> fmt::Result {
    writeln!(out, "{key}: {value}")
}

/// Writes the keys from `id` to `state`.
fn identity(snapshot: &Snapshot, out: &mut dyn Write) -> fmt::Result {
    line(out, "id", snapshot.number)?;
    line(out, "origin", snapshot.origin)?;
    if let Some(process) = snapshot.process {
        line(out, "command", process)?;
        line(out, "pid", process.pid)?;
    }
    line(out, "role", snapshot.role)?;
    line(out, "state", snapshot.state)
}

/// Writes the keys from `device` to `last_failure`.
fn endpoints(snapshot: &Snapshot, out: &mut dyn Write) -> fmt::Result {
    let exchange = &snapshot.exchange;
    let device = exchange.device;

    line(out, "device", Or(device.map(|device| device.name), UNKNOWN))?;
    line(
        out,
        "transport",
        Or(device.map(|device| device.transport), UNKNOWN),
    )?;
    line(out, "local", Or(exchange.local, UNKNOWN))?;
    line(out, "remote", Or(exchange.remote, UNKNOWN))?;
    line(out, "generation", snapshot.generation)?;
    line(out, "age_ms", snapshot.age_ms)?;
    line(out, "last_failure", Or(snapshot.failure, NONE))
}

/// Writes the offer of `side`: "local" or "peer".
fn offer(side: &str, offer: Option<Offer>, out: &mut dyn Write) -> fmt::Result {
    let send_size = offer.map(|offer| offer.send_size.octets());
    let receive_size = offer.map(|offer| offer.receive_size.octets());
    let remote_invalidation = offer.map(|offer| yes_no(offer.remote_invalidation));

    writeln!(out, "{side}_send_size: {}", Or(send_size, UNKNOWN))?;
    writeln!(out, "{side}_receive_size: {}", Or(receive_size, UNKNOWN))?;
    writeln!(
        out,
        "{side}_remote_invalidation: {}",
        Or(remote_invalidation, UNKNOWN)
    )
}

/// Writes the keys about the private data of the peer.
fn private_data(snapshot: &Snapshot, out: &mut dyn Write) -> fmt::Result {
    let received = snapshot.exchange.received;
    let parsed = received.map(|received| received.parsed);
    match parsed {
        None => line(out, "peer_private_data", UNKNOWN)?,
        Some(Parsed::Absent) => line(out, "peer_private_data", "absent")?,
        Some(Parsed::Present(_)) => line(out, "peer_private_data", "present")?,
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
    let none = if parsed.is_some() { NONE } else { UNKNOWN };
    let len = received.map(|received| received.octets.len());
    line(out, "peer_length", Or(len, UNKNOWN))?;
    line(out, "peer_offset", Or(offset, none))?;
    line(out, "peer_version", Or(version, none))?;
    match reserved {
        Some(reserved) => writeln!(out, "peer_reserved: {reserved:#04x}")?,
        None => line(out, "peer_reserved", none)?,
    }
    // Zeros may be padding.
    match received {
        Some(received)
            if received.parsed == Parsed::Absent
                && received.octets.octets().iter().any(|&octet| octet != 0) =>
        {
            let octets = FirstOctets(received.octets.octets());
            line(out, "peer_first_octets", octets)
        }
        _ => Ok(()),
    }
}

/// The first octets of private data, in hexadecimal.
struct FirstOctets<'a>(&'a [u8]);

impl Display for FirstOctets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = self.0.iter().take(8);
        first.try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// Writes the result of combining both offers.
fn negotiated(snapshot: &Snapshot, out: &mut dyn Write) -> fmt::Result {
    let (client_to_server, server_to_client) = snapshot.thresholds();
    let negotiated = snapshot.exchange.negotiated(snapshot.role);
    let remote_invalidation = negotiated.map(|both| yes_no(both.remote_invalidation));

    line(
        out,
        "client_to_server_threshold",
        Or(client_to_server, UNKNOWN),
    )?;
    line(
        out,
        "server_to_client_threshold",
        Or(server_to_client, UNKNOWN),
    )?;
    line(out, "remote_invalidation", Or(remote_invalidation, UNKNOWN))
}

/// Writes the values in use by the kernel's client or server.
fn in_use(snapshot: &Snapshot, out: &mut dyn Write) -> fmt::Result {
    let in_use = &snapshot.in_use;

    line(out, "inline_send_in_use", Or(in_use.inline_send, UNKNOWN))?;
    line(
        out,
        "inline_receive_in_use",
        Or(in_use.inline_receive, UNKNOWN),
    )?;
    line(
        out,
        "remote_invalidation_in_use",
        Or(in_use.remote_invalidation.map(yes_no), UNKNOWN),
    )
}

/// Writes the keys about the messages on a connection of the module's own.
fn traffic(snapshot: &Snapshot, traffic: &Traffic, out: &mut dyn Write) -> fmt::Result {
    let (forward, reverse) = (&traffic.forward, &traffic.reverse);
    line(out, "rpc_version_used", Or(snapshot.exchange.version, NONE))?;
    if snapshot.role == Role::Client {
        match traffic.null {
            Null::None => line(out, "rpc_null", NONE)?,
            Null::Pending => line(out, "rpc_null", "pending")?,
            Null::Answered => line(out, "rpc_null", "SUCCESS")?,
            Null::Failed(cause) => line(out, "rpc_null", cause)?,
        }
        line(out, "rpc_null_us", Or(traffic.null_us, NONE))?;
    }
    line(out, "credits_granted", Or(forward.credits_granted, NONE))?;
    match traffic.reverse_direction {
        ReverseDirection::No => line(out, "reverse_direction", yes_no(false))?,
        ReverseDirection::Pending => line(out, "reverse_direction", "pending")?,
        ReverseDirection::Yes => line(out, "reverse_direction", yes_no(true))?,
        ReverseDirection::Failed(cause) => line(out, "reverse_direction", cause)?,
    }
    line(
        out,
        "reverse_credits_granted",
        Or(reverse.credits_granted, NONE),
    )?;
    for (key, value) in [
        ("sends", traffic.sends),
        ("sends_with_invalidate", traffic.sends_with_invalidate),
        (
            "remote_invalidations_received",
            traffic.remote_invalidations_received,
        ),
        ("local_invalidations", traffic.local_invalidations),
        ("inline_calls", forward.inline),
        ("chunked_calls", forward.chunked),
        ("reverse_inline_calls", reverse.inline),
        ("reverse_chunked_calls", reverse.chunked),
        ("bad_headers", traffic.bad_headers),
        ("unexpected_messages", traffic.unexpected_messages),
    ] {
        line(out, key, value)?;
    }
    Ok(())
}

/// Writes a line for each difference between the values in use and the result of both offers.
fn deviations(snapshot: &Snapshot, out: &mut dyn Write) -> fmt::Result {
    let Some(negotiated) = snapshot.exchange.negotiated(snapshot.role) else {
        return Ok(());
    };
    negotiated
        .deviations(snapshot.role, &snapshot.in_use)
        .try_for_each(|deviation| line(out, "deviation", deviation))?;
    match snapshot.traffic.map(|traffic| traffic.missing_reply_chunks) {
        None | Some(0) => Ok(()),
        Some(replies) => writeln!(
            out,
            "deviation: leaves the offered Reply chunk out of replies, {replies} so far \
             (RFC 8166, section 4.3.3)"
        ),
    }
}
