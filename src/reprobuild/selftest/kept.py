"""The last report of each image, kept in the home, and whether it still speaks for the machine that asks.

An image is named by its bytes. When a build gives the same bytes again, on the same boot of the same machine,
in the same way of running them, then the proof is the one that is there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ..errors import SelfTestError
from ..host.home import atomic_write, storage_errors
from ..host.limits import of_steps
from .report import Mode, SelfTestReport
from .run import Gpu, Runner


def keep(report: SelfTestReport, folder: Path, circumstances: str | None) -> None:
    """Write a report below ``folder``, in place of the image's last one of that mode.

    ``circumstances``: see below; None if no later build is to trust it.
    """
    data = (json.dumps(report.to_dict(), indent=1) + "\n").encode()
    atomic_write(_file(folder, report.digest, report.mode), data)
    if report.mode == "battery" and circumstances is not None:
        seal = f"{circumstances} {hashlib.sha256(data).hexdigest()}\n"
        atomic_write(_seal(folder, report.digest), seal.encode())


def forget(digest: str, folder: Path) -> None:
    """Let no later build trust the report of an image that is there. Raises `StorageError`."""
    with storage_errors(folder):
        _seal(folder, digest).unlink(missing_ok=True)


def kept(digest: str, folder: Path, circumstances: str | None) -> SelfTestReport | None:
    """Return the report of an image that has passed in the same circumstances, or None.

    A damaged report, and one of other circumstances, is none.
    """
    if circumstances is None:
        return None
    with suppress(OSError, SelfTestError):
        data = _file(folder, digest, "battery").read_bytes()
        if _seal(folder, digest).read_text("utf-8", "replace").split() == [
            circumstances,
            hashlib.sha256(data).hexdigest(),
        ]:
            report = SelfTestReport.parse_kept(data)
            if report.passed and report.mode == "battery" and report.digest == digest:
                return report
    return None


def circumstances(runner: Runner, kind: str, *, program: Mapping[str, bytes], gpu: Gpu) -> str | None:
    """Return a hash of all that an outcome of the self-test depends on beside the image.

    That is the machine, the program of the test, the engine (``kind``), the limits, and whether a GPU can be
    handed in. None where the machine is not known.
    """
    machine = runner.machine()
    if machine is None:
        return None
    # Where no GPU is asked for, a broken description of one is no matter.
    missing = None if gpu == "off" else runner.gpu_missing()
    facts = [machine, kind, gpu, repr(missing), repr(of_steps())]
    for name, content in sorted(program.items()):
        facts += [name, hashlib.sha256(content).hexdigest()]
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()


def _file(folder: Path, digest: str, mode: Mode) -> Path:
    return folder / f"{digest[7:]}{'' if mode == 'battery' else f'-{mode}'}.json"


def _seal(folder: Path, digest: str) -> Path:
    return folder / f"{digest[7:]}.seal"
