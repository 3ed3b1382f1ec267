// SPDX-License-Identifier: GPL-2.0

//! The queue pair of a connection: Sends, Receives, and transfers from and to the peer's memory.
//!
//! C headers: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h),
//! [`include/rdma/rw.h`](srctree/include/rdma/rw.h)

use core::{
    mem::MaybeUninit,
    ptr::{
        self,
        NonNull, //
    },
};

use kernel::{
    alloc::flags::__GFP_NOWARN,
    container_of,
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi::c_int,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Mutex, //
    },
    time::{
        msecs_to_jiffies,
        Instant,
        Monotonic, //
    },
    types::Opaque, //
};

use super::{
    device::Device,
    errno,
    memory::{
        Buffer,
        Memory, //
    },
    OWNER, //
};
use crate::bindings;

/// How many operations can be outstanding: one, and the marker of `ib_drain_qp`. What rdma_rw needs
/// for its transfers comes on top.
const SENDS: u32 = 2;

/// How many transfers can be outstanding.
const TRANSFERS: u32 = 1;

/// The place that `ib_drain_qp` needs among the Receives.
const DRAIN_RECEIVES: u32 = 1;

/// How long an operation may take, in milliseconds. A peer that takes no message for as long, or
/// does not let its memory be read, has lost the connection.
const OPERATION_MS: u32 = 5000;

/// Takes what completes on a connection.
///
/// Both functions may sleep. They must not wait for the connection's end, which waits for them.
pub(crate) trait CompletionHandler: Send + Sync + 'static {
    /// A message has arrived, which [`QueuePair::next`] returns.
    fn arrived(&self);

    /// The queue pair failed, and nothing more can arrive. Called first with the `reason` for that,
    /// if it is known, then for each Receive that is lost by it; also where this side has ended the
    /// connection.
    fn queue_pair_failed(&self, reason: &'static CStr);
}

/// How large a queue pair is.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    /// How many Receives are posted.
    pub(crate) receives: u32,
    /// How many octets each of these takes.
    pub(crate) receive_size: u32,
    /// How many octets one Send can have.
    pub(crate) send_size: u32,
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

/// A message that has arrived.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    /// Which Receive it is in.
    receive: usize,
    len: usize,
    /// The Steering Tag that the peer has invalidated with it (RFC 8797, section 4.1).
    pub(crate) invalidated: Option<u32>,
    /// When it arrived.
    pub(crate) at: Instant<Monotonic>,
}

/// The messages that have arrived and not been taken yet, the oldest one first. It has room for one
/// in each Receive.
type Arrivals = Mutex<KVec<Arrival>>;

/// A Receive, posted again each time that its message has been taken.
///
/// # Invariants
///
/// `queue_pair`, `arrivals` and `handler` are valid until no completion can arrive any more.
#[pin_data]
struct Receive<H: CompletionHandler> {
    #[pin]
    cqe: Opaque<bindings::ib_cqe>,
    buffer: Buffer,
    lkey: u32,
    /// Its place among the Receives.
    number: usize,
    queue_pair: NonNull<bindings::ib_qp>,
    arrivals: NonNull<Arrivals>,
    handler: NonNull<H>,
}

impl<H: CompletionHandler> Receive<H> {
    /// Gives the Receive to the device.
    fn post(&self) -> Result {
        let mut sge = bindings::ib_sge {
            addr: self.buffer.address(),
            length: self.buffer.len().try_into()?,
            lkey: self.lkey,
        };
        let mut request = bindings::ib_recv_wr {
            sg_list: &mut sge,
            num_sge: 1,
            ..Default::default()
        };
        request.__bindgen_anon_1.wr_cqe = self.cqe.get();
        self.buffer.sync_for_device();

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

        if completion.status != bindings::ib_wc_status_IB_WC_SUCCESS {
            // Flushed, too: what a peer must not do fails the queue pair without a Receive.
            return handler.queue_pair_failed(status_message(completion.status));
        }
        let with_invalidate = bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE as c_int;
        let invalidated = match completion.wc_flags & with_invalidate {
            0 => None,
            // SAFETY: By the flag this is the member in use.
            _ => Some(unsafe { completion.ex.invalidate_rkey }),
        };
        // The peer can also have a Receive completed by an RDMA Write, which is no message.
        let len = match completion.opcode {
            bindings::ib_wc_opcode_IB_WC_RECV => completion.byte_len as usize,
            _ => 0,
        };
        let arrival = Arrival {
            receive: this.number,
            len,
            invalidated,
            at: Instant::now(),
        };
        // SAFETY: By the type invariant, as this is a completion.
        let arrivals = unsafe { this.arrivals.as_ref() };
        // There is room for one in each Receive.
        let _ = arrivals.lock().push_within_capacity(arrival);
        handler.arrived();
    }
}

