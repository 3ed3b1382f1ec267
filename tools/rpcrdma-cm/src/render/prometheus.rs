// SPDX-License-Identifier: GPL-2.0

//! Metrics, in the text form of Prometheus, which node_exporter's textfile collector reads.
//!
//! That is not the form of OpenMetrics, in which the type of a counter is that of a name without
//! `_total`: the collector would find neither the type nor the help of a counter.
//!
//! Each mount has a fixed number of series. So no label has a value that differs from connection to
//! connection, such as the number of the connection or the port of the client.

use std::{
    collections::BTreeMap,
    fmt::Write, //
};

use serde::Serialize;

use super::table;
use crate::{
    mount_report::MountReport,
    parse::{
        info::Info,
        stats::{
            Observing,
            REASONS, //
        },
        transports::Transport, //
    },
    verdict::{
        Code,
        Severity, //
    }, //
};

/// One family of metrics.
#[derive(Debug, Serialize)]
pub(crate) struct Family {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    help: String,
    samples: Vec<Sample>,
}

#[derive(Debug, Serialize)]
struct Sample {
    labels: BTreeMap<&'static str, String>,
    value: u64,
}

/// What the files of the module say.
pub(crate) struct Module<'a> {
    pub(crate) connections: &'a [Info],
    /// The counters of `stats`.
    pub(crate) stats: &'a [(String, u64)],
    /// `None` if the module is older than this line of `stats`.
    pub(crate) observing: Option<&'a Observing>,
}

/// Returns a value of a mount, if it is known.
type MountValue<'a> = &'a dyn Fn(&MountReport) -> Option<u64>;

/// The sources of the metrics.
pub(crate) struct Content<'a> {
    /// `None` if the files of the module could not be read.
    pub(crate) module: Option<Module<'a>>,
    pub(crate) mounts: &'a [MountReport],
}

/// All metrics.
pub(crate) fn families(content: &Content<'_>) -> Vec<Family> {
    let mut families = vec![Family {
        name: "rpcrdma_cm_up".to_owned(),
        kind: "gauge",
        help: "Whether the files of the module rpcrdma_cm could be read.".to_owned(),
        samples: vec![Sample {
            labels: BTreeMap::new(),
            value: u64::from(content.module.is_some()),
        }],
    }];
    if let Some(module) = &content.module {
        families.extend(module.observing.into_iter().flat_map(of_observing));
        families.push(connections_by_state(module.connections));
        for (key, value) in module.stats {
            families.push(Family {
                name: format!("rpcrdma_cm_stats_{key}"),
                kind: "counter",
                help: format!("The counter {key} of the file stats."),
                samples: vec![Sample {
                    labels: BTreeMap::new(),
                    value: *value,
                }],
            });
        }
    }
    families.extend(of_mounts(content.mounts));
    families
}

/// Whether others are observed, and each reason why not or not all of them. The reasons that do not
/// hold have a series, too, so that an alert on one of them ends.
fn of_observing(observing: &Observing) -> [Family; 2] {
    let words = observing.reasons.iter().map(|reason| &*reason.reason);
    // A newer module may have other reasons.
    let mut limits: BTreeMap<&str, u64> = REASONS.iter().map(|word| (*word, 0)).collect();
    limits.extend(words.map(|word| (word, 1)));
    [
        Family {
            name: "rpcrdma_cm_observing".to_owned(),
            kind: "gauge",
            help: "Whether connections of others are shown: 0 if only the module's own are.".to_owned(),
            samples: vec![Sample {
                labels: BTreeMap::new(),
                value: u64::from(observing.is_on()),
            }],
        },
        Family {
            name: "rpcrdma_cm_observing_limited".to_owned(),
            kind: "gauge",
            help: "1 for each observing_reason of the file stats: why connections of others are not shown, or not all of them. Otherwise 0."
                .to_owned(),
            samples: limits
                .into_iter()
                .map(|(word, value)| Sample {
                    labels: BTreeMap::from([("reason", word.to_owned())]),
                    value,
                })
                .collect(),
        },
    ]
}

fn connections_by_state(connections: &[Info]) -> Family {
    // The module has a few words for each of these.
    let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut counts: BTreeMap<[String; 3], u64> = BTreeMap::new();
    for info in connections {
        let count = counts
            .entry([word(&info.origin), word(&info.role), word(&info.state)])
            .or_default();
        *count = count.saturating_add(1);
    }
    Family {
        name: "rpcrdma_cm_connections".to_owned(),
        kind: "gauge",
        help: "Connections of RPC-over-RDMA at present.".to_owned(),
        samples: counts
            .into_iter()
            .map(|([origin, role, state], value)| Sample {
                labels: BTreeMap::from([("origin", origin), ("role", role), ("state", state)]),
                value,
            })
            .collect(),
    }
}

