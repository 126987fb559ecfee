"""What a container gets beside the image for a run of ``twice``: the recorder, and a folder for records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .. import assets
from ..host.sandbox import Bind
from ..request.profiles import SITE_PREFIX
from ..twice.runs import RECORDS

IN_CONTAINER = "/run/reprobuild/records"
"""Where the recorder writes."""
PACKAGE = "reprobuild_twice"
"""The recorder's name in the container's site-packages."""
PATH_FILE = b"import reprobuild_twice\n"


def recorder_binds(folder: Path, layers: Sequence[Path]) -> list[Bind]:
    """Write the recorder into a run's folder and return what binds it, and its records, into the container.

    Of an image without the environment of reprobuild's, only the folder for the records: nothing will be in
    it.
    """
    records = folder / RECORDS
    records.mkdir()
    records.chmod(0o777)  # the program may run as any user
    binds = [Bind(source=records, destination=IN_CONTAINER, writable=True)]
    site = site_packages(layers)
    if site is not None:
        recorder = folder / "recorder"
        for name, content in assets.in_image_package("twice").items():
            (recorder / PACKAGE).mkdir(parents=True, exist_ok=True)
            (recorder / PACKAGE / name).write_bytes(content)
        (recorder / f"{PACKAGE}.pth").write_bytes(PATH_FILE)
        binds += [
            Bind(source=recorder / name, destination=f"{site}/{name}") for name in (PACKAGE, f"{PACKAGE}.pth")
        ]
    return binds


def site_packages(layers: Sequence[Path]) -> str | None:
    """Return the path in the image of the environment's site-packages; layers are lowest first."""
    for layer in reversed(layers):
        for found in sorted(layer.glob(f"{SITE_PREFIX.lstrip('/')}/lib/python3*/site-packages")):
            if found.is_dir() and not found.is_symlink():
                return f"/{found.relative_to(layer)}"
    return None
