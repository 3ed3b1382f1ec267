// SPDX-License-Identifier: GPL-2.0

//! Comparisons for tests that are tables: if a row fails, its name is in the kernel's log.

use core::fmt::{
    Debug,
    Display, //
};

use kernel::{
    prelude::*,
    str::CString, //
};

/// Compares one row of a table. An assertion would only name the line, which all rows share.
pub(crate) fn check<T: Debug + PartialEq>(row: impl Display, got: T, expected: T) -> Result {
    if got == expected {
        return Ok(());
    }
    failed(row, format_args!("got {got:?}, expected {expected:?}"))
}

/// Compares the text that one row of a table displays.
pub(crate) fn check_display(row: impl Display, shown: impl Display, expected: &str) -> Result {
    let shown = CString::try_from_fmt(format_args!("{shown}"))?;
    check(row, shown.to_str()?, expected)
}

pub(crate) fn failed(row: impl Display, why: impl Display) -> Result {
    pr_err!("{}\n", format_args!("{row}: {why}"));
    Err(EINVAL)
}
