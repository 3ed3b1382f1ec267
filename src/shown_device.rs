// SPDX-License-Identifier: GPL-2.0

//! The device of a connection, as its snapshot shows it.

use crate::{
    pure::text::{
        exchange::{
            Exchange,
            ShownDevice,
            ShownTransport, //
        },
        format::Text, //
    },
    rdma::verbs::device::{
        DeviceName,
        Transport, //
    }, //
};

/// Returns the device of that name, whose port speaks `transport`.
pub(crate) fn of(name: DeviceName, transport: Transport) -> ShownDevice {
    ShownDevice {
        name: Text::of(name),
        transport: match transport {
            Transport::InfiniBand => ShownTransport::InfiniBand,
            Transport::Roce => ShownTransport::Roce,
            Transport::Iwarp => ShownTransport::Iwarp,
        },
    }
}

/// Whether the device of an exchange is known, and one of iWARP.
pub(crate) fn is_iwarp(exchange: &Exchange) -> bool {
    let device = exchange.device;
    device.is_some_and(|device| device.transport == ShownTransport::Iwarp)
}
