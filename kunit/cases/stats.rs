// SPDX-License-Identifier: GPL-2.0

//! The file `stats`.

use crate::pure::text::stats::{
    Limit,
    Stats, //
};

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
observed_events_lost: 25
observed_events_lost_nfs: 26
observed_events_lost_root: 27
observed_events_lost_users: 28
observed_events_lost_hooks: 29
history_overwritten: 18446744073709551615
history_overwritten_programs: 31
history_overwritten_root: 32
";

/// Sets of limits, each with its lines of the file.
pub(crate) const LIMITS: [(&[Limit], &str); 6] = [
    (&[], "observing: yes\n"),
    (
        &[Limit::Parameter],
        "observing: no\nobserving_reason: parameter: the module was loaded with observe=0\n",
    ),
    // The missing option is the reason why rdma_cm could not be hooked.
    (
        &[Limit::Hooks, Limit::Fprobe],
        "observing: no\nobserving_reason: fprobe: the kernel lacks CONFIG_FPROBE\n",
    ),
    (
        &[Limit::Nfs],
        "observing: partial\nobserving_reason: limit_nfs: connections of NFS were left out, \
         because there were max_observed of them\n",
    ),
    (
        &[Limit::Causes],
        "observing: partial\nobserving_reason: causes: some causes of the ends of connections are \
         not noticed, so that a reason in history may be a consequence\n",
    ),
    (
        &[Limit::Hooks, Limit::Memory],
        "observing: no\nobserving_reason: hooks: rdma_cm could not be hooked, and the kernel's \
         log has the errno\nobserving_reason: memory: connections were left out, because there \
         was no memory\n",
    ),
];
