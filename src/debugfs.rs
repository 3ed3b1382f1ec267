// SPDX-License-Identifier: GPL-2.0

//! The module's files: what is written to them is done, and what is live is shown in them.

pub(crate) mod control;
mod file;
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
    control::{
        Address,
        Close,
        Zone, //
    },
    file::{
        File,
        Output,
        Readable,
        Writable, //
    },
};
use crate::{
    connection::{
        connector::{
            connect,
            Target, //
        },
        listener::listen,
        Connection,
        Failure,
        State, //
    },
    rdma::{
        address::Net,
        errno, //
    },
    registry::Registry, //
};

pub(crate) use self::file::Dir;

/// The files of the module as a whole.
pub(crate) struct RootFiles {
    _control: [File<Control>; 4],
    _state: [File<Registry>; 3],
}

impl RootFiles {
    /// Makes the files in `dir`; process context.
    pub(crate) fn new(dir: &Dir, registry: Arc<Registry>) -> Result<Self> {
        let control_registry = registry.clone();
        let control = Arc::pin_init(
            pin_init!(Control {
                registry: control_registry,
                last_error <- new_mutex!(Text::NONE, "Control::last_error"),
            }),
            GFP_KERNEL,
        )?;

        Ok(Self {
            _control: [
                dir.writable::<ConnectFile>(c"connect", control.clone())?,
                dir.writable::<ListenFile>(c"listen", control.clone())?,
                dir.writable::<CloseFile>(c"close", control.clone())?,
                dir.readable::<LastErrorFile>(c"last_error", control)?,
            ],
            _state: [
                dir.readable::<ConnectionsFile>(c"connections", registry.clone())?,
                dir.readable::<ListenersFile>(c"listeners", registry.clone())?,
                dir.readable::<StatsFile>(c"stats", registry)?,
            ],
        })
    }
}

/// The files of one connection, and the directory that holds them.
pub(crate) struct ConnectionFiles {
    _files: [File<Connection>; 3],
    _dir: Dir,
}

impl ConnectionFiles {
    /// Makes the directory of `connection` in `parent`; may sleep.
    pub(crate) fn new(parent: &Dir, connection: Arc<Connection>) -> Result<Self> {
        let name = CString::try_from_fmt(fmt!("{}", connection.number))?;
        let dir = Dir::new(&name, Some(parent))?;

        Ok(Self {
            _files: [
                dir.readable::<InfoFile>(c"info", connection.clone())?,
                dir.readable::<SentFile>(c"sent", connection.clone())?,
                dir.readable::<ReceivedFile>(c"received", connection)?,
            ],
            _dir: dir,
        })
    }
}

/// A text of bounded length; what does not fit is left out.
struct Text {
    octets: [u8; 256],
    len: usize,
}

impl Text {
    const NONE: Self = Self {
        octets: [0; 256],
        len: 0,
    };

    fn octets(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or_default()
    }
}

impl Write for Text {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let room = self.octets.get_mut(self.len..).unwrap_or_default();
        let len = room.len().min(s.len());
        for (to, from) in room.iter_mut().zip(s.as_bytes()) {
            *to = *from;
        }
        self.len += len;
        Ok(())
    }
}

/// What is behind the control files.
#[pin_data]
struct Control {
    registry: Arc<Registry>,
    /// Why the last write failed; empty where it did not.
    #[pin]
    last_error: Mutex<Text>,
}

impl Control {
    /// Notes what became of a write to the file called `name`, and returns it to who wrote.
    fn note(&self, name: &str, result: Result<(), Refused<'_>>) -> Result {
        let mut last_error = self.last_error.lock();
        *last_error = Text::NONE;
        result.map_err(|refused| {
            // `Text` cuts what does not fit, and never fails.
            let _ = write!(last_error, "{name}: {refused}");
            refused.error()
        })
    }
}

/// Why a control write was not carried out.
enum Refused<'a> {
    Line(control::Refusal<'a>),
    Action(Failure),
}

impl Refused<'_> {
    fn error(&self) -> Error {
        match self {
            Self::Line(refusal) if refusal.is_too_many_octets() => {
                errno(kernel::bindings::EMSGSIZE)
            }
            Self::Line(_) => EINVAL,
            Self::Action(failure) => failure.error,
        }
    }
}

impl fmt::Display for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(refusal) => fmt::Display::fmt(refusal, f),
            Self::Action(failure) => fmt::Display::fmt(failure, f),
        }
    }
}

