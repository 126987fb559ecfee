"""Read files of CDI, the Container Device Interface, as its Go library reads them (sigs.k8s.io/yaml)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import HostError
from ..host.home import open_regular
from ..request.json_reader import load_json
from ..request.yaml_reader import load_yaml

_LARGEST = 8 << 20
"""Bytes of a CDI file; those of `nvidia-ctk` have some 30,000."""
ANEW = "regenerate it with `nvidia-ctk cdi generate`, or use --gpu off"
_KIND_IN_TEXT = re.compile(rb"""(?im)^[^#\n]*?\bkind["']?\s*:\s*["']?([^\s"',}]+)""")


def read_cdi(path: Path, kind: str) -> Mapping[str, Any]:
    """Return a CDI file; an empty table for one that cannot be read and is not about that kind of device.

    Raises `HostError` for one that cannot be read and may be.
    """
    data = b""
    try:
        with open_regular(path) as file:
            data = file.read(_LARGEST + 1)
        _hold_size(data)
        spec = _parsed(path, data)
    except (OSError, ValueError) as error:
        if _may_be_of(kind, path, data):
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise HostError(f"{path}: not a valid CDI specification: {reason}", hint=ANEW) from None
        return {}
    if isinstance(spec, dict):
        return spec
    if _vendor(kind) in path.name:
        raise HostError(f"{path}: not a valid CDI specification: not a table", hint=ANEW)
    return {}


def _parsed(path: Path, data: bytes) -> object:
    """Parse YAML, or JSON, which is YAML: Go reads both as YAML, PyYAML refuses tabs between values."""
    readers = (load_json, _load_yaml)
    first, second = readers if path.suffix == ".json" else readers[::-1]
    try:
        return first(data)
    except ValueError:
        with suppress(ValueError):  # the error of the format that the file's name says is the one to show
            return second(data)
        raise


def _load_yaml(data: bytes) -> object:
    return load_yaml(data.decode(), plain=True)


def _may_be_of(kind: str, path: Path, data: bytes) -> bool:
    """Whether a file that cannot be read may be about a kind: another vendor's is no reason to refuse.

    By the kind that it names outside of comments; without any by its own name.
    """
    kinds = _KIND_IN_TEXT.findall(data)
    return kind.encode() in kinds if kinds else _vendor(kind) in path.name


def _vendor(kind: str) -> str:
    return kind.partition(".")[0]


def _hold_size(data: bytes) -> None:
    if len(data) > _LARGEST:
        raise ValueError(f"it has more than {_LARGEST:,} bytes")


def as_text(value: object) -> object:
    """Return a number or truth value as the text that Go makes of it where it expects text.

    Without quotes YAML has such values (convertToJSONableObject of sigs.k8s.io/yaml).
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and (value == 0 or 1e-4 <= abs(value) < 1e6):  # beyond, an exponent
        return repr(value).removesuffix(".0")
    return value
