// SPDX-License-Identifier: GPL-2.0

//! The few procedures of NFS 3 (RFC 1813) that the cases need.

use crate::nfs::Attributes;
use crate::peer::NFS;
use crate::wire;
use crate::wire::Procedure;
use crate::wire::Reader;
use crate::wire::Writer;

pub const GETATTR: u32 = 1;
pub const LOOKUP: u32 = 3;
pub const READ: u32 = 6;
pub const WRITE: u32 = 7;
const FILE_SYNC: u32 = 2;

/// NULL of NFS 3.
pub const NFS3: Procedure = Procedure { version: 3, ..NFS };

fn call(xid: u32, number: u32, arguments: &Writer) -> Vec<u8> {
    let procedure = Procedure { number, ..NFS3 };
    wire::call_with(xid, procedure, 1, &wire::auth_sys(), &arguments.0)
}

pub fn getattr(xid: u32, handle: &[u8]) -> Vec<u8> {
    call(xid, GETATTR, &Writer::new().opaque(handle))
}

pub fn lookup(xid: u32, directory: &[u8], name: &str) -> Vec<u8> {
    let arguments = Writer::new().opaque(directory).opaque(name.as_bytes());
    call(xid, LOOKUP, &arguments)
}

pub fn read(xid: u32, handle: &[u8], offset: u64, count: u32) -> Vec<u8> {
    let arguments = Writer::new().opaque(handle).hyper(offset).word(count);
    call(xid, READ, &arguments)
}

/// FILE_SYNC WRITE of `length` octets that are not in the message. Their Position is its end.
pub fn write_reduced(xid: u32, handle: &[u8], offset: u64, length: u32) -> Vec<u8> {
    let arguments = Writer::new()
        .opaque(handle)
        .hyper(offset)
        .words(&[length, FILE_SYNC, length]);
    call(xid, WRITE, &arguments)
}

/// FILE_SYNC WRITE.
pub fn write(xid: u32, handle: &[u8], offset: u64, data: &[u8]) -> Vec<u8> {
    let mut octets = write_reduced(xid, handle, offset, data.len() as u32);
    octets.extend(data);
    octets.resize(wire::roundup(octets.len()), 0);
    octets
}

/// Goes behind the status, which must be NFS3_OK.
fn succeeded(results: &[u8]) -> Result<Reader<'_>, String> {
    let mut reader = Reader::new(results);
    match reader.word()? {
        0 => Ok(reader),
        status => Err(format!("the status is {status}")),
    }
}

/// Returns the name of a status that tells of the scratch file and its server, and not of the
/// transport (RFC 1813, section 2.6).
pub fn environment(status: u32) -> Option<&'static str> {
    Some(match status {
        1 => "NFS3ERR_PERM",
        2 => "NFS3ERR_NOENT",
        5 => "NFS3ERR_IO",
        13 => "NFS3ERR_ACCES",
        20 => "NFS3ERR_NOTDIR",
        21 => "NFS3ERR_ISDIR",
        28 => "NFS3ERR_NOSPC",
        30 => "NFS3ERR_ROFS",
        69 => "NFS3ERR_DQUOT",
        10_008 => "NFS3ERR_JUKEBOX",
        _ => return None,
    })
}

/// Reads fattr3 (RFC 1813, section 2.6).
fn fattr3(reader: &mut Reader<'_>) -> Result<Attributes, String> {
    // type, mode, nlink, uid, gid
    reader.array::<5>()?;
    let size = reader.hyper()?;
    // used, rdev, fsid
    reader.array::<6>()?;
    let id = reader.hyper()?;
    // atime
    reader.array::<2>()?;
    let modified = (u64::from(reader.word()?), reader.word()?);
    // ctime
    reader.array::<2>()?;
    Ok(Attributes { size, id, modified })
}

fn post_op(reader: &mut Reader<'_>) -> Result<Option<Attributes>, String> {
    let follow = reader.flag("post_op_attr")?;
    follow.then(|| fattr3(reader)).transpose()
}

