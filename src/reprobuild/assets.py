"""The data files that ship with reprobuild: ``templates/``, ``envs/`` and ``in_image/``.

In a wheel all lie in the package; in a checkout the first two lie at the top of the repository.
"""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path


def template(name: str) -> str:
    """Return the text of a file of ``templates/``. FileNotFoundError: no such template."""
    return (_folder("templates") / name).read_text(encoding="utf-8")


def request(name: str) -> str | None:
    """Return the text of a request that ships, by its name; None when there is no such request."""
    file = _folder("envs") / f"{name}.toml"
    return file.read_text(encoding="utf-8") if file.is_file() else None


def in_image(name: str) -> bytes:
    """Return the bytes of a file of ``in_image/``. FileNotFoundError: no such file."""
    return (resources.files(__package__) / "in_image" / name).read_bytes()


def in_image_package(name: str) -> dict[str, bytes]:
    """Return the modules of a package of ``in_image/``: name → content. FileNotFoundError: no such
    package."""
    folder = resources.files(__package__) / "in_image" / name
    return {
        entry.name: entry.read_bytes()
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".py")
    }


SHIPPED = ("torch-cpu", "torch-cu121", "torch-cu130")
"""The requests that ship. In a checkout a user's own are beside them, and pyproject.toml names the same."""


def package_files() -> dict[str, bytes]:
    """Return every file that a wheel of this installation has below ``reprobuild/``, by path."""
    package = Path(__file__).parent
    found = {
        path.relative_to(package).as_posix(): path.read_bytes()
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    for entry in _folder("templates").iterdir():
        found[f"templates/{entry.name}"] = entry.read_bytes()
    return found | {f"envs/{name}.toml": (request(name) or "").encode() for name in SHIPPED}


def _folder(name: str) -> Traversable:
    packaged = resources.files(__package__) / name
    if packaged.is_dir():
        return packaged
    # An editable install or a checkout: src/reprobuild/assets.py is two folders below the repository's top.
    return Path(__file__).resolve().parents[2] / name
