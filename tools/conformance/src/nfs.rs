// SPDX-License-Identifier: GPL-2.0

//! The few operations of NFS 4.0 (RFC 7530) that the cases need.

use crate::peer::NFS;
use crate::wire;
use crate::wire::roundup;
use crate::wire::Procedure;
use crate::wire::Reader;
use crate::wire::Writer;

const CREATE: u32 = 6;
const GETATTR: u32 = 9;
const GETFH: u32 = 10;
const LOOKUP: u32 = 15;
const NVERIFY: u32 = 17;
const PUTROOTFH: u32 = 24;
const READ: u32 = 25;
const READLINK: u32 = 27;
const REMOVE: u32 = 28;
const SETATTR: u32 = 34;
const WRITE: u32 = 38;

/// NF4LNK
const LINK: u32 = 5;
/// FATTR4_SIZE
const SIZE: u32 = 1 << 4;
/// FATTR4_FILEHANDLE
const HANDLE: u32 = 1 << 19;
/// FATTR4_MAXREAD and FATTR4_MAXWRITE
pub const MOST: u32 = (1 << 30) | (1 << 31);

/// FATTR4_SIZE, FATTR4_FILEID and FATTR4_TIME_MODIFY (RFC 7530, section 5).
pub const ATTRIBUTES: [u32; 2] = [SIZE | (1 << 20), 1 << (53 - 32)];

/// NFS4ERR_NOENT
pub const NOENT: u32 = 2;
/// NFS4ERR_IO, and NFS3ERR_IO
pub const IO: u32 = 5;
/// NFS4ERR_FBIG
pub const FBIG: u32 = 27;
/// NFS4ERR_NOTSUPP
pub const NOTSUPP: u32 = 10_004;
/// NFS4ERR_BADTYPE
pub const BADTYPE: u32 = 10_007;
/// NFS4ERR_DELAY
pub const DELAY: u32 = 10_008;
/// NFS4ERR_RESOURCE
pub const RESOURCE: u32 = 10_018;
/// NFS4ERR_MINOR_VERS_MISMATCH
pub const MINOR_VERS_MISMATCH: u32 = 10_021;
/// NFS4ERR_BADXDR
pub const BADXDR: u32 = 10_036;

/// Returns the name of a status that tells of the scratch file and its server, and not of the
/// transport (RFC 7530, section 13.1).
pub fn environment(status: u32) -> Option<&'static str> {
    Some(match status {
        1 => "NFS4ERR_PERM",
        NOENT => "NFS4ERR_NOENT",
        IO => "NFS4ERR_IO",
        13 => "NFS4ERR_ACCESS",
        20 => "NFS4ERR_NOTDIR",
        21 => "NFS4ERR_ISDIR",
        28 => "NFS4ERR_NOSPC",
        30 => "NFS4ERR_ROFS",
        63 => "NFS4ERR_NAMETOOLONG",
        69 => "NFS4ERR_DQUOT",
        70 => "NFS4ERR_STALE",
        DELAY => "NFS4ERR_DELAY",
        10_012 => "NFS4ERR_LOCKED",
        10_013 => "NFS4ERR_GRACE",
        10_014 => "NFS4ERR_FHEXPIRED",
        10_016 => "NFS4ERR_WRONGSEC",
        RESOURCE => "NFS4ERR_RESOURCE",
        10_019 => "NFS4ERR_MOVED",
        10_029 => "NFS4ERR_SYMLINK",
        10_046 => "NFS4ERR_FILE_OPEN",
        _ => return None,
    })
}

/// Attributes of a file, which NFS 3 and 4 have.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Attributes {
    pub size: u64,
    pub id: u64,
    /// Seconds and nanoseconds.
    pub modified: (u64, u32),
}

/// The longest tag that is sent; Linux takes 128 octets.
pub const TAG_MAX: usize = 128;

/// Arguments of COMPOUND.
#[derive(Clone, Debug, Default)]
pub struct Compound {
    tag: Vec<u8>,
    count: u32,
    operations: Writer,
    /// The argument that goes by a Read chunk: where it belongs in the operations.
    reduced: Option<usize>,
}

impl Compound {
    pub fn new(tag: &[u8]) -> Self {
        Compound {
            tag: tag.to_vec(),
            ..Compound::default()
        }
    }

