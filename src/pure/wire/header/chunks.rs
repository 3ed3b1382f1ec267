// SPDX-License-Identifier: GPL-2.0

//! The chunk lists of a header (RFC 8166, section 4.3), the same in both versions.

use core::{
    fmt,
    iter, //
};

use super::{
    error::{
        Malformed,
        Part,
        Reason, //
    },
    Parser,
    Writer, //
};

/// Length in octets of a plain segment: HLOO (RFC 8166, section 4.7).
const SEGMENT_LEN: usize = 16;

/// `xdr_rdma_segment`, or `rpcrdma2_segment`: a piece of a requester's memory (RFC 8166, section
/// 3.4.3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Segment {
    /// The Steering Tag under which the memory is registered.
    pub(crate) handle: u32,
    /// Its length in octets. A segment of length zero is empty.
    pub(crate) length: u32,
    /// The offset at which it begins.
    pub(crate) offset: u64,
}

impl Segment {
    fn parse_one(parser: &mut Parser<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            handle: parser.word()?,
            length: parser.word()?,
            offset: (u64::from(parser.word()?) << 32) | u64::from(parser.word()?),
        })
    }
}

/// `xdr_read_chunk`, or `rpcrdma2_read_segment`: a segment of a Read chunk, which a responder reads
/// (RFC 8166, section 3.4.5).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ReadSegment {
    /// The Position of its Read chunk in the Payload stream; zero for a Read chunk that is the
    /// whole Payload stream (RFC 8166, section 3.5.3). A multiple of four.
    pub(crate) position: u32,
    /// The memory to read from.
    pub(crate) target: Segment,
}

/// The Read list: the segments of all Read chunks (RFC 8166, section 4.3.1).
pub(crate) type ReadList<'a> = List<'a, ReadSegment>;

/// A Write chunk or the Reply chunk: memory that a responder fills, in this order (RFC 8166,
/// sections 3.4.6 and 4.3.3).
pub(crate) type WriteChunk<'a> = List<'a, Segment>;

/// The Write list: one Write chunk for each result that may go there (RFC 8166, section 4.3.2).
pub(crate) type WriteList<'a> = List<'a, WriteChunk<'a>>;

/// The elements of a list: of a received header, or of a header to be built.
#[derive(Clone, Copy)]
pub(crate) struct List<'a, T>(Elements<'a, T>);

#[derive(Clone, Copy)]
enum Elements<'a, T> {
    /// The octets from the first element on. They were checked: all elements can be parsed.
    Received(Parser<'a>),
    Own(&'a [T]),
}

/// An element of a list.
pub(crate) trait Element<'a>: Copy {
    /// Reads the next element; returns [`None`] behind the last one.
    fn parse(parser: &mut Parser<'a>) -> Result<Option<Self>, Malformed>;

    /// Writes what [`Self::parse`] reads.
    fn write(self, writer: &mut Writer<'_>);
}

impl<'a, T: Element<'a>> List<'a, T> {
    /// A list without elements.
    pub(crate) const EMPTY: Self = Self::new(&[]);

    /// Creates a list of `elements`.
    pub(crate) const fn new(elements: &'a [T]) -> Self {
        Self(Elements::Own(elements))
    }

    /// Returns the elements, in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = T> + use<'a, T> {
        let mut elements = self.0;
        iter::from_fn(move || match &mut elements {
            Elements::Received(parser) => T::parse(parser).ok().flatten(),
            Elements::Own(own) => {
                let (&first, rest) = own.split_first()?;
                *own = rest;
                Some(first)
            }
        })
        // Behind the end of a received list, something else follows.
        .fuse()
    }

    /// Reads a list of optional-data (RFC 8166, section 4.7): the element's own encoding includes
    /// the word that precedes each element, and the word that ends the list.
    fn parse_all(parser: &mut Parser<'a>) -> Result<Self, Malformed> {
        let list = Self(Elements::Received(*parser));
        while T::parse(parser)?.is_some() {}
        Ok(list)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }
}

impl WriteChunk<'_> {
    /// Returns the length of the chunk: the sum of the lengths of its segments (RFC 8166, section
    /// 3.4.4).
    pub(crate) fn length(self) -> u64 {
        self.iter().fold(0, |sum: u64, segment| {
            sum.saturating_add(segment.length.into())
        })
    }
}

