// SPDX-License-Identifier: GPL-2.0

//! The connections of others: of the kernel's RPC-over-RDMA client and server, and of programs that
//! speak RPC-over-RDMA.
//!
//! Probes note the steps of the set-up of each id, and its end. A work reports them one at a time,
//! in their order. Making and removing files waits for readers of files, which wait for that work,
//! so another work of each id does that.
//!
//! The probes see every connection of the machine. A program's id is [`Undecided`], which is small,
//! until an event shows that it speaks RPC-over-RDMA, and until its program has accepted it if it
//! is a request. Only then is everything that is known of the id gathered.
//!
//! [`Shares`] limits how many ids are kept, so that no program can hide the ids of others.
//!
//! Locks: [`Ids`] and [`Facts`] are each protected by a spin lock. Neither is taken with the other
//! one held. The lock of the history may be taken with that of [`Facts`] held.

mod observed_connection;
mod probes;
mod shares;
pub(crate) mod watched_id;

use kernel::{
    impl_has_work,
    new_spinlock,
    new_work,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        Arc,
        ArcBorrow,
        SetOnce,
        SpinLock, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use self::{
    observed_connection::{
        Facts,
        ObservedConnection,
        Undecided, //
    },
    probes::{
        limits_of_probes,
        missed_calls,
        search,
        Class,
        EventKind,
        IdKey,
        Observation,
        ObservedEvent,
        Probes, //
    },
    shares::{
        Missed,
        Shares, //
    }, //
};
use crate::{
    base::{
        unload::Hold,
        wait::MayWait,
        work_queue::WorkQueue, //
    },
    counters::SharedStats,
    history_ring::History,
    pure::{
        text::stats::{
            Limit,
            Limits,
            Stats, //
        },
        wire::{
            meaning::{
                Known,
                Meaning, //
            },
            negotiation::Role, //
        }, //
    },
    registry::Registry, //
};

/// The port at which servers of NFS over RDMA listen (RFC 8267, section 9: `nfsrdma`).
const NFS_RDMA_PORT: u16 = 20049;

/// Whether connections of others are observed.
pub(crate) struct ObserverStatus {
    /// Why none is.
    off: SetOnce<Limit>,
}

impl ObserverStatus {
    /// Creates the status of an observer that nothing has kept from observing yet.
    pub(crate) fn new() -> Self {
        Self {
            off: SetOnce::new(),
        }
    }

    /// Notes why no connection is observed; any context.
    pub(crate) fn turn_off(&self, limit: Limit) {
        self.off.populate(limit);
    }

    /// Adds the calls that the probes have missed to `stats`; any context.
    pub(crate) fn count_missed_calls(&self, stats: &mut Stats<u64>) {
        stats.observed_events_lost_hooks = missed_calls();
        stats.observed_events_lost += stats.observed_events_lost_hooks;
    }

    /// Returns everything that limits observing, with the limits that `stats` shows; any context.
    pub(crate) fn limits(&self, stats: &Stats<u64>) -> Limits {
        let limits = limits_of_probes().with_missed(stats);
        match self.off.copy() {
            Some(limit) => limits.with(limit, true),
            None => limits,
        }
    }
}

/// Observes the connections of others. [`Self::end`] has to be called before it is dropped.
pub(crate) struct Observer {
    observations: Arc<Observations>,
    /// [`None`] before the probes are registered, and after they have been removed.
    probes: Option<Probes>,
}

impl Observer {
    /// Begins to observe the ids of others, up to the limits of [`Shares`]; process context.
    ///
    /// Fails as [`Probes::new`] does.
    pub(crate) fn new(
        hold: &Hold,
        registry: Arc<Registry>,
        stats: Arc<SharedStats>,
        history: Arc<History>,
        max_observed: u32,
        may_wait: &MayWait,
    ) -> Result<Self> {
        let shared = Shared {
            registry,
            stats,
            history,
            shares: Shares::new(max_observed)?,
            queue: WorkQueue::new(hold, c"rpcrdma_cm_observations")?,
        };
        let shared = Arc::new(shared, GFP_KERNEL)?;
        let observations = Arc::pin_init(
            pin_init!(Observations {
                shared,
                ids <- new_spinlock!(
                    Ids {
                        entries: RBTree::new(),
                        searches: 1,
                        ended: [None; ENDED],
                        next_ended: 0,
                    },
                    "Observations::ids"
                ),
                search <- new_work!("Observations::search"),
            }),
            GFP_KERNEL,
        )?;
        let mut observer = Self {
            observations: observations.clone(),
            probes: None,
        };
        match Probes::new(observations.clone()) {
            Ok(probes) => observer.probes = Some(probes),
            Err(error) => {
                // If registering some probes fails, the others may have reported connections.
                observer.end(may_wait);
                return Err(error);
            }
        }

        // In a work: the search waits for handlers of events, which may take long.
        observations.as_arc_borrow().queue_search();
        Ok(observer)
    }

    /// Stops observing, and removes the connections of others; process context.
    pub(crate) fn end(&mut self, may_wait: &MayWait) {
        let observations = &self.observations;

        // After this no probe is running. After the flush the search is not running, either.
        self.probes = None;
        observations.shared.queue.flush(may_wait);
        observations.forget(|_| true);
        observations.shared.queue.flush(may_wait);
    }
}

/// The number of entries of [`Ids::ended`].
const ENDED: usize = 64;

/// The record of an id.
enum Entry {
    Observed(Arc<ObservedConnection>),
    Undecided(Undecided),
}

impl Entry {
    fn class(&self) -> Class {
        match self {
            Self::Observed(observed) => observed.class(),
            Self::Undecided(undecided) => undecided.class(),
        }
    }
}

/// The ids that the probes or the search have reported, and that still exist.
struct Ids {
    entries: RBTree<IdKey, Entry>,
    /// How many searches for ids that are older than the probes are queued or running: at most one
    /// of each.
    searches: u32,
    /// The latest ids that were destroyed or missed during the search. If the search finds one of
    /// them, it must neither observe the id nor count it again.
    ended: [Option<IdKey>; ENDED],
    /// The index in `ended` of the next entry to overwrite.
    next_ended: usize,
}

impl Ids {
    fn known_of(&self, id: IdKey) -> Known {
        match self.entries.get(&id) {
            None => Known::Nothing,
            Some(Entry::Undecided(undecided)) => undecided.known(),
            Some(Entry::Observed(_)) => Known::Observed,
        }
    }

    fn remove(&mut self, id: IdKey) -> Option<Entry> {
        let node = self.entries.remove_node(&id);
        node.map(|node| node.to_key_value().1)
    }

    fn has_ended(&self, id: IdKey) -> bool {
        self.ended.contains(&Some(id))
    }

    fn begin_search(&mut self) {
        if self.searches == 0 {
            // Since the search before, their memory may have become that of other ids.
            self.ended = [None; ENDED];
        }
        self.searches += 1;
    }

    fn add_ended(&mut self, id: IdKey) {
        if self.searches == 0 {
            return;
        }
        // It becomes the latest one.
        self.forget_ended(id);
        if let Some(slot) = self.ended.get_mut(self.next_ended) {
            *slot = Some(id);
        }
        self.next_ended = (self.next_ended + 1) % ENDED;
    }

    fn forget_ended(&mut self, id: IdKey) {
        for slot in self.ended.iter_mut().filter(|slot| **slot == Some(id)) {
            *slot = None;
        }
    }
}

/// The data that all observed connections share.
struct Shared {
    /// The list of connections, with the module's own.
    registry: Arc<Registry>,
    stats: Arc<SharedStats>,
    history: Arc<History>,
    shares: Arc<Shares>,
    /// The queue of the search, of adding connections to the registry and removing them, and of
    /// recording ends whose cause is not found. A queue of its own, so that this work does not wait
    /// for peers.
    queue: Arc<WorkQueue>,
}

/// Everything that the probes have reported.
#[pin_data]
struct Observations {
    shared: Arc<Shared>,
    #[pin]
    ids: SpinLock<Ids>,
    #[pin]
    search: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for Observations { self.search }
}

impl WorkItem for Observations {
    type Pointer = Arc<Self>;

    /// Searches for the connections that exist already.
    fn run(this: Arc<Self>) {
        search();
        this.ids.lock().searches -= 1;
    }
}

impl Observations {
    /// Notes an event; process context. Events are noted one at a time, in their order, so that
    /// what is known of an id stays the same meanwhile.
    fn event(self: ArcBorrow<'_, Self>, event: &ObservedEvent<'_>) {
        if let EventKind::Lost(count) = event.kind {
            return self.events_lost(event.class(), count);
        }
        let known = self.ids.lock().known_of(event.id);
        match event.to_decide().meaning(known) {
            Meaning::Nothing => {}
            Meaning::BeginUndecided(role) => {
                // Frees the share of the old entry, which the new one may need.
                drop(self.take_undecided(event.id));
                let undecided = Undecided::new(&self.shared, role, event);
                self.add(event.id, event.kind, undecided.map(Entry::Undecided));
            }
            Meaning::NoteUndecided => {
                if let Some(Entry::Undecided(undecided)) =
                    self.ids.lock().entries.get_mut(&event.id)
                {
                    undecided.note(event.kind);
                }
            }
            Meaning::Forget => drop(self.take_undecided(event.id)),
            Meaning::Observe(role) => {
                drop(self.take_undecided(event.id));
                self.observe_as(role, &event.describe());
            }
            Meaning::ObserveUndecided => {
                if let Some(before) = self.take_undecided(event.id) {
                    let observation = event.describe();
                    let shared = self.shared.clone();
                    let observed = ObservedConnection::decided(shared, before, &observation);
                    self.observe(observed, &observation);
                }
            }
            // If a connection was missed, it may be this one, which is counted already.
            Meaning::ObserveOlder if self.misses_none() => {
                self.observe_as(Role::Server, &event.describe());
            }
            Meaning::ObserveOlder => {}
            Meaning::Note => {
                if let Some(observed) = self.observed(event.id) {
                    self.note(&observed, &event.describe());
                }
            }
            Meaning::Learn => {
                if let Some(observed) = self.observed(event.id) {
                    observed.learn(event.kind);
                }
            }
            Meaning::Refuse => self.refused(&event.describe()),
            Meaning::End => self.destroyed(event.id),
        }
    }

    fn observed(&self, id: IdKey) -> Option<Arc<ObservedConnection>> {
        match self.ids.lock().entries.get(&id) {
            Some(Entry::Observed(observed)) => Some(observed.clone()),
            _ => None,
        }
    }

    /// Removes the entry of an id if the id is undecided.
    fn take_undecided(&self, id: IdKey) -> Option<Undecided> {
        let mut ids = self.ids.lock();
        if !matches!(ids.entries.get(&id), Some(Entry::Undecided(_))) {
            return None;
        }
        match ids.remove(id) {
            Some(Entry::Undecided(undecided)) => Some(undecided),
            _ => None,
        }
    }

    /// Whether no reported connection of the kernel was missed.
    fn misses_none(&self) -> bool {
        let stats = &self.shared.stats;
        stats.observed_missed_nfs.get() == 0 && stats.observed_missed_memory.get() == 0
    }

    fn observe_as(&self, role: Role, observation: &Observation) {
        self.observe(
            ObservedConnection::new(self.shared.clone(), role, observation),
            observation,
        );
    }

    /// Begins to observe an id.
    fn observe(
        &self,
        observed: Result<Arc<ObservedConnection>, Missed>,
        observation: &Observation,
    ) {
        let entry = observed.clone().map(Entry::Observed);
        let is_added = self.add(observation.id, observation.kind, entry);
        if let (true, Ok(observed)) = (is_added, observed) {
            self.note(&observed, observation);
        }
    }

    /// Adds the entry of an id because of an event of this kind, and replaces the one that it has.
    /// Counts an id that cannot be kept. Returns whether the entry was added.
    fn add(&self, id: IdKey, kind: EventKind, entry: Result<Entry, Missed>) -> bool {
        let node = entry.and_then(|entry| Ok(RBTreeNode::new(id, entry, GFP_KERNEL)?));
        let node = match node {
            Ok(node) => node,
            Err(missed) => {
                let mut ids = self.ids.lock();
                // The search may look at an id twice. If there are more such ids than ENDED, some
                // are counted twice.
                if kind == EventKind::Existing && ids.has_ended(id) {
                    return false;
                }
                ids.add_ended(id);
                drop(ids);
                missed.count(&self.shared.stats);
                return false;
            }
        };

        let old = {
            let mut ids = self.ids.lock();
            if kind == EventKind::Existing && ids.has_ended(id) {
                return false;
            }
            ids.forget_ended(id);
            ids.entries.insert(node)
        };
        if let Some((_, Entry::Observed(old))) = old.map(|old| old.to_key_value()) {
            old.end();
        }
        true
    }

    fn note(&self, observed: &Arc<ObservedConnection>, observation: &Observation) {
        observed.note(observation);
        if observed.is_other_protocol() {
            self.ids.lock().remove(observation.id);
        }
    }

    /// Counts and records a request that the server's handler refused. Its id is destroyed at once,
    /// so it is not observed.
    fn refused(&self, observation: &Observation) {
        let mut facts = Facts::new(Role::Server, observation);
        facts.note(observation);
        if facts.is_rpc_over_rdma() {
            self.shared.stats.observed_refused.increment();
            self.shared.history.record(facts.refusal());
        }
    }

    /// Notes that an id is about to be destroyed.
    fn destroyed(&self, id: IdKey) {
        let mut ids = self.ids.lock();
        let entry = ids.remove(id);
        // The search may have found it, and be about to report it.
        ids.add_ended(id);
        drop(ids);
        if let Some(Entry::Observed(observed)) = entry {
            observed.end();
        }
    }

    /// Notes that `count` events of the ids of a class were lost. So nothing that is known of
    /// these ids need be true any more.
    fn events_lost(self: ArcBorrow<'_, Self>, class: Class, count: u32) {
        let stats = &self.shared.stats;
        stats.observed_events_lost.add(count);
        match class {
            Class::Nfs => &stats.observed_events_lost_nfs,
            Class::Root => &stats.observed_events_lost_root,
            Class::Users => &stats.observed_events_lost_users,
        }
        .add(count);

        self.forget(|known| known.class() == class);
        // Not for programs: any user could have the devices searched again and again.
        if class == Class::Nfs {
            self.ids.lock().begin_search();
            self.queue_search();
        }
    }

    /// Queues a search that has been counted. If one is queued already, that serves both, and is
    /// counted once.
    fn queue_search(self: ArcBorrow<'_, Self>) {
        if self.shared.queue.enqueue(Arc::from(self)).is_err() {
            self.ids.lock().searches -= 1;
        }
    }

    /// Forgets the ids for which `forgets` is true. Records no event for their ends.
    fn forget(&self, forgets: impl Fn(&Entry) -> bool) {
        let mut next = IdKey::FIRST;
        loop {
            let entry = {
                let mut ids = self.ids.lock();
                let Some(cursor) = ids.entries.cursor_lower_bound(&next) else {
                    return;
                };
                let (&id, entry) = cursor.current();
                next = id.next();
                if forgets(entry) {
                    ids.remove(id)
                } else {
                    None
                }
            };
            if let Some(Entry::Observed(observed)) = entry {
                observed.leave();
            }
        }
    }
}
