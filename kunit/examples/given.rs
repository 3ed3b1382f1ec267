// SPDX-License-Identifier: GPL-2.0

//! What the examples in the documentation of src/base and src/rdma take as given: the user's own
//! types, and values of the layer's. scripts/checks/examples compiles it with the examples, as a
//! module of src/rdma.
//!
//! Each KUnit test connects a client to a server on the same device, and runs an example there.
//! The handlers of both ends run those examples that only they can.

use core::{
    fmt,
    net::{
        Ipv4Addr,
        SocketAddr, //
    },
    ptr::NonNull, //
};

use kernel::{
    alloc::AllocError,
    dma::DataDirection,
    impl_has_delayed_work,
    impl_has_work,
    new_condvar,
    new_mutex,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::AtomicFlag,
        global_lock,
        Arc,
        ArcBorrow,
        CondVar,
        Mutex, //
    },
    workqueue::{
        new_delayed_work,
        new_work,
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

/// How many bytes of a client's memory a server may use.
const LEN: usize = 100_000;

/// How long to wait for a peer, in milliseconds.
const WAIT_MS: u32 = 10_000;

fn capacity() -> Result<Capacity> {
    Capacity::new(32, 4096, 16, 1024)
}

/// A value that the reader of a misuse has already.
fn given<T>() -> T {
    unimplemented!()
}

/// The addresses and objects that all tests use. The module makes them when it is loaded.
#[pin_data]
struct Loopback {
    hold: Hold,
    net: ARef<Net>,
    queue: Arc<WorkQueue>,
    /// The address of the server.
    server: SocketAddr,
    /// An address at which nobody listens.
    unused: SocketAddr,
    /// The state of a made-up connection.
    #[pin]
    changed: CondVar,
    #[pin]
    connected: Mutex<bool>,
    /// The test that runs.
    #[pin]
    test: Mutex<Option<Arc<Test>>>,
}

/// What the handlers of the connections that one test makes note for it.
#[pin_data]
struct Test {
    #[pin]
    noted: Mutex<Noted>,
    #[pin]
    noted_more: CondVar,
}

struct Noted {
    /// The results of examples.
    results: KVec<(&'static str, Result)>,
    /// The ids of the server's connections.
    accepted: KVec<CmId<MyConnection>>,
    /// The last message that invalidated an rkey.
    invalidated: Option<Arrival>,
}

global_lock! {
    // SAFETY: `Examples::new` initializes it before anything else uses it.
    unsafe(uninit) static LOOPBACK: Mutex<Option<Arc<Loopback>>> = None;
}

/// The server, and what the handlers use. Dropping it ends them.
pub(crate) struct Examples {
    _listener: CmListener<request_1::MyHandler>,
}

impl Examples {
    /// Creates a server at `address`, which is that of a device.
    pub(crate) fn new(hold: &Hold, address: Ipv4Addr) -> Result<Self> {
        // SAFETY: Only the guard's module calls this, once: `guarded_module!` refuses a second one.
        unsafe { LOOPBACK.init() };
        let loopback = Arc::pin_init(
            try_pin_init!(Loopback {
                hold: hold.clone(),
                net: Net::current()?,
                queue: WorkQueue::new(hold, c"examples")?,
                server: SocketAddr::from((address, 2000)),
                unused: SocketAddr::from((address, 2001)),
                changed <- new_condvar!("Loopback::changed"),
                connected <- new_mutex!(false, "Loopback::connected"),
                test <- new_mutex!(None, "Loopback::test"),
            }),
            GFP_KERNEL,
        )?;
        let server = request_1::MyServer {
            queue: loopback.queue.clone(),
        };
        let handler = request_1::MyHandler {
            server: Arc::new(server, GFP_KERNEL)?,
        };
        let (net, at) = (&loopback.net, loopback.server);
        let this = Self {
            _listener: CmListener::new(hold, net, c"examples", handler, at, 8)?,
        };
        // Last: it holds the module until `this` is dropped.
        *LOOPBACK.lock() = Some(loopback);
        Ok(this)
    }
}

impl Drop for Examples {
    fn drop(&mut self) {
        let loopback = LOOPBACK.lock().take();
        drop(loopback);
    }
}

/// Returns what the module has made.
fn loopback() -> Result<Arc<Loopback>> {
    LOOPBACK.lock().clone().ok_or(ENODEV)
}

/// Returns the test that runs.
fn test() -> Option<Arc<Test>> {
    loopback().ok()?.test.lock().clone()
}

/// Keeps the id of a connection that the server has accepted.
fn keep(id: CmId<MyConnection>) {
    if let Some(test) = test() {
        test.note(|noted| noted.accepted.push(id, GFP_KERNEL));
    }
}

impl Test {
    fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                noted <- new_mutex!(
                    Noted {
                        results: KVec::new(),
                        accepted: KVec::new(),
                        invalidated: None,
                    },
                    "Test::noted"
                ),
                noted_more <- new_condvar!("Test::noted_more"),
            }),
            GFP_KERNEL,
        )
    }

    /// Has the notes changed by `note`.
    fn note(&self, note: impl FnOnce(&mut Noted) -> Result<(), AllocError>) {
        if note(&mut self.noted.lock()).is_err() {
            pr_err!("no memory for a note\n");
        }
        self.noted_more.notify_all();
    }

    /// Notes the result of an example.
    fn note_result(&self, name: &'static str, result: Result) {
        self.note(|noted| noted.results.push((name, result), GFP_KERNEL));
    }

    /// Waits for a note. Fails with `ETIMEDOUT`.
    fn wait_for<T>(&self, find: impl Fn(&Noted) -> Option<T>) -> Result<T> {
        wait_while(&self.noted_more, &self.noted, WAIT_MS, |noted| {
            find(noted).is_none()
        });
        let found = find(&self.noted.lock());
        found.ok_or(ETIMEDOUT)
    }

    /// Waits until both ends of so many connections are established.
    fn wait_established(&self, connections: usize) -> Result {
        self.wait_for(|noted| {
            let is_end = |result: &&(&str, Result)| result.0 == "established";
            let ends = noted.results.iter().filter(is_end).count();
            (ends == 2 * connections && noted.accepted.len() == connections).then_some(())
        })
    }
}

