// SPDX-License-Identifier: GPL-2.0

//! The rules of `check`: whether this host, and a server, are ready for NFS over RDMA.
//!
//! Each rule makes one line or more from values that were read elsewhere.

use serde::Serialize;

use crate::{
    engine::Engine,
    parse::{
        info::{
            Info,
            Report, //
        },
        mounts::{
            Entry,
            Mount, //
        }, //
    },
    remedy,
    rpcbind::Registration,
    system_programs::{
        self,
        Pings, //
    },
    verdict::{
        self,
        Code,
        Severity, //
    }, //
};

/// The program of NFS (RFC 5662, section 2).
const NFS_PROGRAM: u32 = 100_003;

/// The credits that a probe asks for: the most that the module can.
pub(crate) const CREDITS: u64 = 64;

/// With fewer credits than any known server grants by default, calls are likely to wait.
const FEW_CREDITS: u64 = 32;

/// What the headers of RoCE take of an interface's MTU (`iboe_get_mtu`, include/rdma/ib_addr.h).
const ROCE_HEADERS: u64 = 40 + 8 + 12 + 4 + 28 + 4;

/// The path MTUs of InfiniBand and RoCE in octets, largest first.
const PATH_MTUS: [u64; 5] = [4096, 2048, 1024, 512, 256];

/// The MTU of Ethernet without jumbo frames.
const ETHERNET_MTU: u64 = 1500;

/// One line.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct Check {
    /// The subject, in words that are stable, because programs rely on them.
    check: &'static str,
    pub(crate) severity: Severity,
    pub(crate) sentence: String,
    pub(crate) remedy: Option<String>,
}

impl Check {
    pub(crate) fn new(
        check: &'static str,
        severity: Severity,
        sentence: impl Into<String>,
    ) -> Self {
        Self {
            check,
            severity,
            sentence: sentence.into(),
            remedy: None,
        }
    }

    fn with(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.check
    }
}

/// The exit status: 2 if something is missing, 1 if something works worse than it could. What is
/// unknown is no fault.
pub(crate) fn status(checks: &[Check]) -> u8 {
    match checks.iter().map(|check| check.severity).max() {
        Some(Severity::Failed) => 2,
        _ if checks
            .iter()
            .any(|check| check.severity == Severity::Degraded) =>
        {
            1
        }
        _ => 0,
    }
}

/// A port of an RDMA device.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Port {
    pub(crate) device: String,
    pub(crate) number: u64,
    /// `ACTIVE`, `DOWN`.
    pub(crate) state: String,
    pub(crate) is_iwarp: bool,
    pub(crate) is_ethernet: bool,
    /// The network interfaces whose addresses it has.
    pub(crate) interfaces: Vec<String>,
}

impl Port {
    fn is_active(&self) -> bool {
        self.state == "ACTIVE"
    }

    pub(crate) fn transport(&self) -> remedy::Transport {
        match (self.is_iwarp, self.is_ethernet) {
            (true, _) => remedy::Transport::Iwarp,
            (false, true) => remedy::Transport::Roce,
            (false, false) => remedy::Transport::InfiniBand,
        }
    }

    fn kind(&self) -> &'static str {
        match self.transport() {
            remedy::Transport::Iwarp => "iWARP",
            remedy::Transport::Roce => "RoCE",
            remedy::Transport::InfiniBand => "InfiniBand",
        }
    }
}

/// `modules`: NFS over RDMA of this kernel. `exists` says whether the module can be loaded, if that
/// is known.
pub(crate) fn modules(loaded: bool, exists: Option<bool>) -> Check {
    match (loaded, exists) {
        (true, _) => Check::new("modules", Severity::Fine, "rpcrdma is loaded"),
        (false, Some(true)) => Check::new(
            "modules",
            Severity::Fine,
            "rpcrdma is not loaded; the first mount over RDMA loads it",
        ),
        (false, Some(false)) => Check::new(
            "modules",
            Severity::Failed,
            "this kernel has no module rpcrdma: it cannot mount over RDMA",
        )
        .with(
            "on this host: install the rest of the kernel's modules (Ubuntu: \
             linux-modules-extra-$(uname -r)), or a kernel with CONFIG_SUNRPC_XPRT_RDMA; then \
             modprobe rpcrdma",
        ),
        (false, None) => Check::new(
            "modules",
            Severity::Unknown,
            "rpcrdma is not loaded, and it is unknown whether this kernel has it",
        )
        .with("on this host: modprobe rpcrdma"),
    }
}

