// SPDX-License-Identifier: GPL-2.0

//! The queue pair of a connection: Sends, Receives, and transfers from and to the peer's memory.
//!
//! C headers: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h),
//! [`include/rdma/rw.h`](srctree/include/rdma/rw.h)

use core::{
    mem::{
        ManuallyDrop,
        MaybeUninit, //
    },
    ptr::NonNull, //
};

use kernel::{
    dma::DataDirection,
    error::to_result,
    ffi::{
        c_int,
        c_void, //
    },
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            AtomicFlag,
            Relaxed, //
        },
        rcu,
        Arc,
        ArcBorrow,
        Mutex, //
    }, //
};

use super::{
    arrival::{
        Arrivals,
        Held, //
    },
    capacity::Capacity,
    completion_handler::CompletionHandler,
    fault_handler::QueuePairFault,
    operation::{
        lost,
        post_fault,
        Operation,
        TOO_LONG, //
    },
    receive::Receive,
    send_buffer::SendBuffer,
    send_queue::{
        BegunSend,
        PostedSend,
        SendQueue, //
    },
    seqno::Seqno,
    setup::{
        Setup,
        TimeLimits, //
    },
    transfer::Transfer, //
};
use crate::{
    base::{
        errno::errno,
        unload::Hold, //
    },
    bindings,
    rdma::{
        cm::connection_queue_pair::ConnectionQueuePair,
        verbs::{
            buffer::Buffer,
            completion_queue::CompletionQueue,
            cqe::Cqe,
            device::Device,
            memory::Memory,
            memory_region::MemoryRegion,
            protection_domain::ProtectionDomain,
            queue_pair::QueuePair, //
        }, //
    }, //
};

/// Everything that the device and the completions of a queue pair use. Dropped once the queue pair
/// is destroyed.
struct Resources<C: CompletionHandler> {
    receives: KVec<Pin<KBox<Cqe<Receive<C>>>>>,
    arrivals: Arc<Arrivals>,
    sends: Arc<SendQueue<C>>,
    /// Locked for the time of an operation that is no Send.
    one_at_a_time: Pin<KBox<Mutex<()>>>,
    operation: Pin<KBox<Cqe<Operation<C>>>>,
}

/// The queue pair of an id, and everything that it uses.
///
/// Several Sends can be under way. It performs one other operation at a time, and waits for its
/// completion. If a Send or an operation fails, so does the queue pair, and with it the connection.
///
/// # A device that does not fail its queue pair
///
/// An operation that takes longer than [`TimeLimits::operation_ms`] makes the queue pair fail,
/// which flushes the operation. If the device refuses that, or does not flush the operation within
/// [`TimeLimits::flush_ms`], the operation waits until [`CompletionHandler::arrived`] returns, if
/// that is running, and up to `flush_ms` more. Then it is abandoned: it returns, there can be no
/// other one, and the memory that it uses is leaked, as the device may still access it. The queue
/// pair is then destroyed without having been drained. It is also destroyed so if Sends are not
/// flushed in that time; their buffers stay until then. If the device refuses that, too, everything
/// that the queue pair uses is leaked, and its completions are not handled any more. The device
/// cannot be unregistered then, because it has a queue pair.
///
/// # Examples
///
/// ```no_run
/// # let (id, may_wait): (CmId<MyConnection>, &MayWait) = given();
/// let handle = id.queue_pair();
/// let queue_pair = handle.access(may_wait).ok_or(ENODEV)?;
/// queue_pair.send(1024, None, |message| {
///     message.append(4)?.copy_from_slice(b"ping");
///     Ok(())
/// })?;
/// ```
///
/// # Invariants
///
/// `queue_pair` is there until this is dropped. There can be completions only as long as it is.
pub(crate) struct MessageQueuePair<C: CompletionHandler> {
    queue_pair: ManuallyDrop<QueuePair>,
    /// Dropped even if the device refuses to destroy the queue pair, unlike the resources.
    _handler: Arc<C>,
    limits: TimeLimits,
    capacity: Capacity,
    /// When the queue pair was made. This identifies it.
    made: Seqno,
    /// Whether the peer serves RDMA Reads: its read depth is not zero.
    may_read: AtomicFlag,
    resources: ManuallyDrop<Resources<C>>,
    /// For the memory regions.
    hold: Hold,
}

