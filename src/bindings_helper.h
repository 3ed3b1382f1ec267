/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What bindings_generated.rs is made from; bindgen_parameters says which of it.
 */

#include <linux/in.h>
#include <linux/in6.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "observer/probes.h"
#include "shim.h"
