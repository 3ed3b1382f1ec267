// SPDX-License-Identifier: GPL-2.0

//! The queue pair of a connection, with the Receives that are posted on it.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use core::ptr::{
    self,
    NonNull, //
};

use kernel::{
    alloc::flags::__GFP_NOWARN,
    container_of,
    error::{
        from_err_ptr,
        to_result, //
    },
    prelude::*,
    types::Opaque, //
};

use super::{
    device::Device,
    OWNER, //
};
use crate::bindings;

/// How many Receives are posted on a connection.
const RECEIVES: u32 = 4;

/// How many Sends can be outstanding: only the marker of `ib_drain_qp`.
const SENDS: u32 = 1;

/// The place that `ib_drain_qp` needs among the Receives.
const DRAIN_RECEIVES: u32 = 1;

/// Takes what completes on a connection.
pub(crate) trait CompletionHandler: Send + Sync + 'static {
    /// A message arrived in a Receive.
    ///
    /// Runs in a work queue of the RDMA core and may sleep. It must not wait for the connection's
    /// end, which waits for it.
    fn received(&self);

    /// The queue pair failed, and nothing more can arrive. Called for each Receive that is lost by
    /// it, also where this side has ended the connection. `reason` says what happened.
    ///
    /// Runs as [`Self::received`] does.
    fn queue_pair_failed(&self, reason: &'static CStr);
}

/// A protection domain.
///
/// # Invariants
///
/// The pointer is to a protection domain that this owns.
struct ProtectionDomain(NonNull<bindings::ib_pd>);

impl ProtectionDomain {
    fn new(device: Device<'_>) -> Result<Self> {
        // SAFETY: The device is there for as long as `device` is; the name is static.
        let pd = unsafe { bindings::__ib_alloc_pd(device.as_ptr(), 0, OWNER.as_char_ptr()) };

        // INVARIANT: What is not an error pointer is a new protection domain.
        Ok(Self(NonNull::new(from_err_ptr(pd)?).ok_or(ENOMEM)?))
    }
}

impl Drop for ProtectionDomain {
    fn drop(&mut self) {
        // SAFETY: By the type invariant it is ours; the queue pair that used it is gone.
        unsafe { bindings::ib_dealloc_pd_user(self.0.as_ptr(), ptr::null_mut()) };
    }
}

/// A completion queue, worked off in a work queue of the RDMA core.
///
/// # Invariants
///
/// The pointer is to a completion queue that this owns.
struct CompletionQueue(NonNull<bindings::ib_cq>);

impl CompletionQueue {
    fn new(device: Device<'_>, entries: u32) -> Result<Self> {
        let entries = entries.try_into()?;
        // SAFETY: The device is there for as long as `device` is; the name is static.
        let cq = unsafe {
            bindings::__ib_alloc_cq_any(
                device.as_ptr(),
                ptr::null_mut(),
                entries,
                bindings::ib_poll_context_IB_POLL_WORKQUEUE,
                OWNER.as_char_ptr(),
            )
        };

        // INVARIANT: What is not an error pointer is a new completion queue.
        Ok(Self(NonNull::new(from_err_ptr(cq)?).ok_or(ENOMEM)?))
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: By the type invariant it is ours, and its queue pair is gone. The function waits
        // for the completion handler if that runs.
        unsafe { bindings::ib_free_cq(self.0.as_ptr()) };
    }
}

/// Memory that a device receives messages into.
///
/// # Invariants
///
/// `address` is the DMA address on `device` of the `octets`, up to their capacity. `device` stays
/// for as long as this does.
struct ReceiveBuffer {
    octets: KVec<u8>,
    address: u64,
    device: NonNull<bindings::ib_device>,
}

