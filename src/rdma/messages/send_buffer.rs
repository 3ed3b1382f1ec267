// SPDX-License-Identifier: GPL-2.0

//! A message that is being written.

use kernel::prelude::*;

use crate::base::errno::errno;

/// A message that is being written. Its length is the number of bytes that have been appended, and
/// only these are sent.
///
/// # Examples
///
/// ```no_run
/// # let (queue_pair, limit, payload): (&MessageQueuePair<MyEndpoint>, u32, &[u8]) = given();
/// # fn write_header(_room: &mut [u8]) -> Result<usize> { Ok(0) }
/// queue_pair.send(limit, None, |message| {
///     message.append_with(write_header)?;
///     message.append(payload.len())?.copy_from_slice(payload);
///     Ok(())
/// })?;
/// ```
///
/// The user states no length. Appending more than there is room for fails, and nothing is sent:
///
/// ```no_run
/// # let queue_pair: &MessageQueuePair<MyEndpoint> = given();
/// let result = queue_pair.send(u32::MAX, None, |message| message.append(1 << 20).map(|_| ()));
/// assert_eq!(result.err(), Some(errno(kernel::bindings::EMSGSIZE)));
/// ```
///
/// # Invariants
///
/// `len` is at most the length of `bytes`.
pub(crate) struct SendBuffer<'a> {
    bytes: &'a mut [u8],
    len: usize,
}

impl<'a> SendBuffer<'a> {
    /// Begins a message in `bytes`.
    pub(in crate::rdma) fn new(bytes: &'a mut [u8]) -> Self {
        // INVARIANT: Nothing has been written.
        Self { bytes, len: 0 }
    }

    /// Returns the room that is left.
    fn room(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.len..).unwrap_or_default()
    }

    /// Adds the first `len` bytes of the room to the message.
    ///
    /// Fails with `EMSGSIZE` if there is less room.
    fn advance(&mut self, len: usize) -> Result {
        if len > self.room().len() {
            return Err(errno(kernel::bindings::EMSGSIZE));
        }
        // INVARIANT: It was checked above that so many bytes are left.
        self.len += len;
        Ok(())
    }

    /// Appends `len` bytes, which are zero, and returns them to be written.
    ///
    /// Fails with `EMSGSIZE` if there is less room.
    pub(crate) fn append(&mut self, len: usize) -> Result<&mut [u8]> {
        let at = self.len;
        self.advance(len)?;
        let bytes = self.bytes.get_mut(at..self.len).unwrap_or_default();
        bytes.fill(0);
        Ok(bytes)
    }

    /// Appends the bytes that `write` writes at the beginning of the room. `write` returns their
    /// number.
    ///
    /// Fails with the error of `write`, or with `EMSGSIZE` if the number exceeds the room.
    pub(crate) fn append_with(&mut self, write: impl FnOnce(&mut [u8]) -> Result<usize>) -> Result {
        let len = write(self.room())?;
        self.advance(len)
    }

    /// Returns how many bytes have been appended.
    pub(in crate::rdma) fn len(&self) -> usize {
        self.len
    }
}
