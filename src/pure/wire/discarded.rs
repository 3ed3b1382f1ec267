// SPDX-License-Identifier: GPL-2.0

//! Messages that came where a reply was expected, and were discarded (RFC 8166, section 4.5).

use core::fmt;

use super::header::error::{
    HeaderError,
    Malformed, //
};

/// Why a message was discarded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// The message is too short for a header, with this length in octets.
    Short(usize),
    /// The version is not known.
    UnknownVersion(u32),
    /// The header is malformed.
    Malformed(Malformed),
    /// A header in another version than the call has.
    OtherVersion {
        /// The version of the message.
        version: u32,
        /// The version of the call.
        called: u32,
    },
    /// No outstanding call has this XID.
    Xid(u32),
    /// A call, where only replies are expected.
    Call,
    /// The RPC message is neither a call nor a reply.
    Type,
    /// The reply has a Read list (RFC 8166, section 4.3.1).
    ReadList,
    /// The reply has a Reply chunk, and none was offered (RFC 8166, section 4.3.3).
    ReplyChunk,
    /// The reply does not return the Reply chunk that was offered (RFC 8166, section 4.3.3).
    OtherReplyChunk,
}

impl From<HeaderError> for Fault {
    fn from(error: HeaderError) -> Self {
        match error {
            HeaderError::Short { length } => Self::Short(length),
            HeaderError::Version(fixed) => Self::UnknownVersion(fixed.vers),
            HeaderError::Malformed(_, malformed) => Self::Malformed(malformed),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(1) => f.write_str("a message of 1 octet"),
            Self::Short(length) => write!(f, "a message of {length} octets"),
            Self::UnknownVersion(version) => {
                write!(f, "a message in version {version} of RPC-over-RDMA")
            }
            Self::Malformed(malformed) => write!(f, "a malformed header ({malformed})"),
            Self::OtherVersion { version, called } => {
                write!(
                    f,
                    "a message in version {version}, to a call in version {called}"
                )
            }
            Self::Xid(xid) => write!(f, "a message with XID {xid:#010x}, which no call has"),
            Self::Call => f.write_str("a call"),
            Self::Type => f.write_str("a message that is neither a call nor a reply"),
            Self::ReadList => f.write_str("a reply with a Read list"),
            Self::ReplyChunk => f.write_str("a reply with a Reply chunk, where none was offered"),
            Self::OtherReplyChunk => {
                f.write_str("a reply with another Reply chunk than the offered one")
            }
        }
    }
}
