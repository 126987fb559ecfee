"""One layer of installed packages: large files, small files, then their bytecode once it is compiled.

The parts lie apart because of what is known when: large files are written as soon as their wheel is there; of
the small ones other packages may have the same paths; and compiling needs the image's interpreter, which is
there later. Each wheel is read once; its Python files are laid aside for the compiler on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from ..errors import BuildError
from ..fetch.wheel_zip import chunks
from ..host.page_cache import PageCache, Passed
from ..lock.packages import PythonPackage
from ..oci.tar_writer import Beside, LayerWriter, parents
from . import bytecode_stream
from .wheel import Generated, Member, Place

Files = Mapping[str, Member | Generated]
"""Path in the image → what to put there."""

LARGE = 1 << 20
"""Bytes of a file, unpacked, that comes first."""


def large_files(packages: Mapping[PythonPackage, Files]) -> frozenset[str]:
    """Return the paths of the large files of some packages. None of Python's is one."""
    return frozenset(
        path for files in packages.values() for path, what in files.items() if _is_large(path, what)
    )


class WheelLayer:
    """An open layer: `write_large`, `write_small`, `write_bytecode`, then `LayerWriter.close`."""

    def __init__(
        self, out: IO[bytes], aside: Path, place: Place, pages: PageCache, beside: Beside | None = None
    ) -> None:
        """``aside`` is a folder for Python files until `lay_sources`; ``beside`` gets all that is written.

        ``pages`` gets back what has been read of the wheels.
        """
        self.writer = LayerWriter(out, beside)
        self._pages = pages
        self.sources: dict[str, bytecode_stream.Sources] = {}
        """Of each package that has Python files."""
        self._aside = aside
        self._place = place
        self._tag = f".cpython-{place.python.replace('.', '')}.pyc"
        self._folders: set[str] = set()

    def write_large(
        self,
        packages: Mapping[PythonPackage, Files],
        wheel: Callable[[PythonPackage], Path],
        advance: Callable[[int], None],
    ) -> None:
        """Write the large files of the packages, sorted by path.

        ``wheel`` gives a package's file; ``advance`` gets the bytes as they are written.
        """
        self._write(packages, wheel, advance, large=True)

    def write_small(
        self,
        packages: Mapping[PythonPackage, Files],
        wheel: Callable[[PythonPackage], Path],
        advance: Callable[[int], None],
    ) -> None:
        """Write all others, sorted by path, and lay their Python files aside.

        Of a package in parts, one has all of its Python files.
        """
        try:
            for package, files in packages.items():
                if any(map(self._to_compile, files)):
                    archive = self._aside / f"{package.name}{bytecode_stream.SOURCES}"
                    self.sources[package.name] = bytecode_stream.Sources(archive.open("wb"))
            self._write(packages, wheel, advance, large=False)
        finally:
            for sources in self.sources.values():
                sources.close()

    def lay_sources(self, stage: Path) -> None:
        """Move the Python files to the folder that the compiler reads."""
        for name in self.sources:
            archive = f"{name}{bytecode_stream.SOURCES}"
            (self._aside / archive).rename(stage / archive)

    def write_bytecode(self, stage: Path) -> None:
        """Write the compiled bytecode of the packages, sorted by path.

        Raises `BuildError` where it is anything else than their bytecode.
        """
        sent = {name: sources.sizes for name, sources in self.sources.items()}
        compiled = bytecode_stream.Bytecode(stage, sent, self._place.python)
        for path in compiled.paths():
            self._make_folders(path)
            content = compiled.read(path)
            self.writer.file(path, 0o644, len(content), [content])

    def _write(
        self,
        packages: Mapping[PythonPackage, Files],
        wheel: Callable[[PythonPackage], Path],
        advance: Callable[[int], None],
        *,
        large: bool,
    ) -> None:
        by_name = {package.name: files for package, files in packages.items()}
        paths = sorted(
            (path, name)
            for name, files in by_name.items()
            for path in files
            if _is_large(path, files[path]) == large
        )
        with ExitStack() as stack:
            wheels = {p.name: stack.enter_context(wheel(p).open("rb")) for p in packages}
            read = {name: Passed(self._pages, file.fileno()) for name, file in wheels.items()}
            last = ""
            for path, name in paths:
                if path == last or _compiled_again(path, by_name[name], self._tag):
                    continue
                last = path
                self._make_folders(path)
                what = by_name[name][path]
                self._write_one(path, what, name, wheels[name], advance)
                if large and isinstance(what, Member):
                    read[name].add(what.info.header_offset, what.info.compress_size)

    def _write_one(
        self,
        path: str,
        what: Member | Generated,
        package: str,
        wheel: IO[bytes],
        advance: Callable[[int], None],
    ) -> None:
        match what:
            case Generated(content, mode):
                self.writer.file(path, mode, len(content), [content])
                if self._to_compile(path):
                    self.sources[package].add(path, content)
            case Member(info, mode, recorded):
                data = _counted(chunks(wheel, info), advance)
                if self._to_compile(path):
                    content = b"".join(data)
                    self.sources[package].add(path, content)
                    data = iter([content])
                digest = self.writer.file(path, mode, info.file_size, data)
                if recorded not in ("", digest):
                    raise BuildError(
                        f"{package}: {info.filename} is not what the wheel's own RECORD says: its SHA-256 is "
                        f"{digest}, not {recorded}",
                        hint=f"ask for another version of the package; or, since pip and uv install it, "
                        f"allow it: --allow-bad-record {package} (allow-bad-record in the request)",
                    )

    def _to_compile(self, path: str) -> bool:
        return path.endswith(".py") and path.startswith(f"{self._place.site}/")

    def _make_folders(self, path: str) -> None:
        for folder in parents([path]):
            if folder not in self._folders:
                self._folders.add(folder)
                self.writer.folder(folder)


def _is_large(path: str, what: Member | Generated) -> bool:
    return isinstance(what, Member) and what.info.file_size >= LARGE and not path.endswith((".py", ".pyc"))


def _compiled_again(path: str, files: Files, tag: str) -> bool:
    """Whether a wheel ships bytecode for a source that it ships too: ours takes its place."""
    folder, _, name = path.rpartition("/")
    source = name.removesuffix(tag)
    return name.endswith(tag) and f"{folder.removesuffix('__pycache__')}{source}.py" in files


def _counted(data: Iterator[bytes], advance: Callable[[int], None]) -> Iterator[bytes]:
    for chunk in data:
        advance(len(chunk))
        yield chunk
