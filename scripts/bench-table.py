#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints medians and quartiles of the results, and of their ratios to the first variant
of the same measurement.

usage: bench-table.py [--json] FILE... <ENVIRONMENT

FILE has lines of MEASURED, VARIANT and VALUE, separated by tabs. ENVIRONMENT has lines of
KEY: VALUE, which are printed above the table.

Results whose names end in ", ns" or ", instructions", those of bench-parse, are printed in a
table of medians of their own, with a column for each variant."""

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

def is_of(unit: str, name: str) -> bool:
    return name.endswith(f", {unit}")


print(environment)
units = ("ns", "instructions")
rows = [row for row in results if not any(is_of(unit, row[0]) for unit in units)]
if rows:
    width = max(30, *(len(name) + 1 for name, *_ in rows))
    print(f"{'':{width}}{'variant':15}{'median':>8}{'quartiles':>16}{'ratio':>8}{'quartiles':>16}")
for name, variant, values, ratios in rows:
    # Whole numbers are shown without decimals.
    digits = 0 if all(value.is_integer() for value in values) else 1
    print(f"{name:{width}}{variant:15}{spread(values, digits)}{spread(ratios, 2)}")

for unit in units:
    medians: dict[str, dict[str, float]] = {}
    columns: dict[str, None] = {}
    for name, variant, values, _ in results:
        if is_of(unit, name):
            medians.setdefault(name.removesuffix(f", {unit}"), {})[variant] = statistics.median(values)
            columns[variant] = None
    if medians:
        print(f"\n{f'parsing, {unit}':30}" + "".join(f"{column:>16}" for column in columns))
    for name, cells in medians.items():
        digits = 1 if unit == "ns" else 0
        line = f"{name:30}"
        for column in columns:
            line += f"{cells[column]:16.{digits}f}" if column in cells else f"{'':16}"
        print(line.rstrip())
