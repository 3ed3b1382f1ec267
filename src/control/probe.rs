// SPDX-License-Identifier: GPL-2.0

//! The file `probe`: finds out how a responder at a given address behaves.

use core::fmt::{
    self,
    Write, //
};

use kernel::{
    bindings,
    prelude::*,
    sync::Arc, //
};

use super::{
    target::target,
    Refused, //
};
use crate::{
    base::{
        errno::errno,
        wait::MayWait, //
    },
    connection::{
        connections::Connections,
        connector::connect,
        Connection, //
    },
    failure::Failure,
    pure::{
        text::{
            grammar,
            info::info,
            outcome::CommandOutcome,
            snapshot::{
                Null,
                Snapshot, //
            }, //
        },
        wire::{
            call_request::CallRequest,
            header::Versions,
            program::Program,
            rpc_message::Status, //
        }, //
    },
    registry::Live,
};

/// A text of any length.
pub(super) struct Report(pub(super) KVec<u8>);

impl Write for Report {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.0
            .extend_from_slice(s.as_bytes(), GFP_KERNEL)
            .map_err(|_| fmt::Error)
    }
}

/// A connection that is closed again, and gone, when this is dropped.
struct Probe(Arc<Connection>);

impl Drop for Probe {
    fn drop(&mut self) {
        self.0.as_arc_borrow().close();
        // After a signal, the connection is removed without being waited for.
        let _ = self.0.wait_gone();
    }
}

/// The program of the calls of a probe.
struct Called {
    /// In the version that is called.
    program: Program,
    /// The versions that the responder named, `low` and `high` of PROG_MISMATCH.
    named: Option<(u32, u32)>,
}

/// Connects as `wanted` and calls NULL, on one connection for each version of `rpcvers=`. Writes
/// the results to `report`; process context. If the responder does not have the version of the
/// program, calls NULL once more on that connection, in a version that the responder names.
///
/// Fails with `ENOMEM` and `EINTR` only. Every other failure is part of the report.
pub(super) fn probe(
    connections: &Arc<Connections>,
    may_wait: &MayWait,
    wanted: &grammar::Connect,
    report: &mut Report,
) -> Result<(), Refused<'static>> {
    let mut best = None;
    let mut called = Called {
        program: wanted.null.unwrap_or(Program::NFS),
        named: None,
    };
    for version in [1, 2] {
        if !wanted.rpc.versions.contains(version) {
            continue;
        }
        let (snapshot, result) =
            match probe_version(connections, may_wait, wanted, version, &mut called) {
                Ok((snapshot, result)) => (Some(snapshot), result),
                Err(failure) => (None, Err(failure)),
            };
        match result {
            // These failures are not the responder's.
            Err(failure) if failure.error == EINTR || failure.error == ENOMEM => {
                return Err(failure.into());
            }
            Err(failure) if best.is_none() && snapshot.is_none() => {
                return Ok(writeln!(report, "reachable: no: {failure}").or(Err(ENOMEM))?);
            }
            result => {
                if best.is_none() {
                    writeln!(report, "reachable: yes").or(Err(ENOMEM))?;
                }
                match result {
                    Ok(()) => writeln!(report, "rpc_version_{version}: SUCCESS"),
                    Err(failure) => writeln!(report, "rpc_version_{version}: {failure}"),
                }
                .or(Err(ENOMEM))?;
                if best.is_none() || result.is_ok() {
                    best = snapshot.or(best);
                }
            }
        }
    }
    if let Some(snapshot) = best {
        describe(&called, report).or(Err(ENOMEM))?;
        info(&snapshot, report).or(Err(ENOMEM))?;
    }
    Ok(())
}

/// Writes the program, and the versions that the responder named.
fn describe(called: &Called, report: &mut Report) -> fmt::Result {
    let Called { program, named } = called;
    writeln!(report, "program: {}", program.number)?;
    writeln!(report, "program_version: {}", program.version)?;
    match named {
        Some((low, high)) => writeln!(report, "program_versions: {low} to {high}"),
        None => writeln!(report, "program_versions: unknown"),
    }
}

/// Connects and calls NULL in one version of RPC-over-RDMA. If the responder does not have that
/// version of the program, calls NULL in a version that it names. Returns the snapshot of the
/// connection, and the result of the last call.
fn probe_version(
    connections: &Arc<Connections>,
    may_wait: &MayWait,
    wanted: &grammar::Connect,
    version: u32,
    called: &mut Called,
) -> Result<(Snapshot, Result<(), Failure>), Failure> {
    let (target, mut configuration) = target(wanted)?;
    configuration.endpoint.null = None;
    configuration.endpoint.rpc.versions = Versions::only(version);

    let connection = Probe(connect(connections, target, configuration)?);
    let mut result = CommandOutcome::new();
    let mut answer = connection
        .0
        .call(may_wait, &CallRequest::null(called.program), &mut result);
    let status = result.shown.and_then(|call| call.status);
    if let Some(Status::ProgMismatch { low, high }) = status {
        called.named = Some((low, high));
        if let Some(program) = called.program.in_named_version(low, high) {
            called.program = program;
            answer = connection.0.call(
                may_wait,
                &CallRequest::null(program),
                &mut CommandOutcome::new(),
            );
        }
    }
    let mut snapshot = connection.0.snapshot();
    // If the connection has ended before the call, the cause of that is the root cause.
    let over = errno(bindings::ENOTCONN);
    let answer = answer.map_err(|failure| match connection.0.failure() {
        Some(ended) if failure.error == over => ended,
        _ => failure,
    });
    if let Some(traffic) = &mut snapshot.traffic {
        traffic.null = match answer {
            Ok(()) => Null::Answered,
            Err(failure) => Null::Failed(failure.cause),
        };
    }
    Ok((snapshot, answer))
}
