// SPDX-License-Identifier: GPL-2.0

//! The command line.

use std::fs;
use std::io::IsTerminal;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;

use clap::Args;
use clap::Parser;
use clap::Subcommand;

use crate::case::Case;
use crate::case::Need;
use crate::case::Outcome;
use crate::cases;
use crate::engine;
use crate::engine::Offer;
use crate::gateway::Client;
use crate::peer::Server;
use crate::peer::NFS;
use crate::probe;
use crate::report;
use crate::report::Expected;
use crate::report::Standard;
use crate::report::Subject;
use crate::run;
use crate::run::selects;
use crate::run::Report;
use crate::run::Runner;
use crate::trace::Trace;
use crate::wire::Private;
use crate::wire::Procedure;

/// The port of NFS over RDMA.
const PORT: u16 = 20049;
/// The port of NFS over TCP.
const NFS_PORT: u16 = 2049;

const STATUS: &str =
    "Ends with 0 if no case failed; with 1 if a case failed or was inconclusive, with --expect \
     only if a result differs from the file; with 2 if the command line is wrong, nothing could be \
     tested, or SIGINT or SIGTERM has ended the run early. After a signal, the results so far are \
     written, except those for --expect-write.";
const PROBE_STATUS: &str =
    "Ends with 0 if NULL succeeded; with 1 if not, or if the server was not reached; with 2 if the \
     command line is wrong, or this host cannot use rdma_cm.";

/// A conformance suite for servers and clients of RPC-over-RDMA version 1 (RFC 8797, 8166, 8167,
/// 5531 and 8267).
#[derive(Parser)]
#[command(
    name = "rpcrdma-conformance",
    version,
    after_help = "Needs rdma-core (librdmacm, libibverbs) to run, and no privileges."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Test a server
    #[command(after_help = STATUS)]
    Server(ServerArguments),
    /// Test a client: listen, and see what it does
    #[command(after_help = STATUS)]
    Client(ClientArguments),
    /// Connect to a server once, call NULL, and print what it offers and answers
    ///
    /// Asks in version 1 of RPC-over-RDMA only. If the server has other versions of the program,
    /// NULL of one of them is called. The keys are those of the file `probe` of the module
    /// rpcrdma_cm.
    #[command(after_help = PROBE_STATUS)]
    Probe(ProbeArguments),
}

#[derive(Args)]
struct ProbeArguments {
    /// The server: ADDR[:PORT], with an IPv6 address in brackets if a port follows; port 20049
    address: String,

    /// The RPC program and version whose NULL is called; otherwise NFS 4
    #[arg(long, value_name = "PROGRAM:VERSION", value_parser = program)]
    program: Option<Procedure>,

    /// The Send Size to offer, in octets
    #[arg(long, value_name = "OCTETS", default_value_t = 4096, value_parser = size)]
    send: usize,

    /// The Receive Size to offer, in octets
    #[arg(long, value_name = "OCTETS", default_value_t = 4096, value_parser = size)]
    receive: usize,

    /// Offers remote invalidation
    #[arg(long)]
    invalidation: bool,

    /// How many credits to ask for
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    credits: u32,

    /// The local address to connect from
    #[arg(long, value_name = "ADDR")]
    source: Option<IpAddr>,

    /// How long connecting may take, and how long the answer
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    limit_ms: u64,

    /// Prints one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ServerArguments {
    /// The server: ADDR[:PORT], with an IPv6 address in brackets if a port follows; port 20049
    address: Option<String>,

    /// Only the cases of these sections (rfc8166/4.5), ids (rfc8166/4.5/1), or parts of a name
    cases: Vec<String>,

    /// Also runs cases that may crash a server, have it disclose its memory, or corrupt data
    #[arg(long)]
    destructive: bool,

    /// Also speaks version 2 (draft-cel-nfsv4-rpcrdma-version-two-01), an expired draft
    #[arg(long)]
    draft_v2: bool,

    /// A scratch file of the NFS server, by its path from the root of NFSv4. It is overwritten
    #[arg(long, value_name = "PATH")]
    export: Option<String>,

    /// The RPC program and version whose NULL is called; otherwise NFS, or the echo program
    #[arg(long, value_name = "PROGRAM:VERSION", value_parser = program)]
    program: Option<Procedure>,

    /// The local address to connect from
    #[arg(long, value_name = "ADDR")]
    source: Option<IpAddr>,

    /// The command that starts the server again after a case has killed it. sh runs it, and the
    /// server must answer within 60 seconds; the other cases follow. Without it they are skipped
    #[arg(long, value_name = "COMMAND")]
    restart: Option<String>,

