// SPDX-License-Identifier: GPL-2.0

//! The files in the module's root directory: commands are written to some, and the others show
//! tables, counters and errors.

mod commands;
mod probe;
mod table_files;
mod target;

use core::fmt::{
    self,
    Write, //
};

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

use crate::{
    base::{
        errno::errno,
        wait::MayWait, //
    },
    connection::{
        connections::Connections,
        listener::listeners::Listeners,
        own::Own, //
    },
    counters::SharedStats,
    debugfs::{
        readable,
        Dir,
        File,
        Output,
        Readable,
        Writable, //
    },
    failure::Failure,
    history_ring::History,
    observer::ObserverStatus,
    pure::text::{
        format::Text,
        grammar,
        history::HistoryColumns,
        tables::ConnectionColumns, //
    },
    registry::Registry, //
};

use self::table_files::Counted;

/// The files that take commands, and `last_error`.
pub(crate) struct ControlFiles {
    _files: [File<Control>; 6],
}

impl ControlFiles {
    /// Creates the files in `dir`; process context.
    pub(crate) fn new(dir: &Dir, registry: Arc<Registry>, own: &Own) -> Result<Self> {
        let connections = own.connections.clone();
        let listeners = own.listeners.clone();
        let control = Arc::pin_init(
            pin_init!(Control {
                registry,
                connections,
                listeners,
                last_error <- new_mutex!(Text::EMPTY, "Control::last_error"),
                report <- new_mutex!(KVec::new(), "Control::report"),
                calls <- new_mutex!(KVec::new(), "Control::calls"),
            }),
            GFP_KERNEL,
        )?;

        Ok(Self {
            _files: [
                dir.writable::<ConnectFile>(c"connect", control.clone())?,
                dir.writable::<ListenFile>(c"listen", control.clone())?,
                dir.writable::<CloseFile>(c"close", control.clone())?,
                dir.answering::<CallFile>(c"call", control.clone())?,
                dir.answering::<ProbeFile>(c"probe", control.clone())?,
                dir.readable::<LastErrorFile>(c"last_error", control)?,
            ],
        })
    }
}

/// The files of the module as a whole that can only be read.
pub(crate) struct RootFiles {
    _connections: File<Registry>,
    _listeners: File<Listeners>,
    _stats: File<Counted>,
    _history: File<History>,
}

impl RootFiles {
    /// Creates the files in `dir`; process context.
    pub(crate) fn new(
        dir: &Dir,
        registry: Arc<Registry>,
        own: &Own,
        stats: Arc<SharedStats>,
        status: Arc<ObserverStatus>,
        history: Arc<History>,
    ) -> Result<Self> {
        let counted = Arc::new(Counted { stats, status }, GFP_KERNEL)?;

        Ok(Self {
            _connections: dir.readable::<ConnectionsFile>(c"connections", registry)?,
            _listeners: dir.readable::<ListenersFile>(c"listeners", own.listeners.clone())?,
            _stats: dir.readable::<StatsFile>(c"stats", counted)?,
            _history: dir.readable::<HistoryFile>(c"history", history)?,
        })
    }
}

/// The state that the control files share.
#[pin_data]
struct Control {
    registry: Arc<Registry>,
    connections: Arc<Connections>,
    listeners: Arc<Listeners>,
    /// Why the last write failed; empty if it succeeded.
    #[pin]
    last_error: Mutex<Text<256>>,
    /// The report of the last probe.
    #[pin]
    report: Mutex<KVec<u8>>,
    /// The text of `call`: the outcome of the calls of the last command.
    #[pin]
    calls: Mutex<KVec<u8>>,
}

impl Control {
    /// Notes the result of a write to the file called `name`, and returns it for the writer.
    fn note(&self, name: &str, result: Result<(), Refused<'_>>) -> Result {
        let mut last_error = self.last_error.lock();
        *last_error = Text::EMPTY;
        result.map_err(|refused| {
            // `Text` cuts what does not fit, and never fails.
            let _ = write!(last_error, "{name}: {refused}");
            refused.error()
        })
    }

    fn show_report(&self, out: &mut Output) -> fmt::Result {
        out.write_bytes(&self.report.lock())
    }

    fn show_calls(&self, out: &mut Output) -> fmt::Result {
        out.write_bytes(&self.calls.lock())
    }

    fn show_last_error(&self, out: &mut Output) -> fmt::Result {
        let last_error = self.last_error.lock();
        match last_error.octets() {
            [] => out.write_str("none\n"),
            text => {
                out.write_bytes(text)?;
                out.write_str("\n")
            }
        }
    }
}

/// Why a control write was not carried out.
enum Refused<'a> {
    Line(grammar::LineError<'a>),
    Action(Failure),
}

impl Refused<'_> {
    fn error(&self) -> Error {
        match self {
            Self::Line(error) if error.is_too_many_octets() => errno(kernel::bindings::EMSGSIZE),
            Self::Line(_) => EINVAL,
            Self::Action(failure) => failure.error,
        }
    }
}

impl fmt::Display for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(error) => fmt::Display::fmt(error, f),
            Self::Action(failure) => fmt::Display::fmt(failure, f),
        }
    }
}

impl<'a> From<grammar::LineError<'a>> for Refused<'a> {
    fn from(error: grammar::LineError<'a>) -> Self {
        Self::Line(error)
    }
}

impl From<Failure> for Refused<'_> {
    fn from(failure: Failure) -> Self {
        Self::Action(failure)
    }
}

impl From<Error> for Refused<'_> {
    fn from(error: Error) -> Self {
        Self::Action(match error {
            ENOMEM => Failure::new(error, "no memory"),
            _ => Failure::new(error, "the kernel refused"),
        })
    }
}

struct ConnectFile;
struct ListenFile;
struct CloseFile;
struct ConnectionsFile;
struct HistoryFile;

/// Implements [`Writable`]: each file hands its lines to a function.
macro_rules! writable {
    ($($name:ident($file:literal) => $apply:path;)*) => {
        $(
            impl Writable for $name {
                type Data = Control;

                const LINE_MAX: usize = grammar::LINE_MAX;

                fn write(control: &Control, line: Result<&[u8]>, may_wait: &MayWait) -> Result {
                    let line = line.map_err(Refused::from);
                    let applied = line.and_then(|line| $apply(control, line, may_wait));
                    control.note($file, applied)
                }
            }
        )*
    };
}

writable! {
    ConnectFile("connect") => Control::connect;
    ListenFile("listen") => Control::listen;
    CloseFile("close") => Control::close;
    CallFile("call") => Control::call;
    ProbeFile("probe") => Control::probe;
}

impl Readable for ConnectionsFile {
    type Data = Registry;

    fn show(registry: &Registry, out: &mut Output) -> fmt::Result {
        table_files::connections(registry, out)
    }

    fn room(registry: &Registry) -> usize {
        (registry.count() + 1) * ConnectionColumns::LINE
    }
}

impl Readable for HistoryFile {
    type Data = History;

    fn show(history: &History, out: &mut Output) -> fmt::Result {
        table_files::history(history, out)
    }

    fn room(history: &History) -> usize {
        (history.count() + 1) * HistoryColumns::LINE
    }
}

readable! {
    LastErrorFile(Control) => Control::show_last_error;
    CallFile(Control) => Control::show_calls;
    ProbeFile(Control) => Control::show_report;
    ListenersFile(Listeners) => table_files::listeners;
    StatsFile(Counted) => table_files::stats;
}
