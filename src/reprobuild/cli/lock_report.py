"""``lock --report``: a summary of a lock's changes for a pull request, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import requests

from ..host.host import Host
from ..lock.diff import diff_all
from ..lock.model import Lock
from ..lock.packages import PythonPackage
from ..net.session import session
from ..resolve.vulnerabilities import Advisories, find_vulnerabilities
from ..resolve.yanked import find_withdrawn
from .markdown import cell, changes_as_markdown, code


def lock_report(before: Sequence[Lock], now: Sequence[Lock], osv: str | None, host: Host) -> str:
    """Return the report of a lock: its changes, yanked releases, known vulnerabilities.

    ``before`` is empty for a new lock; ``osv`` is the source of advisories. Raises `ResolveError`.
    """
    packages = {(p.name, p.version, p.file.sha256): p for lock in now for p in lock.python}.values()
    title = f"### Lock of {cell(now[0].request.name)}: new"
    changes = changes_as_markdown(before, now, diff_all(before, now)) if before else title
    with session() as http:
        return "\n".join(
            [
                changes,
                "",
                *_withdrawn(packages, http, host),
                "",
                *_vulnerable(packages, now, osv, http, host),
                "",
            ]
        )


def _withdrawn(packages: Iterable[PythonPackage], http: requests.Session, host: Host) -> list[str]:
    host.console.step("asking the index for yanked releases")
    found = find_withdrawn(packages, http)
    for each in found:
        host.console.warn(f"{each.name} {each.version}: {each.reason}")
    rows = [f"| {code(each.name)} | {code(each.version)} | {cell(each.reason)} |" for each in found]
    head = ["| Package | Version | Reason |", "|---|---|---|"]
    return ["#### Yanked releases", "", *([*head, *rows] if rows else ["None."])]


def _vulnerable(
    packages: Iterable[PythonPackage],
    now: Sequence[Lock],
    osv: str | None,
    http: requests.Session,
    host: Host,
) -> list[str]:
    title = ["#### Known vulnerabilities", ""]
    if osv is None:
        return [*title, "Not looked up: `--osv` names no source of advisories."]
    host.console.step("reading advisories")
    found = find_vulnerabilities(osv, [(p.name, p.version) for p in packages], http)
    for each in found.found:
        sure = "" if each.is_certain else ", perhaps: its bounds are not versions of PEP 440"
        host.console.warn(f"{each.name} {each.version}: {each.id}{sure}")
    return [*title, *_rows(found), "", *_about(found, now)]


def _rows(advisories: Advisories) -> list[str]:
    if not advisories.found:
        return ["None."]
    lines = ["| Package | Version | Advisory | Fixed in | Summary |", "|---|---|---|---|---|"]
    for each in advisories.found:
        names = cell(", ".join((each.id, *each.aliases))) + ("" if each.is_certain else " (perhaps)")
        fixed = cell(", ".join(each.fixed)) or "not yet"
        lines.append(
            f"| {code(each.name)} | {code(each.version)} | {names} | {fixed} | {cell(each.summary)} |"
        )
    return lines


def _about(advisories: Advisories, now: Sequence[Lock]) -> list[str]:
    left_out = {
        "Debian": max(len(lock.debian) for lock in now),
        "conda": max(len(lock.conda) for lock in now),
    }
    others = [f"{count} {kind} packages" for kind, count in left_out.items() if count]
    noun = "advisory" if advisories.entries == 1 else "advisories"
    return [
        f"From {advisories.entries} {noun} of the ecosystem PyPI, the newest of "
        f"{cell(advisories.newest)}: {code(advisories.source)}, SHA-256 {code(advisories.sha256)}."
        + (f" Not looked up: {' and '.join(others)}." if others else "")
    ]
