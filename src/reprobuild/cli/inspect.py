"""The command ``inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..host.console import size_text
from ..host.home import atomic_write
from ..host.host import Host
from ..selftest.pages import template
from ..selftest.summary import facts, tally, unproven, untested_gpu
from ..verify.find_evidence import find_evidenced
from ..verify.inspected import Inspected, inspect_image, origins
from . import complete
from .evidence_options import key_option
from .output import STACK, as_json, columns, emit, file_option, table

_SHOWN = 10
"""Packages that a terminal shows."""


@click.command()
@click.argument("image", shell_complete=complete.images_or_files)
@key_option("Public key, to say what it signed; may be repeated.")
@file_option("-o", "--output", text="Write one HTML page, which loads nothing from elsewhere.")
@as_json
@click.pass_obj
def inspect(host: Host, image: str, *, keys: tuple[Path, ...], output: Path | None, json_: bool) -> None:
    """Show what is in an image, what was tested, and who says so.

    IMAGE is one of an engine, an archive, or REGISTRY/NAME:TAG or REGISTRY/NAME@DIGEST, of which no layer is
    read but the small one with the lock. Nothing is judged: `verify` does that.

    \b
    reprobuild inspect registry.example/team/torch:1 --key team.pub
    reprobuild inspect reprobuild/torch:2.4.1-cu121-py311 -o torch.html
    """
    from ..verify.evidence.keys import read_public_key  # noqa: PLC0415 -- slow to load

    found = inspect_image(find_evidenced(image, (), host), [read_public_key(key) for key in keys])
    if output is not None:
        page = template("inspect.html.j2").render(
            found=found, origins=origins(found.packages), size=size_text
        )
        atomic_write(output, page.encode())
    if json_:
        emit(_facts(found))
    elif output is None:
        _show(found)
    else:
        click.echo(f"{output}: {found.name}, {found.digest}")


def _show(found: Inspected) -> None:
    table("", _rows(found))
    if found.layers:
        click.echo("")
        columns(
            ("LAYER", "SIZE", "CONTENT"),
            [(y.digest[7:19], size_text(y.size), y.title or "-") for y in found.layers],
        )
    if found.packages:
        click.echo("")
        columns(
            ("FROM", "ORIGIN", "PACKAGES", "DOWNLOAD"),
            [(kind, origin, str(n), size_text(size)) for kind, origin, n, size in origins(found.packages)],
        )
        click.echo("")
        shown = found.packages[:_SHOWN]
        columns(
            ("PACKAGE", "VERSION", "FROM", "DOWNLOAD"),
            [(p.name, p.version, p.kind, size_text(p.size)) for p in shown],
        )
        if more := len(found.packages) - len(shown):
            click.echo(f"and {more} smaller ones: --json and -o FILE have all")


def _rows(found: Inspected) -> list[tuple[str, str]]:
    """Return what is said of an image in lines."""
    lines = [("image", found.name), ("digest", found.digest)]
    if found.layers:
        lines.append(("size", f"{size_text(found.size)} in {len(found.layers)} layers"))
    if (lock := found.lock) is not None:
        lines += [("lock", f"{lock.request.name}, {lock.digest}"), ("platform", lock.platform)]
        lines += [(title, lock.stack[key]) for key, title in STACK.items() if key in lock.stack]
        lines += [("profile", lock.request.profile)]
    if (report := found.report) is not None:
        machine = (report.scope.get("cpu") or {}).get("model", "a CPU")
        lines.append(("tested", f"{tally(report)}, on {machine}"))
        lines += [*unproven(report), *untested_gpu(report)]
        lines.append(("says who", "a given key" if found.report_is_signed else "no given key"))
    for each in found.evidence:
        made = "" if each.made is None else f", {each.made:%Y-%m-%d %H:%M} UTC"
        lines.append((each.kind or "unknown", f"{each.text}{made} ({each.place})"))
    if not found.evidence:
        lines.append(("evidence", "none: nobody says anything of this digest"))
    lines.append(("rebuilt", f"by {len(found.rebuilders)} of the given keys"))
    return [*lines, *(("unknown", note) for note in found.notes)]


def _facts(found: Inspected) -> dict[str, Any]:
    lock, report = found.lock, found.report
    return {
        "image": found.name,
        "digest": found.digest,
        "size": found.size if found.layers else None,
        "layers": [{"title": y.title, "digest": y.digest, "size": y.size} for y in found.layers],
        "lock": None
        if lock is None
        else {
            "name": lock.request.name,
            "digest": lock.digest,
            "platform": lock.platform,
            "profile": lock.request.profile,
            "stack": dict(lock.stack),
        },
        "packages": [
            {"name": p.name, "version": p.version, "kind": p.kind, "origin": p.origin, "size": p.size}
            for p in found.packages
        ],
        "test": None if report is None else {**facts(report), "signed": found.report_is_signed},
        "evidence": [
            {
                "place": each.place,
                "kind": each.kind,
                "made": None if each.made is None else each.made.isoformat(),
                "signers": list(each.signers),
                "text": each.text,
            }
            for each in found.evidence
        ],
        "rebuilders": list(found.rebuilders),
        "unknown": list(found.notes),
    }
