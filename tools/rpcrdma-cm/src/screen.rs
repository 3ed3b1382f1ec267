// SPDX-License-Identifier: GPL-2.0

//! The screen of `watch`: what the mounts and the connections do at present.
//!
//! It is drawn from readings, and changed by keys. The terminal belongs to `main`.

use std::{
    cmp::Reverse,
    collections::{
        BTreeMap,
        VecDeque, //
    },
    time::Duration,
};

use crossterm::event::{
    KeyCode,
    KeyEvent,
    KeyModifiers, //
};
use ratatui::{
    layout::{
        Constraint,
        Layout,
        Rect, //
    },
    style::{
        Color,
        Style,
        Stylize, //
    },
    text::{
        Line,
        Span, //
    },
    widgets::{
        Block,
        Cell,
        Paragraph,
        Row,
        Table, //
    },
    Frame,
};

use crate::{
    mount_report::MountReport,
    parse::{
        history::Event,
        info::Info, //
    },
    render::{
        escape,
        or_dash,
        words::place,
        yes_no, //
    },
    verdict::{
        Severity,
        Verdict, //
    }, //
};

/// How many rates are kept for a sparkline, and how many it shows.
const RATES: usize = 20;

/// The characters of a sparkline, lowest first.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

const KEYS: &str = " q quit   s sort   / filter   ↑ ↓ scroll the connections ";

/// All that was read at one moment.
#[derive(Default)]
pub(crate) struct Reading {
    /// Since the first reading.
    pub(crate) at: Duration,
    pub(crate) mounts: Vec<MountReport>,
    pub(crate) connections: Vec<Info>,
    /// Oldest first.
    pub(crate) events: Vec<Event>,
    /// What could not be read, or may be missing.
    pub(crate) trouble: Option<String>,
}

/// The order of the mounts.
#[derive(Clone, Copy)]
enum Order {
    Name,
    Calls,
    Chunks,
    Verdict,
}

impl Order {
    fn next(self) -> Self {
        match self {
            Self::Name => Self::Calls,
            Self::Calls => Self::Chunks,
            Self::Chunks => Self::Verdict,
            Self::Verdict => Self::Name,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Calls => "calls",
            Self::Chunks => "chunks",
            Self::Verdict => "verdict",
        }
    }
}

/// The rates of a mount between two readings.
#[derive(Default)]
struct Rates {
    /// Calls a second, oldest first.
    calls: VecDeque<u64>,
    /// Segments of chunks in percent of the calls, of the last pair of readings.
    chunks: Option<u64>,
}

/// What is shown.
pub(crate) struct Screen {
    reading: Reading,
    /// By the places of the mounts.
    rates: BTreeMap<String, Rates>,
    order: Order,
    filter: String,
    /// Whether keys go into the filter.
    is_typing: bool,
    /// The first connection that is shown.
    offset: usize,
}

impl Screen {
    pub(crate) fn new() -> Self {
        Self {
            reading: Reading::default(),
            rates: BTreeMap::new(),
            order: Order::Verdict,
            filter: String::new(),
            is_typing: false,
            offset: 0,
        }
    }

    /// Takes the next reading.
    pub(crate) fn take(&mut self, reading: Reading) {
        let elapsed = reading.at.saturating_sub(self.reading.at).as_millis();
        let mut rates = BTreeMap::new();
        for report in &reading.mounts {
            let name = place(report);
            let mut known = self.rates.remove(&name).unwrap_or_default();
            let before = self.reading.mounts.iter().find(|one| place(one) == name);
            // A counter that fell is of other transports: the mount was made again.
            let growth = |value: fn(&MountReport) -> Option<u64>| {
                value(report)?.checked_sub(value(before?)?)
            };
            let calls = growth(|one| one.stats.as_ref()?.counters.sends);
            let segments = growth(|one| one.stats.as_ref()?.regions());
            let rate = calls.and_then(|calls| {
                u128::from(calls)
                    .saturating_mul(1000)
                    .checked_div(elapsed)
                    .and_then(|rate| u64::try_from(rate).ok())
            });
            match rate {
                Some(rate) => {
                    known.calls.push_back(rate);
                    while known.calls.len() > RATES {
                        known.calls.pop_front();
                    }
                }
                None => known.calls.clear(),
            }
            known.chunks = segments
                .zip(calls)
                .and_then(|(segments, calls)| segments.saturating_mul(100).checked_div(calls))
                .map(|percent| percent.min(100));
            rates.insert(name, known);
        }
        self.rates = rates;
        self.reading = reading;
    }

