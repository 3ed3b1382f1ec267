// SPDX-License-Identifier: GPL-2.0

//! The differences between the supported series of kernels, as far as they concern Rust.
//!
//! Kbuild passes `--cfg` for each interface that a series has; the rest of the module does not
//! know the series.

use core::borrow::Borrow;

use kernel::bindings;

#[cfg(not(has_module_metadata))]
use crate::THIS_MODULE;

#[cfg(has_module_metadata)]
const THIS_MODULE: &kernel::ThisModule = kernel::module::this_module::<crate::LocalModule>();

/// Returns this module, as the owner of what it registers.
///
/// Before 7.3 the `module!` macro defines a static for it, then a trait of the module.
pub(crate) const fn this_module() -> *mut bindings::module {
    THIS_MODULE.as_ptr()
}

/// Returns the value of a module parameter from what its `value()` returns: a reference before
/// 7.3, then the value.
pub(crate) fn parameter<T: Copy>(value: impl Borrow<T>) -> T {
    *value.borrow()
}
