// SPDX-License-Identifier: GPL-2.0

//! The peer of a probe: parses ADDR[:PORT] of the command line, and prints it as the module
//! expects.

use std::net::{
    Ipv4Addr,
    Ipv6Addr,
    SocketAddr, //
};

/// The port of NFS over RDMA (RFC 8267, section 9).
pub(crate) const PORT: u16 = 20049;

/// ADDR:PORT of an address without brackets, as the kernel shows it.
pub(crate) fn with_port(address: &str, port: u64) -> String {
    if address.contains(':') {
        format!("[{address}]:{port}")
    } else {
        format!("{address}:{port}")
    }
}

/// The server of SERVER[:/PATH], as in /etc/fstab.
pub(crate) fn server_of(source: &str) -> &str {
    source.split_once(":/").map_or(source, |(server, _)| server)
}

/// A host and a port.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Target {
    host: Host,
    port: u16,
}

#[derive(Debug, Eq, PartialEq)]
enum Host {
    V4(Ipv4Addr),
    /// With a zone.
    V6(Ipv6Addr, Option<String>),
    Name(String),
}

impl Target {
    /// Parses ADDR[:PORT].
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Self::with_port(text, PORT)
    }

    /// Likewise, with another port where the text has none.
    pub(crate) fn with_port(text: &str, default: u16) -> Result<Self, String> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, after) = rest
                    .split_once(']')
                    .ok_or_else(|| format!("{text}: there is no ] after the address"))?;
                let host =
                    Host::v6(address).ok_or_else(|| format!("{text}: not an IPv6 address"))?;
                match after {
                    "" => (host, None),
                    after => {
                        let port = after.strip_prefix(':');
                        let port =
                            port.ok_or_else(|| format!("{text}: expected :PORT after the ]"))?;
                        (host, Some(port))
                    }
                }
            }
            None => match Host::v6(text) {
                Some(host) => (host, None),
                None => {
                    let (name, port) = match text.split_once(':') {
                        Some((name, port)) => (name, Some(port)),
                        None => (text, None),
                    };
                    let host = match name.parse() {
                        Ok(address) => Host::V4(address),
                        Err(_) if is_name(name) => Host::Name(name.to_owned()),
                        Err(_) => return Err(format!("{text}: neither an address nor a name")),
                    };
                    (host, port)
                }
            },
        };
        let port = match port.map(str::parse) {
            None => default,
            Some(Ok(port)) if port != 0 => port,
            Some(_) => return Err(format!("{text}: the port is not one of 1 to 65535")),
        };
        Ok(Self { host, port })
    }

    /// ADDR:PORT for the module. `resolve` looks a name up.
    pub(crate) fn resolved(
        &self,
        resolve: impl FnOnce(&str, u16) -> Result<SocketAddr, String>,
    ) -> Result<String, String> {
        Ok(match &self.host {
            Host::V4(address) => format!("{address}:{}", self.port),
            Host::V6(address, None) => format!("[{address}]:{}", self.port),
            Host::V6(address, Some(zone)) => format!("[{address}%{zone}]:{}", self.port),
            Host::Name(name) => {
                let mut address = resolve(name, self.port)?;
                address.set_port(self.port);
                // With the zone, if it has one.
                address.to_string()
            }
        })
    }
}

/// The address of ADDR:PORT. `index` returns the index of an interface, for a zone that is a name.
pub(crate) fn socket_address(
    target: &str,
    index: impl FnOnce(&str) -> Option<u32>,
) -> Option<SocketAddr> {
    if let Ok(address) = target.parse() {
        return Some(address);
    }
    let (before, rest) = target.split_once('%')?;
    let (zone, behind) = rest.split_once(']')?;
    let index = index(zone)?;
    format!("{before}%{index}]{behind}").parse().ok()
}

impl Host {
    fn v6(text: &str) -> Option<Self> {
        let (address, zone) = match text.split_once('%') {
            Some((_, zone)) if zone.is_empty() || zone.contains(char::is_whitespace) => {
                return None
            }
            Some((address, zone)) => (address, Some(zone.to_owned())),
            None => (text, None),
        };
        Some(Self::V6(address.parse().ok()?, zone))
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers() {
        for (source, expected) in [
            ("nas:/export", "nas"),
            ("nas", "nas"),
            ("10.0.0.2:/", "10.0.0.2"),
            ("[fd77::2]:/a:/b", "[fd77::2]"),
            ("fd77::2", "fd77::2"),
        ] {
            assert_eq!(server_of(source), expected);
        }
        let of = |text, port| Target::with_port(text, port).unwrap();
        assert_eq!(of("10.0.0.2", 9), of("10.0.0.2:9", 1));
    }

    #[test]
    fn targets() {
        let resolve = |name: &str, port| {
            assert_eq!(name, "nas.example");
            Ok(SocketAddr::from((Ipv6Addr::LOCALHOST, port)))
        };
        for (text, expected) in [
            ("192.0.2.7", "192.0.2.7:20049"),
            ("192.0.2.7:2049", "192.0.2.7:2049"),
            ("fe80::7%eth0", "[fe80::7%eth0]:20049"),
            ("::1", "[::1]:20049"),
            ("[fe80::7%eth0]", "[fe80::7%eth0]:20049"),
            ("[fe80::7]:1", "[fe80::7]:1"),
            ("nas.example", "[::1]:20049"),
            ("nas.example:9", "[::1]:9"),
        ] {
            let target = Target::parse(text).unwrap();
            assert_eq!(target.resolved(resolve).as_deref(), Ok(expected), "{text}");
        }
        let link_local = |_: &str, port| {
            let ip = "fe80::7".parse().unwrap();
            Ok(std::net::SocketAddrV6::new(ip, port, 0, 2).into())
        };
        let target = Target::parse("nas.example:9").unwrap();
        assert_eq!(target.resolved(link_local).as_deref(), Ok("[fe80::7%2]:9"));
        for (text, expected) in [
            ("10.0.0.2:9", Some("10.0.0.2:9")),
            ("[fe80::7%2]:9", Some("[fe80::7%2]:9")),
            ("[fe80::7%eth1]:9", Some("[fe80::7%3]:9")),
            ("[fe80::7%eth2]:9", None),
        ] {
            let found = socket_address(text, |name| (name == "eth1").then_some(3));
            assert_eq!(found.map(|found| found.to_string()).as_deref(), expected);
        }
        for text in [
            "",
            ":",
            ":1",
            "1.2.3.4:",
            "1.2.3.4:0",
            "1.2.3.4:65536",
            "1.2.3.4:1:1",
            "[::1",
            "[::1]1",
            "[::1]:",
            "[1.2.3.4]",
            "a b",
            "1.2.3.4 inv=1",
            "[::1%a b]:1",
            "::1%",
            "a\nb",
            "a/b",
        ] {
            assert!(Target::parse(text).is_err(), "{text}");
        }
    }
}
