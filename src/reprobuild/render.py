"""lock → the Dockerfile and its context, as bytes. Pure: no clock, no network; reads only shipped templates.

The context lacks what is too large to pass around: the wheels, which the caller links to where `Artifact`
says, and ``debian.tar``, the Debian root that it makes from the locked packages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from jinja2 import Environment, FunctionLoader, StrictUndefined

from . import __version__, assets
from .determinism import HOME, SITE_PREFIX
from .errors import RenderError
from .image_config import ImageConfig, default_image_name, image_config
from .image_files import BUILD_FILES, MANIFEST_FOLDERS, image_files
from .lockfile import Lock

CONDA_TAR = "conda.tar"
"""Where in the context the linked conda packages belong, when the lock has some."""

DEBIAN_TAR = "debian.tar"
"""Where in the context the Debian root belongs."""

FOLDER = "reprobuild"
"""The folder of the context that holds reprobuild's own files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifact:
    """A locked file and its place in the context, relative, with slashes."""

    path: str
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    """A context but for its large files."""

    files: Mapping[str, bytes]
    """Path in the context → content, sorted by path."""
    artifacts: tuple[Artifact, ...]


def render(lock: Lock) -> Rendered:
    """Return the context of a lock; the same lock gives the same bytes.

    Raises `RenderError` that names the value and its place when one could break out of its line.
    """
    own = image_files(lock)
    config = _without(image_config(lock), {} if lock.base is None else lock.base.env)
    installed = [(path.rpartition("/")[2], path, f"{mode:04o}") for path, (_, mode) in own.items()]
    files = {f"{FOLDER}/{name}": assets.in_image(name) for name in BUILD_FILES}
    files |= {f"{FOLDER}/{name}": own[path][0] for name, path, _ in installed}
    files[f"{FOLDER}/requirements.txt"] = _fill("requirements.txt.j2", lock=lock)
    files[".dockerignore"] = _fill("dockerignore.j2", conda=bool(lock.conda), debian=bool(lock.debian))
    files["Dockerfile"] = _fill(
        "Dockerfile.j2",
        title=lock.request.name,
        version=__version__,
        facts=_facts(lock),
        platform=lock.platform,
        base=None if lock.base is None else f"{lock.base.name}@{lock.base.manifests[lock.platform]}",
        debian=bool(lock.debian),
        python=_interpreter(lock),
        venv=SITE_PREFIX,
        home=HOME,
        conda=bool(lock.conda),
        wheels=bool(lock.python),
        pip=next((package.wheel.filename for package in lock.python if package.name == "pip"), ""),
        installed=installed,
        manifest_folders=MANIFEST_FOLDERS,
        config=config,
    )
    files["apptainer.def"] = _fill(
        "apptainer.def.j2",
        title=lock.request.name,
        version=__version__,
        digest=lock.digest,
        image=default_image_name(lock),
        venv=SITE_PREFIX,
        home=HOME,
        config=config,
    )
    files["devcontainer.json"] = _devcontainer(lock)
    return Rendered(
        files={path: files[path] for path in sorted(files)},
        artifacts=tuple(
            Artifact(path=f"wheels/{_word(wheel.filename, 'wheel')}", sha256=_sha256(wheel.sha256, "wheel"))
            for wheel in (package.wheel for package in lock.python)
        ),
    )


def _interpreter(lock: Lock) -> str:
    if not re.fullmatch(r"[0-9]+\.[0-9]+", lock.request.python):
        raise _refusal(lock.request.python, "a minor version", "request.python")
    return lock.interpreter


def _without(config: ImageConfig, inherited: Mapping[str, str]) -> ImageConfig:
    """Leave out the variables that an image has from its base already, whatever stands in them."""
    own = {name: value for name, value in config.env.items() if inherited.get(name) != value}
    return replace(config, env=own)


