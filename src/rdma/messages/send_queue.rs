// SPDX-License-Identifier: GPL-2.0

//! The Sends of a queue pair.

use core::{
    mem,
    ptr::NonNull, //
};

use kernel::{
    dma::DataDirection,
    error::to_result,
    ffi::c_int,
    new_condvar,
    new_mutex,
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        CondVar,
        Mutex,
        SpinLock, //
    },
    time::{
        Instant,
        Monotonic, //
    }, //
};

use super::{
    capacity::Capacity,
    fault_handler::{
        FaultHandler,
        HandlerPtr,
        QueuePairFault, //
    },
    operation::{
        lost,
        post_fault, //
    },
    send_buffer::SendBuffer, //
};
use crate::{
    base::wait::wait_while,
    bindings,
    rdma::verbs::{
        buffer::Buffer,
        cqe::{
            Cqe,
            Done, //
        },
        queue_pair::QueuePair, //
    }, //
};

/// Which Sends are under way.
struct State {
    /// The numbers of the Sends that are not under way. There is capacity for all.
    free: KVec<usize>,
    /// For each Send, if it is under way, its number among all that have been begun.
    under_way: KVec<Option<u64>>,
    /// How many Sends have been begun.
    begun: u64,
    /// When the last Send has completed or, if none was under way then, when one was begun.
    since: Instant<Monotonic>,
    /// The queue pair has failed, or is to fail: no further Send is begun.
    failed: bool,
}

impl State {
    fn is_idle(&self) -> bool {
        self.free.len() == self.under_way.len()
    }
}

/// The part of the Sends that their completions change.
#[pin_data]
struct Progress {
    #[pin]
    state: SpinLock<State>,
    /// Notified when a Send has completed, and when the queue pair fails.
    #[pin]
    changed: CondVar,
}

impl Progress {
    /// Begins a Send. Fails as [`SendQueue::begin`] does.
    fn begin(&self, limit_ms: u32) -> Result<PostedSend> {
        let mut state = self.state.lock();
        if state.failed {
            return Err(lost());
        }
        if state.is_idle() {
            state.since = Instant::now();
        } else if state.since.elapsed().as_millis() > limit_ms.into() {
            return Err(ETIMEDOUT);
        }
        let number = state.free.pop().ok_or(EBUSY)?;
        state.begun += 1;
        let begun = state.begun;
        if let Some(under_way) = state.under_way.get_mut(number) {
            *under_way = Some(begun);
        }
        Ok(PostedSend { number, begun })
    }

    /// Ends a Send. Has no effect on the other Sends if this one has ended before.
    fn end(&self, number: usize, failed: bool) {
        {
            let mut state = self.state.lock();
            state.failed |= failed;
            let under_way = state.under_way.get_mut(number);
            if under_way.is_some_and(|begun| begun.take().is_some()) {
                // Cannot fail: there is capacity for all.
                let _ = state.free.push_within_capacity(number);
                state.since = Instant::now();
            }
        }
        self.changed.notify_all();
    }
}

/// A Send with its buffer, which the device reads while the Send is under way.
///
/// It lives as long as the queue pair and is used again: siw can complete a flushed Send twice.
#[pin_data]
struct SendRequest<C: FaultHandler> {
    #[pin]
    buffer: Mutex<Buffer>,
    /// Its index among the Sends of the queue pair.
    number: usize,
    progress: Arc<Progress>,
    handler: HandlerPtr<C>,
}

impl<C: FaultHandler> Done for SendRequest<C> {
    unsafe fn done(this: &Cqe<Self>, completion: &bindings::ib_wc) {
        let failed = completion.status != bindings::ib_wc_status_IB_WC_SUCCESS;
        if failed {
            this.handler.operation_failed(completion.status);
        }
        this.progress.end(this.number, failed);
    }
}

/// The Sends of a queue pair. Several can be under way, each with a buffer of its own.
///
/// # Examples
///
/// ```no_run
/// # let sends: Arc<SendQueue<MyEndpoint>> = given();
/// // SAFETY: The queue pair is destroyed later.
/// let send = unsafe { sends.begin() }?;
/// send.post(1024, None, |message| message.append(4).map(|to| to.copy_from_slice(b"ping")))?;
/// ```
///
/// # Invariants
///
/// Until the queue pair is destroyed, `queue_pair` is valid, and `lkey` is the local key of all
/// memory that is mapped for the device. The functions that need the queue pair are `unsafe`.
pub(in crate::rdma) struct SendQueue<C: FaultHandler> {
    queue_pair: NonNull<bindings::ib_qp>,
    requests: KVec<Pin<KBox<Cqe<SendRequest<C>>>>>,
    progress: Arc<Progress>,
    handler: HandlerPtr<C>,
    lkey: u32,
    /// How long the Sends that are under way may take until one of them has completed.
    limit_ms: u32,
}

// SAFETY: Any thread may use a queue pair. Everything else is `Send`.
unsafe impl<C: FaultHandler> Send for SendQueue<C> {}
// SAFETY: The verbs are reentrant (Documentation/infiniband/core_locking.rst). Everything else is
// `Sync`.
unsafe impl<C: FaultHandler> Sync for SendQueue<C> {}

