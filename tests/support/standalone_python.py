"""This machine's own Python in the form of a standalone build, and uv's list of such builds."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from reprobuild.lock.standalone_python import StandalonePython
from support.python_root import PYTHON
from support.server import Server

VERSION = ".".join(map(str, sys.version_info[:3]))
_NEEDED = (
    "__future__ argparse csv json marshal subprocess tempfile warnings concurrent.futures.thread "
    "functools pathlib importlib.util encodings.utf_8 site typing venv"
)
_PROJECT = "https://github.com/astral-sh/python-build-standalone"
_OFFICIAL = "https://releases.astral.sh/github/python-build-standalone"
_LEFT_OUT = ("/site-packages/", "/dist-packages/", "/__pycache__/", "/test/", "/tests/", "/config-")


def archive(*odd: tarfile.TarInfo, whole: bool = False) -> bytes:
    """Return an archive: with what the image's own programs import, or with the ``whole`` standard library.

    ``odd`` are further members, without content.
    """
    library = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
    top = f"python/lib/python{PYTHON}/"
    members = {f"python/bin/python{PYTHON}": Path(sys.executable).resolve()}
    for path in library.rglob("*") if whole else _imported():
        if path.is_file() and path.is_relative_to(library) and not any(p in f"{path}" for p in _LEFT_OUT):
            members[top + path.relative_to(library).as_posix()] = path
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        for name in sorted(members):
            info = tar.gettarinfo(members[name].resolve(), name)
            info.type = tarfile.REGTYPE  # and not a hard link
            info.size = members[name].stat().st_size
            with members[name].open("rb") as file:
                tar.addfile(info, file)
        for name, link in (("python3", f"python{PYTHON}"), ("python", "python3")):
            tar.addfile(_link(f"python/bin/{name}", link))
        for name in (f"{top}site-packages/pip/__init__.py", f"{top}__pycache__/os.cpython-{PYTHON}.pyc"):
            tar.addfile(tarfile.TarInfo(name))
        for member in odd:
            tar.addfile(member)
    return out.getvalue()


def _link(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


def _imported() -> Iterable[Path]:
    """The files of the modules that the programs in an image import, and that uv looks for."""
    own = sysconfig._get_sysconfigdata_name()  # type: ignore[attr-defined]
    code = f"import {', '.join(_NEEDED.split())}, sys; __import__({own!r})\n"
    code += "print(*{getattr(m, '__file__', None) or '' for m in sys.modules.values()}, sep='\\n')"
    listed = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    return [Path(line) for line in listed.stdout.splitlines() if line]


def locked(
    body: bytes, url: str = "https://index.example/releases/download/20240101/python.tar.gz"
) -> StandalonePython:
    """Return an archive as a lock has it."""
    return StandalonePython(version=VERSION, url=url, sha256=hashlib.sha256(body).hexdigest(), size=len(body))


def list_builds(folder: Path, monkeypatch: pytest.MonkeyPatch, *versions: str, **keys: str) -> None:
    """Make builds those that uv knows, by default with an address that nobody answers."""
    builds = {}
    for version in versions:
        major, minor, patch = map(int, version.split("."))
        builds[f"cpython-{version}-linux-x86_64-gnu"] = {
            "name": "cpython",
            "arch": {"family": "x86_64", "variant": None},
            "os": "linux",
            "libc": "gnu",
            "major": major,
            "minor": minor,
            "patch": patch,
            "prerelease": "",
            "url": "https://index.example/releases/download/20240101/python.tar.gz",
            "sha256": "0" * 64,
            "variant": None,
            "build": "20240101",
            **keys,
        }
    file = folder / "downloads.json"
    file.write_text(json.dumps(builds))
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS_JSON_URL", str(file))


def offer(
    server: Server,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    body: bytes,
    *,
    sha256: str = "",
    day: str = "20240101",
    official: bool = False,
) -> str:
    """Serve an archive, and make it the one that uv knows; return its address.

    If it is ``official``, that is the address of the project itself, which a mirror stands for.
    """
    name = f"cpython-{VERSION}%2B{day}-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz"
    url = server.add(f"/releases/download/{day}/{name}", body)
    listed_as = url.replace(server.url, _PROJECT) if official else url
    sha256 = sha256 or hashlib.sha256(body).hexdigest()
    list_builds(folder, monkeypatch, VERSION, url=listed_as, sha256=sha256, build=day)
    return url.replace(server.url, _OFFICIAL) if official else url
