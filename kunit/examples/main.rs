// SPDX-License-Identifier: GPL-2.0

//! A module that runs the examples in the documentation of src/base and src/rdma, as KUnit tests
//! over the RDMA device that has the IPv4 address of its parameter. scripts/checks/examples adds
//! the layer with the examples.

#![crate_name = "rpcrdma_cm_examples"]
#![allow(dead_code, unused)]

use kernel::prelude::*;

use base::unload::{
    guarded_module,
    Hold, //
};
use rdma::examples::Examples;

module! {
    type: RpcrdmaCmExamples,
    name: "rpcrdma_cm_examples",
    authors: ["The rpcrdma_cm developers"],
    description: "Examples of rdma_cm in Rust",
    license: "GPL",
    params: {
        address: u32 {
            default: 0,
            description: "The IPv4 address of the device, as a number",
        },
    },
}

guarded_module! {
    /// The module.
    struct RpcrdmaCmExamples {
        _examples: Examples = new,
    }
    teardown: c"examples_teardown",
}

fn new(hold: &Hold) -> Result<Examples> {
    let address = kernel_series::parameter(module_parameters::address.value());
    Examples::new(hold, address.into())
}
