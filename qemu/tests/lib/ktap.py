# SPDX-License-Identifier: GPL-2.0
"""KTAP: the results of a script, with the plan before the first one.

A script registers its checks, in their order, and then runs them:

    checks = Checks()
    checks.need("the module loads", module.load)
    checks.check("NULL is answered", answered, CALL, REPLY)
    checks.run()

A check is a call of a function. It fails if `same` finds a difference, if the function
calls `fail`, or if it raises an exception. An exception also ends the check. Each failure is
printed with the file and the line of every call that led to it. Each result begins with the name
of the script.

The checks run in a process of their own. When it ends, everything that they had open is
closed: removing a device afterwards would wait for that.

The script ends with 0, with 1 if a check failed, or with 4 if it was skipped as a whole. With
--list it only prints the names of its checks and their lines.
"""

import linecache
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType, TracebackType

PASSED, FAILED, SKIPPED = 0, 1, 4
POLL_SECONDS = 0.05
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCRIPT = os.path.splitext(os.path.basename(sys.argv[0]))[0]
CLEANING_UP = "everything is cleaned up"


class Failed(Exception):
    """Ends the check that raises it."""


class Skip(Exception):
    """Ends the check that raises it, which is skipped for this reason."""


class Terminated(BaseException):
    """SIGTERM has arrived: the script has taken too long."""


class Current:
    """The check that is running now."""

    failures = 0


def note(text: object) -> None:
    """Prints a diagnostic."""
    for line in str(text).splitlines() or [""]:
        print(f"# {line}", flush=True)


def show(value: object) -> str:
    """Returns octets in hexadecimal, and everything else as text."""
    return value.hex() or "no octet" if isinstance(value, bytes) else str(value)


def own(file: str) -> bool:
    return os.path.abspath(file) == os.path.abspath(__file__)


def place(file: str, line: int, function: str) -> str:
    return f"{os.path.relpath(file, TESTS)}:{line} in {function}: {linecache.getline(file, line).strip()}"


def calls(frame: FrameType | None) -> list[str]:
    """Returns the calls from a check to this frame, the outermost one first."""
    places = []
    while frame and frame.f_code is not Checks.outcome.__code__:
        if not own(frame.f_code.co_filename):
            places.append(place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return places[::-1]


def raised(traceback: TracebackType | None) -> list[str]:
    """Returns the calls from a check to the place of an exception."""
    places = []
    while traceback:
        code = traceback.tb_frame.f_code
        if not own(code.co_filename):
            places.append(place(code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return places


def where(places: list[str]) -> str:
    """Returns files and lines, without the line of the main program."""
    return ", ".join(line.split(" ")[0] for line in places[1:] or places)


def fail(text: object) -> bool:
    """Makes the check fail. Does not end it."""
    Current.failures += 1
    for line in calls(sys._getframe(1)):
        note(f"at {line}")
    note(text)
    return False


def same(what: str, wanted: object, found: object) -> bool:
    """Makes the check fail if the two differ. Does not end it."""
    return wanted == found or fail(f"{what}: wanted {show(wanted)}, found {show(found)}")


def wait_for(seconds: float, condition: Callable[..., object], *arguments: object) -> object:
    """Waits until the condition is true, and returns its value. Raises Failed after that time."""
    end = time.monotonic() + seconds
    while not (found := condition(*arguments)):
        if time.monotonic() > end:
            words = " ".join([condition.__name__, *map(str, arguments)])
            raise Failed(f"still false after {seconds} s: {words}")
        time.sleep(POLL_SECONDS)
    return found


class Checks:
    """The checks of a script."""

    def __init__(self) -> None:
        # Name, function, arguments, whether the later checks need it, and its lines.
        self.checks: list[tuple[str, Callable[..., object], tuple, dict, bool, list[str]]] = []
        self.cleanups: list[tuple[Callable[..., object], tuple]] = []
        self.conditions: list[tuple[Callable[[], bool], str]] = []
        self.failed = 0
        self.groups = 0

    def check(self, name: str, function: Callable[..., object], *arguments: object,
              **more: object) -> None:
        self.register(name, function, arguments, more, False)

    def need(self, name: str, function: Callable[..., object], *arguments: object,
             **more: object) -> None:
        """Registers a check. If it fails, all later ones are skipped."""
        self.register(name, function, arguments, more, True)

    def register(self, name: str, function: Callable[..., object], arguments: tuple, more: dict,
                 needed: bool) -> None:
        if any(name == other for other, *_ in self.checks) or name == CLEANING_UP:
            raise ValueError(f"two checks have the name {name!r}")
        self.checks.append((name, function, arguments, more, needed, calls(sys._getframe(2))))

    def group(self, register: Callable[[], None]) -> None:
        """Calls a function that registers the checks of one subject, which make their own
        connections. With `qemu/tests/run -k PATTERN`, only if its name matches. A script in which
        none matches fails."""
        if re.search(os.environ.get("CHECK_GROUPS", ""), register.__name__):
            self.groups += 1
            register()

    def skip_unless(self, condition: Callable[[], bool], reason: str) -> None:
        """Skips the whole script if the condition is false."""
        self.conditions.append((condition, reason))

    def at_end(self, function: Callable[..., object], *arguments: object) -> None:
        """Registers a function to run after the checks. The latest one runs first."""
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
        """Runs a check. Returns the reason if it was skipped."""
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
        print(f"{'not ok' if failed else 'ok'} {number} {SCRIPT}: {name}{directive}", flush=True)

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
        # Another SIGTERM must not end the cleanup.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        Current.failures = 0
        self.clean_up()
        self.leave("failed", self.failed)
        self.leave("unclean", Current.failures)

    def leave(self, key: str, value: int) -> None:
        """Passes a number to `after`, which runs in the other process."""
        os.write(self.pipe[1], f"{key} {value}\n".encode())

    def after(self, left: dict[str, int]) -> None:
        """Cleans up after the process of the checks has ended."""

    def end(self, process: int) -> None:
        """Waits for the process of the checks, and ends the script."""
        # SIGTERM also goes to the process of the checks, which then ends.
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
        if os.environ.get("CHECK_GROUPS") and not self.groups:
            sys.exit(f"no group of checks matches -k {os.environ['CHECK_GROUPS']}")
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
        # Without waiting for threads: after a failure, one may never end.
        os._exit(PASSED)


def terminate(*_: object) -> None:
    raise Terminated
