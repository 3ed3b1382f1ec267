// SPDX-License-Identifier: GPL-2.0

//! `mountinfo` and `mountstats` of /proc: the mounts of NFS, and the counters of their transports.
//!
//! The crate procfs does not fit: it leaves out the lines `xprt:`, and fails as a whole on one
//! unknown line.

use std::{
    collections::BTreeMap,
    path::{
        Path,
        PathBuf, //
    }, //
};

use serde::Serialize;

use super::{
    key_value,
    Value, //
};
use crate::target;

/// A mount of NFS, by a line of `mountinfo`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Mount {
    pub(crate) mount_point: String,
    /// SERVER:PATH.
    pub(crate) source: String,
    /// `vers=`.
    pub(crate) version: Option<String>,
    /// The transport in use: `rdma`, `rdma6`, `tcp`, `tcp6`, `udp`.
    pub(crate) protocol: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) port: Option<u64>,
    pub(crate) nconnect: Option<u64>,
    /// `clientaddr=`: this end's address, as mount.nfs found it. Version 3 has none.
    #[serde(skip)]
    pub(crate) client_address: Option<String>,
    /// Whether `/etc/fstab` asks for RDMA at this mount point.
    #[serde(skip)]
    pub(crate) is_rdma_in_fstab: bool,
    #[serde(skip)]
    fs_type: String,
}

impl Mount {
    /// Whether its calls go over RDMA.
    pub(crate) fn is_rdma(&self) -> bool {
        self.protocol
            .as_deref()
            .is_some_and(|protocol| protocol.starts_with("rdma"))
    }

    /// The server's port. `None` if the options have no port. The options of version 4 hide the port
    /// 2049.
    pub(crate) fn server_port(&self) -> Option<u64> {
        self.port
            .or_else(|| (self.fs_type == "nfs4").then_some(2049))
    }

    /// The server as the module shows it: ADDR:PORT. `None` if its port is not known.
    pub(crate) fn remote(&self) -> Option<String> {
        let address = self.address.as_deref()?;
        let port = self.server_port()?;
        Some(target::with_port(address, port))
    }
}

/// Parses `mountinfo`: the mounts of NFS in their order.
pub(crate) fn mountinfo(text: &str) -> Vec<Mount> {
    text.lines().filter_map(mount).collect()
}

/// One line: `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn mount(line: &str) -> Option<Mount> {
    let (place, system) = line.split_once(" - ")?;
    let mut system = system.split(' ');
    let fs_type = system.next()?;
    if !matches!(fs_type, "nfs" | "nfs4") {
        return None;
    }
    let source = unescape(system.next()?);
    let options: BTreeMap<&str, &str> = system
        .next()
        .unwrap_or_default()
        .split(',')
        .filter_map(|option| option.split_once('='))
        .collect();
    let option = |key: &str| options.get(key).map(|value| unescape(value));
    Some(Mount {
        mount_point: unescape(place.split(' ').nth(4)?),
        source,
        version: option("vers"),
        protocol: option("proto"),
        address: option("addr"),
        port: options.get("port").and_then(|port| Value::parse(port)),
        nconnect: options.get("nconnect").and_then(|n| Value::parse(n)),
        client_address: option("clientaddr"),
        is_rdma_in_fstab: false,
        fs_type: fs_type.to_owned(),
    })
}

/// A line of `/etc/fstab` that asks for NFS over RDMA.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Entry {
    /// SERVER:PATH.
    pub(crate) source: String,
    /// Without surplus slashes.
    pub(crate) mount_point: String,
    /// Separated by commas.
    pub(crate) options: String,
}

impl Entry {
    /// Whether something else than the start of the system mounts it.
    pub(crate) fn is_mounted_later(&self) -> bool {
        self.options
            .split(',')
            .any(|option| matches!(option, "noauto" | "x-systemd.automount"))
    }

    /// The port that it names.
    pub(crate) fn port(&self) -> Option<u16> {
        self.options
            .split(',')
            .find_map(|option| option.strip_prefix("port=")?.parse().ok())
    }
}

