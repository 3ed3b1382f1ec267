// SPDX-License-Identifier: GPL-2.0

//! `info`, whole files, octet for octet.

use kernel::prelude::*;

#[kunit_tests(rpcrdma_cm_info)]
mod tests {
    use super::*;
    use crate::{
        cases::{
            difference,
            info::{
                each_combination,
                CASES, //
            }, //
        },
        pure::text::info::info,
        rows::check, //
    };

    #[test]
    fn files() -> Result {
        for case in CASES {
            let snapshot = case.snapshot();
            let differs = difference(case.text, |out| info(&snapshot, out));
            check(case.name, differs, None)?;
        }
        Ok(())
    }

    #[test]
    fn every_origin_role_state_and_private_data() -> Result {
        each_combination(|snapshot, pieces| {
            let differs = difference(pieces, |out| info(snapshot, out));
            check(
                format_args!("{} {} {}", snapshot.origin, snapshot.role, snapshot.state),
                differs,
                None,
            )
        })
    }
}
