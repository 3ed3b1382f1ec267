// SPDX-License-Identifier: GPL-2.0

//! The table of the module's own connections, and their work queues.

use core::iter;

use kernel::{
    new_mutex,
    prelude::*,
    rbtree::RBTreeNode,
    sync::{
        Arc,
        Mutex, //
    }, //
};

use super::{
    table::Table,
    Connection, //
};
use crate::{
    base::{
        errno::errno,
        unload::Hold,
        wait::MayWait,
        work_queue::WorkQueue, //
    },
    counters::SharedStats,
    history_ring::History,
    registry::Registry,
    rpc::endpoint::Services, //
};

/// The number of the queues in which clients connect. Over soft-iWARP each client occupies a work
/// until its peer's host has answered or TCP has given up, and a queue runs 2048 works at a time.
const CONNECT_QUEUES: usize = 4;

/// How long unloading, or closing a listener, waits before the log says for what, in milliseconds.
pub(super) const WARN_MS: u32 = 5000;

/// The module's own connections.
#[pin_data]
pub(crate) struct Connections {
    /// Lists them, beside the connections of others.
    registry: Arc<Registry>,
    pub(super) stats: Arc<SharedStats>,
    pub(super) history: Arc<History>,
    #[pin]
    table: Mutex<Table<Arc<Connection>>>,
    /// The queue in which listeners end, and connections are removed from the tables.
    pub(super) leave: Arc<WorkQueue>,
    /// The queues in which clients make their queue pairs and connect. Queues of their own, because
    /// soft-iWARP waits for the peer's host.
    connects: KVec<Arc<WorkQueue>>,
    /// The queue in which listeners accept requests. A queue of its own, because that takes up to
    /// 33 MiB of memory for each request, which may have to be reclaimed first.
    pub(super) accepts: Arc<WorkQueue>,
    /// The queue of the connections' timers. A queue of its own, so that no other work delays it.
    pub(super) timers: Arc<WorkQueue>,
    /// The state that all endpoints share.
    pub(super) services: Arc<Services>,
}

impl Connections {
    /// Creates an empty table, whose connections are listed in `registry`; process context.
    pub(super) fn new(
        hold: &Hold,
        registry: Arc<Registry>,
        stats: Arc<SharedStats>,
        history: Arc<History>,
    ) -> Result<Arc<Self>> {
        let leave = WorkQueue::new(hold, c"rpcrdma_cm_leave")?;
        let accepts = WorkQueue::new(hold, c"rpcrdma_cm_accept")?;
        let mut connects = KVec::with_capacity(CONNECT_QUEUES, GFP_KERNEL)?;
        for _ in 0..CONNECT_QUEUES {
            connects.push(WorkQueue::new(hold, c"rpcrdma_cm_connect")?, GFP_KERNEL)?;
        }
        let timers = WorkQueue::new(hold, c"rpcrdma_cm_timers")?;
        let services = Services::new(hold, stats.clone())?;

        Arc::pin_init(
            pin_init!(Self {
                registry,
                stats,
                history,
                table <- new_mutex!(Table::new(), "Connections::table"),
                leave,
                accepts,
                connects,
                timers,
                services,
            }),
            GFP_KERNEL,
        )
    }

    /// Returns a number that no connection has had yet.
    pub(super) fn next_number(&self) -> u64 {
        self.registry.next_number()
    }

    /// Returns the queue in which the connection of that number connects.
    pub(super) fn connect_queue(&self, number: u64) -> Result<Arc<WorkQueue>> {
        let index = number as usize % CONNECT_QUEUES;
        self.connects.get(index).cloned().ok_or(EINVAL)
    }

    /// Makes a connection visible; process context.
    ///
    /// Fails with `ESHUTDOWN` once the table has been shut down, with `ENOMEM`, or as
    /// [`Registry::add`] does.
    pub(super) fn add(&self, connection: &Arc<Connection>) -> Result {
        let number = connection.number;
        let node = RBTreeNode::new(number, connection.clone(), GFP_KERNEL)?;

        // The lock is held until the connection is in both tables. Otherwise a task that finds the
        // connection in one table could close it, and it would be removed before it is in the
        // other.
        let mut table = self.table.lock();
        table
            .insert(node)
            .map_err(|_| errno(kernel::bindings::ESHUTDOWN))?;
        self.registry
            .add(number, connection.clone())
            .inspect_err(|_| {
                table.tree.remove_node(&number);
            })
    }

    /// Removes a connection from both tables. Also removes its files, and waits for their readers;
    /// process context.
    pub(super) fn remove(&self, number: u64) {
        self.registry.remove(number);
        let node = self.table.lock().tree.remove_node(&number);
        drop(node);
    }

    /// Returns the connection of that number, if it is one of the module's own; process context.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<Connection>> {
        self.table.lock().tree.get(&number).cloned()
    }

    /// Returns the connections in the order of their numbers; process context. The lock is released
    /// between two connections, so that new ones need not wait: a connection that is removed before
    /// its turn is left out.
    pub(crate) fn each(&self) -> impl Iterator<Item = Arc<Connection>> + '_ {
        let last = self.registry.last_number();
        let mut next = 0;

        iter::from_fn(move || {
            let table = self.table.lock();
            let cursor = table.tree.cursor_lower_bound(&next)?;
            let (&number, connection) = cursor.current();
            next = number + 1;
            (number <= last).then(|| connection.clone())
        })
    }

    /// Closes all connections; process context. Does not wait until they are gone.
    pub(crate) fn close_all(&self) {
        for connection in self.each() {
            connection.as_arc_borrow().close();
        }
    }

    /// Makes [`Self::add`] fail from now on; process context.
    pub(super) fn refuse_new(&self) {
        self.table.lock().shut_down = true;
    }

    /// Closes all connections and waits until they are gone; process context. Called after
    /// [`Self::refuse_new`].
    pub(super) fn shut_down(&self, may_wait: &MayWait) {
        self.close_all();
        for connection in self.each() {
            while !connection.wait_gone_for(WARN_MS) {
                pr_warn!("unloading waits for connection {}\n", connection.number);
            }
        }
        // The works hold references to connections until they return.
        for queue in &self.connects {
            queue.flush(may_wait);
        }
        self.timers.flush(may_wait);
        self.leave.flush(may_wait);
        self.services.flush(may_wait);
    }
}
