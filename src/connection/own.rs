// SPDX-License-Identifier: GPL-2.0

//! Owns the module's listeners and connections.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    connections::Connections,
    listener::listeners::Listeners, //
};
use crate::{
    base::{
        unload::Hold,
        wait::MayWait, //
    },
    counters::SharedStats,
    history_ring::History,
    registry::Registry, //
};

/// The module's own listeners and connections. [`Self::end`] has to be called before it is dropped.
pub(crate) struct Own {
    pub(crate) listeners: Arc<Listeners>,
    pub(crate) connections: Arc<Connections>,
}

impl Own {
    /// Creates empty tables; process context.
    pub(crate) fn new(
        hold: &Hold,
        registry: Arc<Registry>,
        stats: Arc<SharedStats>,
        history: Arc<History>,
    ) -> Result<Self> {
        let connections = Connections::new(hold, registry, stats, history)?;
        Ok(Self {
            listeners: Listeners::new(connections.clone())?,
            connections,
        })
    }

    /// Ends all listeners and connections, and waits until they are gone; process context. No new
    /// ones can be added afterwards.
    pub(crate) fn end(&self, may_wait: &MayWait) {
        self.connections.refuse_new();
        // Before the connections: a listener accepts requests until it has ended.
        self.listeners.shut_down(may_wait);
        self.connections.shut_down(may_wait);
    }
}
