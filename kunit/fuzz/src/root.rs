// SPDX-License-Identifier: GPL-2.0

// What is at the root of each fuzzer: the pure files, which name each other from there.

#[path = "../../host/src/checks.rs"]
mod checks;
#[path = "entry.rs"]
mod entry;
#[path = "../../../src/protocol.rs"]
mod protocol;