impl ReceiveBuffer {
    /// # Safety
    ///
    /// The device must stay until the buffer has been dropped.
    unsafe fn new(device: Device<'_>, size: usize) -> Result<Self> {
        // Without a warning: what one connection asks for must not put anything into the log.
        let mut octets = KVec::<u8>::with_capacity(size, GFP_KERNEL | __GFP_NOWARN)?;
        // SAFETY: `size` octets have been allocated, physically contiguous as kmalloc's are.
        let address = unsafe {
            bindings::shim_dma_map_receive(
                device.as_ptr(),
                octets.as_mut_ptr().cast(),
                octets.capacity(),
            )
        };
        // SAFETY: The address is what mapping for this device returned.
        if unsafe { bindings::shim_dma_mapping_error(device.as_ptr(), address) } {
            return Err(ENOMEM);
        }

        // INVARIANT: Mapped above.
        Ok(Self {
            octets,
            address,
            device: device.as_non_null(),
        })
    }
}

impl Drop for ReceiveBuffer {
    fn drop(&mut self) {
        // SAFETY: By the type invariant it is mapped, and the device is there. The queue pair that
        // could write to it is gone.
        unsafe {
            bindings::shim_dma_unmap_receive(
                self.device.as_ptr(),
                self.address,
                self.octets.capacity(),
            )
        };
    }
}

/// A Receive, posted again each time that it completes.
///
/// # Invariants
///
/// `queue_pair` and `handler` are valid until no completion can arrive any more.
#[pin_data]
struct Receive<H: CompletionHandler> {
    #[pin]
    cqe: Opaque<bindings::ib_cqe>,
    buffer: ReceiveBuffer,
    lkey: u32,
    queue_pair: NonNull<bindings::ib_qp>,
    handler: NonNull<H>,
}

impl<H: CompletionHandler> Receive<H> {
    /// Gives the Receive to the device.
    fn post(&self) -> Result {
        let mut sge = bindings::ib_sge {
            addr: self.buffer.address,
            length: self.buffer.octets.capacity().try_into()?,
            lkey: self.lkey,
        };
        let mut request = bindings::ib_recv_wr {
            sg_list: &mut sge,
            num_sge: 1,
            ..Default::default()
        };
        request.__bindgen_anon_1.wr_cqe = self.cqe.get();

        // SAFETY: By the type invariant the queue pair is valid. The completion entry and the
        // buffer stay until the queue pair is gone; the request is copied.
        to_result(unsafe { bindings::shim_post_recv(self.queue_pair.as_ptr(), &request) })
    }

    /// # Safety
    ///
    /// Called only by the RDMA core, with the completion of a Receive that [`Self::post`] posted.
    unsafe extern "C" fn done(_: *mut bindings::ib_cq, completion: *mut bindings::ib_wc) {
        // SAFETY: By the function's requirement the completion is valid during the call.
        let completion = unsafe { &*completion };
        // SAFETY: Receives carry a completion entry, never a number.
        let cqe = unsafe { completion.__bindgen_anon_1.wr_cqe };
        // SAFETY: By the function's requirement the entry is that of a `Receive`.
        let this = unsafe { &*container_of!(cqe.cast::<Opaque<bindings::ib_cqe>>(), Self, cqe) };
        // SAFETY: By the type invariant, as this is a completion.
        let handler = unsafe { this.handler.as_ref() };

        match completion.status {
            bindings::ib_wc_status_IB_WC_SUCCESS => {
                handler.received();
                // Draining may be under way. The marker of `ib_drain_qp` completes only after this
                // returns; a Receive that is posted behind it is flushed to a queue that nobody
                // polls any more, and its buffer goes after the queue pair.
                if this.post().is_err() {
                    handler.queue_pair_failed(c"a Receive could not be posted again");
                }
            }
            // Flushed, too: what a peer must not do fails the queue pair without a Receive.
            status => {
                // SAFETY: The function takes any value.
                let reason = unsafe { bindings::ib_wc_status_msg(status) };
                // SAFETY: It returns a static string.
                handler.queue_pair_failed(unsafe { CStr::from_char_ptr(reason) });
            }
        }
    }
}

/// The queue pair of an id, and all that it uses.
///
/// # Invariants
///
/// `id` is valid and has a queue pair, which this owns. The fields stand in the order in which they
/// must go.
pub(super) struct QueuePair<H: CompletionHandler> {
    id: NonNull<bindings::rdma_cm_id>,
    _completions: CompletionQueue,
    receives: KVec<Pin<KBox<Receive<H>>>>,
    pd: ProtectionDomain,
}

