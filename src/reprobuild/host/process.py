"""Start processes, the only place that does: a list of arguments, logged, checked, never through a shell.

However this process ends, what it started is killed with it; `at_the_end` is what then tidies up.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any, Protocol

from ..errors import HostError, ReprobuildError
from .descriptors import has_more
from .os_reasons import SCARCE, killed_by
from .stderr_listener import hearing
from .workers import ending

log = logging.getLogger(__name__)

PACKAGES = {
    "apt-get": "apt",
    "apt-cache": "apt",
    "apt-ftparchive": "apt-utils",
    "ldconfig": "libc-bin",
    "mksquashfs": "squashfs-tools",
    "newgidmap": "uidmap",
    "newuidmap": "uidmap",
    "pivot_root": "util-linux",
    "sbatch": "slurm-client",
    "scancel": "slurm-client",
    "scontrol": "slurm-client",
    "setpriv": "util-linux",
    "sinfo": "slurm-client",
    "squeue": "slurm-client",
    "umount": "mount",
    "unshare": "util-linux",
}
"""Debian package of a program, where the names differ."""


OUTPUT_LIMIT = 256 << 20
"""Bytes that a process may write on standard output or standard error before it is stopped."""

_AT_THE_END = 'cat >/dev/null; for each in 1 2 3 4 5; do "$@" && exit; sleep 0.2; done'
"""Shell script that runs its arguments once standard input ends, that is, when no writer is left."""

_PIPE = 1 << 16
_TAIL = 1 << 13
_WATCH_SECONDS = 0.2
_LARGE_PIPE = 1 << 20
"""Bytes of a pipe that gigabytes go through; Linux gives an ordinary user as much."""
_ENDING = (*(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2),)


class ProcessFailed(HostError):  # noqa: N818 -- callers that know more turn it into another of errors.py
    """A process ended badly. ``tail`` is the end of its standard error (or output, where that is empty)."""

    def __init__(self, argv: Sequence[str], returncode: int, tail: str) -> None:
        tail = tail or killed_by(returncode)
        super().__init__(
            f"{Path(argv[0]).name} exited with {returncode}: {tail or 'it said nothing'}",
            hint=f"`reprobuild -v` shows the whole command; does {Path(argv[0]).name} work by hand?",
        )
        self.argv = tuple(argv)
        self.returncode = returncode
        self.tail = tail


class ProcessTimeout(HostError):  # noqa: N818 -- as above
    """A process, with all it had started, was killed at its time limit of ``seconds``."""

    def __init__(self, argv: Sequence[str], seconds: float) -> None:
        super().__init__(
            f"{Path(argv[0]).name} did not end within {seconds:g} s, and was stopped",
            hint="run the command again on a quieter machine",
        )
        self.seconds = seconds


class LimitReached(HostError):  # noqa: N818 -- as above
    """A process, with all it had started, was killed at a limit of memory or processes: ``reason``."""

    def __init__(self, argv: Sequence[str], reason: str) -> None:
        super().__init__(
            f"{Path(argv[0]).name} was stopped: {reason}",
            hint="raise that limit if you trust the program and the machine has the capacity",
        )
        self.reason = reason


@contextmanager
def named_when_stopped(error: type[ReprobuildError], what: str, *, slow: str) -> Iterator[None]:
    """Raise ``error`` in place of `ProcessTimeout` and `LimitReached`.

    ``what`` says what was not done, as "the packages were not installed"; ``slow`` is the hint for the time
    limit, that of the others says to raise it.
    """
    try:
        yield
    except ProcessTimeout as stopped:
        raise error(f"{what} within {stopped.seconds:g} s", hint=slow) from None
    except LimitReached as stopped:
        raise error(f"{what}: {stopped.reason}", hint=stopped.hint) from None


class Guarding(Protocol):
    """What holds a process, and all that it starts, to limits: `limits.Guard`."""

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command that runs ``argv`` within the limits."""

    def reached(self, process_id: int) -> str | None:
        """Return the limit that the process has reached, or None."""


@dataclass(frozen=True, slots=True)
class Completed:
    """What a finished process left: its exit status and all that it wrote."""

    returncode: int
    stdout: bytes
    stderr: bytes