pub fn attributes(results: &[u8]) -> Result<Attributes, String> {
    let mut reader = succeeded(results)?;
    let found = fattr3(&mut reader)?;
    match reader.rest().len() {
        0 => Ok(found),
        more => Err(format!("{more} octets follow the attributes")),
    }
}

/// A file. Not every LOOKUP returns its attributes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Found {
    pub handle: Vec<u8>,
    pub attributes: Option<Attributes>,
}

/// Returns what a LOOKUP has found.
pub fn found(results: &[u8]) -> Result<Found, String> {
    let mut reader = succeeded(results)?;
    Ok(Found {
        handle: reader.opaque()?.to_vec(),
        attributes: post_op(&mut reader)?,
    })
}

/// The result of a READ.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Read {
    pub eof: bool,
    pub count: u32,
    /// The octets that follow: the data with its padding, without what a Write chunk has.
    pub rest: Vec<u8>,
}

impl Read {
    /// Returns the data, all of which is inline.
    pub fn data(&self) -> Result<&[u8], String> {
        let count = self.count as usize;
        match self.rest.len() {
            found if found == wire::roundup(count) => Ok(&self.rest[..count]),
            found => Err(format!("the count is {count}, {found} octets follow it")),
        }
    }
}

/// Returns the result of a READ.
pub fn read_result(results: &[u8]) -> Result<Read, String> {
    let mut reader = succeeded(results)?;
    post_op(&mut reader)?;
    let count = reader.word()?;
    let eof = reader.flag("eof")?;
    let rest = |reader: Reader<'_>| reader.rest().to_vec();
    match reader.word()? {
        length if length == count => Ok(Read {
            eof,
            count,
            rest: rest(reader),
        }),
        length => Err(format!(
            "the count is {count}, but the data has {length} octets"
        )),
    }
}

/// Returns the count of a WRITE.
pub fn written(results: &[u8]) -> Result<u32, String> {
    let mut reader = succeeded(results)?;
    if reader.flag("pre_op_attr")? {
        reader.array::<6>()?;
    }
    post_op(&mut reader)?;
    reader.word()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// fattr3 whose words are their places.
    fn places() -> Vec<u32> {
        (0..21).collect()
    }

    #[test]
    fn attributes_are_found_at_their_places() {
        let results = wire::words(&[&[0], &places()[..]].concat());
        let expected = Attributes {
            size: (5 << 32) | 6,
            id: (13 << 32) | 14,
            modified: (17, 18),
        };
        assert_eq!(attributes(&results), Ok(expected.clone()));
        assert!(attributes(&results[..80]).is_err());
        assert!(attributes(&wire::words(&[70])).is_err());
        let looked_up = wire::words(&[&[0, 4, 9, 1], &places()[..], &[0]].concat());
        let handle = vec![0, 0, 0, 9];
        let attributes = Some(expected);
        assert_eq!(found(&looked_up), Ok(Found { handle, attributes }));
    }

    #[test]
    fn the_count_of_a_write_follows_the_attributes() {
        let wcc = wire::words(&[&[0, 1, 0, 0, 0, 0, 0, 0, 1], &places()[..], &[77]].concat());
        assert_eq!(written(&wcc), Ok(77));
        assert_eq!(written(&wire::words(&[0, 0, 0, 78])), Ok(78));
    }

    #[test]
    fn reduced_data_belongs_at_the_end() {
        let position = write_reduced(1, b"handle", 8, 5).len();
        let inline = write(1, b"handle", 8, b"12345");
        assert_eq!(&inline[position..], b"12345\0\0\0");
    }

    #[test]
    fn a_read_returns_its_count() {
        let inline = Writer::new().words(&[0, 0, 5, 1]).opaque(b"12345").0;
        let found = read_result(&inline).expect("a READ");
        assert_eq!((found.eof, found.count), (true, 5));
        assert_eq!(found.data(), Ok(&b"12345"[..]));
        let cut = read_result(&inline[..inline.len() - 4]).expect("a READ");
        assert!(cut.data().is_err());
        assert!(read_result(&wire::words(&[0, 0, 5, 1, 4])).is_err());
    }
}
