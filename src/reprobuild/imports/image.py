"""A running image → the pins of the Python packages in it."""

from __future__ import annotations

import json
import re
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from .. import assets
from ..errors import ImageError, RequestError
from ..host import process
from ..selftest.run import Runner
from .common import Imported

_SECONDS = 120.0
_MOST_OUTPUT = 8 << 20


def read_image(runner: Runner, image: str) -> Imported:
    """Ask the ``python3`` of an image what it has. Raises `ImageError` when it has none, `RequestError`."""
    program = assets.in_image("inventory.py").decode()
    try:
        done = runner.run(["python3", "-c", program], timeout=_SECONDS, gpu=False)
    except process.ProcessTimeout as error:
        raise ImageError(f"{image}: its python3 did not answer: {error}") from None
    if done.returncode != 0:
        raise ImageError(
            f"{image}: its python3 could not list its packages: {process.tail(done.stderr, 3)}",
            hint="the image needs a python3 (3.8 or newer) on its PATH",
        )
    return parse_inventory(done.stdout, image)


def parse_inventory(output: bytes, image: str) -> Imported:
    """Read what ``in_image/inventory.py`` said. Raises `ImageError` when that is something else."""
    try:
        data: dict[str, Any] = json.loads(output[:_MOST_OUTPUT])
        python, cuda = str(data["python"]), data["cuda"]
        found = [(str(p["name"]), str(p["version"]), bool(p["direct"])) for p in data["packages"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ImageError(f"{image}: its python3 printed unexpected output") from None
    direct = [f"{name} {version}" for name, version, is_direct in found if is_direct]
    if direct:
        raise RequestError(
            f"{image}: installed from an address or a folder, not from an index: {', '.join(direct)}",
            hint="publish wheels to your own index, and install from there",
        )
    requirements = []
    for name, version, _ in found:
        try:
            requirements.append(Requirement(f"{name}=={version}"))
        except InvalidRequirement:
            raise ImageError(f"{image}: {name} {version} is not a package name and version") from None
    if cuda is not None and not re.fullmatch(r"cpu|[0-9]+\.[0-9]+", str(cuda)):
        raise ImageError(f"{image}: its torch reports an unexpected CUDA version: {cuda!r}")
    name = re.sub(r"^(oci|docker|podman):|@.*|:[^/:]*$", "", image).rpartition("/")[2]
    return Imported(origin=image, name=name, requirements=tuple(requirements), python=python, cuda=cuda)