    /// Acts on a key. Returns whether to go on.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return false;
        }
        if self.is_typing {
            match key.code {
                KeyCode::Enter => self.is_typing = false,
                KeyCode::Esc => {
                    self.is_typing = false;
                    self.filter.clear();
                }
                KeyCode::Backspace => {
                    self.filter.pop();
                }
                KeyCode::Char(c) if !is_control => self.filter.push(c),
                _ => (),
            }
            return true;
        }
        match key.code {
            KeyCode::Char('q') => return false,
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Down | KeyCode::Char('j') => {
                let last = self.connections().len().saturating_sub(1);
                self.offset = self.offset.saturating_add(1).min(last);
            }
            KeyCode::Up | KeyCode::Char('k') => self.offset = self.offset.saturating_sub(1),
            _ => (),
        }
        true
    }

    /// Whether one of the texts has the filter in it.
    fn fits<'a>(&self, texts: impl IntoIterator<Item = Option<&'a String>>) -> bool {
        let mut texts = texts.into_iter().flatten();
        self.filter.is_empty() || texts.any(|text| text.contains(&self.filter))
    }

    /// The mounts that fit the filter, in the order that was asked for.
    fn mounts(&self) -> Vec<&MountReport> {
        let mut mounts: Vec<&MountReport> = self
            .reading
            .mounts
            .iter()
            .filter(|report| {
                let mount = &report.mount;
                let texts = [&mount.mount_point, &mount.source];
                self.fits(texts.map(Some).into_iter().chain([mount.address.as_ref()]))
            })
            .collect();
        let rates = |report: &MountReport| self.rates.get(&place(report));
        match self.order {
            Order::Name => mounts.sort_by_key(|report| place(report)),
            Order::Calls => mounts.sort_by_key(|report| {
                Reverse(rates(report).and_then(|rates| rates.calls.back().copied()))
            }),
            Order::Chunks => {
                mounts.sort_by_key(|report| Reverse(rates(report).and_then(|rates| rates.chunks)));
            }
            Order::Verdict => {
                mounts.sort_by_key(|report| Reverse(worst(report).map(|v| v.severity)))
            }
        }
        mounts
    }

    /// The connections that fit the filter.
    fn connections(&self) -> Vec<&Info> {
        let all = self.reading.connections.iter();
        all.filter(|info| {
            self.fits([
                info.origin.as_ref(),
                info.role.as_ref(),
                info.state.as_ref(),
                info.device.as_ref(),
                info.local.as_ref(),
                info.remote.as_ref(),
            ])
        })
        .collect()
    }

    /// Draws everything.
    pub(crate) fn draw(&self, frame: &mut Frame<'_>) {
        let mounts = self.mounts();
        // The mounts have what they need, up to a third. Two lines are the border, one is the head.
        let third = frame.area().height / 3;
        let wanted = u16::try_from(mounts.len()).unwrap_or(u16::MAX);
        let height = wanted.saturating_add(3).min(third).max(4);
        let [head, above, middle, below, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(height),
            Constraint::Min(5),
            Constraint::Length(third),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Paragraph::new(self.head()), head);
        frame.render_widget(self.mounts_table(&mounts, above), above);
        frame.render_widget(self.connections_table(), middle);
        frame.render_widget(self.events_list(below), below);
        frame.render_widget(Paragraph::new(self.foot()), foot);
    }

    fn head(&self) -> Line<'static> {
        let all = &self.reading.connections;
        let up = all.iter().filter(|info| info.is_established()).count();
        let mut spans = vec![
            " rpcrdma-cm ".black().on_cyan(),
            format!(" {} connections, {up} established", all.len()).into(),
        ];
        if let Some(trouble) = &self.reading.trouble {
            spans.push(format!("   {}", escape(trouble)).yellow());
        }
        Line::from(spans)
    }

    fn foot(&self) -> Line<'static> {
        let mut spans = vec![
            KEYS.dim(),
            format!("  sorted by {}", self.order.word()).into(),
        ];
        if self.is_typing || !self.filter.is_empty() {
            let cursor = if self.is_typing { "_" } else { "" };
            spans.push(format!("   filter: {}{cursor}", escape(&self.filter)).bold());
        }
        Line::from(spans)
    }

    fn mounts_table(&self, mounts: &[&MountReport], area: Rect) -> Table<'static> {
        let rows = mounts.iter().map(|report| {
            let name = place(report);
            let rates = self.rates.get(&name);
            let calls: Vec<u64> = rates
                .map(|rates| rates.calls.iter().copied().collect())
                .unwrap_or_default();
            let chunks = rates.and_then(|rates| rates.chunks);
            let verdict = worst(report);
            let colour = verdict.map_or(Color::Reset, |verdict| colour(verdict.severity));
            Row::new([
                Cell::from(name),
                Cell::from(right(credits(report), 9)),
                Cell::from(right(or_dash(calls.last()), 8)),
                Cell::from(sparkline(&calls)).cyan(),
                Cell::from(right(
                    chunks.map_or("-".to_owned(), |n| format!("{n} %")),
                    6,
                )),
                Cell::from(verdict.map_or(String::new(), Verdict::in_short))
                    .style(Style::new().fg(colour)),
            ])
        });
        let lines = usize::from(area.height.saturating_sub(3));
        let title = match mounts.len() {
            all if all > lines => format!(" Mounts: {lines} of {all} "),
            _ => " Mounts ".to_owned(),
        };
        let widths = [
            Constraint::Fill(1),
            Constraint::Length(9),
            Constraint::Length(8),
            Constraint::Length(20),
            Constraint::Length(6),
            Constraint::Fill(3),
        ];
        Table::new(rows, widths)
            .header(header(&[
                "MOUNT",
                "  CREDITS",
                " CALLS/S",
                "",
                "CHUNKS",
                "VERDICT",
            ]))
            .block(Block::bordered().title(title))
    }

    fn connections_table(&self) -> Table<'static> {
        let connections = self.connections();
        let rows = connections.iter().skip(self.offset).map(|info| {
            let colour = match info.state.as_deref() {
                Some("established") => Color::Green,
                Some("disconnected") => Color::Red,
                _ => Color::Yellow,
            };
            Row::new([
                Cell::from(right(or_dash(info.id), 5)),
                Cell::from(or_dash(info.origin.as_ref())),
                Cell::from(or_dash(info.role.as_ref())),
                Cell::from(or_dash(info.state.as_ref())).style(Style::new().fg(colour)),
                Cell::from(or_dash(info.device.as_ref())),
                Cell::from(or_dash(info.local.as_ref())),
                Cell::from(or_dash(info.remote.as_ref())),
                Cell::from(right(or_dash(info.generation), 4)),
                Cell::from(right(or_dash(info.client_to_server_threshold), 6)),
                Cell::from(right(or_dash(info.server_to_client_threshold), 6)),
                Cell::from(yes_no(info.remote_invalidation)),
            ])
        });
        let widths = [
            Constraint::Length(5),
            Constraint::Length(6),
            Constraint::Length(6),
            Constraint::Length(12),
            Constraint::Length(10),
            Constraint::Fill(1),
            Constraint::Fill(1),
            Constraint::Length(4),
            Constraint::Length(6),
            Constraint::Length(6),
            Constraint::Length(3),
        ];
        Table::new(rows, widths)
            .header(header(&[
                "   ID", "ORIGIN", "ROLE", "STATE", "DEVICE", "LOCAL", "REMOTE", " GEN", "   C2S",
                "   S2C", "INV",
            ]))
            .block(Block::bordered().title(" Connections "))
    }

    /// The latest events, oldest first, as many as the area has lines.
    fn events_list(&self, area: Rect) -> Paragraph<'static> {
        let fitting: Vec<&Event> = self
            .reading
            .events
            .iter()
            .filter(|event| {
                self.fits([
                    event.origin.as_ref(),
                    event.role.as_ref(),
                    event.event.as_ref(),
                    event.remote.as_ref(),
                    event.reason.as_ref(),
                ])
            })
            .collect();
        let lines = usize::from(area.height.saturating_sub(2));
        let skipped = fitting.len().saturating_sub(lines);
        let lines: Vec<Line<'static>> = fitting.into_iter().skip(skipped).map(line).collect();
        Paragraph::new(lines).block(Block::bordered().title(" Events "))
    }
}