impl<C: CompletionHandler> MessageQueuePair<C> {
    /// Returns a hold of the guard that holds the id.
    pub(in crate::rdma) fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Handles an event of the queue pair; any context.
    ///
    /// # Safety
    ///
    /// Called only by the RDMA core, with an event and with the context of a queue pair that
    /// [`ConnectionQueuePair::new`] made.
    unsafe extern "C" fn event(event: *mut bindings::ib_event, context: *mut c_void) {
        // SAFETY: By the function's requirement the event is valid during the call.
        let name = unsafe { bindings::shim_qp_failure(event) };
        if name.is_null() {
            return;
        }
        // SAFETY: It is not NULL, so it is a static string.
        let name = unsafe { CStr::from_char_ptr(name) };
        // Drivers report events in any context. If a device refuses to destroy the queue pair, its
        // destruction waits for this.
        let _reading = rcu::read_lock();
        // SAFETY: By the function's requirement the context is that of `new`: of an `Arc` that is
        // held until the queue pair is destroyed. If the device keeps the queue pair, the `Arc` is
        // held until `workaround_destroy_qp` has cleared the handler and has waited for read-side
        // critical sections. FIXME: A task that has read the handler and is preempted before the
        // `rcu::read_lock` above comes too late.
        let handler = unsafe { ArcBorrow::from_raw(context.cast::<C>().cast_const()) };
        C::queue_pair_event(handler, name);
    }

    /// Creates a Receive of `size` bytes, which is not posted yet.
    fn add_receive(&mut self, number: usize, size: usize) -> Result {
        let direction = DataDirection::FromDevice;
        let buffer = Buffer::new(self.queue_pair.domain().device(), size, direction)?;

        // SAFETY: `drop` destroys the queue pair, after which there are no completions. The
        // Receives and the reference on the handler are dropped after that. `drop` sets `closed`
        // first.
        let receive = unsafe {
            Receive::new(
                number,
                buffer,
                self.resources.sends.clone(),
                self.made,
                self.resources.arrivals.clone(),
            )
        };
        let receive = KBox::pin_init(receive, GFP_KERNEL)?;
        Ok(self.resources.receives.push(receive, GFP_KERNEL)?)
    }

    /// Offers the messages that the handler has not taken yet to the handler again, until it
    /// declines one. May sleep. The handler must not call this from
    /// [`CompletionHandler::arrived`], which is called with the same lock held.
    pub(crate) fn resume(&self) {
        let mut held = self.resources.arrivals.lock();
        while let Some(arrival) = held.messages.first() {
            let Some(receive) = self.resources.receives.get(arrival.receive) else {
                return;
            };
            // SAFETY: The Receive has completed with this message, and only this function offers
            // it again. By the type invariant there is the queue pair.
            if !unsafe { Receive::offer(receive, arrival) } {
                return;
            }
            let _ = held.messages.remove(0);
        }
    }

    /// Sends the message that `build` writes, of up to `limit` bytes or as many as the queue pair
    /// has room for. With it, invalidates the peer's `rkey` (RFC 8797, section 4.1).
    /// Returns when the message is posted. Sleeps as long as all Sends are under way.
    ///
    /// Fails with the error of `build` before anything is sent, otherwise with `ECONNRESET`, after
    /// the queue pair has failed. If the Send fails later, the queue pair fails, too, and the
    /// handler is told.
    pub(crate) fn send(
        &self,
        limit: u32,
        rkey: Option<u32>,
        build: impl FnOnce(&mut SendBuffer<'_>) -> Result,
    ) -> Result<PostedSend> {
        self.begin_send()?.post(limit, rkey, build)
    }

    /// Begins a Send. If all Sends are under way, waits until one of them has completed.
    fn begin_send(&self) -> Result<BegunSend<'_, C>> {
        let sends = &self.resources.sends;
        loop {
            // SAFETY: By the type invariant there is the queue pair, as long as `self` is borrowed.
            match unsafe { sends.begin() } {
                Err(error) if error == EBUSY => sends.wait(self.check_sends()),
                Err(error) if error == ETIMEDOUT => drop(self.check_sends()),
                result => return result,
            }
        }
    }

