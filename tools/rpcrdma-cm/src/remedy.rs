// SPDX-License-Identifier: GPL-2.0

//! The remedies: what an administrator does about a verdict, on which host, with which file and
//! value.

use crate::{
    parse::{
        info::Info,
        mounts::Mount, //
    },
    target, //
};

/// The largest size that Linux can be set to, in octets: `RPCRDMA_MAX_INLINE` of its client
/// (include/linux/sunrpc/xprtrdma.h), `RPCRDMA_MAX_INLINE_THRESH` of its server
/// (include/linux/sunrpc/svc_rdma.h).
const LINUX_MAX: u64 = 65_536;

/// The default of Linux at both ends. Its server cannot be set to less.
const LINUX_DEFAULT: u64 = 4096;

/// The default and the largest number of slots of a transport of Linux: `RPCRDMA_DEF_SLOT_TABLE` and
/// `RPCRDMA_MAX_SLOT_TABLE` (include/linux/sunrpc/xprtrdma.h).
const LINUX_SLOTS: u64 = 128;
const LINUX_SLOTS_MAX: u64 = 16_384;

/// The sysctls of Linux' client for its Send Size and its Receive Size.
const CLIENT_SEND: &str = "rdma_max_inline_write";
const CLIENT_RECEIVE: &str = "rdma_max_inline_read";

/// The address without the port, and without the brackets of IPv6.
pub(crate) fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// The port of the address, or that of NFS over RDMA.
fn port(address: Option<&str>) -> String {
    let port = address.and_then(|address| address.rsplit_once(':'));
    port.map_or_else(|| target::PORT.to_string(), |(_, port)| port.to_owned())
}

/// A word of a command for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._:-[]%@+=,".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Sets a file of a server that may be the kernel's. `thing` is its name in the settings of others.
fn set_server(host: &str, port: &str, thing: &str, wanted: u64, file: &str) -> String {
    format!(
        "on {host}, if /proc/fs/nfsd/portlist there has `rdma {port}`: echo {wanted} > \
         /proc/sys/sunrpc/svc_rdma/{file}\notherwise raise the {thing} in that server's settings, \
         or ask its vendor; then unmount and mount on the client"
    )
}

/// The peer's host in a sentence.
fn peer_host(info: &Info) -> &str {
    info.remote.as_deref().map_or("the peer's host", host)
}

/// Whose size is too small, and in which direction.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) is_own: bool,
    /// Whether it is the Send Size.
    pub(crate) is_send: bool,
    /// The least size that is no fault.
    pub(crate) wanted: u64,
}

/// Sets a size of one end to a larger value.
pub(crate) fn size(info: &Info, size: Size) -> String {
    let wanted = size.wanted.clamp(LINUX_DEFAULT, LINUX_MAX);
    let host = if size.is_own {
        "this host"
    } else {
        peer_host(info)
    };
    let is_client = info.is_client() == size.is_own;
    // This end is no Linux if it is not of the kernel's NFS. The peer is not known.
    if size.is_own && !info.is_of("nfs") {
        return if is_client {
            format!("connect with a size of {wanted} octets")
        } else {
            format!("on this host, set the sizes of the server to {wanted} octets")
        };
    }
    if is_client {
        let doubt = if size.is_own {
            ""
        } else {
            ", if it runs Linux"
        };
        let file = if size.is_send {
            CLIENT_SEND
        } else {
            CLIENT_RECEIVE
        };
        format!(
            "on {host}{doubt}: echo {wanted} > /proc/sys/sunrpc/{file} (a kernel without \
             CONFIG_SUNRPC_DEBUG does not have the file), then unmount and mount"
        )
    } else if size.is_own {
        format!(
            "on {host}: echo {wanted} > /proc/sys/sunrpc/svc_rdma/max_req_size, then unmount and \
             mount on the client"
        )
    } else {
        let port = port(info.remote.as_deref());
        set_server(host, &port, "sizes", wanted, "max_req_size")
    }
}

/// Makes the end that sends no private data send it.
pub(crate) fn private_data(info: &Info, is_own: bool) -> String {
    let host = if is_own { "this host" } else { peer_host(info) };
    if info.is_client() == is_own {
        format!("on {host}: use a client that sends it, as Linux 4.9 and later do")
    } else {
        format!("on {host}: use a server that sends it, as Linux 4.9 and later do; ask the vendor")
    }
}

/// Makes the server send its message at offset 0. If it does, this end should use what was
/// negotiated.
pub(crate) fn offset(info: &Info) -> String {
    match info.peer_offset {
        Some(1..) => format!(
            "on {}: use a version that sends the message at offset 0; ask the vendor",
            peer_host(info)
        ),
        _ => "on this host: unmount and mount; if it stays, report it with rpcrdma-cm report"
            .to_owned(),
    }
}

/// Loads the module before the mount of that server.
pub(crate) fn load(server: Option<&str>) -> String {
    let server = server.unwrap_or("the server");
    format!(
        "on this host, as root: modprobe rpcrdma_cm, then unmount and mount; without the module, \
         `rpcrdma-cm probe {server}` asks the server by rpcrdma-conformance"
    )
}