/// Waits until both ends of the second connection of a test are established.
fn wait_established() -> Result {
    test().ok_or(ENODEV)?.wait_established(2)
}

/// Connects a client.
fn connect(loopback: &Loopback) -> Result<CmId<MyConnection>> {
    UnresolvedId::new(&loopback.net, CLIENT_PARAMETERS, MyConnection::new())?.resolve_address(
        None,
        loopback.server,
        2000,
    )
}

/// The connection of a test. Its example takes values from here.
struct Here<'a> {
    loopback: &'a Loopback,
    test: &'a Test,
    may_wait: &'a MayWait,
    id: &'a CmId<MyConnection>,
    client: &'a MessageQueuePair<MyEndpoint>,
    server: &'a MessageQueuePair<MyEndpoint>,
}

impl<'a> Here<'a> {
    fn device(&self) -> &'a Device {
        self.client.domain().device()
    }

    /// Returns a second client, which is connected.
    fn second(&self) -> Result<CmId<MyConnection>> {
        let id = connect(self.loopback)?;
        self.test.wait_established(2)?;
        Ok(id)
    }

    /// Sends a message that the server answers.
    fn ping(&self) -> Result<PostedSend> {
        self.client.send(1024, None, |message| {
            message.append(4)?.copy_from_slice(b"ping");
            Ok(())
        })
    }

    /// Waits until a handler has run the example. Returns its result.
    fn noted(&self, name: &'static str) -> Result {
        self.ping()?;
        self.test
            .wait_for(|noted| Some(noted.results.iter().find(|result| result.0 == name)?.1))?
    }

    /// Gives the server access to memory of the client. Also returns its rkey and its offset.
    fn registration(
        &self,
        access: RemoteAccess,
    ) -> Result<(Registration<'a, MyEndpoint>, u32, u64)> {
        let mut call = Registration::new(self.client, access, LEN, 256)?;
        call.register(1)?;
        let piece = call.pieces().next().ok_or(ENOMEM)?;
        Ok((call, piece.rkey, piece.offset))
    }

    /// Has the server invalidate an rkey of the client.
    fn invalidated(&self) -> Result<(Registration<'a, MyEndpoint>, Arrival)> {
        let (call, rkey, _) = self.registration(RemoteAccess::Read)?;
        self.server.send(1024, Some(rkey), |message| {
            message.append(4)?.copy_from_slice(b"done");
            Ok(())
        })?;
        let arrival = self.test.wait_for(|noted| noted.invalidated)?;
        Ok((call, arrival))
    }

    /// Has the server transfer from or to memory of the client.
    fn with_remote(
        &self,
        access: RemoteAccess,
        example: fn((&MessageQueuePair<MyEndpoint>, u32, u64)) -> Result,
    ) -> Result {
        let (mut call, rkey, offset) = self.registration(access)?;
        let result = example((self.server, rkey, offset));
        let invalidated = call.invalidate(None);
        result.and(invalidated.map(drop))
    }
}