    /// Whether this Send is under way: the peer's transport has not acknowledged it.
    pub(crate) fn is_under_way(&self, send: &PostedSend) -> bool {
        self.resources.sends.is_under_way(send)
    }

    /// Makes the queue pair fail if no Send that is under way has completed for
    /// [`TimeLimits::operation_ms`]. Returns after how many milliseconds to check again. May sleep.
    pub(crate) fn check_sends(&self) -> u32 {
        self.resources.sends.left().unwrap_or_else(|| {
            self.fail_because(TOO_LONG);
            self.limits.operation_ms
        })
    }

    /// Transfers the bytes of `memory` from `at` on, `len` of them or as many as there are, from or
    /// to the peer's memory, block by block. The peer's memory is registered under `rkey`, and
    /// `remote` is its offset. May sleep.
    ///
    /// Fails with `EOPNOTSUPP` if it is an RDMA Read and the peer serves none. Fails with `ENOMEM`
    /// if memory cannot be mapped for the device, or with another error of rdma_rw, before anything
    /// of the block is transferred. Any other failure loses the connection. If the device may still
    /// access `memory` then, it is leaked, and has no bytes any more.
    pub(crate) fn transfer(
        &self,
        transfer: Transfer,
        memory: &mut Memory,
        at: usize,
        len: usize,
        rkey: u32,
        remote: u64,
    ) -> Result {
        if transfer == Transfer::Read && !self.may_read.load(Relaxed) {
            return Err(errno(kernel::bindings::EOPNOTSUPP));
        }
        let _one_at_a_time = self.resources.one_at_a_time.lock();
        if self.is_abandoned() {
            return Err(lost());
        }
        let mut remote = remote;
        let mut result = Ok(());
        for piece in memory.pieces_mut(at, len) {
            // SAFETY: A piece lies in one block, so it comes from kmalloc. If the transfer is
            // abandoned, the memory is leaked below.
            result = unsafe { self.transfer_piece(transfer, piece, rkey, remote) };
            if result.is_err() {
                break;
            }
            remote = remote.wrapping_add(piece.len() as u64);
        }
        if self.is_abandoned() {
            memory.leak();
        }
        result
    }

    /// Transfers `bytes`, with the lock held that all operations take. Fails as [`Self::transfer`]
    /// does.
    ///
    /// # Safety
    ///
    /// `bytes` must come from kmalloc, and must stay for ever if the transfer is abandoned.
    unsafe fn transfer_piece(
        &self,
        transfer: Transfer,
        bytes: &mut [u8],
        rkey: u32,
        remote: u64,
    ) -> Result {
        let len = bytes.len().try_into()?;
        let mut context = MaybeUninit::<bindings::rpcrdma_cm_transfer>::uninit();
        let context = context.as_mut_ptr();
        let port = self.queue_pair.port();
        // SAFETY: The context is valid for writes. The bytes come from kmalloc. The queue pair
        // stays as long as `self` is borrowed. The bytes stay until the transfer is destroyed below
        // or, if it is abandoned, for ever, by this function's requirement.
        to_result(unsafe {
            bindings::shim_transfer_init(
                context,
                self.queue_pair.as_ptr(),
                port,
                bytes.as_mut_ptr().cast(),
                len,
                remote,
                rkey,
                transfer.direction() as u32,
            )
        })?;
        let result = self.perform(|cqe| {
            // SAFETY: The context was initialized above, for this queue pair. The completion entry
            // is in the resources, which stay until the queue pair is destroyed. The device copies
            // the Work Requests.
            unsafe { bindings::shim_transfer_post(context, self.queue_pair.as_ptr(), port, cqe) }
        });
        if self.is_abandoned() {
            // SAFETY: The context was initialized above, for this queue pair, which has no other
            // transfer: it performs one at a time, and none after one that was abandoned.
            let regions =
                unsafe { bindings::workaround_disown_transfer(context, self.queue_pair.as_ptr()) };
            if regions {
                self.queue_pair.domain().leak();
            }
        } else {
            // SAFETY: The context was initialized above, with the same arguments, and the transfer
            // has ended.
            unsafe {
                bindings::shim_transfer_destroy(
                    context,
                    self.queue_pair.as_ptr(),
                    port,
                    transfer.direction() as u32,
                )
            };
        }
        result
    }

