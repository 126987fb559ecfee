"""What of a receipt is no longer so: before a run, and after it. In the order in which it matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import RepeatError
from ...host.console import one_line
from ...host.sandbox import Bind
from .model import Code, Folder, InputFile, Receipt
from .program_files import MOST_TEXT, input_file, line_digests, open_in
from .secrets import is_secret_file


@dataclass(frozen=True, slots=True)
class Departure:
    """A difference between a receipt and now."""

    what: str
    """Its kind: ``image``, ``variable``, ``folder``, ``input``, ``code``, ``machine``, ``step``, …"""
    told: str


def binds_of(receipt: Receipt, project: Path, given: Mapping[str, Bind]) -> list[Bind]:
    """Return the folders for a run: those of the project, and those that the user names by their place.

    Raises `RepeatError` for one that leads out of the project by a link, is not there, or was elsewhere and
    is not given.
    """
    top = project.resolve()
    unknown = given.keys() - {folder.destination for folder in receipt.folders}
    if unknown:
        raise RepeatError(f"-v: the receipt has no folder at {', '.join(sorted(unknown))}")
    return [_bind(folder, top, given) for folder in receipt.folders]


def _bind(folder: Folder, top: Path, given: Mapping[str, Bind]) -> Bind:
    own = given.get(folder.destination)
    if own is not None:
        return Bind(source=own.source, destination=folder.destination, writable=folder.writable)
    if folder.source is None:
        raise RepeatError(
            f"{one_line(folder.destination)}: was a folder outside of the project, which the receipt does not"
            " name",
            hint=f"say which one with -v FOLDER:{folder.destination}",
        )
    source = (top / folder.source).resolve()
    if not source.is_relative_to(top):
        raise RepeatError(
            f"{one_line(folder.source)} leads out of the project {top}",
            hint=f"say which folder is meant with -v FOLDER:{folder.destination}",
        )
    if not source.exists():
        raise RepeatError(
            one_line(f"{source}: no such file or folder; the receipt has it at {folder.destination}"),
            hint="start in the folder of the project, or name it with --project",
        )
    return Bind(source=source, destination=folder.destination, writable=folder.writable)


def before(
    receipt: Receipt,
    *,
    digest: str,
    engine: str,
    lock: str,
    variables: Mapping[str, str],
    binds: Sequence[Bind],
    code: Code | None,
) -> list[Departure]:
    """Return the differences that can be found before a run."""
    return [
        *_image(receipt, digest, engine, lock),
        *_variables(receipt, variables),
        *(change for file in receipt.inputs if (change := _input(file, binds)) is not None),
        *_code(receipt.code, code),
    ]


def _image(receipt: Receipt, digest: str, engine: str, lock: str) -> list[Departure]:
    if receipt.lock != lock:
        return [
            Departure("image", f"made from the lock {receipt.lock or 'unknown'}, here from {lock or 'none'}")
        ]
    # Engines name the same files by other digests.
    if receipt.digest != digest and (receipt.engine == engine or not lock):
        return [Departure("image", f"{receipt.digest}, here {digest}")]
    return []


def _variables(receipt: Receipt, variables: Mapping[str, str]) -> list[Departure]:
    found = []
    for name in sorted(receipt.variables.keys() | variables.keys()):
        was, now = receipt.variables.get(name), variables.get(name)
        if name not in receipt.variables:
            found.append(Departure("variable", f"{name} is set, and was not"))
        elif now is None:
            hint = ", a secret whose value is not in the receipt: pass it with -e" if was is None else ""
            found.append(Departure("variable", f"{name} is not set{hint}"))
        elif was is not None and was != now:
            found.append(Departure("variable", f"{name} was {was!r}, now {now!r}"))
    return found


def _input(file: InputFile, binds: Sequence[Bind]) -> Departure | None:
    try:
        now = input_file(file.path, binds, MOST_TEXT)
    except OSError as error:
        return Departure("input", f"{file.path}: {error.strerror or error}")
    if now.sha256 == file.sha256:
        same = now.size == file.size and (not file.lines or file.lines == now.lines)
        return (
            None
            if same
            else Departure("input", f"{file.path}: the receipt contradicts itself: size or lines")
        )
    line = _line(file, binds)
    size = (
        f"{file.size} bytes, now {now.size}"
        if file.size != now.size
        else f"{file.size} bytes, of which some differ"
    )
    return Departure("input", f"{file.path}{line or f': {size}'}")


def _line(file: InputFile, binds: Sequence[Bind]) -> str:
    """Name the first line of a text that differs; empty if it is not known."""
    if not file.lines:
        return ""
    with open_in(file.path, binds) as opened:
        data = opened.read(MOST_TEXT + 1)
    if len(data) > MOST_TEXT or b"\0" in data or is_secret_file(file.path, len(data)):
        return ""  # whoever wrote the receipt chose the file, and the line may get into a log
    was = [file.lines[at : at + 6] for at in range(0, len(file.lines), 6)]
    digests, lines = line_digests(data), data.split(b"\n")
    now = [digests[at : at + 6] for at in range(0, len(digests), 6)]
    number = next(
        (at for at, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), min(len(was), len(now))
    )
    if number < len(now):
        return f":{number + 1}: now {lines[number][:120].decode('utf-8', 'backslashreplace')!r}"
    return f": ended with line {len(was)}, now with line {len(now)}" if len(was) != len(now) else ""


def _code(was: Code | None, now: Code | None) -> list[Departure]:
    if was is None:
        return []
    if now is None:
        return [
            Departure(
                "code", f"it was commit {was.commit[:12] or 'without a name'} of git, and is in no git here"
            )
        ]
    if was.tree and was.tree != now.tree:
        dirty = " with changes" if was.dirty else ""
        told = f"commit {was.commit[:12]}{dirty}, now {now.commit[:12]}{' with changes' if now.dirty else ''}"
        return [Departure("code", f"files that git tracks are not as they were ({told})")]
    if was.commit != now.commit:
        return [Departure("code", f"commit {was.commit[:12]}, now {now.commit[:12]}, with the same files")]
    if was.dirty != now.dirty:
        return [
            Departure("code", f"{'with' if was.dirty else 'without'} changes to commit {was.commit[:12]}")
        ]
    return []


def machines_apart(receipt: Receipt, now: Mapping[str, str]) -> list[Departure]:
    """Return what of the kind of machine differs; ``now``: as a receipt has it."""
    return [
        Departure(
            "machine", f"{name} {receipt.machine.get(name, 'unknown')}, here {now.get(name, 'unknown')}"
        )
        for name in sorted(receipt.machine.keys() | now.keys())
        if receipt.machine.get(name) != now.get(name)
    ]


def after(receipt: Receipt, now: Receipt) -> list[Departure]:
    """Return the differences in the results: steps first, then files, output and status.

    What the program reads now and did not read then comes before, such as a checkpoint of the first run.
    """
    results = _results(receipt, now)
    return [*read_now(receipt, now), *results] if results else []


def read_now(receipt: Receipt, now: Receipt) -> list[Departure]:
    """Return the files, at most twenty, that a run has read and that the receipt does not name."""
    known = {file.path for file in receipt.inputs}
    return [
        Departure("input", f"{file.path} is read now, and was not")
        for file in now.inputs
        if file.path not in known and not any(file.path in note for note in receipt.notes)
    ][:20]


def _results(receipt: Receipt, now: Receipt) -> list[Departure]:
    return [
        *_steps(receipt, now),
        *_outputs(receipt, now),
        *(
            [Departure("output", "standard output differs, beside times")]
            if receipt.stdout is not None and receipt.stdout != now.stdout
            else []
        ),
        *(
            [Departure("status", f"ended with status {receipt.status}, now {now.status}")]
            if receipt.status != now.status
            else []
        ),
    ]


def _steps(receipt: Receipt, now: Receipt) -> list[Departure]:
    if len(receipt.steps) != len(now.steps):
        return [Departure("step", f"{len(receipt.steps)} processes took steps, now {len(now.steps)}")]
    firsts = []
    for was, here in zip(receipt.steps, now.steps, strict=True):
        place = f" of {was.process}" if len(receipt.steps) > 1 and was.process else ""
        if was.process != here.process:
            return [Departure("step", f"the process {was.process!r} is now {here.process!r}")]
        rows = enumerate(zip(was.moments, here.moments, strict=False))
        at = next((number for number, (a, b) in rows if a != b), None)
        if at is not None:
            label, other = was.moments[at][0], here.moments[at][0]
            within = " or one before it" if was.count > len(was.moments) else ""
            told = f"{label}{place}{within} differs" if label == other else f"{label}{place} is now {other}"
            firsts.append((at, told))
        elif was.count != here.count or len(was.moments) != len(here.moments):
            firsts.append((len(was.moments), f"{was.count} steps{place}, now {here.count}"))
    return [Departure("step", min(firsts)[1])] if firsts else []


def _outputs(receipt: Receipt, now: Receipt) -> list[Departure]:
    found = []
    one, other = ({file.path: file for file in each.outputs} for each in (receipt, now))
    for path in sorted(one.keys() | other.keys()):
        if path not in other:
            found.append(Departure("output", f"{path} is not written now"))
        elif path not in one:
            found.append(Departure("output", f"{path} is written now, and was not"))
        elif one[path].meaning != other[path].meaning:
            found.append(
                Departure("output", f"{path} differs: {one[path].size} bytes, now {other[path].size}")
            )
        elif one[path].sha256 == other[path].sha256 and one[path].size != other[path].size:
            found.append(Departure("output", f"{path}: the receipt contradicts itself: size"))
    return found


def beside_apart(receipt: Receipt, binds: Sequence[Bind]) -> list[str]:
    """Return the files that the program was not seen to read and that are not as they were.

    One that the run itself writes is no cause.
    """
    written = {file.path for file in receipt.outputs}
    found = []
    for file in receipt.beside:
        try:
            if file.path not in written and input_file(file.path, binds, 0).sha256 != file.sha256:
                found.append(file.path)
        except OSError:
            found.append(file.path)
    return found
