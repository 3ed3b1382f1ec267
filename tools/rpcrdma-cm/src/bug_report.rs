// SPDX-License-Identifier: GPL-2.0

//! The text of `report`: sections, each with the content of a file or the output of a command, and
//! without addresses.

use std::{
    collections::BTreeMap,
    net::{
        IpAddr,
        Ipv4Addr,
        Ipv6Addr, //
    },
};

/// A name and a text.
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Renders the sections. Without `addresses`, each address of IP and each link address is replaced by
/// a name, which is the same in all sections.
pub(crate) fn text(sections: &[Section], addresses: bool) -> String {
    let mut names = Names::default();
    let mut out = String::new();
    for Section { name, text } in sections {
        out.push_str("== ");
        out.push_str(name);
        out.push('\n');
        let shown = if addresses {
            text.clone()
        } else {
            names.replace(text)
        };
        for line in shown.lines() {
            out.push_str(&super::render::escape(line));
            out.push('\n');
        }
        out.push('\n');
    }
    out
}

/// The names of the addresses and of the servers so far.
#[derive(Default)]
struct Names {
    hosts: BTreeMap<String, usize>,
    /// By their hexadecimal digits.
    links: BTreeMap<String, usize>,
}

/// The number of a name: the one that it has, or the next one.
fn number(names: &mut BTreeMap<String, usize>, of: String) -> usize {
    let next = names.len().saturating_add(1);
    *names.entry(of).or_insert(next)
}

impl Names {
    fn name(&mut self, of: &str) -> String {
        format!("<host-{}>", number(&mut self.hosts, of.to_owned()))
    }

    /// Of a link address, with colons or without.
    fn link(&mut self, of: &str) -> String {
        let digits = of.replace(':', "").to_lowercase();
        format!("<link-{}>", number(&mut self.links, digits))
    }

    /// Replaces every address, and the host in every `HOST:/path`.
    fn replace(&mut self, text: &str) -> String {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '_');
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        let mut last = "";
        while let Some(start) = rest.find(is_part) {
            let (before, from) = rest.split_at(start);
            out.push_str(before);
            let end = from.find(|c| !is_part(c)).unwrap_or(from.len());
            let (word, after) = from.split_at(end);
            // `ip -d link show` prints identifiers of an adapter, which mostly contain its link
            // address.
            if matches!(last, "portid" | "switchid" | "sci") {
                out.push_str(&self.link(word));
            } else if let Some((host, port)) = of_rdma(last, word) {
                // `rdma` prints no brackets. With a port of up to four digits, the whole could be
                // an address.
                let host = if is_address(host) {
                    self.name(host)
                } else {
                    host.to_owned()
                };
                out.push_str(&format!("{host}:{port}"));
            } else {
                out.push_str(&self.word(word, after.starts_with('/')));
            }
            last = word;
            rest = after;
        }
        out.push_str(rest);
        out
    }

    fn word(&mut self, word: &str, is_before_path: bool) -> String {
        if let Some(host) = word
            .strip_suffix(':')
            .filter(|host| is_before_path && !host.is_empty())
        {
            return format!("{}:", self.name(host));
        }
        // Punctuation of a sentence may follow an address.
        let address = word.trim_end_matches(['.', ':']);
        let behind = word.get(address.len()..).unwrap_or_default();
        // Before the addresses of IP, because a GUID looks like one. A bridge has
        // `8000.52:54:00:12:34:56`.
        let link = address.rsplit_once('.').map_or(address, |(_, link)| link);
        if is_link_address(link) {
            let before = address.strip_suffix(link).unwrap_or_default();
            return format!("{before}{}{behind}", self.link(link));
        }
        if is_address(address) {
            return self.name(address) + behind;
        }
        if let Some((host, port)) = address.rsplit_once(':') {
            // IPv4, or IPv6 without brackets.
            if is_address(host) && port.parse::<u16>().is_ok() {
                return format!("{}:{port}{behind}", self.name(host));
            }
        }
        match of_name(word) {
            Some((before, link, behind)) => format!("{before}{}{behind}", self.link(link)),
            None => word.to_owned(),
        }
    }
}

/// Whether this is an address of Ethernet, a GUID, or an address of IPoIB. Zeros, which `lo` has, and
/// the broadcast address are none.
fn is_link_address(word: &str) -> bool {
    let is_pair = |pair: &str| pair.len() == 2 && pair.chars().all(|c| c.is_ascii_hexdigit());
    let all = |value: &str| word.split(':').all(|pair| pair == value);
    matches!(word.split(':').count(), 6 | 8 | 20)
        && word.split(':').all(is_pair)
        && !all("00")
        && !all("ff")
}

/// The address and the port that `rdma resource` prints behind the word `last`.
fn of_rdma<'a>(last: &str, word: &'a str) -> Option<(&'a str, &'a str)> {
    let (host, port) = word.rsplit_once(':')?;
    let is_expected = matches!(last, "src-addr" | "dst-addr")
        && host.parse::<IpAddr>().is_ok()
        && port.parse::<u16>().is_ok();
    is_expected.then_some((host, port))
}

/// The parts of an interface's name that contains its link address, as udev makes it:
/// `enx525400123456`, `rocex5254000000123456`. A number may follow, after a dot.
fn of_name(word: &str) -> Option<(&str, &str, &str)> {
    let end = word.find(['.', ':']).unwrap_or(word.len());
    let (name, behind) = word.split_at_checked(end)?;
    let (before, link) = name.split_at_checked(name.find('x')?.saturating_add(1))?;
    let is_name = before.len() > 1 && before.chars().all(|c| c.is_ascii_lowercase());
    let is_link = matches!(link.len(), 12 | 16) && link.chars().all(|c| c.is_ascii_hexdigit());
    (is_name && is_link).then_some((before, link, behind))
}

