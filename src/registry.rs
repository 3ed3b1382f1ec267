// SPDX-License-Identifier: GPL-2.0

//! Every live connection, of the module and of others, with its files.

use core::{
    fmt,
    iter, //
};

use kernel::{
    new_mutex,
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
        ArcBorrow,
        Mutex, //
    }, //
};

use crate::{
    debugfs::{
        readable,
        Dir,
        File,
        Output, //
    },
    failure::Failure,
    pure::{
        text::{
            exchange::Exchange,
            info::info,
            snapshot::Snapshot, //
        },
        wire::private_data::PrivateData, //
    }, //
};

/// A live connection: the module's own, or one that the observer found.
pub(crate) trait Live: Send + Sync {
    /// Returns the connection as it is at this moment; process context. Does not wait.
    fn snapshot(&self) -> Snapshot;

    /// Returns the device and the addresses of the connection, and what both sides' private data
    /// says; process context. Costs less than a snapshot.
    fn exchange(&self) -> Exchange;

    /// Returns the private data that this end sent, if it is known; process context.
    fn sent(&self) -> Option<PrivateData>;

    /// Returns the private data of the peer, as the transport delivered it, if it is known; process
    /// context.
    fn received(&self) -> Option<PrivateData>;

    /// Closes the connection, and waits until it is gone; process context.
    ///
    /// Fails with `EPERM` if it is not the module's own, and with `EINTR` on a signal.
    fn close_and_wait(self: ArcBorrow<'_, Self>) -> Result<(), Failure>;
}

/// The data of a connection's files.
struct Shown(Arc<dyn Live>);

/// The files of one connection, and the directory that holds them.
struct ConnectionFiles {
    _files: [File<Shown>; 3],
    _dir: Dir,
}

impl ConnectionFiles {
    /// Creates the directory of connection `number` in `parent`, with its files; may sleep.
    fn new(parent: &Dir, number: u64, live: Arc<dyn Live>) -> Result<Self> {
        let shown = Arc::new(Shown(live), GFP_KERNEL)?;
        let name = CString::try_from_fmt(fmt!("{number}"))?;
        let dir = parent.dir(&name)?;

        Ok(Self {
            _files: [
                dir.readable::<InfoFile>(c"info", shown.clone())?,
                dir.readable::<SentFile>(c"sent", shown.clone())?,
                dir.readable::<ReceivedFile>(c"received", shown)?,
            ],
            _dir: dir,
        })
    }
}

readable! {
    /// The file `info`: everything about one connection.
    InfoFile(Shown) => |Shown(live), out| info(&live.snapshot(), out);
    /// The file `sent`: the private data that this end sent.
    SentFile(Shown) => |Shown(live), out| show_octets(live.sent(), out);
    /// The file `received`: the private data of the peer, as the transport delivered it.
    ReceivedFile(Shown) => |Shown(live), out| show_octets(live.received(), out);
}

fn show_octets(private_data: Option<PrivateData>, out: &mut Output) -> fmt::Result {
    if let Some(private_data) = private_data {
        out.write_bytes(private_data.octets())?;
    }
    Ok(())
}

/// A connection with its files. Dropping it removes the files and waits for their readers, so it
/// may sleep.
struct Entry {
    live: Arc<dyn Live>,
    _files: ConnectionFiles,
}

/// The live connections, by number.
#[pin_data]
pub(crate) struct Registry {
    #[pin]
    connections: Mutex<RBTree<u64, Entry>>,
    last_number: Atomic<u64>,
    /// The directory that holds one directory for each connection.
    dir: Dir,
}

impl Registry {
    /// Creates an empty registry, which makes the files of connections in `dir`; process context.
    pub(crate) fn new(dir: Dir) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                connections <- new_mutex!(RBTree::new(), "Registry::connections"),
                last_number: Atomic::new(0),
                dir,
            }),
            GFP_KERNEL,
        )
    }

    /// Returns a number that no connection has had yet; any context.
    pub(crate) fn next_number(&self) -> u64 {
        self.last_number.fetch_add(1, Relaxed) + 1
    }

    /// Returns the number that [`Self::next_number`] returned last; any context.
    pub(crate) fn last_number(&self) -> u64 {
        self.last_number.load(Relaxed)
    }

    /// Adds a connection under a number from [`Self::next_number`], and makes its files; process
    /// context. Fails with `ENOMEM`, or as [`Dir::readable`] does.
    pub(crate) fn add(&self, number: u64, live: Arc<dyn Live>) -> Result {
        let files = ConnectionFiles::new(&self.dir, number, live.clone())?;
        let entry = Entry {
            live,
            _files: files,
        };
        let node = RBTreeNode::new(number, entry, GFP_KERNEL)?;

        self.connections.lock().insert(node);
        Ok(())
    }

    /// Removes a connection and its files, and waits for readers of the files; process context.
    pub(crate) fn remove(&self, number: u64) {
        let entry = self.connections.lock().remove_node(&number);
        drop(entry);
    }

    /// Returns the connection of that number; process context.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<dyn Live>> {
        let connections = self.connections.lock();
        connections.get(&number).map(|entry| entry.live.clone())
    }

    /// Returns how many connections there are; process context.
    pub(crate) fn count(&self) -> usize {
        self.connections.lock().values().count()
    }

    /// Returns the connections in the order of their numbers; process context. The lock is released
    /// between two connections, so that new ones need not wait: a connection that is removed before
    /// its turn is left out.
    pub(crate) fn each(&self) -> impl Iterator<Item = Arc<dyn Live>> + '_ {
        let last = self.last_number();
        let mut next = 0;

        iter::from_fn(move || {
            let connections = self.connections.lock();
            let cursor = connections.cursor_lower_bound(&next)?;
            let (&number, entry) = cursor.current();
            next = number + 1;
            (number <= last).then(|| entry.live.clone())
        })
    }
}
