"""Wheels of some files on an index, with a RECORD that is right or not."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping
from typing import Any

from reprobuild.lock.packages import PythonPackage, Wheel
from support.index import File, Index


def row(path: str, content: bytes, padding: str = "") -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    return f"{path},sha256={digest}{padding},{len(content)}\n"


def put(
    index: Index,
    name: str,
    files: Mapping[str, bytes],
    record: str | None = None,
    metadata: str = "Name: x\n",
    **odd: Any,
) -> PythonPackage:
    """Put a wheel of some files on the index; its RECORD is right unless it is given."""
    info = f"{name}-1.dist-info"
    every = {**files, f"{info}/METADATA": metadata.encode()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, content in every.items():
            archive.writestr(path, content)
        text = "".join(row(path, content) for path, content in every.items()) if record is None else record
        archive.writestr(f"{info}/RECORD", text)
    file = File(project=name, name=f"{name}-1-py3-none-any.whl", body=out.getvalue(), **odd)
    index.files.append(file)
    wheel = Wheel(filename=file.name, url=f"{index.root}/files/{file.name}", sha256=file.sha256, size=1)
    return PythonPackage(name=name.replace("_", "-"), version="1", wheel=wheel)