/// Parses `/etc/fstab`: the lines of NFS that ask for RDMA by `proto=rdma`, `proto=rdma6` or `rdma`
/// (nfs(5)).
pub(crate) fn rdma_entries(fstab: &str) -> Vec<Entry> {
    let entry = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [source, point, "nfs" | "nfs4", options, ..] = words.as_slice() else {
            return None;
        };
        let asks = options
            .split(',')
            .any(|option| matches!(option, "rdma" | "proto=rdma" | "proto=rdma6"));
        (asks && !source.starts_with('#')).then(|| Entry {
            source: unescape(source),
            mount_point: text_of(Path::new(&unescape(point)).components().collect()),
            options: (*options).to_owned(),
        })
    };
    fstab.lines().filter_map(entry).collect()
}

/// The mount points, by `mountinfo`, on which a look at a file can wait for a server, or mount
/// something.
pub(crate) fn remote_points(mountinfo: &str) -> Vec<PathBuf> {
    let point = |line: &str| {
        let (place, system) = line.split_once(" - ")?;
        let kind = system.split([' ', '.']).next()?;
        let is_remote = matches!(
            kind,
            "nfs"
                | "nfs4"
                | "autofs"
                | "cifs"
                | "smb3"
                | "smbfs"
                | "ceph"
                | "9p"
                | "fuse"
                | "virtiofs"
                | "lustre"
                | "beegfs"
                | "gpfs"
                | "afs"
                | "coda"
                | "pvfs2"
                | "ocfs2"
                | "gfs2"
        );
        let point = unescape(place.split(' ').nth(4)?);
        is_remote.then(|| PathBuf::from(point))
    };
    mountinfo.lines().filter_map(point).collect()
}

/// The path of a mount point without links, as the kernel shows it in `mountinfo`. `link` returns
/// where the link at a path leads. Paths on a mount of `remote` are not looked up: this returns
/// [`None`] for them.
pub(crate) fn without_links(
    point: &str,
    remote: &[PathBuf],
    link: impl Fn(&Path) -> Option<PathBuf>,
) -> Option<String> {
    let parts = |path: &Path| -> Vec<PathBuf> {
        let parts = path.components().rev();
        parts.map(|part| PathBuf::from(part.as_os_str())).collect()
    };
    let mut found = PathBuf::new();
    let mut left = parts(Path::new(point));
    // As many as the kernel follows (`MAXSYMLINKS`, include/linux/namei.h).
    let mut links = 0..40;
    while let Some(part) = left.pop() {
        match part.to_str() {
            Some("..") => {
                found.pop();
                continue;
            }
            Some(".") => continue,
            _ => {}
        }
        // `/` replaces what was there.
        let path = found.join(part);
        if remote.contains(&path) {
            return left.is_empty().then(|| text_of(path));
        }
        match link(&path) {
            Some(target) => {
                links.next()?;
                left.extend(parts(&target));
            }
            None => found = path,
        }
    }
    Some(text_of(found))
}

