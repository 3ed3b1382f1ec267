// SPDX-License-Identifier: GPL-2.0

//! What an RPC message begins with, a call or a reply (RFC 5531, section 9).
//!
//! Calls are sent with AUTH_NONE or AUTH_SYS. A received call may have either, of which nothing is
//! made.

use core::fmt;

use super::xdr::{
    NoRoom,
    Reader,
    Writer, //
};

/// `rpcvers`, the version of RPC itself (RFC 5531, section 9).
const RPC_VERS: u32 = 2;

// `msg_type` (RFC 5531, section 9).
const CALL: u32 = 0;
const REPLY: u32 = 1;

// `reply_stat` (RFC 5531, section 9).
const MSG_ACCEPTED: u32 = 0;
const MSG_DENIED: u32 = 1;

// `accept_stat` (RFC 5531, section 9).
const SUCCESS: u32 = 0;
const PROG_UNAVAIL: u32 = 1;
const PROG_MISMATCH: u32 = 2;
const PROC_UNAVAIL: u32 = 3;
const GARBAGE_ARGS: u32 = 4;
const SYSTEM_ERR: u32 = 5;

// `reject_stat` (RFC 5531, section 9).
const RPC_MISMATCH: u32 = 0;
const AUTH_ERROR: u32 = 1;

/// `auth_flavor` of no authentication; its body is best left empty (RFC 5531, section 10.1).
const AUTH_NONE: u32 = 0;

/// `auth_flavor` of a user and its groups (RFC 5531, section 10.1 and appendix A).
const AUTH_SYS: u32 = 1;

/// Length in octets of the longest `opaque_auth` body (RFC 5531, section 8.2).
pub(super) const AUTH_MAX: u32 = 400;

/// `auth_stat` of credentials that are none (RFC 5531, section 9).
const AUTH_BADCRED: u32 = 1;

/// `auth_stat` of a verifier that is none (RFC 5531, section 9).
const AUTH_BADVERF: u32 = 3;

/// The credentials of a call (RFC 5531, section 10).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Credentials {
    /// AUTH_NONE.
    None,
    /// AUTH_SYS of the superuser, with no machine's name and no more groups.
    Unix,
}

/// A call without its arguments: `rpc_msg` and `call_body` (RFC 5531, section 9).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Call {
    /// `xid`: what its reply has, too.
    pub(crate) xid: u32,
    /// `prog`: the program.
    pub(crate) prog: u32,
    /// `vers`: the version of the program.
    pub(crate) vers: u32,
    /// `proc`: the procedure.
    pub(crate) proc: u32,
}

impl Call {
    /// Returns how many octets the call begins with.
    pub(crate) fn len(&self, credentials: Credentials) -> usize {
        self.build(credentials, &mut [])
            .unwrap_or_else(|room| room.needed)
    }

    /// Writes what the call begins with, and returns how many octets that has. The verifier is
    /// AUTH_NONE.
    ///
    /// # Errors
    ///
    /// Fails if the buffer is too short.
    pub(crate) fn build(
        &self,
        credentials: Credentials,
        buffer: &mut [u8],
    ) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(buffer);
        let mut words = |words: &[u32]| words.iter().for_each(|&word| writer.word(word));
        words(&[self.xid, CALL, RPC_VERS, self.prog, self.vers, self.proc]);
        match credentials {
            Credentials::None => words(&[AUTH_NONE, 0]),
            // 20 octets: `stamp`, `machinename`, `uid`, `gid` and `gids` (RFC 5531, appendix A).
            Credentials::Unix => words(&[AUTH_SYS, 20, 0, 0, 0, 0, 0]),
        }
        words(&[AUTH_NONE, 0]);
        writer.finish()
    }
}

