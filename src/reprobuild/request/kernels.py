"""The keys ``kernels`` and ``kernel-choices`` of a request: recorded results of autotuning. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..in_image.kernels import records, told
from .json_reader import load_json
from .table import Table, TableError

MOST = 2 << 20
"""Characters of all records of a request; that of a program with 60 products on a GPU has some 200,000."""


_ANEW = "make it with `reprobuild run --record-kernels FILE IMAGE`"


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernels:
    """Settings of a request for kernels that are chosen by timing."""

    locked: bool = False
    """Whether a choice that is missing from `choices` is an error."""
    choices: tuple[str, ...] = ()
    """Records, each the canonical text of a file that in_image/kernels.py wrote, sorted."""

    def to_dict(self) -> dict[str, Any]:
        """Return the keys of a request."""
        return {"kernels": "locked", "kernel-choices": list(self.choices)} if self.locked else {}


def kernels(table: Table) -> Kernels:
    """Read a request's settings of kernels. Raises `TableError`."""
    locked = table.choice("kernels", ("locked",), None) is not None
    if table.has("kernel-choices") and not table.has("kernels"):
        raise table.bad("kernel-choices", "has no effect alone", 'add kernels = "locked", or remove it')
    texts: list[str] = []
    for index, text in enumerate(table.texts("kernel-choices", _content, ())):
        texts += canonical(text, table.where("kernel-choices", index))
    if sum(map(len, texts)) > MOST:
        raise table.bad("kernel-choices", f"more than {MOST:,} characters in all")
    here = kinds(texts)
    if twice := sorted({kind for kind in here if here.count(kind) > 1}):
        raise table.bad(
            "kernel-choices",
            f"two records for one kind: {twice[0]}",
            "record all programs into one folder, or keep one of the two",
        )
    return Kernels(locked=locked, choices=tuple(sorted(texts)))


def _content(text: str) -> str:
    if not text.startswith(("{", "[")):  # `workspace.read_env` has put the content of the file in its place
        raise ValueError("can only be set in a request file, which names files")
    return text


def canonical(text: str, where: str) -> list[str]:
    """Return the records in a file, each as its canonical text. Raises `TableError`."""
    try:
        load_json(text)  # stricter: no key twice, no NaN
    except ValueError as error:
        raise TableError(f"{where}: not valid JSON: {error}", _ANEW) from None
    try:
        found = records(text, where)
    except ValueError as error:
        raise TableError(str(error), _ANEW) from None
    return [json.dumps(each, sort_keys=True, separators=(",", ":")) for each in found]


def kinds(texts: Sequence[str]) -> list[str]:
    """Return the kind of each record, in words, with the beginning of its hash."""
    found = []
    for text in texts:
        each: dict[str, Any] = json.loads(text)
        found.append(told(each["kind"]))
    return found


def torch_versions(texts: Sequence[str]) -> list[str]:
    """Return the version of torch with which each record was made, as torch itself names it."""
    return [str(json.loads(text)["kind"]["torch"]) for text in texts]


def document(texts: Sequence[str]) -> bytes:
    """Return the file of an image that holds all records."""
    return ("[" + ",\n".join(texts) + "]\n").encode()


def digests(texts: Sequence[str]) -> list[str]:
    """Return the kind of each record with the SHA-256 of its text."""
    return [
        f"{kind}: sha256:{hashlib.sha256(text.encode()).hexdigest()}"
        for kind, text in zip(kinds(texts), texts, strict=True)
    ]
