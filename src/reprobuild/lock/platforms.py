"""Write and read one lock file for several platforms. Pure.

A file for one platform is that `Lock`'s own text. In a file for more, a Python package is one entry with all
of its wheels, and an entry has a marker where it is not for every platform, as PEP 751 has it; the rest is in
``[tool.reprobuild.platforms]``. Each platform's lock is whole in itself: it is what its image carries.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tomli_w
from packaging.pylock import Pylock, PylockValidationError
from packaging.utils import parse_wheel_filename

from ..errors import LockError
from .model import FORMAT, MACHINES, Lock, marker
from .reader import RENEW, edited, load_table, parse_half, parse_table

MANY = 2
"""The format of ``[tool.reprobuild]`` in a file for several platforms; older versions refuse it by that."""

_SHARED = ("request-digest", "request")
"""What the platforms have in common in ``[tool.reprobuild]``."""


def dump_locks(locks: Sequence[Lock]) -> str:
    """Return the canonical text of the locks of one request, one a platform."""
    if len(locks) == 1:
        return locks[0].dump()
    table = _table(locks)
    table["tool"]["reprobuild"] = {"digest": digest_of(locks)} | table["tool"]["reprobuild"]
    return tomli_w.dumps(table)


def digest_of(locks: Sequence[Lock]) -> str:
    """Return ``sha256:…`` of a whole file: over its canonical text without the digest itself."""
    if len(locks) == 1:
        return locks[0].digest
    return "sha256:" + hashlib.sha256(tomli_w.dumps(_table(locks)).encode()).hexdigest()


def parse_locks(text: str, where: str) -> tuple[Lock, ...]:
    """Read a lock file's text: a lock a platform, by platform.

    Raises `LockError` that begins with ``where`` and the place in the file.
    """
    data = load_table(text, where)
    tool = data.get("tool")
    own = tool.get("reprobuild") if isinstance(tool, dict) else None
    if not isinstance(own, dict) or own.get("format") != MANY:
        return (parse_table(data, where),)
    try:
        Pylock.from_dict(data)
    except (PylockValidationError, ValueError) as error:
        raise LockError(f"{where}: not a PEP 751 lock: {error}", hint=RENEW) from None
    parts = own.get("platforms")
    if not isinstance(parts, dict) or len(parts) < 2 or not all(isinstance(p, dict) for p in parts.values()):
        raise LockError(
            f"{where}: tool.reprobuild.platforms: expected a table for each platform",
            hint=RENEW,
        )
    unknown = sorted(parts.keys() - MACHINES.keys())
    if unknown:
        raise LockError(f"{where}: tool.reprobuild.platforms.{unknown[0]}: unknown platform", hint=RENEW)
    locks = tuple(
        parse_table(_alone(data, own, platform), f"{where}: {platform}") for platform in sorted(parts)
    )
    if locks[0].request.platforms != tuple(lock.platform for lock in locks):
        raise LockError(f"{where}: its platforms are not those of its request", hint=RENEW)
    if tomllib.loads(dump_locks(locks)) != data:
        raise edited(where)
    return locks


def parse_halves(text: str, where: str) -> tuple[Lock, ...]:
    """Read one side of a merge, whose digests cannot fit: for its pins alone, a lock a platform.

    Raises `LockError`.
    """
    data = load_table(text, where)
    try:
        own = data["tool"]["reprobuild"]
        if own["format"] != MANY:
            return (parse_half(data, where),)
        tables = {platform: _alone(data, own, platform) for platform in sorted(own["platforms"])}
    except (KeyError, TypeError, AttributeError) as error:
        raise LockError(f"{where}: not a lock of reprobuild's: {error}", hint=RENEW) from None
    return tuple(parse_half(table, f"{where}: {platform}") for platform, table in tables.items())


def _table(locks: Sequence[Lock]) -> dict[str, Any]:
    locks = sorted(locks, key=lambda lock: lock.platform)
    first = locks[0]
    return {
        **first.header,
        "environments": [environment for lock in locks for environment in lock.header["environments"]],
        "packages": list(_packages(locks)),
        "tool": {
            "reprobuild": {
                "format": MANY,
                "request-digest": first.request.digest,
                "request": first.request.to_dict(),
                "platforms": {lock.platform: _own(lock) for lock in locks},
            }
        },
    }


def _own(lock: Lock) -> dict[str, Any]:
    table = {"digest": lock.digest} | lock.table()["tool"]["reprobuild"]
    return {key: table[key] for key in table if key not in (*_SHARED, "format", "platform")}


def _packages(locks: Sequence[Lock]) -> Iterator[dict[str, Any]]:
    """Yield the entries, sorted; entries of one name exclude each other by their markers."""
    tables = {lock.platform: {p["name"]: p for p in lock.table()["packages"]} for lock in locks}
    for name in sorted({name for packages in tables.values() for name in packages}):
        every = {platform: packages[name] for platform, packages in tables.items() if name in packages}
        together = len({table["version"] for table in every.values()}) == 1 and _can_be_told(every)
        if together and len(every) == len(locks):
            yield _entry(list(every.values()), "")
        else:
            for platform, table in every.items():
                yield _entry([table], marker(platform))


def _entry(tables: Sequence[Mapping[str, Any]], where: str) -> dict[str, Any]:
    head = {"name": tables[0]["name"], "version": tables[0]["version"]}
    head |= {"marker": where} if where else {}
    if "wheels" not in tables[0]:
        return {**head, **tables[0]}
    wheels = {wheel["name"]: wheel for table in tables for wheel in table["wheels"]}
    return {**head, "wheels": [wheels[n] for n in sorted(wheels)]}


def _can_be_told(every: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether `_wheels_for` selects the right wheel for each platform from the merged list of all wheels."""
    if not all("wheels" in table for table in every.values()):
        return False
    wheels = _entry(list(every.values()), "")["wheels"]
    return all(_wheels_for(platform, wheels) == table["wheels"] for platform, table in every.items())


