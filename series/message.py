#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# usage: series/message.py REPORT
#
# Prints the message of the commit that a report proposes: its text in lines of 72 columns, under the
# subject that series/fixes has for it.
import pathlib
import re
import sys
import textwrap

report = pathlib.Path(sys.argv[1])
subjects = pathlib.Path(__file__).with_name("fixes").read_text(encoding="utf8")
subject = re.search(rf"(?m)^{re.escape(report.stem)} (.*)", subjects)
if not subject:
    sys.exit(f"series/fixes has no subject for {report}")
text = report.read_text(encoding="utf8").split("\n\n", 1)[1].split("\n---\n")[0]
text = text.strip().removeprefix("Hi,").strip()
text = re.sub(r"(?m)^Suggested fix(?:, for [\d.]+)?(?:, compiled)?([:.]) ",
              lambda match: "The fix: " if match[1] == ":" else "", text)
text = re.sub(r"^(in|as) ", lambda match: match[0].capitalize(), text)
print(subject[1])
for block in re.split(r"\n{2,}", text):
    lines = block.split("\n")
    item = lines[0].startswith("- ") and all(line.startswith("  ") for line in lines[1:])
    if item or not any(line.startswith((" ", "\t")) for line in lines):
        block = textwrap.fill(" ".join(line.strip() for line in lines), 72, break_long_words=False,
                              break_on_hyphens=False, subsequent_indent="  " if item else "")
    print(f"\n{block}")