def which(program: str) -> str | None:
    """Where a program is; Debian's sbin folders count even when PATH lacks them."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")


def require(program: str, purpose: str) -> str:
    """Return the path of a program, or raise `HostError` that names the package to install."""
    found = which(program)
    if found is None:
        package = PACKAGES.get(program, program)
        raise HostError(
            f"{program} is not installed; it is needed {purpose}",
            hint=f"apt-get install -y {package}",
        )
    return found


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: bytes | None = None,
    timeout: float | None = None,
    limit: int = OUTPUT_LIMIT,
    descendants: bool = True,
    check: bool = True,
    guard: Guarding | None = None,
) -> Completed:
    """Run to the end and return what it wrote.

    ``env`` replaces the environment (None: inherited). Raises `ProcessFailed` on a status other than 0 when
    ``check``, `ProcessTimeout` when ``timeout`` seconds pass, `HostError` when the program cannot be started.
    One that writes more than ``limit`` bytes is killed, which its status and its last words then tell; one
    that reaches a limit of ``guard`` is killed too, and `LimitReached` is raised. The process gets a session
    of its own, so that a kill reaches all of its children; it is also killed when this call is interrupted.
    Without ``descendants`` what it leaves running, such as an agent, is not waited for.
    """
    log.debug("run: %s", shlex.join(argv))
    with (
        _started(
            argv if guard is None else guard.command(argv),
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if env is None else dict(env),
            cwd=cwd,
            start_new_session=True,
        ) as process,
        _watched(process, guard) as reasons,
    ):
        try:
            out, err = _communicate(process, stdin, timeout, limit, descendants=descendants)
        except subprocess.TimeoutExpired:
            _kill_session(process)
            raise ProcessTimeout(argv, timeout or 0) from None
        except BaseException:
            _kill_session(process)
            raise
    log.debug("exit %d: %s", process.returncode, Path(argv[0]).name)
    if reasons:
        raise LimitReached(argv, reasons[0])
    if check and process.returncode != 0:
        raise ProcessFailed(argv, process.returncode, tail(err or out))
    return Completed(process.returncode, out, err)


def call(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    own_group: bool = False,
    deliver: Callable[[int, int], bool] | None = None,
) -> int:
    """Run in the foreground on this terminal (stdin, stdout and stderr inherited); return the exit status.

    With ``own_group`` the terminal's signals reach this process alone. ``deliver`` takes the number of the
    process and each signal that would end this one, and passes it on; if it returns False, the process is
    killed, and the negative signal is returned. It takes the main thread.
    """
    log.debug("call: %s", shlex.join(argv))
    ended: list[int] = []
    with _started(argv, cwd=cwd, process_group=0 if own_group else None) as process:

        def pass_on(number: int, _: FrameType | None) -> None:
            if deliver is not None and process.returncode is None and not deliver(process.pid, number):
                ended.append(number)
                process.kill()

        before = {
            number: signal.signal(number, pass_on)
            for number in (_ENDING if deliver is not None else ())
            if signal.getsignal(number) is not signal.SIG_IGN  # as under nohup
        }
        try:
            status = process.wait()
        except BaseException:
            process.kill()
            raise
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return -ended[0] if ended else status


def feed(argv: Sequence[str], write: Callable[[Callable[[bytes], object]], None]) -> None:
    """Run with a pipe as standard input, which ``write`` fills through the function that it is given.

    Raises `ProcessFailed` on a status other than 0; the process is killed when ``write`` raises.
    """
    log.debug("feed: %s", shlex.join(argv))
    # A file, not a pipe: nobody reads what the process says while its input is written.
    with (
        tempfile.TemporaryFile() as said,
        _started(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        ) as process,
    ):
        assert process.stdin is not None
        try:
            write(process.stdin.write)
            process.stdin.close()
        except BrokenPipeError:
            # It ended early: its status and its last words tell why. What is left in the buffer is lost.
            with suppress(BrokenPipeError):
                process.stdin.close()
        except BaseException:
            _kill_session(process)
            raise
        process.wait()
        said.seek(0)
        err = said.read()
    if process.returncode != 0:
        raise ProcessFailed(argv, process.returncode, tail(err))


@contextmanager
def stream(argv: Sequence[str]) -> Iterator[IO[bytes]]:
    """Run a program and yield its standard output.

    Raises `ProcessFailed` at the end of the block on a status other than 0, also when the block itself
    failed, since what it read was then cut short.
    """
    log.debug("stream: %s", shlex.join(argv))
    with (
        tempfile.TemporaryFile() as said,
        _started(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
            pipesize=_LARGE_PIPE,
        ) as process,
    ):
        assert process.stdout is not None
        failure: Exception | None = None
        try:
            yield process.stdout
            while process.stdout.read(1 << 20):
                pass
            process.wait()
        except Exception as error:
            failure = error
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=2)
            if not process.returncode:
                _kill_session(process)
                raise
        except BaseException:
            _kill_session(process)
            raise
        said.seek(0)
        err = said.read()
    if process.returncode != 0:
        raise ProcessFailed(argv, process.returncode, tail(err)) from failure


@contextmanager
def at_the_end(argv: Sequence[str]) -> Iterator[None]:
    """Run a command when the block ends, also where SIGKILL ends this process in it.

    It is tried a few times: what was killed with this process may still hold what the command is to free.
    What it says is lost, and so is its status.
    """
    log.debug("at the end: %s", shlex.join(argv))
    with subprocess.Popen(
        ["/bin/sh", "-c", _AT_THE_END, "sh", *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ):
        yield  # Popen closes the pipe and waits, whatever ends the block


def tail(output: bytes, lines: int = 15) -> str:
    """Return the last lines of some output as text, for a message: at most 8 KiB of them."""
    text = output.rstrip()[-_TAIL:].decode("utf-8", "replace").strip()
    return "\n".join(text.splitlines()[-lines:])


def _started(argv: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(_with_us(argv), **how)
    except OSError as error:
        raise HostError(
            f"{Path(argv[0]).name} cannot be started: {error.strerror}",
            hint=SCARCE.get(error.errno or 0, "is it installed correctly? Try to reinstall it"),
        ) from None


def _communicate(
    process: subprocess.Popen[bytes],
    stdin: bytes | None,
    timeout: float | None,
    limit: int,
    *,
    descendants: bool,
) -> tuple[bytes, bytes]:
    """Do what `subprocess.Popen.communicate` does, with at most ``limit`` bytes of either stream."""
    deadline = None if timeout is None else time.monotonic() + timeout
    found = (bytearray(), bytearray())
    hear = hearing()

    def read(pipe: IO[bytes], kept: bytearray) -> None:
        with pipe:
            while (descendants or has_more(pipe, process.poll)) and (chunk := os.read(pipe.fileno(), _PIPE)):
                kept += chunk
                if kept is found[1]:
                    hear(kept)
                if len(kept) > limit:
                    _kill_session(process)
                    return

    def write(pipe: IO[bytes]) -> None:
        with suppress(BrokenPipeError), pipe:
            pipe.write(stdin or b"")

    assert process.stdout is not None
    assert process.stderr is not None
    pairs = zip((process.stdout, process.stderr), found, strict=True)
    threads = [threading.Thread(target=read, args=pair, daemon=True) for pair in pairs]
    if process.stdin is not None:
        threads.append(threading.Thread(target=write, args=(process.stdin,), daemon=True))
    # The threads close them: one may still wait for a grandchild that the kill did not reach.
    process.stdin = process.stdout = process.stderr = None
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(None if deadline is None else max(0, deadline - time.monotonic()))
        if thread.is_alive():
            raise subprocess.TimeoutExpired(process.args, timeout or 0)
    process.wait(None if deadline is None else max(0, deadline - time.monotonic()))
    if max(map(len, found)) > limit:
        found[1].extend(stopped_at(limit))
    return bytes(found[0][:limit]), bytes(found[1][-limit:])


def stopped_at(limit: int) -> bytes:
    """Return the message for a program that was stopped because it wrote more than ``limit`` bytes."""
    return b"\nstopped: it wrote more than %d bytes\n" % limit


@contextmanager
def _watched(process: subprocess.Popen[bytes], guard: Guarding | None) -> Iterator[list[str]]:
    """Kill a process that reaches a limit; the list names the limit by the end of the block."""
    reasons: list[str] = []
    ended, unwanted = threading.Event(), ending()
    if guard is None and unwanted is None:
        yield reasons
        return

    def at_a_limit() -> str | None:
        if unwanted is not None and unwanted.is_set():
            return "what it was for has failed"
        return guard.reached(process.pid) if guard is not None else None

    def watch() -> None:
        while not ended.wait(_WATCH_SECONDS):
            if (reason := at_a_limit()) is not None:
                reasons.append(reason)
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield reasons
    finally:
        ended.set()
        thread.join()
    if not reasons and (reason := at_a_limit()) is not None:
        reasons.append(reason)


def _with_us(argv: Sequence[str]) -> list[str]:
    """Wrap a command so that it is killed when this process dies, even by SIGKILL."""
    setpriv = which("setpriv")
    return [*([setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []), *argv]


def _kill_session(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