impl<C: FaultHandler> SendQueue<C> {
    /// Allocates the buffers for the Sends of `queue_pair`; may sleep. `handler` is told of Sends
    /// that fail. If none that is under way completes for `limit_ms` milliseconds, the queue pair
    /// should fail.
    ///
    /// Fails with `ENOMEM`.
    ///
    /// # Safety
    ///
    /// There must be a reference on `handler` until the queue pair has been destroyed, so that no
    /// completion can arrive any more. The returned value must stay until then.
    pub(in crate::rdma) unsafe fn new(
        queue_pair: &QueuePair,
        capacity: &Capacity,
        limit_ms: u32,
        handler: &Arc<C>,
    ) -> Result<Arc<Self>> {
        let domain = queue_pair.domain();
        let siw = domain.device().is_siw();
        let sends = capacity.sends() as usize;
        let mut free = KVec::with_capacity(sends, GFP_KERNEL)?;
        let mut under_way = KVec::with_capacity(sends, GFP_KERNEL)?;
        for number in (0..sends).rev() {
            free.push(number, GFP_KERNEL)?;
            under_way.push(None, GFP_KERNEL)?;
        }
        let state = State {
            free,
            under_way,
            begun: 0,
            since: Instant::now(),
            failed: false,
        };
        let progress = Arc::pin_init(
            pin_init!(Progress {
                state <- new_spinlock!(state, "Progress::state"),
                changed <- new_condvar!("Progress::changed"),
            }),
            GFP_KERNEL,
        )?;

        let mut requests = KVec::with_capacity(sends, GFP_KERNEL)?;
        for number in 0..sends {
            let direction = DataDirection::ToDevice;
            let buffer = Buffer::new(domain.device(), capacity.send_size() as usize, direction)?;
            let of_all = progress.clone();
            let request = Cqe::new(pin_init!(SendRequest {
                buffer <- new_mutex!(buffer, "SendRequest::buffer"),
                number,
                progress: of_all,
                // SAFETY: Only completions use it. By the function's requirement there is a
                // reference on the handler until no completion can arrive any more.
                handler: unsafe { HandlerPtr::new(handler, siw) },
            }));
            requests.push(KBox::pin_init(request, GFP_KERNEL)?, GFP_KERNEL)?;
        }
        // INVARIANT: The pointer is that of `queue_pair`. The key is that of its domain, for all
        // memory that is mapped for the device.
        let this = Self {
            queue_pair: queue_pair.as_non_null(),
            requests,
            progress,
            // SAFETY: It is used as long as there is the queue pair. By the function's requirement
            // there is a reference on the handler until then.
            handler: unsafe { HandlerPtr::new(handler, siw) },
            lkey: domain.local_dma_lkey(),
            limit_ms,
        };
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Begins a Send; any context that may be preempted.
    ///
    /// Fails with `ECONNRESET` if the queue pair has failed, with `ETIMEDOUT` if none of those that
    /// are under way has completed in time, and with `EBUSY` if all Sends are under way.
    ///
    /// # Safety
    ///
    /// The queue pair must not be destroyed before the returned value has been dropped.
    pub(in crate::rdma) unsafe fn begin(&self) -> Result<BegunSend<'_, C>> {
        let send = self.progress.begin(self.limit_ms)?;
        // INVARIANT: The Send was begun above. By the function's requirement there is the queue
        // pair.
        Ok(BegunSend { queue: self, send })
    }

    /// Waits up to `milliseconds` until a Send may be begun, or the queue pair has failed. May
    /// sleep.
    pub(in crate::rdma) fn wait(&self, milliseconds: u32) {
        let is_full = |state: &State| state.free.is_empty() && !state.failed;
        wait_while(
            &self.progress.changed,
            &self.progress.state,
            milliseconds,
            is_full,
        );
    }

    /// Waits up to `milliseconds` until no Send is under way. Returns whether that is so. May
    /// sleep.
    pub(in crate::rdma) fn wait_idle(&self, milliseconds: u32) -> bool {
        let is_busy = |state: &State| !state.is_idle();
        !wait_while(
            &self.progress.changed,
            &self.progress.state,
            milliseconds,
            is_busy,
        )
    }

    /// Whether this Send is under way.
    pub(in crate::rdma) fn is_under_way(&self, send: &PostedSend) -> bool {
        let state = self.progress.state.lock();
        state.under_way.get(send.number) == Some(&Some(send.begun))
    }

    /// Whether no Send is under way.
    pub(in crate::rdma) fn is_idle(&self) -> bool {
        self.progress.state.lock().is_idle()
    }

    /// Returns how many milliseconds are left for the Sends that are under way, or [`None`] if
    /// their time is over.
    pub(in crate::rdma) fn left(&self) -> Option<u32> {
        let state = self.progress.state.lock();
        if state.is_idle() || state.failed {
            return Some(self.limit_ms);
        }
        let left = i64::from(self.limit_ms) - state.since.elapsed().as_millis();
        u32::try_from(left).ok().filter(|&left| left > 0)
    }

