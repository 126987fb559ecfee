"""One layer of installed packages: first the files of their wheels, then, once it is made, their bytecode.

The two parts lie apart because compiling needs the image's interpreter, which takes a while to install: the
wheels are read meanwhile, each once, and their Python files are laid aside for the compiler on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

from ..errors import BuildError
from ..lock.model import PythonPackage
from ..oci.tar_writer import LayerWriter, parents
from . import bytecode_stream
from .wheel import Generated, Member, Place
from .wheel_zip import chunks

Files = Mapping[str, Member | Generated]
"""Path in the image → what to put there."""


class WheelLayer:
    """An open layer. `write_files`, then `write_bytecode`, then `LayerWriter.close`."""

    def __init__(self, out: IO[bytes], stage: Path, place: Place) -> None:
        self.writer = LayerWriter(out)
        self._stage = stage
        self._place = place
        self._sources: dict[str, bytecode_stream.Sources] = {}
        self._tag = f".cpython-{place.python.replace('.', '')}.pyc"
        self._folders: set[str] = set()

    def write_files(
        self,
        packages: Mapping[PythonPackage, Files],
        wheel: Callable[[PythonPackage], Path],
        advance: Callable[[int], None],
    ) -> None:
        """Write the files of the packages, sorted by path, and lay their Python files aside.

        ``wheel`` gives a package's file; ``advance`` gets the bytes as they are written.
        """
        paths = sorted((path, package.name) for package, files in packages.items() for path in files)
        by_name = {package.name: files for package, files in packages.items()}
        open_wheels = {}
        try:
            for package in packages:
                open_wheels[package.name] = wheel(package).open("rb")
                archive = self._stage / f"{package.name}{bytecode_stream.SOURCES}"
                self._sources[package.name] = bytecode_stream.Sources(archive.open("wb"))
            last = ""
            for path, name in paths:
                if path == last or _compiled_again(path, by_name[name], self._tag):
                    continue
                last = path
                self._make_folders(path)
                self._write_one(path, by_name[name][path], name, open_wheels[name], advance)
        finally:
            for wheel_file in open_wheels.values():
                wheel_file.close()
            for sources in self._sources.values():
                sources.close()

    def write_bytecode(self, packages: list[PythonPackage]) -> None:
        """Write what the compiler has left for the Python files of the packages, sorted by path.

        Raises `BuildError` where it is anything else than their bytecode.
        """
        sent = {package.name: self._sources[package.name].sizes for package in packages}
        compiled = bytecode_stream.Bytecode(self._stage, sent, self._place.python)
        for path in compiled.paths():
            self._make_folders(path)
            content = compiled.read(path)
            self.writer.file(path, 0o644, len(content), [content])

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
                    self._sources[package].add(path, content)
            case Member(info, mode, recorded):
                data = _counted(chunks(wheel, info), advance)
                if self._to_compile(path):
                    content = b"".join(data)
                    self._sources[package].add(path, content)
                    data = iter([content])
                digest = self.writer.file(path, mode, info.file_size, data)
                if recorded not in ("", digest):
                    raise BuildError(
                        f"{package}: {info.filename} is not what the wheel's own RECORD says: its SHA-256 is "
                        f"{digest}, not {recorded}",
                        hint="ask for another version of the package, or report it to its maintainers",
                    )

    def _to_compile(self, path: str) -> bool:
        return path.endswith(".py") and path.startswith(f"{self._place.site}/")

    def _make_folders(self, path: str) -> None:
        for folder in parents([path]):
            if folder not in self._folders:
                self._folders.add(folder)
                self.writer.folder(folder)


def _compiled_again(path: str, files: Files, tag: str) -> bool:
    """Whether a wheel ships bytecode for a source that it ships too: ours takes its place."""
    folder, _, name = path.rpartition("/")
    source = name.removesuffix(tag)
    return name.endswith(tag) and f"{folder.removesuffix('__pycache__')}{source}.py" in files


def _counted(data: Iterator[bytes], advance: Callable[[int], None]) -> Iterator[bytes]:
    for chunk in data:
        advance(len(chunk))
        yield chunk
