// SPDX-License-Identifier: GPL-2.0

//! Text that needs no allocation.

use core::{
    fmt::{
        self,
        Display,
        Write, //
    },
    str,
};

/// A text of at most `N` octets; octets beyond that are left out.
#[derive(Clone, Copy)]
pub(crate) struct Text<const N: usize> {
    octets: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    /// The empty text.
    pub(crate) const EMPTY: Self = Self {
        octets: [0; N],
        len: 0,
    };

    /// Returns the text of `value`.
    pub(crate) fn of(value: impl Display) -> Self {
        let mut text = Self::EMPTY;
        // `write_str` of this type truncates, and never fails.
        let _ = write!(text, "{value}");
        text
    }

    /// Returns the octets of the text.
    pub(crate) fn octets(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or_default()
    }
}

impl<const N: usize> Write for Text<N> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let room = self.octets.get_mut(self.len..).unwrap_or_default();
        let len = room.len().min(s.len());
        for (to, from) in room.iter_mut().zip(s.as_bytes()) {
            *to = *from;
        }
        self.len = self.len.saturating_add(len);
        Ok(())
    }
}

impl<const N: usize> Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(str::from_utf8(self.octets()).unwrap_or("?"))
    }
}

/// Displays a value, or the given word for [`None`].
pub(super) struct Or<T>(pub(super) Option<T>, pub(super) &'static str);

impl<T: Display> Display for Or<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.pad(self.1),
        }
    }
}

/// Returns "yes" or "no".
pub(super) fn yes_no(yes: bool) -> &'static str {
    if yes {
        "yes"
    } else {
        "no"
    }
}

/// Counts the octets that are written to it.
#[derive(Default)]
struct Width(usize);

impl Write for Width {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.0 = self.0.saturating_add(s.len());
        Ok(())
    }
}

/// Returns the larger of `width` and the length of the text of `value`, in octets.
pub(super) fn wider(width: usize, value: Option<impl Display>) -> usize {
    let mut shown = Width::default();
    match value.map(|value| write!(shown, "{value}")) {
        Some(Ok(())) => width.max(shown.0),
        _ => width,
    }
}
