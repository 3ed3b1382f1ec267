// SPDX-License-Identifier: GPL-2.0

//! The pure core: the protocols in [`wire`], the grammar of the control files and the text of the
//! files that show connections in [`text`].
//!
//! No file of this module knows the kernel: they use `core` alone, allocate nothing and cannot
//! panic. The same files are compiled into the module, into the KUnit module and into the crates of
//! `kunit`.

// This file is called mod.rs, because the test crates include it with `#[path]`: the files below
// are then looked for in the directory of this file.
pub(crate) mod text;
pub(crate) mod wire;
