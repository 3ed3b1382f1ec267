// SPDX-License-Identifier: GPL-2.0

//! TAP and JUnit count as failures what makes the program end with 1.

mod common;

use std::net::SocketAddr;

use rpcrdma_conformance::case::Outcome;
use rpcrdma_conformance::cases;
use rpcrdma_conformance::peer::Server;
use rpcrdma_conformance::report;
use rpcrdma_conformance::report::Expected;
use rpcrdma_conformance::report::Standard;
use rpcrdma_conformance::report::Subject;
use rpcrdma_conformance::run::Report;
use rpcrdma_conformance::trace::Trace;

fn reports() -> Vec<Report> {
    common::reports(&Trace::default())
}

/// Returns the standard of `--expect` with a file that has this line for each report.
fn expecting(line: impl Fn(&Report) -> String) -> Standard {
    let text: String = reports().iter().map(line).collect();
    Standard::Known(Expected::parse(&text, cases::server).expect("a file for --expect"))
}

/// The results of TAP: `.` passed, `F` failed, `S` skipped.
fn tap(standard: &Standard) -> String {
    report::tap(&reports(), standard, 6)
        .lines()
        .filter_map(|line| match line {
            _ if line.starts_with("not ok") => Some('F'),
            _ if line.starts_with("ok") && line.contains("# SKIP") => Some('S'),
            _ if line.starts_with("ok") => Some('.'),
            _ => None,
        })
        .collect()
}

#[test]
fn failures_of_the_formats() {
    let of = |strict| Standard::Documents { strict };
    let all = Outcome::ALL.map(Outcome::name).join(" ");
    assert_eq!(
        all,
        "pass fail non-strict unimplemented inconclusive skipped"
    );
    for (name, standard, wanted) in [
        ("no option", of(false), ".FSSFS"),
        ("--strict", of(true), ".FFSFS"),
        (
            "--expect, all as before",
            expecting(|report| format!("{} {}\n", report.case.id, report.outcome.name())),
            ".SSSSS",
        ),
        (
            "--expect, nothing is named",
            expecting(|_| "# a comment\n\n".into()),
            ".FFFFF",
        ),
        (
            "--expect, failures so far",
            expecting(|report| format!("{} fail # known\n", report.case.id)),
            "FSFFFF",
        ),
    ] {
        assert_eq!(tap(&standard), wanted, "{name}");
        let xml = report::junit(&reports(), &standard, 6);
        let count = |letter| wanted.chars().filter(|&found| found == letter).count();
        let (failures, skipped) = (count('F'), count('S'));
        let head =
            format!("tests=\"6\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"");
        assert!(xml.contains(&head), "{name}: {xml}");
        assert_eq!(xml.matches("<failure ").count(), failures, "{name}");
        assert_eq!(xml.matches("<skipped ").count(), skipped, "{name}");
        let fails = |report: &&Report| standard.fails(report);
        assert_eq!(reports().iter().filter(fails).count(), failures, "{name}");
        if let Standard::Known(expected) = &standard {
            assert_eq!(expected.differences(&reports()).len(), failures, "{name}");
        }
    }
}

#[test]
fn each_format_says_that_cases_are_missing() {
    let server = Server::new(SocketAddr::from(([192, 0, 2, 7], 20_049)));
    let (subject, standard) = (
        Subject::Server(&server),
        Standard::Documents { strict: false },
    );
    let texts = |selected| {
        [
            report::tap(&reports(), &standard, selected),
            report::junit(&reports(), &standard, selected),
            report::html(subject, &reports(), selected),
            report::json(subject, &[], selected, &reports()),
        ]
    };
    let why = "a signal has ended the run: 6 of 9 cases were run";
    for text in texts(6) {
        assert!(!text.contains("signal"), "{text}");
    }
    let [tap, junit, html, json] = texts(9);
    assert!(tap.contains("\n1..9\n"), "{tap}");
    assert!(tap.ends_with(&format!("\nBail out! {why}\n")), "{tap}");
    let head = "tests=\"7\" failures=\"2\" errors=\"1\" skipped=\"3\"";
    assert!(junit.contains(head), "{junit}");
    assert_eq!(junit.matches("<testcase ").count(), 7);
    assert!(junit.contains(&format!("<error message=\"{why}\"/>")));
    assert!(html.contains(&format!("<p class=\"fail\">{why}</p>")));
    assert!(json.contains("\"complete\": false"), "{json}");
}

#[test]
fn wrong_files_for_expect() {
    for (text, why) in [
        ("rfc8797/4/1", "line 1: not an id and a result"),
        ("\nrfc8797/4/1 lost", "line 2: not an id and a result"),
        ("rfc8797/4/99 fail", "line 1: no case has the id"),
    ] {
        let found = Expected::parse(text, cases::server).expect_err(text);
        assert!(found.starts_with(why), "{found}");
    }
}

// XML 1.0, section 2.2. A line of a command's output may be coloured.
#[test]
fn junit_is_xml_whatever_a_reason_has() {
    let mut reports = reports();
    for report in &mut reports {
        report.reason = "\u{1b}[31mred\0\u{ffff}\nnext".into();
    }
    let standard = Standard::Documents { strict: true };
    let text = report::junit(&reports, &standard, 6);
    let bad = |it: char| it.is_control() && it != '\n' || it == '\u{ffff}';
    assert!(!text.contains(bad), "{text:?}");
    assert!(text.contains("[31mred"));
    // A line of TAP that is no comment begins with a word of TAP.
    let tap = report::tap(&reports, &standard, 6);
    assert!(tap.lines().all(|line| !line.starts_with("next")), "{tap}");
}
