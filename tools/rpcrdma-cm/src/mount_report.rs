// SPDX-License-Identifier: GPL-2.0

//! Joins the data of NFS and of the module about a mount.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    parse::{
        history::Event,
        info::Info,
        mounts::{
            mark_by_fstab,
            mountinfo,
            with_stats,
            Entry,
            Mount,
            Stats, //
        },
        stats::Observing,
        transports::Transport, //
    },
    verdict::{
        self,
        Facts,
        Verdict,
        HOUR,
        IDLE_SECONDS, //
    }, //
};

/// The texts of one mount namespace.
#[derive(Default)]
pub(crate) struct Namespace {
    /// The number of the namespace and a process in it, or `None` for the namespace of this
    /// process.
    pub(crate) of: Option<(u64, u64)>,
    pub(crate) mountinfo: String,
    pub(crate) mountstats: String,
    /// The lines of `/etc/fstab`, only for this process's namespace: another one may have other mount
    /// points.
    pub(crate) fstab: Vec<Entry>,
}

/// A mount, its connections, and the verdicts.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MountReport {
    #[serde(flatten)]
    pub(crate) mount: Mount,
    /// The number of the mount namespace if it is not the namespace of this process.
    pub(crate) namespace: Option<u64>,
    /// A process in that namespace.
    pub(crate) pid: Option<u64>,
    pub(crate) stats: Option<Stats>,
    pub(crate) reconnects: Option<u64>,
    /// `None` if the files of the module could not be read.
    pub(crate) connections: Option<Vec<Info>>,
    /// The RDMA transports to the server, of this network namespace.
    pub(crate) transports: Vec<Transport>,
    pub(crate) verdicts: Vec<Verdict>,
}

/// The data of the module.
pub(crate) struct Module<'a> {
    /// All connections, each by its `info`.
    pub(crate) connections: &'a [Info],
    pub(crate) history: Option<&'a [Event]>,
    /// `None` if the module does not say.
    pub(crate) observing: Option<Observing>,
    /// Now, in seconds since 1970.
    pub(crate) now: u64,
}

/// The addresses of the connections of a mount.
struct Addresses {
    /// With the port.
    server: String,
    /// Without a port. `None` if it is not known.
    client: Option<String>,
}

impl Addresses {
    fn are_of(&self, local: Option<&str>, remote: Option<&str>) -> bool {
        let local = local
            .and_then(|local| local.rsplit_once(':'))
            .map(|(address, _)| address.trim_start_matches('[').trim_end_matches(']'));
        remote == Some(&*self.server) && (self.client.is_none() || self.client.as_deref() == local)
    }
}

