// SPDX-License-Identifier: GPL-2.0

//! A server that accepts connections of rdma_cm, and sends each message back.

use core::net::{
    Ipv4Addr,
    SocketAddr, //
};

use kernel::{
    net::namespace::Net,
    new_mutex,
    prelude::*,
    rdma::{
        cm::{
            cm_id::CmId,
            cm_listener::{
                CmListener,
                ListenHandler, //
            },
            event::{
                CmEvent,
                ConnectionHandler, //
            },
            handler_id::HandlerId,
            request::Request, //
        },
        messages::{
            arrival::Arrival,
            capacity::Capacity,
            completion_context::CompletionContext,
            completion_handler::CompletionHandler,
            fault_handler::{
                FaultHandler,
                QueuePairFault, //
            },
            parameters::Parameters, //
        }, //
    },
    sync::{
        Arc,
        ArcBorrow,
        Mutex, //
    },
    workqueue::{
        unload::guarded_module,
        work_queue::WorkQueue, //
    }, //
};

module! {
    type: RustRdmaCm,
    name: "rust_rdma_cm",
    authors: ["The rpcrdma_cm developers"],
    description: "Rust sample of rdma_cm",
    license: "GPL",
}

guarded_module! {
    /// The module.
    struct RustRdmaCm {
        _server: Server = Server::new(),
    }
    teardown: c"rust_rdma_cm_teardown",
}

const PORT: u16 = 20050;
const MESSAGE: u32 = 1024;

const PARAMETERS: Parameters = Parameters {
    owner: c"rust_rdma_cm",
    rnr_retry_count: 7,
    operation_ms: 5000,
    flush_ms: 5000,
    disconnect_ms: 10_000,
};

/// The connections, which end when their ids are dropped; [`None`] while the module is unloaded.
#[pin_data]
struct Connections {
    #[pin]
    ids: Mutex<Option<KVec<CmId<Connection>>>>,
}

struct Server {
    connections: Arc<Connections>,
    _listener: CmListener<Requests>,
}

impl Server {
    fn new() -> Result<Self> {
        let connections = Arc::pin_init(
            pin_init!(Connections { ids <- new_mutex!(Some(KVec::new())) }),
            GFP_KERNEL,
        )?;
        let requests = Requests {
            connections: connections.clone(),
            accepts: WorkQueue::new(c"rust_rdma_cm")?,
        };
        let net = Net::current()?;
        let at = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
        Ok(Self {
            connections,
            _listener: CmListener::new(&net, c"rust_rdma_cm", requests, at, 8)?,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        *self.connections.ids.lock() = None;
    }
}

/// Handles the requests of clients.
struct Requests {
    connections: Arc<Connections>,
    accepts: Arc<WorkQueue>,
}

impl ListenHandler for Requests {
    fn connect_request(&self, request: Request<'_>) {
        let connections = self.connections.clone();
        // The handler of rdma_cm should not wait for memory, so a work accepts.
        let deferred = request.defer(&self.accepts, move |request| {
            let accept = || -> Result {
                let capacity = Capacity::new(16, MESSAGE, 16, MESSAGE)?;
                let echo = Arc::new(Echo, GFP_KERNEL)?;
                let id = request.accept(PARAMETERS, Connection, echo, capacity, b"hello")?;
                if let Some(ids) = &mut *connections.ids.lock() {
                    ids.push(id, GFP_KERNEL)?;
                }
                Ok(())
            };
            if let Err(error) = accept() {
                pr_info!("cannot accept: {error:?}\n");
            }
        });
        if let Err(error) = deferred {
            pr_info!("cannot accept: {error:?}\n");
        }
    }

    fn device_removed(&self) {}
}

/// Handles the events of a connection.
struct Connection;

impl ConnectionHandler for Connection {
    type Completions = Echo;

    fn event(&self, id: &mut HandlerId<'_, Echo>, event: CmEvent<'_>) {
        match event {
            CmEvent::Established { .. } => pr_info!("{:?} is connected\n", id.remote()),
            CmEvent::Disconnected => pr_info!("{:?} has disconnected\n", id.remote()),
            _ => {}
        }
    }
}

/// Handles the messages of the client.
struct Echo;

impl FaultHandler for Echo {
    fn queue_pair_failed(_this: ArcBorrow<'_, Self>, fault: QueuePairFault) {
        if let QueuePairFault::Error(reason) = fault {
            pr_info!("the connection is lost: {reason}\n");
        }
    }
}

impl CompletionHandler for Echo {
    fn arrived(
        _this: ArcBorrow<'_, Self>,
        context: &CompletionContext<'_, Self>,
        bytes: &[u8],
        _arrival: &Arrival,
    ) -> bool {
        pr_info!("{} octets\n", bytes.len());
        let sent = context.begin_send().and_then(|send| {
            send.post(MESSAGE, None, |message| {
                message.append(bytes.len())?.copy_from_slice(bytes);
                Ok(())
            })
        });
        if let Err(error) = sent {
            pr_info!("cannot answer: {error:?}\n");
        }
        true
    }

    fn queue_pair_event(_this: ArcBorrow<'_, Self>, _event: &'static CStr) {}
}
