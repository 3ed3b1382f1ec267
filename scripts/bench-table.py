#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints medians and quartiles of what qemu/bench.sh has measured, and of the
ratios to what was measured beside it: the variant of each that came first."""

import statistics
import sys

# measured[NAME][VARIANT]: the values, as they came.
measured: dict[str, dict[str, list[int]]] = {}
with open(sys.argv[1], encoding="utf-8") as lines:
    for line in lines:
        match line.rstrip("\n").split("\t"):
            case name, variant, value:
                measured.setdefault(name, {}).setdefault(variant, []).append(int(value))


def spread(values: list[int] | list[float], digits: int) -> str:
    if len(values) == 1:  # has no quartiles
        return f"{values[0]:8.{digits}f}{'':16}"
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    quartiles = f"{low:.{digits}f} to {high:.{digits}f}"
    return f"{median:8.{digits}f}{quartiles:>16}"


print(f"{'':30}{'variant':15}{'median':>8}{'quartiles':>16}{'ratio':>8}{'quartiles':>16}")
for name, variants in measured.items():
    base = next(iter(variants.values()))
    for variant, values in variants.items():
        ratios = [value / beside for value, beside in zip(values, base, strict=True)]
        print(f"{name:30}{variant:15}{spread(values, 0)}{spread(ratios, 2)}")
