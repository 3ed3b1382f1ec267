// SPDX-License-Identifier: GPL-2.0

//! The interface between the id of a connection and its queue pair.

use core::ptr::NonNull;

use kernel::prelude::*;

use crate::{
    base::{
        draining::Draining,
        unload::Hold, //
    },
    bindings,
    rdma::verbs::device::Device, //
};

/// The queue pair of a connection, and what its user sends and receives by.
///
/// The layer drops a value when it has disconnected the id, or has not accepted the request, and
/// nobody uses the value by a [`Handle`] any more. That may sleep, but must not wait for the peer.
///
/// Operations must end in bounded time, even if [`Self::fail`] fails: the end of the id waits for
/// those who use the value. The other functions are called by the ids, in handlers, too, so they
/// wait for no peer and no completion. They may sleep.
///
/// # Safety
///
/// [`Self::new`] makes the only queue pair of the id, by `rdma_create_qp`, and does nothing else
/// with the id. The value owns the queue pair: the id has it as long as the value lives. When the
/// value has been dropped, or `new` has failed, the id has no queue pair, no completion is handled
/// any more, and each object that the device keeps holds a reference on the device. If the device
/// keeps the queue pair, an event may still be on its way to the handler.
///
/// [`Handle`]: crate::base::draining::Handle
pub(crate) unsafe trait ConnectionQueuePair: Sized + Send + Sync + 'static {
    /// The arguments from which the queue pair is created, such as its sizes.
    type Setup;

    /// Creates the queue pair of `id`, which is bound to `device`. The resource tracker lists it
    /// under the name `owner`. Objects that keep the module are made with `hold`. Called by the
    /// work that connects or accepts or, over soft-iWARP, by the handler of the request; may sleep.
    ///
    /// Fails with `ENOMEM`, or with the error of the device.
    ///
    /// # Safety
    ///
    /// `id` must be valid and have no queue pair, nobody else may make one meanwhile, and it must
    /// be destroyed only after the returned value has been dropped or, if this fails, after it has
    /// returned.
    unsafe fn new(
        id: NonNull<bindings::rdma_cm_id>,
        device: &Device,
        owner: &'static CStr,
        setup: Self::Setup,
        hold: &Hold,
    ) -> Result<Self>;

    /// Sets how many RDMA Reads the peer serves at a time. Before it is called, there are none.
    fn set_read_depth(&self, depth: u8);

    /// Makes the queue pair fail, which ends everything that is under way on it.
    ///
    /// Fails if the device refuses that.
    fn fail(&self) -> Result;

    /// Makes the queue pair fail, unless a Work Request other than a Receive is under way.
    fn fail_if_idle(&self);
}

/// Creates the queue pair of `id`, which is bound to `device`, and puts it into `place`. May sleep.
///
/// Fails with `EEXIST` if there is or has been one, otherwise as [`ConnectionQueuePair::new`] does.
///
/// # Safety
///
/// `id` must be valid, have no queue pair except in `place`, and be destroyed only after that has
/// been drained. No other task may call this for `id` meanwhile.
pub(super) unsafe fn create<Q: ConnectionQueuePair>(
    place: &Draining<Q>,
    id: NonNull<bindings::rdma_cm_id>,
    device: &Device,
    owner: &'static CStr,
    setup: Q::Setup,
    hold: &Hold,
) -> Result {
    if place.is_used() {
        return Err(EEXIST);
    }
    // SAFETY: The id has no queue pair. The rest is this function's requirement.
    let queue_pair = unsafe { Q::new(id, device, owner, setup, hold) }?;
    place.put(queue_pair).map_err(|_| EEXIST)
}
