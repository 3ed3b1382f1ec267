// SPDX-License-Identifier: GPL-2.0

//! Transport headers that are not valid, and the answers to them: RFC 8166, and the draft of
//! version 2, draft-cel-nfsv4-rpcrdma-version-two-01.

use kernel::{
    prelude::*,
    str::CString, //
};

#[kunit_tests(rpcrdma_cm_header_error)]
mod tests {
    use super::*;
    use crate::{
        header::tests::check_header,
        octets::{
            Octets,
            X, //
        },
        pure::wire::header::{
            error::HeaderError,
            parse,
            Fixed,
            Versions, //
        },
        rows::{
            check,
            check_display,
            failed, //
        }, //
    };

    /// Checks the answer of a responder that grants 7 credits and speaks all versions.
    fn check_answer(words: &str, error: HeaderError, answer: Option<&str>) -> Result {
        match (error.answer(7, Versions::ALL), answer) {
            (Some(header), Some(answer)) => check_header(answer, header),
            (header, answer) => check(words, header.is_some(), answer.is_some()),
        }
    }

    /// Checks the error of a message of a known version that is not valid. `shown` names the part,
    /// the offset and the reason.
    fn check_malformed(words: &str, shown: &str, answer: Option<&str>) -> Result {
        let octets = Octets::new(words)?;
        let parsed = parse(octets.all());
        let Err(error @ HeaderError::Malformed(fixed, malformed)) = parsed else {
            return failed(words, format_args!("got {parsed:?}"));
        };
        let word = |at| match octets.all()[at..] {
            [a, b, c, d, ..] => u32::from_be_bytes([a, b, c, d]),
            _ => 0,
        };
        let expected = Fixed {
            xid: word(0),
            vers: word(4),
            credit: word(8),
            proc: word(12),
        };
        check(words, fixed, expected)?;
        check_display(words, malformed, shown)?;
        check_answer(words, error, answer)
    }

    /// RFC 8166, section 4.5: "not as long as a minimal size RPC-over-RDMA header (28 bytes)".
    #[test]
    fn rfc_8166_section_4_5_short() -> Result {
        for words in [
            "X 1 20 0 / 0 0 0",
            "X 1 20 1 / 0 0 0",
            "X 1 20 2 / 0 0 0",
            "X 1 20 3 / 0 0 0",
            "X 1 20 5 / 0 0 0",
            "X 2 20 0 / 0 0 0",
            "X 2 20 5 / 0 0 0",
            "X 3 20 0 / 0 0 0",
        ] {
            let octets = Octets::new(words)?;
            for length in 0..28 {
                let short = HeaderError::Short { length };
                check(words, parse(&octets.all()[..length]), Err(short))?;
            }
        }
        let length = 27;
        let short = HeaderError::Short { length };
        check("answer", short.answer(7, Versions::ALL), None)
    }

    /// RFC 8166, section 4.5.1: a responder "MUST reply with an RDMA_ERROR procedure and set the
    /// rdma_err value to ERR_VERS"; section 4.5: with the same XID and version.
    #[test]
    fn rfc_8166_section_4_5_1_version() -> Result {
        for vers in [0, 3, 0x100, 0x0100_0000, u32::MAX] {
            for proc in [0, 1, 2, 3, 5, 6, u32::MAX] {
                let words = CString::try_from_fmt(format_args!("X {vers:x} 20 {proc:x} / 9 9 9"))?;
                let fixed = Fixed {
                    xid: X,
                    vers,
                    credit: 0x20,
                    proc,
                };
                let answer = CString::try_from_fmt(format_args!("X {vers:x} 7 4 / 1 1 2"))?;
                let (words, answer) = (words.to_str()?, answer.to_str()?);
                let error = HeaderError::Version(fixed);
                check(words, parse(Octets::new(words)?.all()), Err(error))?;
                check_answer(words, error, Some(answer))?;
            }
        }
        Ok(())
    }

