"""The folder ``envs/``: requests, and beside them their locks."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ..errors import LockError, RequestError
from ..host.home import atomic_write, kind_of, make_folders, open_regular
from ..host.machine import architecture
from ..lock.conda_lock import Environment, read_environment
from ..lock.layer_record import LayerRecord
from ..lock.merge import sides
from ..lock.model import Lock
from ..lock.platforms import lock_of_platform, parse_locks
from ..request.direct import Direct
from ..request.envs_folder import FOLDER, OUTSIDE
from ..request.kernels import canonical
from ..request.model import PLATFORMS, Request, default_name
from ..request.table import refused_as

LAYERS = FOLDER / "layers.json"


_WORDS = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_MOST_PLACES = 5


@dataclass(frozen=True, slots=True)
class Env:
    """A request, with the paths of its file and its lock. The request's file may not exist yet."""

    request: Request
    file: Path
    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """What a file that was taken over allows: package → sha256 of its wheels. A new lock must keep to it."""
    pythons: tuple[str, ...] = ()
    """The minor versions of Python that such a file allows; empty: any."""
    order: Sequence[str] = ()
    """The packages as such a file lists them, by normalised name: uv prefers the new ones of the first."""
    cuda_is_open: bool = False
    """Whether nobody has asked for the request's CUDA: another will do where this one does not fit."""

    read_for: Mapping[str, str] = field(default_factory=dict)
    """Platform → the version of Python that such a file was read for, where another patch version matters."""
    pinned_by: str = ""
    """The lock of another tool that was taken over, which pins all that it needs itself; else empty."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Place in an imported file that requires the package, by normalized name."""

    def places_in(self, message: str) -> list[str]:
        """Return a line for each package of a message that such a file requires, with its place.

        An address names the package, too.
        """
        words = {canonicalize_name(word) for word in _WORDS.findall(message)}
        for requirement in map(Requirement, self.request.packages):
            address = "" if requirement.url is None else Direct.parse(requirement.url).url
            if "://" in address and address in message:
                words.add(canonicalize_name(requirement.name))
        found = [f"{name} is asked for in {place}" for name, place in self.places.items() if name in words]
        return found[:_MOST_PLACES]

    def beyond(self, locks: Iterable[Lock]) -> str:
        """Return a line on the packages of a lock that another tool's does not have; empty where none is."""
        pinned: set[str] = {canonicalize_name(Requirement(text).name) for text in self.request.packages}
        pinned |= {"torch"} if self.request.torch is not None else set()
        names = sorted({p.name for lock in locks for p in lock.python} - pinned)
        if not self.pinned_by or not names:
            return ""
        return (
            f"not in {self.pinned_by} for this image, so of the newest version that fits: {', '.join(names)}"
        )

    def check_python(self, locks: Iterable[Lock]) -> None:
        """Raise `LockError` for a lock with another Python than such a file was read for."""
        for lock in locks:
            wanted, found = self.read_for.get(lock.platform), lock.stack.get("python")
            if wanted not in (None, found):
                raise LockError(
                    f"{self.lock_file}: the file was read for Python {wanted}, and the image gets {found}",
                    hint=f"remove {self.lock_file} if it is there, and lock again",
                )

    @property
    def lock_file(self) -> Path:
        """``pylock.NAME.toml`` beside the request."""
        return self.file.with_name(f"pylock.{self.request.name}.toml")

    def save(self) -> bool:
        """Write the request where its file is not there yet; return whether it was written."""
        if self.file.exists():
            return False
        make_folders(self.file.parent)
        atomic_write(self.file, self.request.dump().encode())
        return True


def read_env(text: str) -> Env:
    """Return the env of a request's file, or of a name, which means ``envs/NAME.toml``."""
    file = Path(text) if text.endswith(".toml") else FOLDER / f"{text}.toml"
    there = f"envs/ has {_names() or 'no requests'}"
    if file.name.startswith("pylock."):
        raise RequestError(f"{file} is a lock, not a request", hint=f"give {file.name[7:]}")
    if is_lock(file):
        raise RequestError(f"{file} is a lock, not a request", hint=there)
    if kind_of(file) is None and (there_is := kind_of(text)) is not None:
        kind = "folder" if there_is == "folder" else "file, but not a TOML file"
        raise RequestError(f"{text} is a {kind}: expected a request, or the name of one", hint=there)
    text = _read(file, RequestError, there)
    data = with_environment({"name": file.stem, **Request.load(text, str(file))}, file)
    data = with_kernel_choices(data, file)
    request = Request.from_dict(data, str(file))
    if request.name != file.stem:
        raise RequestError(
            f"{file}: name: is {request.name!r}, but the file is called {file.name}",
            hint=f'write name = "{file.stem}", or leave the line out',
        )
    return Env(request, file)


