// SPDX-License-Identifier: GPL-2.0

//! The keys of the control files, each declared once.
//!
//! The parser (`grammar.rs`) and the table of the keys in the documentation come from this list. A
//! doc comment is the meaning in that table, which puts the range of a number before it.

/// The keys in the order of the table: the type of the value; of a number the range, and its unit
/// in a refusal; the default, if there is one, and in parentheses that of another line; the lines
/// that take the key. `Null` and `Echo` are lines of `call`.
macro_rules! control_keys {
    ($define:ident) => {
        $define! {
            // The default of both sizes is that of Linux' NFS.
            /// Send Size in octets: 1024 to 262144, a multiple of 1024
            send: Size = 4096 in Connect Listen Probe;
            /// Receive Size, likewise
            recv: Size = 4096 in Connect Listen Probe;
            /// 1: set the R field, if the device has the memory management extensions
            inv: bool = 0 in Connect Listen Probe;
            /// `none`, or hexadecimal digits: the private data to send, in place of a message
            private: Offered in Connect Listen Probe;
            // A client has to be asked for version 2: it is an experiment.
            /// 1, 2 or auto: the versions of RPC-over-RDMA to speak
            rpcvers: Versions = 1 (Listen: auto) in Connect Listen Probe;
            /// credits that a client requests and a server grants; one Receive more is posted than
            /// `credits` and `reverse` together
            credits: u32(1 to 64 "credits") = 8 in Connect Listen Probe;
            /// credits for calls in the reverse direction: a client grants them and a server
            /// requests them; 0: a server makes no calls
            reverse: u32(0 to 64 "credits") = 0 in Connect Listen;
            /// 0: the client does not call BIND, and the server makes calls without waiting for
            /// BIND
            bind: bool = 1 in Connect Listen;
            /// the local address, in the form of ADDR
            from: Address in Connect Probe;
            /// how long an attempt to connect may take, and how long a call
            timeout_ms: u32(1 to 600000 "milliseconds") = 5000 in Connect Listen Probe;
            /// 1: after a loss, connect again
            reconnect: bool = 0 in Connect;
            /// 0: the client does not call NULL after connecting
            null: bool = 1 in Connect;
            /// the RPC program of NULL (100003 is NFS)
            program: u32(0 to 4294967295) = 100003 in Connect Probe Null;
            /// the version of that program. If the server has others, `probe` asks again with one
            /// of them
            version: u32(0 to 4294967295) = 4 in Connect Probe Null;
            /// how many connections the listener may have at a time
            max: u32(1 to 65536 "connections") = 64 in Listen;
            /// 0: the server does not answer calls
            answer: bool = 1 in Listen;
            /// octets that ECHO sends and receives back
            size: u32(0 to 1048576 "octets") = 1024 in Echo;
            /// how many calls to make
            count: u32(1 to 1000000 "calls") = 1 in Null Echo;
            /// how many of them may be under way at a time
            jobs: u32(1 to 64 "calls at a time") = 1 in Null Echo;
            /// 1: offer a Reply chunk even where the reply fits inline
            chunks: bool = 0 in Null Echo;
        }
    };
}

pub(crate) use control_keys;