/// Reports a peer that breaks the rules.
pub(crate) fn report(info: &Info) -> String {
    format!(
        "on {}: update it, or report this to its vendor; rpcrdma-conformance shows more, on a test \
         machine",
        peer_host(info)
    )
}

/// Makes a server answer.
pub(crate) fn answer(info: &Info) -> String {
    format!(
        "on {}: look at its log; a Linux server needs threads: cat /proc/fs/nfsd/threads",
        peer_host(info)
    )
}

/// Negotiates again while the module is loaded.
pub(crate) fn negotiate_again(info: &Info) -> String {
    let host = if info.is_client() {
        "this host"
    } else {
        peer_host(info)
    };
    format!("on {host}: unmount and mount while the module is loaded on this host")
}

/// Looks for the cause of losses.
pub(crate) fn losses(server: Option<&str>) -> String {
    let server = server.unwrap_or("the server's host");
    format!(
        "`rpcrdma-cm history` has the reasons; then look at the log of {server}, and at `ip -s link` \
         and `rdma statistic` on both hosts"
    )
}

/// Finds out whether the server answers.
pub(crate) fn connect(server: Option<&str>) -> String {
    match server {
        Some(server) => format!("on this host: rpcrdma-cm probe {server}"),
        None => "on this host: probe the server with rpcrdma-cm probe".to_owned(),
    }
}

/// The transports of RDMA.
#[derive(Clone, Copy)]
pub(crate) enum Transport {
    InfiniBand,
    Roce,
    Iwarp,
}

/// Makes a server listen, or lets the connection through. `target` is its address and port, `reason`
/// why there was no connection, `transport` that of this host's port, if it is known.
pub(crate) fn listen(target: &str, reason: &str, transport: Option<Transport>) -> String {
    let port = port(Some(target));
    let server = host(target);
    let listens = format!(
        "on {server}, if it runs Linux: cat /proc/fs/nfsd/portlist; mount with the port of a line \
         `rdma`; without one: echo 'rdma {port}' > /proc/fs/nfsd/portlist"
    );
    let roce = "UDP port 4791 (RoCE)";
    let iwarp = format!("TCP port {port} (iWARP)");
    let through = |ports: &str| {
        format!(
            "let {ports} through the firewalls of both hosts and between them; `nft list ruleset` \
             and `tc filter show dev DEV ingress` show the rules of a host"
        )
    };
    let firewall = match transport {
        Some(Transport::Roce) => through(roce),
        Some(Transport::Iwarp) => through(&iwarp),
        Some(Transport::InfiniBand) => {
            format!("ask the subnet manager whether this host and {server} are in one partition")
        }
        None => through(&format!("{roce} or {iwarp}")),
    };
    // The host has answered, and nothing listens at that port.
    let is_refused = ["refused", "rejected"]
        .iter()
        .any(|word| reason.contains(word));
    match (is_refused, reason.contains("no answer in time")) {
        (true, _) => listens,
        (false, true) => format!("{firewall}\nthen {listens}"),
        (false, false) => format!("{listens}\nand {firewall}"),
    }
}

/// Mounts over RDMA in place of TCP. `mounts` are all of the host's.
///
/// A mount of version 3 over TCP does not have another one share its transport.
pub(crate) fn mount_again(mount: &Mount, mounts: &[Mount]) -> String {
    let point = quoted(&mount.mount_point);
    let mut points = vec![point.clone()];
    points.extend(
        mounts
            .iter()
            .filter(|other| {
                !other.is_rdma()
                    && other.address == mount.address
                    && other.version.as_deref() != Some("3")
            })
            .map(|other| quoted(&other.mount_point)),
    );
    points.sort_unstable();
    points.dedup();
    let again = if mount.is_rdma_in_fstab {
        format!(": mount {point}")
    } else {
        let version = mount.version.as_deref();
        format!(
            ", with its other options: mount -t nfs -o proto=rdma,port={}{} {} {point}",
            target::PORT,
            version.map_or_else(String::new, |version| format!(",vers={version}")),
            quoted(&mount.source)
        )
    };
    format!(
        "on this host, all mounts of {} over TCP: umount {}\nthen, before any other mount of \
         it{again}",
        mount.address.as_deref().unwrap_or("that server"),
        points.join(" ")
    )
}

/// Has the server at that address and port grant more credits.
pub(crate) fn credits(target: &str, wanted: u64) -> String {
    set_server(
        host(target),
        &port(Some(target)),
        "credits",
        wanted,
        "max_requests",
    )
}

/// Lets the client have more calls under way.
pub(crate) fn slots(slots: u64) -> String {
    let wanted = slots.saturating_mul(2).clamp(LINUX_SLOTS, LINUX_SLOTS_MAX);
    format!(
        "on this host: echo {wanted} > /proc/sys/sunrpc/rdma_slot_table_entries (a kernel without \
         CONFIG_SUNRPC_DEBUG does not have the file), or mount with nconnect=4; then unmount and \
         mount"
    )
}

/// Finds the fault of memory registrations.
pub(crate) fn registrations() -> String {
    "on this host: look for faults of the adapter in dmesg and in `rdma statistic`, and update its \
     firmware and driver"
        .to_owned()
}