def with_environment(data: Mapping[str, Any], file: Path) -> Mapping[str, Any]:
    """Put the content of the environment.yml that a request's table names in its place.

    So a lock says what was asked for, and a change of that file is a change of the request. Raises
    `RequestError`.
    """
    conda = data.get("conda")
    if not isinstance(conda, dict) or "environment" not in conda:
        return data
    if len(conda) > 1 or not isinstance(conda["environment"], str):
        raise RequestError(
            f"{file}: conda.environment: expected a file name, without channels or packages beside it"
        )
    named = _inside(file, conda["environment"])
    platforms = data.get("platforms")
    wanted = [name for name in platforms if name in PLATFORMS] if isinstance(platforms, list) else []
    found = [read_environment(named, name) for name in wanted or [f"linux/{architecture()}"]]
    if any(each != found[0] for each in found):
        raise RequestError(
            f"{file}: conda.environment: asks for different packages on each of {', '.join(wanted)}",
            hint="remove its selectors, or write a request for each platform",
        )
    return {**data, **environment_table(found[0], data)}


def with_kernel_choices(data: Mapping[str, Any], file: Path) -> Mapping[str, Any]:
    """Put the records that a request's ``determinism.kernel-choices`` name in their place.

    Raises `RequestError`.
    """
    determinism = data.get("determinism")
    if not isinstance(determinism, dict) or not isinstance(determinism.get("kernel-choices"), list):
        return data
    texts: list[object] = []
    for name in determinism["kernel-choices"]:
        if not isinstance(name, str) or name.startswith(("{", "[")):
            texts.append(name)  # a record as it is in a lock; what is not text, the request's reader names
            continue
        named = _inside(file, name, key="determinism.kernel-choices", suffixes=(".json",))
        with refused_as(RequestError, ""):
            texts += canonical(_read(named, RequestError, f"{file} names it"), str(named))
    return {**data, "determinism": {**determinism, "kernel-choices": texts}}


def _inside(
    file: Path, name: str, key: str = "conda.environment", suffixes: tuple[str, ...] = (".yml", ".yaml")
) -> Path:
    """Return the file that a request names; `RequestError` if outside its project, unless the user allows it.

    A request may be a stranger's, from a pull request, and errors quote the file's lines.
    """
    named = file.parent / name
    top = file.absolute().parent
    top = (top.parent if top.name == FOLDER.name else top).resolve()
    try:
        real = named.resolve()
        loops = real.is_symlink()  # links in a circle, from Python 3.13 on
    except (
        OSError,
        RuntimeError,
        ValueError,
    ):  # links in a circle, before 3.13; a character that no path has
        loops = True
    if loops:
        raise RequestError(f"{file}: {key}: {name!r} is not the name of a file")
    good = real.is_relative_to(top) and real.suffix in suffixes
    if not good and os.environ.get(OUTSIDE) != "1":
        raise RequestError(
            f"{file}: {key}: {named} is not a {' or '.join(suffixes)} file below {top}",
            hint=f"move it there, or set {OUTSIDE}=1 if you trust this request to name any file",
        )
    return named


