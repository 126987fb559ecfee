"""Options that select or describe a request or lock."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args

import click
from packaging.utils import canonicalize_name

from ..errors import LockError, RequestError
from ..host.host import Host
from ..imports.choose_cuda import ChosenCuda, choose_cuda, cuda_of_torch
from ..imports.common import hashes_for, places_for, pythons_of
from ..imports.cuda_parts import line_on_cuda_parts, without_cuda_parts
from ..imports.image_pins import is_kept, read_image
from ..imports.recognize import Imported, pins_everything, read_import
from ..imports.request_keys import lines_on_flags, request_table
from ..imports.target_system import ReadFor, allows, python_release, reading_for, systems_for
from ..lock.model import Lock
from ..pipeline.steps import lock_of
from ..pipeline.workspace import Env, cuda_of_env, env_for, is_lock, new_env, read_env, read_lock, read_locks
from ..request.envs_folder import FOLDER
from ..request.model import (
    DEBIAN_PATCHES,
    DEBIAN_PYTHONS,
    DEFAULT_PYTHON,
    PLATFORMS,
    Profile,
    Request,
    default_name,
)
from ..request.shipped import shipped_table
from ..resolve.image_python import image_python
from ..verify.find import tree_of
from . import complete
from .build_options import FLAGS as BUILD_FLAGS
from .build_options import NAMES, build_table, flag_of

F = TypeVar("F", bound=Callable[..., Any])

_SWITCH = {"is_flag": True, "default": None}

_FLAGS: tuple[tuple[str, Any, str], ...] = (
    ("--cuda", {"metavar": "X.Y"}, 'CUDA version, like 12.1, or "cpu".'),
    ("--python", {"metavar": "X.Y"}, f"Python version. [default: {DEFAULT_PYTHON}]"),
    (
        "--platform",
        {"multiple": True, "metavar": "linux/ARCH", "shell_complete": complete.platforms},
        "Platform: linux/amd64 or linux/arm64; may be repeated. [default: this machine's]",
    ),
    ("--torch", {"metavar": "VERSION"}, "PyTorch version, or a range. [default: newest for this CUDA]"),
    ("--index", {"metavar": "pytorch"}, "Take PyTorch from its own index for this CUDA, not from yours."),
    ("--package", {"multiple": True, "metavar": "REQUIREMENT"}, "A further Python package; may be repeated."),
    ("--only-wheels", _SWITCH, "Refuse packages that exist only as source, in place of building them."),
    (
        "--allow-bad-record",
        NAMES,
        "Take a wheel of this package that differs from its own RECORD; may be repeated.",
    ),
    (
        "--file-priority",
        NAMES,
        "Of packages that install the same file, take that of this one; may be repeated.",
    ),
    ("--apt", NAMES, "A further Debian package; may be repeated."),
    *BUILD_FLAGS,
    ("--debian", {"metavar": "RELEASE"}, "Debian release underneath. [default: bookworm]"),
    ("--base-image", {"metavar": "IMAGE"}, "Image in a registry to build on, in place of a Debian release."),
    ("--allow-cuda", _SWITCH, "Allow a base image that ships its own CUDA libraries."),
    ("--profile", {"type": click.Choice(get_args(Profile))}, "Determinism profile. [default: strict]"),
    ("--seed", {"type": int}, "Seed every Python process in the image with this."),
    ("--threads", {"type": int}, "CPU threads per operation. [default: 1]"),
    ("--as-of", {"metavar": "DAY"}, "Use nothing published after this day (UTC), like 2024-09-15."),
    ("--name", {"metavar": "NAME"}, "Name of the new request. [default: from CUDA]"),
    (
        "--from",
        {"metavar": "FILE", "shell_complete": complete.files},
        "Import a requirements.txt, uv.lock, environment.yml, …",
    ),
    (
        "--loosen",
        NAMES,
        "With --from: do not keep the file's version of this package, or its conda channel; may be repeated.",
    ),
    (
        "--index-from-file",
        {"multiple": True, "metavar": "HOST"},
        "With --from: ask the indexes at HOST that the file names; may be repeated.",
    ),
    (
        "--from-image",
        {"metavar": "IMAGE", "shell_complete": complete.images_or_files},
        "Import the Python packages of an image, of any engine.",
    ),
    ("--extra", NAMES, "With --from: include this extra of the project; may be repeated."),
    ("--group", NAMES, "With --from: include this dependency group; may be repeated."),
)

force_option = click.option("--force", is_flag=True, help="Move the name if another image has it.")


def request_flags(function: F) -> F:
    """Add the flags that make a request."""
    for name, settings, text in reversed(_FLAGS):
        function = click.option(name, help=text, **settings)(function)
    return function


def env_from_flags(flags: Mapping[str, Any], host: Host) -> Env | None:
    """Return the env that the flags ask for, or None if there are no flags.

    With ``--cuda`` alone, or with ``--python`` and ``--torch``, it is the one in ``envs/`` that fits.
    A new one is the request that ships for this CUDA, with the flags on top of it.
    """
    given = {key: value for key, value in flags.items() if value not in (None, ())}
    if not given:
        return None
    if given.keys() & {"from", "from_image"}:
        return _imported_env(given, host)
    if given.keys() & {"extra", "group"}:
        raise click.UsageError("--extra and --group need --from")
    for key in sorted(given.keys() & {"index_from_file", "loosen"}):
        raise click.UsageError(f"--{key.replace('_', '-')} needs --from")
    if "cuda" not in given:
        names = ", ".join(f"--{key.replace('_', '-')}" for key in given)
        raise click.UsageError(f"{names}: a request also needs --cuda, for example --cuda 12.1")
    request = _request(_on_shipped(given))
    if given.keys() <= {"cuda", "python", "torch"}:
        wanted = {key: given[key] for key in ("python", "torch") if key in given}
        return env_for(
            request.cuda,
            lambda r: all(getattr(r, key) == value for key, value in wanted.items()),
            lambda: request,
        )
    return new_env(request)


def _imported_env(given: Mapping[str, Any], host: Host) -> Env:
    """Return the env of a file or image that is imported, with the flags on top of it."""
    if {"from", "from_image"} <= given.keys():
        raise click.UsageError("pass --from or --from-image, not both")
    one_platform(given.get("platform", ()))  # refuses what is none
    imported = _read(given, host)
    systems = systems_for(
        given.get("platform", ()),
        _known_pythons(given),
        lambda: _provisional(imported(), given),
        lambda request, machine: image_python(
            request, machine, existing=_existing(request, f"linux/{machine}"), host=host
        ),
    )
    with reading_for(next(iter(systems.values()))):
        return _env_of(imported(), given, systems, host)


def _read(given: Mapping[str, Any], host: Host) -> Callable[[], Imported]:
    """Return what reads the file or image that the flags name; a file again for each system."""
    if "from_image" in given:
        image = read_image(tree_of(given["from_image"], host, keep=is_kept), given["from_image"])
        return lambda: image
    return lambda: read_import(
        Path(given["from"]),
        extras=given.get("extra", ()),
        groups=given.get("group", ()),
        hosts=given.get("index_from_file", ()),
        python=given.get("python"),
        loosen=given.get("loosen", ()),
    )


def _known_pythons(given: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the whole versions of Python that are known before a file is read."""
    if "base_image" in given:
        return {}
    suite = given.get("debian")
    return {
        python: version
        for python, version in DEBIAN_PATCHES.items()
        if suite in (None, DEBIAN_PYTHONS[python])
    }


