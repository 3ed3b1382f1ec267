// SPDX-License-Identifier: GPL-2.0

//! The calls that a client makes once it is connected: NULL, and BIND (RFC 8167, section 6).

use kernel::sync::Arc;

use super::endpoint::Endpoint;
use crate::{
    base::wait::MayWait,
    pure::{
        text::{
            outcome::CommandOutcome,
            snapshot::{
                Null,
                ReverseDirection, //
            }, //
        },
        wire::call_request::CallRequest, //
    }, //
};

impl Endpoint {
    pub(super) fn make_first_calls(this: Arc<Self>, may_wait: &MayWait) {
        if let Some(program) = this.configuration.null {
            let result = this.call(
                may_wait,
                &CallRequest::null(program),
                &mut CommandOutcome::new(),
            );
            this.inner.lock().traffic.null = match result {
                Ok(()) => Null::Answered,
                Err(failure) => Null::Failed(failure.cause),
            };
        }
        if this.configuration.binds() {
            let result = this.call(may_wait, &CallRequest::BIND, &mut CommandOutcome::new());
            this.inner.lock().traffic.reverse_direction = match result {
                Ok(()) => ReverseDirection::Yes,
                Err(failure) => ReverseDirection::Failed(failure.cause),
            };
        }
    }
}
