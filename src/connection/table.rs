// SPDX-License-Identifier: GPL-2.0

//! What there is of one kind, by its number.

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

    /// Adds what `node` has. Gives it back where the table has been shut down.
    pub(super) fn insert(&mut self, node: RBTreeNode<u64, T>) -> Result<(), RBTreeNode<u64, T>> {
        if self.shut_down {
            return Err(node);
        }
        self.tree.insert(node);
        Ok(())
    }
}
