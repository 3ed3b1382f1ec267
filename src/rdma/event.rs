// SPDX-License-Identifier: GPL-2.0

//! Events of a connection's id, and their handler.

use kernel::prelude::*;

use super::{
    completion_handler::CompletionHandler,
    handler_id::HandlerId, //
};

/// An event of a connection's id.
///
/// # Examples
///
/// ```ignore
/// match event {
///     Event::AddressResolved => {
///         id.create_queue_pair(Capacity::new(32, 4096, 4096)?)?;
///         id.resolve_route(2000)
///     }
///     Event::RouteResolved => id.connect(&private_data),
///     Event::Established { private_data } => self.established(private_data),
///     _ => self.lost(),
/// }
/// ```
pub(crate) enum Event<'a> {
    /// The remote address was resolved, and the id is bound to a device.
    AddressResolved,
    /// The route was resolved: the next step is to connect.
    RouteResolved,
    /// The connection is established. A client gets the private data of the REP. A server, which
    /// got the client's from the request, gets none.
    Established {
        /// The private data: as the transport delivers it, padded on InfiniBand and RoCE.
        private_data: &'a [u8],
    },
    /// The remote address was not resolved.
    AddressUnresolved(Error),
    /// The route was not resolved, or the peer did not answer.
    Failed(Error),
    /// The peer, or its host, rejected the connection.
    Rejected {
        /// The transport's name for the reason.
        reason: &'static CStr,
    },
    /// The connection is gone.
    Disconnected,
    /// The network interface that the connection runs over has got another hardware address.
    AddressChanged,
    /// The device is going away and waits for the id to be destroyed.
    DeviceRemoved,
}

/// Handles the events of one id.
///
/// # Examples
///
/// ```ignore
/// impl ConnectionHandler for MyConnection {
///     fn event(&self, id: &mut HandlerId<'_, Self>, event: Event<'_>) {
///         if let Event::Disconnected = event {
///             // Dropping the id only queues the work that destroys it.
///             *self.id.lock() = None;
///         }
///     }
/// }
/// ```
pub(crate) trait ConnectionHandler: CompletionHandler {
    /// Runs with the id's handler mutex held, for one event at a time; may sleep.
    fn event(&self, id: &mut HandlerId<'_, Self>, event: Event<'_>)
    where
        Self: Sized;
}
