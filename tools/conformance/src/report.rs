// SPDX-License-Identifier: GPL-2.0

//! The results, in each format.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::case::Case;
use crate::case::Outcome;
use crate::gateway::Client;
use crate::peer::Server;
use crate::peer::Service;
use crate::run::Report;
use crate::trace::words;
use crate::trace::From;

/// Counts of outcomes.
pub fn counts(reports: &[Report]) -> BTreeMap<Outcome, usize> {
    let mut counts: BTreeMap<_, _> = Outcome::ALL.map(|outcome| (outcome, 0)).into();
    for report in reports {
        *counts.entry(report.outcome).or_default() += 1;
    }
    counts
}

/// Returns the counts in words.
pub fn summary(reports: &[Report]) -> String {
    let all = counts(reports);
    let parts: Vec<_> = all
        .iter()
        .map(|(outcome, count)| format!("{count} {}", outcome.name()))
        .collect();
    format!("{} cases: {}", reports.len(), parts.join(", "))
}

/// Returns that a signal has ended the run, unless all selected cases were run.
pub fn interruption(reports: &[Report], selected: usize) -> Option<String> {
    let run = reports.len();
    (run < selected)
        .then(|| format!("a signal has ended the run: {run} of {selected} cases were run"))
}

/// Returns the section of an id: all but its number.
pub fn section(id: &str) -> &str {
    id.rsplit_once('/').map_or(id, |(section, _)| section)
}

/// Returns the table by section.
pub fn table(reports: &[Report]) -> String {
    let mut rows: BTreeMap<&str, BTreeMap<Outcome, usize>> = BTreeMap::new();
    for report in reports {
        *rows
            .entry(section(report.case.id))
            .or_default()
            .entry(report.outcome)
            .or_default() += 1;
    }
    let mut text = format!("{:<20}", "SECTION");
    for outcome in Outcome::ALL {
        let _ = write!(text, " {:>13}", outcome.name());
    }
    text.push('\n');
    for (section, row) in rows {
        let _ = write!(text, "{section:<20}");
        for outcome in Outcome::ALL {
            let count = row.get(&outcome).copied().unwrap_or(0);
            let cell = if count == 0 {
                "-".into()
            } else {
                count.to_string()
            };
            let _ = write!(text, " {cell:>13}");
        }
        text.push('\n');
    }
    text
}

/// Returns everything about a case that has not passed.
pub fn details(report: &Report) -> String {
    let case = report.case;
    let mut text = format!(
        "{} {} {}\n    {}\n    {}: {}\n    sends:   {}\n    accepts: {}\n",
        report.outcome.name(),
        case.id,
        case.name,
        report.reason,
        case.level.name(),
        case.requirement,
        case.sends,
        case.accepts
    );
    for entry in &report.trace {
        let _ = writeln!(text, "    {}", entry.line());
    }
    text
}

#[derive(Serialize)]
struct JsonEntry {
    at_us: u64,
    connection: usize,
    from: &'static str,
    what: String,
    octets: String,
}

#[derive(Serialize)]
struct JsonCase {
    id: &'static str,
    name: &'static str,
    level: &'static str,
    requirement: &'static str,
    sends: &'static str,
    accepts: &'static str,
    outcome: &'static str,
    reason: String,
    took_us: u64,
    exchange: Vec<JsonEntry>,
}

/// The server or the client under test.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    Server(&'a Server),
    Client(&'a Client),
}

impl Subject<'_> {
    /// Returns the name for people.
    fn name(self) -> String {
        match self {
            Subject::Server(server) => server.address.to_string(),
            Subject::Client(client) => format!("the client of {}", client.address),
        }
    }
}

#[derive(Serialize)]
struct JsonPeer {
    address: String,
    device: String,
    transport: &'static str,
    private_data: String,
    program: u32,
    version: u32,
    service: &'static str,
}

fn transport(iwarp: bool) -> &'static str {
    if iwarp {
        "iwarp"
    } else {
        "infiniband"
    }
}

fn digits(octets: &[u8]) -> String {
    words(octets, usize::MAX).replace(' ', "")
}

fn json_server(server: &Server) -> JsonPeer {
    JsonPeer {
        address: server.address.to_string(),
        device: server.device.clone(),
        transport: transport(server.iwarp),
        private_data: digits(&server.private),
        program: server.null.program,
        version: server.null.version,
        service: service_name(&server.service),
    }
}

fn json_client(client: &Client) -> JsonPeer {
    JsonPeer {
        address: client.address.to_string(),
        device: client.device.clone(),
        transport: transport(client.iwarp),
        private_data: digits(&client.private),
        program: client.program.program,
        version: client.program.version,
        service: if client.backend.is_some() {
            "nfs"
        } else {
            "null"
        },
    }
}

#[derive(Serialize)]
struct Json<'a> {
    schema: u32,
    suite: &'static str,
    arguments: &'a [String],
    complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<JsonPeer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<JsonPeer>,
    counts: BTreeMap<&'static str, usize>,
    cases: Vec<JsonCase>,
}