impl Module<'_> {
    /// The connections of the kernel's NFS client.
    fn of_nfs_client(&self) -> impl Iterator<Item = &Info> {
        self.connections
            .iter()
            .filter(|info| info.is_of("nfs") && info.is_client())
    }

    /// The events of the kernel's NFS client.
    fn events_of_nfs_client(&self) -> impl Iterator<Item = &Event> {
        self.history
            .unwrap_or_default()
            .iter()
            .filter(|event| event.is_of_nfs_client())
    }

    /// The addresses by which the connections of a mount are found, or `None` if the mount does not
    /// show its server's address.
    ///
    /// The module does not show the network namespace of a connection, and another namespace may
    /// have another server of the same address. The clients of that server mostly have other
    /// addresses, so the client's address of the mount counts if a connection or an event has it.
    /// Otherwise any client's address fits, because `clientaddr=` can be any address.
    ///
    /// The client may have another address since, by which it has connected again. So an event
    /// counts only if the server has no connection.
    fn addresses_of(&self, mount: &Mount) -> Option<Addresses> {
        let with_client = Addresses {
            server: mount.remote()?,
            client: mount.client_address.clone(),
        };
        let fits = |local: &Option<String>, remote: &Option<String>| {
            with_client.are_of(local.as_deref(), remote.as_deref())
        };
        let mut connections = self
            .of_nfs_client()
            .filter(|info| info.remote.as_ref() == Some(&with_client.server))
            .peekable();
        let known = match connections.peek() {
            Some(_) => connections.any(|info| fits(&info.local, &info.remote)),
            None => self
                .events_of_nfs_client()
                .any(|event| fits(&event.local, &event.remote)),
        };
        Some(Addresses {
            client: with_client.client.filter(|_| known),
            ..with_client
        })
    }

    /// The connections of the kernel's NFS client with these addresses. Several mounts of one
    /// server have the same ones.
    fn connections_of(&self, addresses: &Addresses) -> Vec<Info> {
        self.of_nfs_client()
            .filter(|info| addresses.are_of(info.local.as_deref(), info.remote.as_deref()))
            .cloned()
            .collect()
    }

    /// Why the last connection to the server was lost, or the last attempt to make one failed. An
    /// attempt that fails early has no local address.
    fn last_failure(&self, addresses: &Addresses) -> Option<&str> {
        let mut events = self.history?.iter().rev();
        let last = events.find(|event| {
            event.is_of_nfs_client() && event.remote.as_ref() == Some(&addresses.server)
        })?;
        last.reason
            .as_deref()
            .filter(|_| last.is_failed_attempt() || last.is_loss())
    }

    /// How many of these connections were lost in the last hour, or `None` if `history` has none of
    /// them: they are older than the module, their events were overwritten, or no history is kept.
    ///
    /// A connection that this end closed counts as well if it was made again, and had lasted less
    /// than the time after which the client ends an idle connection: the client then gave it up
    /// because of an error, or because of a call without a reply. Where the module does not know
    /// which connections were made again, a number below 2 says nothing, and is `None` as well.
    fn lost_in_an_hour(&self, addresses: &Addresses) -> Option<u64> {
        let events: Vec<&Event> = self
            .events_of_nfs_client()
            .filter(|event| addresses.are_of(event.local.as_deref(), event.remote.as_deref()))
            .collect();
        if events.is_empty() {
            return None;
        }
        let recent = |event: &Event| {
            event
                .seconds()
                .is_some_and(|seconds| seconds.saturating_add(HOUR) >= self.now)
        };
        let mut lost = 0_u64;
        // The ends of connections that were not made again yet.
        let mut ends: Vec<&Event> = Vec::new();
        for event in events {
            if event.is_end() {
                ends.push(event);
            }
            let end = ends.iter().rposition(|end| event.follows(end));
            let given_up = end
                .map(|end| ends.remove(end))
                .is_some_and(|end| end.is_closed_within(IDLE_SECONDS) && recent(end));
            let is_lost = event.is_loss() && recent(event);
            lost = lost.saturating_add(u64::from(given_up || is_lost));
        }
        let observing = self.observing.as_ref();
        let known = observing.is_none_or(|observing| observing.knows_generations());
        Some(lost).filter(|lost| known || *lost >= 2)
    }
}

/// Whether a transport goes to the server of that mount. A transport without a port is closed, or
/// the kernel does not show the port.
fn is_of(transport: &Transport, mount: &Mount) -> bool {
    let port = mount.server_port();
    mount.address.as_deref() == Some(&*transport.address)
        && (transport.port.is_none() || port.is_none() || transport.port == port)
}

