// SPDX-License-Identifier: GPL-2.0

//! The description of registered memory for the peer.

/// The description of a piece of registered memory for the peer.
///
/// # Examples
///
/// ```no_run
/// # let registration: Registration<'_, MyEndpoint> = given();
/// let pieces = registration.pieces();
/// let segments = pieces.map(|piece| (piece.rkey, piece.len, piece.offset));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Piece {
    /// The rkey.
    pub(crate) rkey: u32,
    /// The length in bytes.
    pub(crate) len: u32,
    /// The offset by which the peer addresses the first byte. The user has chosen it, and it is no
    /// address of the kernel.
    pub(crate) offset: u64,
}