/// Says what a completion's status means.
fn status_message(status: bindings::ib_wc_status) -> &'static CStr {
    // SAFETY: The function takes any value.
    let message = unsafe { bindings::ib_wc_status_msg(status) };
    // SAFETY: It returns a static string.
    unsafe { CStr::from_char_ptr(message) }
}

/// What a queue pair does at the moment, and whose completion is waited for.
///
/// It is as old as the queue pair, for siw can complete what it flushes twice.
///
/// # Invariants
///
/// `handler` is valid until no completion can arrive any more.
#[pin_data]
struct Operation<H: CompletionHandler> {
    #[pin]
    cqe: Opaque<bindings::ib_cqe>,
    #[pin]
    done: Opaque<kernel::bindings::completion>,
    status: Atomic<bindings::ib_wc_status>,
    handler: NonNull<H>,
}

impl<H: CompletionHandler> Operation<H> {
    /// # Safety
    ///
    /// `handler` must be valid until no completion can arrive any more.
    unsafe fn new(handler: NonNull<H>) -> impl PinInit<Self> {
        // INVARIANT: By the function's requirement.
        pin_init!(Self {
            cqe <- Opaque::ffi_init(|cqe: *mut bindings::ib_cqe| {
                // SAFETY: `cqe` is valid for writes.
                unsafe { (*cqe).done = Some(Self::done) }
            }),
            done <- Opaque::ffi_init(|done| {
                // SAFETY: `done` is valid for writes.
                unsafe { kernel::bindings::init_completion(done) }
            }),
            status: Atomic::new(bindings::ib_wc_status_IB_WC_SUCCESS),
            handler,
        })
    }

    /// # Safety
    ///
    /// Called only by the RDMA core, with the completion of an operation.
    unsafe extern "C" fn done(_: *mut bindings::ib_cq, completion: *mut bindings::ib_wc) {
        // SAFETY: By the function's requirement the completion is valid during the call.
        let completion = unsafe { &*completion };
        // SAFETY: Operations carry a completion entry, never a number.
        let cqe = unsafe { completion.__bindgen_anon_1.wr_cqe };
        // SAFETY: By the function's requirement the entry is that of an operation, which goes after
        // the queue pair.
        let this = unsafe { &*container_of!(cqe.cast::<Opaque<bindings::ib_cqe>>(), Self, cqe) };
        if completion.status != bindings::ib_wc_status_IB_WC_SUCCESS {
            // Before the Receives that are flushed because of it.
            // SAFETY: By the type invariant, as this is a completion.
            unsafe { this.handler.as_ref() }.queue_pair_failed(status_message(completion.status));
        }
        this.status.store(completion.status, Relaxed);
        // SAFETY: It is initialized.
        unsafe { kernel::bindings::complete(this.done.get()) };
    }

    /// Makes ready for another completion.
    fn begin(&self) {
        // SAFETY: It is initialized, and nobody waits for it.
        unsafe { bindings::shim_reinit_completion(self.done.get()) };
    }

    /// Waits up to `milliseconds` for the completion, and returns whether there was one.
    fn wait(&self, milliseconds: u32) -> bool {
        let jiffies = msecs_to_jiffies(milliseconds);
        // SAFETY: It is initialized.
        let left =
            unsafe { kernel::bindings::wait_for_completion_timeout(self.done.get(), jiffies) };
        left > 0
    }

    /// Waits for the completion.
    fn wait_forever(&self) {
        // SAFETY: It is initialized.
        unsafe { kernel::bindings::wait_for_completion(self.done.get()) };
    }
}

/// Which way a transfer goes (RFC 8166, section 2.1.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Transfer {
    /// RDMA Read: from the peer's memory.
    Read,
    /// RDMA Write: to the peer's memory.
    Write,
}

impl Transfer {
    /// Which way the octets go through the local memory.
    fn direction(self) -> bindings::dma_data_direction {
        match self {
            Self::Read => bindings::dma_data_direction_DMA_FROM_DEVICE,
            Self::Write => bindings::dma_data_direction_DMA_TO_DEVICE,
        }
    }
}