    /// Whether a Send has failed, or the queue pair was made to fail.
    pub(in crate::rdma) fn has_failed(&self) -> bool {
        self.progress.state.lock().failed
    }

    /// Returns the queue pair, which is valid until it is destroyed.
    pub(in crate::rdma) fn queue_pair(&self) -> *mut bindings::ib_qp {
        self.queue_pair.as_ptr()
    }

    /// Returns the local key of all buffers of the queue pair.
    pub(in crate::rdma) fn lkey(&self) -> u32 {
        self.lkey
    }

    /// Returns the handler of the queue pair.
    #[inline]
    pub(in crate::rdma) fn handler(&self) -> &HandlerPtr<C> {
        &self.handler
    }

    /// Makes the queue pair fail because of `fault`, which the handler is told first. May sleep.
    ///
    /// # Safety
    ///
    /// The queue pair must not have been destroyed.
    pub(in crate::rdma) unsafe fn fail_with(&self, fault: QueuePairFault) {
        C::queue_pair_failed(self.handler.get(), fault);
        // SAFETY: By the function's requirement the queue pair has not been destroyed.
        let _ = unsafe { self.fail() };
    }

    /// Makes the queue pair fail, which ends everything that is under way on it. May sleep.
    ///
    /// Fails if the device refuses that. No Send can be begun then, either.
    ///
    /// # Safety
    ///
    /// The queue pair must not have been destroyed.
    pub(in crate::rdma) unsafe fn fail(&self) -> Result {
        self.progress.state.lock().failed = true;
        self.progress.changed.notify_all();
        // SAFETY: By the function's requirement the queue pair is valid.
        to_result(unsafe { bindings::shim_fail_qp(self.queue_pair()) })
    }
}

/// A Send that has been posted, by which its user finds out whether it is under way.
///
/// # Examples
///
/// ```no_run
/// # let (queue_pair, send): (&MessageQueuePair<MyEndpoint>, PostedSend) = given();
/// let is_acknowledged = !queue_pair.is_under_way(&send);
/// ```
#[derive(Clone, Copy)]
pub(crate) struct PostedSend {
    /// Its index among the Sends of the queue pair.
    number: usize,
    /// Its number among all that have been begun. An index is used again.
    begun: u64,
}

/// A Send that has been begun. Unless it is posted, it ends when this is dropped.
///
/// # Invariants
///
/// The Send of that number is under way, and the device does not read its buffer. The queue pair
/// has not been destroyed.
pub(crate) struct BegunSend<'a, C: FaultHandler> {
    queue: &'a SendQueue<C>,
    send: PostedSend,
}

impl<C: FaultHandler> BegunSend<'_, C> {
    /// Posts the message that `build` writes, of up to `limit` bytes or as many as the buffer has
    /// room for. With it, invalidates the peer's `rkey`. May sleep.
    ///
    /// Fails with the error of `build` before anything is sent, otherwise with `ECONNRESET`, after
    /// the queue pair has failed.
    pub(crate) fn post(
        self,
        limit: u32,
        rkey: Option<u32>,
        build: impl FnOnce(&mut SendBuffer<'_>) -> Result,
    ) -> Result<PostedSend> {
        let (queue, send) = (self.queue, self.send);
        let request = queue.requests.get(send.number).ok_or(EINVAL)?;
        let mut buffer = request.buffer.lock();
        let room = buffer.len().min(limit as usize);
        let bytes = buffer.bytes_mut().get_mut(..room).unwrap_or_default();
        let mut message = SendBuffer::new(bytes);
        build(&mut message)?;
        let len = message.len();
        buffer.sync_for_device();

        let mut sge = bindings::ib_sge {
            addr: buffer.address(),
            length: len.try_into()?,
            lkey: queue.lkey,
        };
        let mut wr = bindings::ib_send_wr {
            sg_list: &mut sge,
            // Some devices take a length of 0 for 2 GiB.
            num_sge: c_int::from(len > 0),
            opcode: bindings::ib_wr_opcode_IB_WR_SEND,
            send_flags: bindings::ib_send_flags_IB_SEND_SIGNALED as c_int,
            ..Default::default()
        };
        if let Some(rkey) = rkey {
            wr.opcode = bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV;
            wr.ex.invalidate_rkey = rkey;
        }
        wr.__bindgen_anon_1.wr_cqe = request.entry();
        // SAFETY: By the type invariant the queue pair is valid. By the requirement of
        // `SendQueue::new` the completion entry and the buffer stay until no completion can arrive
        // any more. Nobody else writes to the buffer until then, because the Send is under way. The
        // device copies the request.
        let posted = to_result(unsafe { bindings::shim_post_send(queue.queue_pair(), &wr) });
        drop(buffer);
        if let Err(error) = posted {
            let fault = post_fault(error, c"a message could not be sent");
            // SAFETY: By the type invariant there is the queue pair.
            unsafe { queue.fail_with(fault) };
            return Err(lost());
        }
        // The completion ends the Send, and may have done so.
        mem::forget(self);
        Ok(send)
    }
}

impl<C: FaultHandler> Drop for BegunSend<'_, C> {
    fn drop(&mut self) {
        self.queue.progress.end(self.send.number, false);
    }
}
