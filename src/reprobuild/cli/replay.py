"""The command ``replay``: runs again what a receipt says."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from ..engines.cdi import GpuAccess
from ..errors import HostError, ImageError, RepeatError
from ..host.console import one_line
from ..host.host import Host
from ..host.sandbox import Bind
from ..render.labels import LABEL
from ..twice.receipt.make import make_receipt
from ..twice.receipt.model import Receipt, read_receipt
from ..twice.receipt.project import BY_HOST, chosen_gpus, code_of, machine_here
from ..twice.receipt.replay import Departure, after, before, beside_apart, binds_of, machines_apart, read_now
from ..twice.recorded_run import HowToRun, one_run
from ..verify.find import EngineImage, find_image
from . import complete
from .output import as_json, emit, table, to_stderr
from .receipts import asked_for
from .run_options import folders, gpus_for, settings, variables


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("-y", "--yes", is_flag=True, help="Run the command that is shown, without asking.")
@click.option("--check", is_flag=True, help="Run nothing; compare what can be compared without.")
@click.option(
    "--anyway", is_flag=True, help="Run also if image, variables, code or data are not as they were."
)
@click.option(
    "--project",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=Path(),
    help="Folder of the project. [default: the current one]",
)
@click.option(
    "--image",
    help="Image to run, in place of the one with the receipt's digest.",
    shell_complete=complete.images,
)
@click.option(
    "-e", "--env", "env", multiple=True, metavar="NAME[=VALUE]", help="Value of a variable that is a secret."
)
@click.option(
    "-v",
    "--volume",
    multiple=True,
    metavar="SRC:DST",
    help="Folder for a place in the container, in place of the receipt's.",
)
@as_json
@click.pass_obj
def replay(
    host: Host,
    /,
    file: Path,
    *,
    yes: bool,
    check: bool,
    anyway: bool,
    project: Path,
    image: str | None,
    env: tuple[str, ...],
    volume: tuple[str, ...],
    json_: bool,
) -> None:
    """Run again what a receipt says, and name what is not as it was.

    First compared are image, variables, data, code; then the program runs once, as under `twice`, and its
    steps, files, output and status are compared. What it writes is lost. The first thing that differs is in
    the error, all are listed; exit status 16. Another kind of machine counts only if results differ.

    \b
    reprobuild replay paper/figure3.receipt.json
    """
    receipt = _read(file)
    given = {bind.destination: bind for bind in folders(volume)}
    binds = binds_of(receipt, project, given)
    values = {name: value for name, value in receipt.variables.items() if value is not None}
    values |= variables(env)
    kept = _image(receipt, image, host)
    code = code_of(project)
    found = before(
        receipt,
        digest=kept.image.digest,
        engine=kept.engine.kind,
        lock=kept.image.labels.get(LABEL + "lock", ""),
        variables=values,
        binds=binds,
        code=code,
    )
    if check or (found and not anyway):
        told = {name: value for name, value in receipt.machine.items() if name not in BY_HOST}
        here = machine_here(chosen_gpus(values) if receipt.gpu else None)
        machine = machines_apart(receipt, {**told, **here})
        _show(receipt, kept, found, machine, binds, json_=json_, now=None)
        return
    gpus = _gpus(kept) if receipt.gpu else None
    _agree(receipt, kept, binds, values, yes=yes)
    chosen = settings(
        host.console,
        env=(),
        volume=(),
        workdir=receipt.workdir,
        user=receipt.user,
        memory=None,
        pids_limit=None,
        no_network=not receipt.network,
        gpu="off" if gpus is None else "require",
        gpus=gpus,
    )
    chosen = replace(chosen, env={**chosen.env, **values}, binds=[*chosen.binds, *binds])
    host.console.step("run 1 of 1")
    run = one_run(
        kept.engine.recorded(kept.image.digest, receipt.command, chosen),
        HowToRun(receipt=True),
        lambda: host.home.scratch("twice"),
    )
    asked = replace(asked_for(receipt.by, receipt.image, kept, receipt.command, chosen), project=project)
    now = make_receipt(asked, run, code)
    results, machine = after(receipt, now), machines_apart(receipt, now.machine)
    _show(
        receipt,
        kept,
        [*found, *(machine if results else []), *results],
        machine,
        binds,
        json_=json_,
        now=now,
    )


def _read(file: Path) -> Receipt:
    """Read the receipt. Raises UsageError, which names the file: no program has failed to repeat."""
    try:
        return read_receipt(file)
    except RepeatError as error:
        raise click.UsageError(f"{error.message}; {error.hint}") from None


def _image(receipt: Receipt, image: str | None, host: Host) -> EngineImage:
    try:
        return find_image(image or f"{receipt.engine}:{receipt.digest}", host)
    except ImageError as error:
        if image is not None:
            raise
        raise ImageError(
            f"the image of the receipt is not here: {error.message}",
            hint=f"it was {receipt.image}, of the lock {receipt.lock or 'unknown'}: build it from that lock,"
            " or name another with --image",
        ) from None


def _gpus(kept: EngineImage) -> Callable[[], GpuAccess | str]:
    """Return how to pass GPUs in. Raises `HostError` where that is impossible."""
    access = gpus_for(kept)()
    if isinstance(access, str):
        raise HostError(
            f"the receipt is of a run with a GPU: {access}",
            hint="replay it on a machine with one; --check compares what can be compared without running it",
        )
    return lambda: access


def _agree(
    receipt: Receipt, kept: EngineImage, binds: list[Bind], values: dict[str, str], *, yes: bool
) -> None:
    """Show what would run, and let the user decide. Raises `RepeatError` where nobody can be asked."""
    lines = [
        ("command", shlex.join(receipt.command)),
        ("image", f"{kept.image.digest} of {kept.engine.kind}"),
        *(("folder", f"{b.source} at {b.destination}{'' if b.writable else ', read only'}") for b in binds),
        *((name, text) for name, text in (("workdir", receipt.workdir), ("user", receipt.user)) if text),
        *(("variable", f"{name}={shlex.quote(value)}" if receipt.variables.get(name) else name)
          for name, value in sorted(values.items())),
        ("network", "this machine's" if receipt.network else "none"),
        *[("GPU", "this machine's")] * receipt.gpu,
    ]  # fmt: skip
    for heading, text in lines:
        to_stderr(f"{heading:<9} {one_line(text)}")
    if yes:
        return
    if not (os.isatty(0) and os.isatty(2)):
        raise RepeatError(
            "replay runs a command that a file names, and was not told to",
            hint="look at the command above and give --yes; --check compares without running anything",
        )
    click.confirm("Run it?", abort=True, err=True)


def _show(
    receipt: Receipt,
    kept: EngineImage,
    found: list[Departure],
    machine: list[Departure],
    binds: list[Bind],
    *,
    json_: bool,
    now: Receipt | None,
) -> None:
    """Write the result; ``now`` is the receipt of the run, if there was one.

    Raises `RepeatError` with the first thing that is not as it was.
    """
    others = beside_apart(receipt, binds)
    more = [each.told for each in read_now(receipt, now)] if now is not None and not found else []
    held = _counted(receipt) if now is not None else "image, variables, code and data; nothing was run"
    line = one_line(f"{found[0].what}: {found[0].told}" if found else f"as it was: {held}")
    notes = [f"on another kind of machine: {each.told}" for each in machine] if not found else []
    if kept.image.digest != receipt.digest:
        notes.append(
            f"the image is one of {kept.engine.kind}, of the same lock by its own word: `reprobuild check`"
            " compares its files with the lock"
        )
    notes += more[:5]
    if others:
        notes.append(f"not as they were, and not seen to be read: {', '.join(others[:5])}")
    if not receipt.beside_whole:
        notes.append(
            "files that a library in C or another program read may have changed: the receipt lacks some"
        )
    if json_:
        emit({
            "line": line, "holds": not found, "ran": now is not None, "receipt": f"sha256:{receipt.sha256}",
            "changes": [{"what": each.what, "told": each.told} for each in found], "notes": notes,
        })  # fmt: skip
    else:
        click.echo(line)
        rows = [*((each.what, each.told) for each in found[1:]), *(("note", note) for note in notes)]
        rows = [(what, one_line(told)) for what, told in rows]
        if rows:
            table("", rows)
    if found:
        raise RepeatError(
            f"not as it was: {line}",
            hint="" if now is not None else "--anyway runs it nevertheless, and compares the results",
        )


def _counted(receipt: Receipt) -> str:
    counts = [
        (sum(each.count for each in receipt.steps), "digest of steps", "digests of steps"),
        (len(receipt.outputs), "file written", "files written"),
        (len(receipt.inputs), "input", "inputs"),
    ]
    return (
        ", ".join(f"{n} {one if n == 1 else more}" for n, one, more in counts) + f", status {receipt.status}"
    )
