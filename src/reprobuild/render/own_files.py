"""Files that reprobuild adds to an image, as bytes. Pure; the same for every engine.

The manifest of installed files is missing here: it is made once the packages are unpacked.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from packaging.utils import is_normalized_name
from packaging.version import VERSION_PATTERN

from .. import __version__, assets
from ..lock.model import Lock
from ..lock.own_files import OwnFiles
from ..request.image_layout import OWN_FOLDER, SITE_PREFIX
from ..request.kernels import document
from .program import selftest_program

OWN_FILES = ("golden.json", "kernels.py")
"""The files of ``in_image/`` that go into ``/opt/reprobuild`` as they are; program.py makes the self-test."""

SITE_FILES = ("reprobuild.pth", "reprobuild_hook.py")
"""The files of ``in_image/`` that go into the environment's site-packages; the ``.pth`` loads the hook."""

BUILD_FILES = ("bytecode.py", "manifest.py")
"""The files of ``in_image/`` that a Dockerfile's build stage runs; they stay out of the image."""

ROOT_FILE = "debian_root.py"
"""The file of ``in_image/`` that a self-contained Dockerfile runs in the Debian root that it has made."""

MANIFEST_FOLDERS = (SITE_PREFIX, "/usr")
"""Folders whose files the manifest lists; a container's start may change files elsewhere."""

MODE = 0o644
"""Of every file here: all are read, none is executed."""


def site_packages(lock: Lock) -> str:
    """Return the absolute path in the image where the Python packages are."""
    return f"{SITE_PREFIX}/lib/python{lock.request.python}/site-packages"


def selftest_files() -> Mapping[str, bytes]:
    """Return the self-test and its data files, by name, with the content that they have in an image."""
    return {**{name: assets.in_image(name) for name in OWN_FILES}, "selftest.py": selftest_program()}


def own_files() -> OwnFiles:
    """Return the record, for a lock, of the files that this release adds to every image."""
    files = {**selftest_files(), **{name: assets.in_image(name) for name in SITE_FILES}}
    return OwnFiles(
        version=__version__,
        sha256={name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    )


def other_files(lock: Lock) -> str:
    """Describe in one line how this release's own files differ from a lock's; empty if they do not."""
    mine, locked = own_files(), lock.own_files
    if locked is None:
        return f"the lock does not name reprobuild's own files; this is reprobuild {mine.version}"
    if mine == locked:
        return ""
    every = sorted(mine.sha256.keys() | locked.sha256.keys())
    other = [name for name in every if mine.sha256.get(name) != locked.sha256.get(name)]
    what = f"differ in {', '.join(other)}" if other else "are the same"
    if mine.version == locked.version:
        return f"the lock was made by another build of reprobuild {mine.version}: its own files {what}"
    return f"the lock was made by reprobuild {locked.version}, this is {mine.version}: their own files {what}"


def image_files(lock: Lock) -> Mapping[str, tuple[bytes, int]]:
    """Return absolute path in the image → (content, mode), sorted by path."""
    files = {f"{OWN_FOLDER}/{name}": content for name, content in selftest_files().items()}
    files |= {f"{site_packages(lock)}/{name}": assets.in_image(name) for name in SITE_FILES}
    files[f"{OWN_FOLDER}/pylock.toml"] = lock.dump().encode()
    files[f"{OWN_FOLDER}/constraints.txt"] = constraints(lock).encode()
    if lock.request.kernels.locked:
        files[f"{OWN_FOLDER}/kernels.json"] = document(lock.request.kernels.choices)
    return {path: (files[path], MODE) for path in sorted(files)}


def constraints(lock: Lock) -> str:
    """Return the file that ``PIP_CONSTRAINT`` and ``UV_CONSTRAINT`` name: every locked package but pip.

    pip may replace itself: a derived image can need a newer one, and no result depends on it. The comment is
    for a person whom an installer has sent here.
    """
    request = lock.request
    lines = [
        f"# The Python packages of this image ({request.name}) are locked: the image was tested with exactly",
        "# these. If pip or uv sent you here with a conflict, ask for a version that fits the line below, or",
        f"# change the request envs/{request.name}.toml and make the image anew:",
        "#   reprobuild lock --upgrade PACKAGE && reprobuild image",
        "# To go against the lock in one command, at your own risk: PIP_CONSTRAINT= pip install …",
        *(f"{name}=={version}" for name, version in _constrained(lock)),
    ]
    return "\n".join(lines) + "\n"


def _constrained(lock: Lock) -> list[tuple[str, str]]:
    """Omit names and versions that pip cannot read: conda allows more.

    A package of conda's may call itself ``2.4.1.post303`` to pip where conda has it as ``2.4.1``.
    """
    wheels = {package.name for package in lock.python}
    return [
        (name, version if name in wheels else f"{version}.*")
        for name, version in lock.distributions.items()
        if name != "pip" and (name in wheels or (is_normalized_name(name) and _VERSION.fullmatch(version)))
    ]


_VERSION = re.compile(VERSION_PATTERN, re.VERBOSE | re.IGNORECASE)
