// SPDX-License-Identifier: GPL-2.0

//! Tables for people, without ruled lines. They are as wide as their content or as the terminal.

use comfy_table::{
    presets,
    Cell,
    CellAlignment,
    Color,
    ContentArrangement,
    Table, //
};

use super::{
    or_dash,
    words::place,
    yes_no,
    Style, //
};
use crate::{
    mount_report::MountReport, //
    parse::{
        history::{
            Change,
            Event, //
        },
        info::Info, //
    },
};

fn table(style: Style, header: &str) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    if style.terminal {
        let columns = table.width();
        fit(&mut table, columns);
    }
    if style.colour {
        table.enforce_styling();
    } else {
        // This turns styles off, and also hides the terminal's width.
        table.force_no_tty();
    }
    table.set_header(header.split(' '));
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    table
}

/// Makes the table as wide as the terminal. A serial console says that it has no columns: its width
/// is not known.
fn fit(table: &mut Table, columns: Option<u16>) {
    if let Some(columns) = columns.filter(|columns| *columns > 0) {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(columns);
    }
}

fn finish(table: &Table) -> String {
    let mut out = String::new();
    for line in table.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn number(value: Option<u64>) -> Cell {
    Cell::new(or_dash(value)).set_alignment(CellAlignment::Right)
}

/// The connections, as the module's table has them.
pub(crate) fn connections(style: Style, connections: &[Info]) -> String {
    let mut table = table(
        style,
        "ID ORIGIN ROLE STATE DEVICE TRANSPORT LOCAL REMOTE GEN C2S S2C INV",
    );
    for info in connections {
        let colour = match info.state.as_deref() {
            Some("established") => Color::Green,
            Some("disconnected") => Color::Red,
            _ => Color::Yellow,
        };
        table.add_row([
            number(info.id),
            Cell::new(or_dash(info.origin.as_ref())),
            Cell::new(or_dash(info.role.as_ref())),
            Cell::new(or_dash(info.state.as_ref())).fg(colour),
            Cell::new(or_dash(info.device.as_ref())),
            Cell::new(or_dash(info.transport.as_ref())),
            Cell::new(or_dash(info.local.as_ref())),
            Cell::new(or_dash(info.remote.as_ref())),
            number(info.generation),
            number(info.client_to_server_threshold),
            number(info.server_to_client_threshold),
            Cell::new(yes_no(info.remote_invalidation)),
        ]);
    }
    finish(&table)
}

/// The mounts, by their columns.
pub(crate) fn mounts(style: Style, mounts: &[MountReport]) -> String {
    let mut table = table(
        style,
        "MOUNT SERVER VERS PROTO CONN C2S S2C OFFERED USED CALLS CHUNKS REPLY RECONN",
    );
    for report in mounts {
        let connections = report.connections.as_deref().unwrap_or_default();
        let up = connections.iter().filter(|info| info.is_established());
        let conn = match &report.connections {
            Some(all) => format!("{}/{}", up.count(), all.len()),
            None => "-".to_owned(),
        };
        let stats = report.stats.as_ref();
        let counters = stats
            .filter(|stats| stats.transports > 0)
            .map(|stats| &stats.counters);
        let calls = counters.and_then(|counters| counters.sends);
        let chunks = counters.and_then(|counters| {
            Some(counters.read_chunks?.saturating_add(counters.write_chunks?))
        });
        table.add_row([
            Cell::new(place(report)),
            Cell::new(or_dash(
                report
                    .mount
                    .remote()
                    .or_else(|| report.mount.address.clone()),
            )),
            Cell::new(or_dash(report.mount.version.as_ref())),
            Cell::new(or_dash(report.mount.protocol.as_ref())),
            Cell::new(conn),
            number(least(connections, |info| info.client_to_server_threshold)),
            number(least(connections, |info| info.server_to_client_threshold)),
            Cell::new(all(connections, |info| info.remote_invalidation)),
            Cell::new(all(connections, |info| info.remote_invalidation_in_use)),
            number(calls),
            share(chunks, calls),
            share(counters.and_then(|counters| counters.reply_chunks), calls),
            number(counters.and(report.reconnects)),
        ]);
    }
    finish(&table)
}

/// The smallest value of these connections that are established. Others may keep that of their past.
pub(super) fn least(connections: &[Info], value: impl Fn(&Info) -> Option<u64>) -> Option<u64> {
    let established = connections.iter().filter(|info| info.is_established());
    established.filter_map(value).min()
}

fn all(connections: &[Info], value: impl Fn(&Info) -> Option<bool>) -> &'static str {
    let established = connections.iter().filter(|info| info.is_established());
    let mut values: Vec<bool> = established.filter_map(value).collect();
    values.dedup();
    match *values {
        [] => "-",
        [value] => yes_no(Some(value)),
        _ => "some",
    }
}

/// Segments in percent of the calls, at most 100: a call can have several segments.
fn share(segments: Option<u64>, calls: Option<u64>) -> Cell {
    let percent = segments.zip(calls).and_then(|(segments, calls)| {
        let percent = segments.saturating_mul(100).checked_div(calls)?;
        Some(format!("{} %", percent.min(100)))
    });
    Cell::new(or_dash(percent)).set_alignment(CellAlignment::Right)
}

/// The events.
pub(crate) fn history(style: Style, events: &[Event]) -> String {
    let mut table = table(
        style,
        "DATE ID ORIGIN ROLE EVENT REMOTE GEN LASTED C2S S2C INV REASON",
    );
    for event in events {
        let colour = match event.event.as_deref() {
            Some("lost" | "failed" | "refused") => Color::Red,
            Some("established" | "re-established") => Color::Green,
            _ => Color::Reset,
        };
        let lasted = event
            .lasted_ms
            .map(|ms| format!("{}.{:03} s", ms / 1000, ms % 1000));
        table.add_row([
            Cell::new(or_dash(event.date.as_ref().or(event.time.as_ref()))),
            number(event.id),
            Cell::new(or_dash(event.origin.as_ref())),
            Cell::new(or_dash(event.role.as_ref())),
            Cell::new(or_dash(event.event.as_ref())).fg(colour),
            Cell::new(or_dash(event.remote.as_ref())),
            number(event.generation),
            Cell::new(or_dash(lasted)).set_alignment(CellAlignment::Right),
            Cell::new(change(&event.client_to_server_threshold, |value| {
                or_dash(Some(value))
            })),
            Cell::new(change(&event.server_to_client_threshold, |value| {
                or_dash(Some(value))
            })),
            Cell::new(change(&event.remote_invalidation, |value| {
                yes_no(Some(*value)).to_owned()
            })),
            Cell::new(or_dash(event.reason.as_ref())),
        ]);
    }
    finish(&table)
}

fn change<T>(change: &Change<T>, show: impl Fn(&T) -> String) -> String {
    match (&change.before, &change.now) {
        (Some(before), Some(now)) => format!("{} -> {}", show(before), show(now)),
        (None, Some(now)) => show(now),
        (Some(before), None) => format!("{} -> -", show(before)),
        (None, None) => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_of_terminals() {
        let plain = Style {
            colour: false,
            terminal: false,
        };
        let lines = |columns| {
            let mut table = table(plain, "MOUNT SERVER");
            fit(&mut table, columns);
            table.add_row(["/mnt/a long name", "192.0.2.7:20049"]);
            finish(&table).lines().count()
        };
        assert_eq!(lines(None), 2);
        assert_eq!(lines(Some(0)), 2);
        assert_eq!(lines(Some(80)), 2);
        assert!(lines(Some(20)) > 2);
    }
}
