// SPDX-License-Identifier: GPL-2.0

//! Requests for calls: the procedure, its arguments, and the number of calls.

use super::{
    program::{
        self,
        Program, //
    },
    rpc_message::{
        self,
        Credentials, //
    }, //
};

/// Length in octets of the header of a reply with SUCCESS whose verifier is AUTH_NONE (RFC 5531,
/// section 9).
const SUCCESS_HEAD: usize = 24;

/// Length in octets of the longest reply without results whose verifier is AUTH_NONE: PROG_MISMATCH
/// (RFC 5531, section 9).
const MISMATCH_LEN: usize = 32;

/// Octets written as pairs of hexadecimal digits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Hex<'a>(&'a [u8]);

impl<'a> Hex<'a> {
    /// No octet at all.
    pub(crate) const EMPTY: Self = Self(&[]);

    /// Returns `digits` as octets, or [`None`] unless they are pairs of hexadecimal digits.
    pub(crate) fn parse(digits: &'a [u8]) -> Option<Self> {
        let hex = Self(digits);
        let whole = digits.len() % 2 == 0 && digits.iter().all(u8::is_ascii_hexdigit);
        whole.then_some(hex)
    }

    /// Returns the number of octets.
    pub(crate) fn len(self) -> usize {
        self.0.len() / 2
    }

    /// Returns the octets from `at` on.
    pub(crate) fn octets(self, at: usize) -> impl Iterator<Item = u8> + use<'a> {
        let digits = self.0.get(at.saturating_mul(2)..).unwrap_or_default();
        digits.chunks_exact(2).map(|pair| {
            let value = |digit| (char::from(digit)).to_digit(16).unwrap_or_default() as u8;
            pair.iter()
                .fold(0, |octet: u8, &digit| (octet << 4) | value(digit))
        })
    }
}

/// The procedure to call, and its arguments.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CalledProcedure<'a> {
    /// NULL of this program.
    Null(Program),
    /// ECHO of the module's own program.
    Echo {
        /// The length of the argument, in octets.
        size: u32,
    },
    /// Any procedure of any program.
    Any {
        program: Program,
        procedure: u32,
        credentials: Credentials,
        arguments: Hex<'a>,
        /// The largest length of the results, in octets.
        results: u32,
    },
}

/// Calls of one procedure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CallRequest<'a> {
    pub(crate) procedure: CalledProcedure<'a>,
    /// The number of calls to make.
    pub(crate) count: u32,
    /// The largest number of calls under way at a time.
    pub(crate) jobs: u32,
    /// Whether to offer a Reply chunk even if the reply fits inline (RFC 8166, section 4.3.3).
    pub(crate) chunks: bool,
}

impl CallRequest<'_> {
    /// Requests one call of NULL of `program`.
    pub(crate) const fn null(program: Program) -> Self {
        Self {
            procedure: CalledProcedure::Null(program),
            count: 1,
            jobs: 1,
            chunks: false,
        }
    }

    /// Requests one call of a procedure without arguments and without results.
    pub(crate) const fn any(program: Program, procedure: u32) -> Self {
        Self {
            procedure: CalledProcedure::Any {
                program,
                procedure,
                credentials: Credentials::None,
                arguments: Hex::EMPTY,
                results: 0,
            },
            ..Self::null(program)
        }
    }

    /// Returns the header of the call with this XID.
    pub(crate) fn call(&self, xid: u32) -> rpc_message::Call {
        let (program, proc) = match self.procedure {
            CalledProcedure::Null(program) => (program, program::NULL),
            CalledProcedure::Echo { .. } => (Program::ECHO, program::ECHO),
            CalledProcedure::Any {
                program, procedure, ..
            } => (program, procedure),
        };
        rpc_message::Call {
            xid,
            prog: program.number,
            vers: program.version,
            proc,
        }
    }

    /// Returns the credentials of the calls.
    pub(crate) fn credentials(&self) -> Credentials {
        match self.procedure {
            CalledProcedure::Any { credentials, .. } => credentials,
            CalledProcedure::Null(_) | CalledProcedure::Echo { .. } => Credentials::None,
        }
    }

    /// Returns the length of the arguments, in octets.
    pub(crate) fn arguments(&self) -> usize {
        match self.procedure {
            CalledProcedure::Null(_) => 0,
            CalledProcedure::Echo { size } => echo_len(size),
            CalledProcedure::Any { arguments, .. } => arguments.len(),
        }
    }

    /// Returns the length of the longest reply with any status, in octets (RFC 8166, sections 4.3.3
    /// and 6.2).
    ///
    /// The reply to a call without credentials has a verifier without a body (RFC 5531, section
    /// 10.1), the reply to one with AUTH_SYS may have one of any length (RFC 5531, appendix A).
    pub(crate) fn longest_reply(&self) -> usize {
        let results = match self.procedure {
            CalledProcedure::Null(_) => 0,
            CalledProcedure::Echo { size } => echo_len(size),
            CalledProcedure::Any { results, .. } => results as usize,
        };
        let verifier = match self.credentials() {
            Credentials::None => 0,
            Credentials::Unix => rpc_message::AUTH_MAX as usize,
        };
        let success = results.saturating_add(SUCCESS_HEAD);
        success.max(MISMATCH_LEN).saturating_add(verifier)
    }

    /// Writes the arguments of the call with this XID, beginning with octet `at`, into `octets`,
    /// and fills the rest with zeros. For ECHO, `at` and the length of `octets` must be multiples
    /// of four.
    pub(crate) fn fill(&self, xid: u32, at: usize, octets: &mut [u8]) {
        match self.procedure {
            CalledProcedure::Null(_) => octets.fill(0),
            CalledProcedure::Echo { size } => program::fill_opaque(size, xid, at, octets),
            CalledProcedure::Any { arguments, .. } => {
                let mut arguments = arguments.octets(at);
                octets.fill_with(|| arguments.next().unwrap_or_default());
            }
        }
    }

    /// Whether the call with this XID must have these results. The results are given in pieces; the
    /// length of each, except the last one, must be a multiple of four.
    pub(crate) fn has_results<'b>(
        &self,
        xid: u32,
        mut results: impl Iterator<Item = &'b [u8]>,
    ) -> bool {
        if let CalledProcedure::Any { .. } = self.procedure {
            return true;
        }
        let mut wanted = [0; 256];
        let mut from: usize = 0;
        let same = results.all(|piece| {
            piece.chunks(wanted.len()).all(|found| {
                self.fill(xid, from, &mut wanted);
                from = from.saturating_add(found.len());
                wanted.starts_with(found)
            })
        });
        same && from == self.arguments()
    }
}

/// Returns the length of an argument of ECHO as `opaque<>`, in octets (RFC 4506, section 4.10).
fn echo_len(size: u32) -> usize {
    (size as usize)
        .checked_next_multiple_of(4)
        .unwrap_or_default()
        .saturating_add(4)
}
