// SPDX-License-Identifier: GPL-2.0

//! Turns the addresses of a command into targets, within the writer's network namespace.

use core::net::{
    SocketAddr,
    SocketAddrV4,
    SocketAddrV6, //
};

use kernel::prelude::*;

use crate::{
    base::net::Net,
    connection::{
        connector::Target,
        Configuration, //
    },
    failure::Failure,
    pure::{
        text::grammar::{
            self,
            Address,
            Zone, //
        },
        wire::negotiation::Role, //
    },
    rpc::endpoint::EndpointConfiguration, //
};

/// Looks up the zone of an address: the index of an interface of `net`.
pub(super) fn socket_addr(net: &Net, address: Address, port: u16) -> Result<SocketAddr, Failure> {
    let unknown = Failure::new(ENODEV, "no such interface");

    match address {
        Address::V4(ip) => Ok(SocketAddrV4::new(ip, port).into()),
        Address::V6 { address: ip, zone } => {
            let zone = match zone {
                None => 0,
                Some(Zone::Index(index)) => index,
                Some(Zone::Name(name)) => CStr::from_bytes_until_nul(&name)
                    .ok()
                    .and_then(|name| net.interface_index(name))
                    .ok_or(unknown)?,
            };
            Ok(SocketAddrV6::new(ip, port, 0, zone).into())
        }
    }
}

/// Returns the target and the configuration of a connection from within the writer's network
/// namespace.
pub(super) fn target(wanted: &grammar::Connect) -> Result<(Target, Configuration), Failure> {
    let net = Net::current().map_err(|error| Failure::new(error, "no network namespace"))?;
    let to = socket_addr(&net, wanted.to.address, wanted.to.port)?;
    let from = wanted
        .from
        .map(|from| socket_addr(&net, from, 0))
        .transpose()?;

    let target = Target {
        net,
        to,
        from,
        reconnect: wanted.reconnect,
    };
    let configuration = Configuration {
        offer: wanted.offer,
        endpoint: EndpointConfiguration {
            role: Role::Client,
            rpc: wanted.rpc,
            answers: wanted.rpc.reverse > 0,
            timeout_ms: wanted.timeout_ms,
            null: wanted.null,
        },
    };
    Ok((target, configuration))
}
