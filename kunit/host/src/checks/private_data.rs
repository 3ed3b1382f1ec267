// SPDX-License-Identifier: GPL-2.0

//! The message of RFC 8797, sections 4 and 5.

use super::{
    offer,
    oracle::{
        self,
        Verdict, //
    },
    shown, //
};
use crate::pure::wire::private_data::{
    parse,
    Offer,
    Offered,
    Parsed,
    PrivateData,
    Rejection,
    Size, //
};

pub(crate) const IDENTIFIER: [u8; 4] = [0xf6, 0xab, 0x0e, 0x18];

/// Returns the result of the code in the form of the oracle.
pub(crate) fn verdict(parsed: Parsed) -> Verdict {
    match parsed {
        Parsed::Present(found) => {
            assert_eq!(found.version, 1);
            assert_eq!(parsed.offer(), found.offer);
            Verdict::Message {
                offset: found.offset,
                reserved: found.reserved,
                r: found.offer.remote_invalidation,
                send_size: found.offer.send_size.octets(),
                receive_size: found.offer.receive_size.octets(),
            }
        }
        Parsed::Absent => {
            assert_eq!(parsed.offer(), offer(0, 0, false));
            Verdict::Nothing
        }
        Parsed::Rejected { offset, reason } => {
            assert_eq!(parsed.offer(), offer(0, 0, false));
            match reason {
                Rejection::Version(version) => Verdict::NotRecognized { offset, version },
                Rejection::Truncated { available } => Verdict::Overrun { offset, available },
            }
        }
    }
}

pub(crate) fn has_identifier(octets: &[u8]) -> bool {
    octets.windows(4).any(|window| window == IDENTIFIER)
}

/// RFC 8797, section 5.2: any octets.
pub(crate) fn check(octets: &[u8]) {
    let parsed = parse(octets);
    assert_eq!(
        verdict(parsed),
        oracle::private_data(octets),
        "{octets:02x?}"
    );
    if let Parsed::Rejected { reason, .. } = parsed {
        shown(reason);
    }
}

/// RFC 8797, section 5.2: the octets of `private=`, and the offer that a peer reads in them.
pub(crate) fn check_raw(octets: &[u8], can_invalidate: bool) {
    let data = PrivateData::truncated(octets);
    let kept = &octets[..octets.len().min(255)];
    assert_eq!(data.octets(), kept);
    assert_eq!(usize::from(data.len()), kept.len());

    let sent = Offered::Raw(data);
    assert_eq!(sent.private_data(can_invalidate), data);
    assert_eq!(sent.offer(), parse(kept).offer());

    let nothing = PrivateData::truncated(&[]);
    assert_eq!(Offered::None.private_data(can_invalidate), nothing);
}

/// RFC 8797, section 4: a message with this offer.
pub(crate) fn check_offer(offer: Offer) {
    let sent = Offered::Message(offer);
    assert_eq!(sent.private_data(true).octets(), offer.to_octets());
    assert_eq!(sent.offer(), offer);

    // R is not sent if the device does not support it (RFC 8797, section 3.2).
    let without_r = Offer {
        remote_invalidation: false,
        ..offer
    };
    assert_eq!(sent.private_data(false).octets(), without_r.to_octets());
}

/// RFC 8797, section 5.2: a built message is found between any other octets.
pub(crate) fn check_embedded(before: &[u8], offer: Offer, after: &[u8]) {
    let octets = [before, &offer.to_octets()[..], after].concat();
    let Parsed::Present(found) = parse(&octets) else {
        panic!("not found: {octets:02x?}");
    };
    if found.offset == before.len() {
        assert_eq!(found.reserved, 0);
        assert_eq!(found.offer, offer);
    } else {
        // `before` has a candidate of its own. Two Format Identifiers cannot overlap.
        assert!(has_identifier(before), "{octets:02x?}");
    }
}

/// RFC 8797, section 4.2: a buffer size.
pub(crate) fn check_size(octets: u32) {
    let size = Size::from_octets(octets);
    assert_eq!(
        size.is_some(),
        (1024..=262_144).contains(&octets),
        "{octets}"
    );
    if let Some(size) = size {
        // The largest size that the field can express and that is not larger than the buffer.
        let encoded = u64::from(size.encoded());
        assert_eq!(size.octets(), oracle::decode(encoded), "{octets}");
        assert!(size.octets() <= octets, "{octets}");
        assert!(oracle::decode(encoded + 1) > octets, "{octets}");
    }
}