/// `observer`: the files of the module rpcrdma_cm, and the sentence that says what it does not
/// observe.
pub(crate) fn observer(files: Result<Option<String>, String>) -> Check {
    match files {
        Ok(Some(limited)) => Check::new("observer", Severity::Note, limited),
        Ok(None) => Check::new(
            "observer",
            Severity::Fine,
            "rpcrdma_cm is loaded and its files can be read",
        ),
        Err(why) => Check::new(
            "observer",
            Severity::Note,
            "not known without the files of the module rpcrdma_cm: what each mount negotiated, and \
             why connections were lost",
        )
        .with(format!("on this host: {why}")),
    }
}

/// `engine`: what asks the server.
pub(crate) fn engine(found: &Result<Engine, String>) -> Check {
    let fine = |sentence: &str| Check::new("engine", Severity::Fine, sentence);
    match found {
        Ok(Engine::Kernel) => fine("the module rpcrdma_cm asks the server"),
        Ok(Engine::User) => fine("rpcrdma-conformance asks the server, without the module"),
        Err(why) => Check::new(
            "engine",
            Severity::Note,
            "nothing here can ask the server: the port, the answer to NULL, the private data and the \
             credits are unknown",
        )
        .with(format!("on this host: {why}")),
    }
}

/// `port`, if the engine could not ask.
pub(crate) fn not_asked(why: &str) -> Check {
    Check::new(
        "port",
        Severity::Unknown,
        format!("the server could not be asked: {why}"),
    )
}

/// The module of the RDMA driver that belongs to the driver of a network interface.
fn rdma_driver(driver: &str) -> Option<&'static str> {
    Some(match driver {
        "mlx5_core" => "mlx5_ib",
        "mlx4_core" | "mlx4_en" => "mlx4_ib",
        "ice" | "i40e" | "idpf" => "irdma",
        "bnxt_en" => "bnxt_re",
        "qede" => "qedr",
        "cxgb4" => "iw_cxgb4",
        "ionic" => "ionic_rdma",
        "ena" => "efa",
        "hns3" | "hclge" => "hns_roce_hw_v2",
        "mana" => "mana_ib",
        _ => return None,
    })
}

