// SPDX-License-Identifier: GPL-2.0

//! Cases and their results.

use crate::gateway::Gateway;
use crate::peer::Target;

/// How binding a requirement is for the peer under test (RFC 2119). The word of its sentence decides,
/// in capitals or not:
/// - A MAY of the other side is a MUST for the peer, which has to cope with it (section 5).
/// - A sentence without such a word is a MUST if a peer that does not follow it does harm, or cannot
///   work with a peer that does (section 6). Otherwise it is a SHOULD.
/// - A sentence that alone does not require the accepted answer is a SHOULD, or a MAY if it also
///   permits another answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Level {
    Must,
    Should,
    May,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Must => "MUST",
            Level::Should => "SHOULD",
            Level::May => "MAY",
        }
    }
}

/// A precondition of a case besides a server that answers NULL.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Need {
    /// `--destructive`
    Destructive,
    /// `--draft-v2`
    DraftV2,
    /// `--export`
    Export,
}

impl Need {
    pub fn option(self) -> &'static str {
        match self {
            Need::Destructive => "--destructive",
            Need::DraftV2 => "--draft-v2",
            Need::Export => "--export",
        }
    }
}

/// One case.
#[derive(Debug)]
pub struct Case {
    /// Document, section and number: `rfc8166/4.5/1`. None is ever given to another case.
    pub id: &'static str,
    /// The required behaviour, in a few words.
    pub name: &'static str,
    pub level: Level,
    /// The requirement, in the words of the section that the id names. The name and the section of
    /// another one precede its words.
    pub requirement: &'static str,
    /// The messages that the suite sends.
    pub sends: &'static str,
    /// Which answers pass. Behind RDMA_ERROR the server may end the connection: NULL succeeds on
    /// another one then.
    pub accepts: &'static str,
    pub needs: &'static [Need],
    /// The switch of the suite's own test server or test client with which the case fails.
    pub fault: &'static str,
    pub run: Run,
}

/// The function of a case, by the role that it tests.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    Server(fn(&mut Target<'_>) -> Verdict),
    Client(fn(&mut Gateway<'_>) -> Verdict),
}

/// The case has passed. A case says so explicitly.
#[derive(Debug)]
pub struct Passed;

/// Why a case has not passed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Problem {
    /// The peer violates the requirement.
    Violation(String),
    /// The peer lacks something that is optional.
    Unimplemented(String),
    /// It cannot be told whether the peer meets the requirement.
    Inconclusive(String),
    /// The case does not apply.
    Skip(String),
}

pub type Verdict = Result<Passed, Problem>;

/// Returns a violation.
pub fn violation<T>(why: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Violation(why.into()))
}

pub fn unimplemented<T>(why: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Unimplemented(why.into()))
}

pub fn inconclusive<T>(why: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Inconclusive(why.into()))
}

pub fn skip<T>(why: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Skip(why.into()))
}

/// The result of a case.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Outcome {
    Pass,
    Fail,
    /// A SHOULD is not met.
    NonStrict,
    Unimplemented,
    Inconclusive,
    Skipped,
}

impl Outcome {
    pub const ALL: [Outcome; 6] = [
        Outcome::Pass,
        Outcome::Fail,
        Outcome::NonStrict,
        Outcome::Unimplemented,
        Outcome::Inconclusive,
        Outcome::Skipped,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Outcome::Pass => "pass",
            Outcome::Fail => "fail",
            Outcome::NonStrict => "non-strict",
            Outcome::Unimplemented => "unimplemented",
            Outcome::Inconclusive => "inconclusive",
            Outcome::Skipped => "skipped",
        }
    }

    pub fn of(level: Level, verdict: &Verdict) -> Self {
        match verdict {
            Ok(Passed) => Outcome::Pass,
            Err(Problem::Violation(_)) => match level {
                Level::Must => Outcome::Fail,
                Level::Should => Outcome::NonStrict,
                Level::May => Outcome::Unimplemented,
            },
            Err(Problem::Unimplemented(_)) => Outcome::Unimplemented,
            Err(Problem::Inconclusive(_)) => Outcome::Inconclusive,
            Err(Problem::Skip(_)) => Outcome::Skipped,
        }
    }
}

impl Problem {
    pub fn reason(&self) -> &str {
        match self {
            Problem::Violation(why)
            | Problem::Unimplemented(why)
            | Problem::Inconclusive(why)
            | Problem::Skip(why) => why,
        }
    }
}

/// Writes a case: id, name, level, requirement, what is sent, what is accepted, the fault with which
/// it fails, needs, and its function. `client` begins a case for clients. `@` is for the macro itself.
macro_rules! case {
    (client $($case:tt)*) => { $crate::case::case!(@Client $($case)*) };
    (
        @$role:ident $id:literal, $name:literal, $level:ident, $requirement:expr,
        sends $sends:literal, accepts $accepts:literal, fault $fault:literal,
        needs [$($need:ident),*], $run:expr
    ) => {
        $crate::case::Case {
            id: $id,
            name: $name,
            level: $crate::case::Level::$level,
            requirement: $requirement,
            sends: $sends,
            accepts: $accepts,
            needs: &[$($crate::case::Need::$need),*],
            fault: $fault,
            run: $crate::case::Run::$role($run),
        }
    };
    (
        @$role:ident $id:literal, $name:literal, $level:ident, $requirement:expr,
        sends $sends:literal, accepts $accepts:literal, fault $fault:literal, $run:expr
    ) => {
        $crate::case::case!(@$role $id, $name, $level, $requirement, sends $sends,
            accepts $accepts, fault $fault, needs [], $run)
    };
    ($($case:tt)*) => { $crate::case::case!(@Server $($case)*) };
}
pub(crate) use case;