def _provisional(imported: Imported, given: Mapping[str, Any]) -> Request:
    """Return the request for a file, for which nothing is asked that only the network knows."""
    choice = choose_cuda(imported, given, newest=lambda *_: ChosenCuda("cpu"))
    return _on_import(given, request_table(imported, given, choice.cuda))


def _on_import(given: Mapping[str, Any], table: dict[str, Any]) -> Request:
    packages = [*table.pop("packages"), *given.get("package", ())]
    return _request({**table, **given, "package": packages})


def _existing(request: Request, platform: str) -> Lock | None:
    """Return the lock that a request has already; None: it has none that can be read."""
    try:
        every = read_locks(Env(request, FOLDER / f"{request.name}.toml").lock_file)
    except LockError:
        return None
    return next((each for each in every if each.platform == platform), None)


def _env_of(imported: Imported, given: Mapping[str, Any], systems: Mapping[str, ReadFor], host: Host) -> Env:
    """Return the env of what a file or image asks for, and report what was decided."""
    # pip refuses what has no hash in a file with hashes.
    whole = "from" in given and (
        pins_everything(Path(given["from"])) or any(not name.startswith("conda:") for name in imported.hashes)
    )
    _allow(imported, host)
    _tell(imported, _as_of(given), host)
    choice = _chosen_cuda(imported, given)
    if choice.torch is not None:
        host.console.step(
            f"taking CUDA {choice.cuda}: torch {choice.torch} is built for it, the newest that "
            f"{imported.origin} allows; --cuda takes another, or cpu"
        )
    table = request_table(imported, given, choice.cuda)
    if choice.cuda == "cpu" and (line := line_on_cuda_parts(imported)):
        host.console.step(line)
        imported = without_cuda_parts(imported)
        table = request_table(imported, {**given, "cuda": "cpu"})
    request = _on_import(given, table)
    if request.python != DEFAULT_PYTHON and "python" not in given:
        host.console.step(f"Python {request.python}, which {imported.origin} asks for, {_python_of(request)}")
    for line in lines_on_flags(imported, given, request):
        host.console.warn(line)
    if not allows(imported.requires_python, request.python):
        host.console.warn(
            f"{imported.origin}: requires-python is {imported.requires_python}, and Python "
            f"{python_release(request.python)} {_python_of(request)}"
        )
    read_for = {
        platform: system.versions[request.python]
        for platform, system in systems.items()
        if request.python in system.depends and request.python in system.versions
    }
    for version in sorted(set(read_for.values())):
        host.console.step(f"{imported.origin} is read for Python {version}, which {_python_of(request)}")
    return replace(
        new_env(request),
        hashes=hashes_for(imported, request.python, systems.values()),
        read_for=read_for,
        pythons=pythons_of(imported),
        order=imported.order,
        cuda_is_open=choice.torch is not None,
        places=places_for(imported, request.python),
        pinned_by=imported.origin if whole else "",
    )


