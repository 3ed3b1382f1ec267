// SPDX-License-Identifier: GPL-2.0

//! Registered blocks of memory.

use kernel::{
    bindings::scatterlist,
    ffi::c_int,
    prelude::*, //
};

use super::{
    piece::Piece,
    remote_access::RemoteAccess, //
};
use crate::{
    bindings,
    rdma::{
        messages::{
            arrival::Invalidated,
            completion_handler::CompletionHandler,
            message_queue_pair::MessageQueuePair,
            seqno::Seqno, //
        },
        verbs::memory_region::MemoryRegion, //
    }, //
};

/// How far a region is registered.
enum State {
    /// Its memory is not mapped for the device.
    Unmapped,
    /// Its memory is mapped; the peer has no access.
    Mapped,
    /// The peer was given access at this time, and may use it, as far as this side knows.
    Registered(Seqno),
}

/// A memory region with the memory that it describes. [`Region::end`] must be called: otherwise the
/// memory stays mapped for the device.
///
/// # Examples
///
/// ```no_run
/// # let (queue_pair, xid): (&MessageQueuePair<MyEndpoint>, u32) = given();
/// # let (pages, list): (u32, KVec<kernel::bindings::scatterlist>) = given();
/// // SAFETY: The blocks that the list describes are freed only where `end` says so.
/// let mut region = unsafe { Region::new(queue_pair, RemoteAccess::Read, pages, list) }?;
/// region.register(u64::from(xid) << 32)?;
/// let piece = region.piece();
/// // ... the peer makes use of it ...
/// region.invalidate(None)?;
/// let may_be_freed = region.end();
/// # assert!(may_be_freed);
/// ```
///
/// # Invariants
///
/// `list` describes memory that stays until [`Region::end`] has returned `true`. Unless `state` is
/// `Unmapped`, the list is mapped for the device and does not change. Unless it is `Registered`,
/// the region is not registered.
pub(in crate::rdma) struct Region<'a, C: CompletionHandler> {
    queue_pair: &'a MessageQueuePair<C>,
    access: RemoteAccess,
    mr: MemoryRegion,
    list: KVec<scatterlist>,
    state: State,
    /// The offset of the first byte, for the peer.
    offset: u64,
}

impl<'a, C: CompletionHandler> Region<'a, C> {
    /// Allocates a region of up to `pages` pages, which is not registered. May sleep.
    ///
    /// Fails with `ENOMEM`, or with `EIO` if the device makes no region.
    ///
    /// # Safety
    ///
    /// The memory that `list` describes must stay until [`Self::end`] has returned `true`.
    pub(in crate::rdma) unsafe fn new(
        queue_pair: &'a MessageQueuePair<C>,
        access: RemoteAccess,
        pages: u32,
        list: KVec<scatterlist>,
    ) -> Result<Self> {
        // INVARIANT: Nothing is mapped. By the function's requirement the memory stays.
        Ok(Self {
            queue_pair,
            access,
            mr: MemoryRegion::new(queue_pair.domain(), pages, queue_pair.hold())?,
            list,
            state: State::Unmapped,
            offset: 0,
        })
    }

    /// Gives the peer access to the memory, at `offset`, which is a multiple of the length of a
    /// page. Called only if the memory is not mapped. May sleep.
    ///
    /// Fails with `ENOMEM` or `EIO` if the memory cannot be mapped. Any other failure is
    /// `ECONNRESET`: the connection is lost.
    pub(in crate::rdma) fn register(&mut self, offset: u64) -> Result {
        let entries = c_int::try_from(self.list.len())?;
        // SAFETY: The device stays as long as the queue pair. This owns the list, which describes
        // memory that stays and is not mapped.
        let entries = unsafe {
            bindings::shim_dma_map_sg(
                self.queue_pair.domain().device().as_ptr(),
                self.list.as_mut_ptr(),
                entries,
                self.access.direction() as u32,
            )
        };
        if entries <= 0 {
            return Err(ENOMEM);
        }
        // INVARIANT: The list was mapped above.
        self.state = State::Mapped;

        // SAFETY: The list is mapped, with that many entries. It was not mapped before, so the
        // region is not registered.
        self.offset = unsafe { self.mr.map(self.list.as_mut_ptr(), entries, offset) }?;
        let access = self.access.flags();
        // SAFETY: The region is of the domain of the queue pair, and mapped. `end` leaks it if the
        // operation is abandoned.
        let result = unsafe { self.queue_pair.register(&self.mr, access) };
        // The completions of all messages that arrived before the registration have been handled:
        // completions are handled in order. So these messages count as earlier. Not quite over siw
        // and rxe: siw invalidates an rkey, whatever its key, before it queues the completion, and
        // rxe sets the key of a region before its state. A peer could win these races, but both are
        // for trusted networks anyway (SECURITY.md).
        // After a failure the device may have registered it all the same.
        self.state = State::Registered(Seqno::next());
        result
    }

    /// Ends the access of the peer. `remotely` proves that the peer has invalidated an rkey itself.
    /// Returns whether this side had to invalidate the region. May sleep. A failure loses the
    /// connection.
    pub(in crate::rdma) fn invalidate(&mut self, remotely: Option<Invalidated>) -> Result<bool> {
        let (queue_pair, rkey) = (self.queue_pair, self.mr.rkey());
        let locally = match self.state {
            State::Unmapped => return Ok(false),
            State::Mapped => false,
            State::Registered(at) => {
                !remotely.is_some_and(|message| message.has_ended(queue_pair.made(), rkey, at))
            }
        };
        if locally {
            queue_pair.invalidate(rkey)?;
        }
        // INVARIANT: The region is not registered, and the list is unmapped below.
        self.state = State::Unmapped;
        // SAFETY: By the type invariant the list was mapped, in this direction.
        unsafe { unmap(queue_pair, &mut self.list, self.access) };
        Ok(locally)
    }

    /// Whether the device has, or may still have, access to the memory.
    pub(in crate::rdma) fn is_mapped(&self) -> bool {
        !matches!(self.state, State::Unmapped)
    }

    /// Returns its description for the peer.
    pub(in crate::rdma) fn piece(&self) -> Piece {
        Piece {
            rkey: self.mr.rkey(),
            len: self.mr.len(),
            offset: self.offset,
        }
    }

    /// Ends the region, and with it any access that the peer still has. Returns whether the memory
    /// may be freed. If not, the region is leaked, and the device may still access the memory. May
    /// sleep.
    pub(in crate::rdma) fn end(self) -> bool {
        let mapped = self.is_mapped();
        let Self {
            queue_pair,
            access,
            mr,
            mut list,
            ..
        } = self;
        // An abandoned operation may refer to the region, and the region to the memory.
        if mapped && queue_pair.is_abandoned() {
            mr.leak();
            return false;
        }
        if !mr.deregister() {
            return false;
        }
        if mapped {
            // SAFETY: By the type invariant the list was mapped, in this direction.
            unsafe { unmap(queue_pair, &mut list, access) };
        }
        true
    }
}

/// Unmaps memory from the device.
///
/// # Safety
///
/// The whole list must be mapped for the device of the queue pair, and for this access.
unsafe fn unmap<C: CompletionHandler>(
    queue_pair: &MessageQueuePair<C>,
    list: &mut KVec<scatterlist>,
    access: RemoteAccess,
) {
    // SAFETY: By the function's requirement. This is the number of entries that the list was mapped
    // with.
    unsafe {
        bindings::shim_dma_unmap_sg(
            queue_pair.domain().device().as_ptr(),
            list.as_mut_ptr(),
            list.len() as c_int,
            access.direction() as u32,
        )
    };
}
