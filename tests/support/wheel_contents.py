"""What a wheel becomes in a layer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from packaging.utils import parse_wheel_filename

from reprobuild.fetch.wheel_zip import chunks, opened
from reprobuild.layers.wheel import Generated, Place, installed_files

PLACE = Place(prefix="opt/venv", python="3.11")
TEMPLATE = "import sys\nfrom %(module)s import %(import_name)s\nsys.exit(%(func)s())\n"

Tree = Mapping[str, tuple[int, bytes]]


def contents(
    wheel: Path, name: str, place: Place = PLACE, template: str = TEMPLATE, version: str = ""
) -> Tree:
    """Path → mode and bytes, as the layers will have them."""
    found = {}
    version = version or str(parse_wheel_filename(wheel.name)[1])
    with opened(wheel, name) as archive, wheel.open("rb") as file:
        for path, what in installed_files(archive, name, version, place, template).items():
            data = what.content if isinstance(what, Generated) else b"".join(chunks(file, what.info))
            found[path] = (what.mode, data)
    return found
