// SPDX-License-Identifier: GPL-2.0

//! The headers of RPC calls and replies (RFC 5531, section 9).
//!
//! Calls are sent with AUTH_NONE. A received call may have AUTH_NONE or AUTH_SYS. The module checks
//! the form of AUTH_SYS, and ignores whom it names.

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

/// `auth_flavor` of no authentication; its body should be empty (RFC 5531, section 10.1).
const AUTH_NONE: u32 = 0;

/// `auth_flavor` of a user and its groups (RFC 5531, section 8.2 and appendix A).
const AUTH_SYS: u32 = 1;

/// Length in octets of the longest `machinename` of AUTH_SYS, and the largest number of its `gids`
/// (RFC 5531, appendix A).
const MACHINENAME_MAX: u32 = 255;
const GIDS_MAX: u32 = 16;

/// Length in octets of the longest `opaque_auth` body (RFC 5531, section 8.2).
const AUTH_MAX: u32 = 400;

/// Length in octets of the longest head of a call: with the longest credentials and the longest
/// verifier (RFC 5531, sections 8.2 and 9).
pub(crate) const CALL_HEAD_MAX: usize = 24 + 2 * (8 + AUTH_MAX as usize);

/// Length in octets of the longest head of a reply: PROG_MISMATCH with the longest verifier (RFC
/// 5531, sections 8.2 and 9).
pub(crate) const REPLY_HEAD_MAX: usize = 24 + AUTH_MAX as usize + 8;

/// `auth_stat` of bad credentials (RFC 5531, section 9).
const AUTH_BADCRED: u32 = 1;

/// `auth_stat` of a bad verifier (RFC 5531, section 9).
const AUTH_BADVERF: u32 = 3;

/// Returns the XID of the call with this number. The XIDs of different numbers differ, and those of
/// numbers in sequence are as good as random.
///
/// This is the finalizer of MurmurHash3. Each of its steps can be undone, so no two numbers have
/// the same XID.
pub(crate) fn xid(number: u32) -> u32 {
    let mut xid = number;
    xid ^= xid >> 16;
    xid = xid.wrapping_mul(0x85eb_ca6b);
    xid ^= xid >> 13;
    xid = xid.wrapping_mul(0xc2b2_ae35);
    xid ^ (xid >> 16)
}

/// A call without its arguments: `rpc_msg` and `call_body` (RFC 5531, section 9).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Call {
    /// `xid`: the transaction ID. The reply has the same one.
    pub(crate) xid: u32,
    /// `prog`: the program.
    pub(crate) prog: u32,
    /// `vers`: the version of the program.
    pub(crate) vers: u32,
    /// `proc`: the procedure.
    pub(crate) proc: u32,
}

impl Call {
    /// Returns the length of the header of the call, in octets.
    pub(crate) fn len(&self) -> usize {
        self.build(&mut []).unwrap_or_else(|room| room.needed)
    }

    /// Writes the header of the call, and returns its length in octets. Credentials and verifier
    /// are AUTH_NONE.
    ///
    /// # Errors
    ///
    /// Fails if the buffer is too short.
    pub(crate) fn build(&self, buffer: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(buffer);
        for word in [self.xid, CALL, RPC_VERS, self.prog, self.vers, self.proc] {
            writer.word(word);
        }
        for word in [AUTH_NONE, 0, AUTH_NONE, 0] {
            writer.word(word);
        }
        writer.finish()
    }
}

/// Parses the header of a call, and returns it with the arguments.
///
/// # Errors
///
/// Fails with [`RpcError::Refused`] and the reply to send if the call is to be refused. Fails with
/// another error if the octets are no call.
pub(crate) fn parse_call(octets: &[u8]) -> Result<(Call, &[u8]), RpcError> {
    let mut reader = Reader::new(octets);
    let xid = word(&mut reader)?;
    let refused = |status| RpcError::Refused(Reply { xid, status });
    let refused_auth = |error, auth_stat| match error {
        RpcError::Illegal => refused(Status::AuthError(auth_stat)),
        error => error,
    };
    if word(&mut reader)? != CALL {
        return Err(RpcError::Illegal);
    }
    // The rest of the header is known for version 2 of RPC only.
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
    // The identity in the credentials is ignored, but the flavor is checked: a reply with SUCCESS
    // to a call that establishes a context of RPCSEC_GSS, for example, would be wrong.
    let credentials = pass_auth(&mut reader, &[AUTH_NONE, AUTH_SYS]);
    credentials.map_err(|error| refused_auth(error, AUTH_BADCRED))?;
    let verifier = pass_auth(&mut reader, &[AUTH_NONE]);
    verifier.map_err(|error| refused_auth(error, AUTH_BADVERF))?;
    Ok((call, reader.rest()))
}

/// A reply without its results: `rpc_msg` and `reply_body` (RFC 5531, section 9).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Reply {
    /// `xid`: the transaction ID of the call.
    pub(crate) xid: u32,
    /// The result of the call.
    pub(crate) status: Status,
}

