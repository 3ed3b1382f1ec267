// SPDX-License-Identifier: GPL-2.0

//! One connection, and one probe, in words.

use std::fmt::Write;

use super::{
    escape,
    octets,
    or_dash,
    table::least,
    yes_no,
    Style, //
};
use crate::{
    check::Check,
    mount_report::MountReport,
    parse::{
        info::{
            Info,
            Report, //
        },
        stats::Observing, //
    },
    verdict::{
        self,
        Code,
        Severity,
        Verdict, //
    }, //
};

/// The line above a table that says why connections of others may be missing, if they may.
pub(crate) fn observing(style: Style, observing: Option<&Observing>) -> String {
    observing
        .and_then(Observing::sentence)
        .map_or_else(String::new, |sentence| {
            style.severity(Severity::Unknown, &escape(&sentence)) + "\n"
        })
}

/// The mounts: a sentence and a remedy for each verdict, worst first. Notes are for `wide` only,
/// except those that say why a sound mount shows no sizes.
pub(crate) fn mounts(style: Style, mounts: &[MountReport], wide: bool) -> String {
    let mut out = String::new();
    let is_shown = |verdict: &&Verdict| {
        wide || verdict.severity != Severity::Note
            || matches!(verdict.code, Code::NotConnected | Code::Unknown)
    };
    for report in mounts {
        for (index, verdict) in report.verdicts.iter().filter(is_shown).enumerate() {
            let place = if index == 0 {
                format!("{}:", place(report))
            } else {
                "  and:".to_owned()
            };
            let _ = writeln!(out, "{place} {}", sentence(style, verdict));
            remedy(verdict.remedy.as_deref(), &mut out);
            if verdict.severity == Severity::Fine {
                in_use(report, &mut out);
            }
        }
    }
    out
}

/// The mount point, and the namespace if it is another one.
pub(crate) fn place(report: &MountReport) -> String {
    let point = escape(&report.mount.mount_point);
    match report.pid {
        Some(pid) => format!("{point} (namespace of pid {pid})"),
        None => point,
    }
}

fn sentence(style: Style, verdict: &Verdict) -> String {
    style.severity(verdict.severity, &verdict.in_short())
}

/// The lines of `check`, each with its remedy unless there is nothing to do.
pub(crate) fn checks(style: Style, checks: &[Check]) -> String {
    let mut out = String::new();
    for check in checks {
        let word = format!("{:<8}", check.severity.word());
        let word = style.severity(check.severity, &word);
        let _ = writeln!(out, "{word} {}: {}", check.name(), escape(&check.sentence));
        remedy(check.remedy.as_deref(), &mut out);
    }
    out
}

fn remedy(remedy: Option<&str>, out: &mut String) {
    if let Some(remedy) = remedy {
        for line in remedy.lines() {
            let _ = writeln!(out, "    {}", escape(line));
        }
    }
}

/// What a sound mount uses.
fn in_use(report: &MountReport, out: &mut String) {
    let connections = report.connections.as_deref().unwrap_or_default();
    let thresholds = least(connections, |info| info.client_to_server_threshold)
        .zip(least(connections, |info| info.server_to_client_threshold));
    if let Some((calls, replies)) = thresholds {
        let _ = writeln!(
            out,
            "    RDMA to {}; calls of up to {calls} octets and replies of up to {replies} go inline",
            or_dash(report.mount.remote())
        );
    }
}

/// One connection: its ends, the offers, the negotiated values, and the private data.
pub(crate) fn show(style: Style, info: &Info, sent: &[u8], received: &[u8]) -> String {
    let mut out = String::new();
    identity(info, &mut out);
    offers(info, &mut out);
    negotiated(info, &mut out);
    others(info, &mut out);
    remarks(info, &mut out);
    verdicts(style, &verdict::of_connection(info, sent), &mut out);
    private_data("Private data sent", sent, octets::find(sent), &mut out);
    private_data(
        "Private data received",
        received,
        info.peer_offset,
        &mut out,
    );
    out
}

/// The report of a probe.
pub(crate) fn probe(style: Style, target: &str, report: &Report, found: &[Verdict]) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "Probe of {}", escape(target));
    if report.reachable == Some(true) {
        for (version, answer) in [(1, &report.rpc_version_1), (2, &report.rpc_version_2)] {
            let Some(answer) = answer else {
                continue;
            };
            let _ = writeln!(
                out,
                "  NULL of {} in version {version} of RPC-over-RDMA: {}",
                verdict::program(report.program, report.program_version),
                escape(answer)
            );
        }
        offers(&report.info, &mut out);
        negotiated(&report.info, &mut out);
        remarks(&report.info, &mut out);
    }
    verdicts(style, found, &mut out);
    out
}