    /// Registers `region`. May sleep. A failure loses the connection.
    ///
    /// # Safety
    ///
    /// The region must be of this protection domain, and be mapped but not registered. If the
    /// operation is abandoned, the region must be leaked.
    pub(in crate::rdma) unsafe fn register(
        &self,
        region: &MemoryRegion,
        access: bindings::ib_access_flags,
    ) -> Result {
        let _one_at_a_time = self.resources.one_at_a_time.lock();
        let mut request = bindings::ib_reg_wr {
            wr: bindings::ib_send_wr {
                opcode: bindings::ib_wr_opcode_IB_WR_REG_MR,
                ..Default::default()
            },
            mr: region.as_ptr(),
            key: region.rkey(),
            access: access as c_int,
        };
        // The driver gets from the member to the whole, so its pointer must be derived from one to
        // the whole.
        let request = &raw mut request;
        // SAFETY: The pointer is to the request above.
        let wr = unsafe { &raw mut (*request).wr };
        // SAFETY: The request is valid, within the whole. It refers to the region, which stays by
        // this function's requirement.
        unsafe { self.post(wr) }
    }

    /// Invalidates an `rkey` of this side. May sleep. A failure loses the connection.
    pub(in crate::rdma) fn invalidate(&self, rkey: u32) -> Result {
        let _one_at_a_time = self.resources.one_at_a_time.lock();
        let mut request = bindings::ib_send_wr {
            opcode: bindings::ib_wr_opcode_IB_WR_LOCAL_INV,
            ..Default::default()
        };
        request.ex.invalidate_rkey = rkey;
        // SAFETY: The request is valid, and of this type alone. It refers to nothing.
        unsafe { self.post(&raw mut request) }
    }

    /// Returns its capacity.
    pub(crate) fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// Returns when the queue pair was made. No other queue pair has that number.
    pub(in crate::rdma) fn made(&self) -> Seqno {
        self.made
    }

    /// Returns its protection domain.
    pub(in crate::rdma) fn domain(&self) -> &Arc<ProtectionDomain> {
        self.queue_pair.domain()
    }

    /// Whether the device may still perform an operation that was abandoned. The memory of that
    /// operation must be leaked.
    pub(in crate::rdma) fn is_abandoned(&self) -> bool {
        self.resources.operation.is_abandoned()
    }

    /// Posts `request` and waits for its completion, with the lock held that all operations take.
    ///
    /// # Safety
    ///
    /// `request` must be valid. If its opcode requires a larger type, the pointer must be derived
    /// from one to a value of that type. Everything that the request refers to must stay until the
    /// request has completed or, if it is abandoned, until the queue pair is destroyed.
    unsafe fn post(&self, request: *mut bindings::ib_send_wr) -> Result {
        // SAFETY: By the function's requirement the request is valid.
        unsafe { (*request).send_flags = bindings::ib_send_flags_IB_SEND_SIGNALED as c_int };
        self.perform(|cqe| {
            // SAFETY: By the function's requirement the request is valid.
            unsafe { (*request).__bindgen_anon_1.wr_cqe = cqe };
            // SAFETY: By the type invariant the queue pair is valid. The completion entry is in the
            // resources, which stay until the queue pair is destroyed. Everything else that the
            // request refers to stays by the function's requirement. The device copies the request.
            unsafe { bindings::shim_post_send(self.queue_pair.as_ptr(), request) }
        })
    }