    fn operation(mut self, number: u32, arguments: impl FnOnce(Writer) -> Writer) -> Self {
        self.count += 1;
        self.operations = arguments(self.operations.word(number));
        self
    }

    pub fn put_root(self) -> Self {
        self.operation(PUTROOTFH, |writer| writer)
    }

    pub fn get_handle(self) -> Self {
        self.operation(GETFH, |writer| writer)
    }

    /// LOOKUP of a name of `length` octets that are not in the message.
    pub fn lookup_reduced(self, length: u32) -> Self {
        self.operation(LOOKUP, |writer| writer.word(length))
            .reduces()
    }

    pub fn lookup(self, name: &[u8]) -> Self {
        self.operation(LOOKUP, |writer| writer.opaque(name))
    }

    /// Notes that the last argument of the last operation is not in the message.
    fn reduces(mut self) -> Self {
        self.reduced = Some(self.operations.0.len());
        self
    }

    /// Goes from the root to a file.
    pub fn path(self, path: &str) -> Self {
        path.split('/')
            .filter(|name| !name.is_empty())
            .fold(self.put_root(), |compound, name| {
                compound.lookup(name.as_bytes())
            })
    }

    /// Removes a file.
    pub fn remove(self, path: &str) -> Self {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        self.path(folder)
            .operation(REMOVE, |writer| writer.opaque(name.as_bytes()))
    }

    /// Makes a symbolic link without attributes. The octets of its target are not in the message if
    /// `reduced`.
    pub fn create_link(mut self, path: &str, target: &[u8], reduced: bool) -> Self {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        self = self.path(folder).operation(CREATE, |writer| {
            if reduced {
                writer.words(&[LINK, target.len() as u32])
            } else {
                writer.word(LINK).opaque(target)
            }
        });
        if reduced {
            self = self.reduces();
        }
        let last = std::mem::take(&mut self.operations);
        self.operations = last.opaque(name.as_bytes()).words(&[0, 0]);
        self
    }

    pub fn read_link(self) -> Self {
        self.operation(READLINK, |writer| writer)
    }

    pub fn attributes(self) -> Self {
        self.operation(GETATTR, |writer| writer.word(2).words(&ATTRIBUTES))
    }

    /// NVERIFY: the file handle is not this one.
    pub fn is_other_than(self, handle: &[u8]) -> Self {
        let handle = Writer::new().opaque(handle).0;
        self.operation(NVERIFY, |writer| writer.words(&[1, HANDLE]).opaque(&handle))
    }

    /// Asks how much READ and WRITE take.
    pub fn most(self) -> Self {
        self.operation(GETATTR, |writer| writer.words(&[1, MOST]))
    }

    /// SETATTR of the size, with the anonymous state.
    pub fn resize(self, size: u64) -> Self {
        let size = Writer::new().hyper(size).0;
        self.operation(SETATTR, |writer| {
            writer.words(&[0; 4]).words(&[1, SIZE]).opaque(&size)
        })
    }

    /// READ with the anonymous state.
    pub fn read(self, offset: u64, count: u32) -> Self {
        self.operation(READ, |writer| {
            writer.words(&[0; 4]).hyper(offset).word(count)
        })
    }

    /// FILE_SYNC WRITE with the anonymous state.
    pub fn write(self, offset: u64, octets: &[u8]) -> Self {
        self.operation(WRITE, |writer| {
            writer.words(&[0; 4]).hyper(offset).word(2).opaque(octets)
        })
    }

    /// WRITE of `length` octets that are not in the message.
    pub fn write_reduced(self, offset: u64, length: u32) -> Self {
        self.operation(WRITE, |writer| {
            writer.words(&[0; 4]).hyper(offset).word(2).word(length)
        })
        .reduces()
    }

    /// Returns the RPC call.
    pub fn call(&self, xid: u32) -> Vec<u8> {
        self.call_behind(xid, Writer::new().opaque(&self.tag))
    }

    /// Returns the RPC call, and the Position of a tag of `length` octets that are not in the
    /// message.
    pub fn call_without_tag(&self, xid: u32, length: u32) -> (Vec<u8>, u32) {
        let call = self.call_behind(xid, Writer::new().word(length));
        let behind = 8 + self.operations.0.len();
        let position = (call.len() - behind) as u32;
        (call, position)
    }

