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
    connection::{
        connections::Connections,
        connector::connect,
        Connection, //
    },
    failure::Failure,
    protocol::{
        control,
        header::Versions,
        info::info,
        program::Program,
        request::CallRequest,
        snapshot::{
            Null,
            Snapshot, //
        }, //
    }, //
    rdma::errno,
    registry::Live,
    rpc::requester::CallResult, //
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

/// Connects as `wanted` and calls NULL, once in each version, and writes the results to `report`;
/// process context.
///
/// Fails with `ENOMEM` and `EINTR` only. Every other failure is part of the report.
pub(super) fn probe(
    connections: &Arc<Connections>,
    wanted: &control::Connect,
    report: &mut Report,
) -> Result<(), Refused<'static>> {
    let mut best = None;
    for version in [1, 2] {
        let (snapshot, result) = match probe_version(connections, wanted, version) {
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
        info(&snapshot, report).or(Err(ENOMEM))?;
    }
    Ok(())
}

/// Connects and calls NULL in one version. Returns the snapshot of the connection, and the result
/// of the call.
fn probe_version(
    connections: &Arc<Connections>,
    wanted: &control::Connect,
    version: u32,
) -> Result<(Snapshot, Result<(), Failure>), Failure> {
    let (target, mut configuration) = target(wanted)?;
    let program = configuration.endpoint.null.take();
    let program = program.unwrap_or(Program::NFS);
    configuration.endpoint.rpc.versions = Versions::only(version);

    let connection = Probe(connect(connections, target, configuration)?);
    let result = connection
        .0
        .call(&CallRequest::null(program), &mut CallResult::new());
    let mut snapshot = connection.0.snapshot();
    // If the connection has ended before the call, the cause of that is the root cause.
    let over = errno(bindings::ENOTCONN);
    let result = result.map_err(|failure| match connection.0.failure() {
        Some(ended) if failure.error == over => ended,
        _ => failure,
    });
    if let Some(traffic) = &mut snapshot.traffic {
        traffic.null = match result {
            Ok(()) => Null::Answered,
            Err(failure) => Null::Failed(failure.cause),
        };
    }
    Ok((snapshot, result))
}
