// SPDX-License-Identifier: GPL-2.0

//! `probe`: connects once, calls NULL in version 1, and says what the server offers and answers.
//!
//! The report has the keys, and as a text the form, of the file `probe` of the module rpcrdma_cm,
//! so that a program can read either.

use std::fmt::Write as _;
use std::time::Duration;
use std::time::Instant;

use serde_json::json;
use serde_json::Value;

use crate::case::violation;
use crate::case::Problem;
use crate::engine::Arrival;
use crate::engine::Failure;
use crate::engine::Offer;
use crate::peer::Answer;
use crate::peer::Link;
use crate::peer::Server;
use crate::peer::Target;
use crate::trace::Trace;
use crate::wire;
use crate::wire::Found;
use crate::wire::Header;
use crate::wire::Private;
use crate::wire::Status;

/// Keys and their values, in the order of the text.
pub struct Report(Vec<(&'static str, Value)>);

impl Report {
    /// Returns whether NULL succeeded.
    pub fn succeeded(&self) -> bool {
        self.0.contains(&("rpc_version_1", json!("SUCCESS")))
    }

    /// Returns one JSON object.
    pub fn json(&self) -> String {
        let pairs = self.0.iter().cloned();
        let all: serde_json::Map<String, Value> =
            pairs.map(|(key, value)| (key.to_string(), value)).collect();
        format!("{}\n", Value::Object(all))
    }

    /// Returns one `key: value` a line.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (key, value) in &self.0 {
            let word = match value {
                Value::Null => "none".into(),
                Value::Bool(true) => "yes".into(),
                Value::Bool(false) => "no".into(),
                Value::String(word) => word.clone(),
                number => number.to_string(),
            };
            if *key == "reason" {
                // `reachable: no: REASON`.
                text.truncate(text.trim_end().len());
                let _ = writeln!(text, ": {word}");
            } else {
                let _ = writeln!(text, "{key}: {word}");
            }
        }
        text
    }
}

/// Probes the server. `offer` and `credits` are this side's.
pub fn probe(server: &Server, offer: &Offer, credits: u32) -> Report {
    let mut target = Target {
        server,
        trace: Trace::quiet(),
    };
    let mut link = match target.try_connect(offer) {
        Ok(link) => link,
        Err(failure) => {
            return Report(vec![
                ("reachable", json!(false)),
                ("reason", json!(reason(&failure))),
            ])
        }
    };
    let mut null = server.null;
    let mut versions = Value::Null;
    let mut started = Instant::now();
    let mut answer = call(&mut link, credits);
    if let Ok(Status::ProgMismatch(low, high)) = answer.as_ref().map(|answer| &answer.status) {
        let (low, high) = (*low, *high);
        versions = json!(format!("{low} to {high}"));
        if let Some(version) = named_version(null.version, low, high) {
            null.version = version;
            link.server.null = null;
            started = Instant::now();
            answer = call(&mut link, credits);
        }
    }
    let took = started.elapsed().as_micros() as u64;
    let said = json!(match &answer {
        Ok(answer) => words(&answer.status),
        Err(problem) => problem.reason().to_string(),
    });
    let mut report = vec![
        ("reachable", json!(true)),
        ("rpc_version_1", said.clone()),
        ("program", json!(null.program)),
        ("program_version", json!(null.version)),
        ("program_versions", versions),
        ("origin", json!("user")),
        ("role", json!("client")),
        ("state", json!("established")),
        ("device", json!(link.connection.device())),
        ("transport", json!(transport(&link))),
        ("remote", json!(server.address.to_string())),
    ];
    report.extend(offers(&link, offer));
    report.extend([
        ("rpc_version_used", json!(answer.as_ref().ok().map(|_| 1))),
        ("rpc_null", said),
        ("rpc_null_us", json!(took)),
        (
            "credits_granted",
            json!(answer.ok().map(|answer| answer.header.credits)),
        ),
    ]);
    Report(report)
}

/// How long the server may take to send the reply behind a message that is too short for one. The
/// module waits as long.
const GRACE: Duration = Duration::from_secs(1);

/// Calls NULL, and returns the reply. Otherwise the reason says what the server sent instead, as the
/// module's file `probe` does.
fn call(link: &mut Link, credits: u32) -> Result<Answer, Problem> {
    let xid = link.xid();
    let header = Header {
        credits,
        ..Header::msg(xid)
    };
    let rpc = link.null_call(xid);
    link.ask(&header, &rpc)?;
    let mut until = Instant::now() + link.server.limit;
    let (mut short, mut other) = (None, None);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let arrival = match left {
            // A server that keeps sending does not delay the end.
            Duration::ZERO => Arrival::Nothing,
            left => link.connection.receive(left),
        };
        let ended = match arrival {
            Arrival::Message(message) if is_short(&message.octets) => {
                // It can only have been the answer to this call.
                short.get_or_insert(message.octets.len());
                until = until.min(Instant::now() + GRACE);
                continue;
            }
            Arrival::Message(message) => match message.octets.first_chunk() {
                Some(found) if *found == xid.to_be_bytes() => return link.decode(xid, &message),
                found => {
                    other = other.or(found.map(|xid| u32::from_be_bytes(*xid)));
                    continue;
                }
            },
            Arrival::Closed(why) => format!("the connection ended: {why}"),
            Arrival::Nothing => other.map_or("no reply in time".into(), |xid| {
                let message = format!("a message with XID {xid:#010x}, which no call has");
                format!("no reply in time; the server sent {message}")
            }),
        };
        return violation(match short {
            Some(1) => "the server answered with a message of 1 octet".into(),
            Some(length) => format!("the server answered with a message of {length} octets"),
            None => ended,
        });
    }
}