/// Parses what a call begins with, and returns it with its arguments.
///
/// # Errors
///
/// Fails where there is no call, or one that is to be answered with the reply that the error holds.
pub(crate) fn parse_call(octets: &[u8]) -> Result<(Call, &[u8]), Error> {
    let mut reader = Reader::new(octets);
    let xid = word(&mut reader)?;
    let refused = |status| Error::Refused(Reply { xid, status });
    let refused_auth = |error, auth_stat| match error {
        Error::Value { .. } => refused(Status::AuthError(auth_stat)),
        error => error,
    };
    let before = reader;
    match word(&mut reader)? {
        CALL => {}
        value => return Err(illegal(before, value)),
    }
    // Only version 2 says what is behind this word.
    if word(&mut reader)? != RPC_VERS {
        return Err(refused(Status::RpcMismatch {
            low: RPC_VERS,
            high: RPC_VERS,
        }));
    }
    let call = Call {
        xid,
        prog: word(&mut reader)?,
        vers: word(&mut reader)?,
        proc: word(&mut reader)?,
    };
    // Nothing is made of them. But a context of RPCSEC_GSS, for one, would not be established by
    // an answer that says SUCCESS.
    let credentials = pass_auth(&mut reader, &[AUTH_NONE, AUTH_SYS]);
    credentials.map_err(|error| refused_auth(error, AUTH_BADCRED))?;
    let verifier = pass_auth(&mut reader, &[AUTH_NONE]);
    verifier.map_err(|error| refused_auth(error, AUTH_BADVERF))?;
    Ok((call, reader.rest()))
}

/// A reply without its results: `rpc_msg` and `reply_body` (RFC 5531, section 9).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Reply {
    /// `xid`: that of the call.
    pub(crate) xid: u32,
    /// What became of the call.
    pub(crate) status: Status,
}

/// `reply_stat` with `accept_stat` or `reject_stat` (RFC 5531, section 9).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Status {
    /// SUCCESS: the results follow.
    Success,
    /// PROG_UNAVAIL: there is no such program.
    ProgUnavail,
    /// PROG_MISMATCH: there are only these versions of the program.
    ProgMismatch {
        /// The lowest one.
        low: u32,
        /// The highest one.
        high: u32,
    },
    /// PROC_UNAVAIL: the program has no such procedure.
    ProcUnavail,
    /// GARBAGE_ARGS: the procedure cannot decode the arguments.
    GarbageArgs,
    /// SYSTEM_ERR: something else went wrong, such as an allocation.
    SystemErr,
    /// RPC_MISMATCH: only these versions of RPC are understood.
    RpcMismatch {
        /// The lowest one.
        low: u32,
        /// The highest one.
        high: u32,
    },
    /// AUTH_ERROR, with `auth_stat`: the caller is not believed.
    AuthError(u32),
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => f.write_str("SUCCESS"),
            Self::ProgUnavail => f.write_str("PROG_UNAVAIL"),
            Self::ProgMismatch { low, high } => write!(f, "PROG_MISMATCH, {low} to {high}"),
            Self::ProcUnavail => f.write_str("PROC_UNAVAIL"),
            Self::GarbageArgs => f.write_str("GARBAGE_ARGS"),
            Self::SystemErr => f.write_str("SYSTEM_ERR"),
            Self::RpcMismatch { low, high } => write!(f, "RPC_MISMATCH, {low} to {high}"),
            Self::AuthError(auth_stat) => write!(f, "AUTH_ERROR {auth_stat}"),
        }
    }
}

impl Reply {
    /// Writes what the reply begins with, with AUTH_NONE, and returns how many octets that has.
    ///
    /// # Errors
    ///
    /// Fails if the buffer is too short.
    pub(crate) fn build(&self, buffer: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(buffer);
        let mut words = |words: &[u32]| words.iter().for_each(|&word| writer.word(word));

        words(&[self.xid, REPLY]);
        match self.status {
            Status::RpcMismatch { low, high } => words(&[MSG_DENIED, RPC_MISMATCH, low, high]),
            Status::AuthError(auth_stat) => words(&[MSG_DENIED, AUTH_ERROR, auth_stat]),
            _ => words(&[MSG_ACCEPTED, AUTH_NONE, 0]),
        }
        match self.status {
            Status::Success => words(&[SUCCESS]),
            Status::ProgUnavail => words(&[PROG_UNAVAIL]),
            Status::ProgMismatch { low, high } => words(&[PROG_MISMATCH, low, high]),
            Status::ProcUnavail => words(&[PROC_UNAVAIL]),
            Status::GarbageArgs => words(&[GARBAGE_ARGS]),
            Status::SystemErr => words(&[SYSTEM_ERR]),
            Status::RpcMismatch { .. } | Status::AuthError(_) => {}
        }
        writer.finish()
    }
}

