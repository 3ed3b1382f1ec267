// SPDX-License-Identifier: GPL-2.0

//! The transports of the kernel's RPC client, by /sys/kernel/sunrpc/xprt-switches. Any user may
//! read them, and they need no module.

use serde::Serialize;

use super::Value;

/// Units of the congestion window in one call (`RPC_CWNDSHIFT`, include/linux/sunrpc/xprt.h). The
/// RDMA transport sets the window to the credits that the server granted last.
const CALL: u64 = 256;

/// One RDMA transport at this moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Transport {
    /// The server's address, without the port.
    pub(crate) address: String,
    pub(crate) port: Option<u64>,
    pub(crate) connected: bool,
    /// Granted by the server. The client begins each connection with 1, and takes 0 for 1.
    pub(crate) credits: Option<u64>,
    /// Those that calls have taken.
    pub(crate) credits_in_use: Option<u64>,
    /// The calls that the client can have under way. It asks for as many credits, or for as many as
    /// its device can take.
    pub(crate) slots: Option<u64>,
    /// Calls that wait for a credit, or until a call before them is sent.
    pub(crate) waiting_to_send: Option<u64>,
    /// Calls that wait for a slot.
    pub(crate) backlog: Option<u64>,
    /// Calls that wait for their replies.
    pub(crate) under_way: Option<u64>,
    /// The inline thresholds of calls and of replies, in octets. Only kernels with a patch of ours
    /// show them (docs/upstream.md).
    pub(crate) inline_send: Option<u64>,
    pub(crate) inline_recv: Option<u64>,
    /// The calls of all transports of its switch: those that wait, even for a connection, and those
    /// that are under way.
    #[serde(skip)]
    pub(crate) calls_of_switch: Option<u64>,
}

/// The value of a line KEY=VALUE.
fn value(text: &str, key: &str) -> Option<u64> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .find(|(found, _)| *found == key)
        .and_then(|(_, value)| u64::parse(value.trim()))
}

/// Parses the files `dstaddr`, `xprt_info` and `xprt_state` of a transport, and `xprt_switch_info` of
/// its switch. A closed transport has no values in `xprt_info`.
pub(crate) fn transport(address: &str, info: &str, state: &str, switch: &str) -> Transport {
    let calls_of_switch = value(switch, "queue_len");
    let value = |key: &str| value(info, key);
    Transport {
        address: address.trim().to_owned(),
        port: value("dst_port"),
        connected: state
            .trim()
            .trim_start_matches("state=")
            .split(' ')
            .any(|word| word == "CONNECTED"),
        credits: value("cong_win").map(|window| window / CALL),
        credits_in_use: value("cur_cong").map(|taken| taken / CALL),
        slots: value("max_num_slots"),
        waiting_to_send: value("sending_q_len"),
        backlog: value("backlog_q_len"),
        under_way: value("pending_q_len"),
        inline_send: value("inline_send"),
        inline_recv: value("inline_recv"),
        calls_of_switch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports() {
        let info = "last_used=4294909313\ncur_cong=1024\ncong_win=16384\nmax_num_slots=128\n\
                    min_num_slots=128\nnum_reqs=0\nbinding_q_len=0\nsending_q_len=3\n\
                    pending_q_len=4\nbacklog_q_len=5\nmain_xprt=1\nsrc_port=0\ntasks_queuelen=12\n\
                    dst_port=20049\n";
        let state = "state=LOCKED CONNECTED   BOUND       \n";
        let switch = "num_xprts=1\nnum_active=1\nnum_unique_destaddr=1\nqueue_len=7\n";
        let found = transport("10.77.1.2\n", info, state, switch);
        assert_eq!(
            found,
            Transport {
                address: "10.77.1.2".to_owned(),
                port: Some(20049),
                connected: true,
                credits: Some(64),
                credits_in_use: Some(4),
                slots: Some(128),
                waiting_to_send: Some(3),
                backlog: Some(5),
                under_way: Some(4),
                inline_send: None,
                inline_recv: None,
                calls_of_switch: Some(7),
            }
        );
        let closed = transport(
            "10.77.1.2\n",
            "<closed>\n",
            "state=  CONNECTING  BOUND\n",
            switch,
        );
        assert_eq!(closed.calls_of_switch, Some(7));
        assert!(!closed.connected && closed.credits.is_none() && closed.port.is_none());
    }
}
