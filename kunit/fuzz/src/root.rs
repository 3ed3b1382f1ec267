// SPDX-License-Identifier: GPL-2.0

// What is at the root of each fuzzer: the pure files, which name each other from there.

#[path = "../../host/src/checks.rs"]
mod checks;
#[path = "../../../src/debugfs/control.rs"]
mod control;
#[path = "entry.rs"]
mod entry;
#[path = "../../../src/wire.rs"]
mod wire;
