// SPDX-License-Identifier: GPL-2.0

//! The items that the examples in the documentation of src/base and src/rdma take as given: the
//! user's own types, and values of the layer's types. scripts/checks/examples compiles this file
//! with the examples, as a module of src/rdma.
//!
//! Each KUnit test connects a client to a server on the same device, and runs an example there.
//! The handlers of both ends run those examples that only they can.

use core::{
    fmt,
    marker::PhantomData,
    net::{
        Ipv4Addr,
        SocketAddr, //
    },
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    alloc::AllocError,
    bindings::{
        scatterlist,
        sg_init_table, //
    },
    dma::DataDirection,
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi::c_int,
    impl_has_delayed_work,
    impl_has_work,
    new_condvar,
    new_mutex,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            AtomicFlag,
            Relaxed, //
        },
        global_lock,
        Arc,
        ArcBorrow,
        CondVar,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta,
        Instant,
        Monotonic, //
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

const PARAMETERS: Parameters = parameters_1::CHOSEN;

const CLIENT_PARAMETERS: ClientParameters = ClientParameters {
    common: PARAMETERS,
    retry_count: 6,
    reads: false,
};

const LIMITS: TimeLimits = TimeLimits {
    operation_ms: 5000,
    flush_ms: 5000,
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

/// The notes for one test. The handlers of its connections make them.
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

    /// Waits until the result of an example is noted, and returns it.
    fn wait_result(&self, name: &str) -> Result {
        self.wait_for(|noted| Some(noted.results.iter().find(|result| result.0 == name)?.1))?
    }

    /// Waits until both ends of so many connections are established.
    fn wait_established(&self, connections: usize) -> Result {
        self.wait_for(|noted| {
            (noted.ends() == 2 * connections && noted.accepted.len() == connections).then_some(())
        })
    }

    /// Waits until the client of a second connection is established. The handler of its server is
    /// one that notes nothing.
    fn wait_client(&self) -> Result {
        self.wait_for(|noted| (noted.ends() == 3).then_some(()))
    }
}

impl Noted {
    /// Returns how many ends of connections were established.
    fn ends(&self) -> usize {
        let is_end = |result: &&(&str, Result)| result.0 == "established";
        self.results.iter().filter(is_end).count()
    }
}

/// Notes that the example called `name` has run, for the test that is running.
fn note(name: &'static str) {
    if let Some(test) = test() {
        test.note_result(name, Ok(()));
    }
}

/// Whether the work that owns its queue has the last reference.
static RELEASED: AtomicFlag = AtomicFlag::new(false);

/// Waits until the condition holds. Fails with `ETIMEDOUT`.
fn wait_until(holds: impl Fn() -> bool) -> Result {
    for _ in 0..WAIT_MS / 10 {
        if holds() {
            return Ok(());
        }
        fsleep(Delta::from_millis(10));
    }
    Err(ETIMEDOUT)
}

/// Waits until both ends of the second connection of a test are established.
fn wait_established() -> Result {
    test().ok_or(ENODEV)?.wait_established(2)
}

/// Connects a client.
fn connect(loopback: &Loopback) -> Result<CmId<MyConnection>> {
    connect_by(loopback, MyConnection::new(), loopback.server)
}

/// Connects a client, which has this `handler`, to `address`.
fn connect_by<H: ClientHandler>(
    loopback: &Loopback,
    handler: H,
    address: SocketAddr,
) -> Result<CmId<H>> {
    UnresolvedId::new(&loopback.net, CLIENT_PARAMETERS, handler)?
        .resolve_address(None, address, 2000)
}

/// Returns an operation that is never posted.
fn operation() -> Result<Pin<KBox<Cqe<Operation<MyEndpoint>>>>> {
    // SAFETY: It is not posted, so there are no completions.
    let operation = unsafe { Operation::new(&MyEndpoint::new()?, false) };
    KBox::pin_init(operation, GFP_KERNEL)
}

/// An id of rdma_cm that is bound to a device.
///
/// # Invariants
///
/// The id is valid, and this owns it.
struct BoundId(NonNull<bindings::rdma_cm_id>);

impl BoundId {
    fn new(loopback: &Loopback) -> Result<Self> {
        // SAFETY: The namespace is valid, and the name static. The handler expects no context.
        let id = unsafe {
            bindings::__rdma_create_kernel_id(
                loopback.net.as_ptr(),
                Some(ignore_event),
                ptr::null_mut(),
                bindings::rdma_ucm_port_space_RDMA_PS_TCP,
                bindings::ib_qp_type_IB_QPT_RC,
                c"examples".as_char_ptr(),
            )
        };
        // INVARIANT: The C function returned no error, so a new id.
        let this = Self(NonNull::new(from_err_ptr(id)?).ok_or(ENOMEM)?);
        let mut address = RawAddress::from(SocketAddr::new(loopback.server.ip(), 0));
        // SAFETY: By the type invariant the id is valid; the address is copied.
        to_result(unsafe { bindings::rdma_bind_addr(this.0.as_ptr(), address.as_mut_ptr()) })?;
        Ok(this)
    }
}

