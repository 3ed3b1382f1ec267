// SPDX-License-Identifier: GPL-2.0

//! Whole files of `connections` and `listeners`, octet for octet.

use std::net::SocketAddr;

use crate::{
    cases::{
        difference,
        snapshot,
        tables::{
            connections,
            listeners,
            states,
            CONNECTIONS,
            LISTENERS,
            NO_CONNECTIONS,
            NO_LISTENERS,
            STATES, //
        }, //
    },
    pure::text::tables::ConnectionColumns, //
};

#[test]
fn connections_files() {
    let no_connections = |out: &mut dyn std::fmt::Write| ConnectionColumns::new().header(out);
    assert_eq!(difference(&[NO_CONNECTIONS], no_connections), None);
    assert_eq!(difference(&[CONNECTIONS], connections), None);
}

#[test]
fn every_origin_role_and_state() {
    assert_eq!(difference(&[STATES], states), None);
}

#[test]
fn listeners_files() {
    assert_eq!(
        difference(&[NO_LISTENERS], |out| listeners(false, out)),
        None
    );
    assert_eq!(difference(&[LISTENERS], |out| listeners(true, out)), None);
}

/// Lines are put together without the `Display` of numbers and addresses.
#[test]
fn numbers_and_addresses_are_as_display_writes_them() {
    let octets = [0, 9, 10, 99, 100, 255];
    let ports = [0, 9, 10, 99, 100, 999, 1000, 9999, 10_000, u16::MAX];
    let mut addresses: Vec<SocketAddr> = vec!["[::]:0".parse().unwrap()];
    addresses.push("[fe80::1%4294967295]:65535".parse().unwrap());
    for (a, b, c, d) in octets
        .iter()
        .flat_map(|&a| octets.iter().map(move |&b| (a, b, 255 - a, 255 - b)))
    {
        addresses.extend(ports.map(|port| SocketAddr::from(([a, b, c, d], port))));
    }
    let numbers = (0..20).flat_map(|exponent| [10_u64.pow(exponent) - 1, 10_u64.pow(exponent)]);

    for (address, number) in addresses.into_iter().zip(numbers.chain([u64::MAX]).cycle()) {
        let mut snapshot = snapshot();
        snapshot.number = number;
        snapshot.generation = number as u32;
        snapshot.exchange.local = Some(address);
        snapshot.exchange.remote = Some(address);

        let mut columns = ConnectionColumns::new();
        columns.include(&snapshot.exchange);
        let mut line = String::new();
        columns.line(&snapshot, &mut line).unwrap();

        let address = address.to_string();
        let generation = number as u32;
        let (local, remote) = (
            address.len().max("LOCAL".len()),
            address.len().max("REMOTE".len()),
        );
        let found = (
            line.split_once(' ').unwrap().0,
            line.contains(&format!(
                " {address:<local$} {address:<remote$} {generation:>3} "
            )),
        );
        assert_eq!(found, (number.to_string().as_str(), true), "{line}");
    }
}
