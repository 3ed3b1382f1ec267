// SPDX-License-Identifier: GPL-2.0

//! The results of a self-test, as TAP: each case passes without a fault, fails with its own, and
//! does not fail with a fault that is harmless for it, such as an answer that it accepts.
//! Only the faulty server and the faulty client use this.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::sync::Mutex;
use std::thread;

use crate::case::Case;
use crate::case::Level;
use crate::case::Problem;
use crate::case::Verdict;
use crate::report;
use crate::run::Report;

/// The verdict that a case must reach with a harmless fault.
#[derive(Clone, Copy)]
pub enum Expected {
    Pass,
    Unimplemented,
    /// Any verdict except a violation.
    NoFailure,
}

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

    /// Prints the result of a case with a fault for which it must not fail. `Err` if it could not be
    /// tried.
    pub fn harmless(
        &mut self,
        case: &Case,
        fault: &str,
        expected: Expected,
        verdict: Result<Verdict, String>,
    ) {
        let why = match (verdict, expected) {
            (Err(why), _) => why,
            (Ok(Ok(_)), Expected::Unimplemented) => {
                "it passes, although nothing of the requirement was seen".into()
            }
            (Ok(Ok(_)), _) | (Ok(Err(Problem::Unimplemented(_))), Expected::Unimplemented) => {
                String::new()
            }
            (Ok(Err(Problem::Violation(why))), _) => why,
            (Ok(Err(_)), Expected::NoFailure) => String::new(),
            (Ok(Err(problem)), _) => problem.reason().to_string(),
        };
        let id = case.id;
        let name = match expected {
            Expected::Pass => format!("with {fault}, which is allowed: {id} passes"),
            Expected::Unimplemented => {
                format!("with {fault}, which is allowed: {id} is unimplemented")
            }
            Expected::NoFailure => format!("with {fault}: {id} does not fail"),
        };
        self.print(why.is_empty(), &name, &why);
    }

    /// Prints whether a harmless fault has kept any case from a verdict.
    pub fn acts(&mut self, fault: &str, acts: bool) {
        let name = format!("with {fault}: some cases are inconclusive");
        let why = if acts { "" } else { "each case has a verdict" };
        self.print(acts, &name, why);
    }

    /// Prints the number of results. Returns whether all of them are the expected ones.
    pub fn end(self) -> bool {
        let Self { number, failed } = self;
        println!("1..{number}");
        eprintln!("{} passed, {failed} failed", number - failed);
        failed == 0
    }
}

/// How many threads try faults. Most of their time is spent in waiting.
const THREADS: usize = 4;

/// Calls `run` for each of the jobs, in several threads, and then `done` with the result, in the
/// order of the jobs. `make` is called once in each thread, with the thread's number, and `run`
/// gets what `make` has returned. Jobs with the same key never run at the same time. Returns the
/// first error.
pub fn side_by_side<Job: Copy + Send, Key: Ord, Own, Found: Send>(
    jobs: &[Job],
    key: impl Fn(Job) -> Key,
    make: impl Fn(u16) -> Result<Own, String> + Sync,
    run: impl Fn(&mut Own, Job) -> Found + Sync,
    mut done: impl FnMut(Job, Found),
) -> Result<(), String> {
    let mut groups: BTreeMap<Key, Vec<(usize, Job)>> = BTreeMap::new();
    for (number, &job) in jobs.iter().enumerate() {
        groups.entry(key(job)).or_default().push((number, job));
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    // In the order of the jobs, so that they can be printed soon.
    groups.sort_by_key(|group| group[0].0);
    let groups = Mutex::new(groups.into_iter());
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for thread in 0..THREADS as u16 {
            let (sender, groups, make, run) = (sender.clone(), &groups, &make, &run);
            scope.spawn(move || {
                let mut own = match make(thread) {
                    Ok(own) => own,
                    Err(why) => {
                        let _ = sender.send(Err(why));
                        return;
                    }
                };
                while let Some(group) = groups.lock().ok().and_then(|mut left| left.next()) {
                    for (number, job) in group {
                        let _ = sender.send(Ok((number, job, run(&mut own, job))));
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut next = 0;
        for result in results {
            let (number, job, found) = result?;
            early.insert(number, (job, found));
            while let Some((job, found)) = early.remove(&next) {
                done(job, found);
                next += 1;
            }
        }
        if next < jobs.len() {
            return Err(format!("only {next} of {} cases were tried", jobs.len()));
        }
        Ok(())
    })
}

fn name_with_fault(case: &Case) -> String {
    format!("with {}: {} fails", case.fault, case.id)
}

#[cfg(test)]
mod tests {
    use super::side_by_side;

    fn tried(make: fn(u16) -> Result<u16, String>) -> (Result<(), String>, Vec<(u32, u32)>) {
        let jobs: Vec<u32> = (0..50).collect();
        let mut found = Vec::new();
        let result = side_by_side(
            &jobs,
            |job| job % 7,
            make,
            |_, job| job * job,
            |job, square| found.push((job, square)),
        );
        (result, found)
    }

    #[test]
    fn results_have_the_order_of_the_jobs() {
        let wanted: Vec<_> = (0..50).map(|job| (job, job * job)).collect();
        assert_eq!(tried(Ok), (Ok(()), wanted));
    }

    #[test]
    fn a_thread_that_cannot_begin_is_an_error() {
        let one = |thread| {
            if thread == 1 {
                Err("no port".into())
            } else {
                Ok(thread)
            }
        };
        assert_eq!(tried(one).0, Err("no port".into()));
    }
}