/// Whether a message is too short for a header (RFC 8166, section 4.5). An error may be shorter than
/// other headers.
fn is_short(octets: &[u8]) -> bool {
    octets.len() < 16 || (octets.len() < 28 && octets[12..16] != wire::ERROR.to_be_bytes())
}

/// Returns why there is no connection, in the words of the module.
fn reason(failure: &Failure) -> String {
    match failure {
        Failure::Timeout("REQ") => "no answer in time".into(),
        Failure::Timeout("resolving the address") => "the address was not resolved in time".into(),
        other => other.to_string(),
    }
}

/// Returns the status of a reply, in the words of RFC 5531 and of the module.
fn words(status: &Status) -> String {
    let name = match status {
        Status::Success(_) => return "SUCCESS".into(),
        Status::ProgUnavail => "PROG_UNAVAIL".into(),
        Status::ProgMismatch(low, high) => format!("PROG_MISMATCH, {low} to {high}"),
        Status::ProcUnavail => "PROC_UNAVAIL".into(),
        Status::GarbageArgs => "GARBAGE_ARGS".into(),
        Status::SystemErr => "SYSTEM_ERR".into(),
        Status::RpcMismatch(low, high) => format!("RPC_MISMATCH, {low} to {high}"),
        Status::AuthError(reason) => format!("AUTH_ERROR {reason}"),
    };
    format!("the responder answered: {name}")
}

fn transport(link: &Link) -> &'static str {
    let connection = &link.connection;
    let layer = format!(
        "/sys/class/infiniband/{}/ports/1/link_layer",
        connection.device()
    );
    match std::fs::read_to_string(layer) {
        _ if connection.is_iwarp() => "iwarp",
        Ok(layer) if layer.trim() == "Ethernet" => "roce",
        _ => "infiniband",
    }
}

/// Returns the keys of both messages, and of what follows from them.
fn offers(link: &Link, offer: &Offer) -> Vec<(&'static str, Value)> {
    let octets = link.connection.private();
    let found = Private::look(octets);
    let own = Private::find(&offer.private).map_or_else(Private::default, |(_, own)| own);
    let (said, offset, version, flags) = match found {
        Found::Absent => ("absent".into(), None, None, None),
        Found::Message(at, message) => ("present".into(), Some(at), Some(1), Some(message.flags)),
        Found::Version(at, version) => (
            format!("rejected: unrecognized version {version}"),
            Some(at),
            Some(version),
            None,
        ),
        Found::Truncated(at, length) => (
            format!("rejected: truncated, {length} of 8 octets"),
            Some(at),
            None,
            None,
        ),
    };
    let mut keys = vec![
        ("local_send_size", json!(own.send_size())),
        ("local_receive_size", json!(own.receive_size())),
        ("local_remote_invalidation", json!(own.invalidation())),
        ("peer_private_data", json!(said)),
        ("peer_length", json!(octets.len())),
        ("peer_offset", json!(offset)),
        ("peer_version", json!(version)),
        (
            "peer_reserved",
            json!(flags.map(|flags| format!("{:#04x}", flags & !1))),
        ),
    ];
    if matches!(found, Found::Absent) && octets.iter().any(|octet| *octet != 0) {
        let first = octets.iter().take(8);
        let digits = first.fold(String::new(), |mut digits, octet| {
            // Cannot fail: it grows.
            let _ = write!(digits, "{octet:02x}");
            digits
        });
        keys.push(("peer_first_octets", json!(digits)));
    }
    keys.extend([
        ("peer_send_size", json!(link.peer.send_size())),
        ("peer_receive_size", json!(link.peer.receive_size())),
        ("peer_remote_invalidation", json!(link.peer.invalidation())),
        ("client_to_server_threshold", json!(link.to_server)),
        ("server_to_client_threshold", json!(link.to_client)),
        ("remote_invalidation", json!(link.both_invalidate)),
    ]);
    keys
}

/// Returns the version in which to call again, of those that PROG_MISMATCH names: the nearer end of
/// the range (RFC 5531, section 9). None if it names no version, or only the one that it refused.
fn named_version(refused: u32, low: u32, high: u32) -> Option<u32> {
    let version = if refused < low || refused == high {
        low
    } else {
        high
    };
    (low <= high && version != refused).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_version_is_called_once() {
        for (refused, low, high, called) in [
            (7, 3, 4, Some(4)),
            (2, 3, 4, Some(3)),
            (3, 2, 4, Some(4)),
            (4, 2, 4, Some(2)),
            (4, 4, 4, None),
            (3, 4, 2, None),
        ] {
            assert_eq!(named_version(refused, low, high), called, "{refused}");
        }
    }

    #[test]
    fn the_text_has_the_form_of_the_module() {
        let report = Report(vec![
            ("reachable", json!(true)),
            ("rpc_version_1", json!("SUCCESS")),
            ("program", json!(100_003)),
            ("peer_offset", Value::Null),
            ("remote_invalidation", json!(false)),
        ]);
        assert!(report.succeeded());
        assert_eq!(
            report.text(),
            "reachable: yes\nrpc_version_1: SUCCESS\nprogram: 100003\npeer_offset: none\n\
             remote_invalidation: no\n"
        );
        let report = Report(vec![
            ("reachable", json!(false)),
            ("reason", json!("no answer in time")),
        ]);
        assert!(!report.succeeded());
        assert_eq!(report.text(), "reachable: no: no answer in time\n");
        assert_eq!(
            report.json(),
            "{\"reachable\":false,\"reason\":\"no answer in time\"}\n"
        );
    }
}
