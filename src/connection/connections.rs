// SPDX-License-Identifier: GPL-2.0

//! The table of the module's own connections, and their work queues.

use core::iter;

use kernel::{
    impl_has_work,
    new_condvar,
    new_mutex,
    new_work,
    prelude::*,
    rbtree::RBTreeNode,
    sync::{
        Arc,
        CondVar,
        Mutex, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use super::{
    table::Table,
    Connection, //
};
use crate::{
    base::{
        errno::errno,
        wait::wait_while,
        work_queue::WorkQueue, //
    },
    counters::SharedStats,
    history_ring::History,
    registry::Registry,
    rpc::endpoint::Services, //
};

/// The interval at which accepted connections without an RTU are checked for their time limit, in
/// milliseconds.
const CONFIRMATION_CHECK_MS: u32 = 5000;

/// How long unloading waits before the log says for which connection, in milliseconds.
const WARN_MS: u32 = 5000;

/// The module's own connections.
#[pin_data]
pub(crate) struct Connections {
    /// Lists them, beside the connections of others.
    registry: Arc<Registry>,
    pub(super) stats: Arc<SharedStats>,
    pub(super) history: Arc<History>,
    #[pin]
    table: Mutex<Table<Arc<Connection>>>,
    /// Notified when the table is shut down.
    #[pin]
    shutting_down: CondVar,
    #[pin]
    confirmations: Work<Self>,
    /// The queue of the works that end connections at a time limit. A queue of its own, so that no
    /// other work delays them.
    pub(super) limits: Arc<WorkQueue>,
    /// The queue in which listeners end, and connections are removed from the tables.
    pub(super) leave: Arc<WorkQueue>,
    /// The queue of reconnecting. A queue of its own, because reconnecting waits until ids have
    /// been destroyed.
    pub(super) reconnects: Arc<WorkQueue>,
    /// The state that all endpoints share.
    pub(super) services: Arc<Services>,
}

impl_has_work! {
    impl HasWork<Self> for Connections { self.confirmations }
}

impl WorkItem for Connections {
    type Pointer = Arc<Self>;

    /// Ends the connections whose RTU does not arrive in time. Returns when no connection waits for
    /// an RTU.
    fn run(this: Arc<Self>) {
        while this.pause(CONFIRMATION_CHECK_MS) {
            let mut waiting = false;
            for connection in this.each() {
                waiting |= connection.as_arc_borrow().expire();
            }
            if !waiting {
                return;
            }
        }
    }
}

impl Connections {
    /// Makes an empty table, whose connections are listed in `registry`; process context.
    pub(super) fn new(
        registry: Arc<Registry>,
        stats: Arc<SharedStats>,
        history: Arc<History>,
    ) -> Result<Arc<Self>> {
        let limits = WorkQueue::new(c"rpcrdma_cm_limits")?;
        let leave = WorkQueue::new(c"rpcrdma_cm_leave")?;
        let reconnects = WorkQueue::new(c"rpcrdma_cm_reconnect")?;
        let services = Services::new(stats.clone())?;

        Arc::pin_init(
            pin_init!(Self {
                registry,
                stats,
                history,
                table <- new_mutex!(Table::new(), "Connections::table"),
                shutting_down <- new_condvar!("Connections::shutting_down"),
                confirmations <- new_work!("Connections::confirmations"),
                limits,
                leave,
                reconnects,
                services,
            }),
            GFP_KERNEL,
        )
    }

    /// Returns a number that no connection has had yet.
    pub(super) fn next_number(&self) -> u64 {
        self.registry.next_number()
    }

    /// Makes a connection visible; process context.
    ///
    /// Fails with `ESHUTDOWN` once the table has been shut down.
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

    /// Starts checking accepted connections for the time limit of their RTU; any context.
    pub(super) fn expect_confirmation(self: &Arc<Self>) {
        // Queueing fails only if the work is pending. Then it runs after this, which is enough.
        let _ = self.limits.enqueue(self.clone());
    }

    /// Waits for `pause_ms` milliseconds, and returns whether the table is still in use.
    fn pause(&self, pause_ms: u32) -> bool {
        wait_while(&self.shutting_down, &self.table, pause_ms, |table| {
            !table.shut_down
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
        self.shutting_down.notify_all();
    }

    /// Closes all connections and waits until they are gone; process context. Called after
    /// [`Self::refuse_new`].
    pub(super) fn shut_down(&self) {
        self.close_all();
        for connection in self.each() {
            while !connection.wait_gone_for(WARN_MS) {
                pr_warn!("unloading waits for connection {}\n", connection.number);
            }
        }
        // The works hold references to connections until they return.
        self.limits.flush();
        self.reconnects.flush();
        self.leave.flush();
        self.services.flush();
    }
}
