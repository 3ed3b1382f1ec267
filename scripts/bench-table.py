#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints medians, quartiles and ratios of what qemu/bench.sh has measured."""

import statistics
import sys

MEASURED = ["mount and unmount, ms", "write, MiB/s", "read, MiB/s"]
MODES = ["absent", "observe=0", "observe=1"]

rows: dict[str, list[list[int]]] = {mode: [] for mode in MODES}
with open(sys.argv[1], encoding="utf-8") as lines:
    for line in lines:
        mode, *values = line.split()
        if mode in rows:
            rows[mode].append([int(value) for value in values])

print(f"{'':24}{'module':12}{'median':>8}{'quartiles':>14}{'ratio':>8}")
for column, name in enumerate(MEASURED):
    base = statistics.median(row[column] for row in rows["absent"])
    for mode in MODES:
        low, median, high = statistics.quantiles(
            (row[column] for row in rows[mode]), n=4, method="inclusive"
        )
        quartiles = f"{low:.0f} to {high:.0f}"
        print(f"{name:24}{mode:12}{median:8.0f}{quartiles:>14}{median / base:8.3f}")
