# SPDX-License-Identifier: GPL-2.0
"""KTAP: the results of a script, with the plan before the first one.

A script registers its checks, in their order, and then runs them:

    checks = Checks()
    checks.need("the module loads", module.load)
    checks.check("NULL is answered", answered, CALL, REPLY)
    checks.run()

A check is a call of a function. It fails if the function calls `same` or `fail`, after
which it goes on, or raises an exception, which ends it. Each failure is printed with the
file and the line of every call that led to it.

The checks have a process of their own. With it everything is gone that they had open, for
which a device would wait that is removed afterwards.

The script ends with 0, with 1 where a check failed, or with 4 where it was skipped as a
whole. With --list it prints the names of its checks and where they are, and runs nothing.
"""

import linecache
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType, TracebackType

PASSED, FAILED, SKIPPED = 0, 1, 4
POLL_SECONDS = 0.05
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CLEANING_UP = "everything is cleaned up"


class Failed(Exception):
    """Ends the check that raises it."""


class Skip(Exception):
    """Ends the check that raises it, which is skipped for this reason."""


class Terminated(BaseException):
    """SIGTERM: the script has taken too long."""


class Current:
    """The check that runs."""

    failures = 0


def note(text: object) -> None:
    """Prints a diagnostic."""
    for line in str(text).splitlines() or [""]:
        print(f"# {line}", flush=True)


def show(value: object) -> str:
    """Octets in hexadecimal, as they stand in the RFCs; everything else as it is."""
    return value.hex() or "no octet" if isinstance(value, bytes) else str(value)


def own(file: str) -> bool:
    return os.path.abspath(file) == os.path.abspath(__file__)


def place(file: str, line: int, function: str) -> str:
    return f"{os.path.relpath(file, TESTS)}:{line} in {function}: {linecache.getline(file, line).strip()}"


