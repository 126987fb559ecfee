"""A receipt: the inputs and results of a run, as one small JSON file.

Reading takes a stranger's bytes: bounded, each key known, each value of its form. Nothing in it is a path of
this machine: folders are told from that of the project.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ...errors import RepeatError
from ...host.home import open_regular
from ...request.json_reader import load_json
from ...request.table import DIGEST, SHA256, JsonTable, Table, TableError, refused_as

T = TypeVar("T")

FORMAT = 1
"""The version of the schema, which docs/verify-and-cite.md describes."""
MOST_BYTES = 16 << 20
MOST_FILES = 20_000
MOST_MOMENTS = 500
"""Of one process; of one with more, several are folded into one."""
MOST_WORDS = 4096
LONGEST = 128 << 10
"""Characters of a word, a value, a path; Linux takes no longer word."""

_COMMIT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})?")
_STEP = re.compile(r"[0-9a-f]{16}")
_LINES = re.compile(r"(?:[0-9a-f]{6})*")
_VARIABLE = re.compile(r"[^=\0]{1,1000}")
_USER = re.compile(r"[!-.0-9;-~]{1,64}(?::[!-.0-9;-~]{1,64})?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Folder:
    """A folder or file that was visible to the program."""

    destination: str
    source: str | None
    """Relative to the project's folder, ``.`` for the folder itself; None: elsewhere."""
    writable: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class InputFile:
    """A file in such a folder, by its path in the container."""

    path: str
    size: int
    sha256: str
    lines: str = ""
    """Of a small text: six digits for each line, of the SHA-256 over it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputFile:
    """A file that the program wrote into such a folder."""

    path: str
    size: int
    sha256: str
    """Or what else it is: ``removed``, ``a link to …``."""
    meaning: str
    """A digest of what counts: a text without times, a checkpoint's tensors, else the bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessSteps:
    """What one process computed."""

    process: str
    count: int
    moments: tuple[tuple[str, str], ...]
    """Each step or call, or the last of several, with a digest."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Code:
    """The project in git."""

    commit: str
    dirty: bool
    tree: str
    """SHA-256 over the paths and contents of all that git tracks below the folder, as it is on disk."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt:
    """The whole of it."""

    by: str
    """``run`` or ``twice``."""
    made_with: str
    image: str
    """What the user called it."""
    digest: str
    engine: str
    lock: str
    command: tuple[str, ...]
    workdir: str | None
    user: str | None
    """None: the image's own."""
    network: bool
    gpu: bool
    folders: tuple[Folder, ...]
    variables: Mapping[str, str | None]
    """Of ``-e``; None: the value is a secret."""
    code: Code | None
    inputs: tuple[InputFile, ...]
    """Files that the program was seen to read."""
    beside: tuple[InputFile, ...]
    """Others in the folders, which a library in C or another program may have read."""
    beside_whole: bool
    """Whether these are all others."""
    machine: Mapping[str, str]
    steps: tuple[ProcessSteps, ...]
    status: int
    stdout: str | None
    """Digest of its lines without times; None if it was written to the terminal."""
    outputs: tuple[OutputFile, ...]
    verdict: str
    """Of ``twice``: ``repeats`` or ``text``; else empty."""
    notes: tuple[str, ...] = field(default=())

    def dump(self) -> bytes:
        """Return the file; it is reproducible."""
        table = {
            "receipt": FORMAT,
            "by": self.by,
            "made-with": self.made_with,
            "image": {"name": self.image, "digest": self.digest, "engine": self.engine, "lock": self.lock},
            "command": list(self.command),
            "workdir": self.workdir,
            "user": self.user,
            "network": self.network,
            "gpu": self.gpu,
            "folders": [asdict(each) for each in self.folders],
            "variables": dict(sorted(self.variables.items())),
            "code": self.code and asdict(self.code),
            "inputs": [_input(each) for each in self.inputs],
            "beside": [_input(each) for each in self.beside],
            "beside-whole": self.beside_whole,
            "machine": dict(sorted(self.machine.items())),
            "steps": [asdict(each) for each in self.steps],
            "status": self.status,
            "stdout": self.stdout,
            "outputs": [asdict(each) for each in self.outputs],
            "verdict": self.verdict,
            "notes": list(self.notes),
        }
        return _compact(table).encode() + b"\n"

    @property
    def sha256(self) -> str:
        """That of the file, by which it is cited."""
        return hashlib.sha256(self.dump()).hexdigest()


