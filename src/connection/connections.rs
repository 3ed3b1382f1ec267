// SPDX-License-Identifier: GPL-2.0

//! All of the module's own connections, and what they share.

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
    counters::SharedStats,
    history::History,
    rdma::{
        errno,
        queue::Queue,
        wait::wait_while, //
    },
    registry::Registry,
    rpc::endpoint::Services, //
};

/// How often connections are looked for whose peers have been accepted and have not confirmed it,
/// in milliseconds.
const CONFIRMATION_CHECK_MS: u32 = 5000;

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
    /// The queue of `confirmations`; apart, as it must not be late because others wait.
    confirming: Arc<Queue>,
    /// The queue in which listeners end, and connections leave the tables.
    pub(super) teardown: Arc<Queue>,
    /// The queue in which connections are made again; apart, as that waits for the ends of ids.
    pub(super) reconnects: Arc<Queue>,
    /// What their endpoints share.
    pub(super) services: Arc<Services>,
}

impl_has_work! {
    impl HasWork<Self> for Connections { self.confirmations }
}

impl WorkItem for Connections {
    type Pointer = Arc<Self>;

    /// Ends the connections whose peers take too long to confirm them, until there are none that
    /// wait for that.
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
        let confirming = Queue::new(c"rpcrdma_cm_confirm")?;
        let teardown = Queue::new(c"rpcrdma_cm_leave")?;
        let reconnects = Queue::new(c"rpcrdma_cm_reconnect")?;
        let services = Services::new(stats.clone())?;

        Arc::pin_init(
            pin_init!(Self {
                registry,
                stats,
                history,
                table <- new_mutex!(Table::new(), "Connections::table"),
                shutting_down <- new_condvar!("Connections::shutting_down"),
                confirmations <- new_work!("Connections::confirmations"),
                confirming,
                teardown,
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

        // With the lock held until the connection is in both tables: whoever finds it in one may
        // close it, and its removal from both must come after this.
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

    /// Forgets a connection and removes its files, waiting for their readers; process context.
    pub(super) fn remove(&self, number: u64) {
        self.registry.remove(number);
        let node = self.table.lock().tree.remove_node(&number);
        drop(node);
    }

    /// Returns the connection of that number, if it is one of the module's own; process context.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<Connection>> {
        self.table.lock().tree.get(&number).cloned()
    }

    /// Returns, in the order of their numbers, the connections, as far as they are still there when
    /// it is their turn. No lock is held in between: there can be many, and new ones must not wait.
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

    /// Sees to it that a connection that has been accepted is confirmed in time.
    pub(super) fn expect_confirmation(self: &Arc<Self>) {
        // Nothing is to be done if the work is queued already.
        let _ = self.confirming.enqueue(self.clone());
    }

    /// Waits for `pause_ms` milliseconds, and returns whether the table is still in use.
    fn pause(&self, pause_ms: u32) -> bool {
        wait_while(&self.shutting_down, &self.table, pause_ms, |table| {
            !table.shut_down
        })
    }

    /// Ends all connections; process context. Does not wait for them to be gone.
    pub(crate) fn close_all(&self) {
        for connection in self.each() {
            connection.as_arc_borrow().close();
        }
    }

    /// Has [`Self::add`] fail from now on; process context.
    pub(super) fn refuse_new(&self) {
        self.table.lock().shut_down = true;
        self.shutting_down.notify_all();
    }

    /// Ends all connections and waits until they are gone, when no new one can be added; process
    /// context.
    pub(super) fn shut_down(&self) {
        self.close_all();
        for connection in self.each() {
            connection.wait_gone_uninterruptible();
        }
        // A connection may be on its way to one of the queues until it is gone.
        self.confirming.flush();
        self.reconnects.flush();
        self.teardown.flush();
        self.services.flush();
    }
}