fn text_of(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

/// Marks each mount for whose mount point `/etc/fstab` asks for RDMA.
pub(crate) fn mark_by_fstab(mounts: &mut [Mount], entries: &[Entry]) {
    for mount in mounts {
        mount.is_rdma_in_fstab |= entries
            .iter()
            .any(|entry| entry.mount_point == mount.mount_point);
    }
}

/// Undoes the escapes of /proc and of fstab: a backslash and three octal digits stand for an octet.
fn unescape(text: &str) -> String {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = match rest {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                Some((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'))
            }
            _ => None,
        };
        octets.push(escaped.unwrap_or(first));
        rest = match escaped {
            Some(_) => rest.get(4..).unwrap_or_default(),
            None => after,
        };
    }
    String::from_utf8_lossy(&octets).into_owned()
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident: $position:literal,)*) => {
        /// Counters of RDMA transports since they were made: `None` for a counter that the kernel
        /// does not show.
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub(crate) struct Counters {
            $($(#[$doc])* pub(crate) $name: Option<u64>,)*
        }

        impl Counters {
            /// Takes the numbers of a line `xprt: rdma`, in the order of `xprt_rdma_print_stats`
            /// (net/sunrpc/xprtrdma/transport.c).
            fn of(numbers: &[&str]) -> Self {
                Self {
                    $($name: numbers.get($position).and_then(|word| Value::parse(word)),)*
                }
            }

            /// Adds the counters of another transport.
            fn add(&self, other: &Self) -> Self {
                Self {
                    $($name: self
                        .$name
                        .zip(other.$name)
                        .map(|(one, other)| one.saturating_add(other)),)*
                }
            }
        }
    };
}

counters! {
    /// Connections made.
    connects: 2,
    /// Messages sent: calls, and replies to calls of the server.
    sends: 5,
    /// Replies received that belong to a call.
    receives: 6,
    /// Segments that calls offered for reading by the server, mostly one for each such call.
    read_chunks: 10,
    /// Segments that calls offered for results.
    write_chunks: 11,
    /// Segments that calls offered for a reply that may be longer than the inline threshold.
    reply_chunks: 12,
    /// Octets of buffers of calls that were allocated anew, because the call was longer than the
    /// buffer. A buffer keeps its new size.
    hard_way_octets: 17,
    /// Attempts to build a call that failed. Most are repeated.
    failed_marshals: 18,
    bad_replies: 19,
    /// Calls that were longer than the inline threshold and were read by the server as a whole.
    long_calls: 20,
    /// Regions that had to be recovered after a fault. Recent kernels count none.
    recovered_regions: 21,
    /// Segments that the client had to invalidate itself.
    local_invalidations: 24,
}

/// A mount's part of `mountstats`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Stats {
    /// How long the mount has been there, in seconds.
    pub(crate) age_seconds: Option<u64>,
    /// The number of RDMA transports. Mounts that share transports count the same ones.
    pub(crate) transports: u64,
    /// The sum over these transports.
    pub(crate) counters: Counters,
    /// Connections that replaced an earlier one of the same transport: the sum over these transports.
    #[serde(skip)]
    pub(crate) reconnects: Option<u64>,
}

impl Stats {
    /// Segments that were registered for chunks.
    pub(crate) fn regions(&self) -> Option<u64> {
        let Counters {
            read_chunks,
            write_chunks,
            reply_chunks,
            ..
        } = self.counters;
        Some(
            read_chunks?
                .saturating_add(write_chunks?)
                .saturating_add(reply_chunks?),
        )
    }
}

/// Parses `mountstats`, and joins each part with its mount. Both files list the mounts in the same
/// order, and write the mount points in the same way.
pub(crate) fn with_stats(mounts: Vec<Mount>, mountstats: &str) -> Vec<(Mount, Option<Stats>)> {
    let mut parts = mountstats_parts(mountstats);
    mounts
        .into_iter()
        .map(|mount| {
            let found = parts
                .iter()
                .position(|(point, kind, _)| *point == mount.mount_point && *kind == mount.fs_type);
            let stats = found.map(|index| parts.remove(index).2);
            (mount, stats)
        })
        .collect()
}