impl Drop for BoundId {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this owns the id. Its user has destroyed the queue pair.
        unsafe { bindings::rdma_destroy_id(self.0.as_ptr()) };
    }
}

extern "C" fn ignore_event(
    _id: *mut bindings::rdma_cm_id,
    _event: *mut bindings::rdma_cm_event,
) -> c_int {
    0
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
        self.test.wait_result(name)
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

    /// Returns the address of a server of the test itself. The ports of two tests differ, because
    /// the listener of the first one may still be there.
    fn address(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.loopback.server.ip(), port)
    }

    /// Makes a server at `port` that has `accept` accept the requests, and connects a client to it.
    fn serve<F>(
        &self,
        port: u16,
        accept: F,
    ) -> Result<(CmListener<Acceptor<F>>, CmId<MyConnection>)>
    where
        F: Fn(PendingRequest<'_>) -> Result + Clone + Send + Sync + 'static,
    {
        let (hold, net) = (&self.loopback.hold, &self.loopback.net);
        let handler = Acceptor {
            accept,
            queue: self.loopback.queue.clone(),
        };
        let listener = CmListener::new(hold, net, c"examples", handler, self.address(port), 8)?;
        let client = connect_by(self.loopback, MyConnection::new(), self.address(port))?;
        Ok((listener, client))
    }

    /// Returns what the queue pair of an id is made of.
    fn queue_pair_parts(
        &self,
    ) -> Result<(
        Arc<ProtectionDomain>,
        CompletionQueue,
        bindings::ib_qp_init_attr,
    )> {
        let attributes = bindings::ib_qp_init_attr {
            cap: bindings::ib_qp_cap {
                max_send_wr: 2,
                max_recv_wr: 2,
                max_send_sge: 1,
                max_recv_sge: 1,
                ..Default::default()
            },
            sq_sig_type: bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
            qp_type: bindings::ib_qp_type_IB_QPT_RC,
            ..Default::default()
        };
        let domain = ProtectionDomain::new(self.device(), c"examples")?;
        let completions = CompletionQueue::new(self.device(), 4, c"examples")?;
        Ok((domain, completions, attributes))
    }
}

