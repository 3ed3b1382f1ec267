// SPDX-License-Identifier: GPL-2.0

//! The files `connection/ID/info` and `connections`.

use serde::Serialize;

use super::{
    key_value,
    keys::{
        connections_columns,
        info_keys, //
    },
    Field,
    Hex,
    Lines,
    Microseconds,
    Milliseconds,
    Number,
    Octets,
    Value,
    Word,
    YesNo, //
};

macro_rules! info {
    ($it:ident $($heading:literal if $pattern:pat = $subject:expr => {
        $($(#[doc = $doc:literal])* $key:ident: $kind:ident = $value:expr;)*
    })*) => {
        /// All that the module says of one connection, under its own keys
        /// (docs/ABI/testing/debugfs-rpcrdma_cm).
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub(crate) struct Info {
            $($(pub(crate) $key: $kind,)*)*
        }

        impl Info {
            /// Takes the value of one key. Ignores a key that is not known here.
            fn set(&mut self, key: &str, value: &str) {
                match key {
                    $($(stringify!($key) => self.$key.set(value),)*)*
                    _ => (),
                }
            }

            /// Returns each key with its values as texts, in the order of the file. A key without
            /// a value has none.
            pub(crate) fn values(&self) -> Vec<(&'static str, Vec<String>)> {
                vec![$($((stringify!($key), self.$key.iter().map(Value::text).collect()),)*)*]
            }
        }
    };
}

info_keys!(info);

impl Info {
    /// Whether this is the value of the key `origin`.
    pub(crate) fn is_of(&self, origin: &str) -> bool {
        self.origin.as_deref() == Some(origin)
    }

    /// Whether this end is the client.
    pub(crate) fn is_client(&self) -> bool {
        self.role.as_deref() == Some("client")
    }

    /// Whether the connection is established at present.
    pub(crate) fn is_established(&self) -> bool {
        self.state.as_deref() == Some("established")
    }
}

/// Parses `connection/ID/info`, or the keys of `info` in the file `probe`.
pub(crate) fn info(text: &str) -> Info {
    let mut info = Info::default();
    for (key, value) in text.lines().filter_map(key_value) {
        info.set(key, value);
    }
    info
}

/// Parses `connections`. The header line names the columns, so that the tool can skip new ones. A
/// line without a number is left out.
pub(crate) fn connections(text: &str) -> Vec<Info> {
    let mut lines = text.lines();
    let keys: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .map(key_of)
        .collect();
    lines
        .map(|line| {
            let mut info = Info::default();
            for (key, value) in keys.iter().zip(line.split_whitespace()) {
                info.set(key, value);
            }
            info
        })
        .filter(|info| info.id.is_some())
        .collect()
}

macro_rules! connections {
    ($($column:ident = $key:ident: $kind:ident,)*) => {
        /// The key of a column, or the column if it is not known here.
        fn key_of(column: &str) -> &str {
            match column {
                $(stringify!($column) => stringify!($key),)*
                column => column,
            }
        }

        /// A line of `connections` for JSON: the keys of `info` that the table has.
        #[derive(Debug, Serialize)]
        pub(crate) struct Row<'a> {
            $($key: &'a $kind,)*
        }

        /// Takes the values that the table has.
        pub(crate) fn row(info: &Info) -> Row<'_> {
            Row {
                $($key: &info.$key,)*
            }
        }
    };
}

connections_columns!(connections);

/// The report in the file `probe`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Report {
    /// `None` if there has been no probe yet.
    pub(crate) reachable: Option<bool>,
    /// Why the peer was not reached.
    pub(crate) reason: Option<String>,
    pub(crate) rpc_version_1: Option<String>,
    pub(crate) rpc_version_2: Option<String>,
    /// The RPC program of NULL, and its version.
    pub(crate) program: Option<u64>,
    pub(crate) program_version: Option<u64>,
    /// `LOW to HIGH`: the versions that the server named because it does not have the one that was
    /// asked for.
    pub(crate) program_versions: Option<String>,
    pub(crate) info: Info,
}

/// Parses the file `probe`.
pub(crate) fn report(text: &str) -> Report {
    let mut report = Report {
        info: info(text),
        ..Report::default()
    };
    for (key, value) in text.lines().filter_map(key_value) {
        match key {
            "reachable" => {
                let (word, reason) = key_value(value).unwrap_or((value, ""));
                report.reachable = Value::parse(word);
                report.reason = Value::parse(reason);
            }
            "rpc_version_1" => report.rpc_version_1 = Value::parse(value),
            "rpc_version_2" => report.rpc_version_2 = Value::parse(value),
            "program" => report.program = Value::parse(value),
            "program_version" => report.program_version = Value::parse(value),
            "program_versions" => report.program_versions = Value::parse(value),
            _ => (),
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
ID     ORIGIN ROLE   STATE        DEVICE TRANSPORT  LOCAL              REMOTE              GEN    C2S    S2C INV
1      nfs    client established  rxe_a1 roce       10.77.1.1:38012    10.77.1.2:20049       1   4096   4096 no
2      module server resolving    -      -          -                  -                     1      -      - -
";

    #[test]
    fn connections_by_the_names_of_columns() {
        let rows = connections(TABLE);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].remote.as_deref(), Some("10.77.1.2:20049"));
        assert_eq!(rows[0].client_to_server_threshold, Some(4096));
        assert_eq!(rows[0].remote_invalidation, Some(false));
        assert!(rows[0].is_established() && rows[0].is_client() && rows[0].is_of("nfs"));
        assert_eq!(rows[1].device, None);
        assert_eq!(rows[1].server_to_client_threshold, None);
    }

    #[test]
    fn connections_with_other_columns() {
        let rows = connections("NEW GEN ID\nx 7 3\n\nno number here\n");
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].id, rows[0].generation), (Some(3), Some(7)));
        assert_eq!(rows[0].state, None);
    }

    #[test]
    fn info_of_unknown_text() {
        assert_eq!(info(""), Info::default());
        assert_eq!(
            info("\u{0}\u{ffff}::\nfuture: 1\nid\nage_ms: -1\npid: 99999999999999999999999\n"),
            Info::default()
        );
        let info = info(
            "id: 4\npeer_private_data: rejected: unrecognized version 0\nnote: a\nnote: b: c\n",
        );
        assert_eq!(info.id, Some(4));
        assert_eq!(
            info.peer_private_data.as_deref(),
            Some("rejected: unrecognized version 0")
        );
        assert_eq!(info.note, ["a", "b: c"]);
    }

    #[test]
    fn words_for_no_value() {
        let info = info("remote_invalidation: unknown\nlast_failure: none\npeer_offset: none\n");
        assert_eq!(info, Info::default());
    }

    #[test]
    fn reports() {
        assert_eq!(report("").reachable, None);
        let no = report("reachable: no: peer rejected: nothing listens there\n");
        assert_eq!(no.reachable, Some(false));
        assert_eq!(
            no.reason.as_deref(),
            Some("peer rejected: nothing listens there")
        );
        let yes = report(
            "reachable: yes\nrpc_version_1: SUCCESS\nrpc_version_2: ERR_VERS\nprogram: 100003\n\
             program_version: 3\nprogram_versions: 3 to 3\nid: 9\n",
        );
        assert_eq!((yes.program, yes.program_version), (Some(100_003), Some(3)));
        assert_eq!(yes.program_versions.as_deref(), Some("3 to 3"));
        assert_eq!(yes.reachable, Some(true));
        assert_eq!(yes.rpc_version_1.as_deref(), Some("SUCCESS"));
        assert_eq!(yes.info.id, Some(9));
    }
}
