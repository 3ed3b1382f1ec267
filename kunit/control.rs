// SPDX-License-Identifier: GPL-2.0

//! The grammar of the control files.

mod call;

use core::fmt::{
    Debug,
    Display, //
};

use kernel::{
    prelude::*,
    str::CString, //
};

#[kunit_tests(rpcrdma_cm_control)]
mod tests {
    use super::*;
    use crate::{
        pure::{
            text::grammar::{
                parse_call,
                parse_close,
                parse_connect,
                parse_listen,
                parse_probe,
                Address,
                Close,
                Connect,
                LineError,
                Listen,
                Rpc,
                SocketAddr,
                Zone, //
            },
            wire::{
                header::Versions,
                private_data::{
                    Offer,
                    Offered,
                    Size, //
                },
                program::Program, //
            }, //
        },
        rows::{
            check,
            check_display,
            failed, //
        }, //
    };

    use core::net::{
        Ipv4Addr,
        Ipv6Addr, //
    };

    /// The keys of a line, and the changes that they make to the defaults.
    type Row<T> = (&'static str, fn(&mut T));

    /// The result for the line `192.0.2.1:1` of `connect` and `probe`.
    const CONNECT: Connect = Connect {
        to: v4(1),
        from: None,
        offer: UNTOLD,
        rpc: Rpc {
            versions: Versions::only(1),
            ..RPC
        },
        reconnect: false,
        timeout_ms: 5000,
        null: Some(NFS),
    };

    /// The result for the line `192.0.2.1:1` of `listen`.
    const LISTEN: Listen = Listen {
        at: v4(1),
        offer: UNTOLD,
        rpc: RPC,
        max: 64,
        answer: true,
        timeout_ms: 5000,
    };

    /// All versions, as a server speaks them by default, and eight credits, forward only.
    const RPC: Rpc = Rpc {
        versions: Versions { low: 1, high: 2 },
        credits: 8,
        reverse: 0,
        bind: true,
    };

    /// NFS version 4.
    pub(super) const NFS: Program = Program {
        number: 100_003,
        version: 4,
    };

    /// The default offer: 4096 octets each way, and R clear.
    const UNTOLD: Offered = message(3, 3, false);

    /// A message with the values of the Size fields (RFC 8797, section 4.2).
    const fn message(send_size: u8, receive_size: u8, remote_invalidation: bool) -> Offered {
        Offered::Message(Offer {
            send_size: Size::from_encoded(send_size),
            receive_size: Size::from_encoded(receive_size),
            remote_invalidation,
        })
    }

    /// A program whose NULL is called.
    fn program(number: u32, version: u32) -> Option<Program> {
        Some(Program { number, version })
    }

    /// 192.0.2.1 and a port.
    const fn v4(port: u16) -> SocketAddr {
        SocketAddr {
            address: Address::V4(Ipv4Addr::new(192, 0, 2, 1)),
            port,
        }
    }

    /// fe80::1, a zone and port 1.
    const fn v6(zone: Option<Zone>) -> SocketAddr {
        SocketAddr {
            address: Address::V6 {
                address: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1),
                zone,
            },
            port: 1,
        }
    }

    /// Checks the result of `connect`, `probe` and `listen` for a line.
    fn check_all(line: &str, address: SocketAddr, offer: Offered) -> Result {
        let connect = Connect {
            to: address,
            offer,
            ..CONNECT
        };
        let listen = Listen {
            at: address,
            offer,
            ..LISTEN
        };
        check(line, parse_connect(line.as_bytes()), Ok(connect))?;
        check(line, parse_probe(line.as_bytes()), Ok(connect))?;
        check(line, parse_listen(line.as_bytes()), Ok(listen))
    }

    /// Checks that `connect`, `probe` and `listen` refuse a word of a line, and the reason.
    fn check_all_refuse(line: &[u8], word: &str, reason: &str) -> Result {
        check_refusal(word, parse_connect(line), word, reason)?;
        check_refusal(word, parse_probe(line), word, reason)?;
        check_refusal(word, parse_listen(line), word, reason)
    }

