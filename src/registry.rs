// SPDX-License-Identifier: GPL-2.0

//! Every live connection and every listener.

use core::{
    fmt,
    iter, //
};

use kernel::{
    impl_has_work,
    new_condvar,
    new_mutex,
    new_work,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    str::CString,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        CondVar,
        Mutex, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

use crate::{
    connection::{
        listener::Listener,
        version_cache::VersionCache,
        Connection, //
    },
    counters::SharedStats,
    debugfs::{
        Dir,
        File,
        Output,
        Readable, //
    },
    observer::Watched,
    protocol::{
        exchange::ParsedPrivateData,
        info::info,
        snapshot::Snapshot, //
    },
    rdma::{
        errno,
        queue::Queue,
        wait::wait_while, //
    }, //
};

/// A live connection.
pub(crate) enum Live {
    Own(Arc<Connection>),
    Observed(Arc<Watched>),
}

impl Live {
    /// Returns it as it is at this moment; does not wait.
    pub(crate) fn snapshot(&self) -> Snapshot {
        match self {
            Self::Own(connection) => connection.snapshot(),
            Self::Observed(watched) => watched.snapshot(),
        }
    }
}

/// The files of one connection, and the directory that holds them.
struct ConnectionFiles {
    _files: [File<Live>; 3],
    _dir: Dir,
}

impl ConnectionFiles {
    /// Makes the directory of `live`, which has that number, in `parent`; may sleep.
    fn new(parent: &Dir, number: u64, live: Arc<Live>) -> Result<Self> {
        let name = CString::try_from_fmt(fmt!("{number}"))?;
        let dir = Dir::new(&name, Some(parent))?;

        Ok(Self {
            _files: [
                dir.readable::<InfoFile>(c"info", live.clone())?,
                dir.readable::<SentFile>(c"sent", live.clone())?,
                dir.readable::<ReceivedFile>(c"received", live)?,
            ],
            _dir: dir,
        })
    }
}

/// Everything about one connection.
struct InfoFile;

impl Readable for InfoFile {
    type Data = Live;

    fn show(live: &Live, out: &mut Output) -> fmt::Result {
        info(&live.snapshot(), out)
    }
}

/// The octets that this side sent.
struct SentFile;

impl Readable for SentFile {
    type Data = Live;

    fn show(live: &Live, out: &mut Output) -> fmt::Result {
        show_octets(live.snapshot().exchange.sent, out)
    }
}

/// The octets that the peer sent, as the transport delivered them.
struct ReceivedFile;

impl Readable for ReceivedFile {
    type Data = Live;

    fn show(live: &Live, out: &mut Output) -> fmt::Result {
        show_octets(live.snapshot().exchange.received, out)
    }
}

fn show_octets(private_data: Option<ParsedPrivateData>, out: &mut Output) -> fmt::Result {
    if let Some(private_data) = private_data {
        out.write_octets(private_data.octets.octets())?;
    }
    Ok(())
}

/// A connection with its files; dropping it removes them, so needs a context that may sleep.
struct Entry {
    live: Arc<Live>,
    _files: ConnectionFiles,
}

/// What is live, by its number.
struct Table<T> {
    tree: RBTree<u64, T>,
    /// Whether nothing can be added any more.
    shut_down: bool,
}

impl<T> Table<T> {
    fn new() -> Self {
        Self {
            tree: RBTree::new(),
            shut_down: false,
        }
    }

    /// Adds what `node` has. Gives it back where the table has been shut down.
    fn insert(&mut self, node: RBTreeNode<u64, T>) -> Result<(), RBTreeNode<u64, T>> {
        if self.shut_down {
            return Err(node);
        }
        self.tree.insert(node);
        Ok(())
    }
}

/// How often connections are looked for whose peers have been accepted and say nothing, in
/// milliseconds.
const CONFIRMATION_CHECK_MS: u32 = 5000;

/// What is live.
#[pin_data]
pub(crate) struct Registry {
    #[pin]
    connections: Mutex<Table<Entry>>,
    /// Notified when these are shut down.
    #[pin]
    shutting_down: CondVar,
    #[pin]
    confirmations: Work<Self>,
    /// Where that runs; apart, as it must not be late because others wait.
    confirming: Arc<Queue>,
    #[pin]
    listeners: Mutex<Table<Arc<Listener>>>,
    last_connection: Atomic<u64>,
    last_listener: Atomic<u64>,
    pub(crate) stats: Arc<SharedStats>,
    /// Where listeners end, and connections leave.
    pub(crate) teardown: Arc<Queue>,
    /// Where connections are made again; apart, as that waits for the ends of ids.
    pub(crate) reconnects: Arc<Queue>,
    /// Where calls are made and answered; apart, as the ends of ids wait for that.
    pub(crate) transactions: Arc<Queue>,
    #[pin]
    pub(crate) only_version_one: VersionCache,
    /// The directory that holds one directory for each connection.
    dir: Dir,
}

impl_has_work! {
    impl HasWork<Self> for Registry { self.confirmations }
}

impl WorkItem for Registry {
    type Pointer = Arc<Self>;

    /// Ends the connections whose peers take too long to confirm them, until there are none that
    /// wait for that.
    fn run(this: Arc<Self>) {
        while this.pause(CONFIRMATION_CHECK_MS) {
            let mut waiting = false;
            for connection in this.each_own() {
                waiting |= connection.as_arc_borrow().expire();
            }
            if !waiting {
                return;
            }
        }
    }
}

impl Registry {
    /// Makes an empty registry, whose connections have their files in `dir`.
    pub(crate) fn new(dir: Dir, stats: Arc<SharedStats>) -> Result<Arc<Self>> {
        let confirming = Queue::new(c"rpcrdma_cm_confirm")?;
        let teardown = Queue::new(c"rpcrdma_cm_leave")?;
        let reconnects = Queue::new(c"rpcrdma_cm_reconnect")?;
        let transactions = Queue::new(c"rpcrdma_cm_transactions")?;
        let only_version_one = VersionCache::new()?;

        Arc::pin_init(
            pin_init!(Self {
                connections <- new_mutex!(Table::new(), "Registry::connections"),
                shutting_down <- new_condvar!("Registry::shutting_down"),
                confirmations <- new_work!("Registry::confirmations"),
                confirming,
                listeners <- new_mutex!(Table::new(), "Registry::listeners"),
                last_connection: Atomic::new(0),
                last_listener: Atomic::new(0),
                stats,
                teardown,
                reconnects,
                transactions,
                only_version_one <- only_version_one,
                dir,
            }),
            GFP_KERNEL,
        )
    }

    /// Returns a number that no connection has had yet.
    pub(crate) fn next_connection_number(&self) -> u64 {
        self.last_connection.fetch_add(1, Relaxed) + 1
    }

    /// Returns a number that no listener has had yet.
    pub(crate) fn next_listener_number(&self) -> u64 {
        self.last_listener.fetch_add(1, Relaxed) + 1
    }

    /// Makes a connection visible, under a number of its own; process context.
    ///
    /// Fails with `ESHUTDOWN` once the registry has been shut down.
    pub(crate) fn add(&self, number: u64, live: Live) -> Result {
        let live = Arc::new(live, GFP_KERNEL)?;
        let files = ConnectionFiles::new(&self.dir, number, live.clone())?;
        let entry = Entry {
            live,
            _files: files,
        };
        let node = RBTreeNode::new(number, entry, GFP_KERNEL)?;

        let result = self.connections.lock().insert(node);
        result.map_err(|_| errno(kernel::bindings::ESHUTDOWN))
    }

    /// Forgets a connection and removes its files, waiting for their readers; process context.
    pub(crate) fn remove(&self, number: u64) {
        let entry = self.connections.lock().tree.remove_node(&number);
        drop(entry);
    }

    /// Returns the connection of that number.
    pub(crate) fn connection(&self, number: u64) -> Option<Arc<Live>> {
        let connections = self.connections.lock();
        connections
            .tree
            .get(&number)
            .map(|entry| entry.live.clone())
    }

    /// Returns how many connections there are.
    pub(crate) fn count(&self) -> usize {
        self.connections.lock().tree.values().count()
    }

    /// Returns, in the order of their numbers, the connections, as far as they are still there when
    /// it is their turn. No lock is held in between: there can be many, and new ones must not wait.
    pub(crate) fn each(&self) -> impl Iterator<Item = Arc<Live>> + '_ {
        let last = self.last_connection.load(Relaxed);
        let mut next = 0;

        iter::from_fn(move || {
            let connections = self.connections.lock();
            let cursor = connections.tree.cursor_lower_bound(&next)?;
            let (&number, entry) = cursor.current();
            next = number + 1;
            (number <= last).then(|| entry.live.clone())
        })
    }

    /// Returns likewise the module's own connections.
    pub(crate) fn each_own(&self) -> impl Iterator<Item = Arc<Connection>> + '_ {
        self.each().filter_map(|live| match &*live {
            Live::Own(connection) => Some(connection.clone()),
            Live::Observed(_) => None,
        })
    }

    /// Sees to it that a connection that has been accepted is confirmed in time.
    pub(crate) fn expect_confirmation(self: &Arc<Self>) {
        // What is queued already is going to run, which is all that is wanted.
        let _ = self.confirming.enqueue(self.clone());
    }

    /// Waits for `pause_ms` milliseconds, and returns whether the registry is still in use.
    fn pause(&self, pause_ms: u32) -> bool {
        wait_while(&self.shutting_down, &self.connections, pause_ms, |table| {
            !table.shut_down
        })
    }

    /// Makes a listener visible. Fails with `ESHUTDOWN` once the registry has been shut down.
    pub(crate) fn add_listener(&self, listener: Arc<Listener>) -> Result {
        let node = RBTreeNode::new(listener.number, listener, GFP_KERNEL)?;

        let result = self.listeners.lock().insert(node);
        result.map_err(|_| errno(kernel::bindings::ESHUTDOWN))
    }

    /// Ends the listener of that number; process context. Returns whether there was one.
    pub(crate) fn remove_listener(&self, number: u64) -> bool {
        let node = self.listeners.lock().tree.remove_node(&number);
        let Some((_, listener)) = node.map(RBTreeNode::to_key_value) else {
            return false;
        };
        listener.stop();
        true
    }

    /// Calls `f` with each listener, in the order of their numbers. `f` must not wait.
    pub(crate) fn for_each_listener<E>(
        &self,
        f: impl FnMut(&Arc<Listener>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.listeners.lock().tree.values().try_for_each(f)
    }

    /// Ends all listeners, then all of the module's own connections; process context. Does not wait
    /// for the connections to be gone.
    pub(crate) fn close_all(&self) {
        // In this order: a listener can still bring connections.
        while let Some(number) = self.first_listener() {
            self.remove_listener(number);
        }
        for connection in self.each_own() {
            connection.as_arc_borrow().close();
        }
    }

    fn first_listener(&self) -> Option<u64> {
        self.listeners.lock().tree.keys().next().copied()
    }

    /// Ends all there is, for good, and waits until it is gone; process context.
    pub(crate) fn shut_down(&self) {
        self.listeners.lock().shut_down = true;
        self.connections.lock().shut_down = true;
        self.shutting_down.notify_all();
        self.close_all();

        // A connection may be on its way to one of the queues until it is gone.
        for connection in self.each_own() {
            connection.wait_gone_uninterruptible();
        }
        self.confirming.flush();
        self.reconnects.flush();
        self.teardown.flush();
        self.transactions.flush();
    }
}
