// SPDX-License-Identifier: GPL-2.0

//! RPC programs (RFC 5531, section 8.1): those that the module serves, and the one that it calls by
//! default.

use super::rpc_message::{
    Call,
    Status, //
};

/// The module's own program. Its number is one of those that are "Defined by local administrator"
/// (RFC 5531, section 8.3). Its procedures are [`NULL`], [`ECHO`] and, in the forward direction
/// only, [`BIND`].
pub(crate) const ECHO_PROGRAM: u32 = 0x2000_8797;

/// The one version of the module's own program.
pub(crate) const ECHO_VERSION: u32 = 1;

/// Procedure 0 of any program, which takes nothing and returns nothing (RFC 5531, section 12.1).
pub(crate) const NULL: u32 = 0;

/// Procedure 1 of the module's own program, which takes `opaque<>` (RFC 4506, section 4.10) and
/// returns the same octets.
pub(crate) const ECHO: u32 = 1;

/// Procedure 2 of the module's own program, which takes nothing and returns nothing. A client calls
/// it to announce that it accepts calls in the reverse direction (RFC 8167, section 6).
pub(crate) const BIND: u32 = 2;

/// The program of NFS (RFC 5662, section 2: `NFS4_PROGRAM`). Most peers serve it.
pub(crate) const NFS_PROGRAM: u32 = 100_003;

/// Version 4 of NFS (RFC 5662, section 2: `NFS_V4`).
pub(crate) const NFS_VERSION: u32 = 4;

/// The lowest version of NFS whose [`NULL`] is served (RFC 1813). NULL of NFS is served because
/// most clients begin with it.
const NFS_LOWEST: u32 = 3;

/// The program of the callbacks of NFS, and its one version (RFC 5662: `NFS4_CALLBACK`).
const CALLBACK_PROGRAM: u32 = 0x4000_0000;
const CALLBACK_VERSION: u32 = 1;

/// A program and its version (RFC 5531, section 8.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Program {
    pub(crate) number: u32,
    pub(crate) version: u32,
}

impl Program {
    /// NFS, the default of `program=` and `version=`.
    pub(crate) const NFS: Self = Self {
        number: NFS_PROGRAM,
        version: NFS_VERSION,
    };

    /// The module's own program.
    pub(crate) const ECHO: Self = Self {
        number: ECHO_PROGRAM,
        version: ECHO_VERSION,
    };

    /// Returns the program in one of the versions that its responder has, by PROG_MISMATCH (RFC
    /// 5531, section 9): `low` if the version is below `low` or is `high`, otherwise `high`.
    /// Returns [`None`] if the responder names no version, or only the one that it refused.
    pub(crate) fn in_named_version(self, low: u32, high: u32) -> Option<Self> {
        let version = if self.version < low || self.version == high {
            low
        } else {
            high
        };
        (low <= high && version != self.version).then_some(Self { version, ..self })
    }
}

/// A procedure that the module serves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ServedProcedure {
    /// Returns nothing.
    Null,
    /// Returns the arguments.
    Echo,
    /// Notes that the caller accepts calls; forward direction only.
    Bind,
}

/// Whether `len` octets are the right length for the arguments of [`ECHO`], an `opaque<>` whose
/// first word is `count` (RFC 4506, section 4.10).
pub(crate) fn is_opaque(count: u32, len: usize) -> bool {
    let unit = |count: u32| count.checked_next_multiple_of(4)?.checked_add(4);
    unit(count).and_then(|wanted| usize::try_from(wanted).ok()) == Some(len)
}

/// Writes a part of the arguments of [`ECHO`], `size` octets as `opaque<>` (RFC 4506, section
/// 4.10). Fills `octets` with the part that begins at octet `at` of the arguments, and with zeros
/// behind their end. `at` and the length of `octets` must be multiples of four.
///
/// The content differs from call to call, by `seed`, and from word to word, so that the client
/// notices octets that come back from another call or another place.
pub(crate) fn fill_opaque(size: u32, seed: u32, at: usize, octets: &mut [u8]) {
    for (number, word) in (at / 4..usize::MAX).zip(octets.chunks_exact_mut(4)) {
        if let Some(word) = word.first_chunk_mut() {
            *word = (number as u32 ^ seed).to_le_bytes();
        }
    }
    if let (0, Some(count)) = (at, octets.first_chunk_mut()) {
        *count = size.to_be_bytes();
    }
    let end = (size as usize).saturating_add(4);
    if let Some(behind) = octets.get_mut(end.saturating_sub(at)..) {
        behind.fill(0);
    }
}

/// Returns the procedure that a call asks for. Of NFS and its callbacks, only [`NULL`] is served.
///
/// # Errors
///
/// Fails with the status to reply if there is no such procedure (RFC 5531, section 9:
/// `accept_stat`).
pub(crate) fn serve(call: &Call) -> Result<ServedProcedure, Status> {
    let (low, high) = match call.prog {
        ECHO_PROGRAM => (ECHO_VERSION, ECHO_VERSION),
        CALLBACK_PROGRAM => (CALLBACK_VERSION, CALLBACK_VERSION),
        NFS_PROGRAM => (NFS_LOWEST, NFS_VERSION),
        _ => return Err(Status::ProgUnavail),
    };
    if !(low..=high).contains(&call.vers) {
        return Err(Status::ProgMismatch { low, high });
    }
    match (call.prog, call.proc) {
        (_, NULL) => Ok(ServedProcedure::Null),
        (ECHO_PROGRAM, ECHO) => Ok(ServedProcedure::Echo),
        (ECHO_PROGRAM, BIND) => Ok(ServedProcedure::Bind),
        _ => Err(Status::ProcUnavail),
    }
}
