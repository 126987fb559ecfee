"""The values of a request's keys that take more than a pattern to check. Pure."""

from __future__ import annotations

import re
from typing import Literal, get_args

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from ..errors import RequestError
from .toml_reader import Table

TorchIndex = Literal["pytorch"]
PLATFORMS = ("linux/amd64", "linux/arm64")
"""As in OCI."""

_DEBIAN_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")


def torch_version(table: Table) -> str | None:
    """Return the key torch in its one spelling. Raises `RequestError`."""
    text: str | None = table.text(
        "torch", None, _is_version_or_range, 'a version like "2.4.1", or a range like ">=2.4,<2.6"'
    )
    if text is None:
        return None
    return str(Version(text)) if is_version(text) else str(SpecifierSet(text))


def torch_index(table: Table) -> TorchIndex | None:
    """Return the key index. Raises `RequestError`."""
    value: TorchIndex | None = table.text(
        "index",
        None,
        lambda v: v in get_args(TorchIndex),
        '"pytorch", the one that can be named here; all others are settings of uv or pip',
    )
    return value


def platforms(table: Table) -> tuple[str, ...]:
    """Return the key platforms, sorted. Raises `RequestError`."""
    found = table.texts("platforms")
    for position, name in found:
        if name not in PLATFORMS:
            raise RequestError(
                f"{table.where('platforms', position)}: {name!r} is not one of {', '.join(PLATFORMS)}"
            )
    return tuple(sorted({name for _, name in found}))


def is_version(text: str) -> bool:
    """Whether it is one version, and no range."""
    try:
        Version(text)
    except ValueError:  # InvalidVersion is one; so is a number of 5,000 digits
        return False
    return True


def _is_version_or_range(text: str) -> bool:
    if is_version(text):
        return True
    try:
        return len(SpecifierSet(text)) > 0 and "===" not in text
    except (InvalidSpecifier, ValueError):
        return False


def checked_requirement(where: str, text: str) -> str:
    """Return a requirement in its one spelling. Raises `RequestError`."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise RequestError(
            f"{where}: {text!r} is not a PEP 508 requirement: {str(error).splitlines()[0]}"
        ) from None
    if requirement.url is not None:
        raise RequestError(
            f"{where}: {text!r} names a URL; only packages of an index can be locked",
            hint="publish a wheel of it to an index of yours and name the package",
        )
    if requirement.name.lower() == "torch":
        raise RequestError(
            f"{where}: torch is asked for with the key torch",
            hint='write torch = "2.4.1", or give --torch 2.4.1',
        )
    return str(requirement)


def checked_debian_name(where: str, text: str) -> str:
    """Return the name as it is. Raises `RequestError`."""
    if not _DEBIAN_NAME.fullmatch(text):
        raise RequestError(f"{where}: {text!r} is not the name of a Debian package")
    return text
