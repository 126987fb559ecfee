"""Layer of a standalone build of Python, with the bytecode of its standard library.

Left out are the archive's own ``site-packages`` (pip is a locked wheel) and its bytecode, which is made anew.
"""

from __future__ import annotations

import gzip
import posixpath
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import error as ZlibError  # noqa: N812 -- it is an exception

from ..errors import BuildError
from ..fetch.plain_path import is_plain
from ..host import untrusted_files
from ..host.home import storage_errors
from ..lock.model import Lock
from ..lock.standalone_python import PREFIX, StandalonePython
from ..oci.tar_fields import LayerRefused
from ..oci.tar_reader import Entry, Reader
from ..oci.tar_writer import LayerWriter, parents
from . import bytecode_stream
from .image_python import run_interpreter

_TOP = "python/"
_PLACE = PREFIX.lstrip("/")
_STAGE = "standard-library"
_LEFT_OUT = re.compile(r"lib/python3\.\d+/site-packages/.+|(.+/)?__pycache__(/.*)?|.+\.pyc")
_MOST_FILES, _MOST_BYTES = 100_000, 2 << 30
"""Of an archive; a real one has 5,000 files with 120 MB."""


def write_standalone(
    lock: Lock, archive: Path, below: Sequence[Path], folder: Path, out: LayerWriter
) -> None:
    """Write the layer of a lock's standalone Python.

    ``below`` are the unpacked layers of the system under it, ``folder`` is an empty one. The build compiles
    its own library in the sandbox. Raises `BuildError` for an archive that is not of the expected form.
    """
    python = lock.standalone
    assert python is not None
    with storage_errors(folder):
        root = folder / "root"
        root.mkdir(mode=0o755)
        workshop = folder / "workshop"
        (workshop / "stage").mkdir(parents=True)
        found = _unpack(python, archive, root)
        library = f"{_PLACE}/lib/python{python.minor}/"
        sources = bytecode_stream.Sources((workshop / f"stage/{_STAGE}{bytecode_stream.SOURCES}").open("wb"))
        try:
            for path in sorted(found):
                if path.startswith(library) and path.endswith(".py") and not found[path].link:
                    sources.add(path, (root / path).read_bytes())
        finally:
            sources.close()
    run_interpreter(lock, [*below, root], workshop, environment=False)
    compiled = bytecode_stream.Bytecode(workshop / "stage", {_STAGE: sources.sizes}, python.minor)
    bytecode = set(compiled.paths())
    with storage_errors(folder):
        every = sorted({*found, *bytecode})
        for path in sorted({*every, *parents(every)}):
            if path in bytecode:
                content = compiled.read(path)
                out.file(path, 0o644, len(content), [content])
            elif path not in found:
                out.folder(path)
            elif found[path].link:
                out.link(path, found[path].link)
            else:
                with untrusted_files.opened(root, path) as file:
                    out.file(path, found[path].mode, found[path].size, iter(lambda: file.read(1 << 20), b""))


@dataclass(slots=True)
class _Entry:
    link: str
    mode: int
    size: int


def _unpack(python: StandalonePython, archive: Path, root: Path) -> dict[str, _Entry]:
    """Unpack what belongs in the image; return it by its path there."""
    found: dict[str, _Entry] = {}
    total = 0

    def bad(why: str) -> BuildError:
        return BuildError(
            f"{python.filename}: {why}", hint="check its source: uv's list, or your mirror of it"
        )

    try:
        with gzip.open(archive) as stream:
            reader = Reader(stream)
            for entry in reader:
                path = entry.path.removeprefix(_TOP)
                if entry.kind == "dir" or _LEFT_OUT.fullmatch(path):
                    continue
                if not entry.path.startswith(_TOP) or not is_plain(path):
                    raise bad(f"{entry.path!r} is not below {_TOP}")
                place = f"{_PLACE}/{path}"
                if place in found or any(above in found for above in parents([place])):
                    raise bad(f"{entry.path!r} is there twice, or is a folder too")
                of, size = _first(entry, found)
                total += size
                if len(found) >= _MOST_FILES or total > _MOST_BYTES:
                    raise bad(f"it has more than {_MOST_FILES:,} files or {_MOST_BYTES >> 30} GiB")
                made = _Entry("", 0o755 if entry.mode & 0o111 else 0o644, size)
                target = root / place
                target.parent.mkdir(parents=True, exist_ok=True)
                if entry.kind == "link":
                    made.link = entry.target
                    _check_link(path, made.link, bad)
                    target.symlink_to(made.link)
                elif entry.kind == "file" or of:
                    _write(target, reader, root / of if of else None, made.mode)
                else:
                    raise bad(f"{entry.path!r} is neither a file nor a link")
                found[place] = made
    except (LayerRefused, EOFError, ZlibError) as error:
        raise bad(f"it cannot be read: {error}") from None
    except (FileExistsError, IsADirectoryError, NotADirectoryError):
        raise bad("two of its entries have one name") from None
    if f"{_PLACE}/bin/python{python.minor}" not in found:
        raise bad(f"it has no {_TOP}bin/python{python.minor}")
    return found


def _first(entry: Entry, found: Mapping[str, _Entry]) -> tuple[str, int]:
    """Return of what earlier file an entry is a second name, empty for none, and its size."""
    of = f"{_PLACE}/{entry.target.removeprefix(_TOP)}" if entry.kind == "hardlink" else ""
    first = found.get(of)
    return ("", entry.size) if first is None or first.link else (of, first.size)


def _write(target: Path, reader: Reader, of: Path | None, mode: int) -> None:
    """Write a reader's latest entry, or a second name ``of`` an earlier one."""
    with target.open("xb") as file:
        if of is None:
            file.writelines(reader.content())
        else:
            with of.open("rb") as first:
                shutil.copyfileobj(first, file)
    target.chmod(mode)


def _check_link(path: str, link: str, bad: Callable[[str], BuildError]) -> None:
    ends = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    if link.startswith("/") or ends.split("/")[0] == ".." or not is_plain(ends):
        raise bad(f"the link {path!r} leads outside")
