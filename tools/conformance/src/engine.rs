// SPDX-License-Identifier: GPL-2.0

//! The engine: reliable connections by librdmacm and libibverbs, with any octets.
//!
//! Everything here is mechanism: it connects or accepts with any private data, sends any octets,
//! exposes memory and reaches the peer's. It knows nothing of RPC-over-RDMA. Each wait has a limit.
//! `unsafe` is confined to this file.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::ffi::CStr;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use rdma_mummy_sys as sys;
use sys::rdma_cm_event_type as cm;

use crate::trace::Trace;

/// The private data and the limits that a connection offers, and the resources behind it.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The private data of the REQ or the REP, octet for octet.
    pub private: Vec<u8>,
    /// How many Receives are posted.
    pub receives: usize,
    /// The length of each Receive, in octets.
    pub receive_size: usize,
    /// Whether the Receives are posted before the connection is made. Otherwise `post_receives`
    /// posts them.
    pub posts_receives: bool,
    /// How many RDMA Reads may be under way in each direction.
    pub reads: u8,
    /// How often the peer sends a message again that finds no Receive; 7 is without a limit.
    pub rnr_retries: u8,
    /// The local address of a client.
    pub source: Option<IpAddr>,
    /// How long a client's connection set-up may take.
    pub limit: Duration,
}

impl Default for Offer {
    fn default() -> Self {
        Offer {
            private: Vec::new(),
            receives: 64,
            // An ordinary user may lock 8 MiB of memory.
            receive_size: 8192,
            posts_receives: true,
            reads: 4,
            rnr_retries: 7,
            source: None,
            limit: Duration::from_secs(30),
        }
    }
}

/// Why there is no connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Failure {
    /// The peer, or its CM, rejected the REQ. The number is the reason of the CM.
    Rejected(i32),
    /// Nothing listens at the peer's host (over iWARP, whose TCP says so).
    Refused,
    /// There was no answer in time. The text says to what.
    Timeout(&'static str),
    /// RDMA_CM_EVENT_CONNECT_ERROR of librdmacm itself. It reports that, too, if the peer rejects or
    /// disconnects behind its REP, and drops the event that says so.
    ConnectError,
    /// This host could not register memory.
    Unregistered(String),
    /// Another event or error, in words.
    Other(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Rejected(reason) => {
                write!(f, "the peer rejected the connection: ")?;
                match reason {
                    3 => write!(f, "no resources"),
                    8 => write!(f, "invalid service ID"),
                    28 => write!(f, "consumer defined"),
                    other => write!(f, "reason {other}"),
                }
            }
            Failure::Refused => write!(f, "the peer's host refused the connection"),
            Failure::Timeout(what) => write!(f, "{what}: no answer in time"),
            Failure::ConnectError => write!(
                f,
                "RDMA_CM_EVENT_CONNECT_ERROR: librdmacm cannot use the peer's REP, or a REJ or DREQ \
                 followed it"
            ),
            Failure::Unregistered(why) | Failure::Other(why) => write!(f, "{why}"),
        }
    }
}

fn os_error(what: &str) -> Failure {
    Failure::Other(format!("{what}: {}", io::Error::last_os_error()))
}

/// Fails if rdma-core is not installed.
pub fn check_libraries() -> Result<(), String> {
    for name in [c"librdmacm.so.1", c"libibverbs.so.1"] {
        // SAFETY: the name is a C string. A library that is loaded already is only counted.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY) };
        if handle.is_null() {
            return Err(format!(
                "{} cannot be loaded: install rdma-core (on Debian: apt install librdmacm1 \
                 ibverbs-providers)",
                name.to_string_lossy()
            ));
        }
    }
    Ok(())
}

/// Fails if this process cannot use rdma_cm.
pub fn check_access() -> Result<(), String> {
    match Channel::new() {
        Ok(_) => Ok(()),
        Err(why) => Err(format!(
            "{why}: programs use rdma_cm by /dev/infiniband/rdma_cm, which the module rdma_ucm \
             makes: modprobe rdma_ucm"
        )),
    }
}

/// An event channel of librdmacm.
struct Channel(*mut sys::rdma_event_channel);

// SAFETY: librdmacm may be called from any thread. A `Channel` has one owner.
unsafe impl Send for Channel {}

impl Channel {
    fn new() -> Result<Self, Failure> {
        // SAFETY: takes nothing.
        let raw = unsafe { sys::rdma_create_event_channel() };
        if raw.is_null() {
            return Err(os_error("rdma_create_event_channel"));
        }
        let channel = Channel(raw);
        set_nonblocking(channel.fd());
        Ok(channel)
    }

    fn fd(&self) -> i32 {
        // SAFETY: the channel exists until `self` is dropped.
        unsafe { (*self.0).fd }
    }

    /// Returns the next event, if there is one.
    fn next(&self) -> Option<Event> {
        let mut raw = ptr::null_mut();
        // SAFETY: the channel exists, and `raw` is where the event is put.
        if unsafe { sys::rdma_get_cm_event(self.0, &mut raw) } != 0 {
            return None;
        }
        // SAFETY: the event is valid until it is acknowledged below.
        let event = unsafe { &*raw };
        let mut private = Vec::new();
        if [
            cm::RDMA_CM_EVENT_CONNECT_REQUEST,
            cm::RDMA_CM_EVENT_ESTABLISHED,
            cm::RDMA_CM_EVENT_REJECTED,
        ]
        .contains(&event.event)
        {
            // SAFETY: these events have parameters of a connection.
            let parameters = unsafe { event.param.conn };
            if !parameters.private_data.is_null() {
                // SAFETY: that many octets are there until the event is acknowledged.
                private = unsafe {
                    std::slice::from_raw_parts(
                        parameters.private_data.cast::<u8>(),
                        parameters.private_data_len.into(),
                    )
                }
                .to_vec();
            }
        }
        let found = Event {
            what: event.event,
            status: event.status,
            id: event.id,
            private,
        };
        // SAFETY: the event is acknowledged once, and not used afterwards.
        unsafe { sys::rdma_ack_cm_event(raw) };
        Some(found)
    }