    /// How long an answer may take
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    limit: u64,

    /// How long nothing may arrive where the server has to be silent
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 300)]
    quiet_ms: u64,

    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct ClientArguments {
    /// Only the cases of these sections (rfc8166/4.5), ids (rfc8166/4.5/c1), or parts of a name
    cases: Vec<String>,

    /// Where to listen: ADDR[:PORT], with an IPv6 address in brackets if a port follows; port 20049
    #[arg(long, value_name = "ADDR[:PORT]")]
    listen: Option<String>,

    /// The NFS server, by TCP, that calls are passed on to; port 2049. Without it only NULL, and
    /// ECHO, BIND, LOAD and STORE of the echo program, succeed
    #[arg(long, value_name = "HOST[:PORT]")]
    backend: Option<String>,

    /// The command that makes the client connect, work and disconnect. sh runs it for each case;
    /// cases for which the suite behaves alike share a run. Without it, do that by hand
    #[arg(long, value_name = "COMMAND")]
    run: Option<String>,

    /// Also speaks version 2 (draft-cel-nfsv4-rpcrdma-version-two-01). The client has to begin with
    /// it. The cases of other documents fail then, so select draft-v2 only
    #[arg(long)]
    draft_v2: bool,

    /// How long the client's work may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    limit: u64,

    #[command(flatten)]
    common: Common,
}

/// The options of both commands.
#[derive(Args)]
struct Common {
    /// Lists the selected cases, and ends
    #[arg(long)]
    list: bool,

    /// Prints what each selected case would send and accept, and ends
    #[arg(long)]
    dry_run: bool,

    /// Counts a SHOULD that is not met as a failure
    #[arg(long, conflicts_with = "expect")]
    strict: bool,

    /// Known results: only differences from this file count. A line has the id of a case, a space and
    /// a result; a case without a line is expected to pass; # begins a comment
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,

    /// Writes the results for --expect
    #[arg(long, value_name = "FILE")]
    expect_write: Option<PathBuf>,

    /// Writes the results as JSON (schema.json). For one of the files, - is the standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Writes the results as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Writes the results as TAP
    #[arg(long, value_name = "FILE")]
    tap: Option<PathBuf>,

    /// Writes the results as one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Writes all octets, for text2pcap -D -t %s.%f
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// Parses a size that a message can have (RFC 8797, section 4.2).
fn size(text: &str) -> Result<usize, String> {
    let found = text.parse().ok();
    found
        .filter(|octets| (1024..=262_144).contains(octets) && octets % 1024 == 0)
        .ok_or("not a multiple of 1024 from 1024 to 262144".into())
}

fn program(text: &str) -> Result<Procedure, String> {
    let number = |text: &str| {
        text.strip_prefix("0x")
            .map_or_else(|| text.parse(), |digits| u32::from_str_radix(digits, 16))
            .map_err(|_| format!("not a number of 32 bits, decimal or 0x…: {text}"))
    };
    let (program, version) = text.split_once(':').ok_or("expected PROGRAM:VERSION")?;
    Ok(Procedure {
        program: number(program)?,
        version: number(version)?,
        number: 0,
    })
}

/// Returns the address of ADDR[:PORT].
pub fn address(text: &str) -> Result<SocketAddr, String> {
    address_at(text, PORT)
}

/// Returns the address of ADDR[:PORT] with another default port.
fn address_at(text: &str, port: u16) -> Result<SocketAddr, String> {
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, port));
    }
    let (host, port) = text
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host, port.parse().ok()?)))
        .unwrap_or((text, port));
    // An address with a zone that is a name is looked up, without its brackets.
    (host.trim_matches(['[', ']']), port)
        .to_socket_addrs()
        .ok()
        .and_then(|mut found| found.next())
        .ok_or(format!("not ADDR[:PORT], or the name is unknown: {text}"))
}

/// Why the program ends with 2.
type Unable = String;

/// Runs the program.
pub fn main() -> ExitCode {
    engine::end_with_pipes();
    let result = match Cli::parse().command {
        Command::Server(arguments) => server(&arguments),
        Command::Client(arguments) => client(&arguments),
        Command::Probe(arguments) => probe(&arguments),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(why) => {
            eprintln!("rpcrdma-conformance: {why}");
            ExitCode::from(2)
        }
    }
}