impl<'a> WriteChunk<'a> {
    /// Returns the segments as they are in the reply of a responder that has written `octets`
    /// octets to them: each length is the number of octets written (RFC 8166, section 3.4.6).
    pub(crate) fn filled(self, octets: u64) -> impl Iterator<Item = Segment> + use<'a> {
        let mut left = octets;
        self.iter().map(move |segment| {
            // A length that does not fit into a u32 is longer than any segment.
            let length =
                u32::try_from(left).map_or(segment.length, |left| left.min(segment.length));
            left = left.saturating_sub(length.into());
            Segment { length, ..segment }
        })
    }
}

impl<'a, T: Element<'a> + PartialEq> PartialEq for List<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, T: Element<'a> + Eq> Eq for List<'a, T> {}

impl<'a, T: Element<'a> + fmt::Debug> fmt::Debug for List<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Reads the word in front of optional-data: whether the data is present (RFC 4506, section 4.19).
fn is_present(parser: &mut Parser<'_>) -> Result<bool, Malformed> {
    parser.word_as(|word| match word {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Reason::Value(word)),
    })
}

/// HLOO, in a counted array of them.
impl<'a> Element<'a> for Segment {
    fn parse(parser: &mut Parser<'a>) -> Result<Option<Self>, Malformed> {
        if parser.reader.rest().is_empty() {
            return Ok(None);
        }
        Self::parse_one(parser).map(Some)
    }

    fn write(self, writer: &mut Writer<'_>) {
        writer.word(self.handle);
        writer.word(self.length);
        writer.opaque(&self.offset.to_be_bytes());
    }
}

/// 1 PHLOO, or the 0 behind the last one.
impl<'a> Element<'a> for ReadSegment {
    fn parse(parser: &mut Parser<'a>) -> Result<Option<Self>, Malformed> {
        if !is_present(parser)? {
            return Ok(None);
        }
        let position = parser.word_as(|position| match position % 4 {
            0 => Ok(position),
            _ => Err(Reason::Position(position)),
        })?;
        let target = Segment::parse_one(parser)?;
        Ok(Some(Self { position, target }))
    }

    fn write(self, writer: &mut Writer<'_>) {
        writer.word(1);
        writer.word(self.position);
        self.target.write(writer);
    }
}

/// 1 3 HLOO HLOO HLOO for three segments, or the 0 behind the last chunk.
impl<'a> Element<'a> for WriteChunk<'a> {
    fn parse(parser: &mut Parser<'a>) -> Result<Option<Self>, Malformed> {
        if !is_present(parser)? {
            return Ok(None);
        }
        let segments = parser.array(SEGMENT_LEN)?;
        Ok(Some(Self(Elements::Received(segments))))
    }

    fn write(self, writer: &mut Writer<'_>) {
        // Unlike `Iterator::count`, this brings no check for overflow into the module.
        let count = self
            .iter()
            .fold(0, |count: usize, _| count.saturating_add(1));
        writer.word(1);
        writer.count(count);
        self.iter().for_each(|segment| segment.write(writer));
    }
}

/// The chunk lists of a header, for the data that is transferred by RDMA Read and Write (RFC 8166,
/// section 4.3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ChunkLists<'a> {
    /// `rdma_reads`: the Read list.
    pub(crate) reads: ReadList<'a>,
    /// `rdma_writes`: the Write list.
    pub(crate) writes: WriteList<'a>,
    /// `rdma_reply`: the Reply chunk.
    pub(crate) reply: Option<WriteChunk<'a>>,
}

impl<'a> ChunkLists<'a> {
    /// No chunk at all (RFC 8166, section 4.7).
    pub(crate) const EMPTY: Self = Self {
        reads: List::EMPTY,
        writes: List::EMPTY,
        reply: None,
    };

    /// Whether all three are marked not present (RFC 8166, section 4.5.2).
    pub(crate) fn is_empty(self) -> bool {
        self.reads.is_empty() && self.writes.is_empty() && self.reply.is_none()
    }

    pub(super) fn parse(parser: &mut Parser<'a>) -> Result<Self, Malformed> {
        parser.part = Part::ReadList;
        let reads = List::parse_all(parser)?;
        parser.part = Part::WriteList;
        let writes = List::parse_all(parser)?;
        parser.part = Part::ReplyChunk;
        let reply = WriteChunk::parse(parser)?;
        Ok(Self {
            reads,
            writes,
            reply,
        })
    }

    pub(super) fn write(self, writer: &mut Writer<'_>) {
        self.reads.iter().for_each(|segment| segment.write(writer));
        writer.word(0);
        self.writes.iter().for_each(|chunk| chunk.write(writer));
        writer.word(0);
        match self.reply {
            Some(chunk) => chunk.write(writer),
            None => writer.word(0),
        }
    }
}