    /// RFC 8166, section 4.5.1: "also providing the low and high inclusive version numbers it does,
    /// in fact, support". A responder looks for no other errors in a version that it does not
    /// support.
    #[test]
    fn rfc_8166_section_4_5_1_range() -> Result {
        // The answers of responders that speak version 1, version 2, and both.
        for (words, answers) in [
            ("X 1 20 0 / 0 0 0 | X", ["", "X 1 7 4 / 1 2 2", ""]),
            ("X 1 20 1 / 0 0 / 1 0", ["", "X 1 7 4 / 1 2 2", ""]),
            ("X 2 20 0 / 0 / 0 0 0 | X 0", ["X 2 7 4 / 1 1 1", "", ""]),
            ("X 2 20 0 / 1 / 0 0 0 | X 1", ["X 2 7 4 / 1 1 1", "", ""]),
            ("X 2 20 1 / 0 / 0 0 / 1 0", ["X 2 7 4 / 1 1 1", "", ""]),
            ("X 2 20 5 / 0 0 0", ["X 2 7 4 / 1 1 1", "", ""]),
            (
                "X 3 20 0 / 0 0 0",
                ["X 3 7 4 / 1 1 1", "X 3 7 4 / 1 2 2", "X 3 7 4 / 1 1 2"],
            ),
            (
                "X 0 20 3 / 0 0 0",
                ["X 0 7 4 / 1 1 1", "X 0 7 4 / 1 2 2", "X 0 7 4 / 1 1 2"],
            ),
            // Malformed, but only a responder that speaks the version can tell.
            (
                "X 1 20 0 / 2 0 0",
                ["X 1 7 4 / 2", "X 1 7 4 / 1 2 2", "X 1 7 4 / 2"],
            ),
            (
                "X 1 20 2 / 0 0 0",
                ["X 1 7 4 / 2", "X 1 7 4 / 1 2 2", "X 1 7 4 / 2"],
            ),
            ("X 1 20 3 / 0 0 0", ["", "X 1 7 4 / 1 2 2", ""]),
            (
                "X 2 20 0 / 0 0 0",
                ["X 2 7 4 / 1 1 1", "X 2 7 4 / 2", "X 2 7 4 / 2"],
            ),
            (
                "X 2 20 3 / 0 0 0",
                ["X 2 7 4 / 1 1 1", "X 2 7 4 / 2", "X 2 7 4 / 2"],
            ),
            // Section 4.5: too short; section 4.2.4: any error.
            ("X 1 20 0 / 0 0", ["", "", ""]),
            ("X 2 20 0 / 0 0", ["", "", ""]),
            ("X 1 20 4 / 1 1 1", ["", "", ""]),
            ("X 2 20 4 / 1 1 1", ["", "", ""]),
            ("X 3 20 4 / 1 1 1", ["", "", ""]),
            ("X 1 20 4 / 2", ["", "", ""]),
            ("X 2 20 4 / 2", ["", "", ""]),
            ("X 2 20 4 / 3", ["", "", ""]),
            ("X 1 20 4 / 9", ["", "", ""]),
            ("X 2 20 4", ["", "", ""]),
        ] {
            let octets = Octets::new(words)?;
            let spoken = [Versions::only(1), Versions::only(2), Versions::ALL];
            for (versions, answer) in spoken.into_iter().zip(answers) {
                let header = match parse(octets.all()) {
                    Ok((header, _)) => header.version_error(7, versions),
                    Err(error) => error.answer(7, versions),
                };
                match header {
                    Some(header) => check_header(answer, header)?,
                    None => check(words, "", answer)?,
                }
            }
        }
        Ok(())
    }