/// The queue pair of an id, and all that it uses.
///
/// # Invariants
///
/// `id` is valid and has a queue pair, which this owns and which is `queue_pair`. The fields stand
/// in the order in which they must go.
pub(crate) struct QueuePair<H: CompletionHandler> {
    id: NonNull<bindings::rdma_cm_id>,
    queue_pair: NonNull<bindings::ib_qp>,
    _completions: CompletionQueue,
    receives: KVec<Pin<KBox<Receive<H>>>>,
    arrivals: Pin<KBox<Arrivals>>,
    /// The message that is being looked at.
    taken: Pin<KBox<Mutex<KVec<u8>>>>,
    /// What is sent. Its lock is held for the time of an operation.
    sends: Pin<KBox<Mutex<Buffer>>>,
    operation: Pin<KBox<Operation<H>>>,
    pd: ProtectionDomain,
    lkey: u32,
    handler: NonNull<H>,
}

// SAFETY: The objects of the verbs belong to no thread; the handler is `Send` and `Sync`.
unsafe impl<H: CompletionHandler> Send for QueuePair<H> {}
// SAFETY: The functions of the verbs may be called from several threads at a time; the rest is
// locked.
unsafe impl<H: CompletionHandler> Sync for QueuePair<H> {}

impl<H: CompletionHandler> QueuePair<H> {
    /// Makes the queue pair of `id`, which is bound to `device`, and posts its Receives. May sleep.
    ///
    /// # Safety
    ///
    /// `id` must be valid, have no queue pair, and be destroyed only after the queue pair has been
    /// dropped. `handler` must be valid until then.
    pub(super) unsafe fn new(
        id: NonNull<bindings::rdma_cm_id>,
        device: Device<'_>,
        handler: NonNull<H>,
        room: Room,
    ) -> Result<Self> {
        let max_recv_wr = room.receives + DRAIN_RECEIVES;
        let pd = ProtectionDomain::new(device)?;
        // SAFETY: The protection domain is ours.
        let lkey = unsafe { bindings::shim_local_dma_lkey(pd.0.as_ptr()) };
        // A transfer may have to be registered before, and invalidated after.
        let entries = max_recv_wr + SENDS + 3 * TRANSFERS;
        let completions = CompletionQueue::new(device, entries)?;
        // SAFETY: The id is bound to the device and goes after this queue pair, which holds the
        // buffer.
        let buffer = unsafe {
            Buffer::new(
                device,
                room.send_size as usize,
                bindings::dma_data_direction_DMA_TO_DEVICE,
            )
        }?;
        let sends = KBox::pin_init(new_mutex!(buffer, "QueuePair::sends"), GFP_KERNEL)?;
        // SAFETY: By this function's requirement; the queue pair is drained before it goes.
        let operation = KBox::pin_init(unsafe { Operation::new(handler) }, GFP_KERNEL)?;
        let taken = KVec::with_capacity(room.receive_size as usize, GFP_KERNEL | __GFP_NOWARN)?;
        let taken = KBox::pin_init(new_mutex!(taken, "QueuePair::taken"), GFP_KERNEL)?;
        let waiting = KVec::with_capacity(room.receives as usize, GFP_KERNEL)?;
        let arrivals = KBox::pin_init(new_mutex!(waiting, "QueuePair::arrivals"), GFP_KERNEL)?;

        let mut attributes = bindings::ib_qp_init_attr {
            send_cq: completions.0.as_ptr(),
            recv_cq: completions.0.as_ptr(),
            cap: bindings::ib_qp_cap {
                max_send_wr: SENDS,
                max_recv_wr,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_rdma_ctxs: TRANSFERS,
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
        let queue_pair = unsafe { NonNull::new_unchecked((*id.as_ptr()).qp) };
        // SAFETY: The queue pair is valid; the name is static.
        unsafe { bindings::shim_name_qp(queue_pair.as_ptr(), OWNER.as_char_ptr()) };

        // INVARIANT: The queue pair has just been made.
        let mut this = Self {
            id,
            queue_pair,
            _completions: completions,
            receives: KVec::new(),
            arrivals,
            taken,
            sends,
            operation,
            pd,
            lkey,
            handler,
        };
        for number in 0..room.receives as usize {
            this.add_receive(device, number, room.receive_size as usize)?;
        }
        // Once posted, they must stay until the queue pair is gone: what can fail came before.
        for receive in &this.receives {
            receive.post()?;
        }
        Ok(this)
    }

    fn add_receive(&mut self, device: Device<'_>, number: usize, size: usize) -> Result {
        // SAFETY: The id is bound to the device and goes after this queue pair, which holds the
        // buffer.
        let buffer = unsafe {
            Buffer::new(
                device,
                size,
                bindings::dma_data_direction_DMA_FROM_DEVICE,
            )
        }?;

        let Self {
            lkey,
            queue_pair,
            handler,
            ..
        } = *self;
        let arrivals = NonNull::from(&*self.arrivals);
        // INVARIANT: The queue pair is drained before it goes. The arrivals go after that, like the
        // handler.
        let receive = KBox::pin_init(
            pin_init!(Receive {
                cqe <- Opaque::ffi_init(|cqe: *mut bindings::ib_cqe| {
                    // SAFETY: `cqe` is valid for writes.
                    unsafe { (*cqe).done = Some(Receive::<H>::done) }
                }),
                buffer,
                lkey,
                number,
                queue_pair,
                arrivals,
                handler,
            }),
            GFP_KERNEL,
        )?;
        Ok(self.receives.push(receive, GFP_KERNEL)?)
    }

    /// Takes the message that has been waiting the longest, and hands its octets to `take` after
    /// its Receive has been posted again. Returns whether there was one. May sleep.
    pub(crate) fn next(&self, take: impl FnOnce(&[u8], &Arrival)) -> bool {
        let mut taken = self.taken.lock();
        let Ok(arrival) = self.arrivals.lock().remove(0) else {
            return false;
        };
        let Some(receive) = self.receives.get(arrival.receive) else {
            return false;
        };
        taken.clear();
        // SAFETY: The Receive has completed, and only this function posts it again.
        let octets = unsafe { receive.buffer.received(arrival.len) };
        // It has the room of a Receive.
        let result = taken.extend_from_slice(octets, GFP_KERNEL);
        if receive.post().is_err() {
            self.fail_because(c"a Receive could not be posted again");
        }
        if result.is_ok() {
            take(&taken, &arrival);
        }
        true
    }

    /// Sends what `build` writes into the buffer that it is given, of `limit` octets or as many as
    /// there are, and returns the number of. Invalidates `stag` of the peer with it (RFC 8797,
    /// section 4.1). May sleep, and returns when the transport has the peer's acknowledgment.
    ///
    /// Fails with what `build` does; otherwise the connection is lost.
    pub(crate) fn send(
        &self,
        limit: u32,
        stag: Option<u32>,
        build: impl FnOnce(&mut [u8]) -> Result<usize>,
    ) -> Result {
        let mut buffer = self.sends.lock();
        let len = limit.min(u32::try_from(buffer.len())?);
        let octets = buffer.octets_mut().get_mut(..len as usize);
        let len = build(octets.unwrap_or_default())?;
        buffer.sync_for_device();

        let mut sge = bindings::ib_sge {
            addr: buffer.address(),
            length: len.try_into()?,
            lkey: self.lkey,
        };
        let mut request = bindings::ib_send_wr {
            sg_list: &mut sge,
            num_sge: 1,
            opcode: bindings::ib_wr_opcode_IB_WR_SEND,
            ..Default::default()
        };
        if let Some(stag) = stag {
            request.opcode = bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV;
            request.ex.invalidate_rkey = stag;
        }
        self.post(&mut request)
    }

    /// Transfers the octets of `memory` from `at` on, `len` of them, from or to the peer's memory.
    /// That is registered under `stag` and begins at `remote`. May sleep.
    ///
    /// Where this fails, the connection is lost.
    pub(crate) fn transfer(
        &self,
        transfer: Transfer,
        memory: &mut Memory,
        at: usize,
        len: usize,
        stag: u32,
        remote: u64,
    ) -> Result {
        let _one_at_a_time = self.sends.lock();
        let mut remote = remote;
        for piece in memory.pieces_mut(at, len) {
            self.transfer_piece(transfer, piece, stag, remote)?;
            remote = remote.wrapping_add(piece.len() as u64);
        }
        Ok(())
    }

    fn transfer_piece(
        &self,
        transfer: Transfer,
        octets: &mut [u8],
        stag: u32,
        remote: u64,
    ) -> Result {
        let len = octets.len().try_into()?;
        let mut context = MaybeUninit::<bindings::rpcrdma_cm_transfer>::uninit();
        let context = context.as_mut_ptr();
        // SAFETY: By the type invariant the id is valid.
        let port = unsafe { (*self.id.as_ptr()).port_num };
        // SAFETY: The context is valid for writes. The octets are of kmalloc and stay, like the
        // queue pair, until after the context.
        to_result(unsafe {
            bindings::shim_transfer_init(
                context,
                self.queue_pair.as_ptr(),
                port,
                octets.as_mut_ptr().cast(),
                len,
                remote,
                stag,
                transfer.direction(),
            )
        })?;
        let result = self.perform(|cqe| {
            // SAFETY: The context was initialized above, for this queue pair.
            unsafe { bindings::shim_transfer_post(context, self.queue_pair.as_ptr(), port, cqe) }
        });
        // SAFETY: As above, and the transfer is over.
        unsafe {
            bindings::shim_transfer_destroy(
                context,
                self.queue_pair.as_ptr(),
                port,
                transfer.direction(),
            )
        };
        result
    }

    /// Registers `mr` under `stag`. May sleep.
    ///
    /// # Safety
    ///
    /// The region must be one of this protection domain, be ready to be registered, and stay during
    /// the call.
    pub(super) unsafe fn register(
        &self,
        mr: NonNull<bindings::ib_mr>,
        stag: u32,
        access: bindings::ib_access_flags,
    ) -> Result {
        let _one_at_a_time = self.sends.lock();
        let mut request = bindings::ib_reg_wr {
            wr: bindings::ib_send_wr {
                opcode: bindings::ib_wr_opcode_IB_WR_REG_MR,
                ..Default::default()
            },
            mr: mr.as_ptr(),
            key: stag,
            access: access as c_int,
        };
        self.post(&mut request.wr)
    }

    /// Invalidates `stag`, which is one of this side's. May sleep.
    pub(super) fn invalidate(&self, stag: u32) -> Result {
        let _one_at_a_time = self.sends.lock();
        let mut request = bindings::ib_send_wr {
            opcode: bindings::ib_wr_opcode_IB_WR_LOCAL_INV,
            ..Default::default()
        };
        request.ex.invalidate_rkey = stag;
        self.post(&mut request)
    }

    pub(super) fn protection_domain(&self) -> *mut bindings::ib_pd {
        self.pd.0.as_ptr()
    }

    /// Returns the device, which stays as long as the queue pair.
    pub(super) fn device(&self) -> *mut bindings::ib_device {
        // SAFETY: By the type invariant the id is valid, and bound to a device.
        unsafe { (*self.id.as_ptr()).device }
    }

    /// How many pages one region of the device's can have.
    pub(super) fn max_region_pages(&self) -> u32 {
        // SAFETY: The queue pair keeps its device.
        unsafe { bindings::shim_max_fast_reg_page_list_len(self.device()) }
    }

    /// Posts `request` and waits for its completion; with the lock of the Sends held.
    fn post(&self, request: &mut bindings::ib_send_wr) -> Result {
        request.send_flags = bindings::ib_send_flags_IB_SEND_SIGNALED as c_int;
        self.perform(|cqe| {
            request.__bindgen_anon_1.wr_cqe = cqe;
            // SAFETY: By the type invariant the queue pair is valid. What the request refers to
            // stays until it has completed; the request itself is copied.
            unsafe { bindings::shim_post_send(self.queue_pair.as_ptr(), request) }
        })
    }

    /// Waits for the completion of what `post` posts with the completion entry that it is given;
    /// with the lock of the Sends held.
    fn perform(&self, post: impl FnOnce(*mut bindings::ib_cqe) -> c_int) -> Result {
        let operation = &self.operation;
        operation.begin();
        let posted = to_result(post(operation.cqe.get()));
        if posted.is_ok() && !operation.wait(OPERATION_MS) {
            // Now it is going to be flushed, if it does not complete.
            self.fail_because(c"an operation took too long");
            operation.wait_forever();
        }
        match (posted, operation.status.load(Relaxed)) {
            (Ok(()), bindings::ib_wc_status_IB_WC_SUCCESS) => return Ok(()),
            // Its completion has said why.
            (Ok(()), _) => self.fail(),
            (Err(_), _) => self.fail_because(c"an operation could not be posted"),
        }
        Err(errno(kernel::bindings::ECONNRESET))
    }

    /// Lets the queue pair fail, and says why before what is flushed by that does.
    pub(crate) fn fail_because(&self, reason: &'static CStr) {
        // SAFETY: By the requirement of `new`.
        unsafe { self.handler.as_ref() }.queue_pair_failed(reason);
        self.fail();
    }

    /// Ends all that is under way on the queue pair, by its failure.
    pub(super) fn fail(&self) {
        // SAFETY: By the type invariant the queue pair is valid.
        unsafe { bindings::shim_fail_qp(self.queue_pair.as_ptr()) };
    }
}

impl<H: CompletionHandler> Drop for QueuePair<H> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this is our queue pair.
        unsafe { bindings::ib_drain_qp(self.queue_pair.as_ptr()) };
        // SAFETY: The id has its queue pair, and nothing is left to complete on it.
        unsafe { bindings::rdma_destroy_qp(self.id.as_ptr()) };
    }
}
