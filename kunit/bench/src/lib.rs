// SPDX-License-Identifier: GPL-2.0

//! Benchmarks of the files of `rpcrdma_cm` that know no kernel: `benches`.
