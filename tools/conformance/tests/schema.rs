// SPDX-License-Identifier: GPL-2.0

//! JSON of results is as schema.json says.

mod common;

use std::net::SocketAddr;

use rpcrdma_conformance::gateway::Client;
use rpcrdma_conformance::peer::Server;
use rpcrdma_conformance::report;
use rpcrdma_conformance::report::Subject;
use rpcrdma_conformance::run::Report;
use rpcrdma_conformance::trace::Trace;
use serde_json::json;
use serde_json::Value;

/// Compares a value with a schema, as far as schema.json uses the language. Panics on other words.
fn compare(root: &Value, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
    let wrong = |why: String| Err(format!("{place}: {why}"));
    for (word, wanted) in schema.as_object().expect("an object") {
        match (word.as_str(), wanted) {
            ("$schema" | "title" | "description" | "$defs", _) => (),
            ("$ref", Value::String(path)) => {
                let found = root.pointer(path.trim_start_matches('#')).expect("a $ref");
                compare(root, found, value, place)?;
            }
            ("type", Value::String(name)) => {
                let good = match name.as_str() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "integer" => value.is_u64() || value.is_i64(),
                    other => panic!("unknown type {other}"),
                };
                if !good {
                    return wrong(format!("no {name}"));
                }
            }
            ("const", wanted) if wanted != value => return wrong(format!("not {wanted}")),
            ("const", _) => (),
            ("enum", Value::Array(allowed)) if !allowed.contains(value) => {
                return wrong(format!("{value} is not allowed"));
            }
            ("enum", _) => (),
            ("minimum", wanted) if value.as_i64() < wanted.as_i64() => {
                return wrong(format!("{value} is too small"));
            }
            ("minimum", _) => (),
            ("pattern", Value::String(pattern)) => {
                assert_eq!(pattern, "^([0-9a-f]{2})*$");
                let text = value.as_str().unwrap_or_default();
                let digit = |octet| matches!(octet, b'0'..=b'9' | b'a'..=b'f');
                if text.len() % 2 != 0 || !text.bytes().all(digit) {
                    return wrong(format!("no octets: {text}"));
                }
            }
            ("required", Value::Array(names)) => {
                for name in names {
                    if value.get(name.as_str().expect("a name")).is_none() {
                        return wrong(format!("{name} is missing"));
                    }
                }
            }
            ("properties", Value::Object(properties)) => {
                for (name, below) in value.as_object().into_iter().flatten() {
                    if let Some(schema) = properties.get(name) {
                        compare(root, schema, below, &format!("{place}/{name}"))?;
                    }
                }
            }
            ("additionalProperties", Value::Bool(false)) => {
                for (name, _) in value.as_object().into_iter().flatten() {
                    if schema["properties"].get(name).is_none() {
                        return wrong(format!("{name} is unknown"));
                    }
                }
            }
            ("items", schema) => {
                for (number, below) in value.as_array().into_iter().flatten().enumerate() {
                    compare(root, schema, below, &format!("{place}/{number}"))?;
                }
            }
            ("oneOf", Value::Array(schemas)) => {
                let fits = |schema: &&Value| compare(root, schema, value, place).is_ok();
                if schemas.iter().filter(fits).count() != 1 {
                    return wrong("not one of the forms".into());
                }
            }
            other => panic!("unknown word {other:?}"),
        }
    }
    Ok(())
}

fn check(schema: &Value, document: &Value) -> Result<(), String> {
    compare(schema, schema, document, "")
}

/// A report of each outcome, with an exchange.
fn reports() -> Vec<Report> {
    let trace = Trace::default();
    trace.sent(1, "Send", &[1, 0xab]);
    trace.received(1, "Send", &[]);
    trace.note(1, "the peer disconnected");
    common::reports(&trace)
}

#[test]
fn json_is_as_the_schema_says() {
    let schema: Value = serde_json::from_str(include_str!("../schema.json")).expect("JSON");
    let address: SocketAddr = "192.0.2.7:20049".parse().expect("an address");
    let (server, client) = (Server::new(address), Client::new(address));
    let reports = reports();
    for (subject, name) in [
        (Subject::Server(&server), "server"),
        (Subject::Client(&client), "client"),
    ] {
        let text = report::json(subject, &["server".into()], 6, &reports);
        let document: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(check(&schema, &document), Ok(()));
        assert_eq!(document["cases"].as_array().map(Vec::len), Some(6));
        assert!(document[name].is_object());
        // A schema that allows everything would prove nothing.
        for key in document.as_object().expect("an object").keys() {
            let mut other = document.clone();
            other[key] = json!(["no", {"such": "value"}]);
            assert!(check(&schema, &other).is_err(), "{key}");
            let object = other.as_object_mut().expect("an object");
            object.remove(key);
            assert!(check(&schema, &other).is_err(), "without {key}");
        }
        for place in ["", "/cases/1", "/cases/1/exchange/0", &format!("/{name}")] {
            let mut other = document.clone();
            let object = other.pointer_mut(place).expect("an object");
            object["surplus"] = json!(1);
            assert!(check(&schema, &other).is_err(), "{place}");
        }
    }
}