fn of_mounts(mounts: &[MountReport]) -> Vec<Family> {
    // Of mounts over each other, the uppermost one counts.
    let mounts: BTreeMap<(String, String), &MountReport> = mounts
        .iter()
        .map(|report| {
            let server = report
                .mount
                .remote()
                .or_else(|| report.mount.address.clone())
                .unwrap_or_else(|| "unknown".to_owned());
            ((report.mount.mount_point.clone(), server), report)
        })
        .collect();
    let labels = |(mount, server): &(String, String), more: &[(&'static str, &str)]| {
        let mut labels = BTreeMap::from([("mount", mount.clone()), ("server", server.clone())]);
        labels.extend(more.iter().map(|(key, value)| (*key, (*value).to_owned())));
        labels
    };
    let mut families = Vec::new();
    let mut family = |name: &str, kind, help: &str, samples: Vec<Sample>| {
        families.push(Family {
            name: format!("rpcrdma_cm_mount_{name}"),
            kind,
            help: help.to_owned(),
            samples,
        });
    };
    let of_each = |label: &'static str, values: &[(&str, MountValue<'_>)]| -> Vec<Sample> {
        let mut samples = Vec::new();
        for (key, report) in &mounts {
            for (word, value) in values {
                let more = [(label, *word)];
                let more = if word.is_empty() { &[][..] } else { &more[..] };
                samples.extend(value(report).map(|value| Sample {
                    labels: labels(key, more),
                    value,
                }));
            }
        }
        samples
    };
    family(
        "connections",
        "gauge",
        "Connections of the NFS client to the server of the mount that are established.",
        of_each(
            "",
            &[("", &|report| {
                let up = report.connections.as_ref()?.iter();
                u64::try_from(up.filter(|info| info.is_established()).count()).ok()
            })],
        ),
    );
    let least = |report: &MountReport, value: fn(&Info) -> Option<u64>| {
        table::least(report.connections.as_ref()?, value)
    };
    family(
        "inline_threshold_octets",
        "gauge",
        "The least inline threshold of these connections (RFC 8797, section 4.2).",
        of_each(
            "direction",
            &[
                ("client_to_server", &|report| {
                    least(report, |info| info.client_to_server_threshold)
                }),
                ("server_to_client", &|report| {
                    least(report, |info| info.server_to_client_threshold)
                }),
            ],
        ),
    );
    family(
        "calls",
        "counter",
        "Messages that the transports of the mount sent.",
        of_each("", &[("", &|report| report.stats.as_ref()?.counters.sends)]),
    );
    family(
        "chunk_segments",
        "counter",
        "Segments of chunks that calls offered.",
        of_each(
            "list",
            &[
                ("read", &|report| {
                    report.stats.as_ref()?.counters.read_chunks
                }),
                ("write", &|report| {
                    report.stats.as_ref()?.counters.write_chunks
                }),
                ("reply", &|report| {
                    report.stats.as_ref()?.counters.reply_chunks
                }),
            ],
        ),
    );
    family(
        "local_invalidations",
        "counter",
        "Segments that the client had to invalidate itself.",
        of_each(
            "",
            &[("", &|report| {
                report.stats.as_ref()?.counters.local_invalidations
            })],
        ),
    );
    family(
        "reconnects",
        "counter",
        "Connections that replaced an earlier one.",
        of_each("", &[("", &|report| report.reconnects)]),
    );
    family(
        "credits",
        "gauge",
        "Credits that the server granted, 1 until its first reply on a connection: the fewest of the \
         transports that are connected.",
        of_each(
            "",
            &[("", &|report| {
                let connected = report.transports.iter().filter(|one| one.connected);
                connected.filter_map(|one| one.credits).min()
            })],
        ),
    );
    let waiting = |report: &MountReport, value: fn(&Transport) -> Option<u64>| {
        let values = report.transports.iter().filter_map(value);
        values.reduce(u64::saturating_add)
    };
    family(
        "waiting_calls",
        "gauge",
        "Calls that wait at this moment. credit: for a credit, or until a call before them is sent; \
         slot: for a slot.",
        of_each(
            "of",
            &[
                ("credit", &|report| {
                    waiting(report, |one| one.waiting_to_send)
                }),
                ("slot", &|report| waiting(report, |one| one.backlog)),
            ],
        ),
    );
    family(
        "severity",
        "gauge",
        "The worst verdict on the mount: 0 fine, 1 unknown, 2 degraded, 3 failed.",
        of_each(
            "",
            &[("", &|report| {
                let worst = report.verdicts.iter().map(|verdict| verdict.severity);
                Some(match worst.max() {
                    Some(Severity::Failed) => 3,
                    Some(Severity::Degraded) => 2,
                    Some(Severity::Unknown) => 1,
                    _ => 0,
                })
            })],
        ),
    );
    family(
        "verdict",
        "gauge",
        "1 for each verdict of `rpcrdma-cm mounts` on the mount, otherwise 0.",
        mounts
            .iter()
            .flat_map(|(key, report)| {
                Code::ALL.iter().map(|code| Sample {
                    labels: labels(key, &[("verdict", code.name())]),
                    value: u64::from(report.verdicts.iter().any(|verdict| verdict.code == *code)),
                })
            })
            .collect(),
    );
    families
}