    fn call_behind(&self, xid: u32, tag: Writer) -> Vec<u8> {
        let arguments = tag.words(&[0, self.count]).raw(&self.operations.0);
        let compound = Procedure { number: 1, ..NFS };
        wire::call_with(xid, compound, 1, &wire::auth_sys(), &arguments.0)
    }

    /// Returns the Position of the reduced data in that call.
    pub fn position(&self) -> u32 {
        let behind = self.operations.0.len() - self.reduced.unwrap_or(0);
        (self.call(0).len() - behind) as u32
    }
}

/// The result of a READ.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Read {
    pub eof: bool,
    pub count: u32,
    /// Without what a Write chunk has.
    pub data: Vec<u8>,
}

impl Read {
    fn parse(reader: &mut Reader<'_>, inline: bool) -> Result<Self, String> {
        let eof = reader.flag("eof")?;
        let data = if inline { reader.opaque()? } else { &[] };
        let count = if inline {
            data.len() as u32
        } else {
            reader.word()?
        };
        Ok(Read {
            eof,
            count,
            data: data.to_vec(),
        })
    }
}

/// Reads fattr4 (RFC 8881, section 3.3.7): the bitmap without zeros at its end, and the values.
fn fattr4<'a>(reader: &mut Reader<'a>) -> Result<(Vec<u32>, &'a [u8]), String> {
    let mut bitmap = Vec::new();
    for _ in 0..reader.word()? {
        bitmap.push(reader.word()?);
    }
    while bitmap.last() == Some(&0) {
        bitmap.pop();
    }
    Ok((bitmap, reader.opaque()?))
}

/// Reads size, fileid and time_modify. A server need not have the last two.
fn attributes(reader: &mut Reader<'_>) -> Result<Option<Attributes>, String> {
    let (bitmap, values) = fattr4(reader)?;
    let asked = ATTRIBUTES.iter().chain(std::iter::repeat(&0));
    if bitmap
        .iter()
        .zip(asked)
        .any(|(found, asked)| found & !asked != 0)
    {
        return Err("GETATTR returns other attributes than size, fileid, time_modify".into());
    }
    if bitmap != ATTRIBUTES {
        return Ok(None);
    }
    let mut values = Reader::new(values);
    let found = Attributes {
        size: values.hyper()?,
        id: values.hyper()?,
        modified: (values.hyper()?, values.word()?),
    };
    match values.rest().len() {
        0 => Ok(Some(found)),
        more => Err(format!("{more} octets follow time_modify")),
    }
}

/// Results of COMPOUND.
#[derive(Clone, Debug)]
pub struct Results {
    pub status: u32,
    count: u32,
    octets: Vec<u8>,
}

impl Results {
    pub fn parse(octets: &[u8]) -> Result<Self, String> {
        let mut reader = Reader::new(octets);
        let status = reader.word()?;
        // The tag.
        reader.opaque()?;
        Ok(Results {
            status,
            count: reader.word()?,
            octets: reader.rest().to_vec(),
        })
    }

