// SPDX-License-Identifier: GPL-2.0

//! The command line; the man pages and the completions are made of this, too.

use std::path::PathBuf;

use clap::{
    Args,
    Parser,
    Subcommand, //
};
use clap_complete::Shell;

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
Exit status: 0 where nothing failed; 3 where something could not be read or the command line does \
not fit. `probe` also ends with 1 where the peer deviates or is degraded, and with 2 where it was \
not reached.

NO_COLOR in the environment turns colours off. They are used on a terminal only.";

/// The options of every command.
#[derive(Args, Debug)]
pub(crate) struct Common {
    /// Write JSON instead, in the form that schema.json describes
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

    /// Show the NFS mounts that use RDMA or were to use it, and a verdict on each
    Mounts {
        /// Also those of other mount namespaces, by a process in each
        #[arg(long)]
        all_namespaces: bool,
    },

    /// Show one connection in words
    Show {
        /// The number of the connection, as the table has it
        id: u64,
    },

    /// Show the events of all connections
    History {
        /// Go on with events as they happen
        #[arg(long)]
        follow: bool,

        #[command(flatten)]
        pace: Pace,
    },

    /// Show the connections again and again
    Watch {
        #[command(flatten)]
        pace: Pace,
    },

    /// Connect to a server, call NULL, and explain the result
    ///
    /// Ends with 0 where all is well, 1 where the server deviates or is degraded, 2 where it was
    /// not reached, 3 where it could not be probed.
    Probe(Probe),

    /// Write metrics in the text form of OpenMetrics
    Metrics {
        /// Replace this file as a whole, for the textfile collector of node_exporter
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },

    /// Print the completions for a shell
    #[command(hide = true)]
    Completions { shell: Shell },

    /// Print a man page: of the whole, or of one command
    #[command(hide = true)]
    Man { command: Option<String> },
}

#[derive(Args, Debug)]
pub(crate) struct Pace {
    /// Seconds between two readings
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub(crate) interval: u64,

    /// End after so many readings
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct Probe {
    /// An IPv4 address, an IPv6 address (in brackets where a port follows) or a name, and a port:
    /// 20049 where there is none
    #[arg(value_name = "ADDR[:PORT]")]
    pub(crate) target: String,

    /// The Send Size to offer, in octets
    #[arg(long, value_name = "OCTETS")]
    pub(crate) send: Option<u64>,

    /// The Receive Size to offer, in octets
    #[arg(long, value_name = "OCTETS")]
    pub(crate) receive: Option<u64>,

    /// Offer remote invalidation
    #[arg(long)]
    pub(crate) invalidation: bool,

    /// The local address
    #[arg(long, value_name = "ADDR")]
    pub(crate) from: Option<String>,

    /// How long an attempt to connect, and a call, may take
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
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
