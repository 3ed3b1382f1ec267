// SPDX-License-Identifier: GPL-2.0

//! `connections` and `listeners`, whole files, octet for octet.

use kernel::prelude::*;

#[kunit_tests(rpcrdma_cm_tables)]
mod tests {
    use super::*;
    use crate::{
        cases::{
            difference,
            tables::{
                connections,
                listeners,
                states,
                CONNECTIONS,
                LISTENERS,
                NO_CONNECTIONS,
                NO_LISTENERS,
                STATES, //
            }, //
        },
        pure::text::tables::ConnectionColumns,
        rows::check, //
    };

    #[test]
    fn connections_files() -> Result {
        let none = difference(&[NO_CONNECTIONS], |out| {
            ConnectionColumns::new().header(out)
        });
        check("no connections", none, None)?;
        check(
            "room",
            NO_CONNECTIONS.len() <= ConnectionColumns::LINE,
            true,
        )?;
        check("connections", difference(&[CONNECTIONS], connections), None)?;
        check("every state", difference(&[STATES], states), None)
    }

    #[test]
    fn listeners_files() -> Result {
        let none = difference(&[NO_LISTENERS], |out| listeners(false, out));
        check("no listeners", none, None)?;
        check(
            "listeners",
            difference(&[LISTENERS], |out| listeners(true, out)),
            None,
        )
    }
}