/// Returns the cases that the words select; all without any. Without `draft_v2`, no case of version
/// 2 is among them, not even as a skipped one.
fn selected(
    cases: impl Iterator<Item = &'static Case>,
    draft_v2: bool,
    words: &[String],
) -> Result<Vec<&'static Case>, Unable> {
    let (cases, left_out): (Vec<_>, Vec<_>) =
        cases.partition(|case| draft_v2 || !case.needs.contains(&Need::DraftV2));
    for word in words {
        let selects_any = |cases: &[&Case]| cases.iter().any(|case| selects(word, case));
        if !selects_any(&cases) {
            let why = if selects_any(&left_out) {
                " (cases of version 2 need --draft-v2)"
            } else {
                ""
            };
            return Err(format!("no case is selected by: {word}{why}"));
        }
    }
    let mut found = cases;
    found.retain(|case| words.is_empty() || words.iter().any(|word| selects(word, case)));
    Ok(found)
}

fn server(arguments: &ServerArguments) -> Result<u8, Unable> {
    let common = &arguments.common;
    let mut words = arguments.cases.clone();
    if common.list || common.dry_run {
        // Without a server, all words select cases.
        if let Some(word) = &arguments.address {
            if address(word).is_err() || cases::server().any(|case| selects(word, case)) {
                words.insert(0, word.clone());
            }
        }
        let selected = selected(cases::server(), arguments.draft_v2, &words)?;
        print!("{}", listing(&selected, common.dry_run));
        return Ok(0);
    }
    let selected = selected(cases::server(), arguments.draft_v2, &words)?;
    let given = arguments
        .address
        .as_deref()
        .ok_or("no ADDR[:PORT] is given")?;
    common.check_files()?;
    engine::check_libraries()?;
    let mut server = Server::new(address(given)?);
    server.source = arguments.source;
    server.limit = Duration::from_secs(arguments.limit);
    server.quiet = Duration::from_millis(arguments.quiet_ms);
    server.export = arguments.export.clone();
    let standard = common.standard()?;
    engine::catch_signals();
    server
        .explore(arguments.program, &Trace::default())
        .map_err(|why| format!("{}: {why}", server.address))?;
    let mut allowed = Vec::new();
    for (need, given) in [
        (Need::Destructive, arguments.destructive),
        (Need::DraftV2, arguments.draft_v2),
        (Need::Export, arguments.export.is_some()),
    ] {
        if given {
            allowed.push(need);
        }
    }
    let mut runner = Runner::new(&server, &allowed, arguments.restart.as_deref());
    let reports = with_progress(&selected, |case| common.keep(runner.run(case)));
    finish(
        common,
        Subject::Server(&server),
        &standard,
        selected.len(),
        &reports,
    )
}

fn probe(arguments: &ProbeArguments) -> Result<u8, Unable> {
    let address = address(&arguments.address)?;
    engine::check_libraries()?;
    engine::check_access()?;
    let limit = Duration::from_millis(arguments.limit_ms);
    let server = Server {
        source: arguments.source,
        limit,
        null: arguments.program.unwrap_or(NFS),
        ..Server::new(address)
    };
    let (send, receive) = (arguments.send, arguments.receive);
    let offer = Offer {
        private: Private::new(send, receive, arguments.invalidation).octets(),
        receives: 8,
        receive_size: receive,
        limit,
        ..Offer::default()
    };
    let report = probe::probe(&server, &offer, arguments.credits);
    print!(
        "{}",
        if arguments.json {
            report.json()
        } else {
            report.text()
        }
    );
    Ok(u8::from(!report.succeeded()))
}

fn client(arguments: &ClientArguments) -> Result<u8, Unable> {
    let common = &arguments.common;
    let selected = selected(cases::client(), arguments.draft_v2, &arguments.cases)?;
    if common.list || common.dry_run {
        print!("{}", listing(&selected, common.dry_run));
        return Ok(0);
    }
    let given = arguments
        .listen
        .as_deref()
        .ok_or("no --listen ADDR[:PORT] is given")?;
    common.check_files()?;
    engine::check_libraries()?;
    let at = address(given)?;
    let backend = arguments
        .backend
        .as_deref()
        .map(|text| address_at(text, NFS_PORT))
        .transpose()?;
    let standard = common.standard()?;
    let mut client = Client::new(at);
    client.backend = backend;
    client.two = arguments.draft_v2;
    client.run.clone_from(&arguments.run);
    client.limit = Duration::from_secs(arguments.limit);
    if client.run.is_none() {
        eprintln!(
            "Let the client connect to {at}, work and disconnect, until the results are printed."
        );
    }
    engine::catch_signals();
    client.explore().map_err(|why| format!("{at}: {why}"))?;
    let reports = with_progress(&selected, |case| {
        common.keep(run::run_client(&client, case))
    });
    finish(
        common,
        Subject::Client(&client),
        &standard,
        selected.len(),
        &reports,
    )
}

