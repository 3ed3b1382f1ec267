// SPDX-License-Identifier: GPL-2.0

//! The join of what NFS and what the module say of a mount.

use serde::Serialize;

use crate::{
    parse::{
        history::Event,
        info::Info,
        mounts::{
            mark_by_fstab,
            mountinfo,
            with_stats,
            Mount,
            Stats, //
        }, //
    },
    verdict::{
        self,
        Facts,
        Verdict, //
    }, //
};

const HOUR: u64 = 3600;

/// What is to be read of one mount namespace.
#[derive(Default)]
pub(crate) struct Namespace {
    /// `None` for that of this process, otherwise the number of the namespace and a process in it.
    pub(crate) of: Option<(u64, u64)>,
    pub(crate) mountinfo: String,
    pub(crate) mountstats: String,
    /// Of this process's namespace only: another one may have other mount points.
    pub(crate) fstab: String,
}

/// A mount, its connections, and the verdicts.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MountReport {
    #[serde(flatten)]
    pub(crate) mount: Mount,
    /// The number of the mount namespace where it is another than this process's.
    pub(crate) namespace: Option<u64>,
    /// A process in that namespace.
    pub(crate) pid: Option<u64>,
    pub(crate) stats: Option<Stats>,
    pub(crate) reconnects: Option<u64>,
    /// `None` where the files of the module could not be read.
    pub(crate) connections: Option<Vec<Info>>,
    pub(crate) verdicts: Vec<Verdict>,
}

/// What the module says.
pub(crate) struct Module<'a> {
    /// All connections, each by its `info`.
    pub(crate) connections: &'a [Info],
    pub(crate) history: Option<&'a [Event]>,
    /// Now, in seconds since 1970.
    pub(crate) now: u64,
}

impl Module<'_> {
    /// The connections of the kernel's NFS client to `remote`.
    ///
    /// Several mounts of one server have the same ones. The module does not say in which network
    /// namespace a connection is: where two have servers of the same address, their connections are
    /// not told apart.
    fn connections_of(&self, remote: Option<&str>) -> Vec<Info> {
        self.connections
            .iter()
            .filter(|info| info.is_of("nfs") && info.is_client())
            .filter(|info| remote.is_some() && info.remote.as_deref() == remote)
            .cloned()
            .collect()
    }

    fn lost_in_an_hour(&self, remote: Option<&str>) -> Option<u64> {
        let events = self.history?;
        let remote = remote?;
        let lost = events.iter().filter(|event| {
            event.is_loss_of(remote)
                && event
                    .seconds()
                    .is_some_and(|seconds| seconds.saturating_add(HOUR) >= self.now)
        });
        u64::try_from(lost.count()).ok()
    }
}

/// The mounts of one namespace that use RDMA, or were to use it.
pub(crate) fn mounts(namespace: &Namespace, module: Option<&Module<'_>>) -> Vec<MountReport> {
    let mut mounts = mountinfo(&namespace.mountinfo);
    mark_by_fstab(&mut mounts, &namespace.fstab);
    with_stats(mounts, &namespace.mountstats)
        .into_iter()
        .filter(|(mount, _)| mount.is_rdma() || verdict::not_rdma(mount).is_some())
        .map(|(mount, stats)| {
            let remote = mount.remote();
            let connections = module
                .filter(|_| mount.is_rdma())
                .map(|module| module.connections_of(remote.as_deref()));
            let verdicts = verdict::of_mount(&Facts {
                mount: &mount,
                stats: stats.as_ref(),
                connections: connections.as_deref(),
                lost_in_an_hour: module
                    .and_then(|module| module.lost_in_an_hour(remote.as_deref())),
            });
            MountReport {
                mount,
                namespace: namespace.of.map(|(number, _)| number),
                pid: namespace.of.map(|(_, pid)| pid),
                reconnects: stats.as_ref().and_then(Stats::reconnects),
                stats,
                connections,
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
        info::info, //
    };

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
        let module = Module {
            connections: &[],
            history: Some(&events),
            now: 7200,
        };
        assert_eq!(module.lost_in_an_hour(Some("1.2.3.4:20049")), Some(2));
        assert_eq!(module.lost_in_an_hour(Some("1.2.3.6:20049")), Some(0));
        assert_eq!(module.lost_in_an_hour(None), None);
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
            now: 0,
        };
        let mut namespace = Namespace {
            mountinfo: "1 2 0:3 / /mnt rw - nfs4 s:/ rw,proto=rdma,port=20049,addr=10.0.0.2\n\
                        1 2 0:3 / /tcp rw - nfs4 s:/ rw,proto=tcp,addr=10.0.0.2\n"
                .to_owned(),
            ..Namespace::default()
        };
        let reports = mounts(&namespace, Some(&module));
        assert_eq!(reports.len(), 1);
        assert_eq!(reports[0].connections.as_ref().unwrap().len(), 2);
        assert_eq!(mounts(&namespace, None)[0].connections, None);
        namespace.fstab = "s:/ /tcp nfs rdma 0 0".to_owned();
        assert_eq!(mounts(&namespace, Some(&module)).len(), 2);
    }
}
