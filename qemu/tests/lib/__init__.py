# SPDX-License-Identifier: GPL-2.0
"""The library of the guest's tests in Python: docs/testing.md says how to write one."""
