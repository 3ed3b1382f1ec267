// SPDX-License-Identifier: GPL-2.0

//! The file `stats`.

use super::{
    key_value,
    Value, //
};

/// Parses `stats`: counters by their names, in the order of the file. A name that could not be one
/// of a metric is left out.
pub(crate) fn stats(text: &str) -> Vec<(String, u64)> {
    text.lines()
        .filter_map(key_value)
        .filter(|(key, _)| is_name(key))
        .filter_map(|(key, value)| Some((key.to_owned(), Value::parse(value)?)))
        .collect()
}

fn is_name(key: &str) -> bool {
    key.starts_with(|first: char| first.is_ascii_lowercase())
        && key
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters() {
        let text =
            "connects: 3\nlost: 0\nbad key: 1\nx{y=\"z\"}: 1\n: 5\nhuge: 99999999999999999999\n";
        assert_eq!(
            stats(text),
            [("connects".to_owned(), 3), ("lost".to_owned(), 0)]
        );
    }
}
