// SPDX-License-Identifier: GPL-2.0

//! What libFuzzer calls with each input. A panic aborts, which it takes for a crash.

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
        // SAFETY: libFuzzer passes `size` octets at `data`, and leaves them alone until this
        // returns.
        unsafe { slice::from_raw_parts(data, size) }
    };
    crate::fuzz(octets);
    0
}