    /// Has `post` post Work Requests, of which the last one carries the completion entry that
    /// `post` gets, and waits for the completion. Called with the lock held that all operations
    /// take.
    ///
    /// Fails with `ECONNRESET`, after the queue pair has failed.
    fn perform(&self, post: impl FnOnce(*mut bindings::ib_cqe) -> c_int) -> Result {
        let operation = &self.resources.operation;
        if operation.is_abandoned() {
            return Err(lost());
        }
        operation.begin();
        if let Err(error) = to_result(post(operation.entry())) {
            self.fail_with(post_fault(error, c"an operation could not be posted"));
            // A transfer that was posted in part has no completion to wait for.
            if error == errno(kernel::bindings::EINPROGRESS) {
                operation.abandon();
                pr_warn!("a transfer was posted in part: leaking its memory\n");
            }
            return Err(lost());
        }
        let mut status = None;
        if !self.resources.sends.has_failed() {
            status = operation.wait(self.limits.operation_ms);
            if status.is_none() {
                // This flushes the operation.
                self.fail_because(TOO_LONG);
            }
        }
        let status = status
            .or_else(|| operation.wait(self.limits.flush_ms))
            .or_else(|| self.wait_behind_message());
        if status.is_none() {
            operation.abandon();
            pr_warn!("a device does not end an operation: leaking its memory\n");
            return Err(lost());
        }
        if status != Some(bindings::ib_wc_status_IB_WC_SUCCESS) {
            // The handler has got the reason with the completion.
            let _ = self.fail();
            return Err(lost());
        }
        Ok(())
    }

    /// Waits for the completion once more, after the message that is being handled, if any, because
    /// completions are handled one after the other.
    fn wait_behind_message(&self) -> Option<bindings::ib_wc_status> {
        let (arrivals, flush_ms) = (&self.resources.arrivals, self.limits.flush_ms);
        // The message may have ended just now, and its completion is not handled yet.
        let milliseconds = match arrivals.try_lock() {
            Some(_) => flush_ms / 8,
            None => flush_ms,
        };
        drop(arrivals.lock());
        self.resources.operation.wait(milliseconds)
    }

    /// Makes the queue pair fail. The handler gets `reason` before the Receives are flushed. If the
    /// device refuses to fail the queue pair, operations end at their time limits. May sleep.
    pub(crate) fn fail_because(&self, reason: &'static CStr) {
        self.fail_with(QueuePairFault::GivenUp(reason));
    }

    fn fail_with(&self, fault: QueuePairFault) {
        // SAFETY: By the type invariant there is the queue pair.
        unsafe { self.resources.sends.fail_with(fault) };
    }
}

// SAFETY: `new` makes the only queue pair of the id, and does nothing else with the id. `drop`
// destroys the queue pair, or `QueuePair` does if `new` fails before there is a value. That frees
// or stops the completion queue, too. If the device keeps an object, its owner leaks the domain,
// which then keeps its reference on the device.
unsafe impl<C: CompletionHandler> ConnectionQueuePair for MessageQueuePair<C> {
    type Setup = Setup<C>;

