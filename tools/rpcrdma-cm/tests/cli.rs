// SPDX-License-Identifier: GPL-2.0

//! The program as it is run, over directories of files in place of debugfs and /proc.

// A test panics where something is not as it must be.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    io::Write,
    net::TcpListener,
    os::unix::fs::{
        symlink,
        FileTypeExt,
        PermissionsExt, //
    },
    path::{
        Path,
        PathBuf, //
    },
    process::{
        Command,
        Output,
        Stdio, //
    },
    thread,
    time::{
        Duration,
        Instant, //
    }, //
};

use serde_json::Value;

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// A directory of one test with `debugfs` and `proc`.
struct World(PathBuf);

impl World {
    /// Without anything.
    fn empty(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&root);
        let world = Self(root);
        world.write("proc/self/mountinfo", "");
        world.write("proc/self/mountstats", "");
        world
    }

    /// With the files of a real guest.
    fn guest(name: &str) -> Self {
        let world = Self::empty(name);
        copy(&Path::new(FOLDER).join("tests/fixtures/guest"), &world.0);
        world
    }

    fn write(&self, path: &str, octets: impl AsRef<[u8]>) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, octets).unwrap();
    }

    /// A script of the shell in place of a program of the system.
    fn program(&self, name: &str, script: &str) {
        let path = format!("bin/{name}");
        self.write(&path, format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(self.0.join(path), PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// A connection with this `info`, and no private data.
    fn connection(&self, id: u64, info: &str) {
        let path = format!("debugfs/connection/{id}");
        self.write(&format!("{path}/info"), format!("id: {id}\n{info}"));
        self.write(&format!("{path}/sent"), "");
        self.write(&format!("{path}/received"), "");
    }

    /// A transport of sunrpc with four credits, all of which are in use, on which two calls wait.
    fn transport(&self, name: &str, address: &str, port: u16) {
        let path = format!("sys/kernel/sunrpc/xprt-switches/switch-0/{name}");
        self.write(&format!("{path}/dstaddr"), format!("{address}\n"));
        let info =
            "cur_cong=1024\ncong_win=1024\nmax_num_slots=128\nsending_q_len=2\npending_q_len=4\n\
                    backlog_q_len=0\n";
        self.write(
            &format!("{path}/xprt_info"),
            format!("{info}dst_port={port}\n"),
        );
        self.write(&format!("{path}/xprt_state"), "state= CONNECTED  BOUND\n");
    }

    /// A process in a mount namespace.
    fn process(&self, pid: &str, namespace: u64, mountinfo: &str) {
        self.write(&format!("proc/{pid}/mountinfo"), mountinfo);
        self.write(&format!("proc/{pid}/mountstats"), "");
        fs::create_dir_all(self.0.join(format!("proc/{pid}/ns"))).unwrap();
        let link = self.0.join(format!("proc/{pid}/ns/mnt"));
        symlink(format!("mnt:[{namespace}]"), link).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rpcrdma-cm"));
        command
            .args(words)
            .arg("--debugfs")
            .arg(self.0.join("debugfs"))
            .arg("--proc")
            .arg(self.0.join("proc"))
            .arg("--sys")
            .arg(self.0.join("sys"))
            .arg("--fstab")
            .arg(self.0.join("fstab"));
        command
    }

    fn run(&self, words: &[&str]) -> (i32, String, String) {
        result(self.command(words).output().unwrap())
    }

    /// Runs a command that has to succeed without a complaint.
    fn show(&self, words: &[&str]) -> String {
        let (status, out, err) = self.run(words);
        assert_eq!((status, &*err), (0, ""), "{words:?}: {out}");
        out
    }
}

fn result(output: Output) -> (i32, String, String) {
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

const HISTORY: &str = "\
TIME      DATE                     ID ORIGIN ROLE   EVENT          LOCAL         REMOTE          GEN LASTED_MS C2S        S2C  INV REASON
61.204518 2026-11-22T01:02:03.456Z 1  nfs    client established    10.77.1.1:123 10.77.1.2:20049 1   -         4096       4096 no  -
75.010022 2026-11-22T01:02:17.262Z 1  nfs    client lost           10.77.1.1:123 10.77.1.2:20049 1   13806     4096       4096 no  transport retry counter exceeded
80.310022 2026-11-22T01:02:22.562Z 1  nfs    client re-established 10.77.1.1:124 10.77.1.2:20049 2   -         4096>65536 4096 no  -
";

const MOUNT: &str =
    "36 35 0:47 / /mnt rw - nfs4 10.77.1.2:/ rw,vers=4.2,proto=rdma,port=20049,addr=10.77.1.2\n";
const CLIENT: &str = "origin: nfs\nrole: client\nstate: established\nremote: 10.77.1.2:20049\n\
                      peer_private_data: present\n";

/// Every command with `--json`, of a real guest and of texts that leave out all they can.
#[test]
fn json_is_as_the_schema_says() {
    let world = World::guest("schema");
    world.write("debugfs/history", HISTORY);
    world.process(
        "self",
        1,
        &(fs::read_to_string(world.0.join("proc/self/mountinfo")).unwrap()),
    );
    world.process("7", 2, MOUNT);
    let bare = World::empty("schema-bare");
    bare.write("debugfs/connections", "ID\n1\n");
    bare.write("debugfs/stats", "");
    bare.write("debugfs/history", "EVENT\nlost\n");
    bare.write("debugfs/probe", "reachable: no: refused\n");
    bare.write(
        "proc/self/mountinfo",
        "1 1 0:1 / /m rw - nfs s rw,proto=rdma\n",
    );
    bare.connection(1, "");
    let ids = |world: &World| -> Vec<String> {
        world
            .show(&[])
            .lines()
            .skip(1)
            .map(|line| line.split_whitespace().next().unwrap().to_owned())
            .collect()
    };
    let mut documents = String::new();
    for world in [&world, &bare] {
        for words in [
            &["connections", "--json"][..],
            &["--json"],
            &["watch", "--json", "--count", "2", "--interval", "1"],
            &["mounts", "--json"],
            &["history", "--json"],
            &["metrics", "--json"],
        ] {
            documents += &world.show(words);
        }
        documents += &world.run(&["mounts", "--all-namespaces", "--json"]).1;
        for id in ids(world) {
            documents += &world.show(&["show", &id, "--json"]);
        }
    }
    for report in [
        fs::read_to_string(world.0.join("debugfs/probe")).unwrap(),
        "reachable: no: refused\n".to_owned(),
    ] {
        documents += &probe(&world, &report, &["192.0.2.7", "--json"]).1;
    }
    documents += &world.run(&["check", "127.0.0.1:/", "--json"]).1;
    documents += &bare.run(&["check", "--json"]).1;
    // Without the module.
    let without = World::empty("schema-none");
    without.write("proc/self/mountinfo", MOUNT);
    without.transport("xprt-0-rdma", "10.77.1.2", 20049);
    documents += &without.run(&["mounts", "--json"]).1;
    documents += &without.run(&["metrics", "--json"]).1;
    assert!(documents.lines().count() > 20, "{documents}");

    let mut validator = Command::new("python3")
        .arg(format!("{FOLDER}/tests/validate.py"))
        .arg(format!("{FOLDER}/schema.json"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    validator
        .stdin
        .take()
        .unwrap()
        .write_all(documents.as_bytes())
        .unwrap();
    let (status, out, err) = result(validator.wait_with_output().unwrap());
    assert_eq!(status, 0, "{out}{err}");
}

/// Runs `probe`, with `report` in the place of the module's. A probe writes at the beginning of the
/// file, so the report has a first line that it overwrites.
fn probe(world: &World, report: &str, words: &[&str]) -> (i32, String, String) {
    world.write("debugfs/probe", format!("{:99}\n{report}", ""));
    world.run(&[&["probe"], words].concat())
}

#[test]
fn exit_status_of_probe() {
    let world = World::empty("probe");
    let good = "reachable: yes\nrpc_version_1: SUCCESS\nrpc_version_2: ERR_VERS\norigin: module\n\
                role: client\npeer_private_data: present\n";
    for (report, expected, sentence) in [
        (good, 0, "  fine\n"),
        (
            &good.replace("present", "absent"),
            1,
            "sends no RFC 8797 private data",
        ),
        (
            &format!("{good}deviation: x\n"),
            1,
            "  degraded: deviation of the server: x\n",
        ),
        (
            &format!("{good}program: 100003\nprogram_version: 3\nprogram_versions: 3 to 3\n"),
            0,
            "  NULL of NFS version 3 in version 1 of RPC-over-RDMA: SUCCESS\n",
        ),
        (
            &good.replace("SUCCESS", "the server answered with a message of 0 octets"),
            1,
            "  degraded: NULL has no result: the server answered with a message of 0 octets\n",
        ),
        (
            &good.replace("SUCCESS", "no reply"),
            1,
            "does not answer NULL: no reply",
        ),
        (
            "reachable: no: connection refused\n",
            2,
            "  failed: unreachable: connection refused\n    on 192.0.2.7, if it runs Linux: ",
        ),
        ("", 3, "no report"),
    ] {
        let (status, out, err) = probe(&world, report, &["192.0.2.7"]);
        assert_eq!((status, &*err), (expected, ""), "{out}");
        assert!(out.contains(sentence), "{out}");
    }
    // As it was written.
    let line = |words: &str| {
        probe(&world, good, &words.split(' ').collect::<Vec<_>>());
        let text = fs::read_to_string(world.0.join("debugfs/probe")).unwrap();
        text.lines().next().unwrap().to_owned()
    };
    assert_eq!(line("192.0.2.7"), "192.0.2.7:20049");
    assert_eq!(
        line(
            "[fe80::7%eth0]:9 --send 8192 --receive 2048 --invalidation --from fe80::1%eth0 \
             --timeout-ms 100 --program 100021 --version 3 --rpcvers auto"
        ),
        "[fe80::7%eth0]:9 send=8192 recv=2048 inv=1 from=[fe80::1%eth0] timeout_ms=100 \
         program=100021 version=3 rpcvers=auto"
    );
    assert_eq!(
        line("192.0.2.7 --from 192.0.2.1"),
        "192.0.2.7:20049 from=192.0.2.1"
    );
    let (status, _, err) = world.run(&["probe", "192.0.2.7:0"]);
    assert_eq!((status, err.lines().count()), (3, 1), "{err}");
    assert_eq!(world.run(&["probe", "192.0.2.7", "--rpcvers", "3"]).0, 3);
}

/// A host with one RoCE device, and programs in place of those of the system.
fn ready(name: &str) -> World {
    let world = World::empty(name);
    let port = "sys/class/infiniband/mlx5_0/ports/1";
    world.write(&format!("{port}/state"), "4: ACTIVE\n");
    world.write(&format!("{port}/link_layer"), "Ethernet\n");
    world.write(&format!("{port}/gid_attrs/ndevs/0"), "eth1\n");
    world.write("sys/class/infiniband/mlx5_0/node_type", "1: CA\n");
    world.write("sys/module/rpcrdma/refcnt", "0\n");
    world.write("debugfs/connections", "ID\n");
    world.write("debugfs/probe", format!("{:99}\n{REPORT}", ""));
    for (name, text) in [
        (
            "ip",
            "case \"$2\" in route) echo '[{\"dev\":\"eth1\"}]' ;; link) echo '[{\"mtu\":9000}]' ;; esac",
        ),
        // Long packets are answered unless a file says otherwise. An old ping.
        (
            "ping",
            "[ \"$5\" = 0.2 ] || exit 2; size=${11} answered=20\n\
             [ ! -e \"${0%/*}/lossy\" ] || answered=19\n\
             [ \"$size\" -lt 1000 ] || [ ! -e \"${0%/*}/short\" ] || answered=0\n\
             echo \"20 packets transmitted, $answered received\"",
        ),
        ("modprobe", "[ -e \"${0%/*}/rpcrdma\" ]"),
    ] {
        world.program(name, text);
    }
    world
}

/// Gives the device a second port, which has no cable, and both ports' interfaces the same function
/// of PCI.
fn two_ports(world: &World, link_layer: &str, ndevs: bool) {
    let device = "sys/class/infiniband/mlx5_0";
    fs::remove_dir_all(world.0.join(device).join("ports/1/gid_attrs")).unwrap();
    for (number, state) in [(1, "4: ACTIVE\n"), (2, "1: DOWN\n")] {
        let port = format!("{device}/ports/{number}");
        world.write(&format!("{port}/state"), state);
        world.write(&format!("{port}/link_layer"), link_layer);
        if ndevs {
            let name = format!("eth{number}\n");
            world.write(&format!("{port}/gid_attrs/ndevs/0"), name);
        }
        let child = format!("{device}/device/net/eth{number}/dev_port");
        world.write(&child, format!("{}\n", number - 1));
    }
}

/// Puts a program in the place of rpcrdma-conformance, and removes the module.
fn suite(world: &World, report: &str, status: i32) {
    fs::remove_dir_all(world.0.join("debugfs")).unwrap();
    world.write("bin/report", report);
    world.program(
        "rpcrdma-conformance",
        &format!(
            "bin=${{0%/*}}\necho \"$*\" >>\"$bin/asked\"\n\
             [ \"$1\" != --version ] || exit 0\ncat \"$bin/report\"\n\
             [ {status} != 2 ] || echo 'rpcrdma-conformance: no rdma-core' >&2\nexit {status}"
        ),
    );
}

const REPORT: &str = "reachable: yes\nrpc_version_1: SUCCESS\norigin: module\nrole: client\n\
                      peer_private_data: present\ncredits_granted: 64\n";

#[test]
fn exit_status_of_check() {
    fn none(_: &World) {}
    fn without_module(world: &World) {
        fs::remove_dir_all(world.0.join("debugfs")).unwrap();
    }
    let run = |world: &World, words: &[&str]| {
        let path = format!("{}:/usr/bin:/bin", world.0.join("bin").display());
        let mut command = world.command(&[&["check"], words].concat());
        result(command.env("PATH", path).output().unwrap())
    };
    let server = &["127.0.0.1:/export"][..];
    type Change = fn(&World);
    let cases: &[(Change, &[&str], i32, &str)] = &[
        (none, &[], 0, "fine     device: port 1 of mlx5_0 (RoCE, of eth1) is active\n"),
        (none, server, 0, "fine     path: 20 of 20 packets of 9000 octets reach 127.0.0.1"),
        (none, server, 0, "fine     null: NFS 3 answers NULL; NFS 4 answers NULL\n"),
        (none, server, 0, "fine     credits: 127.0.0.1 grants 64 credits\n"),
        (|world| world.write("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n"), &[], 2,
            "failed   device: port 1 of mlx5_0 (RoCE, of eth1) is down\n    on this host: ip link set dev eth1 up"),
        // The route leaves by the port that has a cable.
        (|world| two_ports(world, "Ethernet\n", true), server, 0,
            "note     device: port 2 of mlx5_0 (RoCE, of eth2) is down\n"),
        (|world| two_ports(world, "Ethernet\n", true), &[], 0,
            "fine     device: port 1 of mlx5_0 (RoCE, of eth1) is active\n"),
        (|world| two_ports(world, "Ethernet\n", false), server, 0,
            "note     device: port 2 of mlx5_0 (RoCE, of eth2) is down\n"),
        (|world| two_ports(world, "InfiniBand\n", false), server, 0,
            "note     device: port 2 of mlx5_0 (InfiniBand, of eth2) is down\n"),
        // With one port, the interface can be of another port of the adapter.
        (|world| {
            two_ports(world, "InfiniBand\n", false);
            let device = world.0.join("sys/class/infiniband/mlx5_0");
            fs::remove_dir_all(device.join("ports/2")).unwrap();
            fs::remove_dir_all(device.join("device/net/eth2")).unwrap();
            world.write("sys/class/infiniband/mlx5_0/device/net/eth1/dev_port", "1\n");
        }, server, 0, "fine     device: port 1 of mlx5_0 (InfiniBand, of eth1) is active\n"),
        (|world| fs::remove_dir_all(world.0.join("sys/class/infiniband")).unwrap(), &[], 2,
            "failed   device: this host has no RDMA device\n    on this host: "),
        (|world| fs::remove_dir_all(world.0.join("sys/module/rpcrdma")).unwrap(), &[], 2,
            "failed   modules: this kernel has no module rpcrdma"),
        (|world| {
            fs::remove_dir_all(world.0.join("sys/module/rpcrdma")).unwrap();
            world.write("bin/rpcrdma", "");
        }, &[], 0,
            "fine     modules: rpcrdma is not loaded; the first mount over RDMA loads it\n"),
        (|world| world.write("bin/short", ""), server, 2,
            "failed   path: packets of 9000 octets are lost on the way to 127.0.0.1"),
        (|world| world.write("bin/lossy", ""), server, 1,
            "degraded path: 1 of 20 packets of 9000 octets to 127.0.0.1 were lost: RDMA waits"),
        (|world| world.write("fstab", "127.0.0.1:/export /data nfs rdma,port=9 0 0\n"), server, 2,
            "127.0.0.1:9 accepts a connection over RDMA\n"),
        (|world| world.write("fstab", "10.0.0.2:/export /data nfs rdma 0 0\n"), &[], 2,
            "failed   fstab: /data asks for RDMA and is not mounted\n    on this host: mount /data \
             shows why\n    if that works, the RDMA device appeared too late for the start of the \
             system: add the option x-systemd.after=rdma-hw.target, and by systemctl edit \
             rdma-hw.target the lines [Unit] and Wants=UNIT, with the UNIT that systemd-escape -p \
             --suffix=mount /data prints\n"),
        // mount and systemd follow links, and leave out slashes.
        (|world| {
            let (link, point) = (world.0.join("data"), world.0.join("disk/data"));
            symlink("disk/data", &link).unwrap();
            world.write("proc/self/mountinfo", MOUNT.replace("/mnt", point.to_str().unwrap()));
            world.write("fstab", format!("10.77.1.2:/ {}/ nfs rdma 0 0\n", link.display()));
        }, &[], 0, "/disk/data is mounted over RDMA\n"),
        // A line of another server.
        (|world| world.write("fstab", "10.0.0.2:/export /data nfs rdma 0 0\n"), server, 0,
            "fine     port: 127.0.0.1:20049 accepts"),
        (|world| world.write("proc/self/mountinfo", MOUNT.replace("rdma", "tcp")), &[], 2,
            "failed   mount: /mnt: not RDMA: this mount fell back to TCP\n    on this host, all mounts of 10.77.1.2 over TCP: umount /mnt\n"),
        (|world| world.write("debugfs/probe", format!("{:99}\nreachable: no: no answer in time\n", "")), server, 2,
            "failed   port: no connection to 127.0.0.1:20049 over RDMA: no answer in time\n    let UDP port 4791"),
        (|world| world.write("debugfs/probe", format!("{:99}\n{}", "", REPORT.replace("64", "4"))), server, 1,
            "degraded credits: 127.0.0.1 grants 4 credits of 64"),
        (|world| fs::remove_file(world.0.join("debugfs/probe")).unwrap(), server, 0,
            "/probe: the module takes no commands: modprobe -r rpcrdma_cm; modprobe rpcrdma_cm control=1; or install"),
        (none, server, 0, "fine     engine: the module rpcrdma_cm asks the server\n"),
        // Without the module.
        (without_module, server, 0, "note     engine: nothing here can ask the server: "),
        (without_module, server, 0, "; or install rpcrdma-conformance, which needs no module\n"),
        (without_module, &["127.0.0.1", "--engine", "kernel"], 3, "rpcrdma-cm: "),
        // Without the module, with the suite.
        (|world| suite(world, REPORT, 0), server, 0,
            "fine     engine: rpcrdma-conformance asks the server, without the module\n"),
        (|world| suite(world, REPORT, 0), server, 0,
            "fine     null: NFS 3 answers NULL; NFS 4 answers NULL\n"),
        (|world| suite(world, "reachable: no: no answer in time\n", 1), server, 2,
            "failed   port: no connection to 127.0.0.1:20049 over RDMA: no answer in time\n"),
        (|world| suite(world, "", 2), server, 0,
            "unknown  port: the server could not be asked: rpcrdma-conformance: no rdma-core\n"),
    ];
    for (index, (change, words, expected, sentence)) in cases.iter().enumerate() {
        let world = ready(&format!("check-{index}"));
        change(&world);
        let (status, out, err) = run(&world, words);
        assert_eq!(status, *expected, "{sentence}: {out}{err}");
        assert_eq!(err.is_empty(), status != 3, "{err}");
        assert!(
            (out.clone() + &err).contains(sentence),
            "{sentence}: {out}{err}"
        );
    }
    // The suite is asked the same.
    let world = ready("check-suite");
    suite(&world, REPORT, 0);
    assert_eq!(run(&world, server).0, 0);
    assert_eq!(
        fs::read_to_string(world.0.join("bin/asked")).unwrap(),
        "--version\n\
         probe 127.0.0.1:20049 --credits 64 --program 100003:4\n\
         probe 127.0.0.1:20049 --credits 64 --program 100003:3\n"
    );
    // The interface of a zone is the way to the server. ::1 takes any.
    for zone in ["7", "eth1"] {
        let world = ready("check-zone");
        world.write("sys/class/net/eth0/ifindex", "2\n");
        world.write("sys/class/net/eth1/ifindex", "7\n");
        for name in ["ip", "ping"] {
            let path = format!("bin/{name}");
            let script = fs::read_to_string(world.0.join(&path)).unwrap();
            let asks = "echo \"${0##*/} $*\" >>\"${0%/*}/asked\"\n";
            world.program(name, &(asks.to_owned() + &script));
        }
        let (_, out, _) = run(&world, &[&format!("[::1%{zone}]")]);
        let path = format!("path: 20 of 20 packets of 9000 octets reach ::1%{zone} ");
        assert!(out.contains(&path), "{out}");
        let asked = fs::read_to_string(world.0.join("bin/asked")).unwrap();
        assert!(asked.contains("ip -j route get ::1 oif eth1\n"), "{asked}");
        assert!(asked.contains(" -s 8952 ::1%eth1\n"), "{asked}");
    }
    // The probe offers what a mount would, and asks for credits.
    let world = ready("check-offer");
    world.write("proc/sys/sunrpc/rdma_max_inline_write", "5000\n");
    world.write("proc/sys/sunrpc/rdma_max_inline_read", "65536\n");
    assert_eq!(run(&world, server).0, 0);
    let text = fs::read_to_string(world.0.join("debugfs/probe")).unwrap();
    assert_eq!(
        text.lines().next(),
        Some("127.0.0.1:20049 credits=64 send=4096 recv=65536 version=3")
    );
    assert_eq!(world.run(&["check", "no such name"]).0, 3);
}

/// The first line says when and why observing is off or partial, and so do the metrics.
#[test]
fn observing_is_limited() {
    let world = World::empty("observing");
    world.write("debugfs/connections", "ID\n1\n");
    world.connection(1, CLIENT);
    let first = |stats: &str, words: &[&str]| {
        world.write("debugfs/stats", stats);
        world.show(words).lines().next().unwrap().to_owned()
    };
    let off = "lost: 0\nobserving: no\nobserving_reason: fprobe: the kernel lacks CONFIG_FPROBE\n";
    let partial = "observing: partial\nobserving_reason: btf: no BTF\nobserving_reason: events: 3 events were lost\n";
    world.write("debugfs/history", HISTORY);
    for words in [
        &[][..],
        &["mounts"],
        &["history"],
        &["watch", "--count", "1"],
    ] {
        assert_eq!(
            first(off, words),
            "observing is off, so only the module's own connections are shown: the kernel lacks CONFIG_FPROBE"
        );
        assert_eq!(
            first(partial, words),
            "observing is partial: no BTF; 3 events were lost"
        );
        for stats in ["observing: yes\n", "lost: 0\n"] {
            assert!(!first(stats, words).contains("observing"));
        }
    }
    world.write("debugfs/stats", off);
    assert!(world.run(&["check"]).1.contains(
        "observing is off, so only the module's own connections are shown: the kernel lacks CONFIG_FPROBE"
    ));
    let document: Value = serde_json::from_str(&world.show(&["--json"])).unwrap();
    assert_eq!(document["observing"]["state"], "no");
    assert_eq!(document["observing"]["reasons"][0]["reason"], "fprobe");
    for (stats, on, reason) in [(off, 0, "fprobe"), (partial, 1, "events")] {
        world.write("debugfs/stats", stats);
        let text = world.show(&["metrics"]);
        for line in [
            format!("rpcrdma_cm_observing {on}"),
            format!("rpcrdma_cm_observing_limited{{reason=\"{reason}\"}} 1"),
            "rpcrdma_cm_observing_limited{reason=\"memory\"} 0".to_owned(),
        ] {
            assert!(text.lines().any(|other| other == line), "no {line}: {text}");
        }
    }
}

/// One line each, that says what helps.
#[test]
fn errors() {
    let mounted = "24 22 0:7 / ROOT rw - debugfs none rw\n";
    let world = World::empty("errors");
    let root = world.0.to_str().unwrap().to_owned();
    let says = |words: &[&str], expected: &str| {
        let (status, out, err) = world.run(words);
        assert_eq!((status, &*out), (3, ""), "{words:?}: {err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(
            err.starts_with("rpcrdma-cm: ") && err.contains(expected),
            "{err}"
        );
    };
    for words in [
        &[][..],
        &["show", "1"],
        &["history"],
        &["watch"],
        &["probe", "::1"],
    ] {
        says(
            words,
            &format!("debugfs is not mounted there: mount -t debugfs none {root}"),
        );
    }
    world.write("proc/self/mountinfo", mounted.replace("ROOT", &root));
    says(
        &[],
        "the module rpcrdma_cm is not loaded: modprobe rpcrdma_cm",
    );
    world.write(
        "proc/modules",
        "rpcrdma_cm_kunit 1 0 - Live 0x0\nrpcrdma_cm 1 0 - Live 0x0\n",
    );
    says(&[], "has made no files: see dmesg");
    world.write("debugfs/connections", "ID\n");
    says(&["show", "1"], "there is no connection 1");
    says(
        &["history"],
        "this version of the module rpcrdma_cm has no history",
    );
    says(&["history", "--follow"], "has no history");
    let (status, _, err) = world.run(&["show", "x"]);
    assert_eq!(status, 3, "{err}");
    assert_eq!(world.run(&["--version"]).0, 0);
    // The file is a directory: any other error is told as it is.
    fs::remove_file(world.0.join("debugfs/connections")).unwrap();
    fs::create_dir(world.0.join("debugfs/connections")).unwrap();
    says(&[], "Is a directory");
}

#[test]
fn without_root() {
    let world = World::empty("root");
    world.write("debugfs/connections", "ID\n");
    let status = Command::new("chmod")
        .arg("000")
        .arg(world.0.join("debugfs/connections"))
        .status()
        .unwrap();
    assert!(status.success());
    // Root is asked to open it without capabilities, as root of a container is.
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set=-all", "--inh-caps=-all", "--"])
        .arg(env!("CARGO_BIN_EXE_rpcrdma-cm"))
        .arg("--debugfs")
        .arg(world.0.join("debugfs"))
        .arg("--proc")
        .arg(world.0.join("proc"));
    let (status, out, err) = result(command.output().unwrap());
    assert_eq!((status, &*out), (3, ""), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(
        err.contains("not permitted") || err.contains("try sudo"),
        "{err}"
    );
}

/// A line of fstab is that of a mount, whichever links and slashes its mount point has.
#[test]
fn mounts_by_fstab() {
    let world = World::empty("by-fstab");
    let point = world.0.join("disk").to_str().unwrap().to_owned();
    let mount = MOUNT.replace("proto=rdma,port=20049", "proto=tcp");
    world.write("proc/self/mountinfo", mount.replace("/mnt", &point));
    symlink("disk", world.0.join("link")).unwrap();
    for (line, is_listed) in [("disk/", true), ("link", true), ("other", false)] {
        let line = format!("10.77.1.2:/ {}/{line} nfs rdma 0 0\n", world.0.display());
        world.write("fstab", &line);
        let out = world.run(&["mounts"]).1;
        assert_eq!(out.contains("not RDMA"), is_listed, "{line}{out}");
    }
}

/// Without the files of the module, what NFS says is still there.
#[test]
fn mounts_without_the_module() {
    let world = World::empty("no-module");
    world.write("proc/self/mountinfo", MOUNT);
    let (status, out, err) = world.run(&["mounts"]);
    assert_eq!((status, err.lines().count()), (0, 1), "{err}");
    assert!(out.contains("/mnt: unknown what it negotiated"), "{out}");
}

/// The transports need no module. Those of TCP, of another server and of another port do not count.
#[test]
fn transports_without_the_module() {
    let world = World::empty("transports");
    world.write("proc/self/mountinfo", MOUNT);
    world.transport("xprt-0-rdma", "10.77.1.3", 20049);
    world.transport("xprt-1-tcp", "10.77.1.2", 20049);
    world.transport("xprt-2-rdma", "10.77.1.2", 20050);
    let (_, out, _) = world.run(&["mounts"]);
    assert!(!out.contains("credits"), "{out}");
    world.transport("xprt-3-rdma", "10.77.1.2", 20049);
    let (status, out, _) = world.run(&["mounts"]);
    assert_eq!(status, 0);
    assert!(
        out.contains("2 calls wait: the server grants 4 credits, this client asks for 128\n    on 10.77.1.2, "),
        "{out}"
    );
    let (_, out, _) = world.run(&["mounts", "--json"]);
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["mounts"][0]["transports"][0]["credits"], 4);
}

/// A bug report has a section for each source, says what could not be read, and has no address.
#[test]
fn bug_reports() {
    let world = World::guest("report");
    world.write("debugfs/history", HISTORY);
    world.write("proc/version", "Linux version 7.3.4\n");
    world.write(
        "proc/modules",
        "rpcrdma 1 0 - Live 0x0\next4 1 0 - Live 0x0\n",
    );
    world.write("proc/sys/sunrpc/svc_rdma/max_req_size", "4096\n");
    world.write("proc/sys/sunrpc/rdma_max_inline_read", "8192\n");
    let text = world.show(&["report"]);
    for wanted in [
        "== kernel\nLinux version 7.3.4\n",
        "== modules\nrpcrdma 1 0 - Live 0x0\n\n",
        "\nsys/sunrpc/svc_rdma/max_req_size = 4096\n",
        "\nsys/sunrpc/rdma_max_inline_read = 8192\n",
        "\n== stats\nconnects: ",
        "\n== history\nTIME ",
        "\n== connection/1/info\nid: 1\n",
        "\n== mounts\nMOUNT ",
        "xprt:\trdma ".replace('\t', "\\u{9}").as_str(),
        "<host-1>",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(!text.contains("10.77."), "{text}");
    assert!(world.show(&["report", "--addresses"]).contains("10.77.1.2"));
    let path = world.0.join("report.txt");
    assert_eq!(
        world.show(&["report", "--output", path.to_str().unwrap()]),
        ""
    );
    assert!(fs::read_to_string(&path)
        .unwrap()
        .starts_with("== rpcrdma-cm\n"));
    // Without the module.
    let (status, out, _) = World::empty("report-none").run(&["report"]);
    assert_eq!(status, 0);
    assert!(
        out.contains("== connections\n") && out.contains("debugfs is not mounted there"),
        "{out}"
    );
}

#[test]
fn a_server_without_mounts() {
    let world = World::empty("server");
    let table = |role: &str| format!("ID ORIGIN ROLE\n1 module server\n2 nfs {role}\n");
    world.write("debugfs/connections", table("client"));
    assert_eq!(world.show(&["mounts"]), "no NFS mount uses RDMA\n");
    world.write("debugfs/connections", table("server"));
    let out = world.show(&["mounts"]);
    assert_eq!(out.lines().count(), 1, "{out}");
    assert!(
        out.contains("`rpcrdma-cm show ID` has the verdicts"),
        "{out}"
    );
}

#[test]
fn mounts_of_other_namespaces() {
    let world = World::empty("namespaces");
    world.write("debugfs/connections", "ID\n1\n2\n3\n");
    world.connection(1, CLIENT);
    world.connection(2, CLIENT);
    world.connection(
        3,
        "origin: nfs\nrole: client\nstate: established\nremote: 10.77.1.3:20049\n",
    );
    fs::remove_dir_all(world.0.join("proc/self")).unwrap();
    world.process("self", 1, MOUNT);
    world.process("10", 1, MOUNT);
    world.process("9", 2, &MOUNT.replace("/mnt", "/other"));
    world.process("11", 2, &MOUNT.replace("/mnt", "/never"));
    let own = world.show(&["mounts"]);
    assert_eq!(own.matches("/mnt:").count(), 1, "{own}");
    let wide = world.show(&["mounts", "--wide"]);
    assert!(
        wide.starts_with("MOUNT ") && wide.contains(" 2/2 "),
        "{wide}"
    );
    assert!(wide.ends_with(&own), "{wide}");
    assert!(!own.contains("MOUNT ") && !own.contains("/other"), "{own}");
    let all = world.show(&["mounts", "--all-namespaces"]);
    assert!(all.starts_with("/mnt: fine\n"), "{all}");
    assert!(
        all.contains("\n/other (namespace of pid 9): fine\n"),
        "{all}"
    );
    assert!(!all.contains("/never"), "{all}");
}

#[test]
fn losses_of_the_last_hour() {
    let world = World::empty("losses");
    world.write("debugfs/connections", "ID\n1\n");
    world.connection(1, CLIENT);
    world.write("proc/self/mountinfo", MOUNT);
    let now = Command::new("date")
        .args(["-u", "+%FT%T.000Z"])
        .output()
        .unwrap();
    let now = String::from_utf8(now.stdout).unwrap();
    let line = format!("{} nfs client lost 10.77.1.2:20049\n", now.trim());
    world.write(
        "debugfs/history",
        format!("DATE ORIGIN ROLE EVENT REMOTE\n1999-12-31T00:00:00Z nfs client lost 10.77.1.2:20049\n{line}{line}{line}"),
    );
    let out = world.show(&["mounts"]);
    assert!(out.contains("/mnt: degraded: lost 3 times in an hour\n    `rpcrdma-cm history` has the reasons; then look at the log of 10.77.1.2, "), "{out}");
}

#[test]
fn history_goes_on() {
    let world = World::empty("follow");
    world.write("debugfs/connections", "ID\n");
    world.write("debugfs/history", HISTORY);
    let table = world.show(&["history"]);
    assert!(
        table.contains("13.806 s") && table.contains("4096 -> 65536"),
        "{table}"
    );
    let follower = world
        .command(&["history", "--follow", "--json"])
        .args(["--interval", "1", "--count", "3"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let more = HISTORY.lines().nth(2).unwrap().replace("75.01", "99.01");
    // Written before the first reading, or after it: it appears once.
    world.write("debugfs/history", format!("{HISTORY}{more}\n"));
    let output = follower.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("99.01").count(), 1, "{text}");
    assert_eq!(text.matches("\"75.01").count(), 1, "{text}");
}

#[test]
fn metrics_are_replaced_as_a_whole() {
    let world = World::guest("metrics");
    let path = world.0.join("out.prom");
    let words = ["metrics", "--output", path.to_str().unwrap()];
    assert_eq!(world.show(&words), "");
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, world.show(&["metrics"]));
    // promtool also wants a type and a help text for each metric.
    let check = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(fs::File::open(&path).unwrap())
        .output()
        .unwrap();
    assert_eq!(result(check), (0, String::new(), String::new()));
    fs::write(&path, "old").unwrap();
    world.show(&words);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    // Nothing else is left there.
    let names: Vec<_> = fs::read_dir(&world.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let (status, _, err) = world.run(&["metrics", "--output", "/proc/no/such.prom"]);
    assert_eq!((status, err.lines().count()), (3, 1), "{err}");
}

/// Devices and pipes are written to, and are not replaced. Nor are links.
#[test]
fn outputs_that_are_no_files() {
    let world = World::guest("outputs");
    let text = world.show(&["metrics"]);
    let output = |name: &str| {
        let path = world.0.join(name);
        (path.clone(), path.to_str().unwrap().to_owned())
    };
    let (fifo, name) = output("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let reader = thread::spawn(move || fs::read_to_string(fifo).unwrap());
    assert_eq!(world.show(&["metrics", "--output", &name]), "");
    // Without it, the reader does not end.
    assert!(fs::metadata(&name).unwrap().file_type().is_fifo());
    assert_eq!(reader.join().unwrap(), text);
    // As /dev/stdout is made.
    let (stdout, name) = output("stdout");
    symlink("/proc/self/fd/1", &stdout).unwrap();
    assert_eq!(world.show(&["metrics", "--output", &name]), text);
    assert!(fs::symlink_metadata(&stdout).unwrap().is_symlink());
    let (link, name) = output("link");
    symlink("file", &link).unwrap();
    world.write("file", "old");
    world.show(&["metrics", "--output", &name]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(world.0.join("file")).unwrap(), text);
    // The link leads to a file that does not exist yet.
    fs::remove_file(world.0.join("file")).unwrap();
    world.show(&["metrics", "--output", &name]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(world.0.join("file")).unwrap(), text);
    // The standard output is a file, by its own name, too.
    let (log, log_name) = output("log");
    let (_, stdout_name) = output("stdout");
    world.write("log", "old\n");
    for name in [&*stdout_name, "/dev/stdout", &log_name] {
        let appended = fs::File::options().append(true).open(&log).unwrap();
        let mut command = world.command(&["metrics", "--output", name]);
        let status = command.stdout(appended).status().unwrap();
        assert!(status.success(), "{name}");
    }
    let expected = format!("old\n{text}{text}{text}");
    assert_eq!(fs::read_to_string(&log).unwrap(), expected);
    let (status, _, err) = world.run(&["metrics", "--output", world.0.to_str().unwrap()]);
    assert_eq!((status, err.lines().count()), (3, 1), "{err}");
}

/// The screen of `watch` in a real terminal.
#[test]
fn watch_in_a_terminal() {
    let world = World::guest("screen");
    world.write("debugfs/history", HISTORY);
    let tmux = |words: &[&str]| {
        let mut command = Command::new("tmux");
        command.env("TMUX_TMPDIR", &world.0).env_remove("TMUX");
        let (status, out, err) = result(
            command
                .args(["-f", "/dev/null"])
                .args(words)
                .output()
                .unwrap(),
        );
        (status == 0).then_some(out).ok_or(err)
    };
    let shows = |words: &str| {
        let limit = Instant::now() + Duration::from_secs(20);
        loop {
            let text = tmux(&["capture-pane", "-p"]).unwrap();
            if text.contains(words) {
                return text;
            }
            assert!(Instant::now() < limit, "no {words}: {text}");
        }
    };
    let mut line = vec![env!("CARGO_BIN_EXE_rpcrdma-cm").to_owned()];
    let command = world.command(&["watch", "--interval", "1"]);
    line.extend(
        command
            .get_args()
            .map(|word| word.to_str().unwrap().to_owned()),
    );
    let size = ["new-session", "-d", "-x", "140", "-y", "40"];
    tmux(&[&size[..], &[&line.join(" ")]].concat()).unwrap();
    // The last line is drawn last.
    let text = shows("sorted by verdict");
    for words in [
        " Mounts ",
        " Connections ",
        "10.77.1.2:20049",
        "re-established",
    ] {
        assert!(text.contains(words), "no {words}: {text}");
    }
    // Another reading has another event.
    let more = HISTORY
        .lines()
        .nth(2)
        .unwrap()
        .replace("counter exceeded", "anew");
    world.write("debugfs/history", format!("{HISTORY}{more}\n"));
    shows("transport retry anew");
    tmux(&["send-keys", "s"]).unwrap();
    shows("sorted by name");
    tmux(&["send-keys", "/nobody"]).unwrap();
    let text = shows("filter: nobody_");
    assert!(!text.contains("10.77.1.2:20049"), "{text}");
    tmux(&["send-keys", "Escape"]).unwrap();
    shows("10.77.1.2:20049");
    tmux(&["send-keys", "q"]).unwrap();
    let limit = Instant::now() + Duration::from_secs(20);
    while tmux(&["has-session"]).is_ok() {
        assert!(Instant::now() < limit, "q does not end it");
    }
}

/// The rules for Prometheus, by promtool: they are valid, and each alert begins when it has to.
#[test]
fn alerts() {
    let folder = Path::new(FOLDER).join("../prometheus");
    for words in [
        &["check", "rules", "rpcrdma_cm.rules.yml"][..],
        &["test", "rules", "tests.yml"],
    ] {
        let mut command = Command::new("promtool");
        let (status, out, err) = result(command.args(words).current_dir(&folder).output().unwrap());
        assert_eq!(status, 0, "{out}{err}");
    }
}

/// A program that ends with the test.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A real node_exporter reads the file with the metrics of a guest, and a real Prometheus scrapes
/// that: each panel of the dashboard and each metric of the alerts has values, and an alert begins.
#[test]
fn prometheus_reads_them() {
    let folder = Path::new(FOLDER).join("../prometheus");
    let world = World::guest("prometheus");
    world.transport("xprt-0-rdma", "10.77.1.2", 20049);
    let stats = fs::read_to_string(world.0.join("debugfs/stats")).unwrap();
    let partial = "observing: partial\nobserving_reason: events: events were lost\n";
    world.write("debugfs/stats", stats + partial);
    let path = world.0.join("textfiles/rpcrdma_cm.prom");
    fs::create_dir(path.parent().unwrap()).unwrap();
    world.show(&["metrics", "--output", path.to_str().unwrap()]);
    // Both ports are free at this moment.
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [exporter, server] = listeners.map(|one| one.local_addr().unwrap().to_string());
    world.write(
        "prometheus.yml",
        format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: ['{}']\n\
             scrape_configs: [{{job_name: node, static_configs: [{{targets: ['{exporter}']}}]}}]\n",
            folder.join("rpcrdma_cm.rules.yml").display()
        ),
    );
    let start = |words: &[&str]| {
        let log = fs::File::create(world.0.join(words[0])).unwrap();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(&world.0).stderr(log);
        Running(command.spawn().unwrap())
    };
    let _exporter = start(&[
        "prometheus-node-exporter",
        "--collector.disable-defaults",
        "--collector.textfile",
        "--collector.textfile.directory=textfiles",
        &format!("--web.listen-address={exporter}"),
    ]);
    let _server = start(&[
        "prometheus",
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        &format!("--web.listen-address={server}"),
    ]);
    let dashboard = fs::read(folder.join("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_slice(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let mut queries: Vec<String> = panels
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        // Grafana replaces its variables.
        .map(|target| target["expr"].as_str().unwrap().to_owned())
        .map(|query| query.replace("$__rate_interval", "1m"))
        .map(|query| query.replace("$instance", ".+").replace("$mount", ".+"))
        .collect();
    let rules = fs::read_to_string(folder.join("rpcrdma_cm.rules.yml")).unwrap();
    queries.extend(
        rules
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|word| word.starts_with("rpcrdma_cm_"))
            .map(str::to_owned),
    );
    // As the alert on the age of the file selects it.
    let age = rules
        .split_inclusive('}')
        .find_map(|part| part.split_once("node_textfile_mtime_seconds"));
    queries.extend([
        format!("node_textfile_mtime_seconds{}", age.unwrap().1),
        "node_textfile_scrape_error == 0".to_owned(),
        "ALERTS{alertname='NFSRDMAFewCredits',mount='/mnt/v42'}".to_owned(),
    ]);
    let url = format!("http://{server}");
    let limit = Instant::now() + Duration::from_secs(60);
    for query in queries {
        loop {
            let mut command = Command::new("promtool");
            command.args(["query", "instant", &url, &query]);
            let (status, out, err) = result(command.output().unwrap());
            if status == 0 && !out.trim().is_empty() {
                break;
            }
            assert!(Instant::now() < limit, "{query}: {out}{err}");
            thread::sleep(Duration::from_millis(300));
        }
    }
}

/// A reader that stops is no error, and text of any form is none.
#[test]
fn hostile_surroundings() {
    let world = World::empty("hostile");
    let noise: Vec<u8> = (0..20_000_u32)
        .map(|n| u8::try_from(n.wrapping_mul(2_654_435_761) >> 24).unwrap())
        .collect();
    for name in [
        "debugfs/connections",
        "debugfs/stats",
        "debugfs/history",
        "debugfs/connection/1/info",
        "debugfs/connection/1/sent",
        "debugfs/connection/1/received",
        "proc/self/mountinfo",
        "proc/self/mountstats",
    ] {
        world.write(name, &noise);
    }
    for words in [
        &["connections"][..],
        &["mounts"],
        &["mounts", "--all-namespaces"],
        &["mounts", "--wide"],
        &["show", "1"],
        &["history"],
        &["metrics"],
        &["mounts", "--json"],
    ] {
        assert_eq!(world.run(words).0, 0, "{words:?}");
    }
    world.write("debugfs/connections", "ID DEVICE\n1 \u{1b}[2J\u{7}x\n");
    let out = world.show(&[]);
    assert!(
        out.contains("\\u{1b}[2J\\u{7}x") && !out.contains('\u{1b}'),
        "{out}"
    );
    let mut rows = "ID\n".to_owned();
    for id in 0..100_000 {
        rows += &format!("{id}\n");
    }
    world.write("debugfs/connections", rows);
    let mut child = world
        .command(&["--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let (status, _, err) = result(child.wait_with_output().unwrap());
    assert_eq!((status, &*err), (0, ""));
}

/// On a terminal, which `script` makes.
#[test]
fn colour_and_width() {
    let world = World::guest("colour");
    let on_terminal = |columns: &str, environment: &str| {
        let line = format!(
            "stty cols {columns}; {environment} {} mounts --wide --debugfs {root}/debugfs --proc {root}/proc",
            env!("CARGO_BIN_EXE_rpcrdma-cm"),
            root = world.0.display()
        );
        let output = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().replace('\r', "")
    };
    let wide = on_terminal("200", "");
    assert!(wide.contains("\u{1b}[3"), "{wide}");
    let plain = on_terminal("200", "NO_COLOR=1");
    assert!(!plain.contains('\u{1b}'), "{plain}");
    assert!(!world.show(&["mounts", "--wide"]).contains('\u{1b}'));
    let narrow = on_terminal("70", "NO_COLOR=1");
    let table: Vec<&str> = narrow
        .lines()
        .take_while(|line| !line.starts_with("/mnt/version three: "))
        .collect();
    assert!(
        table.iter().all(|line| line.chars().count() <= 70),
        "{narrow}"
    );
    assert!(
        table.len()
            > plain
                .lines()
                .take_while(|line| !line.starts_with("/mnt/version three: "))
                .count(),
        "{narrow}"
    );
}

#[test]
fn pages_and_completions() {
    let world = World::empty("pages");
    let page = world.show(&["man"]);
    assert!(page.contains(".TH rpcrdma-cm 1"), "{page}");
    let commands = "connections mounts show history watch probe check metrics report";
    for name in commands.split(' ') {
        assert!(page.contains(&format!("rpcrdma\\-cm\\-{name}")), "{page}");
        assert!(world
            .show(&["man", name])
            .contains(&format!("rpcrdma-cm-{name} 1")));
    }
    assert!(!page.contains("completions"), "{page}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(world
            .show(&["completions", shell])
            .contains("all-namespaces"));
    }
}

/// The guest's own: each command has something to say of it.
#[test]
fn a_real_guest() {
    let world = World::guest("guest");
    let table = world.show(&[]);
    assert!(table.contains("established"), "{table}");
    for (words, notes) in [(&["mounts"][..], false), (&["mounts", "--wide"], true)] {
        assert_eq!(world.show(words).contains(" note: "), notes, "{words:?}");
    }
    let mounts: Value = serde_json::from_str(&world.show(&["mounts", "--json"])).unwrap();
    let mounts = mounts["mounts"].as_array().unwrap();
    assert!(!mounts.is_empty());
    for mount in mounts {
        if mount["protocol"] == "rdma" {
            assert_ne!(mount["connections"].as_array().unwrap().len(), 0, "{mount}");
            assert!(
                mount["stats"]["counters"]["sends"].as_u64() > Some(0),
                "{mount}"
            );
        }
    }
}
