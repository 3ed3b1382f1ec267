// SPDX-License-Identifier: GPL-2.0

//! `rpcrdma-conformance`

use std::process::ExitCode;

fn main() -> ExitCode {
    rpcrdma_conformance::cli::main()
}
