#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints medians and quartiles of the results, and of their ratios to the first variant
of the same measurement.

usage: scripts/benchmarks/table.py [--json] FILE... <ENVIRONMENT

FILE has lines of MEASURED, VARIANT and VALUE, separated by tabs. ENVIRONMENT has lines of
KEY: VALUE, which are printed above the table."""

import json
import statistics
import sys

files = [argument for argument in sys.argv[1:] if argument != "--json"]
environment = sys.stdin.read()

# measured[NAME][VARIANT]: the values, in the order in which they were measured.
measured: dict[str, dict[str, list[float]]] = {}
for file in files:
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            match line.rstrip("\n").split("\t"):
                case name, variant, value:
                    measured.setdefault(name, {}).setdefault(variant, []).append(float(value))


def quartiles(values: list[float]) -> list[float]:
    # statistics.quantiles needs two values.
    if len(values) == 1:
        return values * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def spread(values: list[float], digits: int) -> str:
    low, median, high = quartiles(values)
    between = f"{low:.{digits}f} to {high:.{digits}f}" if len(values) > 1 else ""
    return f"{median:8.{digits}f}{between:>16}"


results = []
for name, variants in measured.items():
    base = next(iter(variants.values()))
    for variant, values in variants.items():
        ratios = [value / beside for value, beside in zip(values, base, strict=True)]
        results.append((name, variant, values, ratios))

if "--json" in sys.argv:
    keys = ("low", "median", "high")
    pairs = (line.split(":", 1) for line in environment.splitlines())
    document = {
        "environment": {key: value.strip() for key, value in pairs},
        "results": [
            {
                "measured": name,
                "variant": variant,
                "value": dict(zip(keys, quartiles(values))),
                "ratio": dict(zip(keys, quartiles(ratios))),
            }
            for name, variant, values, ratios in results
        ],
    }
    print(json.dumps(document, indent=1))
    sys.exit()

print(environment)
width = max([30] + [len(name) + 1 for name, *_ in results])
print(f"{'':{width}}{'variant':15}{'median':>8}{'quartiles':>16}{'ratio':>8}{'quartiles':>16}")
for name, variant, values, ratios in results:
    # Whole numbers are shown without decimals.
    digits = 0 if all(value.is_integer() for value in values) else 1
    print(f"{name:{width}}{variant:15}{spread(values, digits)}{spread(ratios, 2)}")
