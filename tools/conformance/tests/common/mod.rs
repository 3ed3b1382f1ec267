// SPDX-License-Identifier: GPL-2.0

//! What several tests use.

use std::time::Duration;

use rpcrdma_conformance::case::Outcome;
use rpcrdma_conformance::cases;
use rpcrdma_conformance::run::Report;
use rpcrdma_conformance::trace::Trace;

/// Returns a report of each outcome, in the order of `Outcome::ALL`.
pub fn reports(trace: &Trace) -> Vec<Report> {
    Outcome::ALL
        .into_iter()
        .zip(cases::server())
        .map(|(outcome, case)| Report {
            case,
            outcome,
            reason: "a reason".into(),
            took: Duration::from_millis(5),
            trace: trace.entries(),
        })
        .collect()
}
