// SPDX-License-Identifier: GPL-2.0

//! All cases, a file for each part of a document.

mod client_draft_v2;
mod client_rfc8166;
mod client_rfc8167;
mod client_rfc8267;
mod client_rfc8797;
mod draft_v2;
mod rfc5531;
mod rfc8166_chunks;
mod rfc8166_credits;
mod rfc8166_header;
mod rfc8166_nfs;
mod rfc8167;
mod rfc8267;
mod rfc8267_eligible;
mod rfc8267_nfs;
mod rfc8797;

use crate::case::Case;

/// Returns the cases for clients, in order.
pub fn client() -> impl Iterator<Item = &'static Case> {
    [
        client_rfc8797::CASES,
        client_rfc8166::CASES,
        client_rfc8167::CASES,
        client_rfc8267::CASES,
        client_draft_v2::CASES,
    ]
    .into_iter()
    .flatten()
}

/// Returns the cases for servers, in order.
pub fn server() -> impl Iterator<Item = &'static Case> {
    [
        rfc8797::CASES,
        rfc8166_header::CASES,
        rfc8166_credits::CASES,
        rfc8166_chunks::CASES,
        rfc8166_nfs::CASES,
        rfc8167::CASES,
        rfc8267::CASES,
        rfc8267_nfs::CASES,
        rfc8267_eligible::CASES,
        rfc5531::CASES,
        draft_v2::CASES,
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::client;
    use super::server;

    #[test]
    fn ids_and_names_are_unique() {
        let mut ids = BTreeSet::new();
        for cases in [server().collect::<Vec<_>>(), client().collect()] {
            let mut names = BTreeSet::new();
            for case in cases {
                assert!(ids.insert(case.id), "{} stands twice", case.id);
                assert!(names.insert(case.name), "{} stands twice", case.name);
            }
        }
    }

    #[test]
    fn every_case_is_described() {
        for case in server().chain(client()) {
            for text in [case.requirement, case.sends, case.accepts, case.fault] {
                assert!(!text.is_empty(), "{}", case.id);
            }
        }
    }
}
