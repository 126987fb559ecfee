"""Wheel of this installation of reprobuild; an editable install gives the same bytes."""

from __future__ import annotations

import zipfile
from importlib import metadata
from pathlib import Path

from .. import assets
from ..errors import HostError
from ..sources.normalize_wheel import normalise

NAME = "reprobuild"
_WHEEL = b"Wheel-Version: 1.0\nGenerator: reprobuild\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_KEPT = ("METADATA", "entry_points.txt", "licenses/LICENSE")
"""The files of .dist-info that say what is installed, not how."""


def own_distribution() -> metadata.Distribution:
    """Return the metadata of the installed reprobuild. Raises `HostError` where it was not installed."""
    try:
        return metadata.distribution(NAME)
    except metadata.PackageNotFoundError:
        raise HostError(
            "this reprobuild was not installed as a Python package, so its dependencies are not known",
            hint="install it with pip, in a virtual environment, and bundle with that one",
        ) from None


def own_wheel(folder: Path) -> Path:
    """Write the wheel into a folder; return its path. Raises `HostError`."""
    found = own_distribution()
    info = f"{NAME}-{found.version}.dist-info"
    members = {f"{NAME}/{path}": content for path, content in assets.package_files().items()}
    members |= {f"{info}/{name}": text.encode() for name in _KEPT if (text := found.read_text(name))}
    members[f"{info}/WHEEL"] = _WHEEL
    raw = folder / "raw.zip"
    with zipfile.ZipFile(raw, "w") as out:
        for path, content in members.items():
            out.writestr(path, content)
    target = folder / f"{NAME}-{found.version}-py3-none-any.whl"
    normalise(raw, NAME, target)
    raw.unlink()
    return target
