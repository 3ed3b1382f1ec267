// SPDX-License-Identifier: GPL-2.0

//! The private data of both sides (RFC 8797, sections 4 and 5.1).

use kernel::prelude::*;

#[kunit_tests(rpcrdma_cm_exchange)]
mod tests {
    use super::*;
    use crate::{
        pure::{
            text::exchange::{
                Exchange,
                ParsedPrivateData, //
            },
            wire::{
                negotiation::{
                    Negotiated,
                    Role, //
                },
                private_data::{
                    Offer,
                    PrivateData, //
                }, //
            }, //
        },
        rows::check, //
    };

    fn parsed(octets: &[u8]) -> ParsedPrivateData {
        ParsedPrivateData::new(&PrivateData::truncated(octets))
    }

    /// Without a message, the defaults are those of the version of RPC-over-RDMA.
    #[test]
    fn section_5_1_defaults() -> Result {
        let mut exchange = Exchange::with(None);
        let absent = parsed(&[0; 56]);
        check("no exchange", absent.offer(), Offer::DEFAULT)?;
        for (version, offer) in [
            (None, Offer::DEFAULT),
            (Some(1), Offer::DEFAULT),
            (Some(2), Offer::DEFAULT_TWO),
        ] {
            exchange.version = version;
            check("absent", exchange.offer_of(&absent), offer)?;
        }
        Ok(())
    }

    /// Nothing is negotiated before both sides' private data is known.
    #[test]
    fn section_4_both_sides() -> Result {
        let message = parsed(b"\xf6\xab\x0e\x18\x01\x01\x03\x07");
        let both = Negotiated {
            client_to_server_threshold: 4096,
            server_to_client_threshold: 4096,
            remote_invalidation: true,
        };
        for (row, sent, received, expected) in [
            ("neither", None, None, None),
            ("sent", Some(message), None, None),
            ("received", None, Some(message), None),
            ("both", Some(message), Some(message), Some(both)),
        ] {
            let exchange = Exchange {
                sent,
                received,
                ..Exchange::with(None)
            };
            check(row, exchange.negotiated(Role::Client), expected)?;
        }
        Ok(())
    }

    /// In version 2, receivers "MUST support an inline threshold of 4096 bytes": the private data
    /// can only raise it (draft-cel-nfsv4-rpcrdma-version-two-01, section 2.3).
    #[test]
    fn draft_2_3_floor() -> Result {
        let sizes = |send, receive| parsed(&[0xf6, 0xab, 0x0e, 0x18, 1, 0, send, receive]);
        for (row, version, sent, received, client_to_server, server_to_client) in [
            ("version 1, below", Some(1), (0, 2), (1, 1), 1024, 2048),
            ("none yet, below", None, (0, 2), (1, 1), 1024, 2048),
            ("below", Some(2), (0, 2), (1, 1), 4096, 4096),
            ("one below, one above", Some(2), (7, 2), (7, 4), 5120, 4096),
            ("equal", Some(2), (3, 3), (3, 3), 4096, 4096),
            ("above", Some(2), (4, 4), (4, 4), 5120, 5120),
        ] {
            let exchange = Exchange {
                sent: Some(sizes(sent.0, sent.1)),
                received: Some(sizes(received.0, received.1)),
                version,
                ..Exchange::with(None)
            };
            let expected = Negotiated {
                client_to_server_threshold: client_to_server,
                server_to_client_threshold: server_to_client,
                remote_invalidation: false,
            };
            check(row, exchange.negotiated(Role::Client), Some(expected))?;
        }
        Ok(())
    }
}
