// SPDX-License-Identifier: GPL-2.0

//! Octets: what goes over the wire, and what follows from it.

pub(crate) mod call_request;
pub(crate) mod discarded;
pub(crate) mod ending;
pub(crate) mod header;
pub(crate) mod inferred_invalidation;
pub(crate) mod meaning;
pub(crate) mod negotiation;
pub(crate) mod private_data;
pub(crate) mod program;
pub(crate) mod rpc_message;
pub(crate) mod xdr;
