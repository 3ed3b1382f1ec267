/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The headers from which bindgen makes bindings_generated.rs. bindgen_parameters lists
 * the items to bind.
 */

#include <linux/in.h>
#include <linux/in6.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "observer/probes.h"
#include "shim.h"
