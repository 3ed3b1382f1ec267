// SPDX-License-Identifier: GPL-2.0

//! Octets: private data (RFC 8797), transport headers (RFC 8166), RPC messages (RFC 5531).

/// Writes XDR (RFC 4506).
#[derive(Clone, Debug, Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn new() -> Self {
        Writer::default()
    }

    pub fn word(mut self, word: u32) -> Self {
        self.0.extend(word.to_be_bytes());
        self
    }

    pub fn words(self, words: &[u32]) -> Self {
        words.iter().fold(self, |writer, &word| writer.word(word))
    }

    pub fn hyper(self, value: u64) -> Self {
        self.word((value >> 32) as u32).word(value as u32)
    }

    /// Writes octets as they are.
    pub fn raw(mut self, octets: &[u8]) -> Self {
        self.0.extend(octets);
        self
    }

    /// Writes `opaque<>`.
    pub fn opaque(self, octets: &[u8]) -> Self {
        let mut writer = self.word(octets.len() as u32).raw(octets);
        while writer.0.len() % 4 != 0 {
            writer.0.push(0);
        }
        writer
    }
}

/// Returns words of 32 bits as octets.
pub fn words(words: &[u32]) -> Vec<u8> {
    Writer::new().words(words).0
}

/// Rounds up to a multiple of four.
pub fn roundup(length: usize) -> usize {
    length.div_ceil(4) * 4
}

/// Reads XDR.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    octets: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(octets: &'a [u8]) -> Self {
        Reader { octets }
    }

    pub fn raw(&mut self, length: usize) -> Result<&'a [u8], String> {
        if length > self.octets.len() {
            return Err("it ends too early".into());
        }
        let (found, rest) = self.octets.split_at(length);
        self.octets = rest;
        Ok(found)
    }

    pub fn word(&mut self) -> Result<u32, String> {
        let octets = self.raw(4)?;
        Ok(u32::from_be_bytes([
            octets[0], octets[1], octets[2], octets[3],
        ]))
    }

    /// Reads `N` words.
    pub fn array<const N: usize>(&mut self) -> Result<[u32; N], String> {
        let mut words = [0; N];
        for word in &mut words {
            *word = self.word()?;
        }
        Ok(words)
    }

    pub fn hyper(&mut self) -> Result<u64, String> {
        Ok((u64::from(self.word()?) << 32) | u64::from(self.word()?))
    }

    pub fn opaque(&mut self) -> Result<&'a [u8], String> {
        let length = self.word()? as usize;
        let octets = self.raw(length)?;
        self.raw(roundup(length) - length)?;
        Ok(octets)
    }

    pub fn flag(&mut self, what: &str) -> Result<bool, String> {
        match self.word()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!("{what} begins with {other}, not with 0 or 1")),
        }
    }

    pub fn rest(&self) -> &'a [u8] {
        self.octets
    }
}

/// The Format Identifier (RFC 8797, section 4).
pub const FORMAT: [u8; 4] = [0xf6, 0xab, 0x0e, 0x18];

/// The content of private data. The default is that of a side that sends none: 1024 octets (RFC 8797,
/// section 5.1).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Private {
    pub flags: u8,
    pub send: u8,
    pub receive: u8,
}

impl Private {
    /// Returns a message of version 1 with sizes in octets.
    pub fn new(send: usize, receive: usize, invalidation: bool) -> Self {
        let code = |size: usize| (size / 1024).clamp(1, 256) as u8 - 1;
        let code = |size: usize| {
            if size >= 262_144 {
                255
            } else {
                code(size)
            }
        };
        Private {
            flags: u8::from(invalidation),
            send: code(send),
            receive: code(receive),
        }
    }

    pub fn octets(self) -> Vec<u8> {
        let mut octets = FORMAT.to_vec();
        octets.extend([1, self.flags, self.send, self.receive]);
        octets
    }

