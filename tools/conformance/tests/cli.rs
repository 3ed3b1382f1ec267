// SPDX-License-Identifier: GPL-2.0

//! The command line, as far as it needs no RDMA device.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;

use rpcrdma_conformance::case::Case;
use rpcrdma_conformance::case::Need;
use rpcrdma_conformance::cases;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rpcrdma-conformance"))
        .args(arguments)
        .output()
        .expect("the program runs")
}

fn lines(output: &Output) -> usize {
    String::from_utf8_lossy(&output.stdout).lines().count()
}

fn count(cases: impl Iterator<Item = &'static Case>, draft_v2: bool) -> usize {
    cases
        .filter(|case| draft_v2 || !case.needs.contains(&Need::DraftV2))
        .count()
}

#[test]
fn the_list_has_all_cases() {
    let output = run(&["server", "--list"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(lines(&output), count(cases::server(), false));
    let output = run(&["server", "--list", "--draft-v2"]);
    assert_eq!(lines(&output), count(cases::server(), true));
}

#[test]
fn the_list_has_all_cases_for_clients() {
    let output = run(&["client", "--list"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(lines(&output), count(cases::client(), false));
    let output = run(&["client", "--list", "--draft-v2"]);
    assert_eq!(lines(&output), count(cases::client(), true));
    assert_eq!(lines(&run(&["client", "--list", "rfc8797/4/c1"])), 1);
    assert_eq!(
        run(&["client", "--list", "rfc8797/4/1"]).status.code(),
        Some(2)
    );
}

#[test]
fn a_section_selects_its_cases_only() {
    let output = run(&["server", "--list", "rfc8166/4.5.2"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.lines().count() > 5);
    assert!(text.lines().all(|line| line.starts_with("rfc8166/4.5.2/")));
    // Subsections belong to a section, and 4.5 is none of 4.50.
    let section = lines(&run(&["server", "--list", "rfc8166/4.5"]));
    assert!(section > text.lines().count());
    assert_eq!(lines(&run(&["server", "--list", "rfc8797/4/1"])), 1);
}

#[test]
fn a_word_that_selects_only_version_2_names_the_option() {
    for arguments in [
        &["server", "127.0.0.1", "draft-v2"][..],
        &["server", "--list", "draft-v2"],
        &["client", "--list", "draft-v2"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("need --draft-v2"), "{text}");
    }
    let output = run(&["server", "127.0.0.1", "no-such-case"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("--draft-v2"), "{text}");
}

#[test]
fn a_dry_run_says_what_is_sent() {
    let output = run(&["server", "--dry-run", "rfc8797/4/1"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("MUST set these bits to zero"), "{text}");
    assert!(text.contains("sends:") && text.contains("accepts:"));
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    for arguments in [
        &[][..],
        &["server"],
        &["server", "127.0.0.1", "no-such-case"],
        &["server", "127.0.0.1", "--program", "x"],
        &["server", "127.0.0.1", "--expect", "/no/such/file"],
        &["server", "127.0.0.1", "--expect", "/dev/null", "--strict"],
        &["client"],
        &["client", "--listen", "127.0.0.1", "no-such-case"],
        &["server", "127.0.0.1", "--json", "-", "--trace", "-"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_found_before_the_first_case() {
    let path = "/no/such/folder/results.xml";
    let output = run(&["server", "127.0.0.1", "--junit", path]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains(path), "{text}");
}

#[test]
fn a_closed_pipe_ends_the_program() {
    // The list is longer than what fits into the pipe.
    let mut child = Command::new(env!("CARGO_BIN_EXE_rpcrdma-conformance"))
        .args(["server", "--dry-run"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert!(output.stderr.is_empty(), "{output:?}");
    assert_eq!(output.status.signal(), Some(libc::SIGPIPE));
}

#[test]
fn each_command_says_how_it_ends() {
    for command in ["server", "client", "probe"] {
        let output = run(&[command, "--help"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("Ends with 0"), "{text}");
    }
}

#[test]
fn help_needs_no_library() {
    let output = run(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn the_program_runs_with_glibc_2_34() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_rpcrdma-conformance")).expect("the program");
    let prefix = b"GLIBC_2.";
    let newest = program
        .windows(prefix.len() + 2)
        .filter_map(|word| word.strip_prefix(prefix))
        .filter_map(|number| std::str::from_utf8(number).ok()?.parse::<u32>().ok())
        .max();
    assert_eq!(newest, Some(34));
}
