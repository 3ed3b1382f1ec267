// SPDX-License-Identifier: GPL-2.0

//! Negotiation (RFC 8797, sections 4.1, 4.2 and 5.1).

use core::fmt::Display;

use kernel::{
    prelude::*,
    str::CString, //
};

#[kunit_tests(rpcrdma_cm_negotiation)]
mod tests {
    use super::*;
    use crate::{
        pure::wire::{
            negotiation::{
                negotiate,
                Deviation,
                InUse,
                Negotiated,
                Role, //
            },
            private_data::{
                Offer,
                Size, //
            }, //
        },
        rows::{
            check,
            check_display, //
        }, //
    };

    /// An offer with the values of the Size fields (RFC 8797, section 4.2).
    fn offer(send_size: u8, receive_size: u8, remote_invalidation: bool) -> Offer {
        Offer {
            send_size: Size::from_encoded(send_size),
            receive_size: Size::from_encoded(receive_size),
            remote_invalidation,
        }
    }

    /// Thresholds that differ, without remote invalidation.
    const NEGOTIATED: Negotiated = Negotiated {
        client_to_server_threshold: 4096,
        server_to_client_threshold: 2048,
        remote_invalidation: false,
    };

    /// Checks the deviations of `in_use` from [`NEGOTIATED`].
    fn check_deviations(
        row: impl Display,
        role: Role,
        in_use: InUse,
        expected: &[Deviation],
    ) -> Result {
        let mut found = KVec::new();
        for deviation in NEGOTIATED.deviations(role, &in_use) {
            found.push(deviation, GFP_KERNEL)?;
        }
        check(row, &*found, expected)
    }

    /// RFC 8167, section 4.2: a threshold belongs to the sender, in either direction.
    #[test]
    fn rfc_8167_section_4_2_sender() -> Result {
        for (role, sends, receives) in [(Role::Client, 4096, 2048), (Role::Server, 2048, 4096)] {
            check(role, NEGOTIATED.threshold(role), sends)?;
            check(role, NEGOTIATED.threshold(role.peer()), receives)?;
        }
        Ok(())
    }

    /// RFC 8797, section 4.2: each side sends up to one threshold and receives up to the other one.
    /// An unknown value is no deviation, nor is sending less than the threshold.
    #[test]
    fn section_4_2_deviations() -> Result {
        let in_use = |inline_send, inline_receive| InUse {
            inline_send,
            inline_receive,
            ..InUse::default()
        };
        let send = |in_use, threshold| Deviation::InlineSend { in_use, threshold };
        let receive = |in_use, threshold| Deviation::InlineReceive { in_use, threshold };

        for (role, inline_send, inline_receive, expected) in [
            (Role::Client, None, None, &[][..]),
            (Role::Client, Some(4096), Some(2048), &[]),
            (Role::Client, Some(4095), Some(2048), &[]),
            (Role::Client, Some(4097), Some(2048), &[send(4097, 4096)]),
            (Role::Client, Some(4096), Some(2047), &[receive(2047, 2048)]),
            (Role::Client, Some(4096), Some(2049), &[receive(2049, 2048)]),
            (Role::Server, Some(2048), Some(4096), &[]),
            (Role::Server, Some(1024), Some(4096), &[]),
            (Role::Server, Some(2049), Some(4096), &[send(2049, 2048)]),
            // A server may be prepared to receive more than the client can send.
            (Role::Server, Some(2048), Some(8192), &[]),
            (Role::Server, Some(2048), Some(4095), &[receive(4095, 4096)]),
            (
                Role::Server,
                Some(8192),
                Some(1024),
                &[send(8192, 2048), receive(1024, 4096)],
            ),
        ] {
            check_deviations(
                format_args!("{role} {inline_send:?} {inline_receive:?}"),
                role,
                in_use(inline_send, inline_receive),
                expected,
            )?;
        }
        Ok(())
    }

    /// RFC 8797, section 5.2: "the offset of the Format Identifier is not restricted". Not finding
    /// the message is a deviation if the side then expects less than the peer may send.
    #[test]
    fn section_5_2_deviations() -> Result {
        for (role, inline_receive, expected) in [
            (Role::Client, None, &[][..]),
            (Role::Client, Some(2048), &[]),
            (
                Role::Client,
                Some(1024),
                &[Deviation::Misplaced {
                    in_use: 1024,
                    threshold: 2048,
                }],
            ),
            (
                Role::Client,
                Some(4096),
                &[Deviation::InlineReceive {
                    in_use: 4096,
                    threshold: 2048,
                }],
            ),
            (Role::Server, Some(4096), &[]),
        ] {
            let in_use = InUse {
                inline_receive,
                misplaced: true,
                ..InUse::default()
            };
            check_deviations(
                format_args!("{role} {inline_receive:?}"),
                role,
                in_use,
                expected,
            )?;
        }
        Ok(())
    }

    /// RFC 8797, section 4.1: the responder "MUST use only RDMA Send" if either side clears R, and
    /// "MAY" invalidate if both set it.
    #[test]
    fn section_4_1_deviations() -> Result {
        for (negotiated, in_use, expected) in [
            (false, None, None),
            (false, Some(false), None),
            (false, Some(true), Some(Deviation::RemoteInvalidation)),
            (true, Some(false), None),
            (true, Some(true), None),
        ] {
            let in_use = InUse {
                remote_invalidation: in_use,
                ..InUse::default()
            };
            let negotiated = Negotiated {
                remote_invalidation: negotiated,
                ..NEGOTIATED
            };
            check(
                format_args!("{negotiated:?} {in_use:?}"),
                negotiated.deviations(Role::Server, &in_use).next(),
                expected,
            )?;
        }
        Ok(())
    }

