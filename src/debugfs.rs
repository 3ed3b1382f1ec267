// SPDX-License-Identifier: GPL-2.0

//! The module's files: what is written to them is done, and what is live is shown in them.

mod file;
mod probe;
mod render;

use core::{
    fmt::{
        self,
        Write, //
    },
    net::{
        SocketAddr,
        SocketAddrV4,
        SocketAddrV6, //
    }, //
};

use kernel::{
    new_mutex,
    prelude::*,
    str::CString,
    sync::{
        Arc,
        Mutex, //
    }, //
};

use self::{
    file::{
        File,
        Output,
        Readable,
        Writable, //
    },
    probe::{
        probe,
        Report, //
    }, //
};
use crate::{
    connection::{
        connector::{
            connect,
            Target, //
        },
        listener::listen,
        requester::Procedure,
        Connection,
        Terms, //
    },
    counters::SharedStats,
    failure::Failure,
    protocol::{
        control::{
            self,
            Address,
            CalledProcedure,
            Close,
            Zone, //
        },
        program::Program,
        snapshot::State,
        tables::ConnectionColumns,
        text::Text, //
    }, //
    rdma::{
        errno,
        net::Net, //
    },
    registry::{
        Live,
        Registry, //
    },
};

pub(crate) use self::file::Dir;

/// The files of the module as a whole.
pub(crate) struct RootFiles {
    _control: [File<Control>; 6],
    _tables: [File<Registry>; 2],
    _stats: File<SharedStats>,
}

impl RootFiles {
    /// Makes the files in `dir`; process context.
    pub(crate) fn new(dir: &Dir, registry: Arc<Registry>) -> Result<Self> {
        let stats = registry.stats.clone();
        let control_registry = registry.clone();
        let control = Arc::pin_init(
            pin_init!(Control {
                registry: control_registry,
                last_error <- new_mutex!(Text::EMPTY, "Control::last_error"),
                report <- new_mutex!(KVec::new(), "Control::report"),
            }),
            GFP_KERNEL,
        )?;

        Ok(Self {
            _control: [
                dir.writable::<ConnectFile>(c"connect", control.clone())?,
                dir.writable::<ListenFile>(c"listen", control.clone())?,
                dir.writable::<CloseFile>(c"close", control.clone())?,
                dir.writable::<CallFile>(c"call", control.clone())?,
                dir.answering::<ProbeFile>(c"probe", control.clone())?,
                dir.readable::<LastErrorFile>(c"last_error", control)?,
            ],
            _tables: [
                dir.readable::<ConnectionsFile>(c"connections", registry.clone())?,
                dir.readable::<ListenersFile>(c"listeners", registry)?,
            ],
            _stats: dir.readable::<StatsFile>(c"stats", stats)?,
        })
    }
}

/// The files of one connection, and the directory that holds them.
pub(crate) struct ConnectionFiles {
    _files: [File<Live>; 3],
    _dir: Dir,
}

impl ConnectionFiles {
    /// Makes the directory of `live`, which has that number, in `parent`; may sleep.
    pub(crate) fn new(parent: &Dir, number: u64, live: Arc<Live>) -> Result<Self> {
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

/// What is behind the control files.
#[pin_data]
struct Control {
    registry: Arc<Registry>,
    /// Why the last write failed; empty where it did not.
    #[pin]
    last_error: Mutex<Text<256>>,
    /// What the last probe found.
    #[pin]
    report: Mutex<KVec<u8>>,
}

impl Control {
    /// Notes what became of a write to the file called `name`, and returns it to who wrote.
    fn note(&self, name: &str, result: Result<(), Refused<'_>>) -> Result {
        let mut last_error = self.last_error.lock();
        *last_error = Text::EMPTY;
        result.map_err(|refused| {
            // `Text` cuts what does not fit, and never fails.
            let _ = write!(last_error, "{name}: {refused}");
            refused.error()
        })
    }
}

/// Why a control write was not carried out.
enum Refused<'a> {
    Line(control::LineError<'a>),
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

impl<'a> From<control::LineError<'a>> for Refused<'a> {
    fn from(error: control::LineError<'a>) -> Self {
        Self::Line(error)
    }
}

impl From<Failure> for Refused<'_> {
    fn from(failure: Failure) -> Self {
        Self::Action(failure)
    }
}

/// Looks up the zone of an address in `net`, whose interfaces zones name.
fn socket_addr(net: &Net, address: Address, port: u16) -> Result<SocketAddr, Failure> {
    let unknown = Failure::new(ENODEV, "no such interface");

    match address {
        Address::V4(ip) => Ok(SocketAddrV4::new(ip, port).into()),
        Address::V6 { address: ip, zone } => {
            let zone = match zone {
                None => 0,
                Some(Zone::Index(index)) => index,
                Some(Zone::Name(name)) => CStr::from_bytes_until_nul(&name)
                    .ok()
                    .and_then(|name| net.interface_index(name))
                    .ok_or(unknown)?,
            };
            Ok(SocketAddrV6::new(ip, port, 0, zone).into())
        }
    }
}

fn interrupted(error: Error) -> Failure {
    Failure::new(
        error,
        "interrupted while waiting for the end of a connection",
    )
}

impl From<Error> for Refused<'_> {
    fn from(error: Error) -> Self {
        Self::Action(match error {
            ENOMEM => Failure::new(error, "no memory"),
            _ => Failure::new(error, "the kernel refused"),
        })
    }
}

