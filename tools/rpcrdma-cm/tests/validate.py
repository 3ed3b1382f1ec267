#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compares JSON documents with a schema.

usage: validate.py SCHEMA <DOCUMENTS

DOCUMENTS has one a line. Each must be valid. The first document of each kind must become invalid
without one of its keys, with a surplus key, and with a value of another type: a schema that allows
everything would prove nothing."""
import copy
import json
import sys

import jsonschema

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
# The schema does not fix the names in these objects.
FREE = {"labels"}


def places(value, path=()):
    """Yields the paths of all objects in a document."""
    if isinstance(value, dict):
        yield path
        for key, below in value.items():
            if key not in FREE:
                yield from places(below, path + (key,))
    elif value and isinstance(value, list):
        yield from places(value[0], path + (0,))


def short(value):
    """Returns the document with one item of each list, which stands for the others."""
    if isinstance(value, dict):
        return {key: short(below) for key, below in value.items()}
    return [short(below) for below in value[:1]] if isinstance(value, list) else value


def at(document, path):
    for step in path:
        document = document[step]
    return document


def spoilt(document):
    for path in places(document):
        for key in at(document, path):
            for change in ("remove", "retype"):
                other = copy.deepcopy(document)
                if change == "remove":
                    del at(other, path)[key]
                else:
                    at(other, path)[key] = {"no": ["such", "value"]}
                yield f"{change} {'/'.join(map(str, path + (key,)))}", other
        other = copy.deepcopy(document)
        at(other, path)["surplus"] = 1
        yield f"add {'/'.join(map(str, path + ('surplus',)))}", other


count = 0
kinds = set()
for line in sys.stdin:
    document = json.loads(line)
    errors = [error for error in validator.iter_errors(document)]
    if errors:
        best = jsonschema.exceptions.best_match(errors)
        sys.exit(f"{line}: {'/'.join(map(str, best.absolute_path))}: {best.message}")
    count += 1
    if document["kind"] in kinds:
        continue
    kinds.add(document["kind"])
    for what, other in spoilt(short(document)):
        if validator.is_valid(other):
            sys.exit(f"{line}: valid in spite of: {what}")
print(f"{count} documents")
