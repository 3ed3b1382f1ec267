// SPDX-License-Identifier: GPL-2.0

//! Runs programs of the system, and asks them for what /proc and /sys do not show.

use std::{
    env,
    ffi::OsString,
    io,
    net::IpAddr,
    process::{
        Command,
        Output, //
    }, //
};

use serde_json::Value;

use crate::files::Result;

/// Runs a program. The folders of root's programs are searched last, because the PATH of an ordinary
/// user lacks them.
fn run(words: &[&str]) -> io::Result<Output> {
    let (name, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut path = env::var_os("PATH").unwrap_or_default();
    path.push(OsString::from(":/usr/sbin:/sbin"));
    Command::new(name)
        .args(arguments)
        .env("PATH", path)
        .output()
}

/// What a program prints, on both of its outputs.
pub(crate) fn output(words: &[&str]) -> Result<String> {
    let output = run(words).map_err(|error| format!("{}: {error}", words.join(" ")))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr))
}

/// The program that asks servers without the module.
const SUITE: &str = "rpcrdma-conformance";

/// Whether that program is installed.
pub(crate) fn suite_exists() -> bool {
    succeeds(&[SUITE, "--version"]) == Some(true)
}

/// Has that program probe a server, and returns its report.
pub(crate) fn suite(words: &[String]) -> Result<String> {
    let words: Vec<&str> = std::iter::once(SUITE)
        .chain(words.iter().map(String::as_str))
        .collect();
    let output = run(&words).map_err(|error| format!("{SUITE}: {error}"))?;
    // It ends with 1 if the server was not reached, which the report says.
    match output.status.code() {
        Some(0 | 1) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        _ => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// Whether a program succeeds, or `None` if it cannot be run.
fn succeeds(words: &[&str]) -> Option<bool> {
    run(words).ok().map(|output| output.status.success())
}

/// Whether this kernel has that module, or `None` if it is unknown.
pub(crate) fn module_exists(name: &str) -> Option<bool> {
    succeeds(&["modprobe", "--dry-run", "--quiet", name])
}

/// The first object that a command of ip prints as JSON, or `None` if the command fails. The error:
/// ip cannot be run.
fn ip(words: &[&str]) -> io::Result<Option<Value>> {
    let output = run(&[&["ip", "-j"], words].concat())?;
    let found: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    Ok(found.and_then(|found| found.get(0).cloned()))
}

/// The interface by which packets to that address leave this network namespace, or `None` if there
/// is no route. `zone` is the interface of the address's zone. The error: unknown.
pub(crate) fn interface_towards(address: IpAddr, zone: Option<&str>) -> io::Result<Option<String>> {
    let address = address.to_string();
    let mut words = vec!["route", "get", &*address];
    words.extend(zone.into_iter().flat_map(|zone| ["oif", zone]));
    let route = ip(&words)?;
    Ok(route.and_then(|route| Some(route.get("dev")?.as_str()?.to_owned())))
}

/// The MTU of an interface of this network namespace. `None` if it is in another one.
pub(crate) fn mtu(interface: &str) -> Option<u64> {
    ip(&["link", "show", "dev", interface])
        .ok()??
        .get("mtu")?
        .as_u64()
}

/// How many of some pings were sent, and answered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Pings {
    pub(crate) sent: u64,
    pub(crate) answered: u64,
}

/// The octets of the headers of IP and of ICMP.
pub(crate) fn ping_headers(is_v6: bool) -> u64 {
    if is_v6 {
        40 + 8
    } else {
        20 + 8
    }
}

/// Sends pings of `octets` with the header of IP, not fragmented. Each may take two seconds. `zone` is
/// the interface of the address's zone. `None` if ping cannot be run.
pub(crate) fn ping(address: IpAddr, zone: Option<&str>, octets: u64) -> Option<Pings> {
    let headers = ping_headers(address.is_ipv6());
    let size = octets.saturating_sub(headers).to_string();
    let address = match zone {
        Some(zone) => format!("{address}%{zone}"),
        None => address.to_string(),
    };
    // Finds a loss of three percent in 95 of 100 cases. Older versions of ping let only root send so
    // fast.
    [("100", "0.01"), ("20", "0.2")]
        .iter()
        .find_map(|(count, interval)| {
            let output = run(&[
                "ping", "-q", "-c", count, "-i", interval, "-W", "2", "-M", "do", "-s", &size,
                &address,
            ]);
            pings(&String::from_utf8_lossy(&output.ok()?.stdout))
        })
}

/// The numbers of the line `200 packets transmitted, 199 received, ...`.
fn pings(text: &str) -> Option<Pings> {
    let line = text
        .lines()
        .find(|line| line.contains(" packets transmitted, "))?;
    let mut numbers = line.split(", ").map(|part| part.split(' ').next());
    Some(Pings {
        sent: numbers.next()??.parse().ok()?,
        answered: numbers.next()??.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_ping() {
        let of = |sent, answered| Some(Pings { sent, answered });
        for (text, expected) in [
            (
                "PING h (h) 8972(9000) bytes of data.\n\n--- h ping statistics ---\n200 packets \
                 transmitted, 193 received, 3.5% packet loss, time 2013ms\nrtt min/avg\n",
                of(200, 193),
            ),
            (
                "20 packets transmitted, 0 received, +20 errors, 100% packet loss, time 9ms\n",
                of(20, 0),
            ),
            ("ping: cannot flood\n", None),
            ("x packets transmitted, \n", None),
        ] {
            assert_eq!(pings(text), expected, "{text}");
        }
    }
}