/// Returns whom to connect to, and with what, from within the writer's network namespace.
fn target(wanted: &control::Connect) -> Result<(Target, Terms), Failure> {
    let net = Net::current().map_err(|error| Failure::new(error, "no network namespace"))?;
    let to = socket_addr(&net, wanted.to.address, wanted.to.port)?;
    let from = wanted
        .from
        .map(|from| socket_addr(&net, from, 0))
        .transpose()?;

    let target = Target {
        net,
        to,
        from,
        reconnect: wanted.reconnect,
        timeout_ms: wanted.timeout_ms,
        null: wanted.null,
    };
    let terms = Terms {
        offered: wanted.offer,
        versions: wanted.rpc.versions,
        credits: wanted.rpc.credits,
        answers: false,
    };
    Ok((target, terms))
}

impl Control {
    fn connect<'a>(&self, line: &'a [u8]) -> Result<(), Refused<'a>> {
        let (target, terms) = target(&control::parse_connect(line)?)?;
        connect(&self.registry, target, terms)?;
        Ok(())
    }

    fn listen<'a>(&self, line: &'a [u8]) -> Result<(), Refused<'a>> {
        let wanted = control::parse_listen(line)?;
        let net = Net::current()?;
        let at = socket_addr(&net, wanted.at.address, wanted.at.port)?;
        let terms = Terms {
            offered: wanted.offer,
            versions: wanted.rpc.versions,
            credits: wanted.rpc.credits,
            answers: wanted.answer,
        };

        Ok(listen(&self.registry, &net, at, terms, wanted.max)?)
    }

    /// Returns the module's own connection of that number.
    fn own(&self, number: u64) -> Result<Arc<Connection>, Failure> {
        let live = self
            .registry
            .connection(number)
            .ok_or(Failure::new(ENOENT, "no such connection"))?;
        match &*live {
            Live::Own(connection) => Ok(connection.clone()),
            Live::Observed(_) => Err(Failure::new(EPERM, "not a connection of the module")),
        }
    }

    fn call<'a>(&self, line: &'a [u8]) -> Result<(), Refused<'a>> {
        let wanted = control::parse_call(line)?;
        let connection = self.own(wanted.connection)?;
        let (program, echo, count) = match wanted.procedure {
            CalledProcedure::Null(program) => (program, None, 1),
            CalledProcedure::Echo { size, count } => (Program::ECHO, Some(size), count),
        };
        let procedure = Procedure {
            program,
            echo,
            reply_chunk: wanted.chunks,
        };
        Ok(connection.as_arc_borrow().call(&procedure, count)?)
    }

    fn probe<'a>(&self, line: &'a [u8]) -> Result<(), Refused<'a>> {
        let wanted = control::parse_probe(line)?;
        let mut report = Report(KVec::new());
        probe(&self.registry, &wanted, &mut report)?;
        *self.report.lock() = report.0;
        Ok(())
    }

    fn show_report(&self, out: &mut Output) -> fmt::Result {
        out.write_octets(&self.report.lock())
    }

    fn close<'a>(&self, line: &'a [u8]) -> Result<(), Refused<'a>> {
        let registry = &self.registry;
        match control::parse_close(line)? {
            Close::Connection(number) => {
                let connection = self.own(number)?;
                connection.as_arc_borrow().close();
                connection.wait_gone().map_err(interrupted)?;
            }
            Close::Listener(number) => {
                if !registry.remove_listener(number) {
                    return Err(Failure::new(ENOENT, "no such listener").into());
                }
            }
            Close::All => {
                registry.close_all();
                for connection in registry.each_own() {
                    if connection.snapshot().state == State::Closing {
                        connection.wait_gone().map_err(interrupted)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn show_last_error(&self, out: &mut Output) -> fmt::Result {
        let last_error = self.last_error.lock();
        match last_error.octets() {
            [] => out.write_str("none\n"),
            text => {
                out.write_octets(text)?;
                out.write_str("\n")
            }
        }
    }
}

struct ConnectFile;
struct ListenFile;
struct CloseFile;
struct CallFile;
struct ProbeFile;
struct LastErrorFile;
struct ConnectionsFile;
struct ListenersFile;
struct StatsFile;
struct InfoFile;
struct SentFile;
struct ReceivedFile;

/// Says what is done with a line written to a file.
macro_rules! writable {
    ($($name:ident($file:literal) => $apply:path;)*) => {
        $(
            impl Writable for $name {
                type Data = Control;

                fn write(control: &Control, line: Result<&[u8]>) -> Result {
                    let line = line.map_err(Refused::from);
                    control.note($file, line.and_then(|line| $apply(control, line)))
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
        render::connections(registry, out)
    }

    fn room(registry: &Registry) -> usize {
        (registry.count() + 1) * ConnectionColumns::LINE
    }
}

/// Says what a file shows of its data.
macro_rules! readable {
    ($($name:ident($data:ty) => $show:path;)*) => {
        $(
            impl Readable for $name {
                type Data = $data;

                fn show(data: &$data, out: &mut Output) -> fmt::Result {
                    $show(data, out)
                }
            }
        )*
    };
}

readable! {
    LastErrorFile(Control) => Control::show_last_error;
    ProbeFile(Control) => Control::show_report;
    ListenersFile(Registry) => render::listeners;
    StatsFile(SharedStats) => render::stats;
    InfoFile(Live) => render::info;
    SentFile(Live) => render::sent;
    ReceivedFile(Live) => render::received;
}