impl<'a> From<control::Refusal<'a>> for Refused<'a> {
    fn from(refusal: control::Refusal<'a>) -> Self {
        Self::Line(refusal)
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

impl Failure {
    fn interrupted(error: Error) -> Self {
        Self::new(
            error,
            "interrupted while waiting for the end of a connection",
        )
    }
}

impl From<Error> for Refused<'_> {
    fn from(error: Error) -> Self {
        Self::Action(Failure::new(error, "the kernel refused"))
    }
}

struct ConnectFile;

impl ConnectFile {
    fn apply<'a>(control: &Control, line: &'a [u8]) -> Result<(), Refused<'a>> {
        let wanted = control::parse_connect(line)?;
        let net = Net::current()?;
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
        };
        Ok(connect(&control.registry, target, wanted.offer)?)
    }
}

impl Writable for ConnectFile {
    type Data = Control;

    fn write(control: &Control, line: &[u8]) -> Result {
        control.note("connect", Self::apply(control, line))
    }
}

struct ListenFile;

impl ListenFile {
    fn apply<'a>(control: &Control, line: &'a [u8]) -> Result<(), Refused<'a>> {
        let wanted = control::parse_listen(line)?;
        let net = Net::current()?;
        let at = socket_addr(&net, wanted.at.address, wanted.at.port)?;

        Ok(listen(
            &control.registry,
            &net,
            at,
            wanted.offer,
            wanted.max,
        )?)
    }
}

impl Writable for ListenFile {
    type Data = Control;

    fn write(control: &Control, line: &[u8]) -> Result {
        control.note("listen", Self::apply(control, line))
    }
}

struct CloseFile;

impl CloseFile {
    fn apply<'a>(registry: &Registry, line: &'a [u8]) -> Result<(), Refused<'a>> {
        match control::parse_close(line)? {
            Close::Connection(number) => {
                let connection = registry
                    .connection(number)
                    .ok_or(Failure::new(ENOENT, "no such connection"))?;
                connection.as_arc_borrow().close();
                connection.wait_gone().map_err(Failure::interrupted)?;
            }
            Close::Listener(number) => {
                if !registry.remove_listener(number) {
                    return Err(Failure::new(ENOENT, "no such listener").into());
                }
            }
            Close::All => {
                registry.close_all();
                for connection in registry.each_connection() {
                    if connection.with(|inner| inner.state == State::Closing) {
                        connection.wait_gone().map_err(Failure::interrupted)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Writable for CloseFile {
    type Data = Control;

    fn write(control: &Control, line: &[u8]) -> Result {
        control.note("close", Self::apply(&control.registry, line))
    }
}

struct LastErrorFile;

impl Readable for LastErrorFile {
    type Data = Control;

    fn show(control: &Control, out: &mut Output<'_>) -> fmt::Result {
        let last_error = control.last_error.lock();
        match last_error.octets() {
            [] => out.write_str("none\n"),
            text => {
                out.write_octets(text);
                out.write_str("\n")
            }
        }
    }
}

struct ConnectionsFile;

impl Readable for ConnectionsFile {
    type Data = Registry;

    fn show(registry: &Registry, out: &mut Output<'_>) -> fmt::Result {
        render::connections(registry, out)
    }
}

struct ListenersFile;

impl Readable for ListenersFile {
    type Data = Registry;

    fn show(registry: &Registry, out: &mut Output<'_>) -> fmt::Result {
        render::listeners(registry, out)
    }
}

struct StatsFile;

impl Readable for StatsFile {
    type Data = Registry;

    fn show(registry: &Registry, out: &mut Output<'_>) -> fmt::Result {
        render::stats(registry, out)
    }
}

struct InfoFile;

impl Readable for InfoFile {
    type Data = Connection;

    fn show(connection: &Connection, out: &mut Output<'_>) -> fmt::Result {
        render::info(connection, out)
    }
}

struct SentFile;

impl Readable for SentFile {
    type Data = Connection;

    fn show(connection: &Connection, out: &mut Output<'_>) -> fmt::Result {
        let sent = connection.with(|inner| inner.exchange.sent);
        out.write_octets(sent.octets());
        Ok(())
    }
}

struct ReceivedFile;

impl Readable for ReceivedFile {
    type Data = Connection;

    fn show(connection: &Connection, out: &mut Output<'_>) -> fmt::Result {
        if let Some((received, _)) = connection.with(|inner| inner.exchange.received) {
            out.write_octets(received.octets());
        }
        Ok(())
    }
}