/// `device`: the ports of the RDMA devices. One that is down is a fault if it is the one that leads
/// to the server, or if none is active. `drivers` are those of the network interfaces.
pub(crate) fn devices(ports: &[Port], towards: Option<&str>, drivers: &[String]) -> Vec<Check> {
    if ports.is_empty() {
        let mut found: Vec<&str> = drivers
            .iter()
            .filter_map(|driver| rdma_driver(driver))
            .collect();
        found.sort_unstable();
        found.dedup();
        let remedy = match found.as_slice() {
            [] => {
                "on this host: load the adapter's RDMA driver (mlx5_ib, irdma, bnxt_re, ...); for \
                   a test without an adapter: rdma link add rxe0 type rxe netdev eth0"
                    .to_owned()
            }
            found => format!("on this host: modprobe -a {}", found.join(" ")),
        };
        return vec![
            Check::new("device", Severity::Failed, "this host has no RDMA device").with(remedy),
        ];
    }
    let is_used = |port: &Port| match towards {
        Some(interface) => port.interfaces.iter().any(|name| name == interface),
        None => !ports.iter().any(Port::is_active),
    };
    let mut checks: Vec<Check> = ports
        .iter()
        .map(|port| {
            let Port {
                device,
                number,
                state,
                ..
            } = port;
            let interfaces = match port.interfaces.join(", ") {
                names if names.is_empty() => String::new(),
                names => format!(", of {names}"),
            };
            let sentence = format!(
                "port {number} of {device} ({}{interfaces}) is {}",
                port.kind(),
                state.to_lowercase()
            );
            let down = if is_used(port) { Severity::Failed } else { Severity::Note };
            match (port.is_active(), port.interfaces.first()) {
                (true, _) => Check::new("device", Severity::Fine, sentence),
                (false, Some(name)) if port.is_ethernet => Check::new("device", down, sentence)
                    .with(format!(
                        "on this host: ip link set dev {name} up, and look at its cable and switch"
                    )),
                (false, _) => Check::new("device", down, sentence).with(
                    "look at the cable, and whether a subnet manager runs (opensm, or the switch's)",
                ),
            }
        })
        .collect();
    if let Some(interface) = towards {
        if !ports.iter().any(is_used) {
            checks.push(
                Check::new(
                    "device",
                    Severity::Failed,
                    format!(
                        "the route to the server leaves by {interface}, which has no RDMA device"
                    ),
                )
                .with(
                    "on this host: use the server's address in the network of the RDMA adapter, or \
                     change the route",
                ),
            );
        }
    }
    checks
}

/// `mtu`: of an interface of that port. InfiniBand has none: its subnet manager sets the path MTU.
pub(crate) fn mtu(port: &Port, interface: &str, mtu: u64) -> Option<Check> {
    let remedy = format!(
        "on this host: ip link set dev {interface} mtu 9000; on the server the same for its \
         interface, and on each switch between them; then unmount and mount"
    );
    let has = format!("{interface} has an MTU of {mtu}");
    if !port.is_ethernet && !port.is_iwarp {
        return None;
    }
    if port.is_iwarp {
        return Some(if mtu <= ETHERNET_MTU {
            Check::new(
                "mtu",
                Severity::Note,
                format!("{has}; with 9000, iWARP needs a sixth of the packets"),
            )
            .with(remedy)
        } else {
            Check::new("mtu", Severity::Fine, has)
        });
    }
    let left = mtu.saturating_sub(ROCE_HEADERS);
    Some(match PATH_MTUS.iter().find(|path| **path <= left) {
        Some(4096) => Check::new(
            "mtu",
            Severity::Fine,
            format!("{has}: RoCE's path MTU is 4096, the largest"),
        ),
        Some(path) => Check::new(
            "mtu",
            Severity::Degraded,
            format!("{has}: RoCE's path MTU is {path} in place of 4096"),
        )
        .with(remedy),
        None => Check::new(
            "mtu",
            Severity::Failed,
            format!("{has}, which is too small for RoCE"),
        )
        .with(remedy),
    })
}

/// `path`: whether packets as long as the MTU reach the server, whose address is `server`, and how many
/// of them are lost. `short` are pings of a length that every link takes.
///
/// A loss makes the transport wait for half a second, so that one in a thousand can be felt.
pub(crate) fn path(server: &str, mtu: u64, long: Pings, short: Pings) -> Check {
    match (long.answered, short.answered) {
        (1.., _) if long.answered < long.sent => Check::new(
            "path",
            Severity::Degraded,
            format!(
                "{} of {} packets of {mtu} octets to {server} were lost: RDMA waits half a second \
                 for each",
                long.sent - long.answered,
                long.sent
            ),
        )
        .with(
            "on both hosts, look for errors and drops whose counts grow between two readings: `ip \
             -s link`, `tc -s qdisc`, `ethtool -S`, `rdma statistic`\nthen look at the cable of \
             that interface, the ports of the switch, and its flow control (PFC) or ECN",
        ),
        (1.., _) => Check::new(
            "path",
            Severity::Fine,
            format!(
                "{} of {} packets of {mtu} octets reach {server} and come back",
                long.answered, long.sent
            ),
        ),
        (0, 1..) => Check::new(
            "path",
            Severity::Failed,
            format!("packets of {mtu} octets are lost on the way to {server}, short ones are not"),
        )
        .with(format!(
            "give the server and each switch between them an MTU of {mtu} or more, or this host's \
             interface a smaller one: ping -M do -s {} {server}",
            mtu.saturating_sub(system_programs::ping_headers(server.contains(':')))
        )),
        (0, 0) => Check::new(
            "path",
            Severity::Unknown,
            format!("{server} does not answer ping: unknown which MTU the path has"),
        ),
    }
}

