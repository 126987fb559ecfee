"""Whether a row of a model's answer depends on its batch, by what the recorder tried. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from ..errors import RepeatError
from ..request.table import NUMBER, Table, TableError, Types, refused_as
from .cause_report import ulp_text
from .records import ProgramLine, Stream

MOST_MODELS = 8
"""Of one process, as in ``in_image.twice.batch_calls``."""

Verdict = Literal["content", "size", "unrepeatable", "unknown", "independent"]
"""Worst first: it depends on the other rows; on their number, its place or padding; does not repeat."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """One way to make a batch of a row and others."""

    way: str
    equal: int
    differ: int
    ulp: int
    """The largest distance; -1: there is none in ULP."""
    share: float
    """The largest difference, in the largest value of its row; -1: not a number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstOperation:
    """The first operation that gave a row another value."""

    op: str
    place: ProgramLine
    module: str
    ulp: int
    share: float
    path: bool
    """Whether the other batch did another operation here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TriedModel:
    """A model of the program, and the results for its rows."""

    model: str
    called: ProgramLine
    verdict: Verdict
    rows: int
    """Rows of the program's own batch."""
    arguments: tuple[str, ...]
    """Those that have rows, and along which dimension."""
    ways: tuple[Way, ...]
    operation: FirstOperation | None
    notes: tuple[str, ...]
    """What was not tried or not compared, and why."""
    reason: str
    """Why nothing can be said; else empty."""


_MODEL: Types = {
    "k": str, "n": int, "model": str, "called": list, "verdict": str, "rows": int, "arguments": list,
    "ways": list,
    "operation": (dict, type(None)), "notes": list, "reason": str,
}  # fmt: skip
_WAY: Types = {"way": str, "equal": int, "differ": int, "ulp": int, "share": NUMBER}
_OPERATION: Types = {
    "op": str, "place": list, "module": str, "ulp": int, "share": NUMBER, "path": bool,
}  # fmt: skip


def tried_models(streams: Sequence[Stream]) -> list[TriedModel]:
    """Return the models that a run's processes tried. Raises `RepeatError`."""
    found: list[TriedModel] = []
    with refused_as(RepeatError, "the records of a run cannot be read"):
        for stream in streams:
            last: dict[int, TriedModel] = {}
            for record in stream.batches:
                table = Table(record, "batch")
                last[table.fields(_MODEL)["n"]] = _model(table)  # of a model that was tried again, the last
            models = [*last.values()]
            if len(models) >= MOST_MODELS:
                more = (
                    f"not tried: models that this process called after these {len(models)}, if there are any"
                )
                models[-1] = replace(models[-1], notes=(*models[-1].notes, more))
            found += models
    return found


def _model(table: Table) -> TriedModel:
    table.choice("verdict", get_args(Verdict))
    fields = table.data
    operation = None
    if fields["operation"] is not None:
        inner = table.table("operation")
        operation = FirstOperation(**{**inner.fields(_OPERATION), "place": _place(inner, "place")})
    return TriedModel(
        model=fields["model"][:200],
        called=_place(table, "called"),
        verdict=fields["verdict"],
        rows=fields["rows"],
        arguments=tuple(table.texts("arguments")),
        ways=tuple(Way(**each.fields(_WAY)) for each in table.tables("ways")),
        operation=operation,
        notes=tuple(table.texts("notes")),
        reason=fields["reason"],
    )


def _place(table: Table, key: str) -> ProgramLine:
    match table.data[key]:
        case [str(file), int(line), str(function), str(text)]:
            return ProgramLine(file, line, function, text)
    raise TableError(f"{table.where(key)}: expected file, line, function and text")


_LEFT_OUT = ("not tried", "not compared")
"""Prefixes of notes that limit the verdict."""


def worst(found: Sequence[TriedModel]) -> TriedModel | None:
    """Return the model whose verdict counts for all; None: no model was called."""
    order = get_args(Verdict)
    return min(found, key=lambda model: order.index(model.verdict), default=None)


