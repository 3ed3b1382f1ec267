// SPDX-License-Identifier: GPL-2.0

//! The file `stats`.

use crate::pure::text::stats::{
    Limit,
    Limits,
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
pub(crate) const TEXT: &str = include_str!("stats.txt");

/// Returns the set of these limits.
pub(crate) fn set_of(limits: &[Limit]) -> Limits {
    let with = |all: Limits, &limit: &Limit| all.with(limit, true);
    limits.iter().fold(Limits::default(), with)
}

/// Sets of limits, each with its lines of the file.
pub(crate) const LIMITS: [(&[Limit], &str); 18] = [
    (&[], "observing: yes\n"),
    (
        &[Limit::Parameter],
        "observing: no\nobserving_reason: parameter: the module was loaded with observe=0\n",
    ),
    (
        &[Limit::Fprobe],
        "observing: no\nobserving_reason: fprobe: the kernel lacks CONFIG_FPROBE\n",
    ),
    (
        &[Limit::Tracepoints],
        "observing: no\nobserving_reason: tracepoints: the kernel lacks CONFIG_TRACEPOINTS\n",
    ),
    (
        &[Limit::Kallsyms],
        "observing: no\nobserving_reason: kallsyms: the kernel lacks CONFIG_KALLSYMS\n",
    ),
    (
        &[Limit::Btf],
        "observing: partial\nobserving_reason: btf: the kernel lacks CONFIG_DEBUG_INFO_BTF or \
         CONFIG_BPF_SYSCALL, so that the values that NFS uses are unknown\n",
    ),
    (
        &[Limit::Members],
        "observing: partial\nobserving_reason: members: BTF lacks members of the structures of \
         NFS, so that values that NFS uses, or its counters, are unknown\n",
    ),
    (
        &[Limit::Symbols],
        "observing: partial\nobserving_reason: symbols: an id of rpcrdma or rdma_ucm has an \
         unknown handler, and is not shown\n",
    ),
    (
        &[Limit::Users],
        "observing: partial\nobserving_reason: users: BTF does not have the members of the \
         structures of rdma_ucm, so that the users of programs are unknown, and all programs have \
         the limit of one user\n",
    ),
    (
        &[Limit::Search],
        "observing: partial\nobserving_reason: search: connections that are older than the module \
         were not all found\n",
    ),
    (
        &[Limit::Events],
        "observing: partial\nobserving_reason: events: events were lost, so that connections and \
         their events may be missing\n",
    ),
    (
        &[Limit::User],
        "observing: partial\nobserving_reason: limit_user: connections of programs were left out, \
         because of the limit of their user\n",
    ),
    (
        &[Limit::Programs],
        "observing: partial\nobserving_reason: limit_programs: connections of programs were left \
         out, because of the limit of all programs\n",
    ),
    (
        &[Limit::Memory],
        "observing: partial\nobserving_reason: memory: connections were left out, because there \
         was no memory\n",
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
