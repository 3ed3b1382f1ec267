// SPDX-License-Identifier: GPL-2.0

//! RPC programs: RFC 5531.

use kernel::prelude::*;

#[kunit_tests(rpcrdma_cm_program)]
mod tests {
    use super::*;
    use crate::{
        octets::X,
        pure::wire::{
            program::{
                fill_opaque,
                is_opaque,
                serve,
                Program,
                ServedProcedure,
                ECHO,
                ECHO_PROGRAM,
                ECHO_VERSION,
                NFS_PROGRAM,
                NFS_VERSION,
                NULL, //
            },
            rpc_message::{
                Call,
                Status, //
            }, //
        },
        rows::check, //
    };

    /// RFC 5531, section 8.3: "0x20000000 - 0x3fffffff"; section 12.1: procedure 0. RFC 5662,
    /// section 2: NFS4_PROGRAM, version 4.
    #[test]
    fn section_8_3_numbers() -> Result {
        for (row, got, expected) in [
            ("echo", ECHO_PROGRAM, 0x2000_8797),
            ("echo version", ECHO_VERSION, 1),
            ("echo procedure", ECHO, 1),
            ("null procedure", NULL, 0),
            ("NFS", NFS_PROGRAM, 100_003),
            ("NFS version", NFS_VERSION, 4),
        ] {
            check(row, got, expected)?;
        }
        Ok(())
    }

    /// RFC 4506, section 4.10: the arguments of ECHO, also too short and too long.
    #[test]
    fn section_4_10_opaque() -> Result {
        for (count, len, expected) in [
            (0, 4, true),
            (1, 8, true),
            (4, 8, true),
            (5, 12, true),
            (1 << 20, (1 << 20) + 4, true),
            (0, 0, false),
            (0, 3, false),
            (0, 8, false),
            (1, 4, false),
            (1, 5, false),
            (4, 12, false),
            (9, 8, false),
            (u32::MAX, 4, false),
            (u32::MAX - 3, 0, false),
        ] {
            check(count, is_opaque(count, len), expected)?;
        }
        Ok(())
    }

    /// RFC 4506, section 4.10: the length, the octets, and zeros up to a multiple of four octets.
    #[test]
    fn section_4_10_arguments() -> Result {
        for (size, at, expected) in [
            (0, 0, [0, 0, 0, 0, 0, 0, 0, 0]),
            (3, 0, [0, 0, 0, 3, 0xfe, 0xff, 0xff, 0]),
            (4, 0, [0, 0, 0, 4, 0xfe, 0xff, 0xff, 0xff]),
            (6, 4, [0xfe, 0xff, 0xff, 0xff, 0xfd, 0xff, 0, 0]),
        ] {
            let mut octets = [0xee; 8];
            fill_opaque(size, u32::MAX, at, &mut octets);
            check(size, octets, expected)?;
        }
        Ok(())
    }

    /// RFC 5531, section 8.1: the numbers and the versions of the two programs.
    #[test]
    fn section_8_1_programs() -> Result {
        for (row, program, number, version) in [
            ("NFS", Program::NFS, 100_003, 4),
            ("echo", Program::ECHO, 0x2000_8797, 1),
        ] {
            check(row, program, Program { number, version })?;
        }
        Ok(())
    }

    /// RFC 5531, section 9: `accept_stat`, also of procedure 0.
    #[test]
    fn section_9_served() -> Result {
        let mismatch = Err(Status::ProgMismatch { low: 1, high: 1 });
        let nfs_mismatch = Err(Status::ProgMismatch { low: 3, high: 4 });
        for (prog, vers, proc, expected) in [
            (0x2000_8797, 1, 0, Ok(ServedProcedure::Null)),
            (0x2000_8797, 2, 0, mismatch),
            (100_003, 4, 0, Ok(ServedProcedure::Null)),
            (100_003, 3, 0, Ok(ServedProcedure::Null)),
            (100_003, 2, 0, nfs_mismatch),
            (100_003, 5, 0, nfs_mismatch),
            (0, 0, 0, Err(Status::ProgUnavail)),
            (u32::MAX, u32::MAX, 0, Err(Status::ProgUnavail)),
            (0x2000_8797, 1, 1, Ok(ServedProcedure::Echo)),
            (0x2000_8797, 1, 2, Ok(ServedProcedure::Bind)),
            (0x2000_8797, 1, 3, Err(Status::ProcUnavail)),
            (0x2000_8797, 1, u32::MAX, Err(Status::ProcUnavail)),
            (0x2000_8797, 0, 1, mismatch),
            (0x2000_8797, 2, 1, mismatch),
            (0x2000_8797, u32::MAX, 1, mismatch),
            (0x2000_8797, 2, 2, mismatch),
            (0x4000_0000, 1, 0, Ok(ServedProcedure::Null)),
            (0x4000_0000, 1, 1, Err(Status::ProcUnavail)),
            (0x4000_0000, 0, 1, mismatch),
            (0x4000_0000, 2, 1, mismatch),
            (0x4000_0001, 1, 1, Err(Status::ProgUnavail)),
            (0x2000_8796, 1, 1, Err(Status::ProgUnavail)),
            (0x2000_8798, 1, 1, Err(Status::ProgUnavail)),
            (0x4000_0001, 1, 0, Err(Status::ProgUnavail)),
            (100_003, 4, 1, Err(Status::ProcUnavail)),
            (100_003, 1, 1, nfs_mismatch),
            (0, 1, 1, Err(Status::ProgUnavail)),
            (u32::MAX, 1, 1, Err(Status::ProgUnavail)),
        ] {
            let call = Call {
                xid: X,
                prog,
                vers,
                proc,
            };
            check(format_args!("{call:?}"), serve(&call), expected)?;
        }
        Ok(())
    }

    /// RFC 5531, section 9: `mismatch_info` has the lowest and the highest version. Versions
    /// between them may be missing.
    #[test]
    fn section_9_mismatch_info() -> Result {
        for (version, low, high, expected) in [
            (4, 3, 3, Some(3)),
            (4, 2, 3, Some(3)),
            (2, 3, 4, Some(3)),
            (3, 2, 4, Some(4)),
            (4, 2, 4, Some(2)),
            (2, 2, 4, Some(4)),
            (4, 4, 4, None),
            (4, 3, 2, None),
            (0, u32::MAX, u32::MAX, Some(u32::MAX)),
            (u32::MAX, 0, 0, Some(0)),
        ] {
            let program = |version| Program {
                number: NFS_PROGRAM,
                version,
            };
            check(
                format_args!("{version}, {low} to {high}"),
                program(version).in_named_version(low, high),
                expected.map(program),
            )?;
        }
        Ok(())
    }
}
