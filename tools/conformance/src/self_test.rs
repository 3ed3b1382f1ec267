// SPDX-License-Identifier: GPL-2.0

//! The results of a self-test, as TAP: each case passes without a fault, fails with its own, and
//! passes with each answer that it accepts.
//! Only the faulty server and the faulty client use this.

use crate::case::Case;
use crate::case::Level;
use crate::case::Problem;
use crate::case::Verdict;
use crate::report;
use crate::run::Report;

/// The results so far. They are printed as they come.
pub struct Results {
    number: usize,
    failed: usize,
}

impl Results {
    pub fn begin() -> Self {
        println!("TAP version 14");
        Self {
            number: 0,
            failed: 0,
        }
    }

    fn print(&mut self, good: bool, name: &str, why: &str) {
        self.number += 1;
        self.failed += usize::from(!good);
        let number = self.number;
        println!("{} {number} {name}", if good { "ok" } else { "not ok" });
        for line in why.lines() {
            println!("# {line}");
        }
    }

    /// Prints the result of a case without a fault. `good` says whether it is the expected one.
    pub fn without_fault(&mut self, found: &Report, good: bool) {
        let why = if good {
            String::new()
        } else {
            report::details(found)
        };
        self.print(good, &format!("without a fault: {}", found.case.id), &why);
    }

    /// Prints the result of a case with its own fault: it must not pass.
    pub fn with_fault(&mut self, case: &Case, verdict: &Verdict) {
        let (good, why) = match verdict {
            Ok(_) => (false, "it passes"),
            Err(problem) => {
                let good = match problem {
                    Problem::Violation(_) => true,
                    Problem::Unimplemented(_) => case.level == Level::May,
                    _ => false,
                };
                (good, problem.reason())
            }
        };
        self.print(good, &name_with_fault(case), why);
    }

    /// Prints that a case could not be tried with its own fault.
    pub fn not_tried(&mut self, case: &Case, why: &str) {
        self.print(false, &name_with_fault(case), why);
    }

    /// Prints the result of a case with an answer that it accepts: it must pass. `Err` if it could
    /// not be tried.
    pub fn allowed(&mut self, case: &Case, answer: &str, verdict: Result<Verdict, String>) {
        let why = match verdict {
            Ok(Ok(_)) => String::new(),
            Ok(Err(problem)) => problem.reason().to_string(),
            Err(why) => why,
        };
        let name = format!("with {answer}, which is allowed: {} passes", case.id);
        self.print(why.is_empty(), &name, &why);
    }

    /// Prints the number of results. Returns whether all of them are the expected ones.
    pub fn end(self) -> bool {
        let Self { number, failed } = self;
        println!("1..{number}");
        eprintln!("{} passed, {failed} failed", number - failed);
        failed == 0
    }
}

fn name_with_fault(case: &Case) -> String {
    format!("with {}: {} fails", case.fault, case.id)
}