    /// Goes to the first operation `wanted`. All of them up to it must have succeeded.
    fn first(&self, wanted: u32) -> Result<Reader<'_>, String> {
        let mut reader = Reader::new(&self.octets);
        for _ in 0..self.count {
            match (reader.word()?, reader.word()?) {
                (operation, 0) if operation == wanted => return Ok(reader),
                (PUTROOTFH | LOOKUP, 0) => (),
                (GETFH, 0) => {
                    reader.opaque()?;
                }
                // The count, how it is committed, and the verifier.
                (WRITE, 0) => {
                    reader.raw(16)?;
                }
                (GETATTR, 0) => {
                    fattr4(&mut reader)?;
                }
                (operation, status) => {
                    return Err(format!("operation {operation} ends with {status}"))
                }
            }
        }
        Err(format!("operation {wanted} has no results"))
    }

    /// Returns the file handle of the first GETFH.
    pub fn handle(&mut self) -> Result<Vec<u8>, String> {
        Ok(self.first(GETFH)?.opaque()?.to_vec())
    }

    /// Returns the attributes of a GETATTR at the end, unless the server lacks some.
    pub fn attributes(&self) -> Result<Option<Attributes>, String> {
        let mut reader = self.first(GETATTR)?;
        let found = attributes(&mut reader)?;
        match reader.rest().len() {
            0 => Ok(found),
            more => Err(format!("{more} octets follow the attributes")),
        }
    }

    /// Returns the attributes of a GETATTR in front of a READ.
    pub fn attributes_in_front(&self) -> Result<Option<Attributes>, String> {
        attributes(&mut self.first(GETATTR)?)
    }

    /// Returns eof and the count of a READ whose data should be in a Write chunk, and the octets
    /// that follow.
    pub fn reduced(&self) -> Result<(bool, u32, Vec<u8>), String> {
        let mut reader = self.first(READ)?;
        let eof = reader.flag("eof")?;
        let count = reader.word()?;
        Ok((eof, count, reader.rest().to_vec()))
    }

    /// Returns the result of a READ at the end whose data is inline.
    pub fn inline(&self) -> Result<Read, String> {
        let mut reader = self.first(READ)?;
        let found = Read::parse(&mut reader, true)?;
        match reader.rest().len() {
            0 => Ok(found),
            more => Err(format!("{more} octets follow the data")),
        }
    }

    /// Returns the result of each READ. `inline` tells of each one whether its data is in the
    /// message.
    pub fn reads(&self, inline: &[bool]) -> Result<Vec<Read>, String> {
        let mut reader = Reader::new(&self.octets);
        let mut found = Vec::new();
        for _ in 0..self.count {
            match (reader.word()?, reader.word()?) {
                (PUTROOTFH | LOOKUP, 0) => (),
                (READ, 0) => {
                    let inline = inline.get(found.len()) == Some(&true);
                    found.push(Read::parse(&mut reader, inline)?);
                }
                (operation, status) => {
                    return Err(format!("operation {operation} ends with {status}"))
                }
            }
        }
        match reader.rest().len() {
            0 => Ok(found),
            more => Err(format!("{more} octets follow the results")),
        }
    }

    /// Returns the count of a WRITE.
    pub fn written(&self) -> Result<u32, String> {
        self.first(WRITE)?.word()
    }

    /// Returns how much READ and WRITE take. A server need not tell.
    pub fn most(&self) -> Result<Option<u64>, String> {
        let mut reader = self.first(GETATTR)?;
        let mut told = 0;
        for number in 0..reader.word()? {
            let word = reader.word()?;
            told = if number == 0 { word } else { told };
        }
        let mut values = Reader::new(reader.opaque()?);
        match told {
            MOST => Ok(Some(values.hyper()?.min(values.hyper()?))),
            _ => Ok(None),
        }
    }

    /// Returns the length of a link's target whose octets should be in a Write chunk, and the octets
    /// that follow it.
    pub fn reduced_link(&self) -> Result<(u32, Vec<u8>), String> {
        let mut reader = self.first(READLINK)?;
        Ok((reader.word()?, reader.rest().to_vec()))
    }

    /// Returns the target of a link, which is inline.
    pub fn link(&self) -> Result<Vec<u8>, String> {
        Ok(self.first(READLINK)?.opaque()?.to_vec())
    }

    /// A CREATE or a SETATTR has succeeded, with all operations of the COMPOUND.
    pub fn succeeded(&self) -> Result<(), String> {
        match self.status {
            0 => Ok(()),
            status => Err(format!("the status is {status}")),
        }
    }
}

/// Returns a call whose results have `length` octets, with a root's file handle of `handle` octets.
pub fn call_for(xid: u32, length: usize, handle: usize) -> Vec<u8> {
    // status, tag, number of operations, and PUTROOTFH; and each GETFH
    let (base, one) = (4 + 4 + 4 + 8, 8 + 4 + handle);
    let rest = length.saturating_sub(base);
    let mut count = rest / one;
    let mut tag = rest - count * one;
    if tag > TAG_MAX {
        count += 1;
        tag = 0;
    }
    let compound = Compound::new(&vec![b't'; tag]).put_root();
    (0..count)
        .fold(compound, |compound, _| compound.get_handle())
        .call(xid)
}

