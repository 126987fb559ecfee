"""The data files that ship with reprobuild: ``templates/`` and ``in_image/``.

In a wheel both lie in the package; in a checkout ``templates/`` lies at the top of the repository.
"""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path


def template(name: str) -> str:
    """Return the text of a file of ``templates/``. FileNotFoundError: no such template."""
    return (_templates() / name).read_text(encoding="utf-8")


def in_image(name: str) -> bytes:
    """Return the bytes of a file of ``in_image/``. FileNotFoundError: no such file."""
    return (resources.files(__package__) / "in_image" / name).read_bytes()


def _templates() -> Traversable:
    packaged = resources.files(__package__) / "templates"
    if packaged.is_dir():
        return packaged
    # An editable install or a checkout: src/reprobuild/assets.py is two folders below the repository's top.
    return Path(__file__).resolve().parents[2] / "templates"
