// SPDX-License-Identifier: GPL-2.0

#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <net/net_namespace.h>

@shim_get_current_net

@shim_get_net

@shim_put_net

@shim_ifindex