    pub fn send_size(self) -> usize {
        (usize::from(self.send) + 1) * 1024
    }

    pub fn receive_size(self) -> usize {
        (usize::from(self.receive) + 1) * 1024
    }

    pub fn invalidation(self) -> bool {
        self.flags & 1 != 0
    }

    /// Searches for a message of version 1, and otherwise says what is in its place.
    pub fn look(octets: &[u8]) -> Found {
        if let Some((at, found)) = Self::find(octets) {
            return Found::Message(at, found);
        }
        let Some(at) = octets.windows(4).position(|window| window == FORMAT) else {
            return Found::Absent;
        };
        match octets[at..] {
            [_, _, _, _, version, _, _, _, ..] => Found::Version(at, version),
            ref short => Found::Truncated(at, short.len()),
        }
    }

    /// Searches for a message of version 1 (RFC 8797, section 5.2). Returns its offset, too.
    pub fn find(octets: &[u8]) -> Option<(usize, Self)> {
        octets.windows(8).enumerate().find_map(|(at, window)| {
            (window[..4] == FORMAT && window[4] == 1).then_some((
                at,
                Private {
                    flags: window[5],
                    send: window[6],
                    receive: window[7],
                },
            ))
        })
    }
}

/// The result of a search in private data. The first number is the offset of the Format Identifier.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Found {
    /// No Format Identifier.
    Absent,
    Message(usize, Private),
    /// A message of this other version.
    Version(usize, u8),
    /// Fewer than eight octets.
    Truncated(usize, usize),
}

/// An RDMA segment (RFC 8166, section 3.4.3).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Segment {
    pub handle: u32,
    pub length: u32,
    pub offset: u64,
}

/// Returns the length of a chunk.
pub fn room(chunk: &[Segment]) -> usize {
    chunk.iter().map(|segment| segment.length as usize).sum()
}

/// A segment of the Read list.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ReadSegment {
    pub position: u32,
    pub segment: Segment,
}

pub const MSG: u32 = 0;
pub const NOMSG: u32 = 1;
pub const MSGP: u32 = 2;
pub const DONE: u32 = 3;
pub const ERROR: u32 = 4;
/// RDMA2_OPTIONAL of version 2.
pub const OPTIONAL: u32 = 5;
pub const ERR_VERS: u32 = 1;
/// RDMA2_ERR_BAD_HEADER of version 2 has the same number.
pub const ERR_CHUNK: u32 = 2;
/// RDMA2_ERR_INVALID_OPTION of version 2.
pub const INVALID_OPTION: u32 = 3;

/// The length of the shortest message (RFC 8166, section 4.5).
const SHORTEST: usize = 28;

/// A transport header with chunk lists.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Header {
    pub xid: u32,
    pub version: u32,
    pub credits: u32,
    pub procedure: u32,
    /// Whether it belongs to a call or to a reply, in version 2 only.
    pub direction: u32,
    pub reads: Vec<ReadSegment>,
    pub writes: Vec<Vec<Segment>>,
    pub reply: Option<Vec<Segment>>,
}

impl Header {
    /// Returns the header of an RDMA_MSG without chunks that requests 32 credits.
    pub fn msg(xid: u32) -> Self {
        Header {
            xid,
            version: 1,
            credits: 32,
            procedure: MSG,
            ..Header::default()
        }
    }

    /// Returns the same of version 2.
    pub fn two(xid: u32) -> Self {
        Header {
            version: 2,
            ..Header::msg(xid)
        }
    }

    /// Returns the header of an RDMA_NOMSG.
    pub fn nomsg(xid: u32) -> Self {
        Header {
            procedure: NOMSG,
            ..Header::msg(xid)
        }
    }

