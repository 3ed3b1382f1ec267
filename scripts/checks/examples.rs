// SPDX-License-Identifier: GPL-2.0

//! The names that the examples in the documentation of src/base and src/rdma take as given: the
//! user's own types. scripts/checks/examples compiles it with the examples, as a module of src/rdma.

use core::{
    fmt,
    net::SocketAddr,
    ptr::NonNull, //
};

use kernel::{
    dma::DataDirection,
    impl_has_delayed_work,
    impl_has_work,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::AtomicFlag,
        Arc,
        ArcBorrow,
        CondVar,
        Mutex, //
    },
    workqueue::{
        DelayedWork,
        Work,
        WorkItem, //
    }, //
};

use super::{
    cm::{
        cm_id::*,
        cm_listener::*,
        event::*,
        handler_id::*,
        id_ref::*,
        parameters::*,
        pending_request::*,
        request::*,
        resolved_id::*,
        unresolved_id::*, //
    },
    messages::{
        arrival::*,
        capacity::*,
        completion_context::*,
        completion_handler::*,
        fault_handler::*,
        message_queue_pair::*,
        operation::*,
        receive::*,
        send_buffer::*,
        send_queue::*,
        seqno::*,
        setup::*,
        transfer::*, //
    },
    registration::{
        piece::*,
        region::*,
        remote_access::*,
        *, //
    },
    verbs::{
        buffer::*,
        completion_queue::*,
        cqe::*,
        device::*,
        memory::*,
        memory_region::*,
        protection_domain::*,
        queue_pair::*, //
    }, //
};
use crate::{
    base::{
        address::*,
        draining::*,
        errno::*,
        net::*,
        unload::*,
        wait::*,
        work_queue::*, //
    },
    bindings, //
};

const PARAMETERS: Parameters = Parameters {
    owner: c"my_module",
    rnr_retry_count: 7,
    disconnect_ms: 10_000,
};

const CLIENT_PARAMETERS: ClientParameters = ClientParameters {
    common: PARAMETERS,
    retry_count: 6,
    reads: false,
};

/// A value that the reader of an example has already.
fn given<T>() -> T {
    loop {}
}

struct MyEndpoint;

impl MyEndpoint {
    fn new() -> Arc<Self> {
        given()
    }

    fn setup() -> Result<Setup<Self>> {
        given()
    }
}

impl FaultHandler for MyEndpoint {
    fn queue_pair_failed(_this: ArcBorrow<'_, Self>, _fault: QueuePairFault) {}
}

impl CompletionHandler for MyEndpoint {
    fn arrived(
        _this: ArcBorrow<'_, Self>,
        _context: &CompletionContext<'_, Self>,
        _bytes: &[u8],
        _arrival: &Arrival,
    ) -> bool {
        true
    }

    fn queue_pair_event(_this: ArcBorrow<'_, Self>, _event: &'static CStr) {}
}

struct MyConnection;

impl MyConnection {
    fn new() -> Self {
        Self
    }
}

impl ConnectionHandler for MyConnection {
    type QueuePair = MessageQueuePair<MyEndpoint>;

    fn event(&self, _id: &mut HandlerId<'_, MessageQueuePair<MyEndpoint>>, _event: CmEvent<'_>) {}
}

impl ClientHandler for MyConnection {
    fn connect_queue(&self) -> &WorkQueue {
        given()
    }

    fn connect(&self, _id: ResolvedId<'_, MessageQueuePair<MyEndpoint>>) {}
}

/// The handler of a server's connections, which does not connect.
struct MyServerConnection;

impl ConnectionHandler for MyServerConnection {
    type QueuePair = MessageQueuePair<MyEndpoint>;

    fn event(&self, _id: &mut HandlerId<'_, MessageQueuePair<MyEndpoint>>, _event: CmEvent<'_>) {}
}

struct MyServer;

impl ListenHandler for MyServer {
    fn connect_request(&self, _request: Request<'_>) {}

    fn device_removed(&self) {}
}

#[pin_data]
struct MyWork {
    #[pin]
    work: Work<Self>,
}

impl_has_work! {
    impl HasWork<Self> for MyWork { self.work }
}

impl WorkItem for MyWork {
    type Pointer = Arc<Self>;

    fn run(_this: Arc<Self>) {}
}

#[pin_data]
struct MyDelayedWork {
    queue: Arc<WorkQueue>,
    #[pin]
    work: DelayedWork<Self>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for MyDelayedWork { self.work }
}

impl WorkItem for MyDelayedWork {
    type Pointer = Arc<Self>;

    fn run(_this: Arc<Self>) {}
}

impl Delayed<0> for MyDelayedWork {
    fn queue(&self) -> &WorkQueue {
        &self.queue
    }
}