/// The mount point, the type and the content of each part that is of NFS.
fn mountstats_parts(text: &str) -> Vec<(String, String, Stats)> {
    let mut parts: Vec<(String, String, Stats)> = Vec::new();
    let mut is_nfs = false;
    for line in text.lines() {
        if let Some(device) = line.strip_prefix("device ") {
            let part = device.split_once(" mounted on ").and_then(|(_, place)| {
                let (point, kind) = place.split_once(" with fstype ")?;
                let kind = kind.split(' ').next()?;
                matches!(kind, "nfs" | "nfs4").then(|| (unescape(point), kind.to_owned()))
            });
            is_nfs = part.is_some();
            parts.extend(part.map(|(point, kind)| (point, kind, Stats::default())));
            continue;
        }
        let Some((_, _, stats)) = parts.last_mut().filter(|_| is_nfs) else {
            continue;
        };
        match key_value(line) {
            Some(("age", age)) => stats.age_seconds = Value::parse(age),
            Some(("xprt", transport)) => {
                let words: Vec<&str> = transport.split_whitespace().collect();
                if let Some(("rdma", numbers)) = words.split_first().map(|(k, n)| (*k, n)) {
                    let counters = Counters::of(numbers);
                    // A transport of `nconnect=` may not have been connected yet.
                    let reconnects = counters.connects.map(|connects| connects.saturating_sub(1));
                    (stats.counters, stats.reconnects) = match stats.transports {
                        0 => (counters, reconnects),
                        _ => (
                            stats.counters.add(&counters),
                            stats
                                .reconnects
                                .zip(reconnects)
                                .map(|(one, other)| one.saturating_add(other)),
                        ),
                    };
                    stats.transports = stats.transports.saturating_add(1);
                }
            }
            _ => (),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
22 1 0:20 / / rw,relatime - overlay overlay rw
50 22 0:47 / /mnt/a\\040b rw,relatime shared:7 master:1 - nfs4 10.77.1.2:/ rw,vers=4.2,rsize=1048576,proto=rdma,nconnect=2,port=20049,clientaddr=10.77.1.1,addr=10.77.1.2
51 22 0:48 / /mnt/tcp rw,relatime - nfs4 10.77.1.2:/ rw,vers=4.2,proto=tcp,addr=10.77.1.2
52 22 0:49 / /mnt/six rw,relatime - nfs [fd77:1::2]:/export rw,vers=3,proto=rdma6,port=20049,addr=fd77:1::2
";

    const MOUNTSTATS: &str = "\
device overlay mounted on / with fstype overlay
device 10.77.1.2:/ mounted on /mnt/a\\040b with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2
\tage:\t61
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\trdma 0 0 1 0 0 20 20 0 20 0 5 6 7 0 0 0 0 0 0 0 0 0 0 16 3 0 0
\txprt:\trdma 0 0 3 0 0 22 22 0 22 0 1 1 1 0 0 0 0 0 0 0 1 0 0 16 2 0 0
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
device 10.77.1.2:/ mounted on /mnt/tcp with fstype nfs4 statvers=1.1
\tage:\t9
\txprt:\ttcp 0 0 1 0 0 20 20 0 20 0 5 6 7
";

    #[test]
    fn mounts_of_nfs() {
        let mounts = mountinfo(MOUNTINFO);
        assert_eq!(mounts.len(), 3);
        assert_eq!(mounts[0].mount_point, "/mnt/a b");
        assert_eq!(mounts[0].remote().as_deref(), Some("10.77.1.2:20049"));
        assert_eq!(mounts[0].nconnect, Some(2));
        assert_eq!(mounts[0].client_address.as_deref(), Some("10.77.1.1"));
        assert_eq!(mounts[2].client_address, None);
        assert!(mounts[0].is_rdma() && !mounts[1].is_rdma() && mounts[2].is_rdma());
        assert_eq!(mounts[1].remote().as_deref(), Some("10.77.1.2:2049"));
        assert_eq!(mounts[2].remote().as_deref(), Some("[fd77:1::2]:20049"));
    }

    #[test]
    fn rdma_by_fstab() {
        for (line, expected) in [
            ("s:/ /mnt/tcp nfs proto=rdma,vers=4.2 0 0", true),
            ("s:/\t/mnt/tcp  nfs4 rw,rdma", true),
            ("s:/ /mnt/t\\143p nfs proto=rdma6 0 0", true),
            ("s:/ /mnt/tcp/ nfs rdma 0 0", true),
            ("s:/ //mnt/./tcp// nfs rdma 0 0", true),
            ("s:/ /mnt/tcp nfs proto=tcp,port=20049 0 0", false),
            ("s:/ /mnt/tcp cifs rdma 0 0", false),
            ("s:/ /mnt nfs rdma 0 0", false),
            ("#s:/ /mnt/tcp nfs rdma 0 0", false),
            ("s:/ /mnt/tcp nfs", false),
            ("", false),
        ] {
            let mut mounts = mountinfo(MOUNTINFO);
            mark_by_fstab(&mut mounts, &rdma_entries(&format!("# head\n\n{line}\n")));
            let marked: Vec<_> = mounts.iter().map(|mount| mount.is_rdma_in_fstab).collect();
            assert_eq!(marked, [false, expected, false], "{line}");
        }
    }

    /// Nothing on a remote mount is looked at, because that could take for ever.
    #[test]
    fn mount_points_without_links() {
        let remote = remote_points(
            "1 2 0:3 / /nas\\040one rw - nfs4 s:/ rw\n1 2 0:3 / /auto rw - autofs x rw\n\
             1 2 0:3 / /f rw - fuse.sshfs x rw\n1 2 8:1 / /disk rw - ext4 x rw\nx\n\
             1 2 0:3 / /l rw - lustre x rw\n1 2 0:3 / /v rw - virtiofs x rw\n\
             1 2 0:3 / /o rw - overlay x rw\n",
        );
        assert_eq!(
            remote,
            ["/nas one", "/auto", "/f", "/l", "/v"].map(PathBuf::from)
        );
        let link = |path: &Path| {
            let path = path.to_str().unwrap();
            assert!(
                !path.starts_with("/nas one") && !path.starts_with("/auto"),
                "{path}"
            );
            let target = match path {
                "/data" => "./disk/data",
                "/disk/data" => "../mnt/./data",
                "/remote" => "/nas one",
                "/loop" => "loop",
                _ => return None,
            };
            Some(PathBuf::from(target))
        };
        for (point, expected) in [
            ("/mnt/data", Some("/mnt/data")),
            ("/data", Some("/mnt/data")),
            ("/data/x", Some("/mnt/data/x")),
            ("/disk/../../data", Some("/mnt/data")),
            ("/", Some("/")),
            ("/loop", None),
            ("/nas one", Some("/nas one")),
            ("/remote", Some("/nas one")),
            ("/remote/x", None),
            ("/auto/x", None),
        ] {
            let found = without_links(point, &remote, link);
            assert_eq!(found.as_deref(), expected, "{point}");
        }
    }

    #[test]
    fn counters_of_all_transports() {
        let mounts = with_stats(mountinfo(MOUNTINFO), MOUNTSTATS);
        let stats = mounts[0].1.as_ref().unwrap();
        assert_eq!(stats.age_seconds, Some(61));
        assert_eq!(stats.transports, 2);
        assert_eq!(stats.reconnects, Some(2));
        assert_eq!(stats.regions(), Some(21));
        assert_eq!(stats.counters.sends, Some(42));
        assert_eq!(stats.counters.long_calls, Some(1));
        assert_eq!(stats.counters.local_invalidations, Some(5));
        assert_eq!(mounts[1].1.as_ref().unwrap().transports, 0);
        assert_eq!(mounts[2].1, None);
    }

    #[test]
    fn one_mount_over_the_other() {
        let line = MOUNTINFO.lines().nth(1).unwrap();
        let part = MOUNTSTATS.split_once("device 10").unwrap().1;
        let part = format!("device 10{}", part.split_once("device 10").unwrap().0);
        let second = part.replace("61", "62");
        let both = with_stats(
            mountinfo(&format!("{line}\n{line}\n")),
            &format!("{part}{second}"),
        );
        let ages: Vec<_> = both
            .iter()
            .map(|(_, stats)| stats.as_ref().unwrap().age_seconds)
            .collect();
        assert_eq!(ages, [Some(61), Some(62)]);
    }

    #[test]
    fn hostile_text() {
        assert_eq!(
            mountinfo(" - nfs\n - nfs x\n1 2 3 4 - nfs s o\n-\n\u{0}\n"),
            []
        );
        let odd = mountinfo("1 2 0:3 / /a\u{a0}\\0\\777\\134 rw - nfs s\n");
        assert_eq!(odd[0].mount_point, "/a\u{a0}\\0\\777\\");
        assert_eq!(odd[0].remote(), None);
        let mut mounts = mountinfo("1 2 0:3 / /x rw - nfs s\n");
        mounts.extend(mounts.clone());
        let text = "xprt: rdma 1\ndevice\ndevice s mounted on /x with fstype nfs\nxprt:\nxprt: rdma\nxprt: rdma a -1\n";
        let both = with_stats(mounts, text);
        let stats = both[0].1.as_ref().unwrap();
        assert_eq!(stats.transports, 2);
        assert_eq!(stats.reconnects, None);
        assert_eq!(both[1].1, None);
    }
}
