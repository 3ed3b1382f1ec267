// SPDX-License-Identifier: GPL-2.0

//! How many ids of each kind of owner may be kept at a time.
//!
//! Each kind has a share that no other kind can take. Any user may open the device of rdma_cm, so
//! a user's programs have a limit within the share of programs.

use kernel::{
    new_spinlock,
    prelude::*,
    rbtree::RBTree,
    sync::{
        Arc,
        SpinLock, //
    }, //
};

use super::probes::Uid;
use crate::{
    counters::SharedStats,
    permits::{
        Permit,
        Permits, //
    },
    pure::wire::meaning::User, //
};

/// The part of `max_observed` that the programs of root may take, and the part that those of all
/// other users together may take.
const PROGRAMS: u32 = 4;

/// The part of `max_observed` that the programs of one user may take.
const ONE_USER: u32 = 64;

/// Why an id cannot be kept.
#[derive(Clone, Copy)]
pub(super) enum Missed {
    /// The share of the kernel's clients, or that of its servers, is used up.
    Nfs,
    /// The user's programs have as many ids as one user may have.
    User,
    /// The share of root's programs, or that of all other users' programs, is used up.
    Programs,
    /// There is no memory.
    Memory,
}

impl Missed {
    /// Counts an id that was missed for this reason; any context.
    pub(super) fn count(self, stats: &SharedStats) {
        stats.observed_missed.increment();
        match self {
            Self::Nfs => &stats.observed_missed_nfs,
            Self::User => &stats.observed_missed_user,
            Self::Programs => &stats.observed_missed_programs,
            Self::Memory => &stats.observed_missed_memory,
        }
        .increment();
    }
}

/// Everything else that can fail is an allocation.
impl From<Error> for Missed {
    fn from(_: Error) -> Self {
        Self::Memory
    }
}

/// The shares of all owners.
#[pin_data]
pub(super) struct Shares {
    clients: Arc<Permits>,
    servers: Arc<Permits>,
    root: Arc<Permits>,
    users: Arc<Permits>,
    /// The number of ids that one user's programs may have.
    max_of_user: u32,
    /// The number of ids that the programs of each user have. A user without one has no entry.
    #[pin]
    of_users: SpinLock<RBTree<Uid, u32>>,
}

/// The right to keep one id. It is given back when this is dropped, in any context in which a spin
/// lock can be taken.
pub(super) struct Share {
    _permit: Permit,
    /// The user whose limit this counts against.
    user: Option<(Arc<Shares>, Uid)>,
}

impl Shares {
    /// Creates the shares for the parameter `max_observed`; process context.
    pub(super) fn new(max_observed: u32) -> Result<Arc<Self>> {
        let of_programs = max_observed / PROGRAMS;
        Arc::pin_init(
            try_pin_init!(Self {
                clients: Permits::new(max_observed)?,
                servers: Permits::new(max_observed)?,
                root: Permits::new(of_programs)?,
                users: Permits::new(of_programs)?,
                max_of_user: max_observed / ONE_USER,
                of_users <- new_spinlock!(RBTree::new(), "Shares::of_users"),
            }),
            GFP_KERNEL,
        )
    }

    /// Takes a part of the share of `user`; any context in which a spin lock can be taken. Of a
    /// program, `uid` is its user.
    pub(super) fn take(self: &Arc<Self>, user: User, uid: Uid) -> Result<Share, Missed> {
        let (permits, missed) = match user {
            User::Client => (&self.clients, Missed::Nfs),
            User::Server => (&self.servers, Missed::Nfs),
            User::Program if uid == Uid::ROOT => (&self.root, Missed::Programs),
            User::Program => return self.take_of_user(uid),
        };
        Ok(Share {
            _permit: permits.take().ok_or(missed)?,
            user: None,
        })
    }

    fn take_of_user(self: &Arc<Self>, uid: Uid) -> Result<Share, Missed> {
        let mut of_users = self.of_users.lock();
        let taken = of_users.get(&uid).copied().unwrap_or_default();
        if taken >= self.max_of_user {
            return Err(Missed::User);
        }
        let permit = self.users.take().ok_or(Missed::Programs)?;
        match of_users.get_mut(&uid) {
            Some(taken) => *taken += 1,
            None => drop(of_users.try_create_and_insert(uid, 1, GFP_NOWAIT)?),
        }
        Ok(Share {
            _permit: permit,
            user: Some((self.clone(), uid)),
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some((shares, uid)) = self.user.take() else {
            return;
        };
        let mut of_users = shares.of_users.lock();
        let unused = match of_users.get_mut(&uid) {
            Some(taken) if *taken > 1 => {
                *taken -= 1;
                None
            }
            _ => of_users.remove_node(&uid),
        };
        drop(of_users);
        drop(unused);
    }
}
