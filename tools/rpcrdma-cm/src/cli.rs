// SPDX-License-Identifier: GPL-2.0

//! The command line. The man pages and the completions are generated from it.

use std::path::PathBuf;

use clap::{
    Args,
    Parser,
    Subcommand, //
};
use clap_complete::Shell;

use crate::engine::Engine;

/// Shows what NFS mounts and other RPC-over-RDMA connections negotiated, and what is wrong with
/// them.
///
/// Reads the files of the kernel module rpcrdma_cm in debugfs, for which it has to be root, and the
/// counters that NFS keeps of each mount. Without a command it shows the connections.
#[derive(Debug, Parser)]
#[command(name = "rpcrdma-cm", version, after_long_help = AFTER)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) common: Common,
}

const AFTER: &str = "\
Exit status: 0 if nothing failed; 3 if the command line is wrong, or if nothing could be shown. \
`mounts`, `metrics` and `report` go on without the files of the module, and end with 0. `probe` \
and `check` also end with 1 if something is degraded, and with 2 if something is missing or not \
reached.

Colours are used on a terminal only. NO_COLOR in the environment turns them off.

The Debian package has the guide to all verdicts (admin-guide.md.gz), an index of symptoms, a \
glossary and schema.json in /usr/share/doc/rpcrdma-cm.";

/// The options of every command.
#[derive(Args, Debug)]
pub(crate) struct Common {
    /// Print JSON, in the form that schema.json describes (except report)
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// The directory of the module's files
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "/sys/kernel/debug/rpcrdma_cm"
    )]
    pub(crate) debugfs: PathBuf,

    /// Another /proc, for tests
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "/proc",
        hide = true
    )]
    pub(crate) proc: PathBuf,

    /// Another /sys, for tests
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "/sys",
        hide = true
    )]
    pub(crate) sys: PathBuf,

    /// Another /etc/fstab, for tests
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        default_value = "/etc/fstab",
        hide = true
    )]
    pub(crate) fstab: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the connections
    Connections,

    /// Show the NFS mounts that use RDMA or should use it, with a verdict and a remedy for each
    ///
    /// These are the mounts of this host. If it is an NFS server, `connections` lists its clients,
    /// and `show` has the verdicts on each of their connections.
    Mounts {
        /// Also show those of other mount namespaces, as a process in each sees them
        #[arg(long)]
        all_namespaces: bool,

        /// Also print notes, and a table: versions, transports, thresholds, calls, chunks, reconnections
        #[arg(long)]
        wide: bool,
    },

    /// Show one connection in words
    Show {
        /// The number of the connection, from the table's column ID
        id: u64,
    },

    /// Show the events of all connections
    History {
        /// Go on, and show events as they happen
        #[arg(long)]
        follow: bool,

        #[command(flatten)]
        pace: Pace,
    },

    /// Show the mounts, the connections and the events as they change
    ///
    /// On a terminal this is a screen: each mount with the credits in use and granted, the calls a
    /// second and the share of chunks of its transports, and the worst verdict, then the
    /// connections, and the events as they happen. Keys: q quits, s sorts the mounts, / filters all
    /// three (Enter keeps the filter, Esc removes it), the arrows scroll the connections. Elsewhere
    /// the table of connections is printed at each reading.
    Watch {
        #[command(flatten)]
        pace: Pace,
    },

    /// Connect to a server, call NULL, and explain the result
    ///
    /// Asks in version 1 of RPC-over-RDMA only, unless --rpcvers says otherwise.
    ///
    /// Ends with 0 if the server is fine, 1 if it deviates or is degraded, 2 if it was not reached,
    /// 3 if it could not be probed.
    Probe(Probe),

    /// Check whether this host, and a server, are ready for NFS over RDMA
    ///
    /// Looks at the modules, the RDMA devices and their MTUs, and at the lines of /etc/fstab that ask
    /// for RDMA. Of a server also at the path to it, its rpcbind, the port, the NULL calls, the
    /// private data and the credits. For the last four (over iWARP, the last three) the module
    /// rpcrdma_cm has to be loaded with control=1, or the program rpcrdma-conformance installed.
    ///
    /// Prints a line for each, and what to do about it. Ends with 0 if nothing is wrong, 1 if
    /// something works worse than it could, 2 if something is missing, 3 if the check itself could
    /// not be made. Lines that are unknown are no fault.
    Check(Check),

    /// Write metrics in the text form of Prometheus
    Metrics {
        /// Write to this file, which is replaced as a whole, for node_exporter's textfile collector
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },

    /// Print all that a bug report needs, without addresses
    ///
    /// Versions, modules, the files of the module, the mounts and their counters, sysctls, devices.
    /// Sections that cannot be read say why. Nothing is changed.
    Report {
        /// Print addresses and names of hosts, too
        #[arg(long)]
        addresses: bool,

        /// Write to this file, which is replaced as a whole
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },

    /// Print the completions for a shell
    #[command(hide = true)]
    Completions { shell: Shell },

    /// Print the man page of the tool, or of one command
    #[command(hide = true)]
    Man { command: Option<String> },
}

