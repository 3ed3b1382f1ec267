// SPDX-License-Identifier: GPL-2.0

//! The file `stats`.

use serde::Serialize;

use super::{
    key_value,
    keys::observing_reasons,
    Value, //
};

/// Whether the module observes the connections of others.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct Observing {
    /// `yes`, `partial` or `no`.
    pub(crate) state: String,
    /// Why not, or what is missing.
    pub(crate) reasons: Vec<Reason>,
    /// Whether connections of NFS clients may be missing.
    #[serde(skip)]
    pub(crate) hides_clients: bool,
}

/// A value of `observing_reason`.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct Reason {
    /// A word for programs.
    pub(crate) reason: String,
    pub(crate) sentence: String,
}

macro_rules! reasons {
    ($($observing:literal {
        $($(#[doc = $sentence:literal])* $name:ident = $word:literal;)*
    })*) => {
        /// The words of all reasons that a module of this version may have, in the order of the
        /// file.
        pub(crate) const REASONS: &[&str] = &[$($($word,)*)*];
    };
}

observing_reasons!(reasons);

/// The reasons for which no connection of an NFS client is missing.
const OF_OTHERS: &[&str] = &[
    "btf",
    "members",
    "users",
    "causes",
    "limit_user",
    "limit_programs",
];

impl Observing {
    /// Whether connections of others are shown, even if some are missing.
    pub(crate) fn is_on(&self) -> bool {
        self.state != "no"
    }

    /// Whether the module knows which connection of a client was made again.
    pub(crate) fn knows_generations(&self) -> bool {
        let unknown = |reason: &Reason| matches!(&*reason.reason, "btf" | "members");
        !self.reasons.iter().any(unknown)
    }

    /// The warning for the user, or `None` if everything is observed.
    pub(crate) fn sentence(&self) -> Option<String> {
        let reasons: Vec<&str> = self
            .reasons
            .iter()
            .map(|reason| &*reason.sentence)
            .collect();
        let reasons = match reasons.join("; ") {
            reasons if reasons.is_empty() => "the module names no reason".to_owned(),
            reasons => reasons,
        };
        match &*self.state {
            "yes" => None,
            "no" => Some(format!(
                "observing is off, so only the module's own connections are shown: {reasons}"
            )),
            _ => Some(format!("observing is partial: {reasons}")),
        }
    }
}

/// Parses the keys `observing` and `observing_reason` of `stats`. Returns `None` if the module is
/// older than these keys.
pub(crate) fn observing(text: &str) -> Option<Observing> {
    let values = |wanted: &'static str| {
        text.lines()
            .filter_map(key_value)
            .filter(move |(key, _)| *key == wanted)
            .map(|(_, value)| value)
    };
    let state = values("observing").next()?.to_owned();
    let reasons: Vec<Reason> = values("observing_reason")
        .map(|value| {
            let (reason, sentence) = key_value(value).unwrap_or((value, value));
            Reason {
                reason: reason.to_owned(),
                sentence: sentence.to_owned(),
            }
        })
        .collect();
    let is_zero = |key| values(key).next() == Some("0");
    let of_others = |reason: &Reason| match &*reason.reason {
        "events" => is_zero("observed_events_lost_nfs") && is_zero("observed_events_lost_hooks"),
        word => OF_OTHERS.contains(&word),
    };
    let partial = state == "partial" && !reasons.is_empty();
    Some(Observing {
        hides_clients: state != "yes" && !(partial && reasons.iter().all(of_others)),
        state,
        reasons,
    })
}

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
    fn reasons_of_observing() {
        let sentence = |text: &str| observing(text).unwrap().sentence();
        assert_eq!(observing("connects: 3\n"), None);
        assert_eq!(sentence("observing: yes\n"), None);
        assert_eq!(
            sentence("lost: 0\nobserving: no\nobserving_reason: parameter: observe=0\n").as_deref(),
            Some("observing is off, so only the module's own connections are shown: observe=0")
        );
        assert_eq!(
            sentence(
                "observing: partial\nobserving_reason: btf: no BTF: x\nobserving_reason: events: y\n"
            )
            .as_deref(),
            Some("observing is partial: no BTF: x; y")
        );
        assert_eq!(
            sentence("observing: no\n").as_deref(),
            Some("observing is off, so only the module's own connections are shown: the module names no reason")
        );
        let reasons = observing("observing: no\nobserving_reason: fprobe: x\n")
            .unwrap()
            .reasons;
        assert_eq!(reasons[0].reason, "fprobe");
    }

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
