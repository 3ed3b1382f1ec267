// SPDX-License-Identifier: GPL-2.0

//! rpcrdma-cm: what NFS mounts and other RPC-over-RDMA connections negotiated.
//!
//! `parse` turns texts into values, `mount_report` joins them, `verdict` judges them, `remedy` says
//! what helps, and `render` shows them. These do no input or output. `files` reads, and this file
//! connects both parts.

mod bug_report;
mod check;
mod cli;
mod engine;
mod files;
mod mount_report;
mod parse;
mod remedy;
mod render;
mod rpcbind;
mod screen;
mod system_programs;
mod target;
mod verdict;

use std::{
    io::{
        self,
        IsTerminal,
        Write, //
    },
    net::{
        IpAddr,
        SocketAddr,
        TcpStream,
        ToSocketAddrs, //
    },
    process::ExitCode,
    thread,
    time::{
        Duration,
        Instant,
        SystemTime, //
    }, //
};

use clap::{
    CommandFactory,
    Parser, //
};
use crossterm::event;
use serde_json::json;

use crate::{
    bug_report::Section,
    cli::{
        Cli,
        Command,
        Pace,
        Probe, //
    },
    engine::{
        Engine,
        Keys, //
    },
    files::Files,
    mount_report::{
        Module,
        MountReport,
        Namespace, //
    },
    parse::{
        history::{
            history,
            news,
            Event, //
        },
        info,
        mounts::{
            mountinfo,
            Entry, //
        },
        stats::{
            observing,
            stats,
            Observing, //
        }, //
    },
    render::{
        prometheus,
        table,
        words,
        Style, //
    },
    screen::{
        Reading,
        Screen, //
    },
    target::Target,
    verdict::Severity, //
};

/// The status if something could not be read or the command line is wrong.
const FAILED: u8 = 3;

/// Why a command ended early.
enum Failure {
    /// The sentence to print.
    Sentence(String),
    /// The reader of the output has gone.
    Closed,
}

impl From<String> for Failure {
    fn from(sentence: String) -> Self {
        Self::Sentence(sentence)
    }
}

type Result<T> = std::result::Result<T, Failure>;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { FAILED } else { 0 });
        }
    };
    match run(cli) {
        Ok(status) => ExitCode::from(status),
        Err(Failure::Closed) => ExitCode::SUCCESS,
        Err(Failure::Sentence(sentence)) => {
            complain(&sentence);
            ExitCode::from(FAILED)
        }
    }
}

/// Prints one line on stderr.
fn complain(sentence: &str) {
    let _ = writeln!(io::stderr(), "rpcrdma-cm: {}", render::escape(sentence));
}

fn run(cli: Cli) -> Result<u8> {
    let tool = Tool::new(&cli);
    match cli.command.unwrap_or(Command::Connections) {
        Command::Connections => tool.connections()?,
        Command::Mounts {
            all_namespaces,
            wide,
        } => tool.mounts(all_namespaces, wide)?,
        Command::Show { id } => tool.show(id)?,
        Command::History { follow, pace } => tool.history(follow, &pace)?,
        Command::Watch { pace } => tool.watch(&pace)?,
        Command::Probe(probe) => return tool.probe(&probe),
        Command::Check(check) => return tool.check(&check),
        Command::Metrics { output } => tool.metrics(output.as_deref())?,
        Command::Report { addresses, output } => tool.report(addresses, output.as_deref())?,
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "rpcrdma-cm", &mut text);
            print_octets(&text)?;
        }
        Command::Man { command } => man(command.as_deref())?,
    }
    Ok(0)
}

/// Prints the man page of the tool, or of a command.
fn man(command: Option<&str>) -> Result<()> {
    // There is no page of `help`.
    let mut whole = Cli::command().disable_help_subcommand(true);
    // Gives the commands their full names.
    whole.build();
    let page = match command {
        None => whole,
        Some(name) => whole
            .find_subcommand(name)
            .cloned()
            .ok_or_else(|| format!("{name}: no such command"))?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page)
        .render(&mut text)
        .map_err(|error| error.to_string())?;
    print_octets(&text)
}

fn print_octets(octets: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(octets)
        .and_then(|()| out.flush())
        .map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::Sentence(format!("standard output: {error}")),
        })
}

fn print(text: &str) -> Result<()> {
    print_octets(text.as_bytes())
}

/// The connections, and the events if the module keeps them.
type ModuleData = (Vec<info::Info>, Option<Vec<Event>>);

struct Tool {
    files: Files,
    json: bool,
    style: Style,
}