def _chosen_cuda(imported: Imported, given: Mapping[str, Any]) -> ChosenCuda:
    if "from_image" in given:
        return choose_cuda(imported, given)  # without CUDA's libraries its torch is for the CPU, or conda's
    newest = partial(cuda_of_torch, platforms=given.get("platform", ()), as_of=_as_of(given))
    return choose_cuda(imported, given, of_request=cuda_of_env, newest=newest)


def _tell(imported: Imported, as_of: date | None, host: Host) -> None:
    """Report which settings of a file count, and warn of those that are ignored."""
    for line in imported.applied:
        host.console.step(line)
    for line in imported.ignored:
        host.console.warn(line)
    newest = imported.exclude_newer
    if newest is not None and (as_of is None or as_of > newest):
        host.console.warn(
            f"{imported.origin}: releases from after {newest} are excluded there, and not here: "
            f"--as-of {newest} excludes them, and Debian's with them"
        )


def _python_of(request: Request) -> str:
    """Describe where a request's Python comes from."""
    if request.conda is not None:
        return "is conda's"
    if request.base_image is not None:
        return f"is that of {request.base_image}"
    return f"is {'a standalone build' if request.is_standalone else f'of Debian {request.suite}'}"


def _allow(imported: Imported, host: Host) -> None:
    """Set up for this process the indexes that a file names and the user allows."""
    for variable, urls in imported.settings.items():
        mark = "," if variable == "UV_FIND_LINKS" else " "
        more = [url for url in os.environ.get(variable, "").split(mark) if url]
        value = urls[-1] if variable == "UV_DEFAULT_INDEX" else mark.join(dict.fromkeys([*more, *urls]))
        os.environ[variable] = value
        host.console.step(f"{variable} is {value}, as {imported.origin} says; set it up to lock again")