def _devcontainer(lock: Lock) -> bytes:
    """For editors that open a folder inside an image (containers.dev)."""
    settings = {"python.defaultInterpreterPath": f"{SITE_PREFIX}/bin/python"}
    document = {
        "name": str(_printable(lock.request.name, "request.name")),
        "image": str(_image(default_image_name(lock), "image")),
        "customizations": {"vscode": {"settings": settings}},
        **({"hostRequirements": {"gpu": "optional"}} if lock.request.cuda != "cpu" else {}),
    }
    return (json.dumps(document, indent=2) + "\n").encode()


def _facts(lock: Lock) -> list[str]:
    rows = {"lock": lock.digest}
    if lock.base is not None:
        rows["base"] = lock.base.image
    if lock.debian:
        rows["debian"] = f"{lock.suite}, {len(lock.debian)} packages"
    rows |= lock.stack
    return [f"{name:<7} {value}" for name, value in rows.items()]


class _Checked(str):
    """Text that a filter has let through; nothing else may stand in a rendered file."""

    __slots__ = ()


def _only_checked(value: object) -> object:
    if not isinstance(value, _Checked):
        raise TypeError(f"a template writes {value!r} without a filter")
    return value


def _form(pattern: str, kind: str, value: object, place: str) -> _Checked:
    text = str(value)  # raises for a name that the template has and the values lack
    if not isinstance(value, str) or not re.fullmatch(pattern, text):
        raise _refusal(value, kind, place)
    return _Checked(text)


def _refusal(value: object, kind: str, place: str) -> RenderError:
    return RenderError(
        f"{place}: {value!r} is not {kind}, so it could break out of its line in the Dockerfile",
        hint="write the lock anew with `reprobuild lock`; if that does not help, report it as a bug",
    )


def _comment(value: object, place: str) -> _Checked:
    # A backslash at the end would join the next line.
    checked = _form(r"[^\\]*", "text without a backslash", value, place)
    return _printable(checked, place)


def _quoted(value: object, place: str) -> _Checked:
    # Inside a Dockerfile's double quotes a dollar expands and a backslash escapes.
    checked = _form(r'[^"\\$`]*', 'text without ", \\, $ and `', value, place)
    return _Checked(f'"{_printable(checked, place)}"')


def _printable(value: str, place: str) -> _Checked:
    if not value.isprintable():
        raise _refusal(value, "one line of printable text", place)
    return _Checked(value)


def _word(value: object, place: str) -> _Checked:
    return _form(r"[A-Za-z0-9_][A-Za-z0-9_.+!-]*", "a plain word", value, place)


def _path(value: object, place: str) -> _Checked:
    return _form(r"/|(?:/[A-Za-z0-9_][A-Za-z0-9_.+-]*)+", "an absolute path of plain words", value, place)


def _variable(value: object, place: str) -> _Checked:
    return _form(r"[A-Z][A-Z0-9_]*", "the name of a variable", value, place)


def _label(value: object, place: str) -> _Checked:
    return _form(r"[a-z][a-z0-9.-]*", "the name of a label", value, place)


def _image(value: object, place: str) -> _Checked:
    return _form(r"[a-z0-9][a-z0-9._/-]*:[A-Za-z0-9_][A-Za-z0-9_.-]*", "the name of an image", value, place)


def _pinned(value: object, place: str) -> _Checked:
    form = r"[A-Za-z0-9.-]+(?::[0-9]+)?(?:/[a-z0-9._-]+)+@sha256:[0-9a-f]{64}"
    return _form(form, "an image by its digest", value, place)


def _sha256(value: object, place: str) -> _Checked:
    return _form(r"[0-9a-f]{64}", "64 hex digits", value, place)


_ENVIRONMENT = Environment(
    loader=FunctionLoader(assets.template),
    undefined=StrictUndefined,
    finalize=_only_checked,
    autoescape=False,  # noqa: S701 -- not HTML; the filters guard each line
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters |= {
    "comment": _comment,
    "image": _image,
    "label": _label,
    "path": _path,
    "pinned": _pinned,
    "quoted": _quoted,
    "sha256": _sha256,
    "variable": _variable,
    "word": _word,
}


def _fill(template: str, **values: object) -> bytes:
    return _ENVIRONMENT.get_template(template).render(values).encode()
