// SPDX-License-Identifier: GPL-2.0

//! Text that people write and read: the grammar of the control files, snapshots, and the text of
//! the files that show them.

mod control_keys;
pub(crate) mod exchange;
pub(crate) mod format;
pub(crate) mod grammar;
pub(crate) mod history;
pub(crate) mod info;
mod keys;
pub(crate) mod outcome;
pub(crate) mod snapshot;
pub(crate) mod stats;
pub(crate) mod tables;
