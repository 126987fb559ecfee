"""Report for people and programs, the verdict in one line first. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from .cause_report import cause_json, cause_rows, listed
from .first_difference import EndDifference, Parting, TimelineRow, pairs, status_text, timeline
from .ranks import same_draws
from .recorded_run import Comparison
from .recorder_cost import RecorderCost, measured
from .variations import VARIATIONS
from .written import LEFT_OUT

Verdict = Literal["repeats", "text", "parts", "unfinished"]


def verdict(found: Comparison) -> Verdict:
    """Return ``unfinished`` for runs that are equal but failed, which proves nothing.

    ``text``: all that differs is explained by a clock, a drawn name, or the like.
    """
    if found.parting is not None or found.ends:
        return "parts"
    if found.runs[0].status != 0:
        return "unfinished"
    return "text" if found.texts else "repeats"


def verdict_line(found: Comparison) -> str:
    """Return the verdict in one line."""
    what = counted(found)
    match verdict(found):
        case "repeats":
            missing = f"repeats as far as it was recorded ({what}); the notes say what was not"
            return missing if _missing(found) else f"repeats bit for bit ({what})"
        case "text":
            text = f"text differs in {_number(len(found.texts), 'place')}"
            if _missing(found):
                text = f"as far as they were recorded, {text}"
            return f"numbers repeat, {text} ({what})"
        case "unfinished":
            return f"{status_text(found.runs[0].status)} in each run; until then it repeats ({what})"
        case "parts":
            if found.parting is None:
                first = found.ends[0]
                return f"parts at its end: {first.what}: {first.told}; {_equal_until_then(found)}"
            return f"parts at {where(found.parting)}"


def counted(found: Comparison) -> str:
    """Say what was compared."""
    run = found.runs[0]
    kinds = {"step": 0, "call": 0}
    for stream in run.streams:
        for moment in stream.moments:
            if moment.kind in kinds:
                kinds[moment.kind] += 1
    ranks = {stream.rank for stream in run.streams if stream.rank and stream.moments}
    words = [f"{len(found.runs)} runs", _number(kinds["step"], "step")]
    words += [_number(kinds["call"], "call") + " of models without gradients"] if kinds["call"] else []
    words += [f"{len(ranks)} ranks"] if len(ranks) > 1 else []
    words += [_number(sum(map(bool, run.stdout)), "line") + " of output", _number(len(run.files), "file")]
    return ", ".join(words)


def _number(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _equal_until_then(found: Comparison) -> str:
    steps = sum(len(stream.moments) for stream in found.runs[0].streams)
    return (
        f"all {_number(steps, 'step')} before were equal"
        if steps
        else "it took no step that could be compared"
    )


def where(parting: Parting) -> str:
    """Say where two runs part, and what was equal before."""
    who = f" of {parting.stream}" if parting.stream else ""
    if parting.kind != "value":
        return f"{parting.label}{who}: {parting.told}"
    text = f"{parting.label}{who}: {_what(parting)}"
    equal = list(dict.fromkeys(parting.equal))
    if equal:
        it = "it" if len(parting.names) < 2 else "them"
        text += f"; {listed(equal)} before {it} {'was' if len(equal) == 1 else 'were'} equal"
    return text


def _what(parting: Parting) -> str:
    if parting.names:
        more = len(parting.names) - 1
        rest = f" and {more} more of {parting.of}" if more else ""
        return f"{parting.part} of `{parting.names[0]}`{rest}"
    if parting.items:
        if parting.reordered:
            return f"{parting.part}: the same items in another order, from item {parting.items[0]} on"
        differ = "differs" if len(parting.items) == 1 else "differ"
        return f"{parting.part}: item {parting.items[0]} ({_number(len(parting.items), 'item')} {differ})"
    return parting.part


def rows(found: Comparison) -> list[tuple[str, str]]:
    """Return the lines of the report below the verdict: heading and text."""
    lines: list[tuple[str, str]] = []
    if found.varied:
        lines.append(("varied", f"{VARIATIONS[found.varied][0]}, in one run; the others were equal"))
    if found.cause is not None:
        lines += list(cause_rows(found.cause))
    elif found.stopped:
        lines.append(("cause", f"not known: {found.stopped} while the program ran with a trace"))
    elif found.traced:
        lines.append(("cause", _not_caught(found)))
    if _draws(found) and found.parting is not None:
        text = f"that of {found.parting.generator} was in another state at {found.parting.generator_label}"
        lines.append(("random generator", text))
    if verdict(found) == "parts":
        start = 0 if found.parting is not None else 1
        lines += [("also", f"{end.what}: {end.told}") for end in found.ends[start : start + 5]]
        if len(found.ends) > start + 5:
            lines.append(("also", f"{len(found.ends) - start - 5} more differences at the end"))
    lines += list(_text_rows(found))
    if found.runs[0].status != 0 and found.runs[0].last:
        said = found.runs[0].last.splitlines()
        lines += [("" if number else "it said", line) for number, line in enumerate(said)]
    lines += [("note", note) for note in notes(found)]
    lines.append(("compared", counted(found)))
    lines.append(("cost", cost(found)))
    lines += [("ignored", f"{count} {what}") for what, count in sorted(found.ignored.met.items())]
    return lines


MOST_TEXTS = 20


def _text_rows(found: Comparison) -> Iterator[tuple[str, str]]:
    """Yield what of the text differs, and what it comes from."""
    for difference in found.texts[:MOST_TEXTS]:
        values = f"{difference.values[0]} and {difference.values[1]}"
        yield "text differs", f"{difference.where}: {values} ({difference.kind})"
    if len(found.texts) > MOST_TEXTS:
        yield "", f"{len(found.texts) - MOST_TEXTS} more; --json has all"


def _draws(found: Comparison) -> bool:
    """Whether a generator that differed before may be why; most differ in each run, and nobody draws."""
    of_data = found.cause is None or found.cause.kind in ("random", "flow")
    return found.parting is not None and bool(found.parting.generator) and of_data


def _not_caught(found: Comparison) -> str:
    pairs_made = _number(found.traced, "pair")
    if found.recurred:
        return f"not known: {pairs_made} of runs with a trace parted again, and no record leads to a cause"
    return (
        f"seen once, not caught again: {pairs_made} of runs with a trace did not part there;"
        " run it again, or with --times 5"
    )


def notes(found: Comparison) -> list[str]:
    """Return notes on what was not observed, and on differences without effect."""
    streams = found.runs[0].streams
    result = []
    if not any(stream.torch for stream in streams):
        result.append("no process imported torch; exit status, output and files were compared")
    elif not any(moment.kind == "step" for stream in streams for moment in stream.moments):
        result.append(
            "no optimizer of torch took a step; what models gave without gradients was compared, and the ends"
        )
    result += _missing(found)
    result += _cached(found)
    result += _variations(found)
    result += same_draws(streams)
    if found.parting is None:
        result += _quiet_generators(found)
    return result


def _cached(found: Comparison) -> list[str]:
    """Return a note on caches, which are not compared, and whether they differ."""
    one, other = found.runs[0].cached, found.runs[found.other - 1].cached
    paths = sorted(one.keys() | other.keys())
    if not paths:
        return []
    apart = [path for path in paths if one.get(path) != other.get(path)]
    what = f"not compared: {_number(len(paths), 'file')} in caches, such as {(apart or paths)[0]}"
    return [f"{what}; {len(apart)} of them differ" if apart else what]


def _variations(found: Comparison) -> list[str]:
    """Say which variations changed nothing, and which were not tried."""
    parts = verdict(found) == "parts"
    tried = found.vary[: found.vary.index(found.varied)] if found.varied else () if parts else found.vary
    left = found.vary[len(tried) + bool(found.varied) :]
    result = (
        [f"varied, and no result changed: {', '.join(VARIATIONS[name][0] for name in tried)}"]
        if tried
        else []
    )
    if left:
        names = ", ".join(VARIATIONS[name][0] for name in left)
        result.append(f"not varied, since results differ already: {names}")
    return result


def _missing(found: Comparison) -> list[str]:
    """Return notes on the parts of the program that were not recorded."""
    streams = [stream for run in found.runs for stream in run.streams]
    result = []
    if any(stream.hooks is False for stream in streams):
        result.append("the program took the recorder's hooks away, so steps may be missing")
    if any(stream.cut for stream in streams):
        result.append("the program took more steps than are recorded; what came later was not compared")
    parts = (part for stream in streams for moment in stream.moments for part in moment.parts)
    return result + sorted({part.name for part in parts if part.name.startswith("not recorded")})


def _quiet_generators(found: Comparison) -> list[str]:
    names: dict[str, None] = {}
    for one, other in pairs(found.runs[0].streams, found.runs[found.other - 1].streams):
        if one is None or other is None:
            continue
        for row in timeline(one, other):
            names |= dict.fromkeys(name[7:] for name in row.parted if name.startswith("random "))
    return [
        f"the random generator of {name} was in another state in each run, and nothing came of it"
        for name in names
    ]


def cost(found: Comparison) -> str:
    """Say what the recorder took of the steps' time: by a run without it, or else as it measured itself."""
    if found.plain is not None:
        return _measured_cost(found, measured_cost(found))
    moments = [m for stream in found.runs[0].streams for m in stream.moments if m.kind == "step"]
    wall, spent = (sum(getattr(m, name) for m in moments[1:]) for name in ("wall", "spent"))
    if not wall:
        return "not measured: fewer than two steps"
    share = f"the recorder took {100 * spent / wall:.1f} % of the steps' time by its own clock"
    return f"{share}; --cost measures it by a run without, --every N makes it less"


