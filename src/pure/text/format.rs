// SPDX-License-Identifier: GPL-2.0

//! Text that needs no allocation.

use core::{
    fmt::{
        self,
        Display,
        Write, //
    },
    net::SocketAddr,
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

    /// Returns the text.
    pub(super) fn as_str(&self) -> &str {
        str::from_utf8(self.octets()).unwrap_or("?")
    }

    /// Adds octets.
    fn add(&mut self, octets: &[u8]) {
        let room = self.octets.get_mut(self.len..).unwrap_or_default();
        let len = room.len().min(octets.len());
        if let (Some(to), Some(from)) = (room.get_mut(..len), octets.get(..len)) {
            to.copy_from_slice(from);
        }
        self.len = self.len.saturating_add(len);
    }

    /// Adds a number, as its `Display` writes it.
    fn add_number(&mut self, number: u64) {
        let end = self.len.saturating_add(digits(number));
        let room = self.octets.get_mut(self.len..end).unwrap_or_default();
        let mut rest = number;
        for digit in room.iter_mut().rev() {
            *digit = u8::try_from(rest % 10).unwrap_or(0).wrapping_add(b'0');
            rest /= 10;
        }
        self.len = self.len.saturating_add(room.len());
    }

    /// Adds an address, as its `Display` writes it.
    fn add_address(&mut self, address: SocketAddr) {
        let SocketAddr::V4(address) = address else {
            let _ = write!(self, "{address}");
            return;
        };
        let [a, b, c, d] = address.ip().octets();
        for octet in [a, b, c] {
            self.add_number(octet.into());
            self.add(b".");
        }
        self.add_number(d.into());
        self.add(b":");
        self.add_number(address.port().into());
    }
}

/// Returns the number of digits of a number.
fn digits(number: u64) -> usize {
    let further = number.checked_ilog10().unwrap_or(0) as usize;
    further.saturating_add(1)
}

/// Returns the length of the text of an address, in octets.
pub(super) fn address_width(address: SocketAddr) -> usize {
    let SocketAddr::V4(address) = address else {
        return wider(0, Some(address));
    };
    let numbers = address.ip().octets().into_iter().map(u64::from);
    // Three dots and a colon.
    numbers
        .chain([address.port().into()])
        .fold(4, |width, number| width.saturating_add(digits(number)))
}

impl<const N: usize> Write for Text<N> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.add(s.as_bytes());
        Ok(())
    }
}

impl<const N: usize> Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The largest length of a line of a table, in octets.
const LINE_ROOM: usize = 288;

/// A line of a table. The columns are padded here, because core's formatting writes each padding
/// space separately, which takes several times as long.
///
/// # Invariants
///
/// The octets behind the length are spaces.
pub(super) struct Line(Text<LINE_ROOM>);

impl Line {
    /// A line without columns. It is filled with spaces, so that a padding needs no copying.
    pub(super) const EMPTY: Self = Self(Text {
        octets: [b' '; LINE_ROOM],
        len: 0,
    });

    /// Adds spaces.
    fn add_spaces(&mut self, count: usize) {
        self.0.len = self.0.len.saturating_add(count).min(LINE_ROOM);
    }

    /// Adds the text of `add` at the left of a column, and a space. The column is `width` octets
    /// wide, or as wide as the text if that is longer.
    fn left_with(&mut self, width: usize, add: impl FnOnce(&mut Text<LINE_ROOM>)) {
        let begin = self.0.len;
        add(&mut self.0);
        let len = self.0.len.saturating_sub(begin);
        self.add_spaces(width.saturating_sub(len).saturating_add(1));
    }

    /// Adds a value at the left of a column.
    pub(super) fn left(&mut self, width: usize, value: &str) {
        self.left_with(width, |text| text.add(value.as_bytes()));
    }

    /// Adds a number at the left of a column.
    pub(super) fn left_number(&mut self, width: usize, number: u64) {
        self.left_with(width, |text| text.add_number(number));
    }

    /// Adds an address at the left of a column.
    pub(super) fn left_address(&mut self, width: usize, address: SocketAddr) {
        self.left_with(width, |text| text.add_address(address));
    }

    /// Adds a number at the right of a column, and a space, or `unknown` in its place.
    pub(super) fn right(&mut self, width: usize, number: Option<u32>, unknown: &str) {
        match number.map(u64::from) {
            Some(number) => {
                self.add_spaces(width.saturating_sub(digits(number)));
                self.0.add_number(number);
            }
            None => {
                self.add_spaces(width.saturating_sub(unknown.len()));
                self.0.add(unknown.as_bytes());
            }
        }
        self.add_spaces(1);
    }

    /// Ends the line with the value of its last column, and writes it.
    pub(super) fn end(&mut self, value: &str, out: &mut dyn Write) -> fmt::Result {
        self.0.add(value.as_bytes());
        self.0.add(b"\n");
        out.write_str(self.0.as_str())
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