    fn wait(&self, until: Instant) -> Option<Event> {
        loop {
            if let Some(event) = self.next() {
                return Some(event);
            }
            if interrupted() || !wait_readable(&[self.fd()], until) {
                return None;
            }
        }
    }

    /// Waits for an event of the kind `wanted`.
    fn expect(&self, wanted: u32, until: Instant) -> Result<Event, Failure> {
        let event = self.wait(until).ok_or(Failure::Timeout(match wanted {
            cm::RDMA_CM_EVENT_ADDR_RESOLVED => "resolving the address",
            cm::RDMA_CM_EVENT_ROUTE_RESOLVED => "resolving the route",
            _ => "REQ",
        }))?;
        if event.what == wanted {
            return Ok(event);
        }
        if event.what == cm::RDMA_CM_EVENT_REJECTED {
            return Err(Failure::Rejected(event.status));
        }
        if event.status == -libc::ETIMEDOUT {
            return Err(Failure::Timeout(match event.what {
                cm::RDMA_CM_EVENT_ADDR_ERROR => "resolving the address",
                cm::RDMA_CM_EVENT_ROUTE_ERROR => "resolving the route",
                _ => "REQ",
            }));
        }
        // The kernel's own event has the errno of its cause.
        if (event.what, event.status) == (cm::RDMA_CM_EVENT_CONNECT_ERROR, -1) {
            return Err(Failure::ConnectError);
        }
        Err(Failure::Other(format!(
            "{}, status {}",
            event_name(event.what),
            event.status
        )))
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: all ids of the channel have been destroyed: they are dropped before it.
        unsafe { sys::rdma_destroy_event_channel(self.0) };
    }
}

/// An event, copied.
struct Event {
    what: u32,
    status: i32,
    id: *mut sys::rdma_cm_id,
    private: Vec<u8>,
}

fn event_name(event: u32) -> String {
    // SAFETY: returns a static string for any number, or NULL.
    let name = unsafe { sys::rdma_event_str(event) };
    if name.is_null() {
        return format!("event {event}");
    }
    // SAFETY: it is a C string.
    unsafe { CStr::from_ptr(name) }
        .to_string_lossy()
        .into_owned()
}

fn status_name(status: u32) -> String {
    // SAFETY: returns a static string for any number, or NULL.
    let name = unsafe { sys::ibv_wc_status_str(status) };
    if name.is_null() {
        return format!("status {status}");
    }
    // SAFETY: it is a C string.
    unsafe { CStr::from_ptr(name) }
        .to_string_lossy()
        .into_owned()
}

fn set_nonblocking(fd: i32) {
    // SAFETY: changes a flag of an open file.
    unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) };
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn interrupt(_: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Whether SIGINT or SIGTERM has arrived, after `catch_signals`. Then every wait in the engine
/// returns as if its time had passed.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Makes SIGINT and SIGTERM set a flag (`interrupted`) in place of ending the program at once.
pub fn catch_signals() {
    let handler = interrupt as extern "C" fn(libc::c_int) as libc::sighandler_t;
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler only stores to an atomic variable.
        unsafe { libc::signal(signal, handler) };
    }
}