_KEYS = (
    *("receipt", "by", "made-with", "image", "command", "workdir", "user", "network", "gpu", "folders"),
    *("variables", "code", "inputs", "beside", "beside-whole", "machine", "steps", "status", "stdout"),
    *("outputs", "verdict", "notes"),
)


def _input(file: InputFile) -> dict[str, Any]:
    return {key: value for key, value in asdict(file).items() if key != "lines" or value}


def _compact(table: Mapping[str, Any]) -> str:
    """Return JSON with a line for each key of the top, and one for each entry of its lists of tables."""

    def value(each: Any) -> str:
        if isinstance(each, list) and each and isinstance(each[0], dict):
            return "[\n  " + ",\n  ".join(map(_json, each)) + "\n ]"
        return _json(each)

    rows = [f" {_json(key)}: {value(each)}" for key, each in table.items()]
    return "{\n" + ",\n".join(rows) + "\n}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(", ", ": "))


def read_receipt(path: Path) -> Receipt:
    """Read an untrusted receipt. Raises `RepeatError` that describes the fault."""
    try:
        with open_regular(path) as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise RepeatError(f"{path}: {error.strerror}", hint=_HINT) from None
    return parse_receipt(data, str(path))


_HINT = "`run --receipt FILE` and `twice --receipt FILE` write one"


def parse_receipt(data: bytes, where: str) -> Receipt:
    """Read the bytes of a receipt; ``where`` is what messages call it. Raises `RepeatError`."""
    try:
        with refused_as(RepeatError, where, _HINT):
            return _receipt(_table(data))
    except ValueError:
        raise RepeatError(f"{where}: not a receipt: not valid JSON", hint=_HINT) from None


def _table(data: bytes) -> Table:
    if len(data) > MOST_BYTES:
        raise TableError(f"larger than {MOST_BYTES >> 20} MiB")
    table = load_json(data)
    if not isinstance(table, dict) or "receipt" not in table:
        raise TableError("not a receipt")
    if type(table["receipt"]) is not int or table["receipt"] != FORMAT:
        raise TableError(f"a receipt of another format; this reprobuild reads {FORMAT}")
    return JsonTable(table, "", _KEYS)


def _receipt(table: Table) -> Receipt:
    image = table.table("image", ("name", "digest", "engine", "lock"))
    folders = tuple(map(_folder, _tables(table, "folders", ("destination", "source", "writable"), 256)))
    if len({each.destination for each in folders}) != len(folders):
        raise table.bad("folders", "two with one destination")
    command = tuple(table.texts("command", _word))
    if not command or len(command) > MOST_WORDS:
        raise table.bad("command", f"expected 1 to {MOST_WORDS} words")
    if not command[0]:
        raise table.bad("command", "the first word is empty: expected a program")
    output_keys = ("path", "size", "sha256", "meaning")
    return Receipt(
        by=table.choice("by", ("run", "twice")),
        made_with=table.text("made-with", str.isprintable, "a name and a version"),
        image=image.text("name", str.isprintable, "an image"),
        digest=image.digest("digest"),
        engine=image.choice("engine", ("oci", "docker", "podman")),
        lock=image.text("lock", lambda text: not text or DIGEST.fullmatch(text), "a digest"),
        command=command,
        workdir=_or_null(table, "workdir", lambda: table.text("workdir", _is_place, "a path in the image")),
        user=_or_null(table, "user", lambda: table.text("user", _USER.fullmatch, "USER[:GROUP]")),
        network=table.value("network", bool),
        gpu=table.value("gpu", bool),
        folders=folders,
        variables=_pairs(table, "variables"),
        code=_or_null(table, "code", lambda: _code(table.table("code", ("commit", "dirty", "tree")))),
        inputs=_inputs(table, "inputs"),
        beside=_inputs(table, "beside"),
        beside_whole=table.value("beside-whole", bool),
        machine={name: value or "" for name, value in _pairs(table, "machine").items()},
        steps=tuple(map(_steps, _tables(table, "steps", ("process", "count", "moments"), 4096))),
        status=table.integer("status", -255, 255),
        stdout=_or_null(table, "stdout", lambda: table.sha256("stdout")),
        outputs=tuple(map(_output, _tables(table, "outputs", output_keys, MOST_FILES))),
        verdict=table.choice("verdict", ("", "repeats", "text")),
        notes=tuple(table.texts("notes", _word)[:MOST_WORDS]),
    )


