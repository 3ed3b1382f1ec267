// SPDX-License-Identifier: GPL-2.0

//! All cases, a file for each part of a document.

mod rfc5531;
mod rfc8166_chunks;
mod rfc8166_credits;
mod rfc8166_header;
mod rfc8166_nfs;
mod rfc8167;
mod rfc8797;

use crate::case::Case;

/// Returns all cases, in order.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [
        rfc8797::CASES,
        rfc8166_header::CASES,
        rfc8166_credits::CASES,
        rfc8166_chunks::CASES,
        rfc8166_nfs::CASES,
        rfc8167::CASES,
        rfc5531::CASES,
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::all;

    #[test]
    fn ids_and_names_are_unique() {
        let mut ids = BTreeSet::new();
        let mut names = BTreeSet::new();
        for case in all() {
            assert!(ids.insert(case.id), "{} stands twice", case.id);
            assert!(names.insert(case.name), "{} stands twice", case.name);
        }
    }

    #[test]
    fn every_case_is_described() {
        for case in all() {
            for text in [case.requirement, case.sends, case.accepts, case.fault] {
                assert!(!text.is_empty(), "{}", case.id);
            }
        }
    }
}
