// SPDX-License-Identifier: GPL-2.0

//! The shares of the owners of ids: which of them a program can take, and which not.

#[path = "../src/observer/shares.rs"]
mod shares;

/// The type of src/observer/probes.rs that the shares use.
mod probes {
    #[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
    pub(super) struct Uid(pub(super) u32);

    impl Uid {
        pub(super) const ROOT: Self = Self(0);
    }
}

use kernel::prelude::*;

#[kunit_tests(rpcrdma_cm_shares)]
mod tests {
    use super::{
        probes::Uid,
        shares::{
            Missed,
            Share,
            Shares, //
        },
    };
    use crate::{
        counters::SharedStats,
        pure::wire::meaning::User,
        rows::check, //
    };
    use kernel::{
        prelude::*,
        sync::Arc, //
    };

    const MAX: u32 = 256;
    const OF_PROGRAMS: u32 = 64;
    const OF_ONE_USER: u32 = 4;

    /// Takes shares until none is left. Returns how many there were, and why no more.
    fn fill(
        shares: &Arc<Shares>,
        taken: &mut KVec<Share>,
        user: User,
        uid: Uid,
    ) -> Result<(u32, &'static str)> {
        for count in 0..=MAX {
            match shares.take(user, uid) {
                Ok(share) => taken.push(share, GFP_KERNEL)?,
                Err(missed) => return Ok((count, name(missed))),
            }
        }
        Ok((MAX + 1, "nothing"))
    }

    fn name(missed: Missed) -> &'static str {
        match missed {
            Missed::Nfs => "nfs",
            Missed::User => "user",
            Missed::Programs => "programs",
            Missed::Memory => "memory",
        }
    }

    /// Programs of users take all that they can, then those of root, then NFS.
    #[test]
    fn no_share_is_taken_by_others() -> Result {
        let shares = Shares::new(MAX)?;
        let mut taken = KVec::new();

        for uid in 1..=OF_PROGRAMS / OF_ONE_USER {
            check(
                uid,
                fill(&shares, &mut taken, User::Program, Uid(uid))?,
                (OF_ONE_USER, "user"),
            )?;
        }
        for (row, user, uid, expected) in [
            ("one more user", User::Program, Uid(1000), (0, "programs")),
            ("root", User::Program, Uid::ROOT, (OF_PROGRAMS, "programs")),
            ("clients", User::Client, Uid::ROOT, (MAX, "nfs")),
            ("servers", User::Server, Uid::ROOT, (MAX, "nfs")),
        ] {
            check(row, fill(&shares, &mut taken, user, uid)?, expected)?;
        }
        drop(taken);

        let mut taken = KVec::new();
        for (row, user, expected) in [
            ("a user again", User::Program, (OF_ONE_USER, "user")),
            ("clients again", User::Client, (MAX, "nfs")),
        ] {
            check(row, fill(&shares, &mut taken, user, Uid(1000))?, expected)?;
        }
        Ok(())
    }

    /// A user whose programs give back one id may have one more.
    #[test]
    fn limit_of_a_user() -> Result {
        let shares = Shares::new(MAX)?;
        let mut taken = KVec::new();

        fill(&shares, &mut taken, User::Program, Uid(1000))?;
        for _ in 0..2 {
            drop(taken.pop());
            check(
                "one was given back",
                fill(&shares, &mut taken, User::Program, Uid(1000))?,
                (1, "user"),
            )?;
        }
        check(
            "another user",
            fill(&shares, &mut taken, User::Program, Uid(1001))?,
            (OF_ONE_USER, "user"),
        )
    }

    /// Each id that was left out is counted among all of them, and among those of its reason.
    #[test]
    fn missed_by_kind() -> Result {
        for (row, missed, expected) in [
            ("nfs", Missed::Nfs, [1, 1, 0, 0, 0]),
            ("user", Missed::User, [1, 0, 1, 0, 0]),
            ("programs", Missed::Programs, [1, 0, 0, 1, 0]),
            ("memory", Missed::Memory, [1, 0, 0, 0, 1]),
        ] {
            let stats = SharedStats::new();
            missed.count(&stats);
            let found = [
                stats.observed_missed.get(),
                stats.observed_missed_nfs.get(),
                stats.observed_missed_user.get(),
                stats.observed_missed_programs.get(),
                stats.observed_missed_memory.get(),
            ];
            check(row, found, expected)?;
        }
        Ok(())
    }
}
