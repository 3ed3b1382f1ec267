// SPDX-License-Identifier: GPL-2.0

//! The device of a connection, as its snapshot shows it.

use crate::{
    pure::text::{
        exchange::{
            Device,
            Transport, //
        },
        format::Text, //
    },
    rdma::verbs::device, //
};

/// Returns the device of that name, whose port speaks `transport`.
pub(crate) fn to_exchange(name: device::DeviceName, transport: device::Transport) -> Device {
    Device {
        name: Text::of(name),
        transport: match transport {
            device::Transport::InfiniBand => Transport::InfiniBand,
            device::Transport::Roce => Transport::Roce,
            device::Transport::Iwarp => Transport::Iwarp,
        },
    }
}
