#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints how much of each file all targets together reach, and the lines that none reaches.
Reads the exports of llvm-cov, TARGET.text and TARGET.lcov. llvm-cov itself cannot add them up:
it takes one file in several programs for different code."""

import json
import os
import sys

CODE = 0

# reached[FILE][PLACE]: whether any target reaches the place.
Reached = dict[str, dict[tuple[int, ...], bool]]
regions: Reached = {}
lines: Reached = {}


def note(reached: Reached, file: str, place: tuple[int, ...], count: int) -> None:
    places = reached.setdefault(os.path.relpath(file), {})
    places[place] = places.get(place, False) or count > 0


for target in sys.argv[1:]:
    with open(f"{target}.lcov", encoding="utf-8") as records:
        for record in records:
            match record.rstrip("\n").split(":", 1):
                case "SF", name:
                    file = name
                case "DA", values:
                    line, count = values.split(",")[:2]
                    note(lines, file, (int(line),), int(count))
    with open(f"{target}.text", encoding="utf-8") as exported:
        for function in json.load(exported)["data"][0]["functions"]:
            for *place, count, index, _, kind in function["regions"]:
                file = function["filenames"][index]
                if kind == CODE and os.path.relpath(file) in lines:
                    note(regions, file, tuple(place), count)


def share(places: dict[tuple[int, ...], bool]) -> str:
    reached = sum(places.values())
    return f"{reached:5} of {len(places):4} {100 * reached / len(places):6.1f}%"


print(f"{'covered by the corpus':29}{'lines':>21}{'regions':>21}  not reached")
for file, places in sorted(lines.items()):
    missed = sorted({place[0] for place, hit in regions[file].items() if not hit})
    where = " ".join(map(str, missed)) or "-"
    print(f"{file:29}{share(places):>21}{share(regions[file]):>21}  {where}")
