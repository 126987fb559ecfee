"""Make the receipt of a finished run, from its options and from the recorder's output."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ... import __version__
from ...errors import RepeatError
from ...host.sandbox import Bind
from ..first_difference import machine_of
from ..recorded_run import ProgramRun
from ..records import Moment, Stream
from ..text_tokens import general
from ..written import WrittenFile, without_mount_points
from .model import MOST_FILES, MOST_MOMENTS, Code, Folder, OutputFile, ProcessSteps, Receipt, is_below
from .program_files import beside, inputs
from .project import machine_here
from .secrets import is_secret, is_secret_file, secret_in


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """How a run was started."""

    by: str
    image: str
    digest: str
    engine: str
    lock: str
    command: tuple[str, ...]
    workdir: str | None
    user: str | None
    network: bool
    gpus: str | None
    """Which GPUs the program could use, as `chosen_gpus` says; None for a run without any."""
    binds: Sequence[Bind]
    """Of the user, without those that reprobuild adds."""
    variables: Mapping[str, str]
    """Likewise."""
    project: Path
    """The folder that the recorded paths of binds are relative to."""


def refuse_secrets(command: tuple[str, ...]) -> None:
    """Raise `RepeatError` for a command that cannot be written down."""
    found = secret_in(command)
    if found is not None:
        raise RepeatError(
            f"--receipt: {found} of the command looks like a secret, and a receipt holds the command",
            hint="pass it in a variable, with -e NAME: of a secret's only the name is written",
        )


def make_receipt(
    asked: Asked,
    run: ProgramRun,
    code: Code | None,
    *,
    verdict: str = "",
    written: Sequence[WrittenFile] | None = None,
    changed: frozenset[str] = frozenset(),
) -> Receipt:
    """Return the receipt.

    ``written``: what the run wrote into the folders, where it wrote into these themselves; ``changed``: the
    paths that are no longer as they were. A run under ``twice`` has both in its own records, and its output.
    """
    guessed = frozenset(_words(asked)).difference(run.opened)
    found, notes = inputs({*run.opened, *guessed}, asked.binds, changed, guessed)
    if run.opened_cut:
        notes.append("files that a process read after 20,000 others")
    others, whole = beside(asked.binds, frozenset(file.path for file in found) | changed)
    tops = tuple(bind.destination.rstrip("/") + "/" for bind in asked.binds)
    files = [file for file in (run.files if written is None else written) if f"{file.path}/".startswith(tops)]
    files = without_mount_points(files, [bind.destination for bind in asked.binds])
    secret = [file.path for file in files if is_secret_file(file.path, file.size)]
    notes += [f"the digest of {path}, which may hold secrets by its name" for path in secret]
    files = [file for file in files if file.path not in secret]
    if len(files) > MOST_FILES:
        notes.append(f"the files that it wrote beyond {MOST_FILES}")
    if any(stream.cut for stream in run.streams):
        notes.append("steps beyond those that are recorded")
    return Receipt(
        by=asked.by,
        made_with=f"reprobuild {__version__}",
        image=asked.image,
        digest=asked.digest,
        engine=asked.engine,
        lock=asked.lock,
        command=asked.command,
        workdir=asked.workdir,
        user=asked.user,
        network=asked.network,
        gpu=asked.gpus is not None,
        folders=tuple(
            Folder(destination=b.destination, source=_told(b.source, asked.project), writable=b.writable)
            for b in asked.binds
        ),
        variables={
            name: None if is_secret(name, value) else value for name, value in sorted(asked.variables.items())
        },
        code=code,
        inputs=tuple(found),
        beside=tuple(others),
        beside_whole=whole,
        machine={**machine_here(asked.gpus), **machine_of(run.streams)},
        steps=tuple(_steps(run.streams)),
        status=run.status if run.status is not None else -255,
        stdout=stdout_digest(run) if written is None else None,
        outputs=tuple(
            OutputFile(
                path=file.path,
                size=file.size,
                sha256=file.sha256 or file.digest,
                meaning=file.meaning(run.evidence),
            )
            for file in files[:MOST_FILES]
        ),
        verdict=verdict,
        notes=tuple(notes[:100]),
    )


def _words(asked: Asked) -> list[str]:
    """Return the paths that words of the command name: a shell reads its script itself."""
    top = asked.workdir or "/"
    words = [word for word in asked.command if word and "\0" not in word and "\n" not in word]
    paths = [
        word if word.startswith("/") else f"{top.rstrip('/')}/{word.removeprefix('./')}" for word in words
    ]
    return [path for path in paths if ".." not in path.split("/")]


def _told(source: Path, project: Path) -> str | None:
    """Return a path relative to the project's folder; None if it is elsewhere."""
    try:
        told = source.resolve().relative_to(project.resolve()).as_posix()
    except ValueError:
        return None
    return told if is_below(told) else None


def _steps(streams: Sequence[Stream]) -> list[ProcessSteps]:
    found = []
    for stream in streams:
        if not stream.moments:
            continue
        every = -(-len(stream.moments) // MOST_MOMENTS)
        groups = [stream.moments[at : at + every] for at in range(0, len(stream.moments), every)]
        name = " ".join(
            filter(None, (stream.label, stream.argv[0].rpartition("/")[2] if stream.argv else ""))
        )
        found.append(
            ProcessSteps(
                process=name[:900],
                moments=tuple((group[-1].label[:300], _digest(group)) for group in groups),
                count=len(stream.moments),
            )
        )
    # Processes that run side by side get their files in any order.
    return sorted(found, key=lambda each: each.process)


def _digest(moments: Sequence[Moment]) -> str:
    rows = [
        [each.kind, each.label, *([p.name, p.digest] for p in each.parts if not p.name.startswith("random "))]
        for each in moments
    ]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


def stdout_digest(run: ProgramRun) -> str:
    """Return a digest of a program's output, without times; independent of the order of processes."""
    lines = [general(line, run.evidence) for line in run.stdout]
    several = run.evidence.several or sum(bool(stream.moments) for stream in run.streams) > 1
    return hashlib.sha256(json.dumps(sorted(lines) if several else lines).encode()).hexdigest()


def without_own(binds: Sequence[Bind], variables: Mapping[str, str]) -> tuple[list[Bind], dict[str, str]]:
    """Return the folders and variables without this machine's certificates, which ``run`` adds."""
    own = next((bind.destination for bind in binds if bind.destination.startswith("/run/reprobuild/")), None)
    kept = [bind for bind in binds if bind.destination != own]
    return kept, {name: value for name, value in variables.items() if value != own}