/// `path`, without a route.
pub(crate) fn no_route(server: &str) -> Check {
    Check::new(
        "path",
        Severity::Failed,
        format!("this host has no route to {server}"),
    )
    .with(format!(
        "on this host: give the interface of the RDMA adapter an address in the network of {server}"
    ))
}

/// `rpcbind`: what the server's rpcbind says of NFS over RDMA. Linux' client does not ask it, and
/// Linux' server does not tell it.
pub(crate) fn rpcbind(server: &str, port: u16, found: Result<Vec<Registration>, String>) -> Check {
    let registrations = match found {
        Ok(registrations) => registrations,
        Err(why) => {
            return Check::new(
                "rpcbind",
                Severity::Note,
                format!(
                    "rpcbind of {server} gives no answer ({why}): only version 3 of NFS needs it"
                ),
            )
        }
    };
    let nfs: Vec<&Registration> = registrations
        .iter()
        .filter(|registration| registration.program == NFS_PROGRAM)
        .collect();
    let ports = |is_wanted: fn(&str) -> bool| {
        let mut ports: Vec<u16> = nfs
            .iter()
            .filter(|registration| is_wanted(&registration.netid))
            .filter_map(|registration| registration.port)
            .collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    };
    let over_rdma = ports(|netid| matches!(netid, "rdma" | "rdma6"));
    let over_tcp = ports(|netid| matches!(netid, "tcp" | "tcp6"));
    let words: Vec<String> = over_rdma.iter().map(u16::to_string).collect();
    let words = words.join(" and ");
    if over_rdma.contains(&port) {
        Check::new(
            "rpcbind",
            Severity::Fine,
            format!("rpcbind of {server} has NFS over RDMA at port {port}"),
        )
    } else if !over_rdma.is_empty() {
        Check::new(
            "rpcbind",
            Severity::Degraded,
            format!("rpcbind of {server} has NFS over RDMA at port {words}, not at {port}"),
        )
        .with(format!("on this host: mount with proto=rdma,port={words}"))
    } else if over_tcp.contains(&port) {
        Check::new(
            "rpcbind",
            Severity::Degraded,
            format!("rpcbind of {server} has NFS at port {port} as TCP, not as RDMA"),
        )
        .with(format!(
            "on {server}: let the server register the netid rdma; with a Linux client, mount with \
             proto=rdma,port={port}"
        ))
    } else {
        Check::new(
            "rpcbind",
            Severity::Note,
            format!(
                "rpcbind of {server} names no port for RDMA, as usual with Linux: each client, also \
                 one that asks rpcbind, needs port {port} in its own settings; this host: \
                 proto=rdma,port={port}"
            ),
        )
    }
}

/// `port`, without the module: whether the port takes a connection of TCP, which iWARP begins with.
pub(crate) fn tcp_port(target: &str, connected: std::io::Result<()>) -> Check {
    match connected {
        Ok(()) => Check::new(
            "port",
            Severity::Fine,
            format!("{target} accepts a connection of TCP, on which iWARP begins"),
        ),
        Err(error) => {
            // As the module says it.
            let reason = match error.kind() {
                std::io::ErrorKind::ConnectionRefused => "the peer's host refused the connection",
                std::io::ErrorKind::TimedOut => "no answer in time",
                _ => &*error.to_string(),
            };
            no_connection(target, reason, Some(remedy::Transport::Iwarp))
        }
    }
}

