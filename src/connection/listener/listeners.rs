// SPDX-License-Identifier: GPL-2.0

//! All listeners of the module.

use kernel::{
    new_mutex,
    prelude::*,
    rbtree::RBTreeNode,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    }, //
};

use super::Listener;
use crate::{
    base::{
        errno::errno,
        wait::MayWait, //
    },
    connection::{
        connections::Connections,
        table::Table, //
    }, //
};

/// The module's listeners.
#[pin_data]
pub(crate) struct Listeners {
    /// The table to which listeners add the connections that they accept.
    pub(super) connections: Arc<Connections>,
    #[pin]
    table: Mutex<Table<Arc<Listener>>>,
    last_number: Atomic<u64>,
}

impl Listeners {
    /// Creates an empty table of listeners that add to `connections`; process context.
    pub(in crate::connection) fn new(connections: Arc<Connections>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                connections,
                table <- new_mutex!(Table::new(), "Listeners::table"),
                last_number: Atomic::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns a number that no listener has had yet.
    pub(super) fn next_number(&self) -> u64 {
        self.last_number.fetch_add(1, Relaxed) + 1
    }

    /// Makes a listener visible; process context.
    ///
    /// Fails with `ESHUTDOWN` once the table has been shut down, and with `ENOMEM`.
    pub(super) fn add(&self, listener: Arc<Listener>) -> Result {
        let node = RBTreeNode::new(listener.number, listener, GFP_KERNEL)?;

        let result = self.table.lock().insert(node);
        result.map_err(|_| errno(kernel::bindings::ESHUTDOWN))
    }

    /// Ends the listener of that number; process context. Returns whether there was one.
    pub(crate) fn remove(&self, number: u64, may_wait: &MayWait) -> bool {
        let node = self.table.lock().tree.remove_node(&number);
        let Some((_, listener)) = node.map(RBTreeNode::to_key_value) else {
            return false;
        };
        listener.stop(may_wait);
        true
    }

    /// Calls `f` with each listener, in the order of their numbers; process context. The table is
    /// locked meanwhile, so `f` must not add or remove a listener. `f` may sleep.
    pub(crate) fn for_each<E>(
        &self,
        f: impl FnMut(&Arc<Listener>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.table.lock().tree.values().try_for_each(f)
    }

    /// Ends all listeners; process context.
    pub(crate) fn close_all(&self, may_wait: &MayWait) {
        while let Some(number) = self.first() {
            self.remove(number, may_wait);
        }
    }

    fn first(&self) -> Option<u64> {
        self.table.lock().tree.keys().next().copied()
    }

    /// Ends all listeners, and makes [`Self::add`] fail from now on; process context.
    pub(in crate::connection) fn shut_down(&self, may_wait: &MayWait) {
        self.table.lock().shut_down = true;
        self.close_all(may_wait);
    }
}
