// SPDX-License-Identifier: GPL-2.0

//! `history`, the whole file, octet for octet.

use kernel::prelude::*;

#[kunit_tests(rpcrdma_cm_history)]
mod tests {
    use super::*;
    use crate::{
        cases::{
            difference,
            history::{
                history,
                wrong_ring,
                NO_EVENTS,
                TEXT, //
            }, //
        },
        pure::{
            text::{
                exchange::{
                    Exchange,
                    ParsedPrivateData, //
                },
                history::{
                    HistoryColumns,
                    NegotiatedColumns, //
                }, //
            },
            wire::{
                negotiation::Role,
                private_data::PrivateData, //
            }, //
        },
        rows::check, //
    };

    /// The outcome is the negotiated values, and is empty before both offers are known.
    #[test]
    fn outcome() -> Result {
        let octets = b"\xf6\xab\x0e\x18\x01\x01\x03\x07";
        let message = Some(ParsedPrivateData::new(&PrivateData::truncated(octets)));
        let one = Exchange {
            sent: message,
            ..Exchange::with(None)
        };
        check(
            "one",
            NegotiatedColumns::of(&one, Role::Client),
            NegotiatedColumns::default(),
        )?;
        let both = Exchange {
            received: message,
            ..one
        };
        let expected = NegotiatedColumns {
            client_to_server: Some(4096),
            server_to_client: Some(4096),
            remote_invalidation: Some(true),
        };
        check("both", NegotiatedColumns::of(&both, Role::Client), expected)
    }

    #[test]
    fn rings() -> Result {
        check("rings", wrong_ring(), None)
    }

    #[test]
    fn file() -> Result {
        let none = difference(&[NO_EVENTS], |out| HistoryColumns::new().header(out));
        check("no events", none, None)?;
        check("room", NO_EVENTS.len() <= HistoryColumns::LINE, true)?;
        check("events", difference(&[TEXT], history), None)
    }
}