fn from_name(from: From) -> &'static str {
    match from {
        From::Suite => "suite",
        From::Peer => "peer",
        From::Note => "note",
    }
}

fn service_name(service: &Service) -> &'static str {
    match service {
        Service::Null => "null",
        Service::Echo(_) => "echo",
        Service::Nfs4(_) => "nfs4",
    }
}

/// Returns the results as JSON (schema.json), with the arguments of the program, and whether all
/// selected cases were run. The exchange is left out of cases that passed.
pub fn json(
    subject: Subject<'_>,
    arguments: &[String],
    selected: usize,
    reports: &[Report],
) -> String {
    let cases = reports.iter().map(|report| JsonCase {
        id: report.case.id,
        name: report.case.name,
        level: report.case.level.name(),
        requirement: report.case.requirement,
        sends: report.case.sends,
        accepts: report.case.accepts,
        outcome: report.outcome.name(),
        reason: report.reason.clone(),
        took_us: report.took.as_micros() as u64,
        exchange: report
            .trace
            .iter()
            .filter(|_| report.outcome != Outcome::Pass)
            .map(|entry| JsonEntry {
                at_us: entry.at.as_micros() as u64,
                connection: entry.connection,
                from: from_name(entry.from),
                what: entry.what.clone(),
                octets: digits(&entry.octets),
            })
            .collect(),
    });
    let document = Json {
        schema: 1,
        suite: env!("CARGO_PKG_VERSION"),
        arguments,
        complete: interruption(reports, selected).is_none(),
        server: match subject {
            Subject::Server(server) => Some(json_server(server)),
            Subject::Client(_) => None,
        },
        client: match subject {
            Subject::Server(_) => None,
            Subject::Client(client) => Some(json_client(client)),
        },
        counts: counts(reports)
            .into_iter()
            .map(|(outcome, count)| (outcome.name(), count))
            .collect(),
        cases: cases.collect(),
    };
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

/// How a result counts in TAP and JUnit. These formats have no other results.
enum Kind {
    Pass,
    Fail(String),
    Skip(String),
}

/// How results are judged.
pub enum Standard {
    /// By the documents. If `strict`, a SHOULD that is not met is a failure.
    Documents { strict: bool },
    /// By known results: only differences are failures.
    Known(Expected),
}

impl Standard {
    /// Whether a result is a failure, in all formats and for the status of the program.
    pub fn fails(&self, report: &Report) -> bool {
        matches!(self.kind(report), Kind::Fail(_))
    }

    fn kind(&self, report: &Report) -> Kind {
        let outcome = report.outcome;
        let why = format!("{}: {}", outcome.name(), report.reason);
        match self {
            Self::Known(expected) => match expected.difference(report) {
                Some(difference) => Kind::Fail(difference),
                None if outcome == Outcome::Pass => Kind::Pass,
                None => Kind::Skip(format!("as expected: {why}")),
            },
            Self::Documents { strict } => match outcome {
                Outcome::Pass => Kind::Pass,
                Outcome::Fail | Outcome::Inconclusive => Kind::Fail(why),
                Outcome::NonStrict if *strict => Kind::Fail(why),
                Outcome::NonStrict | Outcome::Unimplemented | Outcome::Skipped => Kind::Skip(why),
            },
        }
    }
}

/// The results of a file for --expect, by the ids of their cases; those that are not named passed.
#[derive(Debug)]
pub struct Expected(BTreeMap<String, Outcome>);

impl Expected {
    /// Parses the file. Each line has the id of a case, and a result.
    pub fn parse<C>(text: &str, cases: impl Fn() -> C) -> Result<Self, String>
    where
        C: Iterator<Item = &'static Case>,
    {
        let mut known = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (id, outcome) = line
                .split_once(' ')
                .and_then(|(id, name)| {
                    let mut all = Outcome::ALL.into_iter();
                    Some((id, all.find(|outcome| outcome.name() == name)?))
                })
                .ok_or(format!("line {number}: not an id and a result: {line}"))?;
            if !cases().any(|case| case.id == id) {
                return Err(format!("line {number}: no case has the id {id}"));
            }
            known.insert(id.to_string(), outcome);
        }
        Ok(Self(known))
    }

    /// Returns in which way a result is not the expected one.
    fn difference(&self, report: &Report) -> Option<String> {
        let was = self.0.get(report.case.id).unwrap_or(&Outcome::Pass);
        let is = report.outcome;
        (*was != is).then(|| {
            let (was, is) = (was.name(), is.name());
            format!("expected {was}, but {is}: {}", report.reason)
        })
    }

    /// Returns a line for each result that is not the expected one.
    pub fn differences(&self, reports: &[Report]) -> Vec<String> {
        let line = |report: &Report| {
            let case = report.case;
            let difference = self.difference(report)?;
            Some(format!("{} {}: {difference}", case.id, case.name))
        };
        reports.iter().filter_map(line).collect()
    }
}