    /// Checks the refusal of a word, as it is shown; with an empty one, no word is named.
    pub(super) fn check_refusal<T: Debug>(
        row: impl Display,
        parsed: core::result::Result<T, LineError<'_>>,
        word: &str,
        reason: &str,
    ) -> Result {
        let colon = if word.is_empty() { "" } else { ": " };
        let expected = CString::try_from_fmt(format_args!("{word}{colon}{reason}"))?;
        match parsed {
            Ok(value) => failed(row, format_args!("got {value:?}, expected {expected:?}")),
            Err(refusal) => check_display(row, refusal, expected.to_str()?),
        }
    }

    /// Puts an address before the keys of a row.
    fn line(keys: impl Display) -> Result<CString> {
        CString::try_from_fmt(format_args!("192.0.2.1:1 {keys}"))
    }

    #[test]
    fn addresses() -> Result {
        const SHORT: Zone = Zone::Name(*b"e\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        const LONG: Zone = Zone::Name(*b"15octets-is-all\0");

        for (line, address) in [
            ("192.0.2.1:1", v4(1)),
            ("192.0.2.1:65535", v4(65_535)),
            ("[fe80::1]:1", v6(None)),
            ("[FE80:0:0:0:0:0:0.0.0.1]:1", v6(None)),
            ("[fe80::1%1]:1", v6(Some(Zone::Index(1)))),
            ("[fe80::1%4294967295]:1", v6(Some(Zone::Index(u32::MAX)))),
            ("[fe80::1%e]:1", v6(Some(SHORT))),
            ("[fe80::1%15octets-is-all]:1", v6(Some(LONG))),
        ] {
            check_all(line, address, UNTOLD)?;
        }
        Ok(())
    }

    #[test]
    fn addresses_refused() -> Result {
        const NO_PORT: &str = "expected :PORT behind the address";
        const PORT: &str = "port is not 1 to 65535";
        const ADDRESS: &str = "expected an IPv4 address, or an IPv6 address in brackets";
        const ZONE: &str = "zone is not an interface's index or name of up to 15 octets";

        for (word, reason) in [
            ("192.0.2.1", NO_PORT),
            ("[fe80::1]", NO_PORT),
            ("[fe80::1]1", NO_PORT),
            ("[fe80::1%]]:1", ZONE),
            ("192.0.2.1:", PORT),
            ("192.0.2.1:0", PORT),
            ("192.0.2.1:65536", PORT),
            ("192.0.2.1:+1", PORT),
            ("192.0.2.1:1x", PORT),
            ("192.0.2.1:1:1", PORT),
            ("192.0.2.1:18446744073709551617", PORT),
            ("[fe80::1]:0", PORT),
            (":1", ADDRESS),
            ("send=4096", ADDRESS),
            ("server:1", ADDRESS),
            ("192.0.2:1", ADDRESS),
            ("192.0.2.256:1", ADDRESS),
            ("192.0.2.01:1", ADDRESS),
            ("192.0.2.1%1:1", ADDRESS),
            ("[192.0.2.1]:1", ADDRESS),
            ("fe80::1:1", ADDRESS),
            ("[fe80::1:1", ADDRESS),
            ("fe80::1]:1", ADDRESS),
            ("[fe80::1::]:1", ADDRESS),
            ("[]:1", ADDRESS),
            ("[%1]:1", ADDRESS),
            ("[fe80::1%]:1", ZONE),
            ("[fe80::1%0]:1", ZONE),
            ("[fe80::1%4294967296]:1", ZONE),
            ("[fe80::1%one-octet-longer]:1", ZONE),
        ] {
            let line = CString::try_from_fmt(format_args!("{word} inv=1"))?;
            check_all_refuse(line.to_bytes(), word, reason)?;
        }
        for line in ["", "\n", " \t "] {
            check_all_refuse(line.as_bytes(), "", ADDRESS)?;
        }
        Ok(())
    }

    /// RFC 8797, sections 4.1 and 4.2: the offer in the message.
    #[test]
    fn section_4_offers() -> Result {
        for (keys, offer) in [
            ("send=1024", message(0, 3, false)),
            ("send=2048", message(1, 3, false)),
            ("send=262144", message(255, 3, false)),
            ("recv=1024", message(3, 0, false)),
            ("recv=2048", message(3, 1, false)),
            ("recv=262144", message(3, 255, false)),
            ("inv=0", message(3, 3, false)),
            ("inv=1", message(3, 3, true)),
            ("inv=1 recv=8192 send=65536", message(63, 7, true)),
            ("private=none", Offered::None),
        ] {
            check_all(line(keys)?.to_str()?, v4(1), offer)?;
        }
        Ok(())
    }

    /// RFC 8797, section 4.2: sizes that the fields of the message cannot express.
    #[test]
    fn section_4_2_sizes_refused() -> Result {
        const MULTIPLE: &str = "not a multiple of 1024 octets";
        const RANGE: &str = "not 1024 to 262144 octets";

        for key in ["send", "recv"] {
            for (value, reason) in [
                ("0", RANGE),
                ("1", MULTIPLE),
                ("1000", MULTIPLE),
                ("1023", MULTIPLE),
                ("1025", MULTIPLE),
                ("262143", MULTIPLE),
                ("262145", MULTIPLE),
                ("263168", RANGE),
                ("4294968320", RANGE),
                ("18446744073709552640", RANGE),
                ("-1024", RANGE),
                ("+1024", RANGE),
                ("1024x", RANGE),
                ("0x400", RANGE),
                ("1k", RANGE),
                ("", "no value"),
            ] {
                let word = CString::try_from_fmt(format_args!("{key}={value}"))?;
                let word = word.to_str()?;
                check_all_refuse(line(word)?.to_bytes(), word, reason)?;
            }
        }
        Ok(())
    }

    /// Checks the octets of `private=`.
    fn check_raw(line: &[u8], octets: &[u8]) -> Result {
        let parsed = parse_connect(line);
        match parsed {
            Ok(Connect {
                offer: Offered::Raw(data),
                ..
            }) => check(line.len(), data.octets(), octets),
            _ => failed(line.len(), format_args!("got {parsed:?}")),
        }
    }

    #[test]
    fn private_data() -> Result {
        for (keys, octets) in [
            ("private=00", &[0x00][..]),
            ("private=f6", &[0xf6]),
            ("private=0123456789", &[0x01, 0x23, 0x45, 0x67, 0x89]),
            ("private=abcdef", &[0xab, 0xcd, 0xef]),
            ("private=ABCDEF", &[0xab, 0xcd, 0xef]),
            ("private=aBfF", &[0xab, 0xff]),
        ] {
            check_raw(line(keys)?.to_bytes(), octets)?;
        }
        Ok(())
    }

    #[test]
    fn private_data_refused() -> Result {
        const ODD: &str = "an odd number of hex digits";
        const HEX: &str = "expected pairs of hexadecimal digits, or the word none";

        for (word, reason) in [
            ("private=", "no value"),
            ("private=f", ODD),
            ("private=f6a", ODD),
            ("private=fg", HEX),
            ("private=gf", HEX),
            ("private=+f", HEX),
            ("private=0xf6", HEX),
            ("private=@`", HEX),
            ("private=/:", HEX),
            ("private=None", HEX),
        ] {
            check_all_refuse(line(word)?.to_bytes(), word, reason)?;
        }
        Ok(())
    }

    #[test]
    fn private_data_capacity() -> Result {
        const BEGINNING: &[u8] = b"192.0.2.1:1 private=";
        const LEN: usize = BEGINNING.len();
        let mut line = [b'a'; LEN + 512];
        line[..LEN].copy_from_slice(BEGINNING);

        check_raw(&line[..LEN + 508], &[0xaa; 254])?;
        check_raw(&line[..LEN + 510], &[0xaa; 255])?;

        // The first 64 octets of the word are shown.
        for (digits, reason, is_too_many) in [
            (511, "an odd number of hex digits", false),
            (512, "more than 255 octets, which rdma_cm cannot send", true),
        ] {
            let parsed = parse_connect(&line[..LEN + digits]);
            let Err(refusal) = parsed else {
                return failed(digits, format_args!("got {parsed:?}"));
            };
            check(digits, refusal.is_too_many_octets(), is_too_many)?;
            let word = "private=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...";
            check_refusal(digits, parsed, word, reason)?;
        }
        Ok(())
    }

    #[test]
    fn connect_keys() -> Result {
        // A row only has the differences to the defaults: the whole value is large, and the
        // kernel's stack is small.
        let rows: &[Row<Connect>] = &[
            ("from=192.0.2.1", |c| c.from = Some(c.to.address)),
            ("reconnect=0", |c| c.reconnect = false),
            ("reconnect=1", |c| c.reconnect = true),
            ("timeout_ms=1", |c| c.timeout_ms = 1),
            ("timeout_ms=600000", |c| c.timeout_ms = 600_000),
            ("private=none", |c| c.offer = Offered::None),
            ("rpcvers=1", |c| c.rpc.versions = Versions::only(1)),
            ("rpcvers=2", |c| c.rpc.versions = Versions::only(2)),
            ("rpcvers=auto", |c| c.rpc.versions = Versions::ALL),
            ("credits=1", |c| c.rpc.credits = 1),
            ("credits=64", |c| c.rpc.credits = 64),
            ("reverse=0", |c| c.rpc.reverse = 0),
            ("reverse=1 bind=1", |c| c.rpc.reverse = 1),
            ("reverse=64 bind=0", |c| {
                c.rpc.reverse = 64;
                c.rpc.bind = false;
            }),
            ("null=0", |c| c.null = None),
            ("null=1", |c| c.null = Some(NFS)),
            ("program=0", |c| c.null = program(0, 4)),
            ("program=4294967295", |c| c.null = program(u32::MAX, 4)),
            ("version=0", |c| c.null = program(100_003, 0)),
            ("version=4294967295 null=1", |c| {
                c.null = program(100_003, u32::MAX);
            }),
        ];
        for (keys, change) in rows {
            let line = line(keys)?;
            let mut connect = CONNECT;
            change(&mut connect);
            check(keys, parse_connect(line.to_bytes()), Ok(connect))?;
        }

        let line = "[fe80::1%2]:1 from=[fe80::1%2] reconnect=1 timeout_ms=7 \
                    rpcvers=2 credits=3 reverse=4 program=5 version=6 null=1 inv=1";
        let to = v6(Some(Zone::Index(2)));
        let connect = Connect {
            to,
            from: Some(to.address),
            offer: message(3, 3, true),
            rpc: Rpc {
                versions: Versions::only(2),
                credits: 3,
                reverse: 4,
                bind: true,
            },
            reconnect: true,
            timeout_ms: 7,
            null: program(5, 6),
        };
        check(line, parse_connect(line.as_bytes()), Ok(connect))
    }

    /// The keys of `connect` that `probe` has, too.
    #[test]
    fn probe_keys() -> Result {
        let all = "[fe80::1%2]:1 from=[fe80::1%2] timeout_ms=7 credits=3 program=5 version=6 \
                    private=none";
        let to = v6(Some(Zone::Index(2)));
        let connect = Connect {
            to,
            from: Some(to.address),
            offer: Offered::None,
            rpc: Rpc {
                credits: 3,
                ..CONNECT.rpc
            },
            timeout_ms: 7,
            null: program(5, 6),
            ..CONNECT
        };
        check(all, parse_probe(all.as_bytes()), Ok(connect))?;
        for (word, versions) in [
            ("rpcvers=1", Versions::only(1)),
            ("rpcvers=2", Versions::only(2)),
            ("rpcvers=auto", Versions::ALL),
        ] {
            let mut connect = CONNECT;
            connect.rpc.versions = versions;
            check(word, parse_probe(line(word)?.to_bytes()), Ok(connect))?;
        }

        for (word, reason) in [
            ("reconnect=0", "unknown key"),
            ("reconnect=1", "unknown key"),
            ("null=0", "unknown key"),
            ("null=1", "unknown key"),
            ("reverse=1", "unknown key"),
            ("bind=1", "unknown key"),
            ("rpcvers=3", "not 1, 2 or auto"),
            ("max=1", "unknown key"),
            ("timeout_ms=0", "not 1 to 600000 milliseconds"),
            ("from=[fe80::1]", "not of the destination's address family"),
            ("program=4294967296", "not 0 to 4294967295"),
            ("version=-1", "not 0 to 4294967295"),
        ] {
            let line = line(word)?;
            check_refusal(word, parse_probe(line.to_bytes()), word, reason)?;
        }
        Ok(())
    }

    #[test]
    fn connect_keys_refused() -> Result {
        const ADDRESS: &str = "expected an IPv4 address, or an IPv6 address in brackets";
        const FAMILY: &str = "not of the destination's address family";
        const FLAG: &str = "not 0 or 1";
        const TIMEOUT: &str = "not 1 to 600000 milliseconds";
        const WORD: &str = "not 0 to 4294967295";

        for (word, reason) in [
            ("from=", "no value"),
            ("from=fe80::1", ADDRESS),
            ("from=192.0.2.2:1", "expected only an address"),
            ("from=[fe80::1]:1", "expected only an address"),
            ("from=[fe80::1]", FAMILY),
            ("reconnect=2", FLAG),
            ("reconnect=01", FLAG),
            ("timeout_ms=0", TIMEOUT),
            ("timeout_ms=600001", TIMEOUT),
            ("timeout_ms=4294967297", TIMEOUT),
            ("timeout_ms=-1", TIMEOUT),
            ("null=2", FLAG),
            ("null=auto", FLAG),
            ("program=", "no value"),
            ("program=4294967296", WORD),
            ("program=-1", WORD),
            ("program=nfs", WORD),
            ("version=4294967296", WORD),
            ("version=4.1", WORD),
            ("max=1", "unknown key"),
            ("chunks=1", "unknown key"),
        ] {
            let line = line(word)?;
            check_refusal(word, parse_connect(line.to_bytes()), word, reason)?;
        }

        let parsed = parse_connect(b"[fe80::1]:1 from=192.0.2.1");
        check_refusal("IPv4 to IPv6", parsed, "from=192.0.2.1", FAMILY)
    }

    #[test]
    fn listen_keys() -> Result {
        let rows: &[Row<Listen>] = &[
            ("max=1", |l| l.max = 1),
            ("max=65536", |l| l.max = 65_536),
            ("answer=0", |l| l.answer = false),
            ("answer=1", |l| l.answer = true),
            ("rpcvers=1", |l| l.rpc.versions = Versions::only(1)),
            ("rpcvers=2", |l| l.rpc.versions = Versions::only(2)),
            ("rpcvers=auto", |l| l.rpc.versions = Versions::ALL),
            ("credits=1", |l| l.rpc.credits = 1),
            ("credits=64", |l| l.rpc.credits = 64),
            ("timeout_ms=1", |l| l.timeout_ms = 1),
            ("timeout_ms=600000", |l| l.timeout_ms = 600_000),
            ("reverse=64", |l| l.rpc.reverse = 64),
            ("bind=0 reverse=1", |l| {
                l.rpc.reverse = 1;
                l.rpc.bind = false;
            }),
            ("credits=64 max=7 rpcvers=1", |l| {
                l.max = 7;
                l.rpc.versions = Versions::only(1);
                l.rpc.credits = 64;
            }),
        ];
        for (keys, change) in rows {
            let line = line(keys)?;
            let mut listen = LISTEN;
            change(&mut listen);
            check(keys, parse_listen(line.to_bytes()), Ok(listen))?;
        }
        Ok(())
    }

    /// RFC 8166, sections 4.2.2 and 4.2.3: versions and credits that are refused.
    #[test]
    fn rpc_keys_refused() -> Result {
        const VERSIONS: &str = "not 1, 2 or auto";
        const CREDITS: &str = "not 1 to 64 credits";
        const REVERSE: &str = "not 0 to 64 credits";

        for (word, reason) in [
            ("credits=", "no value"),
            ("credits=0", CREDITS),
            ("credits=65", CREDITS),
            ("credits=4294967297", CREDITS),
            ("credits=-1", CREDITS),
            ("credits=auto", CREDITS),
        ] {
            check_all_refuse(line(word)?.to_bytes(), word, reason)?;
        }
        for (word, reason) in [
            ("rpcvers=", "no value"),
            ("rpcvers=0", VERSIONS),
            ("rpcvers=3", VERSIONS),
            ("rpcvers=01", VERSIONS),
            ("rpcvers=1-2", VERSIONS),
            ("rpcvers=Auto", VERSIONS),
            ("reverse=", "no value"),
            ("reverse=65", REVERSE),
            ("reverse=-1", REVERSE),
            ("bind=2", "not 0 or 1"),
        ] {
            let line = line(word)?;
            check_refusal(word, parse_connect(line.to_bytes()), word, reason)?;
            check_refusal(word, parse_listen(line.to_bytes()), word, reason)?;
        }
        Ok(())
    }

    #[test]
    fn listen_keys_refused() -> Result {
        const MAX: &str = "not 1 to 65536 connections";

        for (word, reason) in [
            ("max=", "no value"),
            ("max=0", MAX),
            ("max=65537", MAX),
            ("max=4294967297", MAX),
            ("max=-1", MAX),
            ("answer=", "no value"),
            ("answer=2", "not 0 or 1"),
            ("from=192.0.2.1", "unknown key"),
            ("timeout_ms=0", "not 1 to 600000 milliseconds"),
            ("timeout_ms=600001", "not 1 to 600000 milliseconds"),
            ("reconnect=1", "unknown key"),
            ("null=1", "unknown key"),
            ("program=1", "unknown key"),
            ("version=1", "unknown key"),
        ] {
            let line = line(word)?;
            check_refusal(word, parse_listen(line.to_bytes()), word, reason)?;
        }
        Ok(())
    }

    #[test]
    fn spaces() -> Result {
        for line in [
            "192.0.2.1:1\n",
            " 192.0.2.1:1",
            "\t192.0.2.1:1 \n",
            "192.0.2.1:1 send=4096 recv=4096 inv=0",
            "  192.0.2.1:1\t\tsend=4096 \trecv=4096   inv=0\t\n",
        ] {
            check_all(line, v4(1), UNTOLD)?;
        }
        Ok(())
    }

    #[test]
    fn longest_line() -> Result {
        const LINE: &str = "192.0.2.1:1";
        const LONGER: &str = "longer than 2048 octets";
        let mut spaces = [b' '; 2049];
        spaces[..LINE.len()].copy_from_slice(LINE.as_bytes());

        let longest = core::str::from_utf8(&spaces[..2048])?;
        check_all(longest, v4(1), UNTOLD)?;
        check_all_refuse(&spaces, "", LONGER)?;

        let mut spaces = [b' '; 2049];
        spaces[..3].copy_from_slice(b"all");
        check("longest", parse_close(&spaces[..2048]), Ok(Close::All))?;
        check_refusal("longer", parse_close(&spaces), "", LONGER)?;
        check_refusal("longer", parse_call(&spaces), "", LONGER)
    }

    #[test]
    fn words_refused() -> Result {
        const TEXT: &str = "not printable text on one line";
        const FLAG: &str = "not 0 or 1";

        for (keys, word, reason) in [
            ("inv=1\n\n", "inv=1\\x0a", TEXT),
            ("inv=1\r\n", "inv=1\\x0d", TEXT),
            ("inv=1\n recv=1024", "inv=1\\x0a", TEXT),
            ("\n inv=1", "\\x0a", TEXT),
            ("inv=\x7f", "inv=\\x7f", TEXT),
            ("inv=\u{b9}", "inv=\\xc2\\xb9", FLAG),
            ("inv=\\x31", "inv=\\x5cx31", FLAG),
            ("inv=2", "inv=2", FLAG),
            ("inv=yes", "inv=yes", FLAG),
            ("inv=00", "inv=00", FLAG),
            ("inv=1,", "inv=1,", FLAG),
            ("inv=1=1", "inv=1=1", FLAG),
            ("inv", "inv", "not key=value"),
            ("inv =1", "inv", "not key=value"),
            ("192.0.2.2:1", "192.0.2.2:1", "not key=value"),
            ("inv=", "inv=", "no value"),
            ("inv= 1", "inv=", "no value"),
            ("=1", "=1", "unknown key"),
            ("INV=1", "INV=1", "unknown key"),
            // The first word that does not fit is the one to name.
            ("size=1 inv=2", "size=1", "unknown key"),
        ] {
            check_all_refuse(line(keys)?.to_bytes(), word, reason)?;
        }

        // Words that neither a CString nor a str can hold.
        for (line, word) in [
            (&b"192.0.2.1:1\0"[..], "192.0.2.1:1\\x00"),
            (b"192.0.2.1:1 inv=1\0", "inv=1\\x00"),
            (b"192.0.2.1:1 \0", "\\x00"),
            (b"192.0.2.1:1 inv=\xff", "inv=\\xff"),
        ] {
            check_all_refuse(line, word, TEXT)?;
        }
        Ok(())
    }

    #[test]
    fn keys_that_exclude_each_other() -> Result {
        const TWICE: &str = "given twice";
        const ALL: &str = "private= excludes send=, recv= and inv=";

        for (first, second, reason) in [
            ("send=1024", "send=1024", TWICE),
            ("recv=1024", "recv=2048", TWICE),
            ("inv=0", "inv=1", TWICE),
            ("private=none", "private=f6", TWICE),
            ("credits=8", "credits=8", TWICE),
            ("private=f6", "send=4096", ALL),
            ("private=f6", "recv=4096", ALL),
            ("private=none", "inv=0", ALL),
            ("send=4096", "private=f6", ALL),
            ("recv=4096", "private=f6", ALL),
            ("inv=0", "private=none", ALL),
        ] {
            let line = line(format_args!("{first} {second}"))?;
            check_all_refuse(line.to_bytes(), second, reason)?;
        }

        for (first, second) in [
            ("null=0", "program=100003"),
            ("null=0", "version=4"),
            ("program=1", "null=0"),
            ("version=1", "null=0"),
        ] {
            const NONE: &str = "null=0 excludes program= and version=";

            let line = line(format_args!("{first} {second}"))?;
            check_refusal(first, parse_connect(line.to_bytes()), second, NONE)?;
        }

        for word in [
            "from=192.0.2.2",
            "reconnect=0",
            "timeout_ms=1",
            "rpcvers=auto",
            "null=0",
            "null=1",
            "program=1",
            "version=1",
        ] {
            let line = line(format_args!("{word} {word}"))?;
            check_refusal(word, parse_connect(line.to_bytes()), word, TWICE)?;
        }
        let parsed = parse_listen(b"192.0.2.1:1 max=1 max=1");
        check_refusal("max", parsed, "max=1", TWICE)?;
        let parsed = parse_listen(b"192.0.2.1:1 rpcvers=1 rpcvers=2");
        check_refusal("rpcvers", parsed, "rpcvers=2", TWICE)
    }

    #[test]
    fn close() -> Result {
        for (line, close) in [
            ("all", Close::All),
            (" all\t\n", Close::All),
            ("connection 1", Close::Connection(1)),
            ("connection \t 0\n", Close::Connection(0)),
            (
                "connection 18446744073709551615",
                Close::Connection(u64::MAX),
            ),
            ("listener 1", Close::Listener(1)),
            ("listener 18446744073709551615", Close::Listener(u64::MAX)),
        ] {
            check(line, parse_close(line.as_bytes()), Ok(close))?;
        }
        Ok(())
    }

    #[test]
    fn close_refused() -> Result {
        const WHAT: &str = "expected connection ID, listener ID or all";
        const ID: &str = "expected a decimal ID";
        const TOO_MANY: &str = "one word too many";

        for (line, word, reason) in [
            ("1", "1", WHAT),
            ("All", "All", WHAT),
            ("al\0l", "al\\x00l", WHAT),
            ("connection=1", "connection=1", WHAT),
            ("connection all", "all", ID),
            ("connection -1", "-1", ID),
            ("connection +1", "+1", ID),
            ("listener 0x1", "0x1", ID),
            ("listener 18446744073709551616", "18446744073709551616", ID),
            (
                "connection 1\n\n",
                "1\\x0a",
                "not printable text on one line",
            ),
            ("connection 1 2", "2", TOO_MANY),
            ("listener 1 all", "all", TOO_MANY),
            ("all 1", "1", TOO_MANY),
            // There is no word to name.
            ("", "", WHAT),
            ("\n", "", WHAT),
            ("connection", "", ID),
            ("listener \n", "", ID),
        ] {
            check_refusal(line, parse_close(line.as_bytes()), word, reason)?;
        }
        Ok(())
    }
}