def batch_line(found: Sequence[TriedModel]) -> str:
    """Return the verdict in one line."""
    model = worst(found)
    if model is None:
        return "no model was called: no torch.nn.Module with parameters, in a Python process that is recorded"
    match model.verdict:
        case "independent":
            notes = [note for each in found for note in each.notes]
            far = " as far as it was tried" if any(note.startswith(_LEFT_OUT) for note in notes) else ""
            names = ", ".join(each.model for each in found)
            return f"a row does not depend on its batch{far} ({names}: {_ways(model, differ=False)})"
        case "size":
            return f"a row depends on {_on(model)} ({model.model}: {_ways(model, differ=True)})"
        case "content":
            return (
                f"a row depends on the other rows in its batch ({model.model}: {_ways(model, differ=True)})"
            )
        case "unrepeatable":
            return (
                f"the same call of {model.model} gives another answer each time: nothing is known of its rows"
            )
        case "unknown":
            return f"it cannot be said whether a row of {model.model} depends on its batch: {model.reason}"


def _on(model: TriedModel) -> str:
    differ = {way.way for way in model.ways if way.differ}
    if any(re.match(r"\d", way) for way in differ):
        return "how many rows are in its batch"
    if "permuted" in differ:
        return "its place in the batch"
    return "padding"


def _ways(model: TriedModel, *, differ: bool) -> str:
    ways = [way for way in model.ways if bool(way.differ) == differ]
    sizes = sorted(int(way.way.split()[0]) for way in ways if re.match(r"\d+ rows", way.way))
    words = [way.way for way in ways if not re.match(r"\d", way.way)]
    if sizes:
        among = (
            f"{len(sizes)} sizes from {sizes[0]} to {sizes[-1]} rows"
            if len(sizes) > 1
            else f"{sizes[0]} rows"
        )
        words.insert(0, f"in batches of {among}" if differ else f"alone and in batches of {among}")
    if differ:
        words.append(_apart(ways))
    return ", ".join(word for word in words if word)


def _apart(ways: Sequence[Way | FirstOperation]) -> str:
    """Return the largest distance in words; a distance in ULP says little where it is large."""
    shares = [way.share for way in ways if way.share >= 0]
    ulps = [way.ulp for way in ways]
    if not ulps or min(ulps) < 0 or len(shares) < len(ulps):
        return "no distance" if ulps else ""
    return f"up to {ulp_text(max(ulps))}, {max(shares):.1e} of the largest value"


def batch_rows(found: Sequence[TriedModel]) -> list[tuple[str, str]]:
    """Return the lines of the report below the verdict: heading and text."""
    lines: list[tuple[str, str]] = []
    for model in found:
        lines.append(("model", f"{model.model}, called at {model.called}: `{model.called.text}`"))
        lines.append(
            ("", f"{_said(model)}; {model.rows} rows, {', '.join(model.arguments) or 'no argument'}")
        )
        if (first := model.operation) is not None:
            what = f"{first.op} in `{first.module}` at {first.place}: `{first.place.text}`"
            apart = "other operations from here on" if first.path else _apart([first])
            lines.append(("first operation", f"{what} ({apart})"))
        differ = _ways(model, differ=True) if any(way.differ for way in model.ways) else ""
        lines += [("differs", differ)] if differ else []
        equal = _ways(model, differ=False) if any(not way.differ for way in model.ways) else ""
        lines += [("equal", equal)] if equal else []
        lines += [("note", note) for note in model.notes]
    return lines


def _said(model: TriedModel) -> str:
    return {
        "content": "depends on the other rows",
        "size": f"depends on {_on(model)}",
        "unrepeatable": "does not repeat",
        "unknown": f"not known: {model.reason}",
        "independent": "rows do not depend on their batch",
    }[model.verdict]


def batch_dict(found: Sequence[TriedModel]) -> dict[str, Any]:
    """Return the report for JSON."""
    model = worst(found)
    return {
        "batch": "unknown" if model is None else model.verdict,
        "line": batch_line(found),
        "models": [asdict(each) for each in found],
    }
