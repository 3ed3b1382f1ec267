// SPDX-License-Identifier: GPL-2.0

//! The result of combining two offers (RFC 8797, sections 4.1 and 4.2).

use crate::{
    checks::{
        offer,
        oracle, //
    },
    pure::wire::negotiation::{
        negotiate,
        Negotiated,
        Role, //
    }, //
};

/// One side's Send Size, Receive Size and R field.
type Side = (u8, u8, bool);

/// Checks the result of each side against the sentences of the RFC.
fn check(client: Side, server: Side) {
    let smaller = |one: u8, other: u8| {
        let (one, other) = (oracle::decode(one.into()), oracle::decode(other.into()));
        if one < other {
            one
        } else {
            other
        }
    };
    let expected = Negotiated {
        // "The client uses the smaller of its own send size and the server's reported receive
        // size as the client-to-server inline threshold."
        client_to_server_threshold: smaller(client.0, server.1),
        // "The server uses the smaller of its own send size and the client's reported receive
        // size as the server-to-client inline threshold."
        server_to_client_threshold: smaller(server.0, client.1),
        // "When either peer on a connection clears this flag, the responder MUST use only RDMA
        // Send when transmitting RPC Replies."
        remote_invalidation: !(!client.2 || !server.2),
    };

    let client = offer(client.0, client.1, client.2);
    let server = offer(server.0, server.1, server.2);
    assert_eq!(negotiate(Role::Client, client, server), expected);
    assert_eq!(negotiate(Role::Server, server, client), expected);
}

/// Every pair of sizes in each direction, with several pairs in the other one, and every pair of R.
#[test]
fn section_4_every_pair_of_offers() {
    for fields in 0..=u16::MAX {
        let [sends, receives] = fields.to_be_bytes();
        for (sends_back, receives_back) in
            [(0, 0), (255, 255), (!sends, !receives), (receives, sends)]
        {
            for (r, r_back) in [(false, false), (false, true), (true, false), (true, true)] {
                let one = (sends, receives_back, r);
                let other = (sends_back, receives, r_back);
                check(one, other);
                check(other, one);
            }
        }
    }
}