/// Whether this is an address of a host. `::` and the like are none: a listener has them.
fn is_address(word: &str) -> bool {
    let is_v4 = word
        .parse::<Ipv4Addr>()
        .is_ok_and(|address| !address.is_unspecified() && !address.is_loopback());
    let is_v6 = word
        .parse::<Ipv6Addr>()
        .is_ok_and(|address| !address.is_unspecified() && !address.is_loopback());
    is_v4 || is_v6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_names() {
        let sections = |texts: &[&str]| -> Vec<Section> {
            texts
                .iter()
                .map(|text| Section {
                    name: "n".to_owned(),
                    text: (*text).to_owned(),
                })
                .collect()
        };
        for (given, expected) in [
            ("local: 10.77.1.1:40001\n", "local: <host-1>:40001"),
            ("remote: [fd77:1::2]:20049", "remote: [<host-1>]:20049"),
            ("fe80::1%eth0 on 10.0.0.2.", "<host-1>%eth0 on <host-2>."),
            (
                "device nas.example:/export mounted",
                "device <host-1>:/export mounted",
            ),
            ("device [fd77::2]:/export", "device [<host-1>]:/export"),
            (
                "proto=rdma,addr=10.0.0.2,clientaddr=10.0.0.1",
                "proto=rdma,addr=<host-1>,clientaddr=<host-2>",
            ),
            (
                "61.204518 2026-11-22T01:02:03.456Z",
                "61.204518 2026-11-22T01:02:03.456Z",
            ),
            (
                "listens at 0.0.0.0:20049 and [::]:20050",
                "listens at 0.0.0.0:20049 and [::]:20050",
            ),
            (
                "Linux 7.3.4+deb13-amd64, version 1.0.0",
                "Linux 7.3.4+deb13-amd64, version 1.0.0",
            ),
            ("7.3.4.1", "<host-1>"),
            // As `rdma resource show cm_id` prints them.
            (
                "src-addr fd77:1::1:42001 dst-addr fd77:1::2:20049 ",
                "src-addr <host-1>:42001 dst-addr <host-2>:20049 ",
            ),
            (
                "src-addr 10.77.1.1:42001 dst-addr ::ffff:10.77.1.2:2049 ",
                "src-addr <host-1>:42001 dst-addr <host-2>:2049 ",
            ),
            (
                "dst-addr :::0 src-addr ::1:20049",
                "dst-addr :::0 src-addr ::1:20049",
            ),
            (
                "src-addr fd77:1::2:2049 dst-addr fd77:1::2:111 from fd77:1::2 src-addr ::1:2049",
                "src-addr <host-1>:2049 dst-addr <host-1>:111 from <host-1> src-addr ::1:2049",
            ),
            ("0000:03:00.0 a::b:x 1:2", "0000:03:00.0 a::b:x 1:2"),
            // As `ip -s -d link show` prints them.
            (
                "link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00",
                "link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00",
            ),
            (
                "2: eth1: <UP>\n link/ether 52:54:00:12:34:56 brd ff:ff:ff:ff:ff:ff permaddr \
                 52:54:00:12:34:57\n altname enx525400123456",
                "2: eth1: <UP>\n link/ether <link-1> brd ff:ff:ff:ff:ff:ff permaddr <link-2>\n \
                 altname enx<link-1>",
            ),
            (
                "link/infiniband 80:00:02:08:fe:80:00:00:00:00:00:00:52:54:00:03:00:12:34:56 brd",
                "link/infiniband <link-1> brd",
            ),
            (
                "NODE_GUID 52:54:00:03:00:12:34:56, PORT_GUID 00:00:00:00:00:00:00:00",
                "NODE_GUID <link-1>, PORT_GUID 00:00:00:00:00:00:00:00",
            ),
            (
                "portid 525400123456 switchid 5254000300123456 rx 123456789012",
                "portid <link-1> switchid <link-2> rx 123456789012",
            ),
            (
                "macsec sci 5254001234560001 protect on",
                "macsec sci <link-1> protect on",
            ),
            (
                "3: enx525400123456.7@enx525400123456: bridge_id 8000.52:54:00:12:34:56 x",
                "3: enx<link-1>.7@enx<link-1>: bridge_id 8000.<link-1> x",
            ),
            (
                "link rocex5254000300123456/1 device: ibx5254000300123456",
                "link rocex<link-1>/1 device: ibx<link-1>",
            ),
            (
                "Live 0xffffffffc0123456 0x525400123456 maxmtu 65535 xenx52540012345",
                "Live 0xffffffffc0123456 0x525400123456 maxmtu 65535 xenx52540012345",
            ),
            ("a\u{1b}b", "a\\u{1b}b"),
        ] {
            assert_eq!(
                text(&sections(&[given]), false),
                format!("== n\n{expected}\n\n")
            );
        }
        // One name for one address, in all sections.
        assert_eq!(
            text(&sections(&["10.0.0.2", "10.0.0.1 10.0.0.2"]), false),
            "== n\n<host-1>\n\n== n\n<host-2> <host-1>\n\n"
        );
        assert_eq!(text(&sections(&["10.0.0.2"]), true), "== n\n10.0.0.2\n\n");
    }
}