def _or_null(table: Table, key: str, read: Callable[[], T]) -> T | None:
    return None if key in table.data and table.data[key] is None else read()


def _tables(table: Table, key: str, known: tuple[str, ...], most: int) -> list[Table]:
    if len(table.value(key, list)) > most:
        raise table.bad(key, f"more than {most} entries")
    return table.tables(key, known)


def _pairs(table: Table, key: str) -> dict[str, str | None]:
    found: dict[str, Any] = table.value(key, dict)
    if len(found) > MOST_WORDS:
        raise table.bad(key, f"more than {MOST_WORDS} entries")
    for name, value in found.items():
        if not _VARIABLE.fullmatch(name) or not _is_text(name) or not (value is None or _is_text(value)):
            raise table.bad(f"{key}.{name[:100]}", "not a name and a text")
    return found


def _folder(table: Table) -> Folder:
    return Folder(
        destination=table.text("destination", _is_place, "an absolute path without .."),
        source=_or_null(
            table, "source", lambda: table.text("source", is_below, "the path of a folder below the project")
        ),
        writable=table.value("writable", bool),
    )


def _inputs(table: Table, key: str) -> tuple[InputFile, ...]:
    found = tuple(
        InputFile(
            path=each.text("path", _is_place, "an absolute path without .."),
            size=each.integer("size", 0, 2**63 - 1),
            sha256=each.sha256(),
            lines=each.text("lines", _LINES.fullmatch, "six hexadecimal digits a line", ""),
        )
        for each in _tables(table, key, ("path", "size", "sha256", "lines"), MOST_FILES)
    )
    if len({each.path for each in found}) != len(found):  # each is hashed
        raise table.bad(key, "a path is there twice")
    return found


def _output(table: Table) -> OutputFile:
    return OutputFile(
        path=table.text("path", _is_text, "a path"),
        size=table.integer("size", 0, 2**63 - 1),
        sha256=table.text("sha256", _is_text, "a digest"),
        meaning=table.text("meaning", _is_text, "a digest"),
    )


def _code(table: Table) -> Code:
    return Code(
        commit=table.text("commit", _COMMIT.fullmatch, "a commit of git"),
        dirty=table.value("dirty", bool),
        tree=table.text("tree", lambda text: not text or SHA256.fullmatch(text), "64 hexadecimal digits"),
    )


def _steps(table: Table) -> ProcessSteps:
    rows = table.value("moments", list)
    if len(rows) > MOST_MOMENTS:
        raise table.bad("moments", f"more than {MOST_MOMENTS} entries")
    for index, row in enumerate(rows):
        if (
            type(row) is not list
            or len(row) != 2
            or not all(map(_is_text, row))
            or not _STEP.fullmatch(row[1])
        ):
            raise table.bad(f"moments[{index}]", "not a label and 16 hexadecimal digits")
    return ProcessSteps(
        process=table.text("process", lambda text: _is_text(text) and len(text) < 1000, "a name"),
        count=table.integer("count", 0, 2**53),
        moments=tuple((label, digest) for label, digest in rows),
    )


def _word(value: str) -> str:
    if not _is_text(value):
        raise TableError("not valid text")
    return value


def _is_text(value: Any) -> bool:
    """Whether it is text that a program or a person can be given."""
    if type(value) is not str or len(value) > LONGEST or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _is_place(text: str) -> bool:
    return _is_text(text) and text.startswith("/") and ".." not in text.split("/")


def is_below(text: str) -> bool:
    """Whether a path leads to a place below the folder that it starts from."""
    parts = text.split("/")
    return _is_text(text) and bool(text) and (text == "." or not {"", ".", ".."} & set(parts))