fn no_connection(target: &str, reason: &str, transport: Option<remedy::Transport>) -> Check {
    Check::new(
        "port",
        Severity::Failed,
        format!("no connection to {target} over RDMA: {reason}"),
    )
    .with(remedy::listen(target, reason, transport))
}

/// The answer to NULL of that version of NFS.
pub(crate) fn answer(report: &Report, version: u64) -> String {
    match &report.rpc_version_1 {
        // The server does not have it, and NULL of another version was called.
        _ if report
            .program_version
            .is_some_and(|called| called != version) =>
        {
            format!(
                "the server has only {}",
                report.program_versions.as_deref().unwrap_or("others")
            )
        }
        Some(answer) => answer.clone(),
        None => "no reply".to_owned(),
    }
}

/// The lines of a probe of the server: `port`, `null`, `private-data`, `credits`. `versions` are NFS
/// versions, each with the answer to its NULL. `transport` leads to the server, if it is known.
pub(crate) fn of_report(
    target: &str,
    report: &Report,
    versions: &[(u64, String)],
    transport: Option<remedy::Transport>,
) -> Vec<Check> {
    if report.reachable != Some(true) {
        let reason = report.reason.as_deref().unwrap_or("no reason is known");
        return vec![no_connection(target, reason, transport)];
    }
    let mut checks = vec![Check::new(
        "port",
        Severity::Fine,
        format!("{target} accepts a connection over RDMA"),
    )];
    checks.extend(null(versions));
    let mut of_offers = verdict::of_report(target, report);
    of_offers.retain(|verdict| {
        matches!(
            verdict.code,
            Code::NoPrivateData | Code::Deviates | Code::Unknown
        )
    });
    // The probe had the sizes of this host's mounts, so that their sysctls are the remedy.
    of_offers.extend(verdict::sizes(&Info {
        origin: Some("nfs".to_owned()),
        ..report.info.clone()
    }));
    if of_offers.is_empty() {
        let threshold = |value: Option<u64>| value.map_or("?".to_owned(), |v| v.to_string());
        checks.push(Check::new(
            "private-data",
            Severity::Fine,
            format!(
                "calls of up to {} octets and replies of up to {} would go inline",
                threshold(report.info.client_to_server_threshold),
                threshold(report.info.server_to_client_threshold)
            ),
        ));
    }
    checks.extend(of_offers.into_iter().map(|verdict| Check {
        check: "private-data",
        severity: verdict.severity,
        sentence: verdict.sentence,
        remedy: verdict.remedy,
    }));
    checks.extend(
        report
            .info
            .credits_granted
            .map(|granted| credits(target, granted)),
    );
    checks
}

/// `null`: a server needs one version of NFS only. The others are told.
fn null(versions: &[(u64, String)]) -> Option<Check> {
    let succeeded = |answer: &str| answer == "SUCCESS";
    let words: Vec<String> = versions
        .iter()
        .map(|(version, answer)| {
            if succeeded(answer) {
                format!("NFS {version} answers NULL")
            } else {
                format!("NFS {version}: {answer}")
            }
        })
        .collect();
    if words.is_empty() {
        return None;
    }
    let is_fine = versions.iter().any(|(_, answer)| succeeded(answer));
    let severity = if is_fine {
        Severity::Fine
    } else {
        Severity::Failed
    };
    let check = Check::new("null", severity, words.join("; "));
    Some(if is_fine {
        check
    } else {
        check.with(
            "on the server: look at its log; a Linux server needs threads: cat \
             /proc/fs/nfsd/threads",
        )
    })
}

/// `credits`: what the server granted of [`CREDITS`].
fn credits(target: &str, granted: u64) -> Check {
    let server = remedy::host(target);
    if granted >= CREDITS {
        return Check::new(
            "credits",
            Severity::Fine,
            format!("{server} grants {granted} credits"),
        );
    }
    let sentence = format!(
        "{server} grants {} of {CREDITS}: no more calls are under way at a time",
        verdict::number_of(granted, "credit")
    );
    if granted < FEW_CREDITS {
        Check::new("credits", Severity::Degraded, sentence).with(remedy::credits(target, 128))
    } else {
        Check::new("credits", Severity::Note, sentence)
    }
}