/// Makes a write to a pipe without a reader end the program by SIGPIPE. Without this, `print!`
/// panics.
pub fn end_with_pipes() {
    // SAFETY: no thread has been started yet. Sockets do not raise the signal.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Ends a process and its children. It leads a process group.
pub fn kill_group(leader: u32) {
    if let Ok(leader) = i32::try_from(leader) {
        // SAFETY: takes numbers only.
        unsafe { libc::kill(-leader, libc::SIGKILL) };
    }
}

/// Waits until one of the files is readable. Returns false when the time has passed.
pub fn wait_readable(files: &[i32], until: Instant) -> bool {
    let Some(left) = until.checked_duration_since(Instant::now()) else {
        return false;
    };
    let mut polled: Vec<libc::pollfd> = files
        .iter()
        .map(|&fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let milliseconds = i32::try_from(left.as_millis()).unwrap_or(i32::MAX).max(1);
    // SAFETY: the array has that many elements.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as u64, milliseconds) };
    Instant::now() < until || polled.iter().any(|file| file.revents != 0)
}

/// A socket address in the form of C.
struct Address(libc::sockaddr_storage);

impl Address {
    fn new(address: SocketAddr) -> Self {
        // SAFETY: all zeros are a valid `sockaddr_storage`.
        let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let place = ptr::addr_of_mut!(storage);
        match address {
            SocketAddr::V4(v4) => {
                let raw = libc::sockaddr_in {
                    sin_family: libc::AF_INET as u16,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr {
                        s_addr: u32::from_ne_bytes(v4.ip().octets()),
                    },
                    sin_zero: [0; 8],
                };
                // SAFETY: a `sockaddr_storage` has room for every address.
                unsafe { place.cast::<libc::sockaddr_in>().write(raw) };
            }
            SocketAddr::V6(v6) => {
                let raw = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as u16,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: 0,
                    sin6_addr: libc::in6_addr {
                        s6_addr: v6.ip().octets(),
                    },
                    sin6_scope_id: v6.scope_id(),
                };
                // SAFETY: a `sockaddr_storage` has room for every address.
                unsafe { place.cast::<libc::sockaddr_in6>().write(raw) };
            }
        }
        Address(storage)
    }

    fn as_ptr(&mut self) -> *mut sys_sockaddr {
        ptr::addr_of_mut!(self.0).cast()
    }
}

/// Connects over TCP from a port below 1024, which only root may use.
pub fn connect_privileged(to: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let (family, any) = match to {
        SocketAddr::V4(_) => (libc::AF_INET, IpAddr::from([0; 4])),
        SocketAddr::V6(_) => (libc::AF_INET6, IpAddr::from([0; 16])),
    };
    let checked = |status: i32| match status {
        -1 => Err(io::Error::last_os_error()),
        other => Ok(other),
    };
    let taken = [io::ErrorKind::AddrInUse, io::ErrorKind::AddrNotAvailable];
    for port in (512..1024).rev() {
        // SAFETY: any numbers may be passed.
        let fd = unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
        // SAFETY: the descriptor is open, and nothing else owns it.
        let stream = TcpStream::from(unsafe { OwnedFd::from_raw_fd(checked(fd)?) });
        let fd = stream.as_raw_fd();
        // It limits connect(), too.
        stream.set_write_timeout(Some(limit))?;
        let (mut from, mut peer) = (Address::new(SocketAddr::new(any, port)), Address::new(to));
        let length = std::mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        let (from, peer) = (from.as_ptr().cast(), peer.as_ptr().cast());
        // SAFETY: the address outlives the call, and has that length.
        let bound = checked(unsafe { libc::bind(fd, from, length) });
        // SAFETY: the address outlives the call, and has that length.
        match bound.and_then(|_| checked(unsafe { libc::connect(fd, peer, length) })) {
            Ok(_) => return Ok(stream),
            Err(why) if !taken.contains(&why.kind()) => return Err(why),
            Err(_) => (),
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

#[allow(non_camel_case_types)]
type sys_sockaddr = libc::sockaddr;

/// An id of librdmacm.
struct Id(*mut sys::rdma_cm_id);

// SAFETY: librdmacm may be called from any thread. An `Id` has one owner.
unsafe impl Send for Id {}

impl Id {
    fn new(channel: &Channel) -> Result<Self, Failure> {
        let mut raw = ptr::null_mut();
        // SAFETY: the channel outlives the id.
        let failed = unsafe {
            sys::rdma_create_id(
                channel.0,
                &mut raw,
                ptr::null_mut(),
                sys::rdma_port_space::RDMA_PS_TCP,
            )
        };
        if failed != 0 {
            return Err(os_error("rdma_create_id"));
        }
        Ok(Id(raw))
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        // SAFETY: the id exists, and its queue pair has been destroyed. All its events have been
        // acknowledged.
        unsafe { sys::rdma_destroy_id(self.0) };
    }
}

/// Registered memory.
struct Region {
    buffer: Box<[u8]>,
    raw: *mut sys::ibv_mr,
}

const LOCAL_WRITE: u32 = sys::ibv_access_flags::IBV_ACCESS_LOCAL_WRITE.0;
/// The peer may write to the memory.
pub const REMOTE_WRITE: u32 = sys::ibv_access_flags::IBV_ACCESS_REMOTE_WRITE.0;
/// The peer may read the memory.
pub const REMOTE_READ: u32 = sys::ibv_access_flags::IBV_ACCESS_REMOTE_READ.0;
const WINDOW_BIND: u32 = sys::ibv_access_flags::IBV_ACCESS_MW_BIND.0;

impl Region {
    fn new(pd: *mut sys::ibv_pd, octets: &[u8], access: u32) -> Result<Self, String> {
        let mut buffer = octets.to_vec();
        // Empty memory cannot be registered.
        if buffer.is_empty() {
            buffer.push(0);
        }
        let mut buffer = buffer.into_boxed_slice();
        // SAFETY: the buffer stays where it is until the region is deregistered.
        let raw = unsafe {
            sys::ibv_reg_mr(
                pd,
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                (access | LOCAL_WRITE) as i32,
            )
        };
        if raw.is_null() {
            return Err(format!(
                "ibv_reg_mr of {} octets: {}",
                buffer.len(),
                io::Error::last_os_error()
            ));
        }
        Ok(Region { buffer, raw })
    }

    fn address(&self) -> u64 {
        self.buffer.as_ptr() as u64
    }

    /// Returns octets that the device may be writing.
    fn octets(&self, start: usize, length: usize) -> Vec<u8> {
        (start..start + length)
            .map(|at| {
                // SAFETY: indexing checks the place; volatile, because the device writes there.
                unsafe { ptr::read_volatile(&self.buffer[at]) }
            })
            .collect()
    }

    fn lkey(&self) -> u32 {
        // SAFETY: the region is registered.
        unsafe { (*self.raw).lkey }
    }

    fn segment(&self, start: usize, length: usize) -> sys::ibv_sge {
        sys::ibv_sge {
            addr: self.address() + start as u64,
            length: length as u32,
            lkey: self.lkey(),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the region is registered, and nothing uses it any more.
        unsafe { sys::ibv_dereg_mr(self.raw) };
    }
}

/// The objects of a connection, destroyed when neither it nor its memory is left.
struct Objects {
    // Drop destroys the queue pair, `cq` and `completions`, then `regions`; `id` and `channel` follow.
    regions: RefCell<Vec<Region>>,
    cq: *mut sys::ibv_cq,
    completions: *mut sys::ibv_comp_channel,
    id: Id,
    channel: Channel,
}

impl Objects {
    fn qp(&self) -> *mut sys::ibv_qp {
        // SAFETY: the id exists.
        unsafe { (*self.id.0).qp }
    }

    fn pd(&self) -> *mut sys::ibv_pd {
        // SAFETY: the id exists.
        unsafe { (*self.id.0).pd }
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        if !self.qp().is_null() {
            // SAFETY: the id has a queue pair. Nothing uses it any more.
            unsafe { sys::rdma_destroy_qp(self.id.0) };
        }
        if !self.cq.is_null() {
            // SAFETY: no queue pair uses it any more, and its events are acknowledged.
            unsafe { sys::ibv_destroy_cq(self.cq) };
        }
        if !self.completions.is_null() {
            // SAFETY: no completion queue uses it any more.
            unsafe { sys::ibv_destroy_comp_channel(self.completions) };
        }
        self.regions.borrow_mut().clear();
    }
}

/// Memory that the peer may reach.
pub struct Memory {
    window: *mut sys::ibv_mw,
    region: Option<Region>,
    key: u32,
    length: usize,
    _objects: Rc<Objects>,
}

impl Memory {
    /// Returns the Steering Tag.
    pub fn key(&self) -> u32 {
        self.key
    }

    /// Returns whether the memory has a window. Over InfiniBand and RoCE, a Send can invalidate no
    /// other memory of a program.
    pub fn has_window(&self) -> bool {
        !self.window.is_null()
    }

    /// Returns where the memory begins, as the peer names it.
    pub fn offset(&self) -> u64 {
        self.region.as_ref().map_or(0, Region::address)
    }

    /// Returns the content.
    pub fn octets(&self) -> Vec<u8> {
        self.region
            .as_ref()
            .map_or_else(Vec::new, |region| region.octets(0, self.length))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.window.is_null() {
            // SAFETY: the window was allocated, and is freed once. rxe keeps the queue pair as
            // long as it exists.
            unsafe { sys::ibv_dealloc_mw(self.window) };
        }
        drop(self.region.take());
    }
}

/// A message that arrived.
#[derive(Clone, Debug)]
pub struct Message {
    pub octets: Vec<u8>,
    /// The Steering Tag that its Send invalidated.
    pub invalidated: Option<u32>,
}

/// The result of `receive`.
#[derive(Clone, Debug)]
pub enum Arrival {
    Message(Message),
    /// The connection is over, and why.
    Closed(String),
    /// Nothing arrived in time.
    Nothing,
}

/// Bits of work request ids: those without it are Receives.
const SENT: u64 = 1 << 32;
/// How many work requests may be in the send queue.
pub const SENDS: u32 = 256;

/// The end of a connection.
struct End {
    why: String,
    /// Until when work requests may still be flushed.
    flushed_by: Instant,
}

/// One connection.
pub struct Connection {
    objects: Rc<Objects>,
    receives: usize,
    receive_size: usize,
    /// Regions of Sends under way.
    under_way: HashMap<u64, Region>,
    next_send: u64,
    done: HashMap<u64, Result<(), String>>,
    arrived: VecDeque<Message>,
    ended: Option<End>,
    /// Private data of the peer.
    private: Vec<u8>,
    iwarp: bool,
    /// When to make the peer's siw look for messages, until one has arrived.
    nudge: Option<Instant>,
    device: String,
    /// Why this host could not register memory, if that has happened.
    unregistered: Option<String>,
    trace: Trace,
    number: usize,
}

/// Why a connection is over that the peer has ended.
pub const DISCONNECTED: &str = "the peer disconnected";
/// The beginning of an error of this side: the device does not take a work request.
pub const POST_FAILED: &str = "ibv_post_send";
/// How long a work request may take.
const STEP: Duration = Duration::from_secs(10);
/// How long after the end of a connection its work requests may be flushed.
const FLUSH: Duration = Duration::from_secs(1);
/// How long nothing may arrive over siw before the first message.
const NUDGE: Duration = Duration::from_millis(200);

impl Connection {
    /// Connects.
    pub fn connect(to: SocketAddr, offer: &Offer, trace: &Trace) -> Result<Self, Failure> {
        let until = Instant::now() + offer.limit;
        let channel = Channel::new()?;
        let id = resolve(&channel, to, offer.source, until)?;
        let milliseconds = offer.limit.as_millis() as i32;
        // SAFETY: the address of the id is resolved.
        if unsafe { sys::rdma_resolve_route(id.0, milliseconds) } != 0 {
            return Err(os_error("rdma_resolve_route"));
        }
        channel.expect(cm::RDMA_CM_EVENT_ROUTE_RESOLVED, until)?;
        let mut connection = Connection::new(channel, id, offer, trace)?;
        connection.note(&format!("connects to {to}"));
        connection
            .trace
            .sent(connection.number, "REQ private data", &offer.private);
        let mut parameters = parameters(offer);
        // SAFETY: the id has a queue pair, and the private data is copied.
        if unsafe { sys::rdma_connect(connection.objects.id.0, &mut parameters) } != 0 {
            // siw connects its TCP socket within this call.
            return Err(match io::Error::last_os_error().raw_os_error() {
                Some(libc::ECONNREFUSED) => Failure::Refused,
                Some(libc::ETIMEDOUT) => Failure::Timeout("REQ"),
                _ => os_error("rdma_connect"),
            });
        }
        let event = connection
            .objects
            .channel
            .expect(cm::RDMA_CM_EVENT_ESTABLISHED, until)
            .inspect_err(|why| connection.note(&why.to_string()))?;
        connection
            .trace
            .received(connection.number, "REP private data", &event.private);
        connection.private = event.private;
        Ok(connection)
    }

    /// Makes the queue pair, and posts the Receives if the offer says so.
    fn new(channel: Channel, id: Id, offer: &Offer, trace: &Trace) -> Result<Self, Failure> {
        // SAFETY: an id with a route or a request has a device.
        let verbs = unsafe { (*id.0).verbs };
        let mut objects = Objects {
            regions: RefCell::default(),
            cq: ptr::null_mut(),
            completions: ptr::null_mut(),
            id,
            channel,
        };
        // SAFETY: the device is open.
        objects.completions = unsafe { sys::ibv_create_comp_channel(verbs) };
        if objects.completions.is_null() {
            return Err(os_error("ibv_create_comp_channel"));
        }
        // SAFETY: the channel exists.
        set_nonblocking(unsafe { (*objects.completions).fd });
        let entries = offer.receives as i32 + SENDS as i32;
        // SAFETY: device and channel exist, and outlive the queue.
        let cq =
            unsafe { sys::ibv_create_cq(verbs, entries, ptr::null_mut(), objects.completions, 0) };
        objects.cq = cq;
        if objects.cq.is_null() {
            return Err(os_error("ibv_create_cq"));
        }
        // SAFETY: all zeros are a valid structure of these numbers and pointers.
        let mut attributes: sys::ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        attributes.send_cq = objects.cq;
        attributes.recv_cq = objects.cq;
        attributes.cap.max_send_wr = SENDS;
        attributes.cap.max_recv_wr = offer.receives.max(1) as u32;
        attributes.cap.max_send_sge = 1;
        attributes.cap.max_recv_sge = 1;
        attributes.qp_type = sys::ibv_qp_type::IBV_QPT_RC;
        // SAFETY: the id has a device. NULL stands for its default protection domain.
        if unsafe { sys::rdma_create_qp(objects.id.0, ptr::null_mut(), &mut attributes) } != 0 {
            return Err(os_error("rdma_create_qp"));
        }
        // SAFETY: the device exists.
        let device = unsafe { (*verbs).device };
        // SAFETY: the device exists.
        let transport = unsafe { (*device).transport_type };
        let iwarp = transport == sys::ibv_transport_type::IBV_TRANSPORT_IWARP;
        // SAFETY: the name is a C string in the device.
        let name = unsafe { CStr::from_ptr(sys::ibv_get_device_name(device)) };
        let buffers = vec![0; offer.receives * offer.receive_size];
        let region = Region::new(objects.pd(), &buffers, 0).map_err(Failure::Unregistered)?;
        objects.regions.borrow_mut().push(region);
        let mut connection = Connection {
            objects: Rc::new(objects),
            receives: offer.receives,
            receive_size: offer.receive_size,
            under_way: HashMap::new(),
            next_send: SENT,
            done: HashMap::new(),
            arrived: VecDeque::new(),
            ended: None,
            private: Vec::new(),
            iwarp,
            nudge: iwarp.then(|| Instant::now() + NUDGE),
            device: name.to_string_lossy().into_owned(),
            unregistered: None,
            number: trace.connection(),
            trace: trace.clone(),
        };
        if offer.posts_receives {
            connection.post_receives().map_err(Failure::Other)?;
        }
        Ok(connection)
    }

    /// Returns the private data of the peer, with what the transport appends.
    pub fn private(&self) -> &[u8] {
        &self.private
    }

    /// Returns whether the transport is iWARP.
    pub fn is_iwarp(&self) -> bool {
        self.iwarp
    }

    /// Returns the name of the local device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Returns why the connection is over, if it is.
    pub fn closed(&mut self) -> Option<String> {
        self.pump(Instant::now());
        self.why()
    }

    /// Returns why this host could not register memory, if that has happened: something was not
    /// sent, read or written then, which is no fault of the peer.
    pub fn unregistered(&self) -> Option<&str> {
        self.unregistered.as_deref()
    }

    /// Registers memory with this content for a work request.
    fn region(&mut self, octets: &[u8], access: u32) -> Result<Region, String> {
        Region::new(self.objects.pd(), octets, access).inspect_err(|why| {
            self.note(why);
            self.unregistered = Some(why.clone());
        })
    }

    fn note(&self, text: &str) {
        self.trace.note(self.number, text);
    }

    /// Posts all Receives.
    pub fn post_receives(&mut self) -> Result<(), String> {
        (0..self.receives as u64).try_for_each(|number| self.post_receive(number))
    }

    fn post_receive(&mut self, number: u64) -> Result<(), String> {
        let regions = self.objects.regions.borrow();
        let mut segment =
            regions[0].segment(number as usize * self.receive_size, self.receive_size);
        let mut request = sys::ibv_recv_wr {
            wr_id: number,
            next: ptr::null_mut(),
            sg_list: &mut segment,
            num_sge: 1,
        };
        let mut bad = ptr::null_mut();
        // SAFETY: the queue pair exists, and the region outlives it.
        match unsafe { sys::ibv_post_recv(self.objects.qp(), &mut request, &mut bad) } {
            0 => Ok(()),
            error => Err(format!(
                "ibv_post_recv: {}",
                io::Error::from_raw_os_error(error)
            )),
        }
    }

    /// Posts a work request. Returns its number.
    fn post(
        &mut self,
        region: Region,
        length: usize,
        opcode: u32,
        fill: impl FnOnce(&mut sys::ibv_send_wr),
    ) -> Result<u64, String> {
        let number = self.next_send;
        self.next_send += 1;
        let mut segment = region.segment(0, length);
        // SAFETY: all zeros are a valid structure of these numbers and pointers.
        let mut request: sys::ibv_send_wr = unsafe { std::mem::zeroed() };
        request.wr_id = number;
        request.sg_list = &mut segment;
        request.num_sge = i32::from(length > 0);
        request.opcode = opcode;
        request.send_flags = sys::ibv_send_flags::IBV_SEND_SIGNALED.0;
        fill(&mut request);
        let mut bad = ptr::null_mut();
        // SAFETY: the queue pair exists. The region stays until the request is completed, or the
        // queue pair is destroyed.
        let error = unsafe { sys::ibv_post_send(self.objects.qp(), &mut request, &mut bad) };
        if error != 0 {
            return Err(format!(
                "{POST_FAILED}: {}",
                io::Error::from_raw_os_error(error)
            ));
        }
        self.under_way.insert(number, region);
        Ok(number)
    }

    /// Waits for a work request. Returns whether it has completed.
    ///
    /// Once the connection is over, what is left is flushed soon or never: siw does not complete a
    /// work request of a program that is posted after the queue pair has failed (`siw_post_send` of
    /// 7.3.4).
    fn completes(&mut self, number: u64) -> bool {
        let until = Instant::now() + STEP;
        while !self.done.contains_key(&number) {
            // If the connection ends meanwhile, `pump` returns, and the limit changes.
            let until = self
                .ended
                .as_ref()
                .map_or(until, |end| end.flushed_by.min(until));
            if !self.pump(until) || Instant::now() >= until {
                return self.done.contains_key(&number);
            }
        }
        true
    }

    /// Notes why the connection is over. The first cause stays.
    fn end(&mut self, why: impl Into<String>) {
        self.ended.get_or_insert_with(|| End {
            why: why.into(),
            flushed_by: Instant::now() + FLUSH,
        });
    }

    fn why(&self) -> Option<String> {
        self.ended.as_ref().map(|end| end.why.clone())
    }

    /// Waits for a work request, and returns its result.
    fn finish(&mut self, number: u64) -> Result<(), String> {
        if !self.completes(number) {
            return Err("not completed in time".into());
        }
        self.done
            .remove(&number)
            .unwrap_or_else(|| Err("lost".into()))
    }

    /// Posts a Send, and does not wait.
    pub fn post_send(&mut self, octets: &[u8]) -> Result<u64, String> {
        self.trace.sent(self.number, "Send", octets);
        let region = self.region(octets, 0)?;
        self.post(
            region,
            octets.len(),
            sys::ibv_wr_opcode::IBV_WR_SEND,
            |_| (),
        )
    }

    /// Sends octets, and waits until the peer's device has acknowledged them.
    pub fn send(&mut self, octets: &[u8]) -> Result<(), String> {
        self.send_all(&[octets.to_vec()])
    }

    /// Sends messages, all at once.
    pub fn send_all(&mut self, messages: &[Vec<u8>]) -> Result<(), String> {
        let mut numbers = Vec::new();
        for message in messages {
            numbers.push(self.post_send(message)?);
        }
        let results: Vec<_> = numbers
            .into_iter()
            .map(|number| self.finish(number))
            .collect();
        results.into_iter().collect()
    }

    /// Sends octets, and invalidates a Steering Tag of the peer.
    pub fn send_invalidate(&mut self, key: u32, octets: &[u8]) -> Result<(), String> {
        self.trace.sent(
            self.number,
            &format!("Send with Invalidate {key:#x}"),
            octets,
        );
        let region = self.region(octets, 0)?;
        let number = self.post(
            region,
            octets.len(),
            sys::ibv_wr_opcode::IBV_WR_SEND_WITH_INV,
            |request| {
                request.imm_data_invalidated_rkey_union.invalidated_rkey = key;
                // libsiw reads the key from the field of an RDMA Write.
                request.wr.rdma = sys::rdma_t {
                    remote_addr: 0,
                    rkey: key,
                };
            },
        )?;
        self.finish(number)
    }

    /// Writes to the peer's memory.
    pub fn write(&mut self, key: u32, offset: u64, octets: &[u8]) -> Result<(), String> {
        self.trace
            .sent(self.number, &format!("RDMA Write to {key:#x}"), octets);
        let region = self.region(octets, 0)?;
        let number = self.post(
            region,
            octets.len(),
            sys::ibv_wr_opcode::IBV_WR_RDMA_WRITE,
            |request| {
                request.wr.rdma = sys::rdma_t {
                    remote_addr: offset,
                    rkey: key,
                };
            },
        )?;
        self.finish(number)
    }

    /// Reads from the peer's memory.
    pub fn read(&mut self, key: u32, offset: u64, length: usize) -> Result<Vec<u8>, String> {
        // iWARP's Read Responses are RDMA Writes to this side's memory.
        let region = self.region(&vec![0; length], REMOTE_WRITE)?;
        let number = self.post(
            region,
            length,
            sys::ibv_wr_opcode::IBV_WR_RDMA_READ,
            |request| {
                request.wr.rdma = sys::rdma_t {
                    remote_addr: offset,
                    rkey: key,
                };
            },
        )?;
        if !self.completes(number) {
            return Err("the RDMA Read was not completed in time".into());
        }
        // `complete` leaves the region of a Read in `under_way`.
        let region = self.under_way.remove(&number).ok_or("lost")?;
        self.done.remove(&number).unwrap_or(Ok(()))?;
        let octets = region.octets(0, length);
        self.trace
            .received(self.number, &format!("RDMA Read from {key:#x}"), &octets);
        Ok(octets)
    }

    /// Exposes memory with this content to the peer. Over rxe, the peer can invalidate a window and
    /// no other memory of user space. siw has no windows, and lets all memory be invalidated.
    pub fn expose(&mut self, octets: &[u8], access: u32) -> Result<Memory, String> {
        let pd = self.objects.pd();
        let windows = !self.iwarp;
        let region = Region::new(pd, octets, access | if windows { WINDOW_BIND } else { 0 })
            .or_else(|_| Region::new(pd, octets, access))?;
        // SAFETY: the region is registered.
        let rkey = unsafe { (*region.raw).rkey };
        let mut memory = Memory {
            window: ptr::null_mut(),
            region: None,
            key: rkey,
            length: octets.len(),
            _objects: self.objects.clone(),
        };
        if windows {
            // SAFETY: the domain exists.
            memory.window = unsafe { sys::ibv_alloc_mw(pd, sys::ibv_mw_type::IBV_MW_TYPE_2) };
        }
        if !memory.window.is_null() {
            // SAFETY: the window exists. The last octet of its key is free to choose.
            memory.key = unsafe { (*memory.window).rkey } ^ 0x55;
            let bind = sys::bind_mw_t {
                mw: memory.window,
                rkey: memory.key,
                bind_info: sys::ibv_mw_bind_info {
                    mr: region.raw,
                    addr: region.address(),
                    length: region.buffer.len() as u64,
                    mw_access_flags: access,
                },
            };
            let nothing = Region::new(pd, &[], 0)?;
            let opcode = sys::ibv_wr_opcode::IBV_WR_BIND_MW;
            let number = self.post(nothing, 0, opcode, |request| {
                request.bind_mw_tso_union = sys::bind_mw_tso_union_t { bind_mw: bind };
            })?;
            self.finish(number)?;
        }
        memory.region = Some(region);
        Ok(memory)
    }

    /// Returns the next message.
    pub fn receive(&mut self, limit: Duration) -> Arrival {
        let until = Instant::now() + limit;
        loop {
            if let Some(message) = self.arrived.pop_front() {
                return Arrival::Message(message);
            }
            if let Some(why) = self.why() {
                return Arrival::Closed(why);
            }
            if !self.pump(until) {
                return Arrival::Nothing;
            }
        }
    }

    /// Returns the next message that begins with this XID. Other messages are left for `receive`.
    pub fn receive_answer(&mut self, xid: u32, limit: Duration) -> Arrival {
        let until = Instant::now() + limit;
        let mut others = VecDeque::new();
        let found = loop {
            match self.receive(until.saturating_duration_since(Instant::now())) {
                Arrival::Message(message) if !message.octets.starts_with(&xid.to_be_bytes()) => {
                    others.push_back(message);
                }
                found => break found,
            }
        };
        others.append(&mut self.arrived);
        self.arrived = others;
        found
    }

    /// Waits up to `limit` for the end of the connection.
    pub fn wait_closed(&mut self, limit: Duration) -> Option<String> {
        let until = Instant::now() + limit;
        while self.ended.is_none() && self.pump(until) && Instant::now() < until {}
        self.why()
    }

    /// Makes both devices handle what they have received, by an RDMA Read of no octets. siw ignores
    /// a message that arrives while it accepts, until another packet arrives. A Read is only needed
    /// until the first message.
    fn nudge(&mut self) {
        if self.ended.is_some() || self.nudge.is_none_or(|at| Instant::now() < at) {
            return;
        }
        self.nudge = Some(Instant::now() + 2 * NUDGE);
        let Ok(region) = Region::new(self.objects.pd(), &[], REMOTE_WRITE) else {
            return;
        };
        // siw needs a segment even for no octets. Whether the Read succeeds does not matter.
        let _ = self.post(region, 0, sys::ibv_wr_opcode::IBV_WR_RDMA_READ, |request| {
            request.num_sge = 1
        });
    }

    /// Handles what has happened, or waits for that. Returns false when the time has passed.
    fn pump(&mut self, until: Instant) -> bool {
        loop {
            self.nudge();
            if self.poll_completions() | self.poll_events() {
                return true;
            }
            // SAFETY: the queue exists.
            unsafe { sys::ibv_req_notify_cq(self.objects.cq, 0) };
            if self.poll_completions() {
                return true;
            }
            // SAFETY: the channel exists.
            let completions = unsafe { (*self.objects.completions).fd };
            // siw may lose a notification.
            let soon = until.min(Instant::now() + Duration::from_millis(50));
            if !wait_readable(&[completions, self.objects.channel.fd()], soon) {
                if self.poll_completions() | self.poll_events() {
                    return true;
                }
                if Instant::now() >= until || interrupted() {
                    return false;
                }
            }
            self.acknowledge();
        }
    }

    /// Takes a notification of the completion queue, if there is one.
    fn acknowledge(&mut self) {
        let mut queue = ptr::null_mut();
        let mut context = ptr::null_mut();
        // SAFETY: the channel exists, and does not block.
        if unsafe { sys::ibv_get_cq_event(self.objects.completions, &mut queue, &mut context) } == 0
        {
            // SAFETY: one event was got.
            unsafe { sys::ibv_ack_cq_events(queue, 1) };
        }
    }

    /// Returns what has happened, without waiting. If nothing has, `files` become readable when
    /// something does.
    pub fn poll(&mut self) -> Arrival {
        self.acknowledge();
        self.receive(Duration::ZERO)
    }

    /// Returns the files to wait for before the next `poll`.
    pub fn files(&self) -> [i32; 2] {
        // SAFETY: the channel exists.
        let completions = unsafe { (*self.objects.completions).fd };
        [completions, self.objects.channel.fd()]
    }

    /// Handles as many completions as the queue can hold at most. A peer may send faster.
    fn poll_completions(&mut self) -> bool {
        let mut any = false;
        for _ in 0..self.receives + SENDS as usize {
            // SAFETY: all zeros are a valid completion.
            let mut completion: sys::ibv_wc = unsafe { std::mem::zeroed() };
            // SAFETY: there is room for one completion.
            if unsafe { sys::ibv_poll_cq(self.objects.cq, 1, &mut completion) } < 1 {
                return any;
            }
            any = true;
            self.complete(&completion);
        }
        any
    }

    fn complete(&mut self, completion: &sys::ibv_wc) {
        let failed = completion.status != sys::ibv_wc_status::IBV_WC_SUCCESS;
        if completion.wr_id >= SENT {
            let result = if failed {
                let name = status_name(completion.status);
                self.note(&format!("a work request failed: {name}"));
                Err(name)
            } else {
                Ok(())
            };
            if failed || completion.opcode != sys::ibv_wc_opcode::IBV_WC_RDMA_READ {
                // The region of a request that failed stays until the queue pair is destroyed.
                // That of a Read that succeeded has the data: `read` takes it.
                if let Some(region) = self.under_way.remove(&completion.wr_id) {
                    if failed {
                        self.under_way.insert(completion.wr_id, region);
                    }
                }
            }
            self.done.insert(completion.wr_id, result);
            return;
        }
        if failed {
            let flushed = completion.status == sys::ibv_wc_status::IBV_WC_WR_FLUSH_ERR;
            if self.ended.is_none() {
                let name = status_name(completion.status);
                if !flushed {
                    self.note(&format!("a Receive failed: {name}"));
                }
                self.end(if flushed {
                    "the connection is over".into()
                } else {
                    format!("a Receive failed: {name}")
                });
            }
            return;
        }
        self.nudge = None;
        let start = completion.wr_id as usize * self.receive_size;
        let octets = self.objects.regions.borrow()[0].octets(start, completion.byte_len as usize);
        // rxe sets the flag of the kernel's enum, which differs from that of user space.
        let invalidates = completion.wc_flags & (8 | 4) != 0;
        // SAFETY: all bits of the union are a number.
        let key = unsafe { completion.imm_data_invalidated_rkey_union.invalidated_rkey };
        let invalidated = invalidates.then_some(key);
        let how = invalidated.map_or("Send".into(), |key| {
            format!("Send with Invalidate {key:#x}")
        });
        self.trace.received(self.number, &how, &octets);
        self.arrived.push_back(Message {
            octets,
            invalidated,
        });
        // This fails only at the end of the connection, which is reported by another way.
        let _ = self.post_receive(completion.wr_id);
    }

    fn poll_events(&mut self) -> bool {
        let Some(event) = self.objects.channel.next() else {
            return false;
        };
        match event.what {
            cm::RDMA_CM_EVENT_DISCONNECTED => {
                // Messages that arrived before it are completed already.
                self.poll_completions();
                self.note(DISCONNECTED);
                // A Receive that failed says more.
                self.end(DISCONNECTED);
                // SAFETY: the id is connected. This flushes what is posted.
                unsafe { sys::rdma_disconnect(self.objects.id.0) };
            }
            cm::RDMA_CM_EVENT_ESTABLISHED | cm::RDMA_CM_EVENT_TIMEWAIT_EXIT => (),
            other => {
                let name = event_name(other);
                self.note(&name);
                self.end(name);
            }
        }
        true
    }

    /// Sends a DREQ, and leaves the queue pair able to send until DISCONNECTED has been handled.
    /// iWARP has no DREQ.
    pub fn send_dreq(&mut self) -> Result<(), String> {
        self.note("sends DREQ");
        let id = self.objects.id.0;
        // librdmacm moves the queue pair of the id to the error state, unless the id has none.
        // SAFETY: the id exists, and nothing else uses it meanwhile.
        let qp = unsafe { ptr::replace(&raw mut (*id).qp, ptr::null_mut()) };
        // SAFETY: the id is connected.
        let failed = unsafe { sys::rdma_disconnect(id) };
        let why = io::Error::last_os_error();
        // SAFETY: the id exists. The queue pair is its own.
        unsafe { (*id).qp = qp };
        match failed {
            0 => Ok(()),
            _ => Err(format!("rdma_disconnect: {why}")),
        }
    }

    /// Disconnects.
    pub fn disconnect(&mut self) {
        if self.ended.is_none() {
            self.note("disconnects");
            self.end("this side disconnected");
            // SAFETY: the id has a queue pair.
            unsafe { sys::rdma_disconnect(self.objects.id.0) };
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.disconnect();
        // Memory of Sends under way must outlive the queue pair.
        let mut regions = self.objects.regions.borrow_mut();
        regions.extend(self.under_way.drain().map(|(_, region)| region));
    }
}

/// Makes an id with the address of the peer. The first packet to a neighbour may be lost, so this
/// tries more than once.
fn resolve(
    channel: &Channel,
    to: SocketAddr,
    source: Option<IpAddr>,
    until: Instant,
) -> Result<Id, Failure> {
    let mut target = Address::new(to);
    let mut source = source.map(|ip| Address::new(SocketAddr::new(ip, 0)));
    let limit = Duration::from_secs(2);
    let mut tries = 5;
    loop {
        let id = Id::new(channel)?;
        let from = source.as_mut().map_or(ptr::null_mut(), Address::as_ptr);
        // SAFETY: both addresses are valid; NULL stands for any.
        let failed = unsafe {
            sys::rdma_resolve_addr(id.0, from, target.as_ptr(), limit.as_millis() as i32)
        };
        if failed != 0 {
            return Err(os_error("rdma_resolve_addr"));
        }
        tries -= 1;
        let soon = until.min(Instant::now() + 2 * limit);
        match channel.expect(cm::RDMA_CM_EVENT_ADDR_RESOLVED, soon) {
            Ok(_) => return Ok(id),
            Err(why) if tries == 0 || Instant::now() >= until => return Err(why),
            Err(_) => (),
        }
    }
}

fn parameters(offer: &Offer) -> sys::rdma_conn_param {
    // SAFETY: all zeros are a valid structure of these numbers and pointers.
    let mut parameters: sys::rdma_conn_param = unsafe { std::mem::zeroed() };
    if !offer.private.is_empty() {
        parameters.private_data = offer.private.as_ptr().cast();
        parameters.private_data_len = u8::try_from(offer.private.len()).unwrap_or(u8::MAX);
    }
    parameters.responder_resources = offer.reads;
    parameters.initiator_depth = offer.reads;
    parameters.retry_count = 6;
    parameters.rnr_retry_count = offer.rnr_retries;
    parameters
}

/// A listener.
pub struct Listener {
    /// Listens until it is dropped, before its channel.
    _id: Id,
    channel: Channel,
}

/// A REQ that arrived.
pub struct Request {
    id: Id,
    pub private: Vec<u8>,
}

impl Listener {
    /// Listens.
    pub fn new(at: SocketAddr) -> Result<Self, Failure> {
        let channel = Channel::new()?;
        let id = Id::new(&channel)?;
        // SAFETY: the id exists, and the address is valid.
        if unsafe { sys::rdma_bind_addr(id.0, Address::new(at).as_ptr()) } != 0 {
            return Err(os_error("rdma_bind_addr"));
        }
        // SAFETY: the id is bound.
        if unsafe { sys::rdma_listen(id.0, 32) } != 0 {
            return Err(os_error("rdma_listen"));
        }
        Ok(Listener { _id: id, channel })
    }

    /// Waits for the next REQ.
    pub fn next(&self, limit: Duration) -> Option<Request> {
        let until = Instant::now() + limit;
        loop {
            let event = self.channel.wait(until)?;
            if event.what == cm::RDMA_CM_EVENT_CONNECT_REQUEST {
                return Some(Request {
                    id: Id(event.id),
                    private: event.private,
                });
            }
        }
    }

    /// Returns the file to wait for before `next`.
    pub fn file(&self) -> i32 {
        self.channel.fd()
    }
}

impl Request {
    /// Accepts.
    pub fn accept(self, offer: &Offer, trace: &Trace) -> Result<Connection, Failure> {
        let channel = Channel::new()?;
        // SAFETY: both exist, and the id has no event that is not acknowledged.
        if unsafe { sys::rdma_migrate_id(self.id.0, channel.0) } != 0 {
            return Err(os_error("rdma_migrate_id"));
        }
        let private = self.private;
        let mut connection = Connection::new(channel, self.id, offer, trace)?;
        connection
            .trace
            .received(connection.number, "REQ private data", &private);
        connection
            .trace
            .sent(connection.number, "REP private data", &offer.private);
        connection.private = private;
        let mut parameters = parameters(offer);
        // SAFETY: the id has a queue pair, and the private data is copied.
        if unsafe { sys::rdma_accept(connection.objects.id.0, &mut parameters) } != 0 {
            return Err(os_error("rdma_accept"));
        }
        Ok(connection)
    }

    /// Rejects.
    pub fn reject(self, private: &[u8]) {
        // SAFETY: the request was neither accepted nor rejected.
        unsafe { sys::rdma_reject(self.id.0, private.as_ptr().cast(), private.len() as u8) };
    }
}
