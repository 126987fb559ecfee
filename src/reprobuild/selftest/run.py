"""Run the self-test inside an image and read its report.

The program itself is ``in_image/selftest``, whose command_line.py describes the report; report.py reads it.
It is handed in from here: an image may bring another under its name. No report, or one that cannot be read in
full, is a `SelfTestError`.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, Protocol, TypeVar, assert_never

from ..errors import HostError, SelfTestError
from ..host import process
from ..host.stderr_listener import heard_by
from ..request.image_layout import OWN_FOLDER, SITE_PREFIX
from .cost import CostReport
from .report import Mode, SelfTestReport

PYTHON = f"{SITE_PREFIX}/bin/python"
PROGRAM = "selftest.py"
"""The file that is started, of those that are handed in."""

_FOLDER = "/tmp/reprobuild-selftest"  # noqa: S108 -- in the container, which has a /tmp of its own
_START = f"""
import base64, json, os, sys, zlib
os.mkdir({_FOLDER!r}, 0o700)
for name, text in json.loads(zlib.decompress(base64.b64decode(sys.argv[1]))).items():
    with open({_FOLDER!r} + "/" + name, "x", encoding="utf-8") as file:
        file.write(text)
for name in ("constraints.txt", "manifest.tsv", "pylock.toml"):
    if os.path.exists({OWN_FOLDER!r} + "/" + name):
        os.symlink({OWN_FOLDER!r} + "/" + name, {_FOLDER!r} + "/" + name)
os.execv(sys.executable, [sys.executable, {_FOLDER!r} + "/{PROGRAM}", *sys.argv[2:]])
"""

Gpu = Literal["auto", "require", "off"]

SECONDS = {"battery": 300.0, "full": 900.0, "prove": 600.0, "cost": 600.0}
"""How long each may take, from the start of the container; many times what it takes on a quiet machine."""

SECONDS_OF_PACKAGE = 3.0
"""More for each package that the request names, which the test imports in a process of its own."""

_Report = TypeVar("_Report")


class Runner(Protocol):
    """What an engine offers for a self-test: processes inside one image."""

    @property
    def digest(self) -> str:
        """The ``sha256:…`` of the image's manifest."""

    def run(self, argv: Sequence[str], *, timeout: float, gpu: bool) -> process.Completed:
        """Run in a container without network or capabilities, its root read-only, with /tmp and /dev/shm.

        Any exit status is returned. Raises `process.ProcessTimeout` after ``timeout`` seconds; nothing of the
        container is left then. ``gpu`` hands the host's GPUs in.
        """

    def gpu_missing(self) -> str | None:
        """Return None if a GPU can be passed in, else the reason why not."""

    def machine(self) -> str | None:
        """Return `host.machine.identity` of the engine's machine; None if it may be another machine."""