impl Common {
    /// Returns the files that results are written to.
    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let files = [
            &self.json,
            &self.junit,
            &self.tap,
            &self.html,
            &self.trace,
            &self.expect_write,
        ];
        files.into_iter().flatten()
    }

    /// Whether the standard output is to hold a document.
    fn prints_document(&self) -> bool {
        self.files().any(|path| is_stdout(path))
    }

    /// Makes sure that the results can be written, before cases are run.
    fn check_files(&self) -> Result<(), Unable> {
        if self.files().filter(|path| is_stdout(path)).count() > 1 {
            return Err("only one file can be -, the standard output".into());
        }
        for path in self.files().filter(|path| !is_stdout(path)) {
            let mut options = fs::OpenOptions::new();
            options.append(true);
            let made = options.clone().create_new(true).open(path);
            let is_new = made.is_ok();
            made.or_else(|_| options.create(true).open(path))
                .map_err(|why| format!("{}: {why}", path.display()))?;
            // Without any line it would expect that all cases pass, if the run ends early.
            if is_new && self.expect_write.as_ref() == Some(path) {
                fs::remove_file(path).map_err(|why| format!("{}: {why}", path.display()))?;
            }
        }
        Ok(())
    }

    /// Drops the octets of a case that has passed: only --trace writes them.
    fn keep(&self, mut report: Report) -> Report {
        if self.trace.is_none() && report.outcome == Outcome::Pass {
            report.trace = Vec::new();
        }
        report
    }

    /// Returns how results are judged; reads the file of --expect.
    fn standard(&self) -> Result<Standard, Unable> {
        let read = |path: &PathBuf| {
            let text = fs::read_to_string(path).map_err(|why| why.to_string());
            let cases = || cases::server().chain(cases::client());
            text.and_then(|text| Expected::parse(&text, cases))
                .map_err(|why| format!("{}: {why}", path.display()))
        };
        match &self.expect {
            Some(path) => read(path).map(Standard::Known),
            None => Ok(Standard::Documents {
                strict: self.strict,
            }),
        }
    }
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn listing(cases: &[&'static Case], all: bool) -> String {
    let mut text = String::new();
    for case in cases {
        text += &format!("{:<20} {:<6} {}\n", case.id, case.level.name(), case.name);
        if all {
            text += &format!(
                "    \"{}\"\n    sends:   {}\n    accepts: {}\n",
                case.requirement, case.sends, case.accepts
            );
            for need in case.needs {
                text += &format!("    needs:   {}\n", need.option());
            }
        }
    }
    text
}

/// Runs cases against a server.
pub fn run_all(server: &Server, selected: &[&'static Case], allowed: &[Need]) -> Vec<Report> {
    let mut runner = Runner::new(server, allowed, None);
    with_progress(selected, |case| runner.run(case))
}

/// Runs cases, with progress on a terminal. A signal ends that. The case in which it arrives counts
/// as not run.
pub fn with_progress(
    selected: &[&'static Case],
    mut run: impl FnMut(&'static Case) -> Report,
) -> Vec<Report> {
    let terminal = std::io::stderr().is_terminal();
    let start = Instant::now();
    let mut reports = Vec::new();
    for (number, case) in selected.iter().enumerate() {
        if terminal {
            eprint!(
                "\r\x1b[K{}/{}, {} s: {} {}",
                number + 1,
                selected.len(),
                start.elapsed().as_secs(),
                case.id,
                case.name
            );
        }
        let report = run(case);
        if engine::interrupted() {
            break;
        }
        reports.push(report);
    }
    if terminal {
        eprint!("\r\x1b[K");
    }
    reports
}

/// Writes and judges the results.
fn finish(
    arguments: &Common,
    subject: Subject<'_>,
    standard: &Standard,
    selected: usize,
    reports: &[Report],
) -> Result<u8, Unable> {
    write_results(arguments, subject, standard, selected, reports)?;
    let status = judge(arguments, standard, reports)?;
    match report::interruption(reports, selected) {
        Some(why) if arguments.expect_write.is_some() => {
            Err(why + "; the file of --expect-write was left as it was")
        }
        Some(why) => Err(why),
        None => Ok(status),
    }
}

fn write_results(
    arguments: &Common,
    subject: Subject<'_>,
    standard: &Standard,
    selected: usize,
    reports: &[Report],
) -> Result<(), Unable> {
    let write = |path: &Option<PathBuf>, text: &dyn Fn() -> String| {
        let Some(path) = path else { return Ok(()) };
        if is_stdout(path) {
            print!("{}", text());
            return Ok(());
        }
        fs::write(path, text()).map_err(|why| format!("{}: {why}", path.display()))
    };
    let given: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    write(&arguments.json, &|| {
        report::json(subject, &given, selected, reports)
    })?;
    write(&arguments.junit, &|| {
        report::junit(reports, standard, selected)
    })?;
    write(&arguments.tap, &|| report::tap(reports, standard, selected))?;
    write(&arguments.html, &|| {
        report::html(subject, reports, selected)
    })?;
    write(&arguments.trace, &|| report::packets(reports))?;
    // Cases that were not run would count as passed.
    if reports.len() == selected {
        write(&arguments.expect_write, &|| report::expectations(reports))?;
    }
    Ok(())
}

fn judge(arguments: &Common, standard: &Standard, reports: &[Report]) -> Result<u8, Unable> {
    // The standard output holds either a document or this.
    let show = |text: &str| {
        if arguments.prints_document() {
            eprint!("{text}");
        } else {
            print!("{text}");
        }
    };
    if let Standard::Known(expected) = standard {
        let differences = expected.differences(reports);
        for line in &differences {
            show(&format!("{line}\n"));
        }
        show(&format!(
            "{}\n{} differ from the expectations\n",
            report::summary(reports),
            differences.len()
        ));
    } else {
        for report in reports {
            if ![Outcome::Pass, Outcome::Skipped].contains(&report.outcome) {
                show(&report::details(report));
            }
        }
        for report in reports {
            if report.outcome == Outcome::Skipped {
                let case = report.case;
                show(&format!(
                    "skipped {} {}: {}\n",
                    case.id, case.name, report.reason
                ));
            }
        }
        show(&format!(
            "{}{}\n",
            report::table(reports),
            report::summary(reports)
        ));
    }
    let is_skipped = |report: &Report| report.outcome == Outcome::Skipped;
    if reports.iter().all(is_skipped) {
        return Err("no case could be run".into());
    }
    let failed = reports.iter().any(|report| standard.fails(report));
    Ok(u8::from(failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the options of both commands.
    fn common(options: &[&str]) -> Common {
        let words = ["rpcrdma-conformance", "server", "192.0.2.7"];
        match Cli::parse_from([&words, options].concat()).command {
            Command::Server(arguments) => arguments.common,
            _ => panic!("not a server"),
        }
    }

    fn report(outcome: Outcome) -> Report {
        let trace = Trace::default();
        trace.sent(1, "Send", &[1]);
        Report {
            case: cases::server().next().expect("a case"),
            outcome,
            reason: String::new(),
            took: Duration::ZERO,
            trace: trace.entries(),
        }
    }

    #[test]
    fn an_interrupted_run_leaves_the_expectations() {
        let path = std::env::temp_dir().join(format!("conformance-{}", std::process::id()));
        let common = common(&["--expect-write", path.to_str().expect("a path")]);
        fs::write(&path, "earlier").expect("a file");
        let server = Server::new(SocketAddr::from(([192, 0, 2, 7], PORT)));
        let standard = Standard::Documents { strict: false };
        let reports = [report(Outcome::Fail)];
        let write = |selected| {
            let subject = Subject::Server(&server);
            let status = finish(&common, subject, &standard, selected, &reports);
            (status, fs::read_to_string(&path).expect("a file"))
        };
        let (status, text) = write(2);
        assert!(status.is_err_and(|why| why.contains("--expect-write")));
        assert_eq!(text, "earlier");
        let (status, text) = write(1);
        assert_eq!(status, Ok(1));
        assert!(text.contains(" fail\n"), "{text}");
        fs::remove_file(&path).expect("a file");
    }

    #[test]
    fn a_check_leaves_no_expectations() {
        let path = std::env::temp_dir().join(format!("conformance-new-{}", std::process::id()));
        let common = common(&["--expect-write", path.to_str().expect("a path")]);
        assert_eq!(common.check_files(), Ok(()));
        assert!(!path.exists());
        fs::write(&path, "earlier").expect("a file");
        assert_eq!(common.check_files(), Ok(()));
        assert_eq!(fs::read_to_string(&path).expect("a file"), "earlier");
        fs::remove_file(&path).expect("a file");
        let missing = path.join("file");
        let common = self::common(&["--expect-write", missing.to_str().expect("a path")]);
        assert!(common.check_files().is_err());
    }

    #[test]
    fn octets_are_kept_for_failures_and_trace() {
        let kept = |options: &[&str], outcome| {
            let common = common(options);
            common.keep(report(outcome)).trace.len()
        };
        assert_eq!(kept(&[], Outcome::Pass), 0);
        assert_eq!(kept(&[], Outcome::Fail), 1);
        assert_eq!(kept(&["--trace", "file"], Outcome::Pass), 1);
    }
}
