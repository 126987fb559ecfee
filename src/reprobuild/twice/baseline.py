"""Digests of a run in a small file, to compare with a later run of another lock or elsewhere."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import RepeatError
from ..host.home import atomic_write, open_regular
from . import evidence_limits as limits
from .derived_items import Item
from .evidence import Evidence
from .first_difference import (
    Parting,
    TimelineRow,
    first_parting,
    kinds_apart,
    lines_apart,
    machine_of,
    pairs,
    timeline,
)
from .ignored import Ignored
from .recorded_run import ProgramRun
from .records import Moment, MomentPart, Stream, processes
from .text_differences import Texts

FORMAT = 4
_RECORD = "`reprobuild twice --record FILE` writes one"
MOST_BYTES = 64 << 20
MOST_INFLATED = 512 << 20
_DIGITS = 16
STATUS = "exit status"
"""What `Agreed.output` has where the program ended in another way."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Baseline:
    """The content of a file of ``--record``."""

    machine: Mapping[str, str]
    """What decides which bits are right: versions, CPU, threads."""
    streams: Sequence[Stream]
    status: int | None
    """The program's exit status."""
    stdout: Sequence[str]
    files: Mapping[str, str]
    evidence: Evidence
    ignored: Ignored


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreed:
    """A run compared with a baseline."""

    kinds: tuple[str, ...]
    """What the two machines differ in; empty: they are of one kind, and every bit has to agree."""
    parting: Parting | None
    distances: tuple[TimelineRow, ...]
    """The moments that differ, in their order."""
    steps: int
    output: tuple[str, ...]
    """Names of files, `STATUS` and ``standard output``, that are not the same."""

    @property
    def holds(self) -> bool:
        """Whether the run matches: bit for bit, or on another kind of machine the same steps.

        There the end may differ where steps do, since other bits make another output, and only there; but
        not in how the program ended.
        """
        same_steps = self.parting is None or self.parting.kind == "value"
        if self.kinds and self.distances:
            return same_steps and STATUS not in self.output
        return self.parting is None and not self.output


def write_baseline(path: Path, run: ProgramRun, ignored: Ignored) -> None:
    """Write a run's digests, and what was ignored. The same run gives the same bytes."""
    table = {
        "format": FORMAT,
        "machine": machine_of(run.streams),
        "streams": [
            {
                "rank": stream.rank,
                "worker": stream.worker,
                "process": stream.process,
                "argv": list(stream.argv[:1]),
                "moments": [_moment_json(moment) for moment in stream.moments],
                **({"thread": True} if stream.is_thread else {}),
            }
            for stream in run.streams
            if stream.moments
        ],
        "status": run.status,
        "stdout": list(run.stdout),
        "files": _meanings(run),
        "evidence": _evidence_json(run.evidence),
        "ignored": [list(ignored.line_patterns), list(ignored.file_patterns)],
    }
    text = json.dumps(table, sort_keys=True, separators=(",", ":"))
    atomic_write(path, zlib.compress(text.encode(), 9))


def _evidence_json(evidence: Evidence) -> dict[str, Any]:
    sites = {site: number for number, site in enumerate(dict.fromkeys(each.site for each in evidence.items))}
    return {
        "times": [evidence.began, evidence.ended],
        "zones": list(evidence.zones),
        "memory": [list(each) for each in evidence.memory],
        "names": {kind: list(names) for kind, names in evidence.names.items()},
        "several": evidence.several,
        "alone": sorted(evidence.alone),
        "sites": list(sites),
        "items": [
            [sites[item.site], item.value, item.at, item.left, item.process] for item in evidence.items
        ],
    }


def _evidence(table: Mapping[str, Any]) -> Evidence:
    sites = [(_str(kind), _str(file), int(line), int(which)) for kind, file, line, which in table["sites"]]
    began, ended = map(limits.moment, table["times"])
    return Evidence(
        began=began,
        ended=ended,
        zones=tuple(map(limits.zone, table["zones"])),
        memory=tuple(map(limits.address_range, table["memory"])),
        names=limits.bounded_names({_str(k): tuple(map(_str, names)) for k, names in table["names"].items()}),
        several=bool(table["several"]),
        alone=frozenset(map(_str, table["alone"])),
        items=[
            Item(sites[int(site)], kept, limits.count(at), limits.count(left), limits.count(process))
            for site, value, at, left, process in table["items"]
            if (kept := limits.measured(value)) is not None
        ],
    )


