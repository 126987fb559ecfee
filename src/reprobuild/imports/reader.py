"""A team's own files → a request: what they pin stays pinned, the rest is resolved around it.

The result is a `Request` like any other, and beside it the hashes that the file names, which the lock made
from it must keep.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import RequestError
from .common import Imported, fitting_python, read_text, wanted_of
from .conda import read_conda
from .locks import read_pylock, read_uv_lock
from .pyproject import read_pyproject
from .requirements import read_requirements

__all__ = ["Imported", "read_import", "request_table"]


def read_import(file: Path, *, extras: Sequence[str] = (), groups: Sequence[str] = ()) -> Imported:
    """Read a team's file, whose name tells what it is.

    Raises `RequestError` that names the file and the place.
    """
    if (extras or groups) and file.name not in ("pyproject.toml", "uv.lock"):
        raise RequestError(f"{file}: has no extras or groups; only a pyproject.toml or a uv.lock has")
    if file.name == "pyproject.toml":
        return read_pyproject(file, extras, groups)
    if file.name == "uv.lock":
        return read_uv_lock(file, extras, groups)
    if re.fullmatch(r"pylock\.([^.]+\.)?toml", file.name):
        return read_pylock(read_text(file), str(file), file.name[7:-5])
    if file.suffix in (".yml", ".yaml"):
        return read_conda(file)
    if file.suffix in (".txt", ".in"):
        return read_requirements(file)
    raise RequestError(
        f"{file}: not a file that can be imported",
        hint="supported, by name: requirements.txt (any .txt or .in), pylock.toml, uv.lock, pyproject.toml, "
        "environment.yml, conda-lock.yml (any .yml)",
    )


def request_table(imported: Imported, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request's keys that a file decides; ``given`` holds the user's own, which go before it.

    Raises `RequestError` when neither says which CUDA, or the file allows none of the Pythons there are.
    """
    python = fitting_python(imported, given.get("python"))
    wanted = wanted_of(imported, python)
    cuda = given.get("cuda") or wanted.cuda
    if cuda is None:
        raise RequestError(
            f"{imported.origin}: does not say which CUDA PyTorch is for",
            hint="give --cuda 12.1, or --cuda cpu",
        )
    table: dict[str, Any] = {"python": python, "cuda": cuda, "packages": list(wanted.packages)}
    if imported.conda:
        table["conda"] = {"channels": list(imported.channels), "packages": list(imported.conda)}
    if imported.index is not None:
        table["index"] = imported.index
    torch = given.get("torch") or wanted.torch
    if torch is not None:
        table["torch"] = torch
    name = re.sub(r"[^a-z0-9]+", "-", imported.name.lower()).strip("-")
    return table | {"name": name or "imported"}
