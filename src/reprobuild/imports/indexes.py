"""Indexes in a team's files: PyTorch's becomes a key of the request; others need the user's permission."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import parse_wheel_filename

from ..errors import RequestError
from ..net.index_settings import find_links, well_known
from ..net.session import indexes, without_credentials
from ..request.direct import Direct
from .common import cuda_of_flavour

_PYTORCH = re.compile(r"(?:[a-z0-9-]+\.)*pytorch\.org")
_UNRELEASED = re.compile(r"/(nightly|test)(/|$)")
"""In a path: indexes of builds that were not released, which `--index pytorch` does not ask."""
_VARIABLES = {
    "--index-url": "UV_DEFAULT_INDEX",
    "--extra-index-url": "UV_INDEX",
    "--find-links": "UV_FIND_LINKS",
}
SHORT = {"-i": "--index-url", "--pypi-url": "--index-url", "-f": "--find-links"}


def is_pytorch(url: str) -> bool:
    """Whether an address is one of PyTorch's own with released builds."""
    try:
        parts = urlsplit(url)
        return bool(_PYTORCH.fullmatch(parts.hostname or "") and not _UNRELEASED.search(parts.path))
    except ValueError:
        return False


def cuda_in(url: str) -> str | None:
    """Return the CUDA that an address of PyTorch's names, as ``11.8`` or ``cpu``."""
    named = re.search(r"/(cpu|cu[0-9]{2,})(/|$)", urlsplit(url).path)
    return cuda_of_flavour(named[1]) if named else None


class NamedIndexes:
    """The indexes of a file that a request may use."""

    def __init__(self, allowed: Collection[str] = ()) -> None:
        """``allowed``: the hosts of which the user has said that the file's indexes may be asked."""
        self._allowed = set(allowed)
        self.pytorch = False
        self.cuda: str | None = None
        """What PyTorch's own address names; ``cpu``, or a version."""
        self.taken: dict[str, list[str]] = {}
        """uv's variable → addresses that are not set up, and that the user allows."""

    def add(self, option: str, value: str, place: str) -> None:
        """Take an address by pip's option for it. Raises `RequestError` for one that the user must allow."""
        option = SHORT.get(option, option)
        try:
            host = urlsplit(value).hostname or ""
        except ValueError:  # brackets that hold no IPv6 address
            raise RequestError(f"{place}: {option}: {value!r} is not an address") from None
        if is_pytorch(value):
            self.pytorch = True
            self.cuda = self.cuda or cuda_in(value)
            return
        bare = without_credentials(value).rstrip("/")
        if bare in _set_up():
            return
        variable = _VARIABLES[option]
        if host and host in self._allowed and bare == value.rstrip("/"):
            self.taken.setdefault(variable, []).append(value)
            return
        said = f"export {variable}={shlex.quote(bare)}"
        raise RequestError(
            f"{place}: {option}: the index is a setting of the machine, and this one is not set up: "
            f"{bare or 'no address'}",
            hint=(
                f"if you trust it, set it up ({said})"
                + (f", or give --index-from-file {host} for this once" if host else "")
                + "; otherwise remove the line; for PyTorch's own give --index pytorch"
            )
            if value
            else "remove the line",
        )

    def pinned(self, requirement: Requirement) -> Requirement:
        """Return a wheel at an address of PyTorch's as its version, which its index has too."""
        if requirement.url is None or not is_pytorch(requirement.url):
            return requirement
        try:
            direct = Direct.parse(requirement.url)
            version = parse_wheel_filename(unquote(direct.url.rpartition("/")[2]))[1]
        except ValueError:  # InvalidWheelFilename is one
            return requirement
        self.pytorch = True
        self.cuda = self.cuda or cuda_in(direct.url) or cuda_of_flavour(version.local or "")
        pin = Requirement(str(requirement))
        pin.url, pin.specifier = None, SpecifierSet(f"=={version}")
        return pin

    @property
    def found(self) -> dict[str, Any]:
        """The fields of `Imported` that indexes decide."""
        return {
            "index": "pytorch" if self.pytorch else None,
            "cuda": self.cuda,
            "settings": {variable: tuple(urls) for variable, urls in self.taken.items()},
        }


def _set_up() -> set[str]:
    """Return the addresses of the user's indexes and find-links, and those of the one without a setting."""
    urls = (*indexes().all, *find_links(), *_well_known())
    return {without_credentials(url).rstrip("/") for url in urls}


def _well_known() -> tuple[str, ...]:
    """Return the addresses of the well-known index: those without TLS and those of before 2018 lead to it.

    https://blog.python.org/2018/04/new-pypi-launched-legacy-pypi-shutting.html
    """
    url = urlsplit(well_known())
    hosts = (url.netloc, f"{url.netloc.partition('.')[0]}.python.org")
    return tuple(f"{scheme}://{host}{url.path}" for scheme in ("https", "http") for host in hosts)