/// The mounts of one namespace that use RDMA, or should use it.
pub(crate) fn mounts(
    namespace: &Namespace,
    module: Option<&Module<'_>>,
    transports: &[Transport],
) -> Vec<MountReport> {
    let mut mounts = mountinfo(&namespace.mountinfo);
    mark_by_fstab(&mut mounts, &namespace.fstab);
    let all = mounts.clone();
    let mounts = with_stats(mounts, &namespace.mountstats);
    // Mounts of one server and one version use the same transports (`nfs_match_client`,
    // fs/nfs/client.c).
    let known: Vec<(Mount, Stats)> = mounts
        .iter()
        .filter(|(mount, _)| mount.is_rdma())
        .filter_map(|(mount, stats)| Some((mount.clone(), stats.clone()?)))
        .collect();
    mounts
        .into_iter()
        .filter(|(mount, _)| mount.is_rdma() || verdict::not_rdma(mount, &all).is_some())
        .map(|(mount, stats)| {
            let addresses = module.and_then(|module| module.addresses_of(&mount));
            let connections = module
                .filter(|_| mount.is_rdma())
                .map(|module| match &addresses {
                    Some(addresses) => module.connections_of(addresses),
                    None => Vec::new(),
                });
            // A closed transport shows no port. If all of another mount are connected, it is none of
            // that mount.
            let has_all = |other: &Mount| {
                let connected = transports
                    .iter()
                    .filter(|one| one.connected && one.port.is_some() && is_of(one, other));
                let connected = u64::try_from(connected.count()).unwrap_or(u64::MAX);
                known.iter().any(|(mount, stats)| {
                    mount.mount_point == other.mount_point && stats.transports <= connected
                })
            };
            let is_ambiguous = all.iter().any(|other| {
                other.is_rdma()
                    && other.address == mount.address
                    && other.server_port() != mount.server_port()
                    && !has_all(other)
            });
            let transports: Vec<Transport> = transports
                .iter()
                .filter(|transport| mount.is_rdma() && is_of(transport, &mount))
                .map(|transport| Transport {
                    calls_of_switch: transport.calls_of_switch.filter(|_| !is_ambiguous),
                    ..transport.clone()
                })
                .collect();
            let of_server = || {
                let remote = mount.remote();
                known
                    .iter()
                    .filter(move |(other, _)| other.remote() == remote)
            };
            let mut transports_of_server: BTreeMap<Option<&String>, u64> = BTreeMap::new();
            for (other, stats) in of_server() {
                let of_version = transports_of_server.entry(other.version.as_ref());
                let of_version = of_version.or_default();
                *of_version = stats.transports.max(*of_version);
            }
            let verdicts = verdict::of_mount(&Facts {
                transports: &transports,
                mount: &mount,
                mounts: &all,
                stats: stats.as_ref(),
                transports_of_server: transports_of_server.into_values().sum(),
                age_seconds: of_server()
                    .filter(|(other, _)| other.version == mount.version)
                    .filter_map(|(_, stats)| stats.age_seconds)
                    .max(),
                connections: connections.as_deref(),
                observing: module.and_then(|module| module.observing.as_ref()),
                lost_in_an_hour: module
                    .zip(addresses.as_ref())
                    .and_then(|(module, addresses)| module.lost_in_an_hour(addresses)),
                last_failure: module
                    .zip(addresses.as_ref())
                    .and_then(|(module, addresses)| module.last_failure(addresses)),
            });
            MountReport {
                mount,
                namespace: namespace.of.map(|(number, _)| number),
                pid: namespace.of.map(|(_, pid)| pid),
                reconnects: stats.as_ref().and_then(|stats| stats.reconnects),
                stats,
                connections,
                transports,
                verdicts,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{
        history::history,
        info::info,
        mounts::rdma_entries,
        stats::observing, //
    };

    /// Returns how many connections to a server were lost in the hour before 02:00, by a history.
    fn lost(events: &[Event], server: &str) -> Option<u64> {
        lost_by(events, server, "observing: yes\n")
    }

    fn lost_by(events: &[Event], server: &str, stats: &str) -> Option<u64> {
        let module = Module {
            connections: &[],
            history: Some(events),
            observing: observing(stats),
            now: 7200,
        };
        let addresses = Addresses {
            server: server.to_owned(),
            client: None,
        };
        module.lost_in_an_hour(&addresses)
    }

    #[test]
    fn only_losses_of_the_last_hour_and_of_this_server() {
        let events = history(
            "DATE ORIGIN ROLE EVENT REMOTE\n\
             1970-01-01T00:59:59Z nfs client lost 1.2.3.4:20049\n\
             1970-01-01T01:00:00Z nfs client lost 1.2.3.4:20049\n\
             1970-01-01T01:30:00Z nfs client lost 1.2.3.4:20049\n\
             1970-01-01T01:30:00Z nfs client closed 1.2.3.4:20049\n\
             1970-01-01T01:30:00Z nfs server lost 1.2.3.4:20049\n\
             1970-01-01T01:30:00Z module client lost 1.2.3.4:20049\n\
             1970-01-01T01:30:00Z nfs client lost 1.2.3.5:20049\n",
        );
        for (server, expected) in [
            ("1.2.3.4:20049", Some(2)),
            ("1.2.3.5:20049", Some(1)),
            ("1.2.3.6:20049", None),
        ] {
            assert_eq!(lost(&events, server), expected, "{server}");
        }
    }

    /// Without BTF, each connection has generation 1.
    #[test]
    fn generations_that_are_not_known() {
        let events = |event| {
            history(&format!(
                "DATE ORIGIN ROLE EVENT REMOTE GEN LASTED_MS\n\
                 1970-01-01T01:30:01Z nfs client closed 1.2.3.4:20049 1 40\n\
                 1970-01-01T01:30:02Z nfs client established 1.2.3.4:20049 1 -\n\
                 1970-01-01T01:30:03Z nfs client lost 1.2.3.4:20049 1 40\n\
                 1970-01-01T01:30:04Z nfs client {event} 1.2.3.4:20049 1 40\n",
            ))
        };
        for (event, reason, expected) in [
            ("closed", "btf", None),
            ("closed", "members", None),
            ("closed", "users", Some(1)),
            ("lost", "btf", Some(2)),
        ] {
            let stats = format!("observing: partial\nobserving_reason: {reason}: x\n");
            assert_eq!(
                lost_by(&events(event), "1.2.3.4:20049", &stats),
                expected,
                "{event} {reason}"
            );
        }
    }

    /// A client that gives its connections up itself, because each READ ends in an error.
    #[test]
    fn connections_that_the_client_gave_up() {
        let ends = |lasted: &str, next: &str| {
            history(&format!(
                "DATE ORIGIN ROLE EVENT REMOTE GEN LASTED_MS\n\
                 1970-01-01T01:30:00Z nfs client established 1.2.3.4:20049 1 -\n\
                 1970-01-01T01:30:01Z nfs client closed 1.2.3.4:20049 1 {lasted}\n\
                 1970-01-01T01:30:02Z nfs client {next} -\n\
                 1970-01-01T01:30:03Z nfs client closed 1.2.3.4:20049 2 30\n\
                 1970-01-01T01:30:04Z nfs client re-established 1.2.3.4:20049 3 -\n\
                 1970-01-01T01:30:05Z nfs client closed 1.2.3.4:20049 3 30\n",
            ))
        };
        let again = "re-established 1.2.3.4:20049 2";
        for (lasted, next, expected) in [
            ("40", again, 2),
            ("299999", again, 2),
            // The client's own idle time.
            ("300000", again, 1),
            ("-", again, 1),
            // Unmounted and mounted.
            ("40", "established 1.2.3.4:20049 1", 1),
            ("40", "re-established 1.2.3.5:20049 2", 1),
            ("40", "re-established 1.2.3.4:20049 4", 1),
        ] {
            let events = ends(lasted, next);
            let found = lost(&events, "1.2.3.4:20049");
            assert_eq!(found, Some(expected), "{lasted} {next}");
        }
    }

    /// Only the latest end before a connection was made again is its own: the others were unmounted.
    #[test]
    fn mounts_that_were_unmounted() {
        let events = history(
            "DATE ORIGIN ROLE EVENT REMOTE GEN LASTED_MS\n\
             1970-01-01T01:30:00Z nfs client established 1.2.3.4:20049 1 -\n\
             1970-01-01T01:30:01Z nfs client closed 1.2.3.4:20049 1 40\n\
             1970-01-01T01:30:02Z nfs client established 1.2.3.4:20049 1 -\n\
             1970-01-01T01:30:03Z nfs client closed 1.2.3.4:20049 1 40\n\
             1970-01-01T01:30:04Z nfs client established 1.2.3.4:20049 1 -\n\
             1970-01-01T01:30:05Z nfs client lost 1.2.3.4:20049 1 40\n\
             1970-01-01T01:30:06Z nfs client re-established 1.2.3.4:20049 2 -\n",
        );
        assert_eq!(lost(&events, "1.2.3.4:20049"), Some(1));
    }

    /// Two namespaces with servers of one address.
    #[test]
    fn clients_of_other_addresses() {
        let line = |client: &str| {
            format!(
                "1 2 0:3 / /mnt rw - nfs4 s:/ rw,proto=rdma,port=20049,clientaddr={client},\
                 addr=10.0.0.2\n"
            )
        };
        let client = |local: &str| {
            info(&format!(
                "origin: nfs\nrole: client\nlocal: {local}\nremote: 10.0.0.2:20049\n"
            ))
        };
        let all = [
            client("10.0.0.1:1"),
            client("10.0.0.3:2"),
            client("[fd77::1]:3"),
        ];
        let events = history(
            "DATE ORIGIN ROLE EVENT LOCAL REMOTE\n\
             1970-01-01T00:00:01Z nfs client lost 10.0.0.3:2 10.0.0.2:20049\n\
             1970-01-01T00:00:01Z nfs client lost 10.0.0.4:2 10.0.0.2:20049\n\
             1970-01-01T00:00:02Z nfs client lost 10.0.0.4:3 10.0.0.2:20049\n",
        );
        for (all, address, connections, lost) in [
            (&all[..], "10.0.0.1", 1, None),
            (&all, "10.0.0.3", 1, Some(1)),
            (&all, "fd77::1", 1, None),
            // Only the history has this address, perhaps from an earlier connection.
            (&all, "10.0.0.4", 3, Some(3)),
            (&[], "10.0.0.4", 0, Some(2)),
            // Nothing is known of that address.
            (&all, "10.0.0.5", 3, Some(3)),
            (&[], "10.0.0.5", 0, Some(3)),
            (&all, "0.0.0.0", 3, Some(3)),
        ] {
            let module = Module {
                connections: all,
                history: Some(&events),
                observing: None,
                now: 3,
            };
            let mount = mountinfo(&line(address)).remove(0);
            let addresses = module.addresses_of(&mount).unwrap();
            assert_eq!(
                (
                    module.connections_of(&addresses).len(),
                    module.lost_in_an_hour(&addresses)
                ),
                (connections, lost),
                "{address}"
            );
        }
    }

    #[test]
    fn last_failures() {
        let failed = "1970-01-01T00:00:01Z nfs client failed - 1.2.3.4:20049 no route\n";
        let refused = "1970-01-01T00:00:02Z nfs client refused - 1.2.3.4:20049 by the peer\n";
        let lost = "1970-01-01T00:00:02Z nfs client lost - 1.2.3.4:20049 by an error\n";
        let other = "1970-01-01T00:00:03Z nfs client established - 1.2.3.5:20049 -\n";
        let established = "1970-01-01T00:00:03Z nfs client established - 1.2.3.4:20049 -\n";
        for (lines, expected) in [
            (vec![], None),
            (vec![failed], Some("no route")),
            (vec![failed, refused, other], Some("by the peer")),
            (vec![failed, lost], Some("by an error")),
            (vec![failed, established], None),
        ] {
            let events = history(&format!(
                "DATE ORIGIN ROLE EVENT LOCAL REMOTE REASON\n{}",
                lines.concat()
            ));
            let module = Module {
                connections: &[],
                history: Some(&events),
                observing: None,
                now: 3,
            };
            let addresses = Addresses {
                server: "1.2.3.4:20049".to_owned(),
                client: Some("1.2.3.1".to_owned()),
            };
            assert_eq!(module.last_failure(&addresses), expected, "{lines:?}");
        }
    }

    /// `/b` is ten seconds old. It uses the transports of `/a`, which were made again 40 times in two
    /// days. `/c` has another version, and so other transports.
    #[test]
    fn mounts_that_share_transports() {
        let mut namespace = Namespace::default();
        for (point, version, age) in [("/a", "4.2", 200_000), ("/b", "4.2", 10), ("/c", "3", 10)] {
            namespace.mountinfo.push_str(&format!(
                "1 2 0:3 / {point} rw - nfs4 s:/ rw,vers={version},proto=rdma,port=20049,addr=10.0.0.2\n"
            ));
            namespace.mountstats.push_str(&format!(
                "device s:/ mounted on {point} with fstype nfs4 statvers=1.1\n\
                 \tage:\t{age}\n\txprt:\trdma 0 0 41 0 0 5 5 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
            ));
        }
        let often: Vec<bool> = mounts(&namespace, None, &[])
            .iter()
            .map(|report| {
                report.verdicts[0]
                    .sentence
                    .starts_with("connected again 40 times")
            })
            .collect();
        assert_eq!(often, [false, false, true]);
    }

    /// The options of version 4 hide the port 2049. A server's backchannel to a client at the same
    /// address has another port.
    #[test]
    fn transports_of_the_port() {
        let transport = |port| Transport {
            address: "10.0.0.2".to_owned(),
            port,
            ..Transport::default()
        };
        let all = [transport(Some(2049)), transport(Some(700)), transport(None)];
        for (options, expected) in [("", 2), ("port=700,", 2), ("port=20049,", 1)] {
            let namespace = Namespace {
                mountinfo: format!(
                    "1 2 0:3 / /mnt rw - nfs4 s:/ rw,proto=rdma,{options}addr=10.0.0.2\n"
                ),
                ..Namespace::default()
            };
            let reports = mounts(&namespace, None, &all);
            assert_eq!(reports[0].transports.len(), expected, "{options}");
        }
    }

    /// A closed transport does not show to which of two ports it belongs.
    #[test]
    fn calls_of_another_port() {
        let closed = Transport {
            address: "10.0.0.2".to_owned(),
            calls_of_switch: Some(5),
            ..Transport::default()
        };
        let mut namespace = Namespace::default();
        for (port, expected) in [(20049, true), (20050, false)] {
            namespace.mountinfo.push_str(&format!(
                "1 2 0:3 / /{port} rw - nfs4 s:/ rw,proto=rdma,port={port},addr=10.0.0.2\n"
            ));
            let reports = mounts(&namespace, None, std::slice::from_ref(&closed));
            let waits = |report: &MountReport| {
                let mut verdicts = report.verdicts.iter();
                verdicts.any(|verdict| verdict.sentence == "not connected: 5 calls wait")
            };
            assert_eq!(reports.iter().any(waits), expected, "{port}");
        }
        // The only transport of the other mount is connected.
        namespace.mountstats = "device s:/ mounted on /20050 with fstype nfs4 statvers=1.1\n\
             \txprt:\trdma 0 0 1\n"
            .to_owned();
        let connected = Transport {
            connected: true,
            port: Some(20050),
            ..closed.clone()
        };
        let reports = mounts(&namespace, None, &[closed, connected]);
        let sentences = reports.iter().map(|report| &*report.verdicts[0].sentence);
        let found: Vec<bool> = sentences.map(|it| it.ends_with("5 calls wait")).collect();
        assert_eq!(found, [true, false]);
    }

    /// The server restarts. Its mounts of both versions lose their connections, each once.
    #[test]
    fn mounts_of_two_versions() {
        let line = "1970-01-01T01:30:00Z nfs client lost 10.0.0.2:20049\n";
        let mut namespace = Namespace::default();
        for (point, version) in [("a", "3"), ("b", "4.2"), ("c", "4.2")] {
            namespace.mountinfo.push_str(&format!(
                "1 2 0:3 / /{point} rw - nfs4 s:/ rw,vers={version},proto=rdma,port=20049,addr=10.0.0.2\n"
            ));
            namespace.mountstats.push_str(&format!(
                "device s:/ mounted on /{point} with fstype nfs4 statvers=1.1\n\
                 \tage:\t100000\n\txprt:\trdma 0 0 2 0 0 5 5 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
            ));
        }
        for (count, expected) in [(2, false), (3, true)] {
            let events = history(&format!(
                "DATE ORIGIN ROLE EVENT REMOTE\n{}",
                line.repeat(count)
            ));
            let module = Module {
                connections: &[],
                history: Some(&events),
                observing: None,
                now: 7200,
            };
            let often = |report: &MountReport| {
                let mut verdicts = report.verdicts.iter();
                verdicts.any(|verdict| verdict.sentence.starts_with("lost "))
            };
            let reports = mounts(&namespace, Some(&module), &[]);
            assert_eq!(reports.iter().any(often), expected, "{count}");
        }
    }

    #[test]
    fn connections_of_the_mount_only() {
        let all = [
            "nfs client 10.0.0.2:20049",
            "nfs server 10.0.0.2:20049",
            "user client 10.0.0.2:20049",
            "nfs client 10.0.0.2:2049",
            "nfs client 10.0.0.2:20049",
        ]
        .map(|words| {
            let words: Vec<&str> = words.split(' ').collect();
            info(&format!(
                "origin: {}\nrole: {}\nremote: {}\n",
                words[0], words[1], words[2]
            ))
        });
        let module = Module {
            connections: &all,
            history: None,
            observing: None,
            now: 0,
        };
        let mut namespace = Namespace {
            mountinfo: "1 2 0:3 / /mnt rw - nfs4 s:/ rw,proto=rdma,port=20049,addr=10.0.0.2\n\
                        1 2 0:3 / /tcp rw - nfs4 s:/ rw,proto=tcp,addr=10.0.0.2\n"
                .to_owned(),
            ..Namespace::default()
        };
        let reports = mounts(&namespace, Some(&module), &[]);
        assert_eq!(reports.len(), 1);
        assert_eq!(reports[0].connections.as_ref().unwrap().len(), 2);
        assert_eq!(mounts(&namespace, None, &[])[0].connections, None);
        namespace.fstab = rdma_entries("s:/ /tcp nfs rdma 0 0");
        assert_eq!(mounts(&namespace, Some(&module), &[]).len(), 2);
    }
}
