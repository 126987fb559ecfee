"""Receipts of runs, for ``run``, ``twice`` and ``replay``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..engines.embedded import OciEngine
from ..engines.protocols import RunOptions
from ..host.console import Console
from ..host.home import atomic_write
from ..host.host import Host
from ..render.labels import LABEL
from ..twice.receipt.make import Asked, make_receipt, refuse_secrets, without_own
from ..twice.receipt.model import Receipt
from ..twice.receipt.program_files import changed_since, look
from ..twice.receipt.project import chosen_gpus, code_of
from ..twice.recorded_run import Comparison, HowToRun, RanProgram, read_run, recorder_settings
from ..twice.report import verdict
from ..verify.find import EngineImage


def asked_for(by: str, name: str, kept: EngineImage, command: tuple[str, ...], chosen: RunOptions) -> Asked:
    """Return a receipt's command to start the run in the project's folder."""
    binds, variables = without_own(chosen.binds, chosen.env)
    return Asked(
        by=by,
        image=name,
        digest=kept.image.digest,
        engine=kept.engine.kind,
        lock=kept.image.labels.get(LABEL + "lock", ""),
        command=command,
        workdir=chosen.workdir,
        user=chosen.user,
        network=chosen.network,
        gpus=None if chosen.gpu is None else chosen_gpus(variables),
        binds=binds,
        variables=variables,
        project=Path.cwd(),
    )


def begin_receipt(
    by: str, name: str, kept: EngineImage, command: tuple[str, ...], chosen: RunOptions
) -> Callable[[Path, Comparison, Console], None]:
    """Record the project before a run of ``twice``; return a function that writes its receipt."""
    refuse_secrets(command)
    asked = asked_for(by, name, kept, command, chosen)
    code = code_of(asked.project)

    def issue(path: Path, found: Comparison, console: Console) -> None:
        write(path, make_receipt(asked, found.runs[0], code, verdict=verdict(found)), console)

    return issue


def write(path: Path, receipt: Receipt, console: Console) -> None:
    """Write a receipt, and say what is not in it."""
    for note in receipt.notes:
        console.step(f"the receipt lacks: {note}")
    values = [name for name, value in receipt.variables.items() if value is not None]
    if values:
        console.step(f"the receipt has the values of {', '.join(values)}")
    atomic_write(path, receipt.dump())
    console.step(f"wrote {path}, sha256:{receipt.sha256}")


def run_with_receipt(host: Host, name: str, command: tuple[str, ...], chosen: RunOptions, path: Path) -> int:
    """Run in the foreground as `OciEngine.run`, under the recorder, and write a receipt."""
    engine = OciEngine(host)
    kept = EngineImage(engine, engine.images.find(name))
    if not command:
        command = tuple(engine.images.config(kept.image.digest)["config"]["Cmd"])
    refuse_secrets(command)
    asked = asked_for("run", name, kept, command, chosen)
    code, before = code_of(asked.project), look(asked.binds)
    how = HowToRun(receipt=True)
    with host.home.scratch("receipt") as folder:
        began, start = time.time(), time.monotonic()
        recorded = replace(chosen, env={**chosen.env, **recorder_settings(how)})
        status = engine.run(kept.image.digest, command, recorded, folder)
        ran = RanProgram(status=status, stdout=b"", stderr=b"", written=[])
        run = read_run(ran, how, folder, (began, time.monotonic() - start))
    written, changed = changed_since(before, asked.binds, run.evidence)
    write(path, make_receipt(asked, run, code, written=written, changed=changed), host.console)
    return status
