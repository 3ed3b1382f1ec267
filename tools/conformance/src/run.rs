// SPDX-License-Identifier: GPL-2.0

//! Runs cases, one after the other.

use std::panic::catch_unwind;
use std::panic::AssertUnwindSafe;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use crate::case::inconclusive;
use crate::case::skip;
use crate::case::Case;
use crate::case::Need;
use crate::case::Outcome;
use crate::case::Problem;
use crate::case::Run;
use crate::case::Verdict;
use crate::engine;
use crate::gateway::Client;
use crate::gateway::Gateway;
use crate::peer::Link;
use crate::peer::Server;
use crate::peer::Target;
use crate::trace::Entry;
use crate::trace::Trace;

/// How long a server may need until it answers again by itself.
const RETURN: Duration = Duration::from_secs(5);
/// How long it may need after it has been started again.
const START: Duration = Duration::from_secs(60);

/// The result of one case.
#[derive(Debug)]
pub struct Report {
    pub case: &'static Case,
    pub outcome: Outcome,
    pub reason: String,
    pub took: Duration,
    pub trace: Vec<Entry>,
}

/// Runs cases against a server.
pub struct Runner<'a> {
    server: &'a Server,
    allowed: Vec<Need>,
    /// The command that starts the server again.
    restart: Option<&'a str>,
    /// A connection that every case must leave alone.
    bystander: Option<Link>,
    /// The server no longer answers at all.
    dead: bool,
}

impl<'a> Runner<'a> {
    pub fn new(server: &'a Server, allowed: &[Need], restart: Option<&'a str>) -> Self {
        Runner {
            server,
            allowed: allowed.to_vec(),
            restart,
            bystander: None,
            dead: false,
        }
    }

    /// Runs a case. Then the server must answer NULL on another connection, which the case has not
    /// touched.
    pub fn run(&mut self, case: &'static Case) -> Report {
        let start = Instant::now();
        let trace = Trace::default();
        let missing = case.needs.iter().find(|need| !self.allowed.contains(need));
        let mut verdict = if let Some(need) = missing {
            Err(Problem::Skip(format!("only with {}", need.option())))
        } else if self.dead {
            Err(Problem::Skip("the server no longer answers".into()))
        } else if self.bystander.is_none() && !self.connects(RETURN) {
            self.dead = true;
            Err(Problem::Skip("the server no longer answers".into()))
        } else {
            verdict(|| server_case(case, self.server, &trace))
        };
        let ran = !matches!(verdict, Err(Problem::Skip(_)));
        let mut outcome = Outcome::of(case.level, &verdict);
        let mut lost = 0;
        while ran && !self.bystander_answers() {
            lost += 1;
            self.bystander = None;
            self.dead = !self.connects(RETURN);
            // A server may end a connection for another reason, for example because it is idle.
            if lost == 1 && !self.dead {
                let again = self::verdict(|| server_case(case, self.server, &trace));
                // A violation stays one, whatever the second run shows.
                if !matches!(verdict, Err(Problem::Violation(_))) {
                    verdict = again;
                    outcome = Outcome::of(case.level, &verdict);
                }
                continue;
            }
            let what = if self.dead {
                "the case has killed the server: it no longer answers NULL"
            } else {
                "the case has twice ended another connection, which was idle"
            };
            let before = verdict
                .as_ref()
                .err()
                .map_or(String::new(), |problem| format!(" ({})", problem.reason()));
            verdict = Err(Problem::Violation(format!("{what}{before}")));
            outcome = Outcome::Fail;
            break;
        }
        let took = start.elapsed();
        // A signal makes a server look dead: the engine no longer waits for its answer.
        if self.dead && !engine::interrupted() {
            self.dead = !self.restarts();
        }
        Report {
            case,
            outcome,
            reason: reason(&verdict),
            took,
            trace: trace.entries(),
        }
    }

    fn bystander_answers(&mut self) -> bool {
        self.bystander
            .as_mut()
            .is_some_and(|link| link.null().is_ok())
    }

    /// Starts the server again, if there is a command for that. Tells whether it answers then.
    fn restarts(&mut self) -> bool {
        let Some(command) = self.restart.take() else {
            return false;
        };
        let mut shell = Command::new("sh");
        let shell = shell.arg("-c").arg(command).stdin(Stdio::null());
        // The standard output may hold a document.
        let failure = match shell.stdout(std::io::stderr()).status() {
            Ok(status) if !status.success() => format!("it ended with {status}"),
            Err(why) => format!("sh: {why}"),
            Ok(_) if !self.connects(START) => {
                format!("the server has not answered for {} s", START.as_secs())
            }
            Ok(_) => {
                self.restart = Some(command);
                return true;
            }
        };
        eprintln!("rpcrdma-conformance: --restart: {failure}");
        false
    }

    /// Makes the bystander. The server may need some time to come back.
    fn connects(&mut self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        loop {
            let mut target = Target {
                server: self.server,
                trace: Trace::default(),
            };
            if let Ok(mut link) = target.plain() {
                if link.null().is_ok() {
                    self.bystander = Some(link);
                    return true;
                }
            }
            if Instant::now() > until || engine::interrupted() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// Runs the function of a case for servers.
pub fn server_case(case: &Case, server: &Server, trace: &Trace) -> Verdict {
    let mut target = Target {
        server,
        trace: trace.clone(),
    };
    match case.run {
        Run::Server(run) => run(&mut target),
        Run::Client(_) => skip("the case is for clients"),
    }
}

/// Runs the function of a case for clients.
pub fn client_case(case: &Case, client: &Client, trace: &Trace) -> Verdict {
    let mut gateway = Gateway {
        client,
        trace: trace.clone(),
    };
    match case.run {
        Run::Client(run) => run(&mut gateway),
        Run::Server(_) => skip("the case is for servers"),
    }
}

/// Runs a case against a client.
pub fn run_client(client: &Client, case: &'static Case) -> Report {
    let start = Instant::now();
    let trace = Trace::default();
    let verdict = verdict(|| client_case(case, client, &trace));
    Report {
        case,
        outcome: Outcome::of(case.level, &verdict),
        reason: reason(&verdict),
        took: start.elapsed(),
        trace: trace.entries(),
    }
}

/// A defect of the suite is not the peer's.
fn verdict(run: impl FnOnce() -> Verdict) -> Verdict {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| inconclusive("the suite panicked"))
}

fn reason(verdict: &Verdict) -> String {
    verdict
        .as_ref()
        .err()
        .map_or(String::new(), |problem| problem.reason().to_string())
}

/// Returns whether a word of the command line selects a case: the beginning of its id, or a part of its
/// name.
pub fn selects(word: &str, case: &Case) -> bool {
    let begins = case
        .id
        .strip_prefix(word)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']));
    begins || (!word.contains('/') && case.name.contains(word))
}
