// SPDX-License-Identifier: GPL-2.0

//! Registered memory, as the peer knows it.

/// A piece of registered memory, as the peer has to know of it.
///
/// # Examples
///
/// ```no_run
/// # let registration: Registration<'_, MyEndpoint> = given();
/// let pieces = registration.pieces();
/// let segments = pieces.map(|piece| (piece.stag, piece.len, piece.offset));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Piece {
    /// Its Steering Tag.
    pub(crate) stag: u32,
    pub(crate) len: u32,
    /// The offset at which the peer finds its first octet: no address, but one of the user's.
    pub(crate) offset: u64,
}