    pub fn octets(&self) -> Vec<u8> {
        let mut writer =
            Writer::new().words(&[self.xid, self.version, self.credits, self.procedure]);
        if self.version == 2 {
            writer = writer.word(self.direction);
        }
        for read in &self.reads {
            writer = segment(writer.word(1).word(read.position), read.segment);
        }
        writer = writer.word(0);
        for chunk in &self.writes {
            writer = array(writer.word(1), chunk);
        }
        writer = writer.word(0);
        match &self.reply {
            None => writer.word(0).0,
            Some(chunk) => array(writer.word(1), chunk).0,
        }
    }

    /// Returns the header and a payload behind it.
    pub fn with(&self, payload: &[u8]) -> Vec<u8> {
        let mut octets = self.octets();
        octets.extend(payload);
        octets
    }
}

fn segment(writer: Writer, segment: Segment) -> Writer {
    writer
        .words(&[segment.handle, segment.length])
        .hyper(segment.offset)
}

fn array(writer: Writer, chunk: &[Segment]) -> Writer {
    chunk
        .iter()
        .fold(writer.word(chunk.len() as u32), |writer, &one| {
            segment(writer, one)
        })
}

/// A transport message as received.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Transport {
    /// RDMA_MSG or RDMA_NOMSG, and the octets behind the lists.
    Chunks(Header, Vec<u8>),
    /// RDMA_ERROR.
    Error {
        xid: u32,
        version: u32,
        credits: u32,
        error: u32,
        /// The lowest and the highest version, of ERR_VERS.
        range: Option<(u32, u32)>,
    },
}

impl Transport {
    /// Decodes a message.
    pub fn parse(octets: &[u8]) -> Result<Self, String> {
        let mut reader = Reader::new(octets);
        let mut header = Header {
            xid: reader.word()?,
            version: reader.word()?,
            credits: reader.word()?,
            procedure: reader.word()?,
            ..Header::default()
        };
        match header.procedure {
            MSG | NOMSG => (),
            ERROR => {
                let error = reader.word()?;
                let range = match error {
                    ERR_VERS => Some((reader.word()?, reader.word()?)),
                    _ => None,
                };
                // Shorter messages are discarded, so zeros may fill an error up to that length.
                let zeros = reader.rest().iter().all(|&octet| octet == 0);
                if octets.len() > SHORTEST && !reader.rest().is_empty() || !zeros {
                    return Err("octets follow the error".into());
                }
                return Ok(Transport::Error {
                    xid: header.xid,
                    version: header.version,
                    credits: header.credits,
                    error,
                    range,
                });
            }
            other => return Err(format!("the procedure is {other}")),
        }
        if header.version == 2 {
            header.direction = reader.word()?;
        }
        while reader.flag("the Read list")? {
            header.reads.push(ReadSegment {
                position: reader.word()?,
                segment: read_segment(&mut reader)?,
            });
        }
        while reader.flag("the Write list")? {
            header.writes.push(read_array(&mut reader)?);
        }
        if reader.flag("the Reply chunk")? {
            header.reply = Some(read_array(&mut reader)?);
        }
        Ok(Transport::Chunks(header, reader.rest().to_vec()))
    }
}

fn read_segment(reader: &mut Reader<'_>) -> Result<Segment, String> {
    Ok(Segment {
        handle: reader.word()?,
        length: reader.word()?,
        offset: reader.hyper()?,
    })
}

fn read_array(reader: &mut Reader<'_>) -> Result<Vec<Segment>, String> {
    let count = reader.word()? as usize;
    if count > reader.rest().len() / 16 {
        return Err(format!("an array of {count} segments does not fit"));
    }
    (0..count).map(|_| read_segment(reader)).collect()
}

/// A procedure of an RPC program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Procedure {
    pub program: u32,
    pub version: u32,
    pub number: u32,
}

pub const CALL: u32 = 0;
pub const REPLY: u32 = 1;
/// `accept_stat` (RFC 5531, section 9).
pub const GARBAGE_ARGS: u32 = 4;
pub const SYSTEM_ERR: u32 = 5;