/// Calls `run` with a connection of its own.
fn with_connection(run: impl FnOnce(&Here<'_>) -> Result) -> Result {
    let loopback = &*loopback()?;
    let test = Test::new()?;
    *loopback.test.lock() = Some(test.clone());
    // SAFETY: KUnit calls this in a task of the test, for which no completion and no handler waits.
    let may_wait = unsafe { MayWait::new() };
    let result = run_connected(loopback, &test, &may_wait, run);
    *loopback.test.lock() = None;
    // The ids keep the test.
    let accepted = core::mem::take(&mut test.noted.lock().accepted);
    drop(accepted);
    result.inspect_err(|error| pr_err!("{error:?}\n"))
}

fn run_connected(
    loopback: &Loopback,
    test: &Test,
    may_wait: &MayWait,
    run: impl FnOnce(&Here<'_>) -> Result,
) -> Result {
    let id = &connect(loopback)?;
    test.wait_established(1)?;
    let accepted = test.noted.lock().accepted.first().map(CmId::queue_pair);
    let (client, server) = (id.queue_pair(), accepted.ok_or(ENODEV)?);
    let client = &*client.access(may_wait).ok_or(ENODEV)?;
    let server = &*server.access(may_wait).ok_or(ENODEV)?;
    run(&Here {
        loopback,
        test,
        may_wait,
        id,
        client,
        server,
    })
}

/// Takes a text, and forgets it.
struct Text;

impl fmt::Write for Text {
    fn write_str(&mut self, _text: &str) -> fmt::Result {
        Ok(())
    }
}

struct MyEndpoint(Option<Arc<Test>>);

impl MyEndpoint {
    fn new() -> Result<Arc<Self>> {
        Ok(Arc::new(Self(test()), GFP_KERNEL)?)
    }

    fn setup() -> Result<Setup<Self>> {
        Ok(Setup {
            capacity: capacity()?,
            limits: TimeLimits {
                operation_ms: 5000,
                flush_ms: 5000,
            },
            handler: Self::new()?,
        })
    }
}

impl FaultHandler for MyEndpoint {
    fn queue_pair_failed(_this: ArcBorrow<'_, Self>, _fault: QueuePairFault) {}
}

impl CompletionHandler for MyEndpoint {
    fn arrived(
        this: ArcBorrow<'_, Self>,
        context: &CompletionContext<'_, Self>,
        bytes: &[u8],
        arrival: &Arrival,
    ) -> bool {
        let Some(test) = &this.0 else {
            return true;
        };
        test.note_result("arrival_4", arrival_4::example((bytes, arrival)));
        if bytes == b"ping" {
            test.note_result(
                "completion_context_1",
                completion_context_1::example(context),
            );
        }
        if arrival.invalidated.is_some() {
            test.note(|noted| {
                noted.invalidated = Some(*arrival);
                Ok(())
            });
        }
        true
    }

    fn queue_pair_event(_this: ArcBorrow<'_, Self>, _event: &'static CStr) {}
}

struct MyConnection {
    queue: Option<Arc<WorkQueue>>,
    test: Option<Arc<Test>>,
}

impl MyConnection {
    fn new() -> Self {
        Self {
            queue: loopback().ok().map(|loopback| loopback.queue.clone()),
            test: test(),
        }
    }
}

impl ConnectionHandler for MyConnection {
    type QueuePair = MessageQueuePair<MyEndpoint>;

    fn event(&self, id: &mut HandlerId<'_, MessageQueuePair<MyEndpoint>>, event: CmEvent<'_>) {
        let Some(test) = &self.test else {
            return;
        };
        let is_established = matches!(event, CmEvent::Established { .. });
        if is_established {
            test.note_result("id_ref_1", id_ref_1::example((id, &mut Text)));
            test.note_result("device_2", device_2::example((id, &mut Text)));
            test.note_result("device_name_1", device_name_1::example((id, &mut Text)));
            test.note_result("transport_1", transport_1::example((id, b"private data")));
        }
        test.note_result("event_1", event_1::example((id, event)));
        if is_established {
            test.note_result("established", Ok(()));
        }
    }
}

impl ClientHandler for MyConnection {
    fn connect_queue(&self) -> &WorkQueue {
        self.queue.as_ref().expect("the module is loaded")
    }

    fn connect(&self, id: ResolvedId<'_, MessageQueuePair<MyEndpoint>>) {
        struct Client;
        impl resolved_id_1::Example for Client {}
        resolved_id_1::Example::connect(&Client, id);
    }
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

impl MyWork {
    fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self { work <- new_work!("MyWork::work") }),
            GFP_KERNEL,
        )
    }
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

impl MyDelayedWork {
    fn new(loopback: &Loopback) -> Result<Arc<Self>> {
        let queue = loopback.queue.clone();
        Arc::pin_init(
            pin_init!(Self {
                queue,
                work <- new_delayed_work!("MyDelayedWork::work"),
            }),
            GFP_KERNEL,
        )
    }
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
