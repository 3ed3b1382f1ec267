// SPDX-License-Identifier: GPL-2.0

//! The function that libFuzzer calls with each input. A panic aborts, so libFuzzer sees a crash.

use std::{
    ffi::c_int,
    slice, //
};

#[expect(
    unsafe_code,
    reason = "the name and the arguments are those of libFuzzer"
)]
#[no_mangle]
extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> c_int {
    let octets = if size == 0 {
        // `data` may be NULL then.
        &[]
    } else {
        // SAFETY: libFuzzer passes `size` octets at `data`, and does not change them until this
        // function returns.
        unsafe { slice::from_raw_parts(data, size) }
    };
    crate::fuzz(octets);
    0
}
