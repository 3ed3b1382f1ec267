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
# Each suite of the sources must have passed: a log that has lost lines has no `not ok`, either.
mapfile -t suites < <(grep -rhoP '^#\[kunit_tests\(\K\w+' ../../kunit)
status=$((${#suites[@]} == 0))
for suite in "${suites[@]}"; do
	grep -qE "^ok [0-9]+ $suite\$" <<<"$ktap" && continue
	echo "the suite $suite has not passed"
	status=1
done
! grep -q 'not ok ' <<<"$ktap" && exit "$status"