    /// Also posts the Receives.
    unsafe fn new(
        id: NonNull<bindings::rdma_cm_id>,
        device: &Device,
        owner: &'static CStr,
        setup: Setup<C>,
        hold: &Hold,
    ) -> Result<Self> {
        let Setup {
            capacity,
            limits,
            handler,
        } = setup;
        let domain = ProtectionDomain::new(device, owner)?;
        let completions = CompletionQueue::new(device, capacity.completions(), owner)?;
        let one_at_a_time = new_mutex!((), "MessageQueuePair::one_at_a_time");
        let one_at_a_time = KBox::pin_init(one_at_a_time, GFP_KERNEL)?;
        // SAFETY: `drop` destroys the queue pair, after which there are no completions, before it
        // drops the operation. The reference on the handler is dropped after that.
        let operation = unsafe { Operation::new(&handler, device.is_siw()) };
        let operation = KBox::pin_init(operation, GFP_KERNEL)?;
        let receive_size = capacity.receive_size() as usize;
        let receives = capacity.posted_receives() as usize;
        let held = Held {
            messages: KVec::with_capacity(receives, GFP_KERNEL)?,
            closed: false,
        };
        let arrivals = Arc::pin_init(new_mutex!(held, "MessageQueuePair::arrivals"), GFP_KERNEL)?;

        let attributes = bindings::ib_qp_init_attr {
            event_handler: Some(Self::event),
            qp_context: Arc::as_ptr(&handler).cast_mut().cast(),
            cap: bindings::ib_qp_cap {
                max_send_wr: capacity.max_send_wr(),
                max_recv_wr: capacity.max_recv_wr(),
                max_send_sge: 1,
                max_recv_sge: 1,
                max_rdma_ctxs: Capacity::TRANSFERS,
                ..Default::default()
            },
            sq_sig_type: bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
            qp_type: bindings::ib_qp_type_IB_QPT_RC,
            ..Default::default()
        };
        // SAFETY: By this function's requirement the id is valid, has no queue pair, and is
        // destroyed later. `event` expects the handler, on which there is a reference until the
        // queue pair is destroyed. The domain and the completion queue were made for one device
        // above, and the attributes have no other pointer.
        let queue_pair = unsafe { QueuePair::new(id, domain, completions, attributes, owner) }?;
        let sends =
            // SAFETY: `drop` destroys the queue pair, after which there are no completions, before
            // it drops the Sends. The reference on the handler is dropped after that.
            unsafe { SendQueue::new(&queue_pair, &capacity, limits.operation_ms, &handler) }?;

        // INVARIANT: Only `drop` destroys the queue pair.
        let mut this = Self {
            queue_pair: ManuallyDrop::new(queue_pair),
            _handler: handler,
            limits,
            capacity,
            made: Seqno::next(),
            may_read: AtomicFlag::new(false),
            resources: ManuallyDrop::new(Resources {
                receives: KVec::new(),
                arrivals,
                sends,
                one_at_a_time,
                operation,
            }),
            hold: hold.clone(),
        };
        for number in 0..receives {
            this.add_receive(number, receive_size)?;
        }
        // From here on the Receives stay until `drop` has destroyed the queue pair.
        for receive in &this.resources.receives {
            // SAFETY: The queue pair was made above.
            unsafe { Receive::post(receive) }?;
        }
        Ok(this)
    }

    /// With 0, [`Self::transfer`] refuses RDMA Reads.
    fn set_read_depth(&self, depth: u8) {
        self.may_read.store(depth > 0, Relaxed);
    }

    fn fail(&self) -> Result {
        // SAFETY: By the type invariant there is the queue pair.
        unsafe { self.resources.sends.fail() }
    }

    fn fail_if_idle(&self) {
        if let Some(_idle) = self.resources.one_at_a_time.try_lock() {
            if self.resources.sends.is_idle() {
                let _ = self.fail();
            }
        }
    }
}

impl<C: CompletionHandler> Drop for MessageQueuePair<C> {
    fn drop(&mut self) {
        // Completions that are handled from now on do not use the queue pair. The lock waits for
        // the one that does.
        self.resources.arrivals.lock().closed = true;
        // `ib_drain_qp` has no time limit, so it is called only if the device completes operations.
        if self.is_abandoned() {
            pr_warn!("destroying a queue pair with an operation under way\n");
        } else if let Err(error) = self.fail() {
            pr_warn!(
                "a device refuses to fail a queue pair ({error:?}): destroying it undrained\n"
            );
        } else if !self.resources.sends.wait_idle(self.limits.flush_ms) {
            pr_warn!("a device does not flush a message: destroying its queue pair undrained\n");
        } else {
            // `&mut self` excludes other operations.
            self.queue_pair.drain();
        }

        // SAFETY: The queue pair is not used again.
        let queue_pair = unsafe { ManuallyDrop::take(&mut self.queue_pair) };
        // Otherwise the device may still access the buffers. But completions, which refer to the
        // handler, are not handled any more, nor events, except as `event` says.
        if queue_pair.destroy() {
            // SAFETY: The resources are not used again. The queue pair is destroyed, so the device
            // does not use them any more.
            unsafe { ManuallyDrop::drop(&mut self.resources) };
        }
    }
}