    /// RFC 8166, section 4.5.2: "the Responder MUST reply with an RDMA_ERROR procedure and set the
    /// rdma_err value to ERR_CHUNK".
    #[test]
    fn rfc_8166_section_4_5_2_xdr_errors() -> Result {
        for (words, shown) in [
            // "an invalid value in the rdma_proc field"
            ("X 1 20 5 / 0 0 0", "rdma_proc at octet 12: illegal value 5"),
            (
                "X 1 20 ffffffff / 0 0 0",
                "rdma_proc at octet 12: illegal value 4294967295",
            ),
            // "an RDMA_NOMSG message where the Read list, Write list, and Reply chunk are marked
            // not present"
            (
                "X 1 20 1 / 0 0 0",
                "rdma_proc at octet 12: RDMA_NOMSG without a chunk",
            ),
            // "the value of the rdma_xid field does not match the value of the XID field in the
            // accompanying RPC message"
            (
                "X 1 20 0 / 0 0 0 | 11223345",
                "Payload stream at octet 28: XID 0x11223345 is not the header's",
            ),
            (
                "X 1 20 0 / 0 0 0 |",
                "Payload stream at octet 28: truncated",
            ),
            // Section 3.4.5: a Position "MUST be a multiple of four".
            (
                "X 1 20 0 / 1 29 a1 0 0 0 0 / 0 0 | X",
                "Read list at octet 20: Position 41 is not a multiple of four",
            ),
            (
                "X 1 20 1 / 1 0 0 0 0 0 1 ffffffff 0 0 0 0 0 / 0 0",
                "Read list at octet 44: Position 4294967295 is not a multiple of four",
            ),
            // RFC 4506, section 4.19: optional-data is preceded by 1 if it is present, or 0.
            (
                "X 1 20 0 / 2 / 0 0 | X",
                "Read list at octet 16: illegal value 2",
            ),
            (
                "X 1 20 0 / 1 0 0 0 0 0 ffffffff / 0 0 | X",
                "Read list at octet 40: illegal value 4294967295",
            ),
            (
                "X 1 20 0 / 0 / 2 / 0 | X",
                "Write list at octet 20: illegal value 2",
            ),
            (
                "X 1 20 0 / 0 / 1 0 3 / 0 | X",
                "Write list at octet 28: illegal value 3",
            ),
            (
                "X 1 20 0 / 0 0 / 1000000 | X",
                "Reply chunk at octet 24: illegal value 16777216",
            ),
            // RFC 4506, section 4.13: as many elements as the count says.
            (
                "X 1 20 0 / 0 / 1 2 a1 0 0 0 b2 0 0",
                "Write list at octet 24: a count of 2 is more than there is",
            ),
            (
                "X 1 20 0 / 0 / 1 10000000 0 0",
                "Write list at octet 24: a count of 268435456 is more than there is",
            ),
            (
                "X 1 20 0 / 0 0 / 1 ffffffff",
                "Reply chunk at octet 28: a count of 4294967295 is more than there is",
            ),
            // Truncated.
            ("X 1 20 0 / 1 28 a1", "Read list at octet 28: truncated"),
            (
                "X 1 20 0 / 1 28 a1 0 0 0",
                "Read list at octet 40: truncated",
            ),
            ("X 1 20 0 / 0 / 1 0", "Write list at octet 28: truncated"),
            ("X 1 20 0 / 0 0 / 1", "Reply chunk at octet 28: truncated"),
        ] {
            check_malformed(words, shown, Some("X 1 7 4 / 2"))?;
        }
        Ok(())
    }

    /// RFC 8166, section 4.5: "A receiver MUST silently discard an RDMA_ERROR procedure that it
    /// cannot decode"; section 4.2.4: a responder discards all of them.
    #[test]
    fn rfc_8166_section_4_5_undecodable() -> Result {
        for (words, shown) in [
            ("X 1 20 4", "16: truncated"),
            ("X 1 20 4 / 0 1 1", "16: illegal value 0"),
            ("X 1 20 4 / 3 1 1", "16: illegal value 3"),
            ("X 2 20 4 / 4 1 1", "16: illegal value 4"),
            // In other versions, only ERR_VERS is known.
            ("X 0 20 4 / 2", "16: illegal value 2"),
            ("X 3 20 4 / 2 1 1", "16: illegal value 2"),
            ("X 1 20 4 / 1", "20: truncated"),
            ("X 2 20 4 / 1 1", "24: truncated"),
        ] {
            let shown = CString::try_from_fmt(format_args!("rdma_error at octet {shown}"))?;
            check_malformed(words, shown.to_str()?, None)?;
        }
        Ok(())
    }

    /// RFC 8166, section 4.6: "Responders SHOULD reply with an RDMA_ERROR procedure, setting the
    /// rdma_err field to ERR_CHUNK", and "Receivers MUST silently discard RDMA_DONE messages".
    #[test]
    fn rfc_8166_section_4_6_no_longer_supported() -> Result {
        check_malformed(
            // With rdma_align and rdma_thresh.
            "X 1 20 2 / 0 0 / 0 0 0 | X",
            "rdma_proc at octet 12: RDMA_MSGP is not to be used",
            Some("X 1 7 4 / 2"),
        )?;
        check_malformed(
            "X 1 20 3 / 0 0 0",
            "rdma_proc at octet 12: RDMA_DONE is not to be used",
            None,
        )
    }