/// The tests of examples that are items, or that take what has to be destroyed in an order.
impl Here<'_> {
    /// A peer is rejected. Afterwards the handler drops its listener.
    fn cm_listener_1(&self) -> Result {
        let place = Arc::pin_init(new_mutex!(None, "cm_listener_1"), GFP_KERNEL)?;
        let server = cm_listener_1::MyServer {
            listener: place.clone(),
        };
        let (hold, net) = (&self.loopback.hold, &self.loopback.net);
        let address = self.address(2002);
        {
            let mut listener = place.lock();
            *listener = Some(CmListener::new(hold, net, c"examples", server, address, 8)?);
        }
        let client = connect_by(self.loopback, MyConnection::new(), address);
        let result = client
            .and_then(|_client| self.test.wait_result("rejected"))
            .and_then(|()| wait_until(|| place.lock().is_none()));
        // The handler of the listener has the listener.
        let left = place.lock().take();
        drop(left);
        result
    }

    /// A client disconnects, whereupon the server's handler drops the server's id.
    fn event_2(&self) -> Result {
        let place = Arc::pin_init(new_mutex!(None, "event_2"), GFP_KERNEL)?;
        let of_server = place.clone();
        let accept = move |request: PendingRequest<'_>| -> Result {
            let handler = event_2::MyConnection {
                id: of_server.clone(),
            };
            let id = request.accept(PARAMETERS, handler, MyEndpoint::setup()?, b"")?;
            *of_server.lock() = Some(id);
            Ok(())
        };
        let (_listener, client) = self.serve(2003, accept)?;
        let connected = self
            .test
            .wait_client()
            .and_then(|()| wait_until(|| place.lock().is_some()));
        drop(client);
        let result = connected.and_then(|()| wait_until(|| place.lock().is_none()));
        // The handler of the id has the id.
        let left = place.lock().take();
        drop(left);
        result
    }

    /// A client connects.
    fn event_3(&self) -> Result {
        let client = event_3::MyClient {
            id: KBox::pin_init(new_mutex!(None, "event_3"), GFP_KERNEL)?,
            queue: self.loopback.queue.clone(),
        };
        let _id = connect_by(self.loopback, client, self.loopback.server)?;
        self.test.wait_established(2)
    }

    /// A client is established only after its handler has resolved the route.
    fn handler_id_1(&self) -> Result {
        let client = MyConnection {
            resolves_by_handler_id_1: true,
            ..MyConnection::new()
        };
        let _id = connect_by(self.loopback, client, self.loopback.server)?;
        self.test.wait_established(2)
    }

    /// A client sends a message, which the server sends back.
    fn completion_handler_1(&self) -> Result {
        let place = Arc::pin_init(new_mutex!(None, "completion_handler_1"), GFP_KERNEL)?;
        let of_server = place.clone();
        let accept = move |request: PendingRequest<'_>| -> Result {
            let setup = Setup {
                capacity: capacity()?,
                limits: LIMITS,
                handler: Arc::new(completion_handler_1::MyEndpoint, GFP_KERNEL)?,
            };
            let id = request.accept(PARAMETERS, ConnectionOf(PhantomData), setup, b"")?;
            *of_server.lock() = Some(id);
            Ok(())
        };
        let (_listener, client) = self.serve(2004, accept)?;
        self.test.wait_client()?;
        let queue_pair = client.queue_pair();
        let queue_pair = queue_pair.access(self.may_wait).ok_or(ENODEV)?;
        queue_pair.send(1024, None, |message| {
            message.append(4)?.copy_from_slice(b"echo");
            Ok(())
        })?;
        self.test.wait_result("echo")
    }

    /// A handler that takes longer for a message than an operation may take. The device ends the
    /// operation meanwhile.
    fn beside_message_1(&self) -> Result {
        let place = Arc::pin_init(new_mutex!(None, "beside_message_1"), GFP_KERNEL)?;
        let of_server = place.clone();
        let accept = move |request: PendingRequest<'_>| -> Result {
            let setup = Setup {
                capacity: capacity()?,
                limits: TimeLimits {
                    operation_ms: 100,
                    flush_ms: 1000,
                },
                handler: Arc::new(SlowEndpoint, GFP_KERNEL)?,
            };
            let id = request.accept(PARAMETERS, ConnectionOf(PhantomData), setup, b"")?;
            *of_server.lock() = Some(id);
            note("accepted");
            Ok(())
        };
        let (_listener, client) = self.serve(2006, accept)?;
        self.test.wait_client()?;
        let queue_pair = client.queue_pair();
        queue_pair
            .access(self.may_wait)
            .ok_or(ENODEV)?
            .send(1024, None, |message| {
                message.append(4)?.copy_from_slice(b"slow");
                Ok(())
            })?;
        self.test.wait_result("accepted")?;
        self.test.wait_result("slow")?;
        let id = place.lock().take().ok_or(ENODEV)?;
        let server = id.queue_pair();
        let server = server.access(self.may_wait).ok_or(ENODEV)?;
        let mut call = Registration::new(&server, RemoteAccess::Read, LEN, 256)?;
        let begun = Instant::<Monotonic>::now();
        let _ = call.register(1);
        if server.is_abandoned() || begun.elapsed().as_millis() < 1100 {
            return Err(EBADMSG);
        }
        Ok(())
    }

    /// The last reference to a queue is dropped by its own work.
    fn work_queue_4(&self) -> Result {
        let queue = WorkQueue::new(&self.loopback.hold, c"my_owned_queue")?;
        let of_work = queue.clone();
        let work = Arc::pin_init(
            pin_init!(work_queue_4::MyOwner {
                queue: of_work,
                work <- new_work!("MyOwner::work"),
            }),
            GFP_KERNEL,
        )?;
        RELEASED.store(false, Relaxed);
        let _ = queue.enqueue(work);
        drop(queue);
        RELEASED.store(true, Relaxed);
        self.test.wait_result("work_queue_4")
    }

    /// A work runs.
    fn work_queue_5(&self) -> Result {
        let queue_pair = self.id.queue_pair();
        let work = Arc::pin_init(
            pin_init!(work_queue_5::MyWaitingWork {
                queue_pair,
                work <- new_work!("MyWaitingWork::work"),
            }),
            GFP_KERNEL,
        )?;
        let _ = self.loopback.queue.enqueue::<_, 0>(work);
        self.test.wait_result("work_queue_5")
    }

    /// The device describes memory, and lets go of it.
    fn region_1(&self) -> Result {
        let mut memory = Memory::new();
        memory.grow(BLOCK)?;
        let mut list = KVec::with_capacity(1, GFP_KERNEL)?;
        list.push(scatterlist::default(), GFP_KERNEL)?;
        // SAFETY: The list has one entry, which is valid for writes.
        unsafe { sg_init_table(list.as_mut_ptr(), 1) };
        for (entry, piece) in list.iter_mut().zip(memory.pieces_mut(0, BLOCK)) {
            // SAFETY: The entry is valid, and the bytes come from kmalloc.
            unsafe { bindings::shim_sg_set(entry, piece.as_mut_ptr().cast(), piece.len() as u32) };
        }
        let pages = (BLOCK / PAGE_SIZE) as u32;
        let result = region_1::example((self.client, 1), (pages, list));
        // The device may still use the memory if the example fails.
        if result.is_err() {
            memory.leak();
        }
        result
    }

    /// A queue pair that is not connected is destroyed.
    fn queue_pair_1(&self) -> Result {
        let id = BoundId::new(self.loopback)?;
        let (domain, completions, attributes) = self.queue_pair_parts()?;
        queue_pair_1::example((id.0, domain), (completions, attributes))
    }

    /// A Receive is flushed, which completes it.
    fn cqe_1(&self) -> Result {
        let id = BoundId::new(self.loopback)?;
        let (domain, completions, attributes) = self.queue_pair_parts()?;
        let request = KBox::pin_init(Cqe::new(cqe_1::my_request()), GFP_KERNEL)?;
        // SAFETY: The id has no queue pair, and is destroyed after this one: `id` is dropped when
        // this returns. The attributes have no pointers. The completion queue is of the device of
        // the domain.
        let new = unsafe { QueuePair::new(id.0, domain, completions, attributes, c"examples") };
        let queue_pair = new?;
        let mut receive = bindings::ib_recv_wr::default();
        receive.__bindgen_anon_1.wr_cqe = request.entry();
        // SAFETY: The queue pair is valid. The completion entry stays until the queue pair is
        // destroyed, or for ever. The device copies the Work Request.
        let posted = to_result(unsafe { bindings::shim_post_recv(queue_pair.as_ptr(), &receive) });
        queue_pair.drain();
        if !queue_pair.destroy() {
            core::mem::forget(request);
        }
        posted?;
        self.test.wait_result("cqe_1")
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
            limits: LIMITS,
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
        if bytes == b"echo" {
            test.note_result("echo", Ok(()));
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
    /// Which example resolves the route.
    resolves_by_handler_id_1: bool,
}

impl MyConnection {
    fn new() -> Self {
        Self {
            queue: loopback().ok().map(|loopback| loopback.queue.clone()),
            test: test(),
            resolves_by_handler_id_1: false,
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
        if let CmEvent::Rejected { .. } = event {
            test.note_result("rejected", Ok(()));
        }
        if self.resolves_by_handler_id_1 && matches!(event, CmEvent::AddressResolved) {
            struct Client;
            impl handler_id_1::Example for Client {}
            handler_id_1::Example::event(&Client, id, event);
        } else {
            test.note_result("event_1", event_1::example((id, event)));
        }
        if is_established {
            test.note_result("established", Ok(()));
        }
    }
}

/// Does for the handler of an example what that of the other connections does.
fn note_event(id: &mut HandlerId<'_, MessageQueuePair<MyEndpoint>>, event: CmEvent<'_>) {
    MyConnection::new().event(id, event);
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

/// The handler of a server's connections that have the endpoint `C`.
struct ConnectionOf<C>(PhantomData<C>);

impl<C: CompletionHandler> ConnectionHandler for ConnectionOf<C> {
    type QueuePair = MessageQueuePair<C>;

    fn event(&self, _id: &mut HandlerId<'_, Self::QueuePair>, _event: CmEvent<'_>) {}
}

/// An endpoint that takes long for a message.
struct SlowEndpoint;

impl FaultHandler for SlowEndpoint {
    fn queue_pair_failed(_this: ArcBorrow<'_, Self>, _fault: QueuePairFault) {}
}

impl CompletionHandler for SlowEndpoint {
    fn arrived(
        _this: ArcBorrow<'_, Self>,
        _context: &CompletionContext<'_, Self>,
        _bytes: &[u8],
        _arrival: &Arrival,
    ) -> bool {
        note("slow");
        fsleep(Delta::from_millis(4000));
        true
    }

    fn queue_pair_event(_this: ArcBorrow<'_, Self>, _event: &'static CStr) {}
}

/// Has a work accept each request by `accept`.
struct Acceptor<F> {
    accept: F,
    queue: Arc<WorkQueue>,
}

impl<F> ListenHandler for Acceptor<F>
where
    F: Fn(PendingRequest<'_>) -> Result + Clone + Send + Sync + 'static,
{
    fn connect_request(&self, request: Request<'_>) {
        let accept = self.accept.clone();
        let deferred = request.defer(&self.queue, move |request| {
            if let Err(error) = accept(request) {
                pr_err!("not accepted: {error:?}\n");
            }
        });
        if let Err(error) = deferred {
            pr_err!("not deferred: {error:?}\n");
        }
    }

    fn device_removed(&self) {}
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
