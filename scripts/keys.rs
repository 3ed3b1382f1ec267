// SPDX-License-Identifier: GPL-2.0

//! Prints what src/pure/text/keys.rs declares. scripts/keys compiles and runs it.
//!
//! A line has the file, the name in that file, the kind, and the text of docs/ABI, with tabs
//! between them. The line of a heading has no name. That of a column has its key, too.

#[path = "../src/pure/text/keys.rs"]
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

fn main() {
    keys::info_keys!(info);
    keys::stats_keys!(stats);
    keys::connections_columns!(connections);
    keys::history_columns!(history);
}