    /// The text that `info` shows.
    #[test]
    fn deviations_in_words() -> Result {
        let (in_use, threshold) = (1024, 4096);
        for (deviation, shown) in [
            (
                Deviation::InlineSend { in_use, threshold },
                "may send 1024 octets inline, where the threshold is 4096 (RFC 8797, section 4.2)",
            ),
            (
                Deviation::InlineReceive { in_use, threshold },
                "expects up to 1024 octets inline, where the threshold is 4096 (RFC 8797, section \
                 4.2)",
            ),
            (
                Deviation::Misplaced { in_use, threshold },
                "does not look for private data at other offsets than 0, and expects up to 1024 \
                 octets inline, where the threshold is 4096 (RFC 8797, section 5.2)",
            ),
            (
                Deviation::RemoteInvalidation,
                "uses RDMA Send with Invalidate, although not both sides support remote \
                 invalidation (RFC 8797, section 4.1)",
            ),
        ] {
            check_display(shown, deviation, shown)?;
        }
        Ok(())
    }

    /// Checks the result that each side computes from the two offers.
    fn check_both(
        row: impl Display + Copy,
        client: Offer,
        server: Offer,
        expected: Negotiated,
    ) -> Result {
        check(row, negotiate(Role::Client, client, server), expected)?;
        check(row, negotiate(Role::Server, server, client), expected)
    }

    /// RFC 8797, section 4.1: "When both connection peers have set this bit flag"; "When either
    /// peer on a connection clears this flag, the responder MUST use only RDMA Send".
    #[test]
    fn section_4_1_remote_invalidation() -> Result {
        for (row, client, server, remote_invalidation) in [
            ("neither", false, false, false),
            ("the client", true, false, false),
            ("the server", false, true, false),
            ("both", true, true, true),
        ] {
            check_both(
                row,
                offer(0, 0, client),
                offer(0, 0, server),
                Negotiated {
                    client_to_server_threshold: 1024,
                    server_to_client_threshold: 1024,
                    remote_invalidation,
                },
            )?;
        }
        Ok(())
    }

    /// RFC 8797, section 4.2: a threshold is "the smaller of its own send size and the server's
    /// reported receive size", and the other way round.
    #[test]
    fn section_4_2_thresholds() -> Result {
        // Each side's Send Size and Receive Size; client-to-server, server-to-client in octets.
        for (row, client, server, to_server, to_client) in [
            ("least", (0, 0), (0, 0), 1024, 1024),
            ("most", (255, 255), (255, 255), 262_144, 262_144),
            ("client sends least", (0, 255), (255, 255), 1024, 262_144),
            ("client takes least", (255, 0), (255, 255), 262_144, 1024),
            ("server sends least", (255, 255), (0, 255), 262_144, 1024),
            ("server takes least", (255, 255), (255, 0), 1024, 262_144),
            ("senders decide", (1, 15), (7, 3), 2048, 8192),
            ("receivers decide", (3, 7), (15, 1), 2048, 8192),
        ] {
            check_both(
                row,
                offer(client.0, client.1, false),
                offer(server.0, server.1, false),
                Negotiated {
                    client_to_server_threshold: to_server,
                    server_to_client_threshold: to_client,
                    remote_invalidation: false,
                },
            )?;
        }
        Ok(())
    }

    /// RFC 8797, section 5.1: the result with a peer that sent no valid message.
    #[test]
    fn section_5_1_defaults() -> Result {
        let defaults = Negotiated {
            client_to_server_threshold: 1024,
            server_to_client_threshold: 1024,
            remote_invalidation: false,
        };
        let most = offer(255, 255, true);
        check_both("server", most, Offer::DEFAULT, defaults)?;
        check_both("client", Offer::DEFAULT, most, defaults)
    }

    /// The draft of version 2, sections 2.3 and 5.1: the result in version 2 if one side, or both
    /// of them, sent no valid message.
    #[test]
    fn draft_section_5_1_defaults() -> Result {
        // The offer of the other side; client-to-server, server-to-client in octets.
        let absent = Offer::DEFAULT_TWO;
        for (row, said, to_absent, from_absent) in [
            ("both", absent, 4096, 4096),
            ("least", offer(0, 0, true), 1024, 1024),
            ("less", offer(1, 2, true), 2048, 3072),
            ("as much", offer(3, 3, true), 4096, 4096),
            ("more", offer(4, 7, true), 4096, 4096),
            ("most", offer(255, 255, true), 4096, 4096),
            ("sends more", offer(255, 0, true), 4096, 1024),
            ("takes more", offer(0, 255, true), 1024, 4096),
        ] {
            let expected = Negotiated {
                client_to_server_threshold: to_absent,
                server_to_client_threshold: from_absent,
                remote_invalidation: false,
            };
            check_both(format_args!("server: {row}"), said, absent, expected)?;

            let expected = Negotiated {
                client_to_server_threshold: from_absent,
                server_to_client_threshold: to_absent,
                remote_invalidation: false,
            };
            check_both(format_args!("client: {row}"), absent, said, expected)?;
        }
        Ok(())
    }

    /// RFC 8797, section 4: the roles, as `info` shows them.
    #[test]
    fn section_4_roles() -> Result {
        check_display("client", Role::Client, "client")?;
        check_display("server", Role::Server, "server")?;

        // In a column of `connections`.
        let padded = CString::try_from_fmt(format_args!("{:8}|", Role::Client))?;
        check("padded", padded.to_str()?, "client  |")
    }
}