impl<H: CompletionHandler> QueuePair<H> {
    /// Makes the queue pair of `id`, which is bound to `device`, and posts Receives of
    /// `receive_size` octets on it. May sleep.
    ///
    /// # Safety
    ///
    /// `id` must be valid, have no queue pair, and be destroyed only after the queue pair has been
    /// dropped. `handler` must be valid until then.
    pub(super) unsafe fn new(
        id: NonNull<bindings::rdma_cm_id>,
        device: Device<'_>,
        handler: NonNull<H>,
        receive_size: u32,
    ) -> Result<Self> {
        let pd = ProtectionDomain::new(device)?;
        let completions = CompletionQueue::new(device, RECEIVES + DRAIN_RECEIVES + SENDS)?;

        let mut attributes = bindings::ib_qp_init_attr {
            send_cq: completions.0.as_ptr(),
            recv_cq: completions.0.as_ptr(),
            cap: bindings::ib_qp_cap {
                max_send_wr: SENDS,
                max_recv_wr: RECEIVES + DRAIN_RECEIVES,
                max_send_sge: 1,
                max_recv_sge: 1,
                ..Default::default()
            },
            sq_sig_type: bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
            qp_type: bindings::ib_qp_type_IB_QPT_RC,
            ..Default::default()
        };
        // SAFETY: By this function's requirement the id is valid; the rest was made above, on the
        // id's device.
        to_result(unsafe {
            bindings::rdma_create_qp(id.as_ptr(), pd.0.as_ptr(), &mut attributes)
        })?;
        // SAFETY: The id is valid and has its queue pair since the call above.
        let queue_pair = unsafe { (*id.as_ptr()).qp };
        // SAFETY: The queue pair is valid; the name is static.
        unsafe { bindings::shim_name_qp(queue_pair, OWNER.as_char_ptr()) };

        // INVARIANT: The queue pair has just been made.
        let mut this = Self {
            id,
            _completions: completions,
            receives: KVec::new(),
            pd,
        };
        let queue_pair = NonNull::new(queue_pair).ok_or(EINVAL)?;
        for _ in 0..RECEIVES {
            this.add_receive(device, queue_pair, handler, receive_size)?;
        }
        // Once posted, they must stay until the queue pair is gone: what can fail came before.
        for receive in &this.receives {
            receive.post()?;
        }
        Ok(this)
    }

    fn add_receive(
        &mut self,
        device: Device<'_>,
        queue_pair: NonNull<bindings::ib_qp>,
        handler: NonNull<H>,
        size: u32,
    ) -> Result {
        // SAFETY: The id is bound to the device and goes after this queue pair, which holds the
        // buffer.
        let buffer = unsafe { ReceiveBuffer::new(device, size as usize) }?;
        // SAFETY: The protection domain is ours.
        let lkey = unsafe { bindings::shim_local_dma_lkey(self.pd.0.as_ptr()) };

        // INVARIANT: The queue pair is drained before it goes, and `handler` goes after it.
        let receive = KBox::pin_init(
            pin_init!(Receive {
                cqe <- Opaque::ffi_init(|cqe: *mut bindings::ib_cqe| {
                    // SAFETY: `cqe` is valid for writes.
                    unsafe { (*cqe).done = Some(Receive::<H>::done) }
                }),
                buffer,
                lkey,
                queue_pair,
                handler,
            }),
            GFP_KERNEL,
        )?;
        Ok(self.receives.push(receive, GFP_KERNEL)?)
    }
}

impl<H: CompletionHandler> Drop for QueuePair<H> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the id is valid.
        let queue_pair = unsafe { (*self.id.as_ptr()).qp };
        // SAFETY: By the type invariant this is our queue pair.
        unsafe { bindings::ib_drain_qp(queue_pair) };
        // SAFETY: The id has its queue pair, and nothing is left to complete on it.
        unsafe { bindings::rdma_destroy_qp(self.id.as_ptr()) };
    }
}

// SAFETY: The objects of the verbs belong to no thread.
unsafe impl<H: CompletionHandler> Send for QueuePair<H> {}