def environment_table(found: Environment, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a request that an environment.yml decides; ``data`` has those that are given."""
    table: dict[str, Any] = {"conda": {"channels": list(found.channels), "packages": list(found.packages)}}
    given = data.get("packages", [])
    if not isinstance(given, list):
        return table  # which is refused with the rest of the request
    packages = list(given)
    for text in found.pip:
        requirement = Requirement(text)
        if canonicalize_name(requirement.name) != "torch":
            packages.append(text)
        elif requirement.specifier:
            table["torch"] = re.sub(r"^==(?=[^,]*$)", "", str(requirement.specifier))
    minor = next((m for spec in found.packages if (m := _PYTHON.fullmatch(spec))), None)
    if minor is not None and "python" not in data:
        table["python"] = minor[1]
    return table | {"packages": packages}


_PYTHON = re.compile(r"python *={0,2} *([0-9]+\.[0-9]+)(\.[0-9.*]+)?")


def is_env(text: str) -> bool:
    """Whether a word on the command line is a request: a TOML file, or the name of one in ``envs/``."""
    return text.endswith(".toml") or kind_of(FOLDER / f"{text}.toml") == "file"


def is_lock(file: Path) -> bool:
    """Whether a file is a lock: by its name, or by what is in it, as in what ``git show`` has written."""
    return file.name.startswith("pylock.") or _has_mark(file)


def _has_mark(file: Path) -> bool:
    """Whether a TOML file is a lock of reprobuild's, and not of another tool."""
    try:
        with open_regular(file) as stream:
            return file.suffix == ".toml" and b"[tool.reprobuild" in stream.read(_MOST)
    except OSError:
        return False


_MOST = 64 << 20
"""Bytes of a file that are examined."""


def all_envs() -> list[Env]:
    """Return the envs of all requests in ``envs/``, by file name."""
    return [read_env(str(file)) for file in _files()]


def locks_without_request() -> Iterator[LockError]:
    """Yield an error for each lock in ``envs/`` whose request is not there, by file name."""
    for lock in sorted(FOLDER.glob("pylock.*.toml")):
        request = lock.with_name(lock.name.removeprefix("pylock."))
        if kind_of(request) is None and _has_mark(lock):
            yield LockError(
                f"{lock}: its request {request} is not there", hint="restore the request, or remove the lock"
            )


def new_env(request: Request) -> Env:
    """Return the env of a request from flags. Raises `RequestError` when its file asks for something else."""
    file = FOLDER / f"{request.name}.toml"
    if file.exists():
        there = read_env(str(file)).request
        if there != request:
            lines = "; ".join(request.differences(there))
            raise RequestError(
                f"{file} already exists and asks for something else ({lines})",
                hint=f"omit the flags to use it, change the file, or choose another --name "
                f"(in place of {request.name})",
            )
    return Env(request, file)


def cuda_of_env(name: str) -> str | None:
    """Return the CUDA of the request of that name, if one is there. Raises `RequestError`."""
    file = FOLDER / f"{name}.toml"
    return read_env(str(file)).request.cuda if file.exists() else None


def env_for(cuda: str, fits: Callable[[Request], bool], fallback: Callable[[], Request]) -> Env:
    """Return the matching env with this CUDA, else a new one for ``fallback``'s request.

    Among several the one with the default name counts; without it, raises `RequestError` that lists them.
    """
    try:
        every = all_envs()
    except RequestError as error:
        why = f"to find the one for CUDA {cuda}, every request in envs/ is read; correct it, or name another"
        raise RequestError(error.message, hint=error.hint or why) from None
    found = [env for env in every if env.request.cuda == cuda and fits(env.request)]
    usual = [env for env in found if env.request.name == default_name(cuda, env.request.python)]
    if len(found) > 1 and len(usual) != 1:
        names = ", ".join(str(env.file) for env in found)
        raise RequestError(f"more than one request is for CUDA {cuda}: {names}", hint="name one of them")
    if found:
        return usual[0] if usual else found[0]
    return new_env(fallback())


def read_locks(file: Path) -> tuple[Lock, ...]:
    """Return the locks of a file, one a platform. Raises `LockError`."""
    text = _read(file, LockError, "`reprobuild lock` writes one")
    if sides(text) is not None:
        raise LockError(
            f"{file}: has conflicts of a merge",
            hint="run `reprobuild lock`: it keeps the pins that both sides have, and resolves the rest",
        )
    return parse_locks(text, str(file))


def conflicts_of(file: Path) -> str | None:
    """Return the text of a lock file with the conflicts of a merge; None for any other."""
    text = _read(file, LockError, "`reprobuild lock` writes one")
    return text if sides(text) is not None else None


def read_lock(file: Path, platform: str | None = None) -> Lock:
    """Return the lock of a file for a platform, by default for this machine's where there are several.

    Raises `LockError`.
    """
    return lock_for(read_locks(file), platform, str(file))


def lock_for(locks: Sequence[Lock], platform: str | None, where: str) -> Lock:
    """Return the one of several locks that is for a platform; None: this machine's, or the only one."""
    if platform is None and len(locks) == 1:
        return locks[0]
    return lock_of_platform(locks, platform or f"linux/{architecture()}", where)


def read_layers(file: Path = LAYERS) -> LayerRecord:
    """Return the record of layers that a registry has. Raises `LockError`."""
    return LayerRecord.parse(
        _read(file, LockError, f"`reprobuild push --record-layers` writes {file}").encode(), str(file)
    )


def _files() -> list[Path]:
    return sorted(f for f in FOLDER.glob("*.toml") if not f.name.startswith("pylock."))


def _names() -> str:
    return ", ".join(file.stem for file in _files())


def _read(file: Path, error: type[LockError | RequestError], hint: str) -> str:
    try:
        with open_regular(file) as opened:
            data = opened.read(_MOST + 1)
        if len(data) > _MOST:
            raise error(f"{file}: has more than {_MOST >> 20} MiB")
        return data.decode().replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise error(f"{file}: no such file", hint=hint) from None
    except UnicodeDecodeError:
        raise error(
            f"{file}: not valid UTF-8 text", hint="save it as UTF-8; PowerShell's `>` writes UTF-16"
        ) from None
    except OSError as problem:
        raise error(f"{file}: cannot be read: {problem.strerror}") from None
