// SPDX-License-Identifier: GPL-2.0

//! The differences between the supported series of kernels that concern Rust.
//!
//! Kbuild passes a `--cfg` for each interface that not every series has. No other Rust file depends
//! on the series.

use core::borrow::Borrow;

use kernel::bindings;

#[cfg(not(has_module_metadata))]
use crate::THIS_MODULE;

#[cfg(has_module_metadata)]
const THIS_MODULE: &kernel::ThisModule = kernel::module::this_module::<crate::LocalModule>();

/// Returns this module, for use as the owner of its files.
///
/// Up to 7.2 the `module!` macro defines a static for it. Since 7.3 it implements a trait.
pub(crate) const fn this_module() -> *mut bindings::module {
    THIS_MODULE.as_ptr()
}

/// Returns the value of a module parameter from the result of its `value()`: a reference up to 7.2,
/// the value itself since 7.3.
pub(crate) fn parameter<T: Copy>(value: impl Borrow<T>) -> T {
    *value.borrow()
}
