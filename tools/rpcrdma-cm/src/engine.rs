// SPDX-License-Identifier: GPL-2.0

//! The two programs that can ask a server: the module rpcrdma_cm, and rpcrdma-conformance, which
//! needs neither the module nor root. Both report in the same form.

use clap::ValueEnum;
use serde::Serialize;

use crate::files::Result;

/// What asks a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Engine {
    /// The module rpcrdma_cm
    Kernel,
    /// The program rpcrdma-conformance, which needs neither the module nor root
    User,
}

/// The keys of the file `probe` of the module, and their values.
pub(crate) type Keys = [(&'static str, Option<String>)];

/// The line for the file `probe`.
pub(crate) fn line(target: &str, keys: &Keys) -> String {
    let mut line = target.to_owned();
    for (key, value) in keys {
        if let Some(value) = value {
            line.push_str(&format!(" {key}={value}"));
        }
    }
    line + "\n"
}

/// The arguments for `rpcrdma-conformance`.
pub(crate) fn words(target: &str, keys: &Keys) -> Result<Vec<String>> {
    let (mut program, mut version) = ("100003", "4");
    let mut words = vec!["probe".to_owned(), target.to_owned()];
    for (key, value) in keys {
        let Some(value) = value else {
            continue;
        };
        let option = match *key {
            "send" => "--send",
            "recv" => "--receive",
            "credits" => "--credits",
            "from" => "--source",
            "timeout_ms" => "--limit-ms",
            "inv" => {
                words.push("--invalidation".to_owned());
                continue;
            }
            "program" => {
                program = value;
                continue;
            }
            "version" => {
                version = value;
                continue;
            }
            "rpcvers" if value == "1" => continue,
            other => return Err(format!("{other}={value}: only the engine kernel does that")),
        };
        words.extend([option.to_owned(), value.clone()]);
    }
    words.extend(["--program".to_owned(), format!("{program}:{version}")]);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_get_every_key() {
        let keys = [
            ("send", Some("8192".to_owned())),
            ("recv", None),
            ("inv", Some("1".to_owned())),
            ("from", Some("10.0.0.1".to_owned())),
            ("timeout_ms", Some("9".to_owned())),
            ("version", Some("3".to_owned())),
            ("rpcvers", Some("1".to_owned())),
        ];
        assert_eq!(
            line("h:1", &keys),
            "h:1 send=8192 inv=1 from=10.0.0.1 timeout_ms=9 version=3 rpcvers=1\n"
        );
        assert_eq!(
            words("h:1", &keys).unwrap().join(" "),
            "probe h:1 --send 8192 --invalidation --source 10.0.0.1 --limit-ms 9 \
             --program 100003:3"
        );
        assert!(words("h:1", &[("rpcvers", Some("auto".to_owned()))]).is_err());
    }
}