fn header(words: &[&'static str]) -> Row<'static> {
    Row::new(words.to_vec()).bold()
}

/// Aligns to the right.
fn right(text: String, width: usize) -> String {
    format!("{text:>width$}")
}

fn colour(severity: Severity) -> Color {
    match severity {
        Severity::Fine => Color::Green,
        Severity::Note => Color::Reset,
        Severity::Unknown => Color::Cyan,
        Severity::Degraded => Color::Yellow,
        Severity::Failed => Color::Red,
    }
}

fn worst(report: &MountReport) -> Option<&Verdict> {
    report.verdicts.first()
}

/// The credits in use, and those granted, of all transports of the mount.
fn credits(report: &MountReport) -> String {
    let connected = report.transports.iter().filter(|one| one.connected);
    let (mut used, mut granted) = (0_u64, 0_u64);
    for (in_use, credits) in connected.filter_map(|one| one.credits_in_use.zip(one.credits)) {
        used = used.saturating_add(in_use);
        granted = granted.saturating_add(credits);
    }
    match granted {
        0 => "-".to_owned(),
        _ => format!("{used}/{granted}"),
    }
}

/// A bar for each value, the highest one of which is full.
fn sparkline(values: &[u64]) -> String {
    let most = values.iter().copied().max().unwrap_or_default().max(1);
    let bar = |value: u64| {
        let step = (u128::from(value) * 7).div_ceil(u128::from(most));
        usize::try_from(step).ok().and_then(|step| BARS.get(step))
    };
    values.iter().filter_map(|value| bar(*value)).collect()
}

/// An event in one line.
fn line(event: &Event) -> Line<'static> {
    let word = or_dash(event.event.as_ref());
    let colour = match event.event.as_deref() {
        Some("lost" | "failed" | "refused") => Color::Red,
        Some("established" | "re-established") => Color::Green,
        _ => Color::Reset,
    };
    // The time of the day.
    let date = or_dash(event.date.as_ref());
    let time = date
        .split_once('T')
        .map_or(date.clone(), |(_, time)| time.to_owned());
    let mut text = format!(
        " {} {} {}",
        or_dash(event.origin.as_ref()),
        or_dash(event.role.as_ref()),
        or_dash(event.remote.as_ref()),
    );
    if let Some(reason) = &event.reason {
        text.push_str(": ");
        text.push_str(&escape(reason));
    }
    Line::from(vec![
        format!(" {time} ").dim(),
        Span::styled(format!("{word:<14}"), Style::new().fg(colour)),
        text.into(),
    ])
}

#[cfg(test)]
mod tests {
    use ratatui::{
        backend::TestBackend,
        Terminal, //
    };

    use super::*;
    use crate::{
        mount_report::{
            self,
            Namespace, //
        },
        parse::{
            history::history,
            info::connections,
            transports::Transport, //
        },
    };

    const CONNECTIONS: &str = "\
ID ORIGIN ROLE   STATE       DEVICE LOCAL           REMOTE          GEN C2S  S2C  INV
1  nfs    client established rxe_a1 10.77.1.1:40001 10.77.1.2:20049 1   4096 4096 no
2  user   server connecting  rxe_b1 10.77.1.2:7     10.77.1.3:9     1   -    -    -
";

    const EVENTS: &str = "\
TIME DATE                     ORIGIN ROLE   EVENT REMOTE          REASON
1.0  2026-11-22T01:02:03.456Z nfs    client lost  10.77.1.2:20049 transport \u{1b}[2J counter
";

    /// Two mounts, with that number of calls and of segments.
    fn reading(at: u64, calls: [u64; 2], segments: u64) -> Reading {
        let mut namespace = Namespace::default();
        for (name, calls) in ["/b", "/a"].iter().zip(calls) {
            namespace.mountinfo.push_str(&format!(
                "1 2 0:3 / {name} rw - nfs4 s:/ rw,proto=rdma,port=20049,addr=10.77.1.2\n"
            ));
            namespace.mountstats.push_str(&format!(
                "device s:/ mounted on {name} with fstype nfs4 statvers=1.1\n\
                 \txprt:\trdma 0 0 1 0 0 {calls} 20 0 20 0 {segments} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
            ));
        }
        // A call that is given up may keep its credit.
        let transport = Transport {
            address: "10.77.1.2".to_owned(),
            port: Some(20049),
            connected: true,
            credits: Some(64),
            credits_in_use: Some(5),
            under_way: Some(4),
            ..Transport::default()
        };
        Reading {
            at: Duration::from_secs(at),
            mounts: mount_report::mounts(&namespace, None, &[transport]),
            connections: connections(CONNECTIONS),
            events: history(EVENTS),
            trouble: None,
        }
    }

    fn drawn(screen: &Screen) -> String {
        let mut terminal = Terminal::new(TestBackend::new(120, 24)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    fn press(screen: &mut Screen, keys: &str) {
        for c in keys.chars() {
            let code = match c {
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                c => KeyCode::Char(c),
            };
            assert!(screen.key(KeyEvent::new(code, KeyModifiers::NONE)));
        }
    }

    #[test]
    fn everything_is_shown() {
        let mut screen = Screen::new();
        screen.take(reading(0, [100, 100], 0));
        let first = drawn(&screen);
        assert!(first.contains("2 connections, 1 established"), "{first}");
        assert!(first.contains("unknown what it negotiated"), "{first}");
        // 200 calls in two seconds, 50 of them with a segment.
        screen.take(reading(2, [300, 100], 50));
        let text = drawn(&screen);
        let line = text.lines().find(|line| line.contains("/b ")).unwrap();
        for words in [" 100 ", "25 %", " 5/64 ", "█"] {
            assert!(line.contains(words), "{line}");
        }
        assert!(text.contains("10.77.1.1:40001"), "{text}");
        assert!(text.contains("01:02:03.456Z lost"), "{text}");
        // No octet of a name or a reason controls the terminal.
        assert!(text.contains("\\u{1b}[2J counter"), "{text}");
    }

    #[test]
    fn keys() {
        let mut screen = Screen::new();
        screen.take(reading(0, [100, 100], 0));
        screen.take(reading(1, [300, 100], 50));
        let first = |screen: &Screen| {
            let text = drawn(screen);
            let a = text.find("/a ").unwrap();
            if a < text.find("/b ").unwrap() {
                "/a"
            } else {
                "/b"
            }
        };
        assert!(drawn(&screen).contains("sorted by verdict"));
        press(&mut screen, "s");
        assert_eq!(first(&screen), "/a");
        press(&mut screen, "s");
        assert_eq!(first(&screen), "/b");
        assert!(drawn(&screen).contains("sorted by calls"));
        press(&mut screen, "/user\n");
        let text = drawn(&screen);
        assert!(text.contains("filter: user"), "{text}");
        assert!(text.contains("10.77.1.3:9") && !text.contains("10.77.1.1:40001"));
        // Keys are characters while a filter is typed.
        press(&mut screen, "\u{1b}/q");
        assert!(drawn(&screen).contains("filter: q_"));
        press(&mut screen, "\u{1b}j");
        let text = drawn(&screen);
        assert!(text.contains("10.77.1.3:9") && !text.contains("10.77.1.1:40001"));
        press(&mut screen, "jjk");
        assert!(drawn(&screen).contains("10.77.1.1:40001"));
        let quit = |code, modifiers| !Screen::new().key(KeyEvent::new(code, modifiers));
        assert!(quit(KeyCode::Char('q'), KeyModifiers::NONE));
        assert!(quit(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(!quit(KeyCode::Char('c'), KeyModifiers::NONE));
    }

    /// The title says that some mounts are not shown.
    #[test]
    fn more_mounts_than_lines() {
        let mut screen = Screen::new();
        screen.take(reading(0, [1, 1], 0));
        for (height, title) in [(24, " Mounts "), (12, " Mounts: 0 of 2 ")] {
            let mut terminal = Terminal::new(TestBackend::new(120, height)).unwrap();
            terminal.draw(|frame| screen.draw(frame)).unwrap();
            let text = terminal.backend().to_string();
            assert!(text.contains(title), "{text}");
        }
    }

    /// Terminals of any size, and no reading yet.
    #[test]
    fn small_terminals() {
        let mut screen = Screen::new();
        for _ in 0..2 {
            for (width, height) in [(1, 1), (3, 40), (200, 2), (20, 8)] {
                let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
                terminal.draw(|frame| screen.draw(frame)).unwrap();
            }
            screen.take(reading(0, [1, 1], 0));
        }
    }

    #[test]
    fn sparklines() {
        assert_eq!(sparkline(&[]), "");
        assert_eq!(sparkline(&[0, 0]), "▁▁");
        assert_eq!(sparkline(&[0, 1, 50, 100]), "▁▂▅█");
        assert_eq!(sparkline(&[u64::MAX, 0]), "█▁");
    }
}
