// SPDX-License-Identifier: GPL-2.0

//! The files `connections` and `listeners`.

use core::fmt::{
    self,
    Write, //
};

use super::{
    device,
    private_data,
    snapshot, //
};
use crate::pure::{
    text::{
        exchange::ShownTransport,
        snapshot::{
            ListenerSnapshot,
            Origin,
            Snapshot,
            State, //
        },
        tables::{
            ConnectionColumns,
            ListenerColumns, //
        }, //
    },
    wire::{
        negotiation::Role,
        private_data::{
            Offer,
            Size, //
        }, //
    }, //
};

/// Sends 4096 octets, receives 8192, R set.
const MESSAGE: [u8; 8] = *b"\xf6\xab\x0e\x18\x01\x01\x03\x07";

/// The file without a connection.
pub(crate) const NO_CONNECTIONS: &str = "\
ID     ORIGIN ROLE   STATE        DEVICE TRANSPORT  LOCAL REMOTE GEN    C2S    S2C INV
";

/// The connections of [`CONNECTIONS`], each by its differences to [`snapshot`].
const CHANGES: &[fn(&mut Snapshot)] = &[
    |it| {
        it.number = 1;
        it.state = State::Resolving;
        it.exchange.device = None;
        it.exchange.local = None;
        it.exchange.remote = None;
    },
    |it| {
        it.number = 12;
        it.state = State::Connecting;
        it.exchange.sent = private_data(&MESSAGE);
    },
    |it| {
        it.number = 123;
        it.exchange.sent = private_data(&MESSAGE);
        it.exchange.received = private_data(b"\xf6\xab\x0e\x18\x01\x01\xff\x00");
    },
    |it| {
        it.number = 1234;
        it.state = State::Reconnecting;
        it.generation = 1000;
        it.exchange.device = None;
        it.exchange.local = None;
    },
    |it| {
        it.number = 12345;
        it.role = Role::Server;
        it.exchange.device = device("siw_with_a_name", ShownTransport::Iwarp);
        it.exchange.local = "[2001:db8::1]:20049".parse().ok();
        it.exchange.remote = "[2001:db8:1111:2222:3333:4444:5555:6666]:65535"
            .parse()
            .ok();
        it.exchange.sent = private_data(&MESSAGE);
        it.exchange.received = private_data(&[]);
    },
    |it| {
        it.number = 123_456;
        it.role = Role::Server;
        it.state = State::Closing;
        it.exchange.sent = private_data(b"\xf6\xab\x0e\x18\x01\x00\xff\xff");
        it.exchange.received = private_data(b"\xf6\xab\x0e\x18\x01\x01\xff\xff");
    },
    |it| {
        it.number = 1_234_567;
        it.origin = Origin::Nfs;
        it.in_use.inline_send = Some(4096);
        it.in_use.inline_receive = Some(2048);
        it.note = Some("older than the module, so that what was received is not known");
    },
    |it| {
        it.origin = Origin::Nfs;
        it.role = Role::Server;
        it.state = State::Disconnected;
        it.in_use.inline_send = Some(4096);
        it.note = Some("older than the module, so that what was received is not known");
    },
    |it| {
        it.origin = Origin::User;
        it.exchange.device = device("mlx5_0", ShownTransport::InfiniBand);
        it.exchange.sent = private_data(&MESSAGE);
        it.exchange.received = private_data(b"\xf6\xab\x0e\x18\x02\x01\x03\x03");
    },
    |it| {
        it.origin = Origin::User;
        it.role = Role::Server;
        it.state = State::Connecting;
        it.exchange.received = private_data(b"\xf6\xab\x0e\x18");
    },
];

/// The whole file of the connections of [`CHANGES`].
pub(crate) const CONNECTIONS: &str = include_str!("connections.txt");

/// Writes the file of [`CONNECTIONS`] in two passes, as the module does.
pub(crate) fn connections(out: &mut dyn Write) -> fmt::Result {
    let mut columns = ConnectionColumns::new();
    for change in CHANGES {
        let mut snapshot = snapshot();
        change(&mut snapshot);
        columns.include(&snapshot.exchange);
    }
    columns.header(out)?;
    for change in CHANGES {
        let mut snapshot = snapshot();
        change(&mut snapshot);
        columns.line(&snapshot, out)?;
    }
    Ok(())
}

/// The whole file of one connection of each origin, role and state. Everything else is unknown.
pub(crate) const STATES: &str = include_str!("states.txt");

/// Writes the file of [`STATES`].
pub(crate) fn states(out: &mut dyn Write) -> fmt::Result {
    let columns = ConnectionColumns::new();
    let mut snapshot = snapshot();
    snapshot.exchange.device = None;
    snapshot.exchange.local = None;
    snapshot.exchange.remote = None;

    columns.header(out)?;
    for origin in [Origin::Module, Origin::Nfs, Origin::User] {
        snapshot.origin = origin;
        for role in [Role::Client, Role::Server] {
            snapshot.role = role;
            for state in [
                State::Resolving,
                State::Connecting,
                State::Established,
                State::Reconnecting,
                State::Disconnected,
                State::Closing,
            ] {
                snapshot.state = state;
                columns.line(&snapshot, out)?;
            }
        }
    }
    Ok(())
}

/// The file without a listener.
pub(crate) const NO_LISTENERS: &str = "\
ID     LOCAL   SEND   RECV INV CONNECTIONS    MAX
";

/// The file of two listeners.
pub(crate) const LISTENERS: &str = "\
ID     LOCAL                 SEND   RECV INV CONNECTIONS    MAX
1      192.0.2.1:20049       4096   8192 yes           0     64
123456 [2001:db8::1]:20049   1024 262144 no        65536  65536
";

/// Writes the file of [`LISTENERS`], or that of no listener.
pub(crate) fn listeners(some: bool, out: &mut dyn Write) -> fmt::Result {
    let one = "192.0.2.1:20049".parse().map_err(|_| fmt::Error)?;
    let other = "[2001:db8::1]:20049".parse().map_err(|_| fmt::Error)?;
    let listeners = [
        ListenerSnapshot {
            number: 1,
            address: one,
            offer: Offer {
                send_size: Size::from_encoded(3),
                receive_size: Size::from_encoded(7),
                remote_invalidation: true,
            },
            connections: 0,
            max: 64,
        },
        ListenerSnapshot {
            number: 123_456,
            address: other,
            offer: Offer {
                send_size: Size::from_encoded(0),
                receive_size: Size::from_encoded(255),
                remote_invalidation: false,
            },
            connections: 65_536,
            max: 65_536,
        },
    ];
    let listeners = listeners
        .get(if some { 0 } else { 2 }..)
        .unwrap_or_default();

    let mut columns = ListenerColumns::new();
    for listener in listeners {
        columns.include(listener);
    }
    columns.header(out)?;
    listeners
        .iter()
        .try_for_each(|listener| columns.line(listener, out))
}