/// Returns an RPC call with AUTH_NONE.
pub fn call(xid: u32, procedure: Procedure, arguments: &[u8]) -> Vec<u8> {
    call_with(xid, procedure, 0, &[], arguments)
}

/// Returns an RPC call with a credential.
pub fn call_with(
    xid: u32,
    procedure: Procedure,
    flavor: u32,
    body: &[u8],
    arguments: &[u8],
) -> Vec<u8> {
    Writer::new()
        .words(&[
            xid,
            CALL,
            2,
            procedure.program,
            procedure.version,
            procedure.number,
            flavor,
        ])
        .opaque(body)
        .words(&[0, 0])
        .raw(arguments)
        .0
}

/// Returns the body of an AUTH_SYS credential of root.
pub fn auth_sys() -> Vec<u8> {
    Writer::new()
        .word(0)
        .opaque(b"conformance")
        .words(&[0, 0, 0])
        .0
}

/// The status of an RPC reply (RFC 5531, section 9).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Status {
    Success(Vec<u8>),
    ProgUnavail,
    ProgMismatch(u32, u32),
    ProcUnavail,
    GarbageArgs,
    SystemErr,
    RpcMismatch(u32, u32),
    AuthError(u32),
}

/// Decodes an RPC reply. Returns its XID and its status.
pub fn parse_reply(octets: &[u8]) -> Result<(u32, Status), String> {
    let mut reader = Reader::new(octets);
    let xid = reader.word()?;
    let message_type = reader.word()?;
    if message_type != REPLY {
        return Err(format!("the RPC message has the type {message_type}"));
    }
    let status = match reader.word()? {
        0 => {
            reader.word()?;
            reader.opaque()?;
            match reader.word()? {
                0 => Status::Success(reader.rest().to_vec()),
                1 => Status::ProgUnavail,
                2 => Status::ProgMismatch(reader.word()?, reader.word()?),
                3 => Status::ProcUnavail,
                4 => Status::GarbageArgs,
                5 => Status::SystemErr,
                other => return Err(format!("accept_stat {other}")),
            }
        }
        1 => match reader.word()? {
            0 => Status::RpcMismatch(reader.word()?, reader.word()?),
            1 => Status::AuthError(reader.word()?),
            other => return Err(format!("reject_stat {other}")),
        },
        other => return Err(format!("reply_stat {other}")),
    };
    Ok((xid, status))
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 8166, section 4.7: a Write list of two chunks, and a Reply chunk of two segments.
    #[test]
    fn lists_have_the_form_of_the_rfc() {
        let one = |handle| Segment {
            handle,
            length: 2,
            offset: 0x0000_0003_0000_0004,
        };
        let header = Header {
            reads: vec![ReadSegment {
                position: 9,
                segment: one(1),
            }],
            writes: vec![vec![one(5), one(6), one(7)], vec![one(8), one(9)]],
            reply: Some(vec![one(10), one(11)]),
            ..Header::msg(77)
        };
        let octets = header.with(b"pay.");
        let hloo = |handle| [handle, 2, 3, 4];
        let mut expected = vec![77, 1, 32, 0, 1, 9];
        expected.extend(hloo(1));
        expected.extend([0, 1, 3]);
        expected.extend([hloo(5), hloo(6), hloo(7)].concat());
        expected.extend([1, 2]);
        expected.extend([hloo(8), hloo(9)].concat());
        expected.extend([0, 1, 2]);
        expected.extend([hloo(10), hloo(11)].concat());
        let mut expected = words(&expected);
        expected.extend(b"pay.");
        assert_eq!(octets, expected);
        assert_eq!(
            Transport::parse(&octets),
            Ok(Transport::Chunks(header, b"pay.".to_vec()))
        );
    }

    #[test]
    fn broken_headers_are_refused() {
        let octets = Header {
            writes: vec![vec![Segment::default()]],
            ..Header::msg(1)
        }
        .octets();
        for length in 0..octets.len() {
            assert!(Transport::parse(&octets[..length]).is_err(), "{length}");
        }
        for bad in [
            [1, 1, 1, 0, 2, 0, 0],
            [1, 1, 1, 0, 0, 2, 0],
            [1, 1, 1, 0, 0, 0, 2],
            [1, 1, 1, 9, 0, 0, 0],
        ] {
            assert!(Transport::parse(&words(&bad)).is_err());
        }
        assert!(Transport::parse(&words(&[1, 1, 1, 0, 0, 0, 1, u32::MAX])).is_err());
    }

    // draft-cel-nfsv4-rpcrdma-version-two-01, section 4.2: the direction stands before the lists.
    #[test]
    fn version_2_has_a_direction() {
        let header = Header {
            direction: REPLY,
            ..Header::two(5)
        };
        let octets = header.with(b"pay.");
        let mut expected = words(&[5, 2, 32, 0, 1, 0, 0, 0]);
        expected.extend(b"pay.");
        assert_eq!(octets, expected);
        assert_eq!(
            Transport::parse(&octets),
            Ok(Transport::Chunks(header, b"pay.".to_vec()))
        );
    }

    #[test]
    fn errors_are_decoded() {
        assert_eq!(
            Transport::parse(&words(&[7, 2, 32, 4, 1, 1, 1])),
            Ok(Transport::Error {
                xid: 7,
                version: 2,
                credits: 32,
                error: ERR_VERS,
                range: Some((1, 1))
            })
        );
        let short = words(&[7, 1, 32, 4, ERR_CHUNK]);
        let filled = words(&[7, 1, 32, 4, ERR_CHUNK, 0, 0]);
        assert!(Transport::parse(&short).is_ok());
        assert_eq!(Transport::parse(&filled), Transport::parse(&short));
        for more in [&[1][..], &[0, 1], &[0; 3]] {
            let octets = [short.clone(), words(more)].concat();
            assert!(Transport::parse(&octets).is_err());
        }
    }

    // RFC 8797, sections 4 and 4.2.
    #[test]
    fn private_data_has_the_form_of_the_rfc() {
        let octets = Private::new(4096, 262_144, true).octets();
        assert_eq!(octets, [0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 255]);
        let mut shifted = vec![0xf6; 3];
        shifted.extend(&octets);
        let (offset, found) = Private::find(&shifted).expect("a message");
        assert_eq!(offset, 3);
        assert_eq!((found.send_size(), found.receive_size()), (4096, 262_144));
        assert!(Private::find(&octets[..7]).is_none());
        assert_eq!(Private::look(&shifted), Found::Message(3, found));
        assert_eq!(Private::look(&octets[..7]), Found::Truncated(0, 7));
        assert_eq!(Private::look(&octets[1..]), Found::Absent);
        let other = [&FORMAT[..], &[2, 0, 3, 3]].concat();
        assert_eq!(Private::look(&other), Found::Version(0, 2));
    }

    // RFC 5531, section 9.
    #[test]
    fn replies_are_decoded() {
        let parse = |numbers: &[u32]| parse_reply(&words(numbers));
        assert_eq!(
            parse(&[5, 1, 0, 0, 0, 0, 8]),
            Ok((5, Status::Success(vec![0, 0, 0, 8])))
        );
        assert_eq!(
            parse(&[5, 1, 0, 0, 0, 2, 3, 4]),
            Ok((5, Status::ProgMismatch(3, 4)))
        );
        assert_eq!(
            parse(&[5, 1, 1, 0, 2, 2]),
            Ok((5, Status::RpcMismatch(2, 2)))
        );
        assert_eq!(parse(&[5, 1, 1, 1, 5]), Ok((5, Status::AuthError(5))));
        assert!(parse(&[5, 0, 2, 1, 1, 0]).is_err());
        assert!(parse(&[5, 1, 0, 0, 0, 9]).is_err());
    }
}