/// Whether an RPC message is a reply; where it is too short to say so, it is none.
pub(crate) fn is_reply(octets: &[u8]) -> bool {
    let mut reader = Reader::new(octets);
    let _xid = reader.word();
    reader.word() == Some(REPLY)
}

/// Parses what a reply begins with, and returns it with its results.
///
/// # Errors
///
/// Fails where there is no reply.
pub(crate) fn parse_reply(octets: &[u8]) -> Result<(Reply, &[u8]), Error> {
    let mut reader = Reader::new(octets);
    let xid = word(&mut reader)?;
    let before = reader;
    match word(&mut reader)? {
        REPLY => {}
        value => return Err(illegal(before, value)),
    }
    let before = reader;
    let status = match word(&mut reader)? {
        MSG_ACCEPTED => accepted(&mut reader)?,
        MSG_DENIED => denied(&mut reader)?,
        value => return Err(illegal(before, value)),
    };
    Ok((Reply { xid, status }, reader.rest()))
}

/// `accepted_reply` (RFC 5531, section 9).
fn accepted(reader: &mut Reader<'_>) -> Result<Status, Error> {
    pass_opaque_auth(reader)?;
    let before = *reader;
    Ok(match word(reader)? {
        SUCCESS => Status::Success,
        PROG_UNAVAIL => Status::ProgUnavail,
        PROG_MISMATCH => Status::ProgMismatch {
            low: word(reader)?,
            high: word(reader)?,
        },
        PROC_UNAVAIL => Status::ProcUnavail,
        GARBAGE_ARGS => Status::GarbageArgs,
        SYSTEM_ERR => Status::SystemErr,
        value => return Err(illegal(before, value)),
    })
}

/// `rejected_reply` (RFC 5531, section 9).
fn denied(reader: &mut Reader<'_>) -> Result<Status, Error> {
    let before = *reader;
    Ok(match word(reader)? {
        RPC_MISMATCH => Status::RpcMismatch {
            low: word(reader)?,
            high: word(reader)?,
        },
        AUTH_ERROR => Status::AuthError(word(reader)?),
        value => return Err(illegal(before, value)),
    })
}

/// Passes over the `opaque_auth` of a call, which must have one of these flavors (RFC 5531,
/// sections 8.2 and 9).
fn pass_auth(reader: &mut Reader<'_>, flavors: &[u32]) -> Result<(), Error> {
    let before = *reader;
    let flavor = pass_opaque_auth(reader)?;
    if !flavors.contains(&flavor) {
        return Err(illegal(before, flavor));
    }
    Ok(())
}

/// Passes over an `opaque_auth` and returns its flavor. Its length alone can be illegal (RFC 5531,
/// section 8.2).
fn pass_opaque_auth(reader: &mut Reader<'_>) -> Result<u32, Error> {
    let flavor = word(reader)?;
    let before = *reader;
    let length = word(reader)?;
    if length > AUTH_MAX {
        return Err(illegal(before, length));
    }
    let truncated = Error::Truncated { at: reader.at() };
    reader.opaque(length as usize).ok_or(truncated)?;
    Ok(flavor)
}

fn word(reader: &mut Reader<'_>) -> Result<u32, Error> {
    let at = reader.at();
    reader.word().ok_or(Error::Truncated { at })
}

/// Says that the word that `before` comes to next has a value that it cannot have.
fn illegal(before: Reader<'_>, value: u32) -> Error {
    Error::Value {
        at: before.at(),
        value,
    }
}

/// Why octets are no call, or no reply (RFC 5531, section 9).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Error {
    /// The octets end where something must be.
    Truncated {
        /// Where that is, in octets from the beginning of the RPC message.
        at: usize,
    },
    /// A word has none of the values that it can have.
    Value {
        /// Where it is, in octets from the beginning of the RPC message.
        at: usize,
        /// What it is.
        value: u32,
    },
    /// A call that this is the reply to.
    Refused(Reply),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { at } => write!(f, "truncated at octet {at}"),
            Self::Value { at, value } => write!(f, "illegal value {value} at octet {at}"),
            Self::Refused(reply) => write!(f, "refused with {}", reply.status),
        }
    }
}
