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
/// is no route. The error: unknown.
pub(crate) fn interface_towards(address: IpAddr) -> io::Result<Option<String>> {
    let route = ip(&["route", "get", &address.to_string()])?;
    Ok(route.and_then(|route| Some(route.get("dev")?.as_str()?.to_owned())))
}

/// The MTU of an interface of this network namespace. `None` if it is in another one.
pub(crate) fn mtu(interface: &str) -> Option<u64> {
    ip(&["link", "show", "dev", interface])
        .ok()??
        .get("mtu")?
        .as_u64()
}

/// Whether one ping of `octets` with the header of IP, not fragmented, is answered within two
/// seconds. `None` if ping cannot be run.
pub(crate) fn ping(address: IpAddr, octets: u64) -> Option<bool> {
    // The headers of IP and of ICMP.
    let headers = match address {
        IpAddr::V4(_) => 20 + 8,
        IpAddr::V6(_) => 40 + 8,
    };
    let size = octets.saturating_sub(headers).to_string();
    let address = address.to_string();
    succeeds(&[
        "ping", "-c", "1", "-W", "2", "-M", "do", "-s", &size, &address,
    ])
}
