// SPDX-License-Identifier: GPL-2.0

//! Requests for calls: the procedure, its arguments, and the number of calls.

use super::{
    program::{
        self,
        Program, //
    },
    rpc_message, //
};

/// Length in octets of the header of a reply with SUCCESS whose verifier is AUTH_NONE (RFC 5531,
/// section 9).
const SUCCESS_HEAD: usize = 24;

/// Length in octets of the longest reply without results whose verifier is AUTH_NONE: PROG_MISMATCH
/// (RFC 5531, section 9).
const MISMATCH_LEN: usize = 32;

/// The procedure to call, and its arguments.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CalledProcedure {
    /// NULL of this program.
    Null(Program),
    /// ECHO of the module's own program.
    Echo {
        /// The length of the argument, in octets.
        size: u32,
    },
    /// BIND of the module's own program.
    Bind,
}

/// Calls of one procedure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CallRequest {
    pub(crate) procedure: CalledProcedure,
    /// The number of calls to make.
    pub(crate) count: u32,
    /// The largest number of calls under way at a time.
    pub(crate) jobs: u32,
    /// Whether to offer a Reply chunk even if the reply fits inline (RFC 8166, section 4.3.3).
    pub(crate) chunks: bool,
}

impl CallRequest {
    /// Requests one call of BIND.
    pub(crate) const BIND: Self = Self {
        procedure: CalledProcedure::Bind,
        ..Self::null(Program::ECHO)
    };

    /// Requests one call of NULL of `program`.
    pub(crate) const fn null(program: Program) -> Self {
        Self {
            procedure: CalledProcedure::Null(program),
            count: 1,
            jobs: 1,
            chunks: false,
        }
    }

    /// Returns the header of the call with this XID.
    pub(crate) fn call(&self, xid: u32) -> rpc_message::Call {
        let (program, proc) = match self.procedure {
            CalledProcedure::Null(program) => (program, program::NULL),
            CalledProcedure::Echo { .. } => (Program::ECHO, program::ECHO),
            CalledProcedure::Bind => (Program::ECHO, program::BIND),
        };
        rpc_message::Call {
            xid,
            prog: program.number,
            vers: program.version,
            proc,
        }
    }

    /// Returns the length of the arguments, in octets.
    pub(crate) fn arguments(&self) -> usize {
        match self.procedure {
            CalledProcedure::Null(_) | CalledProcedure::Bind => 0,
            CalledProcedure::Echo { size } => echo_len(size),
        }
    }

    /// Returns the length of the longest reply with any status, in octets (RFC 8166, sections 4.3.3
    /// and 6.2). The results are as long as the arguments.
    ///
    /// The reply to a call without credentials has a verifier without a body (RFC 5531, section
    /// 10.1).
    pub(crate) fn longest_reply(&self) -> usize {
        let success = self.arguments().saturating_add(SUCCESS_HEAD);
        success.max(MISMATCH_LEN)
    }

    /// Writes the arguments of the call with this XID, beginning with octet `at`, into `octets`,
    /// and fills the rest with zeros. For ECHO, `at` and the length of `octets` must be multiples
    /// of four.
    pub(crate) fn fill(&self, xid: u32, at: usize, octets: &mut [u8]) {
        match self.procedure {
            CalledProcedure::Null(_) | CalledProcedure::Bind => octets.fill(0),
            CalledProcedure::Echo { size } => program::fill_opaque(size, xid, at, octets),
        }
    }

    /// Whether the call with this XID must have these results. The results are given in pieces; the
    /// length of each, except the last one, must be a multiple of four.
    pub(crate) fn has_results<'b>(
        &self,
        xid: u32,
        results: impl Iterator<Item = &'b [u8]>,
    ) -> bool {
        let mut wanted = [0; 256];
        let mut from: usize = 0;
        for piece in results {
            for found in piece.chunks(wanted.len()) {
                self.fill(xid, from, &mut wanted);
                from = from.saturating_add(found.len());
                if !wanted.starts_with(found) {
                    return false;
                }
            }
        }
        from == self.arguments()
    }
}

/// Returns the length of an argument of ECHO as `opaque<>`, in octets (RFC 4506, section 4.10).
fn echo_len(size: u32) -> usize {
    (size as usize)
        .checked_next_multiple_of(4)
        .unwrap_or_default()
        .saturating_add(4)
}
