// SPDX-License-Identifier: GPL-2.0

//! The file `stats`.

use crate::protocol::stats::Stats;

/// Counters that all differ.
pub(crate) fn stats() -> Stats<u64> {
    let mut next = 0;
    let mut stats = Stats::with(|| {
        next += 1;
        next
    });
    stats.connects = 0;
    stats.history_overwritten = u64::MAX;
    stats
}

/// The file of [`stats`].
pub(crate) const TEXT: &str = "\
connects: 0
connects_failed: 2
reconnects: 3
requests: 4
requests_accepted: 5
requests_refused: 6
requests_failed: 7
requests_unconfirmed: 8
established: 9
lost: 10
closed: 11
private_data_present: 12
private_data_absent: 13
private_data_rejected: 14
messages_received: 15
observed: 16
observed_established: 17
observed_refused: 18
observed_failed: 19
observed_missed: 20
observed_missed_nfs: 21
observed_missed_user: 22
observed_missed_programs: 23
observed_missed_memory: 24
history_overwritten: 18446744073709551615
history_overwritten_programs: 26
";