/// `fstab`: a line of `/etc/fstab` that asks for RDMA, and what is mounted there.
pub(crate) fn fstab(entry: &Entry, mounts: &[Mount]) -> Check {
    let point = &entry.mount_point;
    // The last one covers the others.
    let mounted = mounts
        .iter()
        .rev()
        .find(|mount| mount.mount_point == *point);
    match mounted {
        Some(mount) if mount.is_rdma() => Check::new(
            "fstab",
            Severity::Fine,
            format!("{point} is mounted over RDMA"),
        ),
        Some(mount) => {
            let protocol = mount.protocol.as_deref().unwrap_or("another transport");
            let mut asked = mount.clone();
            asked.is_rdma_in_fstab = true;
            Check::new(
                "fstab",
                Severity::Failed,
                format!(
                    "{point} asks for RDMA and is mounted over {}",
                    protocol.to_uppercase()
                ),
            )
            .with(remedy::mount_again(&asked, mounts))
        }
        None if entry.is_mounted_later() => Check::new(
            "fstab",
            Severity::Note,
            format!("{point} asks for RDMA and is not mounted, by noauto or x-systemd.automount"),
        ),
        None => Check::new(
            "fstab",
            Severity::Failed,
            format!("{point} asks for RDMA and is not mounted"),
        )
        .with(format!(
            "on this host: mount {point} shows why\nif that works, the RDMA device appeared too late \
             for the start of the system: add the option x-systemd.after=rdma-hw.target, and by \
             systemctl edit rdma-hw.target the lines [Unit] and Wants=UNIT, with the UNIT that \
             systemd-escape -p --suffix=mount {point} prints"
        )),
    }
}

