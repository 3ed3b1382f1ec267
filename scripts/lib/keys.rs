// SPDX-License-Identifier: GPL-2.0

//! Prints what src/pure/text/keys.rs and src/pure/text/control_keys.rs declare. scripts/keys
//! compiles and runs it.
//!
//! A line has the file, the name in that file, the kind, and the text of the document, with tabs
//! between them. The line of a heading has no name. The line of a column has its key, too. The line of
//! a control key also has the default, and the lines that take it.

#[path = "../../src/pure/text/control_keys.rs"]
mod control_keys;
#[path = "../../src/pure/text/keys.rs"]
mod keys;

macro_rules! info {
    ($it:ident $($heading:literal if $pattern:pat = $subject:expr => {
        $($(#[doc = $doc:literal])* $key:ident: $kind:ident = $value:expr;)*
    })*) => {
        $(
            println!("info\t\t\t{}", $heading);
            $(println!("info\t{}\t{}\t{}", stringify!($key), stringify!($kind), concat!($($doc),*));)*
        )*
    };
}

macro_rules! stats {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        $(println!("stats\t{}\tNumber\t{}", stringify!($name), concat!($($doc),*));)*
    };
}

// The kind of a reason is the value of `observing` that it causes.
macro_rules! reasons {
    ($($observing:literal {
        $($(#[doc = $sentence:literal])* $name:ident = $word:literal;)*
    })*) => {
        $($(println!("reasons\t{}\t{}\t{}", $word, $observing, concat!($($sentence),*));)*)*
    };
}

macro_rules! connections {
    ($($column:ident = $key:ident: $kind:ident,)*) => {
        $(println!(
            "connections\t{}\t{}\t``{}``\t{}",
            stringify!($column), stringify!($kind), stringify!($key), stringify!($key),
        );)*
    };
}

macro_rules! history {
    ($($(#[doc = $doc:literal])* $column:ident = $key:ident: $kind:ident,)*) => {
        $(println!(
            "history\t{}\t{}\t{}\t{}",
            stringify!($column), stringify!($kind), concat!($($doc),*), stringify!($key),
        );)*
    };
}

macro_rules! control {
    ($(
        $(#[doc = $doc:literal])* $key:ident: $type:ident
            $(($low:literal to $high:literal $($unit:literal)?))?
            $(= $default:tt $(($other:ident: $others:tt))?)? in $($line:ident)*;
    )*) => {
        $(println!(
            "control\t{}\t{}\t{}\t{}\t{}",
            stringify!($key), stringify!($type), concat!($($low, " to ", $high, ":",)? $($doc),*),
            concat!($(stringify!($default) $(, "; ", stringify!($other), ": ", stringify!($others))?)?),
            stringify!($($line)*),
        );)*
    };
}

fn main() {
    control_keys::control_keys!(control);
    keys::info_keys!(info);
    keys::stats_keys!(stats);
    keys::observing_reasons!(reasons);
    keys::connections_columns!(connections);
    keys::history_columns!(history);
}
