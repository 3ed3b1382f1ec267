// SPDX-License-Identifier: GPL-2.0

//! A second implementation of the parser of transport headers, written from the XDR of RFC 8166 and
//! the draft in another way: a message is a list of words, the result is text, and all errors are
//! the same.

use std::ops::RangeInclusive;

/// The result for a message.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The message is silently discarded.
    Discard,
    /// The message is answered with these words.
    Answer(Vec<u32>),
    /// The message is valid: its fields in order, and the length of its header in octets.
    Valid(String, usize),
}

/// The message does not conform to the XDR.
struct Bad;

/// The words of a message that have not been read.
struct Words<'a> {
    words: &'a [u32],
    text: String,
}

impl Words<'_> {
    fn next(&mut self) -> Result<u32, Bad> {
        let (first, rest) = self.words.split_first().ok_or(Bad)?;
        self.words = rest;
        Ok(*first)
    }

    fn say(&mut self, text: &str) {
        self.text += text;
    }

    /// Reads one word for each letter: "HLOO" reads four.
    fn take(&mut self, names: &str) -> Result<(), Bad> {
        for name in names.chars() {
            let word = self.next()?;
            self.say(&format!("{name}{word:x} "));
        }
        Ok(())
    }

    fn bool(&mut self) -> Result<bool, Bad> {
        match self.next()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Bad),
        }
    }

    /// `struct xdr_read_list *`: a list in which each element ends with the next pointer.
    fn read_list(&mut self) -> Result<(), Bad> {
        while self.bool()? {
            if self.words.first().is_some_and(|position| position & 3 != 0) {
                return Err(Bad);
            }
            self.take("PHLOO")?;
        }
        self.say("/ ");
        Ok(())
    }

    /// `struct xdr_write_chunk`
    fn write_chunk(&mut self) -> Result<(), Bad> {
        let count = self.next()?;
        self.say(&format!("[{count:x} "));
        for _ in 0..count {
            self.take("HLOO")?;
        }
        self.say("] ");
        Ok(())
    }

    fn write_list(&mut self) -> Result<(), Bad> {
        while self.bool()? {
            self.write_chunk()?;
        }
        self.say("/ ");
        Ok(())
    }

    fn lists(&mut self) -> Result<(), Bad> {
        self.read_list()?;
        self.write_list()?;
        if self.bool()? {
            self.write_chunk()?;
        }
        Ok(())
    }

    /// `opaque rdma_optinfo<>`
    fn opaque(&mut self) -> Result<(), Bad> {
        let count = self.next()?;
        self.say(&format!("[{count:x} "));
        let mut left = count;
        while left > 0 {
            let word = self.next()?;
            let unused = 4 - left.min(4);
            if unused > 0 && word << (32 - 8 * unused) != 0 {
                return Err(Bad);
            }
            self.say(&format!("{word:08x} "));
            left = left.saturating_sub(4);
        }
        self.say("] ");
        Ok(())
    }

    /// The words behind the fourth one.
    fn body(&mut self, xid: u32, vers: u32, proc: u32) -> Result<(), Bad> {
        self.say(&format!("proc {proc} "));
        match (vers, proc) {
            (_, 4) => {
                let err = self.next()?;
                self.say(&format!("err {err} "));
                match (vers, err) {
                    (_, 1) => self.take("lh"),
                    (1 | 2, 2) | (2, 3) => Ok(()),
                    _ => Err(Bad),
                }
            }
            (1 | 2, 0 | 1) => {
                let before = self.words.len();
                let direction = match vers {
                    1 => None,
                    _ => Some(self.bool()?),
                };
                if let Some(direction) = direction {
                    self.say(if direction { "reply " } else { "call " });
                }
                self.lists()?;
                if proc == 1 {
                    // Three words of zero: all lists are empty.
                    let nothing = 3 + usize::from(vers == 2);
                    return if before - self.words.len() == nothing {
                        Err(Bad)
                    } else {
                        Ok(())
                    };
                }
                // The words that follow are not part of the header, but are checked.
                let expected = match direction {
                    None => vec![xid],
                    Some(direction) => vec![xid, direction.into()],
                };
                if self.words.starts_with(&expected) {
                    Ok(())
                } else {
                    Err(Bad)
                }
            }
            (2, 5) => {
                let direction = self.bool()?;
                self.say(if direction { "reply " } else { "call " });
                self.take("t")?;
                self.opaque()
            }
            _ => Err(Bad),
        }
    }
}

/// Returns the whole words of a message.
fn words(octets: &[u8]) -> Vec<u32> {
    octets
        .chunks_exact(4)
        .map(|word| {
            word.iter()
                .fold(0, |word, octet| word * 256 + u32::from(*octet))
        })
        .collect()
}

/// RFC 8167, section 2; the draft, section 4.2.2: whether a message says that it is a call, or that
/// it is a reply.
pub(crate) fn judge_direction(octets: &[u8]) -> &'static str {
    let words = words(octets);
    let &[_, vers, _, proc, ref rest @ ..] = &words[..] else {
        return "unknown";
    };
    let mut left = Words {
        words: rest,
        text: String::new(),
    };
    let says = match (vers, proc) {
        (_, 4) => return "reply",
        (2, 0 | 1 | 5) => left.next().ok(),
        (1, 0 | 1) if left.lists().is_err() => None,
        (1, 0) => left.words.get(1).copied(),
        // The words of a list begin with 1 if there is an element.
        (1, 1) if rest[0] == 1 => Some(0),
        _ => None,
    };
    match says {
        Some(0) => "call",
        Some(1) => "reply",
        _ => "unknown",
    }
}

/// RFC 8166, sections 4.1.2 and 4.5; the draft, sections 3.1 and 4.2. A responder grants `credit`
/// and speaks `versions`.
pub(crate) fn judge(octets: &[u8], credit: u32, versions: RangeInclusive<u32>) -> Verdict {
    let words = words(octets);
    let &[xid, vers, their_credit, proc, ref rest @ ..] = &words[..] else {
        return Verdict::Discard;
    };
    let is_error = proc == 4;
    if octets.len() < 28 && !is_error {
        return Verdict::Discard;
    }

    if !is_error && !versions.contains(&vers) {
        let (low, high) = versions.into_inner();
        return Verdict::Answer(vec![xid, vers, credit, 4, 1, low, high]);
    }

    let mut left = Words {
        words: rest,
        text: format!("xid {xid:x} vers {vers} credit {their_credit} "),
    };
    if left.body(xid, vers, proc).is_ok() {
        return Verdict::Valid(left.text, 4 * (words.len() - left.words.len()));
    }
    match vers {
        _ if is_error => Verdict::Discard,
        1 if proc == 3 => Verdict::Discard,
        _ => Verdict::Answer(vec![xid, vers, credit, 4, 2]),
    }
}