/// `mount`: a mount that asked for RDMA without a line of `/etc/fstab`, and got
/// another transport.
pub(crate) fn mount(mount: &Mount, mounts: &[Mount]) -> Option<Check> {
    verdict::not_rdma(mount, mounts).map(|verdict| Check {
        check: "mount",
        severity: verdict.severity,
        sentence: format!("{}: {}", mount.mount_point, verdict.sentence),
        remedy: verdict.remedy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{
        info,
        mounts::{
            mountinfo,
            rdma_entries, //
        }, //
    };
    use Severity::{
        Degraded,
        Failed,
        Fine,
        Note,
        Unknown, //
    };

    fn port(state: &str, interface: &str) -> Port {
        Port {
            device: "mlx5_0".to_owned(),
            number: 1,
            state: state.to_owned(),
            is_iwarp: false,
            is_ethernet: true,
            interfaces: vec![interface.to_owned()],
        }
    }

    #[test]
    fn of_modules() {
        for (loaded, exists, expected) in [
            (true, None, Fine),
            (true, Some(false), Fine),
            (false, Some(true), Fine),
            (false, Some(false), Failed),
            (false, None, Unknown),
        ] {
            assert_eq!(modules(loaded, exists).severity, expected);
        }
    }

    #[test]
    fn of_devices() {
        let severities = |ports: &[Port], towards| -> Vec<Severity> {
            devices(ports, towards, &[])
                .iter()
                .map(|check| check.severity)
                .collect()
        };
        let (up, down) = (port("ACTIVE", "eth1"), port("DOWN", "eth2"));
        assert_eq!(severities(&[], None), [Failed]);
        assert_eq!(severities(&[up.clone()], None), [Fine]);
        assert_eq!(severities(&[down.clone()], None), [Failed]);
        let both = [up, down];
        assert_eq!(severities(&both, None), [Fine, Note]);
        assert_eq!(severities(&both, Some("eth1")), [Fine, Note]);
        assert_eq!(severities(&both, Some("eth2")), [Fine, Failed]);
        assert_eq!(severities(&both, Some("eth3")), [Fine, Note, Failed]);
        let drivers = ["e1000", "ice", "mlx5_core", "ice"].map(str::to_owned);
        let remedy = devices(&[], None, &drivers)[0].remedy.clone();
        assert_eq!(
            remedy.as_deref(),
            Some("on this host: modprobe -a irdma mlx5_ib")
        );
    }

    /// The path MTUs are those of `iboe_get_mtu`: the headers take 96 octets.
    #[test]
    fn of_mtus() {
        let roce = port("ACTIVE", "eth1");
        for (octets, severity, words) in [
            (9000, Fine, "path MTU is 4096"),
            (4192, Fine, "path MTU is 4096"),
            (4191, Degraded, "path MTU is 2048"),
            (1500, Degraded, "path MTU is 1024"),
            (352, Degraded, "path MTU is 256"),
            (351, Failed, "too small"),
        ] {
            let check = mtu(&roce, "eth1", octets).unwrap();
            assert_eq!(check.severity, severity, "{octets}");
            assert!(check.sentence.contains(words), "{}", check.sentence);
        }
        let iwarp = Port {
            is_iwarp: true,
            ..roce.clone()
        };
        assert_eq!(mtu(&iwarp, "eth1", 1500).unwrap().severity, Note);
        assert_eq!(mtu(&iwarp, "eth1", 9000).unwrap().severity, Fine);
        let infiniband = Port {
            is_ethernet: false,
            ..roce
        };
        assert_eq!(mtu(&infiniband, "ib0", 2044), None);
        for (long, short, expected) in [
            (20, 20, Fine),
            (19, 19, Degraded),
            (1, 1, Degraded),
            (0, 20, Failed),
            (0, 1, Failed),
            (0, 0, Unknown),
        ] {
            let pings = |answered| Pings { sent: 20, answered };
            let check = path("s", 9000, pings(long), pings(short));
            assert_eq!(check.severity, expected, "{long} {short}");
        }
        for (server, command) in [
            ("10.0.0.2", "ping -M do -s 8972 10.0.0.2"),
            ("fd77::2", "ping -M do -s 8952 fd77::2"),
        ] {
            let pings = |answered| Pings { sent: 20, answered };
            let remedy = path(server, 9000, pings(0), pings(20)).remedy.unwrap();
            assert!(remedy.ends_with(command), "{remedy}");
        }
    }

    #[test]
    fn of_registrations() {
        let one = |program, netid: &str, port| Registration {
            program,
            version: 3,
            netid: netid.to_owned(),
            port: Some(port),
        };
        for (found, severity, words) in [
            (Err("refused".to_owned()), Note, "no answer (refused)"),
            (Ok(vec![]), Note, "names no port for RDMA"),
            (
                Ok(vec![one(NFS_PROGRAM, "tcp", 2049)]),
                Note,
                "names no port for RDMA",
            ),
            (
                Ok(vec![one(NFS_PROGRAM, "rdma6", 20049)]),
                Fine,
                "over RDMA at port 20049",
            ),
            (
                Ok(vec![one(7, "rdma", 20049)]),
                Note,
                "names no port for RDMA",
            ),
            (
                Ok(vec![one(NFS_PROGRAM, "rdma", 2050)]),
                Degraded,
                "at port 2050, not at 20049",
            ),
            (
                Ok(vec![one(NFS_PROGRAM, "tcp", 20049)]),
                Degraded,
                "as TCP, not as RDMA",
            ),
        ] {
            let check = rpcbind("s", 20049, found);
            assert_eq!(check.severity, severity, "{}", check.sentence);
            assert!(check.sentence.contains(words), "{}", check.sentence);
        }
    }

    #[test]
    fn of_reports() {
        let found = |changes: &str, answers: &[(u64, &str)]| -> Vec<(&'static str, Severity)> {
            let text = format!(
                "reachable: yes\nrpc_version_1: SUCCESS\norigin: module\nrole: client\n\
                 peer_private_data: present\ncredits_granted: 64\n{changes}"
            );
            let answers: Vec<(u64, String)> = answers
                .iter()
                .map(|(version, answer)| (*version, (*answer).to_owned()))
                .collect();
            of_report("10.0.0.2:20049", &info::report(&text), &answers, None)
                .iter()
                .map(|check| (check.check, check.severity))
                .collect()
        };
        let both = [(3, "SUCCESS"), (4, "SUCCESS")];
        let sound = [
            ("port", Fine),
            ("null", Fine),
            ("private-data", Fine),
            ("credits", Fine),
        ];
        assert_eq!(found("", &both), sound);
        assert_eq!(found("", &[(3, "no version 3"), (4, "SUCCESS")]), sound);
        for (changes, answers, index, expected) in [
            ("", [(3, "x"), (4, "y")], 1, ("null", Failed)),
            (
                "peer_private_data: absent\n",
                both,
                2,
                ("private-data", Degraded),
            ),
            (
                "local_send_size: 1024\n",
                both,
                2,
                ("private-data", Degraded),
            ),
            ("credits_granted: 4\n", both, 3, ("credits", Degraded)),
            ("credits_granted: 32\n", both, 3, ("credits", Note)),
        ] {
            let mut wanted = sound;
            wanted[index] = expected;
            assert_eq!(found(changes, &answers), wanted);
        }
        assert_eq!(found("reachable: no: x\n", &[]), [("port", Failed)]);
    }

    /// The remedy names the transport that leads to the server.
    #[test]
    fn of_firewalls() {
        let report = info::report("reachable: no: no answer in time\n");
        let roce = port("ACTIVE", "eth1");
        let iwarp = Port {
            is_iwarp: true,
            ..roce.clone()
        };
        let infiniband = Port {
            is_ethernet: false,
            ..roce.clone()
        };
        for (port, udp, tcp) in [
            (Some(roce), true, false),
            (Some(iwarp), false, true),
            (Some(infiniband), false, false),
            (None, true, true),
        ] {
            let transport = port.as_ref().map(Port::transport);
            let checks = of_report("10.0.0.2:7", &report, &[], transport);
            let remedy = checks[0].remedy.as_deref().unwrap();
            assert_eq!(remedy.contains("UDP port 4791"), udp, "{remedy}");
            assert_eq!(remedy.contains("TCP port 7 "), tcp, "{remedy}");
            assert_eq!(remedy.contains("nft list ruleset"), udp || tcp, "{remedy}");
            assert_eq!(remedy.lines().count(), 2);
        }
    }

    #[test]
    fn of_fstab() {
        let mounts = mountinfo(
            "1 2 0:3 / /a rw - nfs4 s:/ rw,proto=rdma,port=20049\n\
             1 2 0:3 / /b rw - nfs4 s:/ rw,proto=tcp6\n",
        );
        for (line, expected) in [
            ("s:/ /a nfs rdma", Fine),
            ("s:/ /b nfs proto=rdma", Failed),
            ("s:/ /c nfs proto=rdma6", Failed),
            ("s:/ /c nfs rdma,noauto", Note),
            ("s:/ /c nfs x-systemd.automount,rdma", Note),
        ] {
            let entry = rdma_entries(line).remove(0);
            assert_eq!(fstab(&entry, &mounts).severity, expected, "{line}");
        }
        let check = fstab(&rdma_entries("s:/ /b nfs rdma").remove(0), &mounts);
        assert_eq!(check.sentence, "/b asks for RDMA and is mounted over TCP6");
    }

    #[test]
    fn statuses() {
        let one = |severity| Check::new("port", severity, "");
        for (severities, expected) in [
            (&[][..], 0),
            (&[Note, Fine, Unknown], 0),
            (&[Unknown, Degraded], 1),
            (&[Degraded, Failed], 2),
        ] {
            let checks: Vec<Check> = severities.iter().map(|severity| one(*severity)).collect();
            assert_eq!(status(&checks), expected);
        }
    }
}