#[derive(Args, Debug)]
pub(crate) struct Pace {
    /// Seconds between two readings (history makes one, unless it has --follow)
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub(crate) interval: u64,

    /// End after that number of readings (history makes one, unless it has --follow)
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct Check {
    /// The server, as in /etc/fstab: an address (IPv6 in brackets) or a name
    #[arg(value_name = "SERVER[:/PATH]")]
    pub(crate) server: Option<String>,

    /// The server's port for RDMA. If none is given: that of the line of /etc/fstab, otherwise 20049
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,

    /// The engine that asks the server. If none is given: the module if it is loaded and takes
    /// commands, otherwise rpcrdma-conformance if it is installed
    #[arg(long)]
    pub(crate) engine: Option<Engine>,
}

#[derive(Args, Debug)]
pub(crate) struct Probe {
    /// An IPv4 address, an IPv6 address (in brackets if a port follows) or a name, and a port
    /// (20049 if none is given)
    #[arg(value_name = "ADDR[:PORT]")]
    pub(crate) target: String,

    /// The engine that asks the server. If none is given: the module if it is loaded and takes
    /// commands, otherwise rpcrdma-conformance if it is installed
    #[arg(long)]
    pub(crate) engine: Option<Engine>,

    /// The Send Size to offer, in octets
    #[arg(long, value_name = "OCTETS")]
    pub(crate) send: Option<u64>,

    /// The Receive Size to offer, in octets
    #[arg(long, value_name = "OCTETS")]
    pub(crate) receive: Option<u64>,

    /// Offer remote invalidation
    #[arg(long)]
    pub(crate) invalidation: bool,

    /// The local address to connect from
    #[arg(long, value_name = "ADDR")]
    pub(crate) from: Option<String>,

    /// How long an attempt to connect, and a call, may take
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,

    /// The RPC program whose NULL to call (100003, NFS, if none is given)
    #[arg(long, value_name = "NUMBER")]
    pub(crate) program: Option<u32>,

    /// The version of that program (4 if none is given). If the server has others only, it is asked
    /// again with one of them
    #[arg(long, value_name = "NUMBER")]
    pub(crate) version: Option<u32>,

    /// The version of RPC-over-RDMA to ask in: 1 (the default), 2, or auto for both
    ///
    /// Version 2 is an expired individual draft that only the module rpcrdma_cm speaks. The working
    /// group's later version 2 is another protocol under the same number. Some servers never
    /// answer a message of version 2, and nobody can say how others take it: do not ask a server
    /// that anybody relies on.
    #[arg(long, value_name = "VERSION", value_parser = ["1", "2", "auto"])]
    pub(crate) rpcvers: Option<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn is_consistent() {
        Cli::command().debug_assert();
    }
}
