// SPDX-License-Identifier: GPL-2.0

//! How ids connect, as their user chooses.

use kernel::prelude::*;

/// The configuration of an id, that of a server or the part of a client's that a server has, too.
///
/// # Examples
///
/// ```no_run
/// const PARAMETERS: Parameters = Parameters {
///     owner: c"my_module",
///     rnr_retry_count: 7,
///     disconnect_ms: 10_000,
/// };
/// # pub(super) const CHOSEN: Parameters = PARAMETERS;
/// ```
#[derive(Clone, Copy)]
pub(crate) struct Parameters {
    /// The name under which the resource tracker lists a client's id, queue pairs and their other
    /// objects. It lists a server's id under the name of its listener.
    pub(crate) owner: &'static CStr,
    /// How often the peer's transport retransmits a message for which this end had posted no
    /// Receive: 0 to 6, or 7 for no limit. The REQ or REP carries the number. iWARP has none.
    pub(crate) rnr_retry_count: u8,
    /// How long the peer may take to answer a DREQ, in milliseconds.
    pub(crate) disconnect_ms: u32,
}

/// The configuration of a client's id.
///
/// # Examples
///
/// A server has no such choices, so this does not compile:
///
/// ```compile_fail,E0308
/// # let (request, setup): (PendingRequest<'_>, Setup<MyEndpoint>) = given();
/// let parameters = ClientParameters {
///     common: PARAMETERS,
///     retry_count: 6,
///     reads: false,
/// };
/// // error[E0308]: mismatched types: expected `Parameters`, found `ClientParameters`
/// request.accept(parameters, MyConnection::new(), setup, b"")?;
/// ```
///
/// A client has to choose, so this does not compile, either:
///
/// ```compile_fail,E0308
/// # let net: ARef<Net> = given();
/// // error[E0308]: mismatched types: expected `ClientParameters`, found `Parameters`
/// let id = UnresolvedId::new(&net, PARAMETERS, MyConnection::new())?;
/// ```
#[derive(Clone, Copy)]
pub(crate) struct ClientParameters {
    /// The part that a server chooses, too.
    pub(crate) common: Parameters,
    /// How often the transport retransmits a message before the connection is lost: 0 to 7. A
    /// server's transport uses the number of its client.
    pub(crate) retry_count: u8,
    /// Whether the queue pair may read the memory of the peer. That of a server always may, as far
    /// as its client serves RDMA Reads.
    pub(crate) reads: bool,
}
