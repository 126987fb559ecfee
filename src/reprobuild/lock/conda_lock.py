"""The one place that calls conda-lock: environment.yml and conda-lock.yml, read and written.

Nothing of conda-lock's Python interface is declared stable, so pyproject.toml pins its minor version. It is
imported where it is needed, since that takes most of a second, and it warns about itself.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from ..errors import RequestError
from ..request.yaml_reader import MOST_TEXT, load_yaml
from .model import Lock

PLATFORMS = {"linux/amd64": "linux-64", "linux/arm64": "linux-aarch64"}
"""OCI's names and conda's."""

MOST_ENVIRONMENT = 1 << 18
"""Characters of an environment.yml: PyYAML takes ten seconds for them. The longest known have 100,000."""
_LOCKED = re.compile(r"""^["']?package["']?\s*:""", re.MULTILINE)
"""The key at the top of a conda-lock.yml, which is longer."""

_KNOWN = ("name", "channels", "dependencies", "platforms", "category", "prefix", "variables")


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """What an environment.yml asks for on one platform."""

    name: str
    channels: tuple[str, ...]
    packages: tuple[str, ...]
    """Match specs."""
    pip: tuple[str, ...]
    """PEP 508."""
    lines: tuple[str, ...] = ()
    """Lines for pip that are more than a package: options, addresses, folders."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    """What conda sets when it activates the environment; unchecked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """A conda package that a conda-lock.yml pins."""

    name: str
    version: str
    build: str | None
    url: str
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CondaLock:
    """What a conda-lock.yml holds for one platform."""

    channels: tuple[str, ...]
    conda: tuple[Pin, ...]
    pip: tuple[tuple[str, str, str], ...]
    """Name, version and sha256."""


def read_environment(file: Path, platform: str, *, lines: bool = False) -> Environment:
    """Read an environment.yml for a platform of OCI's. Raises `RequestError` that names file and key.

    With ``lines``, its variables and what its pip section has beside packages of an index are returned; else
    they are refused.
    """
    data = _yaml(file)
    if "variables" in data and not lines:
        raise RequestError(
            f"{file}: variables: not imported",
            hint="take the key out, and set them in [environment] of the request",
        )
    for key in data:
        if key not in _KNOWN:
            raise RequestError(f"{file}: {key}: unknown key", hint=f"known here: {', '.join(_KNOWN)}")
    variables = data.get("variables") or {}
    if not isinstance(variables, dict):
        raise RequestError(f"{file}: variables: expected a table")
    channels, entries = data.get("channels"), data.get("dependencies")
    if channels is None:
        raise RequestError(
            f"{file}: channels: missing; conda would take those of Anaconda that it calls 'defaults'",
            hint="add the line `channels: [conda-forge]`, or each of Anaconda's channels by its address",
        )
    if not _texts(channels) or not channels:
        raise RequestError(f"{file}: channels: expected a list of channels")
    if not isinstance(entries, list) or not entries:
        raise RequestError(f"{file}: dependencies: expected a list of packages")
    special = _special(entries, file, platform, allowed=lines)
    with _quiet(file), tempfile.TemporaryDirectory(prefix="reprobuild-conda-") as folder:
        from conda_lock.src_parser import make_lock_spec

        # Names are taken as they are; the usual mapping is a download.
        mapping = Path(folder, "mapping.json")
        mapping.write_text("{}", "utf-8")
        plain = file
        if special:
            plain = Path(folder, file.name)
            plain.write_text(_without(read_text(file), special), "utf-8")
        spec = make_lock_spec(
            src_files=[plain], mapping_url=mapping.as_uri(), platform_overrides=[PLATFORMS[platform]]
        )
    found = spec.dependencies[PLATFORMS[platform]]
    return Environment(
        name=str(data.get("name") or file.absolute().parent.name),
        channels=tuple(channel.url for channel in spec.channels),
        packages=tuple(_spec(d) for d in found if d.manager == "conda"),
        pip=tuple(_requirement(d) for d in found if d.manager == "pip"),
        lines=tuple(special),
        variables=variables,
    )


def _special(entries: list[Any], file: Path, platform: str, *, allowed: bool) -> list[str]:
    """Return the lines for pip that are more than a package, without those whose selector rules them out.

    Raises `RequestError` where none is allowed.
    """
    special: list[str] = []
    for entry in entries:
        # conda-lock passes over what it does not know, and leaves editable packages out with a warning.
        nested = entry.get("pip") if isinstance(entry, dict) and list(entry) == ["pip"] else None
        if not isinstance(entry, str) and not _texts(nested):
            raise RequestError(f"{file}: dependencies: {entry!r} is neither a package nor a list for pip")
        special += [line for line in nested or () if not _is_plain(line)]
    if not special:
        return special
    if not allowed:
        raise RequestError(
            f"{file}: dependencies: pip: {special[0]!r} is not a package of an index: "
            "expected a name and versions, without a marker on Python",
            hint="--from takes the other lines of pip's over",
        )
    text = read_text(file)
    with _quiet(file):
        from conda_lock.src_parser.selectors import filter_platform_selectors

        counts = "\n".join(filter_platform_selectors(text, PLATFORMS[platform]))
    gone = {*map(_item, text.splitlines())} - {*map(_item, counts.splitlines())}
    return [line for line in special if line not in gone]


def _is_plain(line: str) -> bool:
    """Whether it is a package of an index, and not an option, an address, a file or a folder (``libs/x``).

    Nor has it a marker on Python, which conda-lock takes for true.
    """
    try:
        requirement = Requirement(line)
        return requirement.url is None and not re.search("python|implementation", str(requirement.marker))
    except InvalidRequirement:
        # conda-lock says what is wrong with the rest.
        return not line.lstrip().startswith(("-", ".", "/")) and not re.search(r"/| --|\.whl$", line)


def _without(text: str, special: Collection[str]) -> str:
    """Remove items from a YAML text, and keep its comments, some of which are selectors.

    A list for pip of which nothing is left goes as a whole.
    """
    lines = [line for line in text.splitlines() if _item(line) not in special]
    kept = []
    for number, line in enumerate(lines):
        form = re.fullmatch(r"(\s*)-\s+pip:\s*(#.*)?", line)
        following = next((each for each in lines[number + 1 :] if each.strip()), "")
        inner = re.fullmatch(r"(\s*)-\s.*", following)
        if form is None or (inner is not None and len(inner[1]) > len(form[1])):
            kept.append(line)
    return "\n".join(kept) + "\n"


def _item(line: str) -> str | None:
    """Return the text of an item of a YAML list that is on a line of its own."""
    form = re.fullmatch(r"\s*-\s+(.*)", line)
    try:
        value = load_yaml(form[1]) if form is not None else None
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def is_conda_lock(file: Path) -> bool:
    """Whether a file is a conda-lock.yml and not an environment.yml. Raises `RequestError`."""
    return {"package", "metadata"} <= _yaml(file).keys()


def read_conda_lock(file: Path, platform: str) -> CondaLock:
    """Read a conda-lock.yml. Raises `RequestError`; an entry without sha256 is refused by name."""
    _yaml(file)
    with _quiet(file):
        from conda_lock.lockfile import parse_conda_lock_file

        lock = parse_conda_lock_file(file)
    wanted = PLATFORMS[platform]
    if wanted not in lock.metadata.platforms:
        raise RequestError(
            f"{file}: is not for {wanted}; it is for {', '.join(lock.metadata.platforms)}",
            hint=f"add {wanted} to its platforms and run conda-lock again",
        )
    found = [p for p in lock.package if p.platform == wanted and "main" in p.categories]
    bare = sorted(p.name for p in found if not p.hash.sha256)
    if bare:
        raise RequestError(
            f"{file}: no SHA-256 for {', '.join(bare)}",
            hint="conda-lock writes it where the channel has it; MD5 alone is not accepted",
        )
    return CondaLock(
        channels=tuple(channel.url for channel in lock.metadata.channels),
        conda=tuple(
            Pin(name=p.name, version=p.version, build=p.build, url=p.url, sha256=str(p.hash.sha256))
            for p in found
            if p.manager == "conda"
        ),
        pip=tuple((p.name, p.version, str(p.hash.sha256)) for p in found if p.manager == "pip"),
    )


def write_conda_lock(lock: Lock) -> str:
    """Return a conda-lock.yml of a lock's conda packages and wheels, which stock conda-lock reads.

    The same lock gives the same text. Raises `RequestError` when a package has no MD5, which the format asks
    for beside the sha256.
    """
    platform = PLATFORMS[lock.platform]
    bare = [p.name for p in lock.conda if p.md5 is None]
    if lock.request.conda is None or bare:
        raise RequestError(
            f"cannot write a conda-lock.yml for {lock.request.name}: "
            + (f"the channel has no MD5 for {', '.join(bare)}" if bare else "it has no conda packages"),
        )
    with _quiet(Path("conda-lock.yml")), tempfile.TemporaryDirectory(prefix="reprobuild-conda-") as folder:
        from conda_lock.lockfile import write_conda_lock_file
        from conda_lock.lockfile.v2prelim.models import HashModel, LockedDependency, Lockfile, LockMeta

        packages = [
            LockedDependency(
                name=p.name,
                version=p.version,
                manager="conda",
                platform=platform,
                dependencies=dict(_dependency(spec) for spec in p.depends),
                url=p.url,
                hash=HashModel(md5=p.md5, sha256=p.sha256),
                categories={"main"},
                build=p.build,
            )
            for p in lock.conda
        ]
        packages += [
            LockedDependency(
                name=w.name,
                version=w.version,
                manager="pip",
                platform=platform,
                url=w.file.url,
                hash=HashModel(sha256=w.file.sha256),
                categories={"main"},
            )
            for w in lock.python
        ]
        meta = LockMeta(
            # Of the request as reprobuild knows it, since there may be no environment.yml.
            content_hash={platform: lock.request.digest.removeprefix("sha256:")},
            channels=list(lock.request.conda.channels),
            platforms=[platform],
            sources=[],
        )
        out = Path(folder, "conda-lock.yml")
        content = Lockfile(package=packages, metadata=meta)
        write_conda_lock_file(content, out, metadata_choices=None, include_help_text=False)
        return out.read_text("utf-8")


@contextmanager
def _quiet(file: Path) -> Iterator[None]:
    """Suppress conda-lock's internal warnings, and convert its errors to ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except RequestError:
            raise
        except Exception as error:  # noqa: BLE001 -- conda, conda-lock and pydantic have each their own
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise RequestError(f"{file}: conda-lock cannot read it: {' '.join(lines[:3])}") from None


def read_text(file: Path) -> str:
    """Read the text of a file within bounds. Raises `RequestError`."""
    try:
        with file.open(encoding="utf-8-sig") as opened:
            return opened.read(MOST_TEXT + 1)
    except FileNotFoundError:
        raise RequestError(f"{file}: no such file") from None
    except UnicodeDecodeError:
        raise RequestError(
            f"{file}: not valid UTF-8 text", hint="save it as UTF-8; PowerShell's `>` writes UTF-16"
        ) from None
    except OSError as error:
        raise RequestError(f"{file}: cannot be read: {error.strerror}") from None


def _yaml(file: Path) -> Mapping[str, Any]:
    text = read_text(file)
    if len(text) > MOST_ENVIRONMENT and _LOCKED.search(text) is None:
        raise RequestError(f"{file}: has more than {MOST_ENVIRONMENT:,} characters")
    try:
        data = load_yaml(text)
    except ValueError as error:
        raise RequestError(f"{file}: not valid YAML: {error}") from None
    if not isinstance(data, dict):
        raise RequestError(f"{file}: not a conda environment or lock")
    return data


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _spec(dependency: Any) -> str:
    """Write a dependency of conda-lock's as a match spec."""
    version = "" if dependency.version in ("", "*", None) else dependency.version
    if dependency.build:
        version = f"{version or '*'} {dependency.build}"
    channel = f"{dependency.conda_channel}::" if dependency.conda_channel else ""
    return f"{channel}{dependency.name} {version}".strip()


def _requirement(dependency: Any) -> str:
    extras = f"[{','.join(sorted(dependency.extras))}]" if dependency.extras else ""
    version = getattr(dependency, "version", "")
    if not hasattr(dependency, "version"):
        raise ValueError(f"{dependency.name} is not a package of an index")
    return f"{dependency.name}{extras}{'' if version in ('', '*') else version}"


def _dependency(spec: str) -> tuple[str, str]:
    name, _, version = re.sub(r"\s+", " ", spec).partition(" ")
    return name, version