def command(program: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the command that writes files into a container's /tmp and starts `PROGRAM` among them.

    In its arguments, since a daemon may run on another machine and sees no folder of this one. The image's
    own Python runs it, whose files `check` holds against the lock before.
    """
    text = json.dumps({name: content.decode() for name, content in sorted(program.items())})
    return (PYTHON, "-I", "-c", _START, base64.b64encode(zlib.compress(text.encode(), 9)).decode())


def run_selftest(
    runner: Runner,
    *,
    program: Mapping[str, bytes],
    gpu: Gpu,
    mode: Mode = "battery",
    only: Sequence[str] = (),
    start: Sequence[str] = (),
    time_limit: float | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> SelfTestReport:
    """Run a self-test in the runner's image; seconds count from the start of the container.

    ``program`` has the files to hand in, `PROGRAM` among them: see `render.own_files.selftest_files`.
    ``only``: the names of some checks of the battery. Their report is of mode ``part`` and names no image.
    ``start``: the words by which an entry point starts Python; empty: there is none.
    ``auto`` tests a GPU where one can be handed in, ``require`` raises `HostError` where none can. ``say`` is
    called with "check 14 of 60" as it goes on. Raises `SelfTestError` when the program hangs, crashes or
    reports nothing that can be read.
    """
    reason = _reason_without_gpu(runner, gpu)
    limit = time_limit or SECONDS[mode]
    # The program stops itself a little earlier, and then names the check that hung.
    inner = max(limit - 15, limit * 0.8)
    more = ("--time-limit", f"{inner:g}", *(() if mode == "battery" else (f"--{mode}",)))
    more += ("--start", json.dumps(list(start))) if start else ()
    if only:
        more += ("--only", *only)
    with heard_by(lambda text: _say_last(text, say)):
        done = _run(runner, (*command(program), "--json"), more, _device(gpu, reason), limit)
    report = _read(done, lambda data: SelfTestReport.parse(data, digest=runner.digest))
    expected = "part" if only and mode != "prove" else mode
    if done.returncode != EXIT[report.verdict] or report.mode != expected:
        raise _unreadable("the self-test's report contradicts its exit status", done)
    return report if reason is None else replace(report, gpu_reason=reason)


def run_cost(runner: Runner, *, program: Mapping[str, bytes], gpu: Gpu) -> CostReport:
    """Measure in the runner's image what determinism costs. Raises as `run_selftest`."""
    reason = _reason_without_gpu(runner, gpu)
    start = (*command(program), "--json")
    done = _run(runner, start, ("--cost",), _device(gpu, reason), SECONDS["cost"])
    report = _read(done, lambda data: CostReport.parse(data, digest=runner.digest))
    if done.returncode != 0:
        raise _unreadable("the self-test's report contradicts its exit status", done)
    return report if reason is None else replace(report, gpu_reason=reason)


def _say_last(text: bytes, say: Callable[[str], None]) -> None:
    """Say which check began last. The text is a candidate's: nothing but two numbers is taken from it."""
    if begun := _BEGUN.findall(text):
        number, count = begun[-1]
        say(f"check {int(number)} of {int(count)}")


_BEGUN = re.compile(rb"^selftest: check (\d{1,4}) of (\d{1,4})\n", re.MULTILINE)

EXIT = {"passed": 0, "failed": 1, "inconclusive": 3}
"""The program's exit status by its verdict."""


def _run(
    runner: Runner, start: Sequence[str], more: Sequence[str], device: str, limit: float
) -> process.Completed:
    slow = "Run it again on a quieter machine; if it hangs again, the image is not fit for use."
    with process.named_when_stopped(SelfTestError, "the self-test did not end", slow=slow):
        argv = (*start, "--device", device, *more)
        return runner.run(argv, timeout=limit, gpu=device != "cpu")


def _device(gpu: Gpu, reason: str | None) -> str:
    return "cpu" if reason is not None else "cuda" if gpu == "require" else "auto"


def _reason_without_gpu(runner: Runner, gpu: Gpu) -> str | None:
    match gpu:
        case "off":
            return "turned off by --gpu off"
        case "auto":
            return runner.gpu_missing()
        case "require":
            missing = runner.gpu_missing()
            if missing is not None:
                raise HostError(
                    f"the self-test requires a GPU: {missing}",
                    hint="Run it on a machine with a GPU, or with --gpu auto.",
                )
            return None
        case _:
            assert_never(gpu)


def _read(done: process.Completed, parse: Callable[[bytes], _Report]) -> _Report:
    """Return a finished program's report. Raises `SelfTestError`."""
    if done.returncode not in EXIT.values():
        raise _unreadable("the self-test crashed", done)
    try:
        return parse(done.stdout)
    except SelfTestError as error:
        raise _unreadable(error.message, done, error.hint) from None


def _unreadable(problem: str, done: process.Completed, hint: str = "") -> SelfTestError:
    code, said = done.returncode, process.tail(_BEGUN.sub(b"", done.stderr))
    # A signal is 128 + its number where a shell or a container engine reports it, else negative.
    if code in (137, -9):
        hint = "Was it out of memory? The test needs about 1 GB; REPROBUILD_MEMORY sets its limit."
    return SelfTestError(f"{problem} (exit status {code})" + (f"\n{said}" if said else ""), hint=hint)