def measured_cost(found: Comparison) -> RecorderCost | None:
    """Return the cost by the run without the recorder, if there was one with enough steps."""
    if found.plain is None:
        return None
    return measured([run.streams for run in found.runs], found.plain.streams, found.every)


def _measured_cost(found: Comparison, cost: RecorderCost | None) -> str:
    if cost is None:
        needed = _number(found.every + 1, "step")
        return f"not measured: a process has to take {needed} both with the recorder and without"
    took = f"a step took {1e3 * cost.recorded:.3g} ms with the recorder and {1e3 * cost.plain:.3g} ms without"
    return f"{cost.percent:+.1f} %: {took} (medians of {_number(cost.steps, 'step')}, and of a run without)"


def left_out() -> list[str]:
    """Return the rules by which written files are not compared."""
    return [name for name, _ in LEFT_OUT]


def timelines(found: Comparison) -> list[tuple[str, list[TimelineRow]]]:
    """Return the moments of each process that has some, run 1 beside the run that differs."""
    sides = pairs(found.runs[0].streams, found.runs[found.other - 1].streams)
    return [(a.label, timeline(a, b)) for a, b in sides if a is not None and b is not None and a.moments]


def to_dict(found: Comparison) -> dict[str, Any]:
    """Return the report for JSON."""
    return {
        "verdict": verdict(found),
        "line": verdict_line(found),
        "runs": len(found.runs),
        "compared": counted(found),
        "parting": _parting_json(found.parting, found.other),
        "cause": cause_json(found.cause),
        "traced": found.traced,
        "ends": [_end_json(end) for end in found.ends],
        "notes": notes(found),
        "cost": cost(found),
        "measured_cost": _cost_json(measured_cost(found)),
        "texts": [
            {"where": text.where, "values": list(text.values), "kind": text.kind} for text in found.texts
        ],
        "ignored": dict(found.ignored.met),
        "stopped": found.stopped,
        "varied": found.varied,
        "left_out": left_out(),
        "status": [run.status for run in found.runs],
    }


def _parting_json(parting: Parting | None, other: int) -> dict[str, Any] | None:
    if parting is None:
        return None
    return {
        "runs": [1, other],
        "kind": parting.kind,
        "process": parting.stream,
        "at": parting.label,
        "part": parting.part,
        "tensors": list(parting.names),
        "items": list(parting.items),
        "reordered": parting.reordered,
        "equal_before": list(parting.equal),
        "told": parting.told,
    }


def _cost_json(cost: RecorderCost | None) -> dict[str, float] | None:
    if cost is None:
        return None
    return {
        "step_seconds": cost.recorded,
        "step_seconds_without": cost.plain,
        "percent": cost.percent,
        "steps": cost.steps,
    }


def _end_json(end: EndDifference) -> dict[str, str]:
    return {"what": end.what, "told": end.told}
