// SPDX-License-Identifier: GPL-2.0

//! The text of `report`: sections, each with the content of a file or the output of a command, and
//! without addresses.

use std::{
    collections::BTreeMap,
    net::{
        Ipv4Addr,
        Ipv6Addr, //
    },
};

/// A name and a text.
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Renders the sections. Without `addresses`, each address of IP is replaced by a name, which is the
/// same in all sections.
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
struct Names(BTreeMap<String, usize>);

impl Names {
    fn name(&mut self, of: &str) -> String {
        let next = self.0.len().saturating_add(1);
        let number = *self.0.entry(of.to_owned()).or_insert(next);
        format!("<host-{number}>")
    }

    /// Replaces every address, and the host in every `HOST:/path`.
    fn replace(&mut self, text: &str) -> String {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '_');
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(is_part) {
            let (before, from) = rest.split_at(start);
            out.push_str(before);
            let end = from.find(|c| !is_part(c)).unwrap_or(from.len());
            let (word, after) = from.split_at(end);
            out.push_str(&self.word(word, after.starts_with('/')));
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
        if is_address(address) {
            return self.name(address) + behind;
        }
        match address.rsplit_once(':') {
            Some((host, port)) if is_address(host) && host.contains('.') => {
                format!("{}:{port}{behind}", self.name(host))
            }
            _ => word.to_owned(),
        }
    }
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
