"""Dockerfile and build context of a lock, as bytes. Pure; reads only the shipped templates.

The context lacks what is too large to pass around: the wheels, which the caller links to where `ContextFile`
says, and ``debian.tar``, the Debian root that it makes from the locked packages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .. import __version__, assets
from ..errors import RenderError
from ..lock.merged_usr import links_into_usr
from ..lock.model import Lock
from ..request.image_layout import OWN_FOLDER, SITE_PREFIX
from .filters import fill, minor, sha256, word
from .image_config import ImageConfig, default_image_name, image_config
from .own_files import BUILD_FILES, MANIFEST_FOLDERS, ROOT_FILE, image_files

CONDA_TAR = "conda.tar"
"""Where in the context the linked conda packages belong, when the lock has some."""

DEBIAN_TAR = "debian.tar"
"""Where in the context the Debian root belongs."""

PYTHON_TAR = "python.tar"
"""Where in the context a standalone Python belongs, when the lock has one."""

FOLDER = "reprobuild"
"""The folder of the context that holds reprobuild's own files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextFile:
    """A locked file and its place in the context, relative, with slashes."""

    path: str
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    """A build context without its large files."""

    files: Mapping[str, bytes]
    """Path in the context → content, sorted by path."""
    artifacts: tuple[ContextFile, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class DebianRoot:
    """Facts about the Debian part that the self-contained form needs and the lock lacks."""

    urls: Mapping[str, str]
    """sha256 of a package → where it is served, without user and password."""
    digest: str
    """The tree digest of the installed root."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Remote:
    """A file that the builder fetches."""

    name: str
    url: str
    sha256: str


_GROUP = 40
"""So many files a stage: each is a layer, and builders lay no more than about 120 over each other."""


def render(lock: Lock) -> Rendered:
    """Return the context of a lock; the same lock gives the same bytes.

    Raises `RenderError` that names the value and its place when one could break out of its line.
    """
    files = _own_files(lock)
    files[".dockerignore"] = fill(
        "dockerignore.j2",
        conda=bool(lock.conda),
        debian=bool(lock.debian),
        standalone=lock.standalone is not None,
    )
    files["Dockerfile"] = _dockerfile(lock, remote=None)
    files["apptainer.def"] = fill(
        "apptainer.def.j2",
        title=lock.request.name,
        version=__version__,
        digest=lock.digest,
        image=default_image_name(lock),
        venv=SITE_PREFIX,
        own_folder=OWN_FOLDER,
        config=_config(lock),
    )
    return Rendered(
        files={path: files[path] for path in sorted(files)},
        artifacts=tuple(
            ContextFile(path=f"wheels/{word(wheel.filename, 'wheel')}", sha256=sha256(wheel.sha256, "wheel"))
            for wheel in (package.wheel for package in lock.python)
        ),
    )


def check_self_contained(lock: Lock, urls: Mapping[str, str]) -> None:
    """Raise the `RenderError` of `render_self_contained` if there is one, before the Debian root is made."""
    render_self_contained(lock, DebianRoot(urls=urls, digest="sha256:" + 64 * "0"))


def render_self_contained(lock: Lock, debian: DebianRoot) -> bytes:
    """Return a Dockerfile without a context: files are embedded, or named by address and hash.

    Raises `RenderError` as `render` does, for a lock with conda packages, which a Dockerfile cannot link,
    with a base image or a standalone Python, and for a file that is not served over HTTP.
    """
    for has, part, why in (
        (bool(lock.conda), "conda packages", "they are linked outside it"),
        (lock.base is not None, "a base image", "its root is that image"),
        (lock.standalone is not None, "a standalone Python", "its layer is made outside it"),
    ):
        if has:
            raise RenderError(
                f"a lock with {part} has no self-contained Dockerfile: {why}", hint="omit --self-contained"
            )
    if built := [p.name for p in lock.python if p.source is not None]:
        raise RenderError(
            f"{', '.join(built)}: built from source, which a self-contained Dockerfile cannot do",
            hint="omit --self-contained",
        )
    debs = [
        _Remote(name=f"{p.name}_{p.architecture}", url=debian.urls[p.sha256], sha256=p.sha256)
        for p in lock.debian
    ]
    wheels = [_Remote(name=p.wheel.filename, url=p.wheel.url, sha256=p.wheel.sha256) for p in lock.python]
    for each in [*debs, *wheels]:
        if not each.url.startswith(("http://", "https://")):
            raise RenderError(
                f"{each.name} is a local file ({each.url}), which no builder can fetch",
                hint="omit --self-contained, or lock with an index that serves it",
            )
    remote = {
        "debian": _grouped(debs),
        "wheels": _grouped(wheels),
        "program": assets.in_image(ROOT_FILE).decode(),
        "digest": debian.digest.removeprefix("sha256:"),
        "links": links_into_usr(lock),
        "files": {
            path.rpartition("/")[2]: content.decode() for path, content in sorted(_own_files(lock).items())
        },
    }
    return _dockerfile(lock, remote=remote)


def _grouped(files: Sequence[_Remote]) -> list[Sequence[_Remote]]:
    return [files[start : start + _GROUP] for start in range(0, len(files), _GROUP)]


def _own_files(lock: Lock) -> dict[str, bytes]:
    """Return the files that a build stage needs beside the packages, by their path in the context."""
    files = {f"{FOLDER}/{name}": assets.in_image(name) for name in BUILD_FILES}
    files |= {
        f"{FOLDER}/{path.rpartition('/')[2]}": content for path, (content, _) in image_files(lock).items()
    }
    files |= {f"{FOLDER}/requirements.txt": fill("requirements.txt.j2", packages=lock.python)}
    first = [package for package in lock.python if package.name in lock.request.file_priority]
    return files | ({f"{FOLDER}/priority.txt": fill("requirements.txt.j2", packages=first)} if first else {})


def _dockerfile(lock: Lock, *, remote: Mapping[str, object] | None) -> bytes:
    installed = [
        (path.rpartition("/")[2], path, f"{mode:04o}") for path, (_, mode) in image_files(lock).items()
    ]
    return fill(
        "Dockerfile.j2",
        title=lock.request.name,
        version=__version__,
        facts=_facts(lock),
        platform=lock.platform,
        suite=lock.suite,
        base=None if lock.base is None else f"{lock.base.name}@{lock.base.manifests[lock.platform]}",
        debian=bool(lock.debian),
        standalone=lock.standalone is not None,
        python=_interpreter(lock),
        venv=SITE_PREFIX,
        own_folder=OWN_FOLDER,
        conda=bool(lock.conda),
        wheels=bool(lock.python),
        pip=next((package.wheel.filename for package in lock.python if package.name == "pip"), ""),
        priority=bool(lock.request.file_priority),
        installed=installed,
        manifest_folders=MANIFEST_FOLDERS,
        config=_config(lock),
        user=lock.request.user,
        remote=remote,
    )


def _interpreter(lock: Lock) -> str:
    minor(lock.request.python, "request.python")
    return lock.interpreter


def _config(lock: Lock) -> ImageConfig:
    """Return the configuration without the variables that an image has from its base already."""
    inherited = {} if lock.base is None else lock.base.env
    config = image_config(lock)
    own = {name: value for name, value in config.env.items() if inherited.get(name) != value}
    return replace(config, env=own)


def _facts(lock: Lock) -> list[str]:
    rows = {"lock": lock.digest}
    if lock.base is not None:
        rows["base"] = lock.base.image
    if lock.debian:
        rows["debian"] = f"{lock.suite}, {len(lock.debian)} packages"
    rows |= lock.stack
    return [f"{name:<7} {value}" for name, value in rows.items()]
