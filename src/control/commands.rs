// SPDX-License-Identifier: GPL-2.0

//! The commands: each carries out a line written to a control file; process context.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    probe::{
        probe,
        Report, //
    },
    target::{
        socket_addr,
        target, //
    },
    Control,
    Refused, //
};
use crate::{
    base::{
        net::Net,
        wait::MayWait, //
    },
    connection::{
        connector::connect,
        listener::listen,
        Configuration,
        Connection, //
    },
    failure::Failure,
    pure::{
        text::{
            grammar::{
                self,
                Close, //
            },
            outcome::{
                outcome,
                CommandOutcome, //
            },
            snapshot::State, //
        },
        wire::negotiation::Role, //
    },
    registry::Live,
    rpc::endpoint::EndpointConfiguration, //
};

impl Control {
    pub(super) fn connect<'a>(&self, line: &'a [u8], _: &MayWait) -> Result<(), Refused<'a>> {
        let (target, configuration) = target(&grammar::parse_connect(line)?)?;
        connect(&self.connections, target, configuration)?;
        Ok(())
    }

    pub(super) fn listen<'a>(&self, line: &'a [u8], may_wait: &MayWait) -> Result<(), Refused<'a>> {
        let wanted = grammar::parse_listen(line)?;
        let net = Net::current()?;
        let at = socket_addr(&net, wanted.at.address, wanted.at.port)?;
        let configuration = Configuration {
            offer: wanted.offer,
            endpoint: EndpointConfiguration {
                role: Role::Server,
                rpc: wanted.rpc,
                answers: wanted.answer,
                timeout_ms: wanted.timeout_ms,
                null: None,
            },
        };

        Ok(listen(
            &self.listeners,
            &net,
            at,
            configuration,
            wanted.max,
            may_wait,
        )?)
    }

    /// Returns the connection of that number, the module's own or another one.
    fn live(&self, number: u64) -> Result<Arc<dyn Live>, Failure> {
        let live = self.registry.get(number);
        live.ok_or(Failure::new(ENOENT, "no such connection"))
    }

    /// Returns the module's own connection of that number.
    fn own(&self, number: u64) -> Result<Arc<Connection>, Failure> {
        let own = self.connections.get(number);
        own.ok_or_else(|| match self.live(number) {
            Ok(_) => Failure::NOT_OWN,
            Err(failure) => failure,
        })
    }

    pub(super) fn call<'a>(&self, line: &'a [u8], may_wait: &MayWait) -> Result<(), Refused<'a>> {
        let wanted = grammar::parse_call(line)?;
        let connection = self.own(wanted.connection)?;
        let mut result = CommandOutcome::new();
        let called = connection.call(may_wait, &wanted.request, &mut result);
        result.failure = called.err().map(|failure| failure.cause);
        let mut report = Report(KVec::new());
        outcome(wanted.connection, &result, &mut report).or(Err(ENOMEM))?;
        *self.calls.lock() = report.0;
        Ok(called?)
    }

    pub(super) fn probe<'a>(&self, line: &'a [u8], may_wait: &MayWait) -> Result<(), Refused<'a>> {
        let wanted = grammar::parse_probe(line)?;
        let mut report = Report(KVec::new());
        probe(&self.connections, may_wait, &wanted, &mut report)?;
        *self.report.lock() = report.0;
        Ok(())
    }

    pub(super) fn close<'a>(&self, line: &'a [u8], may_wait: &MayWait) -> Result<(), Refused<'a>> {
        match grammar::parse_close(line)? {
            Close::Connection(number) => {
                self.live(number)?.as_arc_borrow().close_and_wait()?;
            }
            Close::Listener(number) => {
                if !self.listeners.remove(number, may_wait) {
                    return Err(Failure::new(ENOENT, "no such listener").into());
                }
            }
            Close::All => {
                // In this order, because a listener may add connections until it is closed.
                self.listeners.close_all(may_wait);
                self.connections.close_all();
                for connection in self.connections.each() {
                    if connection.snapshot().state == State::Closing {
                        connection.wait_gone()?;
                    }
                }
            }
        }
        Ok(())
    }
}
