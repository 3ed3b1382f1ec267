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
            parameters::Parameters,
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
            message_queue_pair::MessageQueuePair,
            setup::{
                Setup,
                TimeLimits, //
            }, //
        }, //
    },
    sync::{
        Arc,
        ArcBorrow,
        Mutex, //
    },
    workqueue::{
        unload::{
            guarded_module,
            Hold, //
        },
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
        _server: Server = Server::new,
    }
    teardown: c"rust_rdma_cm_teardown",
}

const PORT: u16 = 20050;
const MESSAGE: u32 = 1024;

const PARAMETERS: Parameters = Parameters {
    owner: c"rust_rdma_cm",
    rnr_retry_count: 7,
    disconnect_ms: 10_000,
};

const LIMITS: TimeLimits = TimeLimits {
    operation_ms: 5000,
    flush_ms: 5000,
};

/// The connections by their numbers. They end when their ids are dropped.
struct Table {
    /// [`None`] until the request has been accepted.
    ids: KVec<(u64, Option<CmId<Connection>>)>,
    next: u64,
    /// The module is being unloaded.
    closed: bool,
}

#[pin_data]
struct Connections {
    #[pin]
    table: Mutex<Table>,
}

impl Connections {
    /// Returns the number of a connection that is to be accepted.
    fn begin(&self) -> Result<u64> {
        let table = &mut *self.table.lock();
        if table.closed {
            return Err(ESHUTDOWN);
        }
        let number = table.next;
        table.ids.push((number, None), GFP_KERNEL)?;
        table.next += 1;
        Ok(number)
    }

    /// Keeps the id of a connection, unless that has ended meanwhile.
    fn keep(&self, number: u64, id: CmId<Connection>) {
        let table = &mut *self.table.lock();
        if let Some(entry) = table.ids.iter_mut().find(|entry| entry.0 == number) {
            entry.1 = Some(id);
        }
    }

    /// Ends a connection. Dropping its id only queues the work that destroys it.
    fn end(&self, number: u64) {
        self.table.lock().ids.retain(|entry| entry.0 != number);
    }
}

struct Server {
    connections: Arc<Connections>,
    _listener: CmListener<Requests>,
}

impl Server {
    fn new(hold: &Hold) -> Result<Self> {
        let connections = Arc::pin_init(
            pin_init!(Connections {
                table <- new_mutex!(Table {
                    ids: KVec::new(),
                    next: 0,
                    closed: false,
                }),
            }),
            GFP_KERNEL,
        )?;
        let requests = Requests {
            connections: connections.clone(),
            accepts: WorkQueue::new(hold, c"rust_rdma_cm")?,
        };
        let net = Net::current()?;
        let at = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
        Ok(Self {
            connections,
            _listener: CmListener::new(hold, &net, c"rust_rdma_cm", requests, at, 8)?,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let table = &mut *self.connections.table.lock();
        table.closed = true;
        table.ids.clear();
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
                let setup = Setup {
                    capacity: Capacity::new(16, MESSAGE, 16, MESSAGE)?,
                    limits: LIMITS,
                    handler: Arc::new(Echo, GFP_KERNEL)?,
                };
                let number = connections.begin()?;
                let connection = Connection {
                    number,
                    connections: connections.clone(),
                };
                // Events may arrive before this returns.
                request
                    .accept(PARAMETERS, connection, setup, b"hello")
                    .inspect_err(|_| connections.end(number))
                    .map(|id| connections.keep(number, id))
            };
            if let Err(error) = accept() {
                pr_info!("cannot accept: {error:?}\n");
            }
        });
        if let Err(error) = deferred {
            pr_info!("cannot accept: {error:?}\n");
        }
    }

    // The listener has the wildcard address, so it is not bound to a device.
    fn device_removed(&self) {}
}

/// Handles the events of a connection.
struct Connection {
    number: u64,
    connections: Arc<Connections>,
}

impl ConnectionHandler for Connection {
    type QueuePair = MessageQueuePair<Echo>;

    fn event(&self, id: &mut HandlerId<'_, MessageQueuePair<Echo>>, event: CmEvent<'_>) {
        match event {
            CmEvent::Established { .. } => pr_info!("{:?} is connected\n", id.remote()),
            // The peer has disconnected or has given up, or the device is being removed, which waits
            // for the end of the id.
            _ => {
                pr_info!("{:?} has disconnected\n", id.remote());
                self.connections.end(self.number);
            }
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
        pr_info!("{} bytes\n", bytes.len());
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
