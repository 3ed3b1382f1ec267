// SPDX-License-Identifier: GPL-2.0

//! The connections of others: of the kernel's RPC-over-RDMA client and server, and of programs that
//! speak it.
//!
//! Probes tell of each step of the set-up and of the end of an id, in the order in which they
//! happen to that id, in contexts that may not sleep. What they tell is noted at once; what has to
//! sleep, making and removing files, is left to a work of each id.
//!
//! Locks: those of [`Ids`] and of [`Facts`] are spin locks, and not taken one within the other.

mod probes;
mod watched;

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
        SpinLock, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use self::{
    probes::{
        tell_existing,
        Happening,
        IdKey,
        Probes,
        Seen,
        User, //
    },
    watched::Facts, //
};
use crate::{
    protocol::negotiation::Role,
    registry::Registry, //
};

pub(crate) use self::watched::Watched;

/// The port at which servers of NFS over RDMA listen (RFC 8267, section 6).
const NFS_RDMA_PORT: u16 = 20049;

/// Observes as long as it is there.
pub(crate) struct Observer {
    observations: Arc<Observations>,
    /// [`None`] when there is nothing more to observe.
    probes: Option<Probes>,
}

impl Observer {
    /// Begins to observe; process context.
    ///
    /// Fails as [`Probes::new`] does.
    pub(crate) fn new(registry: Arc<Registry>) -> Result<Self> {
        let observations = Arc::pin_init(
            pin_init!(Observations {
                registry,
                ids <- new_spinlock!(
                    Ids {
                        watched: RBTree::new(),
                        ended: [None; ENDED],
                        next_ended: 0,
                    },
                    "Observations::ids"
                ),
                search <- new_work!("Observations::search"),
            }),
            GFP_KERNEL,
        )?;
        // Complete before there are probes: if these fail, what they have told goes in `drop`.
        let mut observer = Self {
            observations: observations.clone(),
            probes: None,
        };
        observer.probes = Some(Probes::new(observations.clone())?);

        // In a work: it waits for whoever handles an event, which may take long.
        let queue = observations.registry.observations.clone();
        let _ = queue.enqueue(observations);
        Ok(observer)
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let observations = &self.observations;

        // No probe is running when this returns, nor the search when it has been flushed.
        self.probes = None;
        observations.registry.observations.flush();
        while let Some(watched) = observations.take_first() {
            watched.leave();
        }
        observations.registry.observations.flush();
    }
}

/// How many ids are remembered that went, or were missed, while others were searched for.
const ENDED: usize = 64;

/// The ids that there are.
struct Ids {
    watched: RBTree<IdKey, Arc<Watched>>,
    /// Ids that have lately gone without having been known, or been missed. The search must not
    /// take them for live, nor count them again, if it finds them on their way.
    ended: [Option<IdKey>; ENDED],
    next_ended: usize,
}

impl Ids {
    fn has_ended(&self, id: IdKey) -> bool {
        self.ended.contains(&Some(id))
    }

    fn remove(&mut self, id: IdKey) -> Option<Arc<Watched>> {
        let node = self.watched.remove_node(&id);
        node.map(|node| node.to_key_value().1)
    }

    fn add_ended(&mut self, id: IdKey) {
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

/// What the probes have told.
#[pin_data]
struct Observations {
    registry: Arc<Registry>,
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

    /// Searches for the connections that are older than the probes.
    fn run(this: Arc<Self>) {
        tell_existing(&this);
    }
}

impl Observations {
    /// Notes what happened; any context in which a spin lock can be taken.
    fn seen(&self, seen: &Seen) {
        let known = self.ids.lock().watched.get(&seen.id).cloned();

        match (seen.happening, known) {
            (Happening::Request { refused: true }, _) => self.refused(seen),
            (Happening::Request { refused: false }, _) => self.watch(Role::Server, seen),
            (Happening::Connect, None) => self.watch(Role::Client, seen),
            // Who has got further cannot connect: the call is going to fail.
            (Happening::Connect, Some(watched)) if !watched.can_connect() => {}
            // A listener has no peer.
            (Happening::Existing { .. }, Some(_)) => {}
            (Happening::Existing { .. }, None) if seen.remote.is_none() => {}
            (Happening::Existing { .. }, None) => self.watch(seen.role_of_existing(), seen),
            // The request is older than the probes, where it cannot be one that was missed.
            (Happening::Accept, None) if seen.user == User::Server && self.misses_none() => {
                self.watch(Role::Server, seen);
            }
            (_, None) => {}
            (_, Some(watched)) => self.note(&watched, seen),
        }
    }

    /// Whether all that the probes have told of is observed.
    fn misses_none(&self) -> bool {
        self.registry.stats.observed_missed.get() == 0
    }

    /// Begins to watch an id, instead of what was known of it.
    fn watch(&self, role: Role, seen: &Seen) {
        let Ok((watched, node)) =
            Watched::new(self.registry.clone(), role, seen).and_then(|watched| {
                let node = RBTreeNode::new(seen.id, watched.clone(), GFP_NOWAIT)?;
                Ok((watched, node))
            })
        else {
            self.registry.stats.observed_missed.increment();
            self.ids.lock().add_ended(seen.id);
            return;
        };

        let old = {
            let mut ids = self.ids.lock();
            match seen.happening {
                Happening::Existing { .. }
                    if ids.has_ended(seen.id) || ids.watched.get(&seen.id).is_some() =>
                {
                    return;
                }
                _ => ids.forget_ended(seen.id),
            }
            ids.watched.insert(node)
        };
        if let Some(old) = old {
            old.to_key_value().1.end();
        }
        self.note(&watched, seen);
    }

    fn note(&self, watched: &Arc<Watched>, seen: &Seen) {
        watched.note(seen);
        if watched.is_of_others() {
            self.ids.lock().remove(seen.id);
        }
    }

    /// A server refused a request at once, so that there is nothing to watch.
    fn refused(&self, seen: &Seen) {
        let mut facts = Facts::new(Role::Server, seen);
        facts.note(seen);
        if facts.is_rpc_over_rdma() {
            self.registry.stats.observed_refused.increment();
        }
    }

    /// An id is about to go.
    fn destroyed(&self, id: IdKey) {
        let mut ids = self.ids.lock();
        let watched = ids.remove(id);
        if watched.is_none() {
            ids.add_ended(id);
        }
        drop(ids);
        if let Some(watched) = watched {
            watched.end();
        }
    }

    fn take_first(&self) -> Option<Arc<Watched>> {
        let mut ids = self.ids.lock();
        let id = ids.watched.keys().next().copied()?;
        ids.remove(id)
    }
}

impl Seen {
    /// Returns the role of an id that was found: of a program, the one that its port stands for.
    fn role_of_existing(&self) -> Role {
        let at_server = self
            .local
            .is_some_and(|local| local.port() == NFS_RDMA_PORT);
        match self.user {
            User::Client => Role::Client,
            User::Server => Role::Server,
            User::Program if at_server => Role::Server,
            User::Program => Role::Client,
        }
    }
}
