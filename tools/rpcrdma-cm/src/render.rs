// SPDX-License-Identifier: GPL-2.0

//! Renders the values, for people and for programs.

pub(crate) mod octets;
pub(crate) mod prometheus;
pub(crate) mod table;
pub(crate) mod words;

use serde::Serialize;

use crate::verdict::Severity;

/// The version of the JSON documents. It is raised if a program that reads them has to change.
const SCHEMA: u64 = 1;

/// A JSON document: `kind` names the form of the rest.
#[derive(Serialize)]
pub(crate) struct Document<T> {
    schema: u64,
    kind: &'static str,
    #[serde(flatten)]
    content: T,
}

/// Renders a document in one line.
pub(crate) fn json(kind: &'static str, content: impl Serialize) -> Result<String, String> {
    let document = Document {
        schema: SCHEMA,
        kind,
        content,
    };
    serde_json::to_string(&document)
        .map(|text| text + "\n")
        .map_err(|error| format!("JSON: {error}"))
}

/// Makes a text harmless for a terminal: characters that control it, or that change the direction
/// of the text, become `\u{...}`.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let is_direction = matches!(c,
            '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || is_direction {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// How text is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Whether to use colours.
    pub(crate) colour: bool,
    /// Whether tables fit themselves to the terminal.
    pub(crate) terminal: bool,
}

impl Style {
    /// Gives `text` the colour of that severity.
    pub(crate) fn severity(self, severity: Severity, text: &str) -> String {
        let code = match severity {
            _ if !self.colour => return text.to_owned(),
            Severity::Fine => 32,
            Severity::Note => return text.to_owned(),
            Severity::Unknown => 36,
            Severity::Degraded => 33,
            Severity::Failed => 31,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// The value, escaped, or "-".
pub(crate) fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| escape(&value.to_string()))
}

/// The word for a flag, or "-".
pub(crate) fn yes_no(value: Option<bool>) -> &'static str {
    match value {
        Some(true) => "yes",
        Some(false) => "no",
        None => "-",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_attack_a_terminal() {
        assert_eq!(
            escape("/mnt/\u{1b}[2J\n\u{202e}x"),
            "/mnt/\\u{1b}[2J\\u{a}\\u{202e}x"
        );
        assert_eq!(escape("/mnt/größe \u{9b}"), "/mnt/größe \\u{9b}");
    }

    #[test]
    fn colour_only_where_asked_for() {
        let plain = Style {
            colour: false,
            terminal: true,
        };
        let coloured = Style {
            colour: true,
            terminal: true,
        };
        assert_eq!(plain.severity(Severity::Failed, "x"), "x");
        assert_eq!(
            coloured.severity(Severity::Failed, "x"),
            "\u{1b}[31mx\u{1b}[0m"
        );
    }
}