def _ignored(lines: list[Any], files: list[Any]) -> Ignored:
    for pattern in lines:
        re.compile(pattern)
    return Ignored(tuple(map(_str, lines)), tuple(map(_str, files)))


def _meanings(run: ProgramRun) -> dict[str, str]:
    """Return what the files mean by their paths; of several with one path, all."""
    found: dict[str, str] = {}
    for file in run.files:
        found[file.path] = " ".join(filter(None, (found.get(file.path), file.meaning(run.evidence))))
    return found


def _moment_json(moment: Moment) -> list[Any]:
    parts = [
        [part.name, part.digest[:_DIGITS]] for part in moment.parts if not part.name.startswith("random ")
    ]
    return [moment.kind, moment.label, parts, list(moment.losses), list(moment.sample)]


def read_baseline(path: Path) -> Baseline:
    """Read such a file, which is untrusted. Raises `RepeatError`."""
    try:
        with open_regular(path) as file:
            inflater = zlib.decompressobj()
            text = inflater.decompress(file.read(MOST_BYTES), MOST_INFLATED)
        table = limits.load_values(text)
        if table["format"] != FORMAT:
            raise RepeatError(
                f"{path}: a recording of another format; this reprobuild reads {FORMAT}", hint=_RECORD
            )
        return Baseline(
            machine={_str(key): _str(value) for key, value in table["machine"].items()},
            streams=[_stream(each) for each in table["streams"]],
            status=None if table["status"] is None else int(table["status"]),
            stdout=[_str(line) for line in table["stdout"]],
            files={_str(name): _str(digest) for name, digest in table["files"].items()},
            evidence=_evidence(table["evidence"]),
            ignored=_ignored(*table["ignored"]),
        )
    except OSError as error:
        raise RepeatError(f"{path}: {error.strerror}", hint=_RECORD) from None
    except (
        zlib.error,
        re.error,
        ValueError,
        KeyError,
        IndexError,
        OverflowError,
        TypeError,
        AttributeError,
        RecursionError,
    ):
        raise RepeatError(f"{path} is not a recording of a run", hint=_RECORD) from None


def _stream(table: Mapping[str, Any]) -> Stream:
    return Stream(
        rank=_str(table["rank"]),
        worker=_str(table["worker"]),
        process=_str(table["process"]),
        argv=tuple(_str(word) for word in table["argv"]),
        values=Path(),
        moments=[_moment(number, row) for number, row in enumerate(table["moments"])],
        is_thread=bool(table.get("thread")),
    )


def _moment(number: int, row: Any) -> Moment:
    kind, label, parts, losses, sample = row
    return Moment(
        kind=_str(kind),
        label=_str(label),
        number=number,
        parts=tuple(MomentPart(_str(name), _str(digest), b"") for name, digest in parts),
        names={},
        losses=tuple(float(value) for value in losses),
        sample=tuple(float(value) for value in sample),
        wall=0.0,
        spent=0.0,
    )


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("expected text")
    return value


def against(baseline: Baseline, run: ProgramRun) -> Agreed:
    """Compare a run with a baseline."""
    streams = [_shortened(stream) for stream in run.streams if stream.moments]
    machine = machine_of(run.streams)
    kinds = kinds_apart(baseline.machine, machine, "here")
    rows = [
        row
        for one, other in pairs(baseline.streams, streams)
        if one is not None and other is not None
        for row in timeline(one, other)
    ]
    many = (
        max(map(processes, (baseline.streams, streams))) > 1
        or baseline.evidence.several
        or run.evidence.several
    )
    many = many and "stdout" not in baseline.evidence.alone & run.evidence.alone
    texts = Texts(baseline.evidence, run.evidence)
    apart, _ = lines_apart(texts, baseline.stdout, run.stdout, "standard output", many=many)
    output = [STATUS] if baseline.status != run.status else []
    output += ["standard output"] if apart else []
    files = _meanings(run)
    names = sorted(baseline.files.keys() | files.keys())
    output += [name for name in names if baseline.files.get(name) != files.get(name)]
    return Agreed(
        kinds=kinds,
        parting=first_parting(baseline.streams, streams),
        distances=tuple(row for row in rows if row.parted),
        steps=len(rows),
        output=tuple(output),
    )


def _shortened(stream: Stream) -> Stream:
    return replace(
        stream,
        argv=stream.argv[:1],
        moments=[
            replace(
                moment,
                parts=tuple(
                    MomentPart(part.name, part.digest[:_DIGITS], b"")
                    for part in moment.parts
                    if not part.name.startswith("random ")
                ),
            )
            for moment in stream.moments
        ],
    )