/// Returns a call of `length` octets whose operations all succeed. Each NVERIFY does, because its
/// file handle is not the root's. The last result is the root's handle.
pub fn call_of(xid: u32, length: usize) -> Vec<u8> {
    // NVERIFY, and the longest file handle (RFC 8881, section 3.1).
    const HEAD: usize = 20;
    const LONGEST: usize = HEAD + 128;
    let base = Compound::new(b"").put_root().get_handle().call(xid).len();
    let rest = roundup(length.saturating_sub(base));
    let last = rest % LONGEST;
    let (tag, last) = if last > HEAD { (0, last) } else { (last, 0) };
    let compound = Compound::new(&vec![b't'; tag]).put_root();
    std::iter::repeat_n(LONGEST, rest / LONGEST)
        .chain((last > 0).then_some(last))
        .fold(compound, |compound, part| {
            compound.is_other_than(&vec![b'n'; part - HEAD])
        })
        .get_handle()
        .call(xid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_the_wanted_length() {
        let least = Compound::new(b"").put_root().get_handle().call(1).len();
        for length in (least..6000).step_by(4) {
            assert_eq!(call_of(1, length).len(), length);
        }
    }

    // RFC 7530, section 16.23: eof, data.
    #[test]
    fn the_data_of_each_read_is_found() {
        let words = [
            0,
            0,
            3,
            PUTROOTFH,
            0,
            READ,
            0,
            1,
            3,
            0x6162_6300,
            READ,
            0,
            0,
            9,
        ];
        let results = Results::parse(&wire::words(&words)).expect("results");
        let found = results.reads(&[true, false]);
        let wanted = [(true, 3, &b"abc"[..]), (false, 9, &[])].map(|(eof, count, data)| Read {
            eof,
            count,
            data: data.to_vec(),
        });
        assert_eq!(found, Ok(wanted.to_vec()));
        assert!(results.reads(&[true, true]).is_err());
        assert!(results.reads(&[false, false]).is_err());
    }

    // RFC 7530, sections 16.36.3 and 16.7.3
    #[test]
    fn attributes_behind_a_write_are_found() {
        let words = [0, 0, 3, PUTROOTFH, 0, WRITE, 0, 7, 2, 0, 0, GETATTR, 0];
        let attributes = [1, MOST, 16, 0, 9, 0, 8];
        let octets = [wire::words(&words), wire::words(&attributes)].concat();
        let results = Results::parse(&octets).expect("results");
        assert_eq!(results.written(), Ok(7));
        assert_eq!(results.most(), Ok(Some(8)));
        assert!(results.attributes().is_err());
        assert!(results.link().is_err());
    }

    // RFC 7530, section 5
    #[test]
    fn a_server_need_not_have_all_attributes() {
        let [first, second] = ATTRIBUTES;
        let found = |words: &[u32]| attributes(&mut Reader::new(&wire::words(words)));
        let all = Attributes {
            size: 5,
            id: 6,
            modified: (7, 8),
        };
        for head in [&[2, first, second][..], &[3, first, second, 0]] {
            let words = [head, &[28, 0, 5, 0, 6, 0, 7, 8]].concat();
            assert_eq!(found(&words), Ok(Some(all.clone())));
        }
        assert_eq!(found(&[2, SIZE, 0, 8, 0, 5]), Ok(None));
        assert!(found(&[2, first | 1, second, 0]).is_err());
        assert!(found(&[3, first, second, 1, 0]).is_err());
        assert!(found(&[2, first, second, 24, 0, 5, 0, 6, 0, 7]).is_err());
    }

    // RFC 4506, section 4.10: the padding is none of the data.
    #[test]
    fn inline_data_has_its_count() {
        let results = |octets: &[u8]| {
            let words = wire::words(&[0, 0, 1, READ, 0, 0, 3]);
            Results::parse(&[&words, octets].concat()).expect("results")
        };
        let found = results(b"abc\0").inline().expect("a READ");
        assert_eq!((found.eof, found.data), (false, b"abc".to_vec()));
        assert!(results(b"ab").inline().is_err());
        assert!(results(b"abc\0defg").inline().is_err());
    }

    #[test]
    fn the_position_is_that_of_the_data() {
        let compound = Compound::new(b"")
            .path("a/b")
            .write_reduced(0, 5)
            .get_handle();
        let inline = Compound::new(b"")
            .path("a/b")
            .write(0, b"12345")
            .get_handle();
        let at = compound.position() as usize;
        assert_eq!(&inline.call(0)[at..at + 5], b"12345");
        let link = |reduced| Compound::new(b"").create_link("a/b", b"12345", reduced);
        let at = link(true).position() as usize;
        assert_eq!(&link(false).call(0)[at..at + 5], b"12345");
        let (_, at) = compound.call_without_tag(0, 5);
        let tagged = Compound::new(b"12345").call(0);
        assert_eq!(&tagged[at as usize..at as usize + 5], b"12345");
    }
}