def calls(frame: FrameType | None) -> list[str]:
    """Returns the calls that have led here from a check, the first one first."""
    places = []
    while frame and frame.f_code is not Checks.outcome.__code__:
        if not own(frame.f_code.co_filename):
            places.append(place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return places[::-1]


def raised(traceback: TracebackType | None) -> list[str]:
    """Returns the same of an exception."""
    places = []
    while traceback:
        code = traceback.tb_frame.f_code
        if not own(code.co_filename):
            places.append(place(code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return places


def where(places: list[str]) -> str:
    """Returns files and lines, without the main program's."""
    return ", ".join(line.split(" ")[0] for line in places[1:] or places)


def fail(text: object) -> bool:
    """Makes the check that runs fail, and lets it go on."""
    Current.failures += 1
    for line in calls(sys._getframe(1)):
        note(f"at {line}")
    note(text)
    return False


def same(what: str, wanted: object, found: object) -> bool:
    """Makes the check that runs fail where the two differ, and lets it go on."""
    return wanted == found or fail(f"{what}: wanted {show(wanted)}, found {show(found)}")


def wait_for(seconds: float, condition: Callable[..., object], *arguments: object) -> object:
    """Waits until the condition is true, and returns it; not longer than that."""
    end = time.monotonic() + seconds
    while not (found := condition(*arguments)):
        if time.monotonic() > end:
            words = " ".join([condition.__name__, *map(str, arguments)])
            raise Failed(f"waited {seconds} s in vain for {words}")
        time.sleep(POLL_SECONDS)
    return found


class Checks:
    """The checks of a script."""

    def __init__(self) -> None:
        # Each with its name, its function and its arguments, whether the others need it,
        # and where it is.
        self.checks: list[tuple[str, Callable[..., object], tuple, dict, bool, list[str]]] = []
        self.cleanups: list[tuple[Callable[..., object], tuple]] = []
        self.conditions: list[tuple[Callable[[], bool], str]] = []
        self.failed = 0

    def check(self, name: str, function: Callable[..., object], *arguments: object,
              **more: object) -> None:
        self.register(name, function, arguments, more, False)

    def need(self, name: str, function: Callable[..., object], *arguments: object,
             **more: object) -> None:
        """Where this check fails, those that follow are skipped."""
        self.register(name, function, arguments, more, True)

    def register(self, name: str, function: Callable[..., object], arguments: tuple, more: dict,
                 needed: bool) -> None:
        if any(name == other for other, *_ in self.checks) or name == CLEANING_UP:
            raise ValueError(f"two checks have the name {name!r}")
        self.checks.append((name, function, arguments, more, needed, calls(sys._getframe(2))))

    def skip_unless(self, condition: Callable[[], bool], reason: str) -> None:
        """Skips the whole script where the condition does not hold."""
        self.conditions.append((condition, reason))

    def at_end(self, function: Callable[..., object], *arguments: object) -> None:
        """Runs when the checks are over, the last one first."""
        self.cleanups.append((function, arguments))

    def clean_up(self) -> None:
        while self.cleanups:
            function, arguments = self.cleanups.pop()
            try:
                function(*arguments)
            except Exception as error:
                self.report(error)

    def report(self, error: BaseException) -> None:
        Current.failures += 1
        for line in raised(error.__traceback__):
            note(f"at {line}")
        note(error if isinstance(error, Failed) else f"{type(error).__name__}: {error}")

    def outcome(self, function: Callable[..., object], arguments: tuple, more: dict) -> str:
        """Runs a check, and returns why it was skipped, if it was."""
        try:
            function(*arguments, **more)
        except Skip as skip:
            return str(skip)
        except (Exception, Terminated) as error:
            self.report(error)
            if isinstance(error, Terminated):
                raise
        return ""

    def result(self, number: int, name: str, skipped: str = "") -> None:
        failed = Current.failures > 0
        self.failed += failed
        directive = f" # SKIP {skipped}" if skipped and not failed else ""
        print(f"{'not ok' if failed else 'ok'} {number} {name}{directive}", flush=True)

    def run_all(self) -> None:
        missing = ""
        for number, (name, function, arguments, more, needed, places) in enumerate(self.checks, 1):
            Current.failures = 0
            if missing:
                self.result(number, name, missing)
                continue
            skipped = ""
            try:
                skipped = self.outcome(function, arguments, more)
            except Terminated:
                missing = "the script was terminated"
            if Current.failures:
                note(f"the check is at {where(places)}")
                missing = missing or (f"needs: {name}" if needed else "")
            self.result(number, name, skipped)
        # SIGTERM does not end this a second time.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        Current.failures = 0
        self.clean_up()
        self.leave("failed", self.failed)
        self.leave("unclean", Current.failures)

    def leave(self, key: str, value: int) -> None:
        """Leaves a number to `after`."""
        os.write(self.pipe[1], f"{key} {value}\n".encode())

    def after(self, left: dict[str, int]) -> None:
        """Cleans up when the process of the checks is gone."""

    def end(self, process: int) -> None:
        """Waits for that, and ends the script."""
        # SIGTERM is for that, too.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.close(self.pipe[1])
        with open(self.pipe[0], encoding="ascii") as file:
            left = {key: int(value) for key, value in map(str.split, file)}
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        Current.failures = left.get("unclean", 0)
        self.failed = left.setdefault("failed", 1)
        if status:
            fail(f"the process of the checks ended with {status}")
        try:
            self.after(left)
        except Exception as error:
            self.report(error)
        self.result(len(self.checks) + 1, CLEANING_UP)
        sys.exit(FAILED if self.failed else PASSED)

    def run(self) -> None:
        """Prints the plan, runs the checks, and ends the script."""
        if sys.argv[1:] == ["--list"]:
            for name, *_, places in self.checks:
                print(f"{where(places)}\t{name}")
            sys.exit(PASSED)
        for condition, reason in self.conditions:
            if not condition():
                print(f"KTAP version 1\n1..0 # SKIP {reason}", flush=True)
                sys.exit(SKIPPED)
        print(f"KTAP version 1\n1..{len(self.checks) + 1}", flush=True)
        self.pipe = os.pipe()
        if process := os.fork():
            self.end(process)
        signal.signal(signal.SIGTERM, terminate)
        self.run_all()
        sys.stdout.flush()
        # Not waiting for threads: one that a failure left may never end.
        os._exit(PASSED)


def terminate(*_: object) -> None:
    raise Terminated
