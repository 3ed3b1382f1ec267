// SPDX-License-Identifier: GPL-2.0

// The modules at the root of each fuzzer. The pure files name each other by `crate::`.

#[path = "../../host/src/checks.rs"]
mod checks;
#[path = "entry.rs"]
mod entry;
#[path = "../../../src/pure/mod.rs"]
mod pure;
