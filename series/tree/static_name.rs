/// Returns a C string that has one address, even if several crates instantiate the generic function
/// in which it is: lockdep compares the addresses of the names of a lock class.
#[doc(hidden)]
#[macro_export]
macro_rules! static_name {
    ($name:expr) => {{
        static NAME: &$crate::str::CStr = $crate::c_str!($name);
        NAME
    }};
}