impl Tool {
    fn new(cli: &Cli) -> Self {
        let terminal = io::stdout().is_terminal();
        // https://no-color.org: colours are off if it is set and not empty.
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            files: Files {
                debugfs: cli.common.debugfs.clone(),
                proc: cli.common.proc.clone(),
                sys: cli.common.sys.clone(),
                fstab: cli.common.fstab.clone(),
            },
            json: cli.common.json,
            style: Style {
                colour: terminal && wanted,
                terminal,
            },
        }
    }

    /// The connections, rendered.
    fn connections_text(&self) -> Result<String> {
        let connections = info::connections(&self.files.module("connections")?);
        let observing = self.observing();
        if self.json {
            let rows: Vec<_> = connections.iter().map(info::row).collect();
            let content = json!({ "connections": rows, "observing": observing });
            return Ok(render::json("connections", content)?);
        }
        let line = words::observing(self.style, observing.as_ref());
        Ok(line + &table::connections(self.style, &connections))
    }

    /// Whether the module observes others, or `None` if `stats` does not say.
    fn observing(&self) -> Option<Observing> {
        // If the file cannot be read, the other files have said so.
        observing(&self.files.module("stats").ok()?)
    }

    fn connections(&self) -> Result<()> {
        print(&self.connections_text()?)
    }

    fn watch(&self, pace: &Pace) -> Result<()> {
        if !self.json && self.style.terminal && io::stdin().is_terminal() {
            let mut terminal = ratatui::try_init().map_err(|error| error.to_string())?;
            let shown = self.watch_screen(&mut terminal, pace);
            ratatui::restore();
            return Ok(shown.map_err(|error| format!("the terminal: {error}"))?);
        }
        self.repeat(pace, |_| {
            let text = self.connections_text()?;
            if self.json {
                print(&text)
            } else {
                print(&format!("{text}\n"))
            }
        })
    }

    /// Shows the screen until a key ends it, or after `pace.count` readings.
    fn watch_screen(&self, terminal: &mut ratatui::DefaultTerminal, pace: &Pace) -> io::Result<()> {
        let start = Instant::now();
        let mut screen = Screen::new();
        let mut done = 0;
        loop {
            screen.take(self.reading(start));
            done += 1;
            let next = Instant::now() + Duration::from_secs(pace.interval);
            loop {
                terminal.draw(|frame| screen.draw(frame))?;
                if pace.count.is_some_and(|count| done >= count) {
                    return Ok(());
                }
                if !event::poll(next.saturating_duration_since(Instant::now()))? {
                    break;
                }
                // Every other event, as another size of the terminal, is answered by drawing.
                if let event::Event::Key(key) = event::read()? {
                    if key.kind == event::KeyEventKind::Press && !screen.key(key) {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// All that the screen of `watch` shows.
    fn reading(&self, start: Instant) -> Reading {
        let read = self.module_data();
        let trouble = match &read {
            Ok(_) => self.observing().and_then(|observing| observing.sentence()),
            Err(why) => Some(why.clone()),
        };
        let read = read.ok();
        // The counters of the mounts are of this time.
        let at = start.elapsed();
        let mounts = self.own_reports(read.as_ref());
        let trouble = mounts.as_ref().err().cloned().or(trouble);
        let (connections, events) = read.unwrap_or_default();
        Reading {
            at,
            mounts: mounts.unwrap_or_default(),
            connections,
            events: events.unwrap_or_default(),
            trouble,
        }
    }

    /// Calls `round` at intervals, `pace.count` times or without end.
    fn repeat(&self, pace: &Pace, mut round: impl FnMut(u64) -> Result<()>) -> Result<()> {
        let mut done = 0;
        loop {
            round(done)?;
            done += 1;
            if pace.count.is_some_and(|count| done >= count) {
                return Ok(());
            }
            thread::sleep(Duration::from_secs(pace.interval));
        }
    }

    fn mounts(&self, all_namespaces: bool, wide: bool) -> Result<()> {
        let reports = self.reports(all_namespaces)?;
        let observing = self.observing();
        if self.json {
            let content = json!({ "mounts": reports, "observing": observing });
            return print(&render::json("mounts", content)?);
        }
        print(&words::observing(self.style, observing.as_ref()))?;
        if reports.is_empty() {
            return print(self.no_mount());
        }
        if wide {
            print(&table::mounts(self.style, &reports))?;
        }
        print(&words::mounts(self.style, &reports, wide))
    }

    /// The line in place of an empty table.
    fn no_mount(&self) -> &'static str {
        // If the file cannot be read, `reports` has said so.
        let connections = self.files.module("connections").unwrap_or_default();
        let is_server = |info: &info::Info| info.is_of("nfs") && !info.is_client();
        if info::connections(&connections).iter().any(is_server) {
            "no NFS mount uses RDMA; this host's NFS server has connections over RDMA: \
             `rpcrdma-cm connections` lists them, and `rpcrdma-cm show ID` has the verdicts on one\n"
        } else {
            "no NFS mount uses RDMA\n"
        }
    }

    /// All that is known of the mounts. If the files of the module cannot be read, prints why, and
    /// goes on with the counters of NFS.
    fn reports(&self, all_namespaces: bool) -> Result<Vec<MountReport>> {
        let read = self.module_data().map_err(|why| complain(&why)).ok();
        let mut reports = self.own_reports(read.as_ref())?;
        if all_namespaces {
            let (others, denied) = self.files.other_namespaces()?;
            reports.extend(self.reports_of(&others, read.as_ref()));
            if denied > 0 {
                complain(&format!(
                    "{denied} processes could not be looked at: their namespaces are seen by root only"
                ));
            }
        }
        Ok(reports)
    }

    /// The connections, and the events if the module keeps them.
    fn module_data(&self) -> files::Result<ModuleData> {
        Ok((self.infos()?, self.events()?))
    }

    /// All that is known of the mounts of this namespace.
    fn own_reports(&self, read: Option<&ModuleData>) -> files::Result<Vec<MountReport>> {
        Ok(self.reports_of(&[self.files.own_namespace()?], read))
    }

    fn reports_of(&self, namespaces: &[Namespace], read: Option<&ModuleData>) -> Vec<MountReport> {
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |now| now.as_secs());
        let module = read.map(|(connections, events)| Module {
            connections,
            history: events.as_deref(),
            observing: self.observing(),
            now,
        });
        let transports = self.files.transports();
        namespaces
            .iter()
            .flat_map(|namespace| mount_report::mounts(namespace, module.as_ref(), &transports))
            .collect()
    }

    /// The `info` of every connection. A connection that ends meanwhile is left out.
    fn infos(&self) -> files::Result<Vec<info::Info>> {
        let connections = info::connections(&self.files.module("connections")?);
        Ok(connections
            .iter()
            .filter_map(|row| {
                let text = self
                    .files
                    .module(&format!("connection/{}/info", row.id?))
                    .ok()?;
                Some(info::info(&text))
            })
            .collect())
    }

    /// The events, or `None` if the module has no `history`.
    fn events(&self) -> files::Result<Option<Vec<Event>>> {
        Ok(self.files.optional("history")?.map(|text| history(&text)))
    }

    fn show(&self, id: u64) -> Result<()> {
        let directory = format!("connection/{id}");
        let text = match self.files.module(&format!("{directory}/info")) {
            Ok(text) => text,
            Err(why) => {
                // Reading the table tells a missing connection from a missing module.
                self.files.module("connections")?;
                if self.files.debugfs.join(&directory).is_dir() {
                    return Err(why.into());
                }
                return Err(format!("there is no connection {id}").into());
            }
        };
        let info = info::info(&text);
        let sent = self.files.bytes(&format!("{directory}/sent"))?;
        let received = self.files.bytes(&format!("{directory}/received"))?;
        if self.json {
            let content = json!({
                "connection": info,
                "sent": hex(&sent),
                "received": hex(&received),
                "verdicts": verdict::of_connection(&info, &sent),
            });
            return print(&render::json("connection", content)?);
        }
        print(&words::show(self.style, &info, &sent, &received))
    }

    fn history(&self, follow: bool, pace: &Pace) -> Result<()> {
        let mut known: Option<Vec<Event>> = None;
        let once = Pace {
            interval: pace.interval,
            count: Some(1),
        };
        self.repeat(if follow { pace } else { &once }, |_| {
            let events = self
                .events()?
                .ok_or_else(|| "this version of the module rpcrdma_cm has no history".to_owned())?;
            let new = news(known.as_deref().unwrap_or_default(), &events);
            let text = match (self.json, &known) {
                (true, None) => render::json("history", json!({ "events": new }))?,
                (true, Some(_)) => new
                    .iter()
                    .map(|event| render::json("history", json!({ "events": [event] })))
                    .collect::<std::result::Result<String, String>>()?,
                (false, Some(_)) if new.is_empty() => String::new(),
                (false, known) => {
                    let text = table::history(self.style, new);
                    // The header stands above the first ones only.
                    match known {
                        Some(_) => text
                            .split_once('\n')
                            .map_or("", |(_, rest)| rest)
                            .to_owned(),
                        None => words::observing(self.style, self.observing().as_ref()) + &text,
                    }
                }
            };
            known = Some(events);
            print(&text)
        })
    }

    fn probe(&self, probe: &Probe) -> Result<u8> {
        let target = Target::parse(&probe.target)?.resolved(resolve)?;
        let engine = self.engine(probe.engine)?;
        let from = match &probe.from {
            // Both engines take this address without a port.
            Some(from) => {
                let from =
                    Target::parse(from)?.resolved(|name, _| Err(format!("{name}: no address")))?;
                from.rsplit_once(':').map(|(address, _)| address.to_owned())
            }
            None => None,
        };
        let keys = [
            ("send", probe.send.map(|value| value.to_string())),
            ("recv", probe.receive.map(|value| value.to_string())),
            ("inv", probe.invalidation.then(|| "1".to_owned())),
            ("from", from),
            (
                "timeout_ms",
                probe.timeout_ms.map(|value| value.to_string()),
            ),
            ("program", probe.program.map(|value| value.to_string())),
            ("version", probe.version.map(|value| value.to_string())),
            ("rpcvers", probe.rpcvers.clone()),
        ];
        let report = self.ask(engine, &target, &keys)?;
        let verdicts = verdict::of_report(&target, &report);
        let worst = verdicts.iter().map(|verdict| verdict.severity).max();
        let status = match worst {
            Some(Severity::Failed) => 2,
            Some(Severity::Degraded) => 1,
            Some(Severity::Unknown) => FAILED,
            _ => 0,
        };
        if self.json {
            let content = json!({
                "target": target,
                "engine": engine,
                "report": report,
                "verdicts": verdicts,
                "status": status,
            });
            print(&render::json("probe", content)?)?;
        } else {
            print(&words::probe(self.style, &target, &report, &verdicts))?;
        }
        Ok(status)
    }

    /// What asks servers: what is wanted, or what is there.
    fn engine(&self, wanted: Option<Engine>) -> files::Result<Engine> {
        let install = "install rpcrdma-conformance, which needs no module";
        match (wanted, self.files.takes_commands()) {
            (None | Some(Engine::Kernel), Ok(())) => Ok(Engine::Kernel),
            (Some(Engine::Kernel), Err(why)) => Err(why),
            _ if system_programs::suite_exists() => Ok(Engine::User),
            (_, Err(why)) => Err(format!("{why}; or {install}")),
            (_, Ok(())) => Err(install.to_owned()),
        }
    }

    /// Asks a server.
    fn ask(&self, engine: Engine, target: &str, keys: &Keys) -> files::Result<info::Report> {
        let text = match engine {
            Engine::Kernel => self.files.probe(&engine::line(target, keys))?,
            Engine::User => system_programs::suite(&engine::words(target, keys)?)?,
        };
        Ok(info::report(&text))
    }

    /// Prints what is missing on this host, and on a server, for NFS over RDMA. Returns the status.
    fn check(&self, options: &cli::Check) -> Result<u8> {
        let namespace = self.files.own_namespace()?;
        let server = options.server.as_deref().map(target::server_of);
        let entries: Vec<&Entry> = namespace
            .fstab
            .iter()
            .filter(|entry| server.is_none_or(|server| server == target::server_of(&entry.source)))
            .collect();
        let target = server
            .map(|server| {
                let port = options
                    .port
                    .or_else(|| entries.iter().find_map(|entry| entry.port()));
                Target::with_port(server, port.unwrap_or(target::PORT))?.resolved(resolve)
            })
            .transpose()?;

        let is_loaded = self.files.is_loaded("rpcrdma");
        let exists = if is_loaded {
            Some(true)
        } else {
            system_programs::module_exists("rpcrdma")
        };
        let engine = target.as_ref().map(|_| self.engine(options.engine));
        if let (Some(_), Some(Err(why))) = (options.engine, &engine) {
            return Err(why.clone().into());
        }
        let mut checks = vec![
            check::modules(is_loaded, exists),
            check::observer(
                self.files
                    .module("connections")
                    .map(|_| self.observing()?.sentence()),
            ),
        ];
        checks.extend(engine.as_ref().map(check::engine));
        let ports = self.files.rdma_ports();
        let address = target
            .as_deref()
            .and_then(|text| target::socket_address(text, |name| self.files.interface_index(name)));
        let scope = match address {
            Some(SocketAddr::V6(address)) => address.scope_id(),
            _ => 0,
        };
        let zone = Some(scope).filter(|scope| *scope != 0);
        let zone = zone.and_then(|index| self.files.interface_of(index));
        let zone = zone.as_deref();
        // Of a zone that is no interface here, nothing is known.
        let address = address.filter(|_| scope == 0 || zone.is_some());
        let route = address.map(|address| system_programs::interface_towards(address.ip(), zone));
        let towards = match &route {
            // By `lo`, the server is this host.
            Some(Ok(Some(name))) if name != "lo" => Some(name),
            _ => None,
        };
        let drivers = self.files.network_drivers();
        checks.extend(check::devices(
            &ports,
            towards.map(|name| &**name),
            &drivers,
        ));
        for port in &ports {
            for name in &port.interfaces {
                if towards.is_some_and(|towards| towards != name) {
                    continue;
                }
                checks
                    .extend(system_programs::mtu(name).and_then(|mtu| check::mtu(port, name, mtu)));
            }
        }
        if let Some((address, text)) = address.zip(target.as_deref()) {
            // With its zone.
            let server = remedy::host(text);
            if matches!(route, Some(Ok(None))) {
                checks.push(check::no_route(server));
            }
            checks.extend(towards.and_then(|name| path(server, address.ip(), zone, name)));
            let found = rpcbind::dump(address);
            checks.push(check::rpcbind(server, address.port(), found));
        }
        if let (Some(target), Some(engine)) = (&target, &engine) {
            let used = ports
                .iter()
                .find(|port| port.interfaces.iter().any(|name| Some(name) == towards));
            if let Ok(engine) = engine {
                checks.extend(
                    self.check_server(*engine, target, used.map(check::Port::transport))
                        .unwrap_or_else(|why| vec![check::not_asked(&why)]),
                );
            } else if let Some(address) = address.filter(|_| used.is_some_and(|port| port.is_iwarp))
            {
                let found = TcpStream::connect_timeout(&address, Duration::from_secs(5));
                checks.push(check::tcp_port(target, found.map(|_| ())));
            }
        }
        let mounts = mountinfo(&namespace.mountinfo);
        checks.extend(entries.iter().map(|entry| check::fstab(entry, &mounts)));
        let is_in_fstab = |point: &str| entries.iter().any(|entry| entry.mount_point == point);
        checks.extend(
            mounts
                .iter()
                .filter(|mount| !is_in_fstab(&mount.mount_point))
                .filter(|mount| {
                    server.is_none_or(|server| server == target::server_of(&mount.source))
                })
                .filter_map(|mount| check::mount(mount, &mounts)),
        );
        let status = check::status(&checks);
        if self.json {
            let content = json!({
                "target": target,
                "engine": engine.and_then(std::result::Result::ok),
                "checks": checks,
                "status": status,
            });
            print(&render::json("check", content)?)?;
        } else {
            print(&words::checks(self.style, &checks))?;
        }
        Ok(status)
    }

    /// Asks a server by probes, with the sizes that this host's mounts offer.
    fn check_server(
        &self,
        engine: Engine,
        target: &str,
        transport: Option<remedy::Transport>,
    ) -> files::Result<Vec<check::Check>> {
        let size = |name: &str| {
            let text = self.files.read(&format!("sys/sunrpc/{name}")).ok()?;
            let octets: u64 = text.trim().parse().ok()?;
            // The client rounds down, too.
            (octets >= 1024).then(|| (octets - octets % 1024).to_string())
        };
        let probe = |version: u64| {
            let keys = [
                ("credits", Some(check::CREDITS.to_string())),
                ("send", size("rdma_max_inline_write")),
                ("recv", size("rdma_max_inline_read")),
                ("version", Some(version.to_string())),
            ];
            self.ask(engine, target, &keys)
        };
        let report = probe(4)?;
        let mut answers = Vec::new();
        if report.reachable == Some(true) {
            for (version, report) in [(3, &probe(3)?), (4, &report)] {
                answers.push((version, check::answer(report, version)));
            }
        }
        Ok(check::of_report(target, &report, &answers, transport))
    }

    fn metrics(&self, output: Option<&std::path::Path>) -> Result<()> {
        let mounts = self.reports(false)?;
        let module = self.files.module("connections").and_then(|connections| {
            let text = self.files.module("stats")?;
            Ok((
                info::connections(&connections),
                stats(&text),
                observing(&text),
            ))
        });
        let module = module.ok();
        let families = prometheus::families(&prometheus::Content {
            module: module
                .as_ref()
                .map(|(connections, stats, observing)| prometheus::Module {
                    connections,
                    stats,
                    observing: observing.as_ref(),
                }),
            mounts: &mounts,
        });
        let text = if self.json {
            render::json("metrics", json!({ "families": families }))?
        } else {
            prometheus::text(&families)
        };
        match output {
            Some(path) => Ok(files::replace(path, &text)?),
            None => print(&text),
        }
    }

    /// Prints all that a bug report needs. A section that cannot be read says why.
    fn report(&self, addresses: bool, output: Option<&std::path::Path>) -> Result<()> {
        let section = |name: &str, text: files::Result<String>| Section {
            name: name.to_owned(),
            text: text.unwrap_or_else(|why| why),
        };
        let mut sections = vec![
            section("rpcrdma-cm", Ok(env!("CARGO_PKG_VERSION").to_owned())),
            section("kernel", self.files.read("version")),
            section(
                "modules",
                self.files.read("modules").map(|text| rdma_modules(&text)),
            ),
        ];
        for name in ["stats", "connections", "listeners", "history"] {
            sections.push(section(name, self.files.module(name)));
        }
        for info in self.infos().unwrap_or_default() {
            if let Some(id) = info.id {
                let name = format!("connection/{id}/info");
                sections.push(section(&name, self.files.module(&name)));
            }
        }
        let plain = Style {
            colour: false,
            terminal: false,
        };
        let reports = self.reports(false)?;
        let mounts = table::mounts(plain, &reports) + &words::mounts(plain, &reports, true);
        sections.push(section("mounts", Ok(mounts)));
        let mountstats = self.files.read("self/mountstats");
        sections.push(section(
            "mountstats",
            mountstats.map(|text| transport_lines(&text)),
        ));
        sections.push(section("sysctls of sunrpc", Ok(self.files.sysctls())));
        for words in [
            &["rdma", "link", "show"][..],
            &["rdma", "resource", "show", "cm_id"],
            &["rdma", "resource", "show", "qp"],
            &["ip", "-s", "-d", "link", "show"],
        ] {
            sections.push(section(&words.join(" "), system_programs::output(words)));
        }
        for interface in self.files.rdma_interfaces() {
            let words = ["ethtool", "-i", &*interface];
            sections.push(section(&words.join(" "), system_programs::output(&words)));
        }
        let text = bug_report::text(&sections, addresses);
        match output {
            Some(path) => Ok(files::replace(path, &text)?),
            None => print(&text),
        }
    }
}

/// The lines of /proc/modules that are of RDMA and of RPC.
fn rdma_modules(text: &str) -> String {
    let is_wanted = |line: &&str| {
        [
            "rpcrdma", "sunrpc", "nfs", "rdma", "ib_", "iw_", "siw", "mlx", "irdma", "bnxt", "qed",
        ]
        .iter()
        .any(|begin| line.starts_with(begin))
    };
    let lines: Vec<&str> = text.lines().filter(is_wanted).collect();
    lines.join("\n")
}

/// The lines of mountstats that are of mounts and of transports, without those of each operation.
fn transport_lines(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| {
            let word = line.trim_start();
            line.contains(" with fstype nfs")
                || ["opts:", "age:", "xprt:"]
                    .iter()
                    .any(|key| word.starts_with(key))
        })
        .collect();
    lines.join("\n")
}

/// Whether packets as long as the interface's MTU reach the server. `None` if that cannot be found out.
fn path(
    server: &str,
    address: IpAddr,
    zone: Option<&str>,
    interface: &str,
) -> Option<check::Check> {
    let mtu = system_programs::mtu(interface)?;
    let long = system_programs::ping(address, zone, mtu)?;
    let short = match long.answered {
        // As short as every link takes.
        0 => system_programs::ping(address, zone, 100)?,
        _ => long,
    };
    Some(check::path(server, mtu, long, short))
}

/// Looks a name up, and returns its first address.
fn resolve(name: &str, port: u16) -> std::result::Result<std::net::SocketAddr, String> {
    (name, port)
        .to_socket_addrs()
        .map_err(|error| format!("{name}: {error}"))?
        .next()
        .ok_or_else(|| format!("{name}: no address"))
}

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut hex, octet| {
        // A `String` takes any text.
        let _ = std::fmt::Write::write_fmt(&mut hex, format_args!("{octet:02x}"));
        hex
    })
}