/// Renders metrics as text.
pub(crate) fn text(families: &[Family]) -> String {
    let mut out = String::new();
    for family in families {
        let Family {
            name, kind, help, ..
        } = family;
        let suffix = if *kind == "counter" { "_total" } else { "" };
        let name = format!("{name}{suffix}");
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for sample in &family.samples {
            let labels: Vec<String> = sample
                .labels
                .iter()
                .map(|(key, value)| format!("{key}=\"{}\"", escape(value)))
                .collect();
            let labels = if labels.is_empty() {
                String::new()
            } else {
                format!("{{{}}}", labels.join(","))
            };
            let _ = writeln!(out, "{name}{labels} {}", sample.value);
        }
    }
    out
}

/// Escapes the value of a label.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        mount_report, //
        parse::{
            info::connections,
            stats::observing, //
        },
    };

    #[test]
    fn without_the_module() {
        let families = families(&Content {
            module: None,
            mounts: &[],
        });
        let text = text(&families);
        assert!(text.contains("\nrpcrdma_cm_up 0\n"), "{text}");
        assert!(!text.contains("rpcrdma_cm_connections"), "{text}");
    }

    #[test]
    fn hostile_labels_and_mounts_over_each_other() {
        let line =
            "1 2 0:3 / /a\\012\"\\134 rw - nfs4 s:/ rw,proto=rdma,port=20049,addr=10.0.0.2\n";
        let namespace = mount_report::Namespace {
            mountinfo: format!("{line}{line}"),
            ..mount_report::Namespace::default()
        };
        let mounts = mount_report::mounts(&namespace, None, &[]);
        let families = families(&Content {
            module: Some(Module {
                connections: &connections("ID STATE\n1 established\n2 established\n"),
                stats: &[("lost".to_owned(), 7)],
                observing: None,
            }),
            mounts: &mounts,
        });
        let text = text(&families);
        let expected = "rpcrdma_cm_mount_verdict{mount=\"/a\\n\\\"\\\\\",server=\"10.0.0.2:20049\",verdict=\"unknown\"} 1\n";
        assert_eq!(text.matches(expected).count(), 1, "{text}");
        assert!(text.contains("\nrpcrdma_cm_stats_lost_total 7\n"), "{text}");
        let expected =
            "rpcrdma_cm_connections{origin=\"unknown\",role=\"unknown\",state=\"established\"} 2\n";
        assert!(text.contains(expected), "{text}");
    }

    /// Each reason of this version has a series, and so has one of a newer module.
    #[test]
    fn reasons_of_observing() {
        let text = |stats: &str| {
            text(&families(&Content {
                module: Some(Module {
                    connections: &[],
                    stats: &[],
                    observing: observing(stats).as_ref(),
                }),
                mounts: &[],
            }))
        };
        let count = |text: &str, value: u64| {
            let of_reason = |line: &&str| line.starts_with("rpcrdma_cm_observing_limited{");
            let end = format!("}} {value}");
            let lines = text.lines().filter(of_reason);
            lines.filter(|line| line.ends_with(&end)).count()
        };
        let all = REASONS.len();
        let off = text("observing: no\nobserving_reason: fprobe: the kernel lacks it\n");
        assert!(off.contains("\nrpcrdma_cm_observing 0\n"), "{off}");
        let expected = "\nrpcrdma_cm_observing_limited{reason=\"fprobe\"} 1\n";
        assert!(off.contains(expected), "{off}");
        assert_eq!((count(&off, 1), count(&off, 0)), (1, all - 1), "{off}");
        let partial = text(
            "observing: partial\nobserving_reason: btf: x\nobserving_reason: new: y\n\
             observing_reason: new: z\n",
        );
        assert!(partial.contains("\nrpcrdma_cm_observing 1\n"), "{partial}");
        for word in ["btf", "new"] {
            let expected = format!("\nrpcrdma_cm_observing_limited{{reason=\"{word}\"}} 1\n");
            assert!(partial.contains(&expected), "{partial}");
        }
        assert_eq!((count(&partial, 1), count(&partial, 0)), (2, all - 1));
        let whole = text("observing: yes\n");
        assert!(whole.contains("\nrpcrdma_cm_observing 1\n"), "{whole}");
        assert_eq!((count(&whole, 1), count(&whole, 0)), (0, all), "{whole}");
        // A module that does not say it.
        assert!(!text("lost: 0\n").contains("observing"));
    }
}
