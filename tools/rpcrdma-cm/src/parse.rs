// SPDX-License-Identifier: GPL-2.0

//! Parses the texts of the module and of /proc. Parsing never fails: an unknown word is left out,
//! and a missing value is `None`.

pub(crate) mod history;
pub(crate) mod info;
#[path = "../../../src/pure/text/keys.rs"]
#[allow(
    unused_imports,
    unused_macros,
    reason = "the names of counters are those of the file"
)]
mod keys;
pub(crate) mod mounts;
pub(crate) mod stats;
pub(crate) mod transports;

/// A value that the module writes as text.
pub(crate) trait Value: Sized {
    /// Returns `None` if the value is unknown, does not apply, or is of another type.
    fn parse(text: &str) -> Option<Self>;

    /// Returns the text that [`Self::parse`] takes.
    fn text(&self) -> String;
}

impl Value for u64 {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        }
    }

    fn text(&self) -> String {
        if *self { "yes" } else { "no" }.to_owned()
    }
}

impl Value for String {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "-" | "none" | "unknown" => None,
            text => Some(text.to_owned()),
        }
    }

    fn text(&self) -> String {
        self.clone()
    }
}

// The kinds of the keys in keys.rs.
type Word = Option<String>;
type Hex = Option<String>;
type Date = Option<String>;
type Number = Option<u64>;
type Octets = Option<u64>;
type Milliseconds = Option<u64>;
type Microseconds = Option<u64>;
type YesNo = Option<bool>;
type Lines = Vec<String>;

/// What keeps the value of a key.
trait Field {
    fn set(&mut self, value: &str);
}

impl<T: Value> Field for Option<T> {
    fn set(&mut self, value: &str) {
        *self = T::parse(value);
    }
}

impl Field for Vec<String> {
    fn set(&mut self, value: &str) {
        self.push(value.to_owned());
    }
}

/// Splits `key: value`.
fn key_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    Some((key.trim(), value.trim()))
}
