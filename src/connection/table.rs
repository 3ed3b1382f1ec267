// SPDX-License-Identifier: GPL-2.0

//! A table of connections or of listeners, by their numbers.

use kernel::rbtree::{
    RBTree,
    RBTreeNode, //
};

/// A table to which nothing can be added once it has been shut down.
pub(super) struct Table<T> {
    pub(super) tree: RBTree<u64, T>,
    pub(super) shut_down: bool,
}

impl<T> Table<T> {
    pub(super) fn new() -> Self {
        Self {
            tree: RBTree::new(),
            shut_down: false,
        }
    }

    /// Adds an entry. Fails with `node` once the table has been shut down.
    pub(super) fn insert(&mut self, node: RBTreeNode<u64, T>) -> Result<(), RBTreeNode<u64, T>> {
        if self.shut_down {
            return Err(node);
        }
        self.tree.insert(node);
        Ok(())
    }
}