fn identity(info: &Info, out: &mut String) {
    let role = if info.is_client() { "client" } else { "server" };
    let owner = match (info.origin.as_deref(), &info.command) {
        (Some("nfs"), _) => "the kernel's NFS".to_owned(),
        (Some("module"), _) => "the module".to_owned(),
        (_, Some(command)) => format!("{} (pid {})", escape(command), or_dash(info.pid)),
        _ => "a program".to_owned(),
    };
    let _ = writeln!(
        out,
        "Connection {}: {owner} as {role}, {}",
        or_dash(info.id),
        or_dash(info.state.as_ref()),
    );
    let _ = writeln!(
        out,
        "  from {} to {}, by {} ({})",
        or_dash(info.local.as_ref()),
        or_dash(info.remote.as_ref()),
        or_dash(info.device.as_ref()),
        or_dash(info.transport.as_ref()),
    );
    if let Some(age) = info.age_ms {
        // The module knows such a connection since it was loaded.
        let is_older = info.note.iter().any(|note| note.starts_with("older than"));
        let _ = writeln!(
            out,
            "  in this state for {}{}, generation {}",
            if is_older { "at least " } else { "" },
            verdict::duration(age / 1000),
            or_dash(info.generation)
        );
    }
    if let Some(failure) = &info.last_failure {
        let _ = writeln!(out, "  last failure: {}", escape(failure));
    }
}

fn offers(info: &Info, out: &mut String) {
    let _ = writeln!(
        out,
        "Offers       Send Size  Receive Size  remote invalidation"
    );
    for (end, send, receive, invalidation) in [
        (
            "this end",
            info.local_send_size,
            info.local_receive_size,
            info.local_remote_invalidation,
        ),
        (
            "peer",
            info.peer_send_size,
            info.peer_receive_size,
            info.peer_remote_invalidation,
        ),
    ] {
        let _ = writeln!(
            out,
            "  {end:<10} {:>9}  {:>12}  {}",
            or_dash(send),
            or_dash(receive),
            yes_no(invalidation)
        );
    }
    let _ = writeln!(
        out,
        "  The peer's message: {}",
        or_dash(info.peer_private_data.as_ref())
    );
    if let Some(octets) = &info.peer_first_octets {
        let _ = writeln!(out, "  It sent another format: {octets}…");
    }
}

fn negotiated(info: &Info, out: &mut String) {
    let _ = writeln!(out, "Negotiated");
    for (direction, threshold) in [
        ("client to server", info.client_to_server_threshold),
        ("server to client", info.server_to_client_threshold),
    ] {
        let _ = writeln!(
            out,
            "  {direction}: messages of up to {} octets go inline, longer ones by chunks",
            or_dash(threshold)
        );
    }
    let _ = writeln!(
        out,
        "  remote invalidation: {}",
        yes_no(info.remote_invalidation)
    );
    if info.is_of("nfs") {
        let _ = writeln!(
            out,
            "In use by the kernel: inline send {}, inline receive {}, remote invalidation {}",
            or_dash(info.inline_send_in_use),
            or_dash(info.inline_receive_in_use),
            yes_no(info.remote_invalidation_in_use)
        );
    }
}

/// The keys whose values [`show`] has in sentences. It prints every other key as `info` does.
const IN_SENTENCES: &str =
    "id origin command pid role state device transport local remote generation age_ms \
    last_failure local_send_size local_receive_size local_remote_invalidation \
    peer_private_data peer_first_octets peer_send_size peer_receive_size \
    peer_remote_invalidation client_to_server_threshold server_to_client_threshold \
    remote_invalidation inline_send_in_use inline_receive_in_use remote_invalidation_in_use \
    deviation note";

fn others(info: &Info, out: &mut String) {
    let _ = writeln!(out, "Other values");
    for (key, values) in info.values() {
        if !IN_SENTENCES.split(' ').any(|known| known == key) {
            for value in values {
                let _ = writeln!(out, "  {key}: {}", escape(&value));
            }
        }
    }
}

fn remarks(info: &Info, out: &mut String) {
    for note in &info.note {
        let _ = writeln!(out, "Note: {}", escape(note));
    }
}

fn verdicts(style: Style, verdicts: &[Verdict], out: &mut String) {
    let _ = writeln!(out, "Verdict");
    for verdict in verdicts {
        let _ = writeln!(out, "  {}", sentence(style, verdict));
        remedy(verdict.remedy.as_deref(), out);
    }
}

fn private_data(title: &str, octets: &[u8], offset: Option<u64>, out: &mut String) {
    if octets.is_empty() {
        let _ = writeln!(out, "{title}: none");
    } else {
        let _ = writeln!(out, "{title}: {} octets", octets.len());
        out.push_str(&octets::annotated(octets, offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::info;

    #[test]
    fn every_key_is_shown() {
        let style = Style {
            colour: false,
            terminal: false,
        };
        let keys: Vec<&str> = Info::default().values().iter().map(|it| it.0).collect();
        assert!(IN_SENTENCES.split(' ').all(|key| keys.contains(&key)));
        let shown = |origin: &str, text: &str| {
            let text = format!("origin: {origin}\ncommand: x\nage_ms: 0\n{text}");
            show(style, &info::info(&text), &[], &[])
        };
        let is_shown = |key: &&str| {
            // One of these values is of the kind of the key.
            ["7654321", "yes", "client"].iter().any(|value| {
                let text = format!("{key}: {value}\n");
                ["nfs", "user"]
                    .iter()
                    .any(|origin| shown(origin, &text) != shown(origin, ""))
            })
        };
        let missing: Vec<&str> = keys.into_iter().filter(|key| !is_shown(key)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        // The module found it then.
        assert!(shown("nfs", "").contains("state for 0 seconds"));
        let older = shown("nfs", "note: older than the module, so that what was\n");
        assert!(older.contains("state for at least 0 seconds"), "{older}");
    }
}
