// SPDX-License-Identifier: GPL-2.0

//! Benchmarks of the pure files of `rpcrdma_cm`. They are in `benches`.