/// `reply_stat` with `accept_stat` or `reject_stat` (RFC 5531, section 9).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Status {
    /// SUCCESS: the results follow.
    Success,
    /// PROG_UNAVAIL: there is no such program.
    ProgUnavail,
    /// PROG_MISMATCH: the program has no such version.
    ProgMismatch {
        /// The lowest version that it has.
        low: u32,
        /// The highest version that it has.
        high: u32,
    },
    /// PROC_UNAVAIL: the program has no such procedure.
    ProcUnavail,
    /// GARBAGE_ARGS: the procedure cannot decode the arguments.
    GarbageArgs,
    /// SYSTEM_ERR: something else went wrong, such as an allocation.
    SystemErr,
    /// RPC_MISMATCH: the version of RPC is not supported.
    RpcMismatch {
        /// The lowest version that is supported.
        low: u32,
        /// The highest version that is supported.
        high: u32,
    },
    /// AUTH_ERROR, with `auth_stat`: the authentication failed.
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
    /// Writes the header of the reply, with AUTH_NONE, and returns its length in octets.
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

/// Whether an RPC message is a reply. A message that is too short to tell is not.
pub(crate) fn is_reply(octets: &[u8]) -> bool {
    let mut reader = Reader::new(octets);
    let _xid = reader.word();
    reader.word() == Some(REPLY)
}

/// Parses the header of a reply, and returns it with the results.
///
/// # Errors
///
/// Fails if the octets are no reply.
pub(crate) fn parse_reply(octets: &[u8]) -> Result<(Reply, &[u8]), RpcError> {
    let mut reader = Reader::new(octets);
    let xid = word(&mut reader)?;
    if word(&mut reader)? != REPLY {
        return Err(RpcError::Illegal);
    }
    let status = match word(&mut reader)? {
        MSG_ACCEPTED => accepted(&mut reader)?,
        MSG_DENIED => denied(&mut reader)?,
        _ => return Err(RpcError::Illegal),
    };
    Ok((Reply { xid, status }, reader.rest()))
}

/// Parses `accepted_reply` (RFC 5531, section 9).
fn accepted(reader: &mut Reader<'_>) -> Result<Status, RpcError> {
    pass_opaque_auth(reader)?;
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
        _ => return Err(RpcError::Illegal),
    })
}

/// Parses `rejected_reply` (RFC 5531, section 9).
fn denied(reader: &mut Reader<'_>) -> Result<Status, RpcError> {
    Ok(match word(reader)? {
        RPC_MISMATCH => Status::RpcMismatch {
            low: word(reader)?,
            high: word(reader)?,
        },
        AUTH_ERROR => Status::AuthError(word(reader)?),
        _ => return Err(RpcError::Illegal),
    })
}

/// Skips the `opaque_auth` of a call. Fails unless it has one of these flavors, and a body that
/// this flavor may have (RFC 5531, sections 8.2 and 9).
fn pass_auth(reader: &mut Reader<'_>, flavors: &[u32]) -> Result<(), RpcError> {
    let (flavor, body) = pass_opaque_auth(reader)?;
    if !flavors.contains(&flavor) || (flavor == AUTH_SYS && !is_auth_sys(body)) {
        return Err(RpcError::Illegal);
    }
    Ok(())
}

/// Whether the body of an `opaque_auth` is that of AUTH_SYS: `authsys_parms` and nothing else (RFC
/// 5531, appendix A).
fn is_auth_sys(body: &[u8]) -> bool {
    let mut reader = Reader::new(body);
    let mut parms = || {
        let _stamp = reader.word()?;
        let machinename = reader.word().filter(|&length| length <= MACHINENAME_MAX)?;
        reader.opaque(machinename as usize)?;
        let _uid = reader.word()?;
        let _gid = reader.word()?;
        let gids = reader.word().filter(|&count| count <= GIDS_MAX)?;
        reader.opaque(4 * gids as usize)
    };
    parms().is_some() && reader.rest().is_empty()
}

/// Skips an `opaque_auth`, and returns its flavor and its body. Fails if the body is longer than
/// [`AUTH_MAX`] (RFC 5531, section 8.2).
fn pass_opaque_auth<'a>(reader: &mut Reader<'a>) -> Result<(u32, &'a [u8]), RpcError> {
    let flavor = word(reader)?;
    let length = word(reader)?;
    if length > AUTH_MAX {
        return Err(RpcError::Illegal);
    }
    let opaque = reader.opaque(length as usize);
    let (body, _) = opaque.ok_or(RpcError::Truncated)?;
    Ok((flavor, body))
}

fn word(reader: &mut Reader<'_>) -> Result<u32, RpcError> {
    reader.word().ok_or(RpcError::Truncated)
}

/// Why octets are no valid call or reply (RFC 5531, section 9).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RpcError {
    /// The octets end too early.
    Truncated,
    /// A word has an illegal value.
    Illegal,
    /// The octets are a call that is refused with this reply.
    Refused(Reply),
}