    /// The draft, section 4.2.3: "Error handling works the same way in RPC-over-RDMA Version Two",
    /// with RDMA2_ERR_BAD_HEADER.
    #[test]
    fn draft_section_4_2_3_bad_header() -> Result {
        for (words, shown) in [
            // Without RDMA_MSGP and RDMA_DONE.
            (
                "X 2 20 2 / 0 / 0 0 0",
                "rdma_proc at octet 12: illegal value 2",
            ),
            (
                "X 2 20 3 / 0 / 0 0 0",
                "rdma_proc at octet 12: illegal value 3",
            ),
            (
                "X 2 20 6 / 0 / 0 0 0",
                "rdma_proc at octet 12: illegal value 6",
            ),
            (
                "X 2 20 1 / 0 / 0 0 0",
                "rdma_proc at octet 12: RDMA_NOMSG without a chunk",
            ),
            (
                "X 2 20 0 / 2 / 0 0 0 | X 2",
                "direction at octet 16: illegal value 2",
            ),
            (
                "X 2 20 5 / ffffffff 0 0",
                "direction at octet 16: illegal value 4294967295",
            ),
            // The length of the shortest header of version 1.
            ("X 2 20 0 / 0 0 0", "Reply chunk at octet 28: truncated"),
            (
                "X 2 20 0 / 0 / 5 / 0 0 | X 0",
                "Read list at octet 20: illegal value 5",
            ),
            (
                "X 2 20 0 / 0 / 1 2 0 0 0 0 0 / 0 0 | X 0",
                "Read list at octet 24: Position 2 is not a multiple of four",
            ),
            (
                "X 2 20 0 / 0 / 0 / 1 1 0 0 0",
                "Write list at octet 28: a count of 1 is more than there is",
            ),
            (
                "X 2 20 0 / 0 / 0 0 0 | eeddccbb 0",
                "Payload stream at octet 32: XID 0xeeddccbb is not the header's",
            ),
            // Section 4.2.2: "MUST be the same as the value of the associated RPC message's
            // msg_type field".
            (
                "X 2 20 0 / 0 / 0 0 0 | X 1",
                "Payload stream at octet 36: msg_type 1 is not the direction",
            ),
            (
                "X 2 20 0 / 1 / 0 0 0 | X 0",
                "Payload stream at octet 36: msg_type 0 is not the direction",
            ),
            (
                "X 2 20 0 / 1 / 0 0 0 | X",
                "Payload stream at octet 36: truncated",
            ),
            // RFC 4506, section 4.10.
            (
                "X 2 20 5 / 0 1 1",
                "rdma_optional at octet 24: a count of 1 is more than there is",
            ),
            (
                "X 2 20 5 / 0 1 5 0",
                "rdma_optional at octet 24: a count of 5 is more than there is",
            ),
            (
                "X 2 20 5 / 0 1 ffffffff 0",
                "rdma_optional at octet 24: a count of 4294967295 is more than there is",
            ),
            (
                "X 2 20 5 / 0 1 3 1020301",
                "rdma_optional at octet 24: residual octets are not zero",
            ),
        ] {
            check_malformed(words, shown, Some("X 2 7 4 / 2"))?;
        }
        Ok(())
    }

    /// RFC 8166, sections 4.5 and 4.5.2: a message that is cut at any octet is not valid.
    #[test]
    fn rfc_8166_section_4_5_2_every_truncation() -> Result {
        for (words, fewest) in [
            // The XID of the RPC message counts, and in version 2 its type.
            ("X 1 20 0 / 1 0 a1 0 0 0 0 / 1 1 b2 0 0 0 0 / 1 0 | X", 28),
            (
                "X 2 20 0 / 0 / 1 0 a1 0 0 0 0 / 1 1 b2 0 0 0 0 / 1 0 | X 0",
                28,
            ),
            ("X 1 20 1 / 0 0 / 1 2 0 0 0 0 0 0 0 0", 28),
            ("X 2 20 5 / 0 1 5 0 0", 28),
            // An error is short.
            ("X 1 20 4 / 2", 16),
            ("X 2 20 4 / 3", 16),
            ("X 3 20 4 / 1 1 2", 16),
        ] {
            let octets = Octets::new(words)?;
            let octets = octets.all();
            check(words, parse(octets).is_ok(), true)?;
            for length in 0..octets.len() {
                match parse(&octets[..length]) {
                    Err(HeaderError::Short { length: got }) if length < fewest => {
                        check(words, got, length)?;
                    }
                    Err(HeaderError::Malformed(_, malformed)) if length >= fewest => {
                        check(words, malformed.at <= length, true)?;
                    }
                    parsed => {
                        return failed(words, format_args!("cut at {length}: got {parsed:?}"));
                    }
                }
            }
        }
        Ok(())
    }
}
