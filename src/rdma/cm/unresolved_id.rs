// SPDX-License-Identifier: GPL-2.0

//! Ids of connections that are to be made. The addresses of their peers are not resolved yet.

use core::{
    net::SocketAddr,
    ptr, //
};

use kernel::{
    error::to_result,
    prelude::*, //
};

use super::{
    cm_id::CmId,
    context::{
        create_id,
        Client,
        Context, //
    },
    dispatch::connection_event,
    event::ClientHandler,
    parameters::ClientParameters, //
};
use crate::{
    base::{
        address::RawAddress,
        net::Net, //
    },
    bindings, //
};

/// The id of a connection that is to be made.
///
/// rdma_cm binds and resolves without a lock, so two calls at a time for one id would race.
/// Therefore [`Self::resolve_address`] consumes the value.
///
/// # Examples
///
/// ```no_run
/// # let (net, address): (ARef<Net>, SocketAddr) = given();
/// let id = UnresolvedId::new(&net, CLIENT_PARAMETERS, MyConnection::new())?;
/// let id = id.resolve_address(None, address, 2000)?;
/// ```
///
/// A second call does not compile:
///
/// ```compile_fail,E0382
/// # let (id, address, other): (UnresolvedId<MyConnection>, SocketAddr, SocketAddr) = given();
/// let a = id.resolve_address(None, address, 2000)?;
/// // error[E0382]: use of moved value: `id`
/// let b = id.resolve_address(None, other, 2000)?;
/// ```
pub(crate) struct UnresolvedId<H: ClientHandler>(CmId<H>);

impl<H: ClientHandler> UnresolvedId<H> {
    /// Creates an id in `net`, whose events `handler` handles; process context. The id gets a hold
    /// from the handler's [`ClientHandler::connect_queue`].
    ///
    /// Fails with `ENOMEM`, or with the error of rdma_cm.
    pub(crate) fn new(net: &Net, parameters: ClientParameters, handler: H) -> Result<Self> {
        let client = Some(Client::new(parameters));
        let hold = handler.connect_queue().hold().clone();
        let make = |id| {
            // SAFETY: The teardown destroys the id. Without a context, `create_id` does.
            unsafe { Context::new(id, &parameters.common, client, handler, hold) }
        };
        // SAFETY: `connection_event::<H>` expects this type of context. The owner below holds a
        // reference, and its teardown destroys the id before it drops that.
        let context = unsafe {
            create_id(
                net,
                parameters.common.owner,
                Some(connection_event::<H>),
                make,
            )
        }?;
        // SAFETY: The context is that of the id, and only this value is made of it.
        Ok(Self(unsafe { CmId::from_context(context) }))
    }

    /// Resolves the remote address within `timeout_ms` milliseconds. This also chooses the device
    /// and, if `from` is [`None`], the local address. The result is an event, which may arrive
    /// before this returns. Process context.
    ///
    /// Fails with the error of rdma_cm. The id is destroyed then.
    pub(crate) fn resolve_address(
        self,
        from: Option<SocketAddr>,
        to: SocketAddr,
        timeout_ms: u32,
    ) -> Result<CmId<H>> {
        let id = self.0.context().id.as_ptr();

        // rdma_resolve_addr() can bind, too. But it warns if the device is removed right after
        // that.
        if let Some(from) = from {
            let mut from = RawAddress::from(from);
            // SAFETY: The id is valid as long as its context is. Nobody else binds or resolves it:
            // this function consumes the only value that can. The address is copied.
            to_result(unsafe { bindings::rdma_bind_addr(id, from.as_mut_ptr()) })?;
        }
        let to = RawAddress::from(to);
        // SAFETY: As for binding.
        to_result(unsafe {
            bindings::rdma_resolve_addr(id, ptr::null_mut(), to.as_ptr(), timeout_ms as usize)
        })?;
        Ok(self.0)
    }
}