def _wheels_for(platform: str, wheels: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return those built for the machine, else those for any."""
    kinds = [(wheel, _machines(str(wheel.get("name")))) for wheel in wheels]
    own = [wheel for wheel, machines in kinds if MACHINES[platform] in machines]
    return own or [wheel for wheel, machines in kinds if not machines]


def _machines(filename: str) -> set[str]:
    try:
        tags = parse_wheel_filename(filename)[3]
    except ValueError:
        return set()  # whoever reads the entry says what is wrong with it
    return {machine for tag in tags for machine in MACHINES.values() if tag.platform.endswith(f"_{machine}")}


def _alone(data: Mapping[str, Any], own: Mapping[str, Any], platform: str) -> dict[str, Any]:
    """Return the table that a file for this platform alone would have."""
    packages = []
    for entry in data["packages"]:
        if "marker" not in entry:
            packages.append({**entry, "wheels": _wheels_for(platform, entry.get("wheels", []))})
        elif entry["marker"] == marker(platform):
            packages.append({key: value for key, value in entry.items() if key != "marker"})
    shared = {key: own[key] for key in _SHARED if key in own}
    head = {key: data[key] for key in ("lock-version", "requires-python", "created-by") if key in data}
    part = {"format": FORMAT, "platform": platform, **shared, **own["platforms"][platform]}
    return {
        **head,
        "environments": [f"sys_platform == 'linux' and {marker(platform)}"],
        "packages": packages,
        "tool": {"reprobuild": part},
    }


def lock_of_platform(locks: Sequence[Lock], platform: str, where: str) -> Lock:
    """Return the one of several locks that is for a platform. Raises `LockError`."""
    for lock in locks:
        if lock.platform == platform:
            return lock
    raise LockError(
        f"{where} has no lock for {platform}; it has {', '.join(lock.platform for lock in locks)}",
        hint=f'put "{platform}" into the request\'s platforms and run `reprobuild lock`',
    )
