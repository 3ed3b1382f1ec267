// SPDX-License-Identifier: GPL-2.0

//! A conformance suite for servers and clients of RPC-over-RDMA. It shares no code with the kernel
//! module: it is a second opinion, and the module is one of its subjects.

pub mod case;
pub mod cases;
pub mod cli;
pub mod engine;
pub mod gateway;
pub mod mount;
pub mod nfs;
pub mod nfs3;
pub mod peer;
pub mod probe;
pub mod report;
pub mod run;
pub mod self_test;
pub mod session;
pub mod trace;
pub mod wire;
