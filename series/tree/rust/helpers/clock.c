// SPDX-License-Identifier: GPL-2.0

#include <linux/sched/clock.h>

@shim_log_clock
