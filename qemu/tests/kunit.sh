#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The KUnit suites. KUnit runs them when the module is loaded, and logs the results.
#
# test: debug.rxe
set -uo pipefail

echo 'kunit: starts' >/dev/kmsg
insmod "${MODULE%/*}/kunit/rpcrdma_cm_kunit.ko" || exit
rmmod rpcrdma_cm_kunit || exit
ktap=$(dmesg --notime | tac | sed '/^kunit: starts$/,$d' | tac |
	grep -E '^ *(KTAP|ok|not ok|#|[0-9]+\.\.|rpcrdma_cm_kunit:)')
echo "$ktap"
! grep -q 'not ok ' <<<"$ktap" && grep -q '^ok ' <<<"$ktap"
