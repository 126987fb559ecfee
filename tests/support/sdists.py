"""Small source archives with their backend in them: no build requirements, and any behaviour."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping

from reprobuild.fetch.store import Store
from reprobuild.lock.packages import SourceArchive
from support.index import File, Index
from support.wheels import toy_pip

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""

BACKEND = """
import os, time, zipfile

NAME, VERSION, REQUIRES = {name!r}, {version!r}, {requires!r}

def files():
    return {{"{module}/__init__.py": "VALUE = 1\\n"}}

{more}

def build_wheel(folder, settings=None, metadata=None):
    filename = f"{module}-{{VERSION}}-py3-none-any.whl"
    info = f"{module}-{{VERSION}}.dist-info"
    text = f"Metadata-Version: 2.1\\nName: {{NAME}}\\nVersion: {{VERSION}}\\n"
    text += "".join(f"Requires-Dist: {{each}}\\n" for each in REQUIRES)
    with zipfile.ZipFile(os.path.join(folder, filename), "w") as wheel:
        for path, content in files().items():
            wheel.writestr(path, content)
        wheel.writestr(f"{{info}}/METADATA", text)
        wheel.writestr(f"{{info}}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{{info}}/RECORD", "")
    return filename
"""


def backend(name: str, version: str, *, requires: tuple[str, ...] = (), more: str = "") -> str:
    """Return the source of a backend; ``more`` comes after its functions `files` and before `build_wheel`."""
    module = name.replace("-", "_")
    return BACKEND.format(name=name, version=version, requires=requires, module=module, more=more)


def sdist(
    name: str,
    version: str,
    files: Mapping[str, str] | None = None,
    *,
    requires: tuple[str, ...] = (),
    more: str = "",
    claims: str = "",
) -> bytes:
    """Return a source archive; ``claims`` is the name that its backend says in place of its own."""
    own = backend(claims or name, version, requires=requires, more=more)
    content = {"pyproject.toml": PYPROJECT, "backend.py": own, **(files or {})}
    return tar_gz({f"{name}-{version}/{path}": text.encode() for path, text in content.items()})


def tar_gz(files: Mapping[str, bytes], *odd: tarfile.TarInfo) -> bytes:
    """Return a compressed tar of some files, and of members without content."""
    out = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for member in odd:
            tar.addfile(member)
    return out.getvalue()


def serve(index: Index, name: str, version: str, body: bytes) -> File:
    """Put a source archive on an index."""
    file = File(project=name, name=f"{name}-{version}.tar.gz", body=body, metadata="unannounced")
    index.files.append(file)
    return file


def serve_pip(index: Index) -> None:
    """Put a pip on an index that nothing calls, since nothing has to be installed."""
    index.files.append(
        File(project="pip", name="pip-26.0-py3-none-any.whl", body=toy_pip(), metadata="unannounced")
    )


def stored(store: Store, name: str, version: str, body: bytes) -> SourceArchive:
    """Put a source archive into a store."""
    path = store.add_document(body)
    return SourceArchive(
        filename=f"{name}-{version}.tar.gz",
        url=f"https://index.example/{name}-{version}.tar.gz",
        sha256=path.name,
        size=len(body),
    )
