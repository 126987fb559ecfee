"""Inspect a base image without running it: system, C library, Python and CUDA libraries."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import ResolveError
from ..in_image.selftest.names import CUDA_LIBRARY
from ..oci.merge_layers import Keep
from ..oci.tar_writer import Record

STATUS = "var/lib/dpkg/status"
_OS_RELEASE = ("etc/os-release", "usr/lib/os-release")
_LOADERS = {"linux/amd64": "lib64/ld-linux-x86-64.so.2", "linux/arm64": "lib/ld-linux-aarch64.so.1"}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH of an image that sets none."""
_MOST_LINKS = 40


def wanted(python: str) -> Keep:
    """Return the function that selects the files whose content `Content` needs."""
    names = re.compile(rf"(lib)?python{re.escape(python)}(\.so\.1\.0)?|libc(-2\.\d+)?\.so(\.6)?")
    return lambda path, _: path in _OS_RELEASE or names.fullmatch(path.rpartition("/")[2]) is not None


@dataclass(frozen=True, slots=True)
class Content:
    """The files of an image, and the content of those that were `wanted`; ``name`` is for messages."""

    files: Mapping[str, Record]
    kept: Mapping[str, bytes]
    name: str

    @property
    def system(self) -> str:
        """The system as it calls itself; ``an unknown system`` where it does not."""
        return self._os_release.get("PRETTY_NAME") or "an unknown system"

    @property
    def suite(self) -> str:
        """The code name of the Debian release; empty for another system."""
        found = self._os_release
        return found.get("VERSION_CODENAME", "") if found.get("ID") == "debian" else ""

    @property
    def cuda(self) -> tuple[str, ...]:
        """The paths of CUDA's libraries, sorted."""
        names = (p for p, r in self.files.items() if r.kind == "file")
        return tuple(sorted(f"/{p}" for p in names if CUDA_LIBRARY.fullmatch(p.rpartition("/")[2])))

    def glibc(self, platform: str) -> str:
        """Return the version of the C library. Raises `ResolveError` where it is not glibc."""
        loader = self.real(_LOADERS[platform])
        library = self.real(posixpath.join(posixpath.dirname(loader), "libc.so.6")) if loader else None
        found = re.search(rb"release version (\d+\.\d+)", self.kept.get(library or "", b""))
        if found is None:
            raise ResolveError(
                f"{self.name} ({self.system}) has no glibc for {platform}, which torch's wheels need",
                hint="take a base of Debian, Ubuntu or the like; Alpine's C library is another",
            )
        if self.real("bin/sh") is None:
            raise ResolveError(
                f"{self.name} has no /bin/sh, which a build on it needs", hint="use one with a shell"
            )
        return found[1].decode()

    def python(self, minor: str, path: str) -> tuple[str, str]:
        """Return path and version of the first interpreter of a minor version that is on a PATH and complete.

        Both are empty where there is none. Raises `ResolveError` for one that lacks ``venv`` where Debian's
        packages cannot bring it.
        """
        for folder in (path or PATH).split(":"):
            given = posixpath.join(folder, f"python{minor}")
            real = self.real(given)
            if real is None or self.files[real].kind != "file":
                continue
            prefix = posixpath.dirname(posixpath.dirname(real))
            module = posixpath.join(prefix, f"lib/python{minor}/venv/__init__.py")
            if self.real(module) is None:
                if self.suite:
                    continue
                raise ResolveError(
                    f"{self.name} ({self.system}) has {given} without the module venv (/{module} is missing)",
                    hint="add it to the base, as with the package python3-venv",
                )
            form = re.compile(rb"\0(" + re.escape(minor).encode() + rb"\.\d+[a-z0-9+]*)\0")
            library = self.real(posixpath.join(prefix, f"lib/libpython{minor}.so.1.0"))
            for each in (real, library or ""):
                if match := form.search(self.kept.get(each, b"")):
                    return given, match[1].decode()
        return "", ""

    def real(self, path: str) -> str | None:
        """Return where a path leads, links followed; None where there is nothing."""
        todo, done = [part for part in path.split("/") if part], list[str]()
        links = 0
        while todo:
            part = todo.pop(0)
            if part == "..":
                done = done[:-1]
                continue
            here = "/".join([*done, part])
            record = self.files.get(here)
            if part == "." or record is None:
                if part == ".":
                    continue
                return None
            if record.kind != "link":
                done.append(part)
                continue
            links += 1
            if links > _MOST_LINKS:
                return None
            done = [] if record.content.startswith("/") else done
            todo = [p for p in record.content.split("/") if p] + todo
        return "/".join(done)

    @property
    def _os_release(self) -> Mapping[str, str]:
        for path in _OS_RELEASE:
            real = self.real(path)
            if real is not None and real in self.kept:
                text = self.kept[real].decode("utf-8", "replace")
                try:
                    words = shlex.split(text, comments=True)
                except ValueError:
                    continue
                return dict(word.split("=", 1) for word in words if "=" in word)
        return {}
