"""The last report of each image, stored in the home, and whether it is still valid.

A digest names every byte of an image. If a build gives the same bytes again, and this is the same boot of the
same machine, with the same engine and limits, then the report that is there is the proof.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from ..errors import SelfTestError
from ..host.home import atomic_write, storage_errors
from ..host.limits import of_steps
from ..host.verified import read_kept
from .report import LARGEST, Mode, SelfTestReport
from .run import Gpu, Runner

_MOST_SEAL = 1024
_ONCE = "-"
"""Stands for unknown circumstances in a seal."""


def keep(report: SelfTestReport, folder: Path, where: str | None) -> None:
    """Write a report below ``folder``, in place of the image's last one of that mode.

    ``where``: its `circumstances`; None if no later build may rely on it in place of a test of its own.
    """
    data = (json.dumps(report.to_dict(), indent=1) + "\n").encode()
    # No sync, as for the image itself: it would wait for all that was built, and the test can be run again.
    atomic_write(_file(folder, report.digest, report.mode), data, sync=False)
    if report.mode == "battery" and report.passed:
        atomic_write(_seal(folder, report.digest), _sealed(where or _ONCE, data), sync=False)


def forget(digest: str, folder: Path) -> None:
    """Invalidate the battery report of an image. Raises `StorageError`."""
    with storage_errors(folder):
        _seal(folder, digest).unlink(missing_ok=True)
        _file(folder, digest, "battery").unlink(missing_ok=True)


def kept(digest: str, folder: Path, where: str | None) -> SelfTestReport | None:
    """Return the report of an image that passed in the same `circumstances`.

    None if there is no such report, or if it or its seal is damaged.
    """
    if where is None:
        return None
    with suppress(OSError, SelfTestError):
        data = read_kept(_file(folder, digest, "battery"), LARGEST)
        if read_kept(_seal(folder, digest), _MOST_SEAL) == _sealed(where, data):
            return SelfTestReport.parse_kept(data)
    return None


def last_report(digest: str, folder: Path) -> tuple[SelfTestReport, datetime] | None:
    """Return the last battery report of an image and its time; None without one.

    Raises `SelfTestError` for one that is damaged: a pass that is not the one that was sealed, or another
    image's.
    """
    path = _file(folder, digest, "battery")
    with storage_errors(path):
        if not path.exists():
            return None
        made = datetime.fromtimestamp(int(path.stat().st_mtime), UTC)
        data, seal = read_kept(path, LARGEST), _seal(folder, digest)
        sealed = read_kept(seal, _MOST_SEAL) if seal.exists() else b""
    report = SelfTestReport.parse_kept(data)
    where = sealed.partition(b" ")[0].decode("ascii", "replace")
    if report.digest != digest or (report.passed and sealed != _sealed(where, data)):
        raise SelfTestError(
            f"{path}: the report is damaged, or not that of the image",
            hint=f"`reprobuild selftest {digest[:19]}` makes it again",
        )
    return report, made


def circumstances(runner: Runner, kind: str, *, program: Mapping[str, bytes], gpu: Gpu) -> str | None:
    """Return a hash of all that an outcome of the self-test depends on beside the image.

    That is the machine, the program of the test, the engine (``kind``), the limits, and whether a GPU can be
    handed in. None where the machine is not known.
    """
    machine = runner.machine()
    if machine is None:
        return None
    # With --gpu off, a CDI file that cannot be read must not stop the test.
    missing = None if gpu == "off" else runner.gpu_missing()
    facts = [machine, kind, gpu, repr(missing), repr(of_steps())]
    for name, content in sorted(program.items()):
        facts += [name, hashlib.sha256(content).hexdigest()]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()


def _file(folder: Path, digest: str, mode: Mode) -> Path:
    return folder / f"{digest[7:]}{'' if mode == 'battery' else f'-{mode}'}.json"


def _seal(folder: Path, digest: str) -> Path:
    return folder / f"{digest[7:]}.seal"


def _sealed(where: str, report: bytes) -> bytes:
    return f"{where} {hashlib.sha256(report).hexdigest()}\n".encode()
