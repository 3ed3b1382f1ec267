// SPDX-License-Identifier: GPL-2.0

//! A limit on how many connections there may be at a time.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// A fixed number of permits.
pub(crate) struct Permits {
    max: u32,
    taken: Atomic<u32>,
}

/// One permit, which is given back when this is dropped.
pub(crate) struct Permit(Arc<Permits>);

impl Permits {
    /// Creates `max` permits; process context.
    pub(crate) fn new(max: u32) -> Result<Arc<Self>> {
        let permits = Self {
            max,
            taken: Atomic::new(0),
        };
        Ok(Arc::new(permits, GFP_KERNEL)?)
    }

    pub(crate) fn max(&self) -> u32 {
        self.max
    }

    /// Returns how many permits are taken at present; any context.
    pub(crate) fn taken(&self) -> u32 {
        self.taken.load(Relaxed)
    }

    /// Takes a permit; [`None`] if all are taken; any context.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Permit> {
        let mut taken = self.taken();
        while taken < self.max {
            match self.taken.cmpxchg(taken, taken + 1, Relaxed) {
                Ok(_) => return Some(Permit(self.clone())),
                Err(now) => taken = now,
            }
        }
        None
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Relaxed);
    }
}