def _on_shipped(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the flags, completed from the request that ships for this CUDA version."""
    shipped = shipped_table(given["cuda"], given.get("python", DEFAULT_PYTHON))
    named = {_package(text) for text in given.get("package", ())}
    packages = [text for text in shipped.get("packages", ()) if _package(text) not in named]
    base = {} if given.keys() & _BASE.keys() else shipped.get("base", {})
    return {
        **{key: shipped[key] for key in ("torch", "index") if key in shipped},
        **shipped.get("determinism", {}),
        **{flag: base[key] for flag, key in _BASE.items() if key in base},
        **given,
        "package": [*packages, *given.get("package", ())],
        "apt": [*shipped.get("apt", ()), *given.get("apt", ())],
    }


def _package(text: str) -> str:
    # What is no requirement is refused with the rest of the request.
    return canonicalize_name(re.split(r"[^\w.-]", text.strip(), maxsplit=1)[0])


def _request(given: Mapping[str, Any]) -> Request:
    table: dict[str, Any] = {
        "name": given.get("name") or default_name(given["cuda"], given.get("python", DEFAULT_PYTHON)),
        "packages": list(given.get("package", ())),
        "apt": list(given.get("apt", ())),
        "platforms": list(given.get("platform", ())),
        "base": {key: given[flag] for flag, key in _BASE.items() if flag in given},
        "determinism": {key: given[key] for key in ("profile", "seed", "threads") if key in given},
    }
    table |= {"only-wheels": True} if given.get("only_wheels") else {}
    for option in ("allow_bad_record", "file_priority"):
        table |= {option.replace("_", "-"): list(names)} if (names := given.get(option)) else {}
    table |= {"build": build} if (build := build_table(given)) else {}
    table |= {
        key: given[key]
        for key in (
            *("cuda", "python", "torch", "index", "conda"),
            *("loosened", "constraints", "overrides"),
        )
        if key in given
    }
    if (day := _as_of(given)) is not None:
        table["as-of"] = day
    try:
        return Request.from_dict(table, "")
    except RequestError as error:
        raise RequestError(_as_flag(error.message), hint=error.hint) from None


def _as_of(given: Mapping[str, Any]) -> date | None:
    try:
        return date.fromisoformat(given["as_of"]) if "as_of" in given else None
    except ValueError:
        raise RequestError(f"--as-of: {given['as_of']!r} is not a day like 2024-09-15") from None


_BASE = {"debian": "debian", "base_image": "image", "allow_cuda": "allow-cuda"}


def _as_flag(message: str) -> str:
    """Replace the key in a message by its flag: ``: base.debian: …`` becomes ``--debian: …``."""
    key, _, text = message.removeprefix(": ").partition(": ")
    name = re.sub(r"\[\d+\]", "", key).rpartition(".")[2]
    if key.startswith("build."):
        return f"{flag_of(key)}: {text}"
    flag = {"packages": "package", "platforms": "platform", "image": "base-image"}.get(name, name)
    return f"--{flag}: {text}"


def chosen_lock(source: str | None, flags: Mapping[str, Any], host: Host) -> Lock:
    """Return the lock that a lock file, a request or flags name; create it if it is missing.

    With a lock or a request, ``--platform`` alone selects one of its platforms.
    """
    platform = one_platform(flags.get("platform") or ())
    env = env_from_flags({**flags, "platform": ()} if source is not None else flags, host)
    if source is not None and env is not None:
        raise click.UsageError("pass a lock or a request, or flags, not both")
    if source is not None and is_lock(Path(source)):
        return read_lock(Path(source), platform)
    if source is not None:
        env = read_env(source)
    if env is None:
        raise click.UsageError("nothing to build: pass --cuda 12.1, or a request or lock from envs/")
    return lock_of(env, host, platform)


def one_platform(named: Sequence[str]) -> str | None:
    """Return the platform that ``--platform`` names; None if it names none or several."""
    wrong = [name for name in named if name not in PLATFORMS]
    if wrong:
        raise RequestError(f"--platform: {wrong[0]!r} is not one of {', '.join(PLATFORMS)}")
    return named[0] if len(set(named)) == 1 else None


def locks_of(text: str) -> tuple[Lock, ...]:
    """Read a lock file of any name (that of `git show > FILE` too), or the lock of a request."""
    file = Path(text)
    if is_lock(file):
        return read_locks(file)
    return read_locks(read_env(text).lock_file)