/// Returns the results as TAP, version 14.
pub fn tap(reports: &[Report], standard: &Standard, selected: usize) -> String {
    let mut text = format!("TAP version 14\n1..{selected}\n");
    for (number, report) in reports.iter().enumerate() {
        let name = format!("{} - {} {}", number + 1, report.case.id, report.case.name);
        let _ = match standard.kind(report) {
            Kind::Pass => writeln!(text, "ok {name}"),
            Kind::Skip(why) => {
                let why = why.replace('#', "").replace(['\n', '\r'], " ");
                writeln!(text, "ok {name} # SKIP {why}")
            }
            Kind::Fail(why) => {
                let lines = format!("{why}\n{}", details(report));
                let lines = lines.trim_end().replace('\n', "\n  # ");
                writeln!(text, "not ok {name}\n  # {lines}")
            }
        };
    }
    if let Some(why) = interruption(reports, selected) {
        let _ = writeln!(text, "Bail out! {why}");
    }
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace(is_no_xml, "\u{fffd}")
}

/// Whether XML 1.0 does not allow a character, not even escaped. The output of a command may have it.
fn is_no_xml(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => false,
        '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => true,
        _ => false,
    }
}

/// Returns the results in the form of JUnit.
pub fn junit(reports: &[Report], standard: &Standard, selected: usize) -> String {
    let (mut failures, mut skipped) = (0, 0);
    let mut cases = String::new();
    for report in reports {
        let _ = write!(
            cases,
            "  <testcase classname=\"{}\" name=\"{} {}\" time=\"{:.3}\"",
            escape(section(report.case.id)),
            escape(report.case.id),
            escape(report.case.name),
            report.took.as_secs_f64()
        );
        let _ = match standard.kind(report) {
            Kind::Pass => writeln!(cases, "/>"),
            Kind::Skip(why) => {
                skipped += 1;
                writeln!(
                    cases,
                    ">\n    <skipped message=\"{}\"/>\n  </testcase>",
                    escape(&why)
                )
            }
            Kind::Fail(why) => {
                failures += 1;
                writeln!(
                    cases,
                    ">\n    <failure message=\"{}\">{}</failure>\n  </testcase>",
                    escape(&why),
                    escape(&details(report))
                )
            }
        };
    }
    let errors = usize::from(reports.len() < selected);
    if let Some(why) = interruption(reports, selected) {
        let _ = writeln!(
            cases,
            "  <testcase classname=\"rpcrdma-conformance\" name=\"all cases\">\n    \
             <error message=\"{why}\"/>\n  </testcase>"
        );
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"rpcrdma-conformance\" \
         tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\">\n\
         {cases}</testsuite>\n",
        reports.len() + errors
    )
}

/// Returns the results as one HTML page that needs no network.
pub fn html(subject: Subject<'_>, reports: &[Report], selected: usize) -> String {
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <title>RPC-over-RDMA: {address}</title>\n<style>\n\
         body {{ font-family: sans-serif; margin: 2em; }}\n\
         table {{ border-collapse: collapse; }}\n\
         td, th {{ padding: .2em .6em; text-align: left; vertical-align: top; \
         border-bottom: 1px solid #ddd; }}\n\
         pre {{ white-space: pre-wrap; overflow-wrap: anywhere; }}\n\
         .pass {{ color: #060; }} .fail {{ color: #b00; font-weight: bold; }}\n\
         .non-strict, .inconclusive {{ color: #950; }}\n\
         .skipped, .unimplemented {{ color: #666; }}\n</style></head><body>\n\
         <h1>RPC-over-RDMA conformance of {address}</h1>\n<p>{summary}</p>\n\
         <table>\n<tr><th>case</th><th>result</th><th>level</th><th>what</th></tr>\n",
        address = escape(&subject.name()),
        summary = escape(&summary(reports))
            + &interruption(reports, selected).map_or(String::new(), |why| format!(
                "</p>\n<p class=\"fail\">{why}"
            ))
    );
    for report in reports {
        let what = if report.outcome == Outcome::Pass {
            escape(report.case.name)
        } else {
            format!(
                "<details><summary>{}: {}</summary><pre>{}</pre></details>",
                escape(report.case.name),
                escape(&report.reason),
                escape(&details(report))
            )
        };
        let outcome = report.outcome.name();
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td class=\"{outcome}\">{outcome}</td><td>{}</td><td>{what}</td></tr>",
            escape(report.case.id),
            report.case.level.name()
        );
    }
    text + "</table>\n</body></html>\n"
}

/// Returns all octets in the form that text2pcap reads.
pub fn packets(reports: &[Report]) -> String {
    let mut text = String::new();
    for report in reports {
        let _ = writeln!(text, "# {} {}", report.case.id, report.case.name);
        for entry in &report.trace {
            let _ = writeln!(text, "# {}", entry.what);
            if entry.from != From::Note {
                text += &entry.packet();
            }
        }
    }
    text
}

/// Returns the outcomes as an expectation file.
pub fn expectations(reports: &[Report]) -> String {
    let mut text = String::from(
        "# Results of rpcrdma-conformance that differ from \"pass\". --expect reports only changes.\n",
    );
    for report in reports {
        if report.outcome != Outcome::Pass {
            let _ = writeln!(text, "{} {}", report.case.id, report.outcome.name());
        }
    }
    text
}
