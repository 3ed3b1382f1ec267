// SPDX-License-Identifier: GPL-2.0

//! Receives of a queue pair.

use kernel::{
    error::to_result,
    ffi::c_int,
    prelude::*,
    sync::Arc,
    time::Instant, //
};

use super::{
    arrival::{
        Arrival,
        Arrivals,
        Invalidated, //
    },
    completion_context::CompletionContext,
    completion_handler::CompletionHandler,
    operation::post_fault,
    send_queue::SendQueue,
    seqno::Seqno, //
};
use crate::{
    bindings,
    rdma::verbs::{
        buffer::Buffer,
        cqe::{
            Cqe,
            Done, //
        }, //
    }, //
};

/// A Receive. It is posted again each time the handler has taken its message.
///
/// # Examples
///
/// ```no_run
/// # let (buffer, sends, made): (Buffer, Arc<SendQueue<MyEndpoint>>, Seqno) = given();
/// # let arrivals: Arc<Arrivals> = given();
/// // SAFETY: The queue pair is destroyed, and its completions handled, before the rest is dropped.
/// let receive = unsafe { Receive::new(0, buffer, sends, made, arrivals) };
/// let receive = KBox::pin_init(receive, GFP_KERNEL)?;
/// // SAFETY: The queue pair is destroyed later.
/// unsafe { Receive::post(&receive) }?;
/// ```
pub(in crate::rdma) struct Receive<C: CompletionHandler> {
    buffer: Buffer,
    /// Its index among the Receives of the queue pair.
    number: usize,
    sends: Arc<SendQueue<C>>,
    /// When the queue pair was made.
    made: Seqno,
    arrivals: Arc<Arrivals>,
}

impl<C: CompletionHandler> Receive<C> {
    /// Creates the Receive of index `number` of a queue pair, whose number is `made`.
    /// The Receive is not posted yet. Its messages are added to `arrivals`, and the handler of
    /// `sends` is told.
    ///
    /// # Safety
    ///
    /// The Receive must stay until no completion can arrive any more. Before the queue pair of
    /// `sends` is destroyed, [`Held::closed`](super::arrival::Held) must be set.
    pub(in crate::rdma) unsafe fn new(
        number: usize,
        buffer: Buffer,
        sends: Arc<SendQueue<C>>,
        made: Seqno,
        arrivals: Arc<Arrivals>,
    ) -> impl PinInit<Cqe<Self>> {
        Cqe::new(Self {
            buffer,
            number,
            sends,
            made,
            arrivals,
        })
    }

    /// Posts the Receive, which gives its buffer to the device. Fails with the error of the device.
    ///
    /// # Safety
    ///
    /// The queue pair must not have been destroyed.
    pub(in crate::rdma) unsafe fn post(this: &Cqe<Self>) -> Result {
        let mut sge = bindings::ib_sge {
            addr: this.buffer.address(),
            length: this.buffer.len().try_into()?,
            lkey: this.sends.lkey(),
        };
        let mut request = bindings::ib_recv_wr {
            sg_list: &mut sge,
            num_sge: 1,
            ..Default::default()
        };
        request.__bindgen_anon_1.wr_cqe = this.entry();
        this.buffer.sync_for_device();

        // SAFETY: By the function's requirement the queue pair is valid. By the requirement of
        // `new` the completion entry and the buffer stay until no completion can arrive any more.
        // The device copies the request.
        to_result(unsafe { bindings::shim_post_recv(this.sends.queue_pair(), &request) })
    }

    /// Offers the message of this Receive to the handler, and posts the Receive again if the
    /// handler takes it. Returns whether it does. May sleep. Called with the lock of the arrivals.
    ///
    /// # Safety
    ///
    /// The Receive must have completed with this message. The queue pair must not have been
    /// destroyed, and must not be destroyed during the call.
    pub(in crate::rdma) unsafe fn offer(this: &Cqe<Self>, arrival: &Arrival) -> bool {
        // SAFETY: By the function's requirement there is the queue pair, during the call.
        let context = unsafe { CompletionContext::new(&this.sends) };
        // SAFETY: By the function's requirement the device does not write to the buffer until the
        // Receive is posted below.
        let bytes = unsafe { this.buffer.received(arrival.len) };
        if !C::arrived(this.sends.handler().get(), &context, bytes, arrival) {
            return false;
        }
        // SAFETY: By the function's requirement the queue pair has not been destroyed.
        if let Err(error) = unsafe { Self::post(this) } {
            let fault = post_fault(error, c"a Receive could not be posted again");
            // SAFETY: By the function's requirement the queue pair has not been destroyed.
            unsafe { this.sends.fail_with(fault) };
        }
        true
    }
}

impl<C: CompletionHandler> Done for Receive<C> {
    unsafe fn done(this: &Cqe<Self>, completion: &bindings::ib_wc) {
        if completion.status != bindings::ib_wc_status_IB_WC_SUCCESS {
            // This includes Receives that were flushed: a fault of the peer can make the queue pair
            // fail without any other completion.
            return this.sends.handler().operation_failed(completion.status);
        }
        let with_invalidate = bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE as c_int;
        let invalidated = match completion.wc_flags & with_invalidate {
            0 => None,
            _ => {
                // SAFETY: The flag says that this is the member in use.
                let rkey = unsafe { completion.ex.invalidate_rkey };
                Some(Invalidated::now(this.made, rkey))
            }
        };
        // An RDMA Write with Immediate of the peer also completes a Receive, but brings no message.
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
        let mut held = this.arrivals.lock();
        if held.closed {
            return;
        }
        // SAFETY: This is the completion. As long as `closed` is not set and the lock is held,
        // there is the queue pair.
        if !held.messages.is_empty() || !unsafe { Self::offer(this, &arrival) } {
            // Cannot fail: there is room for one message for each Receive.
            let _ = held.messages.push_within_capacity(arrival);
        }
    }
}
